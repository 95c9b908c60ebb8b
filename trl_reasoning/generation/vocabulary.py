"""Whether two models speak of the same tokens, which a distillation takes for granted."""

from typing import TYPE_CHECKING, Any

from ..errors import UserError


if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

# Digits, blanks, code, accents and other scripts: where two tokenizers with one vocabulary would split differently.
_PROBE = "x = 12345.678;\n\n    if (a <= b): return 'naïve'  # 中文 текст 🙂 \\frac{1}{2}"


def check_same_vocabulary(
    student: "PreTrainedTokenizerBase", teacher: "PreTrainedTokenizerBase", *, student_name: str, teacher_name: str
) -> None:
    """
    Check that two tokenizers are the same: the token of every id, the way they split text, and the end of a reply.

    What their classes are called does not matter.

    Args:
        student ([`~transformers.PreTrainedTokenizerBase`]):
            Tokenizer whose ids both models read.
        teacher ([`~transformers.PreTrainedTokenizerBase`]):
            Tokenizer that the teacher was trained with.
        student_name (`str`), teacher_name (`str`):
            For the error message.

    Raises:
        [`~trl_reasoning.errors.UserError`]: Names both and the first difference.
    """
    pair = (student, teacher)
    ours, theirs = ({index: token for token, index in each.get_vocab().items()} for each in pair)
    both = f"{student_name} (student) and {teacher_name} (teacher)"
    for index in sorted(ours.keys() | theirs.keys()):
        if ours.get(index) != theirs.get(index):
            raise UserError(
                f"the tokenizers of {both} differ: token {index} is {_shown(ours, index)} of the student and "
                f"{_shown(theirs, index)} of the teacher. Choose a teacher of the student's family"
            )
    probes: list[Any] = [each(_PROBE, add_special_tokens=False)["input_ids"] for each in pair]
    if probes[0] != probes[1]:
        place = next(
            (at for at, both_ids in enumerate(zip(*probes, strict=False)) if len(set(both_ids)) > 1),
            min(map(len, probes)),
        )
        split = [each.convert_ids_to_tokens(ids[place : place + 3]) for each, ids in zip(pair, probes, strict=True)]
        raise UserError(
            f"the tokenizers of {both} have the same tokens and split text differently: {split[0]} and {split[1]} at "
            f"token {place} of {_PROBE!r}. Choose a teacher of the student's family"
        )
    if student.eos_token != teacher.eos_token:
        raise UserError(
            f"{both} end a reply differently: with {student.eos_token!r} and with {teacher.eos_token!r}, which the "
            f'student would not learn to stop at; write `eos_token: "{teacher.eos_token}"`'
        )


def shared_width(
    tokenizer: "PreTrainedTokenizerBase", student_rows: int, teacher_rows: int, *, student_name: str, teacher_name: str
) -> int:
    """
    Number of logits that a student and its teacher are compared on.

    Models of one family pad their vocabulary to different widths (Qwen2.5 has 151,936 rows up to 3B and 152,064 from
    7B on). All real tokens lie below both, so that the smaller width holds them.

    Args:
        tokenizer ([`~transformers.PreTrainedTokenizerBase`]):
            Of both.
        student_rows (`int`), teacher_rows (`int`):
            `vocab_size` of each model.
        student_name (`str`), teacher_name (`str`):
            For the error message.

    Returns:
        `int`: the smaller of both.

    Raises:
        [`~trl_reasoning.errors.UserError`]: A model has fewer rows than the tokenizer has ids.

    Example:

    ```python
    shared_width(tokenizer, 151936, 152064, student_name="Qwen2.5-0.5B", teacher_name="Qwen2.5-7B")  # 151936
    ```
    """
    needed = max(tokenizer.get_vocab().values()) + 1
    for name, rows in ((student_name, student_rows), (teacher_name, teacher_rows)):
        if rows < needed:
            raise UserError(
                f"{name} has {rows} rows of logits and its tokenizer {needed} tokens: the rows of some are missing"
            )
    return min(student_rows, teacher_rows)


def _shown(tokens: dict[int, str], index: int) -> str:
    return repr(tokens[index]) if index in tokens else "none"
