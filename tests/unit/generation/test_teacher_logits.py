"""The store of a teacher's log-probs: the teacher's own numbers, kept over interruptions, never of something else."""

import json
import math

import pytest
import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import SFTConfig, SFTTrainer

from trl_reasoning.builtin import make_chain_dataset, resolve_model
from trl_reasoning.errors import UserError
from trl_reasoning.generation import render_prompt, teacher_logits
from trl_reasoning.generation.teacher_logits import score_replies, store_teacher_logits, tokenize_replies


TEACHER = {"teacher_weights": "abc"}


@pytest.fixture(scope="module")
def tokenizer():
    return AutoTokenizer.from_pretrained(resolve_model("builtin:tiny"))


@pytest.fixture(scope="module")
def model():
    return AutoModelForCausalLM.from_pretrained(resolve_model("builtin:tiny")).eval()


@pytest.fixture
def store(model, tokenizer, tmp_path):
    """A store of five rows in two files; gives the data set and how often a teacher was loaded."""
    loads = []

    def load():
        loads.append(1)
        return model

    def build(dataset=None, k=4, teacher=None, **options):
        dataset = make_chain_dataset(size=5, operands=(2, 4)) if dataset is None else dataset
        options = {"batch_size": 2, **options}
        stored = store_teacher_logits(
            load, tokenizer, dataset, tmp_path / "store", k=k, teacher=teacher or TEACHER, **options
        )
        return stored, len(loads)

    return build


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(teacher_logits, "_PART_ROWS", 3)


def full_logps(model, ids: list[int]) -> torch.Tensor:
    with torch.no_grad():
        return torch.log_softmax(model(torch.tensor([ids])).logits[0, :-1].float(), dim=-1)  # (L - 1, V)


def test_the_stored_numbers_are_the_teachers(store, model, tmp_path):
    stored, _ = store()
    assert sorted(path.name for path in (tmp_path / "store").iterdir()) == [
        "meta.json", "part-00000.parquet", "part-00001.parquet",
    ]  # fmt: skip
    assert str(stored.features["top_logps"]) == "List(List(Value('float16'), length=4))"
    for row in stored.with_format("torch"):
        chosen = row["labels"][1:] != -100
        logps, ids = full_logps(model, row["input_ids"].tolist())[chosen].topk(4)
        assert torch.equal(row["top_ids"], ids)
        torch.testing.assert_close(row["top_logps"], logps, rtol=1e-3, atol=1e-4)
        everything = full_logps(model, row["input_ids"].tolist())[chosen].double().exp()
        rest = everything.scatter(1, ids, 0.0).sum(1).log()
        torch.testing.assert_close(row["rest_logps"], rest.float(), rtol=1e-4, atol=1e-4)
        assert torch.equal(row["labels"][1:][chosen], row["input_ids"][1:][chosen])


def test_all_tokens_can_be_stored(store, tokenizer):
    stored, _ = store(k=1000)
    table = stored.with_format("torch")[0]["top_logps"]
    assert set(stored[0]["rest_logps"]) == {-math.inf}
    assert table.shape[1] == len(tokenizer)
    torch.testing.assert_close(table.exp().sum(1), torch.ones(len(table)), rtol=0, atol=2e-3)


def test_an_interrupted_store_goes_on(store, tmp_path, monkeypatch):
    whole, _ = store()
    rows = whole.to_list()
    (tmp_path / "store" / "part-00001.parquet").unlink()
    scored = []
    original = score_replies

    def count(model, rows, **options):
        scored.append(len(rows))
        return original(model, rows, **options)

    monkeypatch.setattr(teacher_logits, "score_replies", count)
    again, loads = store()
    assert scored == [2] and loads == 2
    assert again.to_list() == rows


def test_a_whole_store_needs_no_teacher(store):
    store()
    assert store()[1] == 1


def test_a_killed_write_leaves_no_part(store, tmp_path, monkeypatch):
    from pyarrow import parquet

    def fail(table, path, **kwargs):
        path.write_bytes(b"half")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(parquet, "write_table", fail)
        with pytest.raises(KeyboardInterrupt):
            store()
    assert not list((tmp_path / "store").glob("*.parquet"))
    assert len(store()[0]) == 5


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"k": 5}, "top_k: 4 there, 5 now"),
        ({"teacher": {"teacher_weights": "def"}}, "teacher_weights: 'abc' there, 'def' now"),
        ({"dataset": make_chain_dataset(size=4, operands=(2, 4))}, "rows: "),
        ({"max_length": 9}, "rows: "),
    ],
)
def test_something_else_is_refused(store, change, word):
    store()
    with pytest.raises(UserError, match=f"holds log-probs of something else.*{word}.*name another folder"):
        store(**change)


def test_a_store_of_other_columns_is_refused(store, tmp_path):
    store()
    meta = tmp_path / "store" / "meta.json"
    meta.write_text(json.dumps({**json.loads(meta.read_text()), "columns": ["top_ids", "top_logps"]}))
    with pytest.raises(UserError, match="something else.*columns: .* there, .*rest_logps.* now"):
        store()


def test_a_folder_of_unknown_origin_is_refused(store, tmp_path):
    store()
    (tmp_path / "store" / "meta.json").unlink()
    with pytest.raises(UserError, match=r"no meta\.json, so its origin is unknown"):
        store()


def test_rows_that_are_cut_and_rows_that_are_left_out(store, tokenizer):
    dataset = make_chain_dataset(size=5, operands=(2, 4))
    prompts = [len(render_prompt(tokenizer, row["prompt"])) for row in dataset]
    limit = max(prompts)  # nothing of the longest question's reply is left
    stored, _ = store(max_length=limit)
    assert len(stored) == sum(count < limit for count in prompts) < 5
    assert all(len(row["input_ids"]) == limit for row in stored)


def test_no_reply_within_the_limit_is_an_error(store):
    with pytest.raises(UserError, match="max_length: none of the 5 replies begins within 3 tokens"):
        store(max_length=3)


@pytest.mark.parametrize("form", ["messages pair", "text pair", "messages"])
def test_tokens_are_those_of_supervised_fine_tuning(tokenizer, tmp_path, form):
    question, reply = {"role": "user", "content": "7+5=?"}, {"role": "assistant", "content": "<think></think>12"}
    row = {
        "messages pair": {"prompt": [question], "completion": [reply]},
        "text pair": {"prompt": "7+5=?", "completion": " 12"},
        "messages": {"messages": [question, reply]},
    }[form]
    dataset = Dataset.from_list([row] * 2)
    args = SFTConfig(
        str(tmp_path),
        use_cpu=True,
        bf16=False,
        report_to=[],
        activation_checkpointing=False,
        assistant_only_loss=form == "messages",
    )
    theirs = SFTTrainer(resolve_model("builtin:tiny"), args, train_dataset=dataset).train_dataset[0]
    ids, labels = next(tokenize_replies(dataset, tokenizer))
    assert ids == theirs["input_ids"]
    assert labels == theirs["labels"]


def test_a_rows_template_settings_reach_the_template(tokenizer):
    question, reply = {"role": "user", "content": "7+5=?"}, {"role": "assistant", "content": "<think></think>12"}
    rows = [
        {"prompt": [question], "completion": [reply], "chat_template_kwargs": {"enable_thinking": flag}}
        for flag in (True, False)
    ]
    (_, thinks), (_, not_thinks) = tokenize_replies(Dataset.from_list(rows), tokenizer)
    decoded = [tokenizer.decode([label for label in labels if label != -100]) for labels in (thinks, not_thinks)]
    assert decoded == ["<think></think>12<|end|>", "12<|end|>"]
