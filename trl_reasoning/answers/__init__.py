r"""
Reading final answers and comparing them with gold answers.

One policy decides everywhere, in rewards, curation and evaluation.

Where the answer stands

- Only the visible answer counts: the text after the last `</think>`, or after the thought that the prompt opened
  (`opened`). A thought that never closes has no answer; an answer inside the thought alone is none.
- `<answer>` tags hide what stands outside them. The last non-empty box wins. Boxes joined only by a comma, "and" or
  "or" are one list; the same box said twice is one value. Without a box: "answer is", "Answer:", `####`. A visible
  answer that is wholly one value, or a calculation with its result ("13 + 5 = 18"), needs no mark; a number inside
  running prose is never an answer.
- An unclosed box or answer tag is cut text: no answer. Words and units outside the box do not count.
- A hedge is a list or a text, so it is wrong: "5 or 6", "(B) or (C)", "5 = 6", "5?".

Numbers

- They are compared exactly. A rounded decimal is not equal to what it was rounded from; `0.\overline{3}` is 1/3, and
  of `\frac13 \approx 0.33` the exact part counts. "About 7", "at least 7" and "> 7" are not 7.
- Where the gold is a plain number of at most six characters, a sum or product that was not carried out is not an
  answer, nor is an integral, series or limit; fractions, scientific notation and powers are. Of a calculation with
  its result ("3+4=7") the result counts.
- Mixed numbers are sums: `2\frac{1}{2}` and "2 1/2" are 2.5, never 2, 1 or 21/2.
- A comma without a space and with groups of three digits is a thousands mark ("343,512"); "343, 512" is a list.
- A per cent sign on exactly one side may be a unit or a division by 100; without any there is no factor 100.
- A unit missing on one side is fine, two different units are not. Units are not converted. A unit is a word after a
  number or stands in `\text`; a single bare letter ("3 m") is a variable, unless the other side has just that unit.
  Words that change a number ("million", "dozen", "half") are never units.
- A base missing in the answer is fine (`1010` for `1010_2`); `12_{10}` alone is its value.
- Clock times are equal in hour and minute; "am" or "pm" may be missing on one side. Ratios, patterns with dots and
  residues ("5 mod 7") are compared as texts.

Several values

- Order matters in tuples and intervals, as do their brackets; it does not in sets and bare lists. All values are
  needed and none extra. `\pm a` is the list of both. A set of one value is that value. A vector may be written as a
  tuple, row or column, but a row is no column.
- "x = 1, y = 2" gives its values in that order; where both sides have names, the names decide.
- An interval may answer an inequality and the other way round. Unions are compared as sets of numbers:
  `(0,1] \cup (1,2)` is `(0,2)`. `\infty` is never inside a bracket that is closed.

Formulas and equations

- "x = 5", "f(2) = 5", "|AB| = 5" and "x in S" stand for their value; two different names are not equal.
- Equations are equal up to a constant factor: `y = 2x+1` and `2x - y + 1 = 0`, not `xy = 1` and `y = 1/x`. An equation
  and a plain value are not equal, but `y = 2x+1` and `2x+1` are.
- Letters stand for positive numbers where that decides, capitals are other letters than small ones, and an index or a
  prime makes another letter. `e`, `i` and `\pi` are numbers.
- Plain spellings count: `pi/2`, `sqrt(2)`, `√25`, `exp(9)`, `x**2`, `½`, `10³`, `np.arcsin(x)`, `\sin 30^\circ`. "x2"
  may be a square, a product or a name: it equals only itself. An odd root of a negative number is real.
- A fraction of two numbers before a letter or bracket is its factor: "-1/3x" is `-\frac{x}{3}`; "x/2y" is
  `\frac{x}{2y}`.

Words

- Names and words are compared without case. Number words are no numbers ("four", "二十五").
- Choices are compared by their letter: "B", "(b)", "B. 5 cm", "option B". A bare gold letter is a choice from A to J,
  a letter in brackets always is; with `kind="choice"` every letter is.
- Chinese units, commas and full-width characters are read ("12千克" is 12 kg); "25万" and "约25" are not 25.

Golds

- A gold may be bare or marked. A worked sentence without a mark, an empty text and a text with control characters
  (a `\f` that was once `\frac`) cannot be read: no verdict, and no score.

Nothing here imports sympy or math-verify before a formula needs them, and no text reaches `eval`.
"""

from .extract import extract_answer
from .readable import has_control_character
from .self_check import self_check, self_check_batch
from .verdict import Verdict
from .verify import KINDS, are_readable_golds, check_kind, is_readable_gold, numeric_value, verify, verify_batch


__all__ = [
    "KINDS",
    "Verdict",
    "are_readable_golds",
    "check_kind",
    "extract_answer",
    "has_control_character",
    "is_readable_gold",
    "numeric_value",
    "self_check",
    "self_check_batch",
    "verify",
    "verify_batch",
]
