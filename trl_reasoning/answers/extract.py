"""Where the final answer stands in a completion."""

import re

from ..text import ANSWER_CLOSE, ANSWER_OPEN, visible_answer
from .normalize import braced_end, clean, read_value
from .rational import TooLargeError, rational
from .units import is_known_unit


MAX_VALUE_LENGTH = 200
MAX_JOINT_LENGTH = 40
# A longer text says something; cleaning it to see that would take seconds.
MAX_CLEANED_LENGTH = 10_000

_BOX = re.compile(r"\\(?:boxed|fbox|framebox)(?![A-Za-z])\s*(?P<brace>\{)?")
# TeX boxes what follows a box command without braces.
_BOXED_NUMBER = re.compile(r"-?\d+(?:[.,/]\d+)*")
_BOX_JOINT = re.compile(
    r"(?:\s|\$|\\[()\[\]]|\*)*(?:[,;&、/|]\s*)?(?:(?:\\text\s*\{)?\s*(?:and|or|maybe|perhaps|possibly|vs\.?|和|或)\s*\}?)?"
    r"(?:\s|\$|\\[()\[\]]|\*)*\Z"
)
_ANSWER_TAGS = re.compile(f"{ANSWER_OPEN}((?:(?!</?answer>).)*){ANSWER_CLOSE}", re.DOTALL)
_PHRASE = re.compile(
    r"\banswer\b[*_]{0,3}\s*(?:\bis\b|:|=)[*_]{0,3}\s*:?\s*|答案\s*(?:[是为][：:]?|[：:])\s*|####[ \t]*", re.IGNORECASE
)
# The sentence goes on after the value: "5, because ...", "5 since ...".
_SENTENCE_END = re.compile(
    r"(?:\.\**(?=\s|\Z)|。|[,;]?\s+(?:because|since|which|so|as|when|where|if|but|for)\b|,\s+(?=(?!and\b|or\b)[a-z]{2}))"
)
_INLINE_MATH = re.compile(r"(\$\$?)(?P<math>[^$]+)\1|\\[(\[](?P<tex>(?:(?!\\[)\]]).)+)\\[)\]]", re.DOTALL)
_ONE_WORD = re.compile(r"\(?[^\W\d_]+\)?\Z")
# A sum, product or power: an expression, not a value. Scientific notation and signs are values.
_OPERATION = re.compile(r"(?<=[\d)}!])\s*(?:[+\-*^!]|\\times|\\cdot|\\div|\()")
_POWER_OF_TEN = re.compile(r"\s*(?:\\times|\\cdot|\*)\s*10\s*\^\s*(?:\{\s*-?\d+\s*\}|-?\d+)\Z")


def extract_answer(text: str, *, opened: bool = False) -> str | None:
    r"""
    Find the final answer in the visible part of a completion.

    The visible answer is the text after the last `</think>`; a thought that never closes has none. In it count, in
    this order: the last `<answer>` tags, which hide everything outside them; the last non-empty box, or several boxes
    joined only by a comma, "and" or "or" as one list; the last answer phrase ("answer is", "Answer:", `####`); and
    the whole text where it is one value, or a calculation with its result. An unclosed box or answer tag is cut text
    and gives no answer.

    Args:
        text (`str`):
            Completion with think tags.
        opened (`bool`, *optional*, defaults to `False`):
            Whether the prompt already ended inside the thought.

    Returns:
        `str` or `None`

    Example:
    ```python
    >>> extract_answer(r"<think>Try 6.</think>The roots are $\boxed{2}$ and $\boxed{-3}$.")
    '2, -3'
    >>> extract_answer("<think>7+5=12</think>12")
    '12'
    >>> extract_answer("The tray holds 12 items.") is None
    True

    ```
    """
    visible = visible_answer(text, opened=opened)
    tagged = tagged_answer(visible)
    if tagged is not None:
        return marked_answer(tagged) or _non_empty(tagged)
    if ANSWER_OPEN in visible:
        return None
    answer = marked_answer(visible)
    if answer is None and not _BOX.search(visible):
        value = result_of_calculation(visible) or visible
        return value.strip() if is_single_value(value) else None
    return answer


def tagged_answer(visible: str) -> str | None:
    """The content of the last answer tags of a visible answer, or `None`; if one is open then, the text was cut."""
    found = _ANSWER_TAGS.findall(visible) if ANSWER_OPEN in visible else []
    return found[-1] if found else None


def marked_answer(text: str) -> str | None:
    """The answer that a box or an answer phrase marks in the text, or `None`."""
    boxes, is_cut = boxes_of(text)
    if boxes:
        return _joined(text, boxes)
    if is_cut:
        return None
    phrases = list(_PHRASE.finditer(text))
    return _after_phrase(text[phrases[-1].end() :]) if phrases else None


def is_single_value(text: str) -> bool:
    """Whether the text is wholly one value: a number (a known unit may follow), a word or a formula in math marks."""
    if len(text) > MAX_VALUE_LENGTH:
        return False
    text = text.strip().lstrip("*").rstrip(".*").strip()
    math = _INLINE_MATH.fullmatch(text)
    if math:
        return _non_empty(math["math"] or math["tex"]) is not None
    if _ONE_WORD.match(text):
        return True
    if not text or "\n" in text:
        return False
    try:
        value = read_value(text)
        if has_operation(value.text) or rational(value.text) is None:
            return False
    except TooLargeError:
        return False
    return value.unit is None or is_known_unit(value.unit)


def result_of_calculation(text: str) -> str | None:
    """
    The right side of a text that is wholly a calculation with its result, or `None`.

    Example:
    ```python
    >>> result_of_calculation("13 + 5 = 18."), result_of_calculation("x = 18"), result_of_calculation("5 + 5 =")
    ('18.', None, None)

    ```
    """
    left, equals, right = text.strip().partition("=")
    if not equals or not right.strip() or "\n" in left or len(text) > MAX_VALUE_LENGTH:
        return None
    left = clean(left)
    try:
        is_calculation = (has_operation(left) or "/" in left) and rational(left) is not None
        is_number = rational(read_value(right.strip().rstrip(".*")).text) is not None
    except TooLargeError:
        return None
    return right.strip() if is_calculation and is_number else None


def has_operation(text: str) -> bool:
    r"""
    Whether a number is written as a calculation that was not carried out. Fractions, mixed numbers, powers of one
    number and scientific notation are values.

    Example:
    ```python
    >>> has_operation("7+5-3"), has_operation(r"1.2\times 10^{3}"), has_operation("-3/4")
    (True, False, False)

    ```
    """
    return _OPERATION.search(_POWER_OF_TEN.sub("", text)) is not None


def boxes_of(text: str) -> tuple[list[tuple[int, int, str]], bool]:
    """All non-empty outermost boxes as (start, end, content), and whether a box was opened and never closed."""
    boxes, position, is_cut = [], 0, False
    while match := _BOX.search(text, position):
        position = match.end()
        if match["brace"] is None:
            number = _BOXED_NUMBER.match(text, position)
            if number:
                boxes.append((match.start(), number.end(), number.group()))
            continue
        end = braced_end(text, match.end() - 1)
        if end is None:
            # Everything that follows stands inside the box that was cut off.
            is_cut = True
            break
        position = end
        content = text[match.end() : end - 1]
        if _non_empty(content):
            boxes.append((match.start(), end, content.strip()))
    return boxes, is_cut


def _joined(text: str, boxes: list[tuple[int, int, str]]) -> str:
    """The last box together with those that are joined to it; the same box said twice is one value."""
    joined = [boxes[-1]]
    for box in reversed(boxes[:-1]):
        between = text[box[1] : joined[0][0]]
        if len(between) > MAX_JOINT_LENGTH or not _BOX_JOINT.match(between):
            break
        joined.insert(0, box)
    return ", ".join(dict.fromkeys(content for _, _, content in joined))


def _after_phrase(tail: str) -> str | None:
    """The value at the start of the text that follows an answer phrase."""
    tail = tail.lstrip()
    math = _INLINE_MATH.match(tail)
    if math and "\n" in math.group():
        return _non_empty(math["math"] or math["tex"])
    line = " ".join(tail.partition("\n")[0].split())
    math = _INLINE_MATH.match(line)
    # Search after the formula, whose commas and dots are its own.
    end = _SENTENCE_END.search(line, math.end() if math else 0)
    return _non_empty(line[: end.start()] if end else line)


def _non_empty(text: str) -> str | None:
    text = text.strip()
    return text if len(text) > MAX_CLEANED_LENGTH or clean(text) else None
