"""How far a model is from the one it started from, in nats, on its own samples."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from ..errors import UserError
from ..generation import TransformersBackend, render_prompt
from ..generation.likelihood import reply_divergences
from ..metrics import mean_interval


Record = dict[str, Any]


def divergence(
    records: Sequence[Record],
    backend: TransformersBackend,
    start: TransformersBackend,
    *,
    chat_template_kwargs: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    r"""
    KL divergence of a model to a start model, estimated on the model's own samples.

    $$ \mathrm{KL}(\pi \| \pi_0) = \mathbb{E}_{y \sim \pi} \sum_t \sum_v \pi(v \mid x, y_{<t})
       \log\frac{\pi(v \mid x, y_{<t})}{\pi_0(v \mid x, y_{<t})} $$

    The sum over the vocabulary is exact and only the samples are drawn. The estimate has the same mean as that of
    $\log \pi(y \mid x) - \log \pi_0(y \mid x)$, without the part of its variance that comes from drawing each token,
    and no sample can make it negative. It is the divergence of the replies up to the token limit, and of both models
    at temperature 1: the samples have to be drawn so.

    Args:
        records (`Sequence[dict]`):
            Records with `id`, `prompt` and `token_ids`, drawn from `backend` at temperature 1 from the whole
            vocabulary, see [`~trl_reasoning.generation.sample_problems`].
        backend ([`~trl_reasoning.generation.TransformersBackend`]):
            The model $\pi$.
        start ([`~trl_reasoning.generation.TransformersBackend`]):
            The model $\pi_0$.
        chat_template_kwargs (`Mapping`, *optional*):
            Passed to the chat template, as when the samples were drawn.

    Returns:
        `dict` with `per_reply` (nats of a whole reply, mean over problems), its 95 % `interval` (Student's over the
        problems' means; `None` for one problem), `per_token` (nats, all samples' sum over all their tokens) and
        `problems`.

    Raises:
        [`~trl_reasoning.errors.UserError`]: when there are no records, one has no `token_ids`, or the vocabularies
            differ.
    """
    if not records:
        raise UserError("reference: there are no samples to measure the KL divergence on")
    if not all("token_ids" in record for record in records):
        raise UserError(
            "reference: the samples that are there were written without their token ids; --restart draws them again"
        )
    kwargs = dict(chat_template_kwargs or {})
    rows = [(render_prompt(backend.tokenizer, record["prompt"], **kwargs), record["token_ids"]) for record in records]
    sums = [sum(values) for values in reply_divergences(backend, start, rows)]
    problems: dict[int, list[float]] = defaultdict(list)
    for record, total in zip(records, sums, strict=True):
        problems[record["id"]].append(total)
    means = [fmean(values) for values in problems.values()]
    return {
        "per_reply": fmean(means),
        "interval": list(mean_interval(means)) if len(means) > 1 else None,
        "per_token": sum(sums) / max(1, sum(len(reply) for _, reply in rows)),
        "problems": len(means),
    }
