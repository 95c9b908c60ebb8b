"""Reward for the form: one thought, then an answer, strict or with credit for each part."""

from collections.abc import Sequence
from typing import Any, Literal, get_args

from ..errors import did_you_mean
from ..text import ANSWER_CLOSE, ANSWER_OPEN, THINK_CLOSE, THINK_OPEN, split_thought, without_end_tokens
from ._reward import Completion, Reward, read_rows


Template = Literal["think", "think_answer"]
Credit = Literal["strict", "partial"]


def make_format_reward(
    template: Template = "think", credit: Credit = "strict", allow_empty_thought: bool = True
) -> Reward:
    """
    Make the format reward: 1 for exactly one thought followed by a non-empty answer, else 0 or a part of 1.

    A form is made of parts, each right or not:

    | part | right where | asked for |
    |---|---|---|
    | `<think>` | it stands once, at the very start (blanks before it are fine) | unless the prompt wrote it |
    | `</think>` | it stands once, and after no opening tag that the prompt wrote already | always |
    | `<answer>` | it stands once, right after `</think>` (blanks between are fine) | `think_answer` |
    | `</answer>` | it stands once, at the very end (blanks and end tokens after it are fine) | `think_answer` |
    | answer | text after the last `</think>` without another `<think>`; with answer tags, text inside them | always |
    | thought | text between the think tags | without `allow_empty_thought` |

    Strict credit is 1 where all parts are right, else 0. Partial credit is the share of right parts, for models that
    never hit the whole form: several blocks, a second closing tag, text before the thought and a cut completion stay
    below 1. A thought that quotes its closing tag cannot be told from one that ends there, so that part is wrong.

    A prompt that already wrote the opening tag (column `thought_opened`) expects a completion without it. Tags are
    case sensitive.

    Args:
        template (`str`, *optional*, defaults to `"think"`):
            `"think"` for a thought and then the answer as plain text, or `"think_answer"` for the form of R1-Zero,
            `<think>...</think> <answer>...</answer>` and nothing else.
        credit (`str`, *optional*, defaults to `"strict"`):
            `"strict"` or `"partial"`.
        allow_empty_thought (`bool`, *optional*, defaults to `True`):
            Whether a thought without text has the right form.

    Returns:
        [`Reward`]: in [0, 1]; needs no column.

    Raises:
        ValueError: when `template` or `credit` is unknown.

    Reference: format reward of DeepSeek-R1 (https://huggingface.co/papers/2501.12948), section 2.2.2. Partial credit
    is a choice of this package.

    Example:
    ```python
    >>> reward = make_format_reward()
    >>> completions = ["<think>9-5</think>4", "9-5</think>4"]
    >>> reward(["?", "?"], completions, [[1], [1]])
    [1.0, 0.0]
    >>> reward(["?", "?"], completions, [[1], [1]], thought_opened=[True, True])
    [0.0, 1.0]
    >>> reward = make_format_reward("think_answer", credit="partial")
    >>> reward(["?"] * 2, ["<think>9-5</think><answer>4</answer>", "<think>9-5</think>4"], [[1]] * 2)
    [1.0, 0.4]

    ```
    """
    return _FormatReward(template, credit, allow_empty_thought)


class _FormatReward:
    __name__ = "format_reward"
    columns: tuple[str, ...] = ()

    def __init__(self, template: Template, credit: Credit, allow_empty_thought: bool):
        for key, value, known in (("template", template, Template), ("credit", credit, Credit)):
            names = get_args(known)
            if value not in names:
                hint = did_you_mean(str(value), names)
                raise ValueError(f"{key}: expected {' or '.join(names)}, got {value!r}.{hint}")
        self.template = template
        self.credit = credit
        self.allow_empty_thought = allow_empty_thought

    def __call__(
        self,
        prompts: Sequence[Any],
        completions: Sequence[Completion],
        completion_ids: Sequence[Sequence[int]],
        *,
        thought_opened: Sequence[bool | None] | None = None,
        **kwargs: Any,
    ) -> list[float | None]:
        texts, opened = read_rows(completions, thought_opened)
        return [self._score(text, is_open) for text, is_open in zip(texts, opened, strict=True)]

    def _score(self, text: str, opened: bool) -> float:
        parts = _parts(text, opened, has_answer_tags=self.template == "think_answer")
        if not self.allow_empty_thought:
            parts.append(split_thought(text, opened=opened).thought != "")
        return float(all(parts)) if self.credit == "strict" else sum(parts) / len(parts)


def _parts(text: str, opened: bool, has_answer_tags: bool) -> list[bool]:
    """Whether each part of the form is right; all are, without answer tags, where [`split_thought`] says valid."""
    answer = split_thought(text, opened=opened).answer
    text = without_end_tokens(text)
    head, closed, tail = text.partition(THINK_CLOSE)
    is_closed_once = text.count(THINK_CLOSE) == 1 and not (opened and THINK_OPEN in head)
    parts = [] if opened else [text.count(THINK_OPEN) == 1 and text.startswith(THINK_OPEN)]
    parts.append(is_closed_once)
    if has_answer_tags:
        is_open_once, is_ended_once = text.count(ANSWER_OPEN) == 1, text.count(ANSWER_CLOSE) == 1
        parts.append(is_open_once and tail.lstrip().startswith(ANSWER_OPEN))
        parts.append(is_ended_once and text.endswith(ANSWER_CLOSE))
        inside = answer.partition(ANSWER_OPEN)[2].partition(ANSWER_CLOSE)[0]
        answer = inside.strip() if is_open_once and is_ended_once else ""
    parts.append(closed != "" and answer != "" and THINK_OPEN not in text.rpartition(THINK_CLOSE)[2])
    return parts
