"""
Loaded by each worker for formulas before it takes any: the first formula of each kind costs the LaTeX reader and sympy
their caches and late imports, which must not count against the time limit of an answer.
"""

from .formula_worker import answer_question


_PAIRS = (
    (r"\frac{1}{2}\sqrt{x^{2}+1}", r"\sqrt{\frac{x^2+1}{4}}"),
    (r"\sin^2 x+\cos 30^\circ", r"\frac{\sqrt{3}}{2}+1-\cos^2 x"),
    (r"\int_0^1 x^2 dx+\log_2 8", r"\sum_{k=1}^{3} k"),
    (r"[1,\infty)", r"x\ge 1"),
    (r"x^2+y^2=1", r"y^2=1-x^2"),
    (r"n!+\binom{n}{2}", "n(n-1)!"),
)

for _pair in _PAIRS:
    answer_question(*_pair)
