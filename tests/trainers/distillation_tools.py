"""What the tests of both distillations share: teachers, students and models with more rows of logits."""

from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from trl_reasoning.builtin import resolve_model


TINY, UNTRAINED = "builtin:tiny", "builtin:tiny-untrained"


def padded_copy(folder: Path, rows: int, source: str = TINY) -> str:
    """A model whose vocabulary has more rows than its tokenizer has tokens; the new ones have large weights."""
    path = resolve_model(source)
    model: Any = AutoModelForCausalLM.from_pretrained(path)
    old = model.config.vocab_size
    model.resize_token_embeddings(rows, mean_resizing=False)
    with torch.no_grad():
        model.get_input_embeddings().weight[old:] = 1.0
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(path).save_pretrained(folder)
    return str(folder)


def losses(trainer) -> dict[int, float]:
    """Losses of a run by step."""
    return {log["step"]: log["loss"] for log in trainer.state.log_history if "loss" in log}


def gradients_of_a_step(trainer) -> dict[str, torch.Tensor]:
    """Gradients with which a run's first optimizer step is made."""
    found: dict[str, torch.Tensor] = {}
    step = trainer.create_optimizer().step

    def record(*args: Any, **kwargs: Any) -> Any:
        if not found:
            found.update({name: p.grad.clone() for name, p in trainer.model.named_parameters() if p.grad is not None})
        return step(*args, **kwargs)

    trainer.optimizer.step = record
    trainer.train()
    return found
