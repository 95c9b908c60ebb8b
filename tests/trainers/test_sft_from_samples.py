"""SFT on samples: the training text is, token for token, what the model was shown and what it drew."""

import pytest
import torch
from datasets import Dataset

from trl_reasoning.data import add_prompts, load_source
from trl_reasoning.generation import Generation, SamplingParams, TransformersBackend, sample_problems
from trl_reasoning.trainers import ReasoningSFTConfig, ReasoningSFTTrainer


PROBLEMS = Dataset.from_list([{"question": f"{place}+2=?", "solution": str(place + 2)} for place in range(1, 6)])
PARAMS = SamplingParams(max_new_tokens=48)


def trained_text(path, model, common):
    """Prompt ids and target ids of every row, as the trainer's collator gives them."""
    rows = load_source({"path": str(path), "from_samples": {"keep": "all"}})
    trainer = ReasoningSFTTrainer(model=model, args=ReasoningSFTConfig(**common), train_dataset=rows)
    found = []
    for row in trainer.train_dataset:
        batch = trainer.data_collator([row])
        ids, labels = batch["input_ids"][0], batch["labels"][0]
        is_target = labels != -100
        assert torch.equal(labels[is_target], ids[is_target])
        found.append((ids[~is_target].tolist(), ids[is_target].tolist()))
    return found


def drawn_text(records, problems, tokenizer, **template_kwargs):
    """Prompt ids of a sample, and the ids that were drawn, without those that the token limit cut."""
    shown = [
        tokenizer.apply_chat_template(
            prompt, add_generation_prompt=True, tokenize=True, return_dict=True, **template_kwargs
        )["input_ids"]
        if isinstance(prompt, list)
        else tokenizer(prompt)["input_ids"]
        for prompt in problems["prompt"]
    ]
    return [(shown[record["id"]], record["token_ids"]) for record in records if record["finish_reason"] != "length"]


def test_messages(tiny, tokenizer, common, tmp_path):
    problems = add_prompts(PROBLEMS)
    path = tmp_path / "records.jsonl"
    backend = TransformersBackend.load(tiny)
    records = sample_problems(backend, problems, PARAMS, samples=2, path=path, keep_token_ids=True)
    drawn = drawn_text(records, problems, tokenizer)
    assert len(drawn) >= 5
    assert all(ids[-1] == tokenizer.eos_token_id for _, ids in drawn)
    found = trained_text(path, tiny, common)
    # Samples that are equal count once.
    assert sorted(found) == sorted({(tuple(prompt), tuple(ids)): (prompt, ids) for prompt, ids in drawn}.values())


def test_messages_without_thinking(tiny, tokenizer, common, tmp_path):
    """The empty thought that the chat template wrote is trained on, too, before what was drawn."""
    problems = add_prompts(PROBLEMS)
    path = tmp_path / "records.jsonl"
    backend, kwargs = TransformersBackend.load(tiny), {"enable_thinking": False}
    records = sample_problems(
        backend, problems, PARAMS, samples=1, path=path, keep_token_ids=True, chat_template_kwargs=kwargs
    )
    assert {record["reply_start"] for record in records} == {"<think></think>"}
    drawn = [prompt + ids for prompt, ids in drawn_text(records, problems, tokenizer, **kwargs)]
    assert len(drawn) >= 3
    found = trained_text(path, tiny, common)
    assert [prompt + target for prompt, target in found] == drawn
    empty = tokenizer("<think></think>")["input_ids"]
    assert all(target[:2] == empty for _, target in found)


class Scripted(TransformersBackend):
    """Writes one text behind every prompt, as a base model with a stop string would; the tokens end there."""

    text = ""
    reason = "stop_string"

    def generate(self, prompt_ids, params):
        ids = self.tokenizer(self.text)["input_ids"]
        if self.reason == "stop":
            ids = [*ids, self.tokenizer.eos_token_id]
        return [Generation(ids, self.text, self.reason) for _ in prompt_ids]


@pytest.mark.parametrize("reason", ["stop", "stop_string"])
@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("r1_zero", " <think> 1+2=3 </think> <answer> 3 </answer>"),
        ("r1_zero_primed", " 1+2=3 </think> <answer>3</answer>"),
    ],
)
def test_plain_text_with_r1_zeros_template(tiny, tokenizer, common, tmp_path, template, text, reason):
    problems = add_prompts(PROBLEMS.select([0]), template=template)
    path = tmp_path / "records.jsonl"
    loaded = TransformersBackend.load(tiny)
    backend = Scripted(loaded.model, loaded.tokenizer)
    backend.text, backend.reason = text, reason
    records = sample_problems(backend, problems, PARAMS, samples=1, path=path, keep_token_ids=True)
    assert records[0]["status"] == "right"
    assert records[0]["thought_opened"] is (template == "r1_zero_primed")
    [(prompt, ids)] = drawn_text(records, problems, tokenizer)
    if reason == "stop_string":  # the model stopped there because it was stopped: training gives it an end
        ids = [*ids, tokenizer.eos_token_id]
    assert trained_text(path, tiny, {**common, "max_length": 1024}) == [(prompt, ids)]
