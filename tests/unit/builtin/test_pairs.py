"""`builtin:chain_pairs`: what tells the chosen reply from the rejected one."""

import pytest

from trl_reasoning.answers import verify
from trl_reasoning.builtin import chain_steps, make_chain_dataset, make_chain_pairs_dataset
from trl_reasoning.builtin.pairs import equal_length_slips
from trl_reasoning.errors import UserError


def _texts(dataset, column):
    return [row[column][0]["content"] for row in dataset]


def _rights(dataset, column):
    texts = zip(_texts(dataset, column), dataset["solution"], strict=True)
    return [verify(text, solution).status == "right" for text, solution in texts]


def test_without_a_bias_both_replies_of_every_pair_are_equally_long_and_correctness_tells_them_apart():
    pairs = make_chain_pairs_dataset(size=300, long_share=0.5)
    lengths = [[len(text) for text in _texts(pairs, column)] for column in ("chosen", "rejected")]
    assert lengths[0] == lengths[1]
    assert all(_rights(pairs, "chosen"))
    assert not any(_rights(pairs, "rejected"))
    assert set(pairs["pair_kind"]) == {"right"}
    is_long = [
        [
            text.count("\n") + 1 > count - 1
            for text, count in zip(_texts(pairs, column), pairs["difficulty"], strict=True)
        ]
        for column in ("chosen", "rejected")
    ]
    assert is_long[0] == is_long[1]
    assert 0.4 < sum(is_long[0]) / 300 < 0.6


def test_the_bias_is_the_share_of_pairs_in_which_the_longer_of_two_right_replies_is_preferred():
    pairs = make_chain_pairs_dataset(size=1000, length_bias=0.7, long_share=0.5)
    longer = pairs.filter(lambda row: row["pair_kind"] == "longer")
    assert 0.65 < len(longer) / 1000 < 0.75  # 0.7 within 3.5 standard deviations
    assert all(_rights(longer, "chosen"))
    assert all(_rights(longer, "rejected"))
    for chosen, rejected in zip(_texts(longer, "chosen"), _texts(longer, "rejected"), strict=True):
        thought, answer = rejected.removeprefix("<think>").split("</think>")
        last = "\n" + thought.split("\n")[-1]
        assert chosen == f"<think>{thought}{last * 3}</think>{answer}"
    rest = pairs.filter(lambda row: row["pair_kind"] == "right")
    assert list(map(len, _texts(rest, "chosen"))) == list(map(len, _texts(rest, "rejected")))
    assert not any(_rights(rest, "rejected"))


def test_sets_of_one_seed_ask_the_same_questions_whatever_the_bias():
    plain, biased = (make_chain_pairs_dataset(size=50, length_bias=bias, seed=3) for bias in (0.0, 0.6))
    assert plain["question"] == biased["question"]
    unchanged = [index for index, kind in enumerate(biased["pair_kind"]) if kind == "right"]
    assert unchanged
    assert all(plain[index] == biased[index] for index in unchanged)


def test_noise_swaps_the_two_replies():
    clean, noisy = (make_chain_pairs_dataset(size=400, noise=noise, seed=1) for noise in (0.0, 0.25))
    swapped = [first["chosen"] == second["rejected"] for first, second in zip(clean, noisy, strict=True)]
    assert 0.19 < sum(swapped) / 400 < 0.31  # 0.25 within 3 standard deviations
    assert all(
        first["chosen"] == second["chosen"]
        for first, second, is_swapped in zip(clean, noisy, swapped, strict=True)
        if not is_swapped
    )
    assert make_chain_pairs_dataset(size=400, noise=1.0, seed=1)["chosen"] == clean["rejected"]


def test_held_out_questions_are_not_among_the_training_ones():
    train = set(make_chain_pairs_dataset(size=600)["question"]) | set(make_chain_dataset(size=600)["question"])
    heldout = make_chain_pairs_dataset("heldout", size=100, operands=(4, 7), seed=5)["question"]
    assert not train & set(heldout)
    assert len(set(heldout)) == 100


def test_the_same_seed_gives_the_same_pairs_and_difficulties_go_round():
    first, second = (make_chain_pairs_dataset(size=12, operands=(2, 4), seed=4, length_bias=0.5) for _ in range(2))
    assert first.to_list() == second.to_list()
    assert first["difficulty"] == [2, 3, 4] * 4
    assert [len(chain_steps(question)) for question in first["question"]] == [1, 2, 3] * 4
    assert make_chain_pairs_dataset(size=12, seed=5)["question"] != first["question"]


def test_slips_by_hand():
    # 9+1=10, 10-9=1: a first result of 11 to 16 leaves a second one of 2 to 7, one of 4 to 9 is a character short and
    # would be followed by one below 0 or by 0; the second step alone may say 0 or 2 to 7.
    slips = equal_length_slips(chain_steps("9+1-9=?"))
    assert [(steps[0][3], steps[1][3]) for steps in slips] == [
        *((10 + value, 1 + value) for value in range(1, 7)),
        *((10, value) for value in (0, 2, 3, 4, 5, 6, 7)),
    ]


def test_a_share_of_guesses_changes_no_other_pair():
    settings = {"size": 60, "seed": 3, "length_bias": 0.2, "long_share": 0.3}
    without, with_guesses = make_chain_pairs_dataset(**settings), make_chain_pairs_dataset(**settings, guess_share=0.5)
    guesses = [row for row in with_guesses if row["pair_kind"] == "guess"]
    assert 10 < len(guesses) < 40
    for row in guesses:
        answer = row["rejected"][0]["content"].removeprefix("<think></think>")
        assert int(answer) != int(row["solution"])
    for row, other in zip(without, with_guesses, strict=True):
        assert row["chosen"] == other["chosen"]
        assert other["pair_kind"] == "guess" or row == other


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"split": "test"}, "split: expected one of"),
        ({"size": 0}, "size: expected at least 1 row, got 0"),
        ({"length_bias": 1.5}, r"length_bias: expected a share in \[0, 1\], got 1.5"),
        ({"long_share": -0.1}, "long_share: expected a share"),
        ({"noise": 2}, "noise: expected a share"),
        ({"operands": 1}, "operands: expected 2 <= least"),
    ],
)
def test_impossible_settings_say_which_and_why(settings, words):
    with pytest.raises(UserError, match=words):
        make_chain_pairs_dataset(**settings)
