"""Accuracy on held-out preference pairs: how often a model rates the chosen reply above the rejected one."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal

from ..builtin import resolve_model
from ..data.pairs import check_pairs, split_pairs
from ..generation import RewardModelScorer, TransformersBackend
from ..generation.likelihood import render_replies, reply_logprobs
from ..metrics import accuracy_interval


if TYPE_CHECKING:
    from datasets import Dataset

PairsBy = Literal["sum", "mean"]
_SIDES = ("chosen", "rejected")


def is_reward_model(model: str) -> bool:
    """
    Whether a model is a reward model: a folder with a sequence classification model or with an adapter for one.

    Args:
        model (`str`):
            Folder, builtin name or hub id.

    Returns:
        `bool`: `False` for a hub id, whose files are not looked at.
    """
    folder = Path(resolve_model(model))
    if (folder / "config.json").is_file():
        architectures = json.loads((folder / "config.json").read_text()).get("architectures") or []
        return any("ForSequenceClassification" in name for name in architectures)
    adapter = folder / "adapter_config.json"
    return adapter.is_file() and json.loads(adapter.read_text()).get("task_type") == "SEQ_CLS"


def load_pairs(source: Mapping[str, Any], *, base_dir: Path | None = None) -> "Dataset":
    """
    Load preference pairs for an evaluation.

    Args:
        source (`Mapping`):
            A source, see [`~trl_reasoning.data.load_source`]; a builtin set is read from its held-out split when
            nothing else is said.
        base_dir (`Path`, *optional*):
            Folder that relative paths are tried against after the current one.

    Returns:
        [`~datasets.Dataset`]: with `prompt`, `chosen` and `rejected`.

    Raises:
        [`~trl_reasoning.data.DataError`]: for a source that cannot be read, and for rows that are no pairs.
    """
    from ..data import load_source
    from .tasks import task_source

    pairs = split_pairs(load_source(task_source(source), base_dir=base_dir))
    check_pairs(pairs)
    return pairs


def pair_accuracy(
    pairs: "Dataset",
    backend: TransformersBackend,
    *,
    by: PairsBy = "sum",
    reference: TransformersBackend | None = None,
    chat_template_kwargs: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    r"""
    Share of pairs whose chosen reply a language model finds likelier than the rejected one.

    Four forms of the margin $m$ are computed from the same log-probabilities:

    - `sum`: $\log\pi(y_w|x) - \log\pi(y_l|x)$
    - `mean`: $\log\pi(y_w|x)/|y_w| - \log\pi(y_l|x)/|y_l|$, SimPO's reward
    - `sum_against_reference`: each log-probability minus that of the reference model, DPO's implicit reward
    - `mean_against_reference`: that divided by the number of tokens, as in length-normalised DPO

    `by` says which of the first two is the result; models are comparable by one form only. An equal margin counts
    half. Tokens are those of the replies with their end token.

    Args:
        pairs ([`~datasets.Dataset`]):
            Rows with `prompt`, `chosen` and `rejected`, see [`load_pairs`].
        backend ([`~trl_reasoning.generation.TransformersBackend`]):
            The model.
        by (`"sum"` or `"mean"`, *optional*, defaults to `"sum"`):
            The form of `accuracy`, `interval`, `margin` and `by_length`.
        reference ([`~trl_reasoning.generation.TransformersBackend`], *optional*):
            The model that training started from.
        chat_template_kwargs (`Mapping`, *optional*):
            Passed to the chat template.

    Returns:
        `dict` with `by`, `accuracy`, its 95 % `interval` (prompts are the clusters), `pairs`, `margin` (mean, nats),
        `by_length` (see [`summarize_margins`]), `chosen_tokens` and `rejected_tokens` (means), `chosen_logprob` and
        `rejected_logprob` (means over replies of the mean log-probability of a token, in nats) and `forms` (accuracy
        in each form).
    """
    kwargs = dict(chat_template_kwargs or {})
    rendered = [
        render_replies(backend.tokenizer, row["prompt"], [row[side] for side in _SIDES], **kwargs)  # type: ignore[index]
        for row in pairs
    ]
    replies = [reply for row in rendered for reply in row]
    lengths = [[len(ids) for _, ids in row] for row in rendered]
    ours = [sum(values) for values in reply_logprobs(backend, replies)]
    theirs = [0.0] * len(ours) if reference is None else [sum(row) for row in reply_logprobs(reference, replies)]
    forms = {"sum": _margins(ours, lengths, per_token=False), "mean": _margins(ours, lengths, per_token=True)}
    if reference is not None:
        ratios = [first - second for first, second in zip(ours, theirs, strict=True)]
        forms["sum_against_reference"] = _margins(ratios, lengths, per_token=False)
        forms["mean_against_reference"] = _margins(ratios, lengths, per_token=True)
    counts = [length for row in lengths for length in row]
    per_token = [value / max(1, count) for value, count in zip(ours, counts, strict=True)]
    return {
        "by": by,
        **summarize_margins(forms[by], lengths, [str(row["prompt"]) for row in pairs]),  # type: ignore[index]
        "chosen_logprob": fmean(per_token[0::2]),
        "rejected_logprob": fmean(per_token[1::2]),
        "forms": {name: fmean(map(_credit, margins)) for name, margins in forms.items()},
    }


def pair_score_accuracy(pairs: "Dataset", scorer: RewardModelScorer) -> dict[str, Any]:
    """
    Share of pairs whose chosen reply a reward model scores above the rejected one; equal scores count half.

    Args:
        pairs ([`~datasets.Dataset`]):
            Rows with `prompt`, `chosen` and `rejected`, see [`load_pairs`].
        scorer ([`~trl_reasoning.generation.RewardModelScorer`]):
            The reward model.

    Returns:
        `dict`: as [`pair_accuracy`] without the log-probabilities and forms; `by` is `"score"` and `margin` a
        difference of scores.
    """
    rows = [
        _score_row(row["prompt"], row[side])  # type: ignore[index]
        for row in pairs
        for side in _SIDES
    ]
    scores = scorer.score(rows)
    counts = [len(scorer.tokenizer(text=reply, add_special_tokens=False)["input_ids"]) for _, reply in rows]  # type: ignore[arg-type]
    lengths = [counts[place : place + 2] for place in range(0, len(counts), 2)]
    margins = [first - second for first, second in zip(scores[0::2], scores[1::2], strict=True)]
    prompts = [str(row["prompt"]) for row in pairs]  # type: ignore[index]
    return {"by": "score", **summarize_margins(margins, lengths, prompts)}


def summarize_margins(
    margins: Sequence[float], lengths: Sequence[Sequence[int]], prompts: Sequence[str]
) -> dict[str, Any]:
    """
    Accuracy of margins, in all and by which reply is longer.

    Args:
        margins (`Sequence[float]`):
            Chosen minus rejected of each pair.
        lengths (`Sequence[Sequence[int]]`):
            Tokens of the chosen and of the rejected reply of each pair.
        prompts (`Sequence[str]`):
            Prompt of each pair; pairs of one prompt are no independent observations.

    Returns:
        `dict` with `accuracy`, `interval`, `pairs`, `margin`, `chosen_tokens`, `rejected_tokens` and `by_length`: for
        `chosen_longer`, `chosen_shorter` and `equal`, where there are such pairs, their `accuracy` and `pairs`.

    Example:

    ```python
    >>> summary = summarize_margins([2.0, -1.0], [[9, 4], [5, 5]], ["1+1?", "1+2?"])
    >>> summary["accuracy"], summary["by_length"]["chosen_longer"], summary["by_length"]["equal"]
    (0.5, {'accuracy': 1.0, 'pairs': 1}, {'accuracy': 0.0, 'pairs': 1})

    ```
    """
    credits_of: dict[str, list[float]] = defaultdict(list)
    kinds: dict[str, list[float]] = {"chosen_longer": [], "chosen_shorter": [], "equal": []}
    for margin, (chosen, rejected), prompt in zip(margins, lengths, prompts, strict=True):
        credits_of[prompt].append(_credit(margin))
        kind = "equal" if chosen == rejected else "chosen_longer" if chosen > rejected else "chosen_shorter"
        kinds[kind].append(_credit(margin))
    means = [fmean(values) for values in credits_of.values()]
    is_binary = len(means) == len(margins) and all(value in (0.0, 1.0) for value in means)
    return {
        "accuracy": fmean(map(_credit, margins)),
        "interval": list(accuracy_interval(means, 1 if is_binary else 2)),
        "pairs": len(margins),
        "margin": fmean(margins),
        "chosen_tokens": fmean(chosen for chosen, _ in lengths),
        "rejected_tokens": fmean(rejected for _, rejected in lengths),
        "by_length": {
            kind: {"accuracy": fmean(values), "pairs": len(values)} for kind, values in kinds.items() if values
        },
    }


def _margins(values: Sequence[float], lengths: Sequence[Sequence[int]], *, per_token: bool) -> list[float]:
    divisors = [max(1, length) if per_token else 1 for row in lengths for length in row]
    worth = [value / divisor for value, divisor in zip(values, divisors, strict=True)]
    return [chosen - rejected for chosen, rejected in zip(worth[0::2], worth[1::2], strict=True)]


def _credit(margin: float) -> float:
    return 0.5 if margin == 0 else float(margin > 0)


def _score_row(prompt: Any, reply: Any) -> tuple[Any, str]:
    """Prompt and last turn, as the scorer takes them; earlier turns of a reply belong to the prompt."""
    return (prompt, reply) if isinstance(reply, str) else ([*prompt, *reply[:-1]], reply[-1]["content"])
