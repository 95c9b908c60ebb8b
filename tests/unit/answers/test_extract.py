import pytest

from trl_reasoning.answers import extract_answer
from trl_reasoning.answers.extract import has_operation, is_single_value


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (r"First \boxed{14}. No, \boxed{20}.", "20"),
        (r"\boxed{\boxed{11}}", r"\boxed{11}"),
        (r"\boxed {\frac{1}{2}}", r"\frac{1}{2}"),
        (r"\boxed{\{1, 2\}}", r"\{1, 2\}"),
        (r"Use \boxed{}. It is \boxed{31}. And \boxed{}.", "31"),
        (r"$\boxed{2}$ and $\boxed{-3}$", "2, -3"),
        (r"$\boxed{2}$, $\boxed{3}$, and $\boxed{5}$", "2, 3, 5"),
        (r"\boxed{6} or \boxed{6}", "6"),
        (r"\boxed{6}" + "\n" * 100 + r"\boxed{7}", "7"),  # far apart: no list
        (r"The answer is \boxed{12", None),
        (r"The answer is \boxed{12}. Check: \boxed{1", "12"),
        (r"I will \boxed it.", None),
        ("The answer is 5, because 2+3=5.", "5"),
        ("The answer is 5. The answer is 7. Done.", "7"),
        ("**Final Answer:** 3.5 cm.", "3.5 cm"),
        ("### Answer:\n58\n\nBye", "58"),
        (r"The answer is $(1, 2)$, so we are done.", "$(1, 2)$"),
        ("12 - 5 = 7\n#### 7", "7"),
        ("<answer>\\boxed{42}</answer> or 43", "42"),
        ("<answer>42</answer> The answer is 43.", "42"),
        ("<answer>41</answer> <answer>42</answer>", "42"),
        ("<answer> </answer>", None),
        ("<answer>4", None),
        ("<think>The answer is 5", None),
        ("<think>a</think>The answer is 5", "5"),
        (r"\boxed 5", "5"),
        (r"It is \boxed -3/4.", "-3/4"),
        (r"\boxed{4} and then \boxed it", "4"),
        (r"<think>\boxed{5}</think>", None),
        (r"<think>\boxed{5}</think>I am done.", None),
        (r"<think>a</think>\boxed{4}<think>\boxed{5}", "4"),
        ("", None),
    ],
)
def test_extract_answer(text, answer):
    assert extract_answer(text) == answer


def test_opened_thought_hides_everything_before_its_end():
    assert extract_answer("The answer is 5", opened=True) is None
    assert extract_answer("The answer is 5</think>6", opened=True) == "6"
    assert extract_answer(r"\boxed{5}</think>", opened=True) is None
    assert extract_answer(r"\boxed{5}</think>I am done", opened=True) is None
    assert extract_answer(r"\boxed{5}", opened=False) == "5"


@pytest.mark.parametrize(
    "text",
    [
        *("5", "-3", "+5", "3/4", "1 3/4", "1,234", "1.5e3", "**42**", "**42**.", "5.", "$18", "€5", "35%", "12 cm"),
        *("90°", "B", "(B)", "Yes.", "四", r"\frac{3}{4}", r"$\frac{x}{2}$", r"\(x^2\)", r"1.2\times 10^{3}"),
    ],
)
def test_single_values(text):
    assert is_single_value(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "5 6",
        "5, 6",
        "7+5-3",
        "5=5",
        "3 * 4",
        "2^3",
        "5!",
        "5 eggs",
        "She has 5",
        "x+1",
        "12:30",
        "5\n6",
        "1" * 201,
    ],
)
def test_no_single_values(text):
    assert not is_single_value(text)


@pytest.mark.parametrize(
    ("text", "is_operation"),
    [("7+5", True), ("3(4)", True), ("2^{10}", True), ("-5", False), ("3/4", False), (r"3\cdot 10^{-4}", False)],
)
def test_has_operation(text, is_operation):
    assert has_operation(text) is is_operation


@pytest.mark.parametrize(
    "text",
    [
        *(" " * 200_000 + "x", "answer is" + "\n" * 200_000, r"\boxed{" * 30_000, "<answer>" * 50_000),
        *("$" * 100_000, r"\boxed{1}" * 20_000, "answer is 1, 2 " * 10_000, "5" * 200_000, r"\text{" * 20_000),
    ],
    ids=lambda text: text[:10],
)
def test_long_hostile_texts_are_read_in_linear_time(text):
    # Quadratic patterns would need many minutes for one of these.
    extract_answer(text)
