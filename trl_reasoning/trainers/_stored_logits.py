"""Stored log-probs of a teacher as a trainer needs them: made where they are missing, and put into batches."""

import gc
from typing import Any

import torch

from ..errors import UserError
from ..generation.loading import weights_hash
from ..generation.teacher_logits import IGNORED, store_teacher_logits
from ._teacher import check_teacher_tokenizer, load_teacher


class TopKCollator:
    """
    Batches of rows with stored log-probs; those of all rows lie one below the other, in the order of the tokens.

    Args:
        pad_token_id (`int`):
            Fills `input_ids` on the right.
        max_length (`int`, *optional*):
            Tokens of a row beyond it are cut off.
    """

    def __init__(self, pad_token_id: int, max_length: int | None = None):
        self.pad_token_id = pad_token_id
        self.max_length = max_length

    def __call__(self, examples: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
        ids = [torch.as_tensor(row["input_ids"])[: self.max_length] for row in examples]
        labels = [torch.as_tensor(row["labels"])[: self.max_length] for row in examples]
        counts = [int((row != IGNORED).sum()) for row in labels]

        def stacked(column: str) -> torch.Tensor:
            # A copy: a column of floats comes as an array that nothing may write to.
            return torch.cat([torch.tensor(row[column])[:n] for row, n in zip(examples, counts, strict=True)])

        def padded(rows: list[torch.Tensor], value: int) -> torch.Tensor:
            return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=value)

        rest = {"rest_logps": stacked("rest_logps").float()} if "rest_logps" in examples[0] else {}  # (C,)
        return {
            **rest,
            "input_ids": padded(ids, self.pad_token_id),  # (N, L)
            "attention_mask": padded([torch.ones_like(row) for row in ids], 0),  # (N, L)
            "labels": padded(labels, IGNORED),  # (N, L)
            "top_ids": stacked("top_ids"),  # (C, k)
            "top_logps": stacked("top_logps").float(),  # (C, k)
        }


def with_teacher_logits(args: Any, rows: Any, tokenizer: Any, student: str, folder: str) -> Any:
    """
    Rows with a teacher's log-probs: the given ones, or those of a store that is made where it is missing.

    The first process of each machine scores while the others wait, and no teacher is left in memory.

    Args:
        args ([`LogitDistillationConfig`]):
            The trainer's configuration.
        rows ([`~datasets.Dataset`]):
            With `top_ids` and `top_logps`, or replies to score.
        tokenizer ([`~transformers.PreTrainedTokenizerBase`]):
            The student's.
        student (`str`):
            Folder or hub id of the student.
        folder (`str`):
            Of the store.

    Returns:
        [`~datasets.Dataset`]

    Raises:
        [`~trl_reasoning.errors.UserError`]: There is no teacher, it has another vocabulary, the store is of something
            else, or given rows lack `rest_logps` at another temperature than 1.
    """
    if "top_ids" in rows.column_names:
        if "rest_logps" not in rows.column_names and args.temperature != 1:
            raise UserError(
                f"temperature: {args.temperature} needs the column `rest_logps`, the log of the probability that the "
                "teacher gives to all tokens that are not stored; 1 minus the others is too rough there. Give it, let "
                "`teacher_model_name_or_path` store the rows, or set temperature to 1"
            )
        return rows
    if args.teacher_model_name_or_path is None:
        raise UserError(
            "teacher_model_name_or_path: missing; the rows hold no log-probs (columns `top_ids` and `top_logps`), so "
            "that a teacher has to give them"
        )
    check_teacher_tokenizer(args, tokenizer, student, (args.model_init_kwargs or {}).get("revision"))
    teacher = {
        "teacher_weights": weights_hash(args.teacher_model_name_or_path, args.teacher_adapter_name_or_path),
        "teacher_revision": args.teacher_model_revision,
        "teacher_dtype": args.teacher_dtype,
        "teacher_load_in_4bit": args.teacher_load_in_4bit,
    }
    with args.main_process_first(desc="the teacher's log-probs"):
        stored = store_teacher_logits(
            lambda: load_teacher(args).to(args.device),
            tokenizer,
            rows,
            folder,
            k=args.teacher_top_k,
            teacher=teacher,
            max_length=args.max_length,
            batch_size=args.teacher_batch_size,
            progress=not args.disable_tqdm,
        )
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return stored
