r"""
Reading final answers and comparing them with gold answers.

Policy, where more than one choice is defensible:

- Only the visible answer counts: the text after the last `</think>`. A thought that never closes has none.
- `<answer>` tags hide what stands outside them. The last non-empty box wins. Boxes joined only by a comma, "and" or
  "or" are one list; the same box said twice is one value. Without a box: "answer is", "Answer:", `####`. A visible
  answer that is wholly one value, or a calculation with its result ("13 + 5 = 18"), needs no mark; a number inside
  running prose is never an answer.
- An unclosed box or answer tag is cut text: no answer.
- Numbers are compared exactly. Rounded decimals are not equal to what they were rounded from.
- Where the gold is a plain number, a sum or product that was not carried out is not an answer; fractions, scientific
  notation and powers are. Of a calculation with its result ("3+4=7") the result counts.
- A per cent sign on exactly one side may be a unit or a division by 100; without any there is no factor 100.
- A unit missing on one side is fine, two different units are not. Units are not converted.
- A comma without a space and with groups of three digits is a thousands mark ("343,512"); "343, 512" is a list.
- Order matters in tuples and intervals, as do their brackets; it does not in sets and bare lists. All values are
  needed and none extra. "\pm a" is the list of both.
- "x = 5" is 5; two different names are not equal. Mixed numbers are sums.
- Names and words are compared without case, choices by their letter only. Letters in formulas stand for positive
  numbers where that decides.
- An interval may answer an inequality and the other way round.

Nothing here imports sympy or math-verify before a formula needs them, and no text reaches `eval`.
"""

from .extract import extract_answer
from .verdict import Verdict
from .verify import KINDS, check_kind, is_readable_gold, numeric_value, verify


__all__ = ["KINDS", "Verdict", "check_kind", "extract_answer", "is_readable_gold", "numeric_value", "verify"]
