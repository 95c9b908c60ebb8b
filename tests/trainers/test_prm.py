"""Process reward models: the loss at step ends, what is cut, metrics, and the same tokens in training and scoring."""

import json
import math

import pytest
import torch
from datasets import Dataset
from prm_tools import logged, lora, make_trainer, step_rows
from transformers import AutoModelForTokenClassification

from trl_reasoning.data import DataError
from trl_reasoning.generation.process_scorer import ProcessScorer
from trl_reasoning.losses.prm import IGNORED
from trl_reasoning.trainers import PRMConfig, PRMTrainer


CHAT = [{"role": "user", "content": "7+5-3=?"}]
ROW = {"prompt": CHAT, "steps": ["7+5=12", "12-3=8", "8"], "labels": [1.0, 0.0, 0.25]}
PROMPT = "<|user|>7+5-3=?<|end|><|assistant|>"


def rows(*changes: dict) -> Dataset:
    return Dataset.from_list([{**ROW, **change} for change in changes or ({},)])


def test_labels_stand_at_the_separators(tiny, common, tokenizer):
    trainer = make_trainer(tiny, common, rows({}, {"steps": ["x"], "labels": [None]}, {"labels": [0.5, None, True]}))
    batch = trainer.data_collator([trainer.train_dataset[row] for row in (0, 1)])
    assert len(trainer.train_dataset) == 2  # the row without a label is left out
    text = PROMPT + "7+5=12\n12-3=8\n8\n"
    assert tokenizer.decode(batch["input_ids"][0]) == text
    ends = {text.index("12\n") + 2: 1.0, len(text) - 3: 0.0, len(text) - 1: 0.25}
    start = len(PROMPT) - len(tokenizer(PROMPT)["input_ids"])  # a special token is one token
    for row, labels in ((0, ends), (1, dict(zip(ends, (0.5, IGNORED, 1.0), strict=True)))):
        for place, label in enumerate(batch["labels"][row].tolist()):
            assert label == labels.get(place + start, IGNORED)


def test_loss_by_hand(tiny, common):
    """One forward pass for each prefix gives the same terms."""
    trainer = make_trainer(tiny, common, rows())
    model = trainer.model.eval()
    (example,) = trainer.train_dataset
    terms = []
    for end, label in zip(example["step_ends"], ROW["labels"], strict=True):
        with torch.no_grad():
            logit = model(torch.tensor([example["input_ids"][: end + 1]])).logits[0, -1, 0].double()
        score = logit.sigmoid().item()
        terms.append(-label * math.log(score) - (1 - label) * math.log(1 - score))
    with torch.no_grad():
        loss = trainer.compute_loss(model, trainer.data_collator([example])).item()
    assert loss == pytest.approx(sum(terms) / 3, abs=1e-5)


@pytest.mark.parametrize("peft", [False, True])
def test_the_split_of_a_batch_does_not_matter(tiny, common, peft):
    """Solutions with two to four steps: each labelled step has the same weight, and so has its gradient."""
    found = []
    for size, accumulation in ((4, 1), (2, 2), (1, 4)):
        trainer = make_trainer(
            tiny, common, step_rows(8), max_steps=2, learning_rate=1e-2, optim="sgd", lr_scheduler_type="constant",
            per_device_train_batch_size=size, gradient_accumulation_steps=accumulation,
            peft_config=lora() if peft else None,
        )  # fmt: skip
        trainer.train()
        found.append(logged(trainer, "loss", "grad_norm", "accuracy", "mean_score", "mean_label", "num_tokens"))
    for other in found[1:]:
        assert other == [pytest.approx(row, rel=1e-4, abs=1e-6) for row in found[0]]
    assert found[0][0][0] != found[0][1][0]


def test_a_smaller_last_batch_counts_whole(tiny, common):
    """Four solutions as one batch, or as three and one: the metrics of the step are over all of them."""
    found = []
    for size in (4, 3):
        trainer = make_trainer(
            tiny, common, step_rows(4), max_steps=1, per_device_train_batch_size=size,
            gradient_accumulation_steps=-(-4 // size),
        )  # fmt: skip
        trainer.train()
        found += logged(trainer, "loss", "accuracy", "mean_score", "mean_label", "num_tokens")
    assert found[1] == pytest.approx(found[0], rel=1e-4, abs=1e-6)


def test_tokenized_rows_are_taken_as_they_are(tiny, common):
    first = make_trainer(tiny, common, rows())
    again = make_trainer(tiny, common, first.train_dataset)
    assert again.train_dataset.to_list() == first.train_dataset.to_list()


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, [1.0, 0.0, 0.25]),
        ({"label_threshold": 0.0}, [1.0, 0.0, 1.0]),
        ({"label_threshold": 0.25}, [1.0, 0.0, 0.0]),
        ({"train_on_last_step_only": True}, [0.25]),
        ({"max_length": 32}, [1.0, 0.0, 0.25]),
        ({"max_length": 31}, [1.0, 0.0]),
        ({"max_length": 25}, [1.0]),
    ],
)
def test_which_labels_are_taken(tiny, common, tokenizer, settings, expected):
    assert len(tokenizer(PROMPT + "7+5=12\n12-3=8\n8\n")["input_ids"]) == 26
    settings = {**settings, **({"max_length": settings["max_length"] - 6} if "max_length" in settings else {})}
    (example,) = make_trainer(tiny, common, rows(), **settings).train_dataset
    assert example["step_labels"] == expected
    assert len(example["input_ids"]) <= settings.get("max_length", 1024)
    assert example["step_ends"][-1] < len(example["input_ids"])


def test_rows_that_do_not_fit_are_left_out(tiny, common, caplog):
    long = {"steps": ["7+5=12" * 9], "labels": [1.0]}
    trainer = make_trainer(tiny, common, rows({}, long, long), max_length=30)
    assert len(trainer.train_dataset) == 1
    assert "2 of 3 train rows have no labelled step within max_length 30 and are left out" in caplog.text
    with pytest.raises(DataError, match="max_length: no step of the 2 rows has a label within 30 tokens"):
        make_trainer(tiny, common, rows(long, long), max_length=30)
    with pytest.raises(DataError, match="max_length: .* 2 rows"):  # the last step is cut off in both
        make_trainer(tiny, common, rows({}, {}), max_length=25, train_on_last_step_only=True)


def test_bad_rows_are_named(tiny, common):
    with pytest.raises(DataError, match="column `labels`, row 1: expected one label for each of the 3 steps, got 2"):
        make_trainer(tiny, common, rows({}, {"labels": [1.0, 0.0]}))


def test_metrics_by_hand(tiny, common):
    """Scores 0.9, 0.6, 0.2 and 0.5 against labels 1, 0, 0.25 and 0.5, in two rows of two batches."""
    trainer = make_trainer(tiny, common, rows({}, {}))
    scores = torch.tensor([[0.9, 0.6, 0.2], [0.5, 0.1, 0.1]]).logit()
    labels = torch.tensor([[1.0, 0.0, 0.25], [0.5, IGNORED, IGNORED]])
    trainer.model.train()
    for row in (0, 1):
        trainer._count(scores[row : row + 1], labels[row : row + 1], torch.ones(1, 4, dtype=torch.long))
    logs: dict[str, float] = {}
    trainer.log(logs)
    expected = {
        "accuracy": 3 / 4,
        "accuracy_right": 1.0,
        "accuracy_wrong": 1 / 2,
        "mean_score": (0.9 + 0.6 + 0.2 + 0.5) / 4,
        "mean_label": 1.75 / 4,
        "num_tokens": 8,
    }
    assert {key: logs[key] for key in expected} == pytest.approx(expected, abs=1e-6)
    trainer._count(scores[:1, :1], labels[:1, :1], torch.ones(1, 4, dtype=torch.long))
    trainer.log(logs := {})
    assert "accuracy_wrong" not in logs and logs["accuracy"] == 1.0 and logs["num_tokens"] == 12


def test_evaluation_on_held_out_rows(tiny, common):
    """In batches of two and three rows: the figures over all steps, not means of batch means."""
    found = []
    for size in (2, 5):
        trainer = make_trainer(
            tiny, common, step_rows(4), eval_dataset=step_rows(5, "heldout"), per_device_eval_batch_size=size
        )
        metrics = trainer.evaluate()
        found.append([metrics[f"eval_{key}"] for key in ("accuracy", "accuracy_right", "mean_score", "mean_label")])
    assert found[0] == pytest.approx(found[1], abs=1e-6)


@pytest.mark.parametrize("form", ["messages", "text", "plain", "paragraphs"])
@pytest.mark.parametrize("peft", [False, True])
def test_the_scorer_reads_as_the_training_did(tiny, common, tmp_path, form, peft):
    """Same tokens, same places, and the scores of the trained model, from the folder alone."""
    settings = {"plain": {"plain_prompt": True}, "paragraphs": {"separator": "\n\n"}}.get(form, {})
    prompt = "7+5-3=?" if form == "text" else CHAT
    trainer = make_trainer(
        tiny, common, rows({"prompt": prompt}), max_steps=2, learning_rate=1e-2,
        peft_config=lora() if peft else None, **settings,
    )  # fmt: skip
    trainer.train()
    trainer.save_model(str(tmp_path / "model"))
    assert json.loads((tmp_path / "model" / "process_reward.json").read_text()) == {
        "separator": settings.get("separator", "\n"),
        "plain_prompt": form in ("text", "plain"),
    }
    (example,) = trainer.train_dataset
    with torch.no_grad():
        logits = trainer.model.eval()(input_ids=torch.tensor([example["input_ids"]])).logits[0, :, 0]
    expected = logits[torch.tensor(example["step_ends"])].sigmoid().tolist()
    scorer = ProcessScorer(str(tmp_path / "model"), dtype="float32")
    assert scorer.score([prompt], [ROW["steps"]])[0] == pytest.approx(expected, abs=1e-5)
    # Text rows were read as they are: a chat with the same question is read so, too.
    if form == "text":
        assert scorer.score([CHAT], [ROW["steps"]])[0] == pytest.approx(expected, abs=1e-5)
    other = ";" if "separator" not in settings else "\n"
    with pytest.raises(ValueError, match="^separator: .* was trained with"):
        ProcessScorer(str(tmp_path / "model"), separator=other)


def test_a_trained_model_goes_on(tiny, common, tmp_path):
    """From a folder with a head, the head is kept; from a language model it is drawn from the seed."""
    heads = [make_trainer(tiny, common, rows(), seed=seed).model.score.weight for seed in (1, 1, 2)]
    assert heads[0].equal(heads[1]) and not heads[0].equal(heads[2])
    first = make_trainer(tiny, common, rows(), max_steps=1, learning_rate=1e-2)
    first.train()
    first.save_model(str(tmp_path / "model"))
    second = make_trainer(str(tmp_path / "model"), common, rows())
    assert second.model.score.weight.equal(first.model.score.weight)


def test_dropout_is_off(tiny, common):
    """The heads of transformers have dropout 0.1, which would blur the scores that are learnt."""
    assert AutoModelForTokenClassification.from_pretrained(tiny, num_labels=1).dropout.p == 0.1
    assert make_trainer(tiny, common, rows()).model.dropout.p == 0


def test_an_adapter_for_another_task(tiny, common):
    with pytest.raises(ValueError, match="peft_config: .* TOKEN_CLS, got CAUSAL_LM"):
        make_trainer(tiny, common, rows(), peft_config=lora(task_type="CAUSAL_LM"))
    trainer = make_trainer(tiny, common, rows(), peft_config=lora(task_type=None))
    assert trainer.model.peft_config["default"].modules_to_save == ["classifier", "score"]


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"separator": ""}, "separator"),
        ({"max_length": 1}, "max_length"),
        ({"label_threshold": 1.0}, "label_threshold"),
        ({"label_threshold": -0.1}, "label_threshold"),
        ({"center_rewards_coefficient": 0.01}, "center_rewards_coefficient"),
    ],
)
def test_bad_settings(common, settings, key):
    with pytest.raises(ValueError, match=f"^{key}: "):
        PRMConfig(**common, **settings)


def test_rows_in_a_stream(tiny, common):
    with pytest.raises(TypeError, match=r"train_dataset: expected a datasets\.Dataset, got IterableDataset"):
        PRMTrainer(tiny, PRMConfig(**common, max_steps=1), rows().to_iterable_dataset())
