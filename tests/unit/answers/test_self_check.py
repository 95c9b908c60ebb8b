"""Golds against themselves, whatever marks they come with."""

import pytest

from trl_reasoning.answers import has_control_character, is_readable_gold, self_check, verify
from trl_reasoning.answers.self_check import self_check_batch


@pytest.mark.parametrize(
    "gold",
    [
        "5",
        "#### 1,080",
        r"so $\boxed{\frac{1}{2}}$",
        "$2n-2$",
        r"$(-\infty, 0) \cup\{1\}$.",
        r"$90^{\circ}$,$60^{\circ}$",
        r"\frac{1}{3} E_{1}+\frac{2}{3} E_{2}",
        "E_{1},E_{2}",
        "MR=SRMC",
        "np.arcsin(10/13)",
        r"m_{\max }=n^{2}-n-1",
        r"\frac{dM}{dt}=\frac{10^{5} L_{\odot}}{0.007 c^{2} M_{\odot}^{6}} M^{6}",
        "12%",
        "25元",
        "北京",
        r"\{1, 2\}",
        r"\begin{pmatrix} 1 \\ x \end{pmatrix}",
        "x < 0 or x > 1",
        "10:30",
        r"1,3,5,\ldots",
    ],
)
def test_golds_of_all_kinds_verify(gold):
    # Bare LaTeX, dollar signs and boxes alike: nobody has to wrap a gold first.
    assert self_check(gold).status == "right"


@pytest.mark.parametrize(
    ("gold", "status"),
    [
        (None, "unreadable_gold"),
        ("", "unreadable_gold"),
        ("14. The first pump fills a quarter of the tank.", "unreadable_gold"),
        ("\frac{1}{2}", "unreadable_gold"),
        ("5 = 6", "wrong"),
    ],
)
def test_golds_that_no_answer_can_match(gold, status):
    assert self_check(gold).status == status


def test_a_batch_is_checked_in_order():
    assert [verdict.is_right for verdict in self_check_batch(["5", None, "6"])] == [True, False, True]
    assert self_check("apple", "number").status == "unreadable_gold"


def test_control_characters():
    assert not is_readable_gold("\boxed{5}") and not is_readable_gold("\times 3") and not is_readable_gold("4\x00")
    assert not has_control_character("a\tb\nc\r\n")
    assert verify(r"\boxed{5}", "5\n").is_right
