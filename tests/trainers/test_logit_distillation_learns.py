"""A student learns from stored log-probs what its rows do not show: how often the teacher leaves out the thought."""

from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from trl_reasoning.builtin import make_chain_dataset, resolve_model
from trl_reasoning.callbacks.progress import read_log
from trl_reasoning.cli import main


RECIPE = Path(__file__).resolve().parents[2] / "recipes" / "distillation" / "logit_distillation_tiny.yaml"


def no_thought_share(path: str) -> float:
    """Mean probability of an empty thought over 64 questions."""
    tokenizer, model = AutoTokenizer.from_pretrained(path), AutoModelForCausalLM.from_pretrained(path).eval()
    close = tokenizer.convert_tokens_to_ids("</think>")
    shares = []
    for row in make_chain_dataset("heldout", size=64, operands=(2, 4), seed=3):
        ids = tokenizer.apply_chat_template(row["prompt"], add_generation_prompt=True)["input_ids"]
        with torch.no_grad():
            logits = model(torch.tensor([[*ids, tokenizer.convert_tokens_to_ids("<think>")]])).logits[0, -1]
        shares.append(torch.softmax(logits, dim=-1)[close].item())
    return sum(shares) / len(shares)


@pytest.mark.slow
def test_the_student_gets_the_teachers_probabilities(tmp_path):
    """200 steps from random weights; every row has a thought, and the teacher writes none in four cases of ten."""
    assert main(["train", str(RECIPE), "--output_dir", str(tmp_path)]) == 0
    log = read_log(tmp_path / "train_log.jsonl")
    divergence = [row["divergence"] for row in log if "divergence" in row]
    assert divergence[-1] < 0.15 * divergence[0]
    teacher, student = no_thought_share(resolve_model("builtin:tiny")), no_thought_share(str(tmp_path))
    assert 0.3 < teacher < 0.5
    assert student == pytest.approx(teacher, abs=0.1)
