"""The embedded task: right sums, worked thoughts of the chosen styles, and splits that cannot overlap."""

import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trl_reasoning.builtin import chain_steps, make_chain_dataset, make_sums_dataset


def thoughts(style: str, size: int = 60, **kwargs):
    rows = make_chain_dataset(size=size, styles={style: 1.0}, **kwargs)
    for row in rows:
        match = re.fullmatch(r"<think>(.*)</think>(\d+)", row["completion"][0]["content"], re.DOTALL)
        assert match is not None
        yield row, match[1], match[2]


def plain_sum(question: str) -> int:
    """The value by signed parts, independent of the step-by-step code."""
    return sum(int(part) for part in re.findall(r"[+-]?\d+", question.removesuffix("=?")))


def test_steps_by_hand():
    assert chain_steps("7+5-3-8+4=?") == [(7, "+", 5, 12), (12, "-", 3, 9), (9, "-", 8, 1), (1, "+", 4, 5)]


def test_solutions_are_sums_and_totals_never_negative():
    for row in make_chain_dataset(size=300, operands=(2, 9), seed=5):
        assert int(row["solution"]) == plain_sum(row["question"])
        assert all(total >= 0 for *_, total in chain_steps(row["question"]))
        assert row["difficulty"] == len(re.findall(r"\d+", row["question"]))


def test_difficulties_are_balanced():
    counts = Counter(make_chain_dataset(size=60, operands=(2, 7))["difficulty"])
    assert counts == dict.fromkeys(range(2, 8), 10)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_splits_never_overlap_whatever_the_seeds(train_seed, heldout_seed):
    train = make_chain_dataset("train", size=150, operands=(2, 3), seed=train_seed)["question"]
    heldout = make_chain_dataset("heldout", size=60, operands=(2, 3), seed=heldout_seed)["question"]
    assert not set(train) & set(heldout)


def test_careful_thought_is_one_operation_a_line():
    for row, thought, answer in thoughts("careful"):
        lines = [f"{left}{sign}{right}={total}" for left, sign, right, total in chain_steps(row["question"])]
        assert thought.split("\n") == lines
        assert answer == row["solution"]


def test_leaping_thought_has_half_the_lines_and_is_right():
    for row, thought, answer in thoughts("leaping", operands=(4, 7)):
        lines = thought.split("\n")
        assert len(lines) == row["difficulty"] // 2
        assert all(plain_sum(line.split("=")[0]) == int(line.split("=")[1]) for line in lines)
        assert answer == row["solution"]


def test_wrong_thought_has_one_slip_and_ends_where_it_leads():
    for row, thought, answer in thoughts("wrong"):
        slips = [line for line in thought.split("\n") if plain_sum(line.split("=")[0]) != int(line.split("=")[1])]
        assert len(slips) == 1 or answer == row["solution"]
        assert thought.endswith(f"={answer}")


def test_recheck_writes_every_step_twice():
    for row, thought, answer in thoughts("recheck"):
        first, second = thought.split("\ncheck\n")
        assert first == second
        assert answer == row["solution"]


def test_guess_has_no_thought_and_is_right_as_often_as_asked():
    right = [answer == row["solution"] for row, thought, answer in thoughts("guess", 600) if thought == ""]
    assert len(right) == 600
    assert 0.14 < sum(right) / 600 < 0.26  # 0.2, about four standard errors
    assert all(answer == row["solution"] for row, _, answer in thoughts("guess", guess_accuracy=1.0))


def test_shares_of_styles():
    styles = Counter(make_chain_dataset(size=1000, styles={"careful": 3, "guess": 1})["style"])
    assert set(styles) == {"careful", "guess"}
    assert 680 < styles["careful"] < 820


def test_same_seed_same_rows():
    assert make_chain_dataset(size=20, seed=4).to_list() == make_chain_dataset(size=20, seed=4).to_list()
    assert make_chain_dataset(size=20, seed=4).to_list() != make_chain_dataset(size=20, seed=5).to_list()


def test_heldout_repeats_only_when_the_questions_run_out():
    many = make_chain_dataset("heldout", size=200, operands=5)["question"]
    assert len(set(many)) == 200
    few = make_chain_dataset("heldout", size=40, operands=2)["question"]
    assert len(few) == 40
    assert len(set(few)) == 11  # the split has that many questions with two operands
    with pytest.raises(ValueError, match="size.*no further question with 2 operands"):
        make_chain_dataset("heldout", size=40, operands=2, unique=True)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"split": "test"}, "split.*heldout.*'test'"),
        ({"operands": (1, 3)}, "operands"),
        ({"operands": (5, 3)}, "operands"),
        ({"styles": {"carefull": 1}}, "styles.*carefull"),
        ({"styles": {"careful": 0}}, "styles.*positive"),
        ({"size": 0}, "size"),
        ({"guess_accuracy": 1.5}, "guess_accuracy"),
    ],
)
def test_bad_parameters_name_themselves(kwargs, message):
    with pytest.raises(ValueError, match=message):
        make_chain_dataset(**kwargs)


def test_sums_cover_every_pair_once():
    both = [*make_sums_dataset("train")["question"], *make_sums_dataset("heldout")["question"]]
    assert len(both) == len(set(both)) == 19 * 19
    row = make_sums_dataset(size=1)[0]
    left, right = map(int, re.findall(r"\d+", row["question"]))
    assert row["solution"] == str(left + right)
    with pytest.raises(ValueError, match="size.*'heldout' has"):
        make_sums_dataset("heldout", size=1000)
