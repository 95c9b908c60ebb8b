"""A teacher's most likely tokens and their log-probs at every token of given replies, stored once as Parquet."""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UserError
from .backends import length_batches
from .heads import backbone_of, logit_head
from .tokens import render_prompt


if TYPE_CHECKING:
    import torch
    from datasets import Dataset
    from transformers import PreTrainedTokenizerBase

COLUMNS = ("input_ids", "labels", "top_ids", "top_logps", "rest_logps")
IGNORED = -100  # label of a token that is not in the loss
META = "meta.json"
# Rows of a file: what an interruption loses, at most.
_PART_ROWS = 256
_ROW_GROUP = 64
# Logits of this many places are in memory at a time.
_CHUNK = 1024


def store_teacher_logits(
    load_teacher: Callable[[], Any],
    tokenizer: "PreTrainedTokenizerBase",
    dataset: "Dataset",
    folder: str | Path,
    *,
    k: int,
    teacher: dict[str, Any],
    max_length: int | None = None,
    batch_size: int = 8,
    progress: bool = False,
) -> "Dataset":
    """
    Store the teacher's log-probs for the replies of a data set, or what is missing of them.

    The folder gets Parquet files of 256 rows and `meta.json`, which says what made them: a store of another teacher,
    other rows, another k or other columns is refused. Where the folder is complete, no teacher is loaded.

    Args:
        load_teacher (`Callable[[], PreTrainedModel]`):
            Gives the teacher in evaluation mode; called only where something is missing.
        tokenizer ([`~transformers.PreTrainedTokenizerBase`]):
            Of student and teacher.
        dataset ([`~datasets.Dataset`]):
            `prompt` and `completion` (both text or both messages), or `messages`, of which the last assistant turn is
            the reply. A column `chat_template_kwargs` goes to the template of its row.
        folder (`str` or `Path`):
            Where to write.
        k (`int`):
            Tokens a place, at least 1; at most the vocabulary.
        teacher (`dict[str, Any]`):
            What names the teacher: a hash of its weights, the format of its numbers. JSON values.
        max_length (`int`, *optional*):
            Tokens of a row beyond it are left out.
        batch_size (`int`, *optional*, defaults to `8`):
            Most rows of a forward pass.
        progress (`bool`, *optional*, defaults to `False`):
            Show a progress bar.

    Returns:
        [`~datasets.Dataset`]: `input_ids`, `labels`, and for the C tokens in the loss `top_ids` (C, k), `top_logps`
        (C, k, half precision) and `rest_logps` (C), the log of what all other tokens have together, which rounding
        would lose where it is small; rows whose reply begins beyond `max_length` are left out.

    Raises:
        [`~trl_reasoning.errors.UserError`]: for a store of something else, and where no row is left.
    """
    from datasets import load_dataset
    from rich.progress import track

    if k < 1:
        raise UserError(f"teacher_top_k: expected at least 1 token, got {k}")
    width = max(tokenizer.get_vocab().values()) + 1
    rows = [row for row in tokenize_replies(dataset, tokenizer, max_length) if any(_in_loss(row[1]))]
    if not rows:
        raise UserError(f"max_length: none of the {len(dataset)} replies begins within {max_length} tokens")
    folder = Path(folder)
    settings = {"top_k": min(k, width), "vocabulary": width, "rows": _hash(rows), "columns": list(COLUMNS)}
    _check_settings(folder, {**teacher, **settings})
    parts = [folder / f"part-{start // _PART_ROWS:05d}.parquet" for start in range(0, len(rows), _PART_ROWS)]
    missing = [index for index, part in enumerate(parts) if not part.exists()]
    if missing:
        model = load_teacher()
        for index in track(missing, description="teacher's log-probs", disable=not progress, transient=True):
            chosen = rows[index * _PART_ROWS : (index + 1) * _PART_ROWS]
            scored = score_replies(model, chosen, k=min(k, width), width=width, batch_size=batch_size)
            _write(parts[index], chosen, scored)
    return load_dataset("parquet", data_files=[str(part) for part in parts], split="train")  # type: ignore[return-value]


def tokenize_replies(
    dataset: "Dataset", tokenizer: "PreTrainedTokenizerBase", max_length: int | None = None
) -> Iterator[tuple[list[int], list[int]]]:
    """
    Token ids and labels of each row, as TRL's supervised fine-tuning on completions makes them.

    Args:
        dataset, tokenizer, max_length:
            As in [`store_teacher_logits`].

    Yields:
        `tuple[list[int], list[int]]`: ids, and labels that are -100 before the reply.
    """
    for row in dataset:
        prompt, completion = _split(row)  # type: ignore[arg-type]
        kwargs = row.get("chat_template_kwargs") or {}  # type: ignore[union-attr]
        kwargs = {key: value for key, value in kwargs.items() if value is not None}
        start = render_prompt(tokenizer, prompt, **kwargs)
        if isinstance(prompt, str):
            end = "" if completion.endswith(tokenizer.eos_token) else tokenizer.eos_token
            ids: Any = tokenizer(text=prompt + completion + end)["input_ids"]
        else:
            rendered: Any = tokenizer.apply_chat_template(prompt + completion, return_dict=True, **kwargs)
            ids = rendered["input_ids"]
        # Where the reply's first characters join the prompt's last token, the loss begins there.
        first = next((at for at, pair in enumerate(zip(start, ids, strict=False)) if pair[0] != pair[1]), len(start))
        first = max(first, 1)
        yield ids[:max_length], ([IGNORED] * first + ids[first:])[:max_length]


def score_replies(
    model: Any, rows: Sequence[tuple[list[int], list[int]]], *, k: int, width: int, batch_size: int
) -> list[tuple["torch.Tensor", "torch.Tensor", "torch.Tensor"]]:
    """
    The model's k most likely tokens at each token in the loss.

    Args:
        model ([`~transformers.PreTrainedModel`]):
            In evaluation mode.
        rows (`Sequence[tuple[list[int], list[int]]]`):
            Token ids and labels.
        k (`int`):
            Tokens a place.
        width (`int`):
            Number of logits that stand for tokens; what a model has beyond is padding.
        batch_size (`int`):
            Most rows of a forward pass.

    Returns:
        `list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]`: for each row token ids and float32 log-probs, (C, k),
        by falling probability, and the float32 log-mass of all other tokens, (C,), -inf where there are none.
    """
    import torch

    head, backbone = logit_head(model), backbone_of(model)
    scored: dict[int, tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = {}
    for batch in length_batches([len(ids) for ids, _ in rows], batch_size):
        longest = max(len(rows[row][0]) for row in batch)
        # Any id pads on the right: no earlier token sees it.
        ids = torch.tensor([rows[row][0] + [0] * (longest - len(rows[row][0])) for row in batch], device=model.device)
        lengths = torch.tensor([len(rows[row][0]) for row in batch], device=model.device)
        mask = (torch.arange(longest, device=model.device) < lengths.unsqueeze(1)).long()  # (N, L)
        with torch.no_grad():
            hidden = backbone(input_ids=ids, attention_mask=mask, use_cache=False).last_hidden_state  # (N, L, H)
            for place, row in enumerate(batch):
                chosen = torch.tensor(_in_loss(rows[row][1])[1:], device=model.device)
                states = hidden[place, : len(chosen)][chosen]  # (C, H), each before its token
                found = [_top_and_rest(head(part)[:, :width].float(), k) for part in states.split(_CHUNK)]
                tops, logps, rest = (torch.cat(parts).cpu() for parts in zip(*found, strict=True))
                scored[row] = (tops, logps, rest)
    return [scored[row] for row in range(len(rows))]


def _top_and_rest(logits: "torch.Tensor", k: int) -> tuple["torch.Tensor", "torch.Tensor", "torch.Tensor"]:
    """(C, k) and (C, k): tokens and log-probs; (C,): log-mass of the others."""
    import torch

    everything = torch.log_softmax(logits, dim=-1)  # (C, V)
    logps, tops = everything.topk(k)
    return tops, logps, everything.scatter(1, tops, -torch.inf).logsumexp(1)


def _split(row: dict[str, Any]) -> tuple[Any, Any]:
    if "completion" in row:
        return row["prompt"], row["completion"]
    turns = row["messages"]
    last = max(at for at, turn in enumerate(turns) if turn["role"] == "assistant")
    return turns[:last], turns[last : last + 1]


def _in_loss(labels: list[int]) -> list[bool]:
    return [label != IGNORED for label in labels]


def _hash(rows: Sequence[tuple[list[int], list[int]]]) -> str:
    digest = hashlib.sha256()
    for ids, labels in rows:
        digest.update(json.dumps([ids, labels.count(IGNORED)]).encode())
    return digest.hexdigest()


def _check_settings(folder: Path, settings: dict[str, Any]) -> None:
    meta = folder / META
    if not meta.exists():
        if any(folder.glob("*.parquet")):
            raise UserError(f"teacher_logits: {folder} has no {META}, so its origin is unknown; name another folder")
        folder.mkdir(parents=True, exist_ok=True)
        meta.write_text(json.dumps(settings, indent=2) + "\n")
        return
    before = json.loads(meta.read_text())
    changed = sorted(key for key in before.keys() | settings.keys() if before.get(key) != settings.get(key))
    if changed:
        details = "; ".join(f"{key}: {before.get(key)!r} there, {settings.get(key)!r} now" for key in changed)
        raise UserError(
            f"teacher_logits: {folder} holds log-probs of something else ({details}); name another folder, or delete "
            "this one"
        )


def _write(part: Path, rows: Sequence[tuple[list[int], list[int]]], scored: Sequence[tuple[Any, Any, Any]]) -> None:
    """Write a file whole or not at all."""
    import pyarrow
    from pyarrow import parquet

    ends = [0]
    for tops, *_ in scored:
        ends.append(ends[-1] + len(tops))
    k = scored[0][0].size(1)

    def nested(index: int, kind: Any) -> Any:
        flat = [tensors[index].flatten().numpy() for tensors in scored]
        values = pyarrow.concat_arrays([pyarrow.array(array.astype(kind.to_pandas_dtype())) for array in flat])
        is_table = scored[0][index].dim() == 2
        rows = pyarrow.FixedSizeListArray.from_arrays(values, k) if is_table else values
        return pyarrow.ListArray.from_arrays(ends, rows)

    tokens = pyarrow.list_(pyarrow.int32())
    columns = [
        pyarrow.array([ids for ids, _ in rows], tokens),
        pyarrow.array([labels for _, labels in rows], tokens),
        nested(0, pyarrow.int32()),
        nested(1, pyarrow.float16()),
        nested(2, pyarrow.float32()),
    ]
    table = pyarrow.table(columns, names=list(COLUMNS))
    scratch = part.with_suffix(".writing")
    parquet.write_table(table, scratch, row_group_size=_ROW_GROUP, compression="zstd")
    scratch.rename(part)
