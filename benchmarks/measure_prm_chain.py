"""Measure process reward models where each step's truth is known: their labels, and what choosing by them gives."""

import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import AutoTokenizer, PrinterCallback

from trl_reasoning.builtin import make_chain_dataset, resolve_model
from trl_reasoning.evaluation import majority_of_n
from trl_reasoning.generation import SamplingParams, load_backend, sample_problems
from trl_reasoning.generation.process_scorer import ProcessScorer
from trl_reasoning.generation.search import best_of_n, step_beam_search
from trl_reasoning.generation.step_labels import label_steps
from trl_reasoning.metrics import accuracy_interval
from trl_reasoning.rewards.steps import AGGREGATES, make_chain_step_reward, split_steps
from trl_reasoning.text import split_thought
from trl_reasoning.trainers import PRMConfig, PRMTrainer, ReasoningSFTConfig, ReasoningSFTTrainer


Record = dict[str, Any]
Labels = list[float | None]
CHECKER = make_chain_step_reward()


def measure(name: str, settings: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """
    Train a policy that often slips, label its solutions by rollouts, train a process reward model on the labels.

    Args:
        name (`str`):
            Name of the experiment.
        settings (`dict[str, Any]`):
            `operands`, `styles`, `policy_rows`, `policy_steps`, `problems`, `samples`, `rollouts`, `prm_steps`,
            `prm_learning_rate`, `heldout`, `sizes` (values of n), `width`, `expansions`, `seeds`.

    Returns:
        `tuple[dict[str, Any], str]`: label accuracy of rollouts and model against both truths, accuracy by every way
        of choosing, tokens drawn; and a summary.
    """
    seed = settings["seeds"][0]
    with tempfile.TemporaryDirectory() as scratch:
        policy = _train_policy(Path(scratch) / "policy", settings, seed)
        backend = load_backend(policy, batch_size=settings["batch"])
        params = SamplingParams(max_new_tokens=settings["max_new_tokens"], temperature=1.0, seed=seed)
        problems = make_chain_dataset(size=settings["problems"], operands=settings["operands"], seed=seed + 1)
        records = sample_problems(backend, problems, params, samples=settings["samples"])
        rows = label_steps(backend, records, params, rollouts=settings["rollouts"])
        texts = {(record["id"], record["sample"]): record["completion"] for record in records}
        truths = [_truths(texts[row["id"], row["sample"]], problems[row["id"]]["question"]) for row in rows]
        figures: dict[str, Any] = {
            "policy": {"accuracy": _share(record["status"] == "right" for record in records)},
            "rollouts": {
                "tokens": sum(row["rollout_tokens"] for row in rows),
                "soft (threshold 0.5)": _agreement([row["labels"] for row in rows], truths, 0.5),
                "hard (any right)": _agreement([row["labels"] for row in rows], truths, 1e-9),
            },
        }
        folder = _train_prm(Path(scratch) / "prm", policy, rows, settings, seed)
        scorer = ProcessScorer(folder, batch_size=settings["batch"])
        heldout = make_chain_dataset("heldout", size=settings["heldout"], operands=settings["operands"], seed=seed)
        test = sample_problems(backend, heldout, params, samples=max(settings["sizes"]))
        figures["model"] = _model_labels(scorer, test, heldout)
        figures["best of n"] = {str(size): _choose(scorer, test, size) for size in settings["sizes"]}
        figures["beam search"] = _search(backend, scorer, heldout, params, settings)
    summary = _summary(figures, max(settings["sizes"]))
    return figures, summary


def _train_policy(folder: Path, settings: dict[str, Any], seed: int) -> str:
    rows = make_chain_dataset(
        size=settings["policy_rows"], operands=settings["operands"], styles=settings["styles"], seed=seed
    ).select_columns(["prompt", "completion"])
    config = ReasoningSFTConfig(**_common(folder, settings["policy_steps"], seed), learning_rate=1e-3)
    trainer = ReasoningSFTTrainer(model=resolve_model("builtin:tiny"), args=config, train_dataset=rows)
    return _run(trainer, folder)


def _train_prm(folder: Path, policy: str, rows: list[Record], settings: dict[str, Any], seed: int) -> str:
    data = Dataset.from_list([{key: row[key] for key in ("prompt", "steps", "labels")} for row in rows])
    config = PRMConfig(
        **_common(folder, settings["prm_steps"], seed), learning_rate=settings["prm_learning_rate"], max_length=256
    )
    return _run(PRMTrainer(model=policy, args=config, train_dataset=data), folder)


def _common(folder: Path, steps: int, seed: int) -> dict[str, Any]:
    return {
        "output_dir": str(folder),
        "max_steps": steps,
        "per_device_train_batch_size": 32,
        "warmup_steps": 10,
        "seed": seed,
        "use_cpu": not torch.cuda.is_available(),
        "bf16": False,
        "activation_checkpointing": False,
        "save_strategy": "no",
        "report_to": [],
        "disable_tqdm": True,
    }


def _run(trainer: Any, folder: Path) -> str:
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    trainer.save_model(str(folder))
    AutoTokenizer.from_pretrained(resolve_model("builtin:tiny")).save_pretrained(folder)
    return str(folder)


def _truths(text: str, question: str) -> dict[str, list[bool]]:
    """For each step whether it is right by itself, and whether it and all before it are."""
    found = {end: score == 1.0 for end, score in CHECKER([""], [text], question=[question])[0]}
    # A text without a thought has one step, its answer, which the checker of thoughts does not judge.
    right = [found.get(end, False) for _, end in split_steps(text)]
    return {"line right": right, "all right so far": [all(right[: index + 1]) for index in range(len(right))]}


def _agreement(labels: list[Labels], truths: list[dict[str, list[bool]]], threshold: float) -> dict[str, Any]:
    """Share of labels on the right side of the threshold, over all steps and over right and wrong ones."""
    found: dict[str, Any] = {}
    for name in truths[0]:
        hits: dict[bool, list[bool]] = {True: [], False: []}
        for row, truth in zip(labels, truths, strict=True):
            for label, is_right in zip(row, truth[name], strict=False):
                if label is not None:
                    hits[is_right].append((label >= threshold) == is_right)
        found[name] = {
            "accuracy": _share(hits[True] + hits[False]),
            "on right steps": _share(hits[True]),
            "on wrong steps": _share(hits[False]),
            "steps": [len(hits[True]), len(hits[False])],
        }
    return found


def _model_labels(scorer: ProcessScorer, test: list[Record], heldout: Any) -> dict[str, Any]:
    scores = scorer([record["prompt"] for record in test], [record["completion"] for record in test])
    truths = [_truths(record["completion"], heldout[record["id"]]["question"]) for record in test]
    return _agreement([[step.score for step in row] for row in scores], truths, 0.5)


def _choose(scorer: ProcessScorer, test: list[Record], size: int) -> dict[str, Any]:
    """Accuracy of the mean sample, of the most frequent answer, of the best by each aggregate, and of any sample."""
    records = [record for record in test if record["sample"] < size]
    groups: dict[int, list[Record]] = defaultdict(list)
    for record in records:
        groups[record["id"]].append(record)
    chosen = {f"prm, {how}": best_of_n(records, scorer, how) for how in AGGREGATES}
    votes = majority_of_n(records)
    return {
        "tokens": sum(record["tokens"] for record in records),
        "mean": _share(record["status"] == "right" for record in records),
        "majority": _with_interval([record["status"] == "right" for record in votes]),
        **{name: _with_interval([record["status"] == "right" for record in best]) for name, best in chosen.items()},
        "any right": _share(any(record["status"] == "right" for record in group) for group in groups.values()),
    }


def _search(
    backend: Any, scorer: ProcessScorer, heldout: Any, params: SamplingParams, settings: dict[str, Any]
) -> dict[str, Any]:
    found: dict[str, Any] = {"width": settings["width"], "expansions": settings["expansions"]}
    for how in AGGREGATES:
        counted = _Counted(backend)
        beams = step_beam_search(
            counted,
            heldout["prompt"],
            scorer,
            params,
            width=settings["width"],
            expansions=settings["expansions"],
            aggregate=how,
            max_steps=16,
        )
        answers = [split_thought(kept[0].text).answer for kept in beams]
        right = [answer == solution for answer, solution in zip(answers, heldout["solution"], strict=True)]
        found[how] = {**_with_interval(right), "tokens": counted.tokens}
    return found


class _Counted:
    """A backend that counts the tokens it draws."""

    def __init__(self, backend: Any):
        self.backend = backend
        self.tokenizer = backend.tokenizer
        self.batch_size = backend.batch_size
        self.name = backend.name
        self.tokens = 0

    def fingerprint(self) -> str:
        return self.backend.fingerprint()

    def generate(self, prompt_ids: Any, params: SamplingParams) -> Any:
        generations = self.backend.generate(prompt_ids, params)
        self.tokens += sum(len(generation.token_ids) for generation in generations)
        return generations


def _share(values: Any) -> float:
    values = list(values)
    return round(sum(values) / len(values), 4) if values else float("nan")


def _with_interval(right: list[bool]) -> dict[str, Any]:
    interval = accuracy_interval([float(value) for value in right], samples_per_problem=1)
    return {"accuracy": _share(right), "interval": [round(end, 4) for end in interval]}


def _summary(figures: dict[str, Any], size: int) -> str:
    best, beams = figures["best of n"][str(size)], figures["beam search"]
    rollouts, model = figures["rollouts"]["soft (threshold 0.5)"], figures["model"]
    choices = ", ".join(f"{how} {best[f'prm, {how}']['accuracy']:.1%}" for how in AGGREGATES)
    searches = ", ".join(f"{how} {beams[how]['accuracy']:.1%}" for how in AGGREGATES)
    return (
        f"labels that agree with `all right so far`: rollouts {rollouts['all right so far']['accuracy']:.1%}, model "
        f"{model['all right so far']['accuracy']:.1%}; of {size} samples: mean {best['mean']:.1%}, majority "
        f"{best['majority']['accuracy']:.1%}, best by prm {choices}, any right {best['any right']:.1%}; beam search "
        f"{searches}"
    )
