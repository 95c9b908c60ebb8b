"""Rejection sampling and pairs of samples, on records whose right choice is worked out by hand."""

import pytest

from trl_reasoning.data import DataError
from trl_reasoning.data.sample_pairs import best_worst_pairs, long2short_pairs
from trl_reasoning.data.selection import group_by_prompt, select_samples


def record(tokens, status="right", prompt="q", **extra):
    return {
        "prompt": prompt,
        "completion": f"{status} {tokens} {extra}",
        "tokens": tokens,
        "status": status,
        "finish_reason": "stop",
        "valid_format": True,
        **extra,
    }


def lengths(records):
    return [record["tokens"] for record in records]


def pair_lengths(pairs):
    return [(chosen["tokens"], rejected["tokens"]) for chosen, rejected in pairs]


# (200, right), (280, right), (310, right), (250, wrong), (150, wrong)
KIMI = [record(200), record(280), record(310), record(250, "wrong"), record(150, "wrong")]


class TestSelectSamples:
    def test_the_right_ones_in_their_order(self):
        kept, report = select_samples(KIMI)
        assert lengths(kept) == [200, 280, 310]
        assert (report.prompts, report.used, report.samples, report.kept) == (1, 1, 5, 3)
        assert report.reasons["wrong"] == 2
        assert str(report) == "3 samples of 1 of 1 prompts (5 samples); left out: wrong: 2"

    @pytest.mark.parametrize(
        ("take", "per_prompt", "expected"),
        [
            ("shortest", None, [200]),
            ("shortest", 2, [200, 280]),
            ("longest", None, [310]),
            ("longest", 2, [310, 280]),
            ("shortest", 9, [200, 280, 310]),
        ],
    )
    def test_by_length(self, take, per_prompt, expected):
        assert lengths(select_samples(KIMI, take=take, per_prompt=per_prompt)[0]) == expected

    def test_all_of_them_whatever_the_verdict(self):
        assert lengths(select_samples(KIMI, "all", "shortest")[0]) == [150]

    def test_the_best_by_score(self):
        rows = [record(1, score=0.5), record(2, score=2.0), record(3, score=None), record(4, "wrong", score=9.0)]
        kept, report = select_samples(rows, take="best")
        assert lengths(kept) == [2]
        assert report.reasons["no score"] == 1
        assert lengths(select_samples(rows, "all", "best", per_prompt=2)[0]) == [4, 2]

    def test_a_cut_one_is_never_taken_and_its_text_hides_no_whole_one(self):
        rows = [record(5, completion="a b", finish_reason="length"), record(6, completion="a b"), record(7)]
        kept, report = select_samples(rows, "all")
        assert lengths(kept) == [6, 7]
        assert report.reasons["cut"] == 1

    def test_repeated_ones_count_once_up_to_blanks(self):
        rows = [record(5, completion="a  b\n"), record(6, completion="a b"), record(7, completion="ab")]
        kept, report = select_samples(rows)
        assert lengths(kept) == [5, 7]
        assert report.reasons["repeated"] == 1

    def test_prompts_that_differ_in_blanks_are_one(self):
        messages = [[{"role": "user", "content": text}] for text in ("1 + 1?", "1 +  1?", "2?")]
        rows = [record(tokens, prompt=prompt) for tokens, prompt in enumerate(messages, start=1)]
        assert [lengths(group) for group in group_by_prompt(rows).values()] == [[1, 2], [3]]

    def test_the_cap_draws_at_random_from_the_seed_and_each_prompt_on_its_own(self):
        rows = [record(tokens, prompt=prompt) for prompt in "ab" for tokens in range(20)]
        kept, report = select_samples(rows, per_prompt=5, seed=1)
        assert len(kept) == 10
        assert report.reasons["over per_prompt"] == 30
        assert lengths(kept[:5]) == sorted(lengths(kept[:5])) != [0, 1, 2, 3, 4]
        assert lengths(kept[:5]) != lengths(kept[5:])
        assert select_samples(rows, per_prompt=5, seed=1)[0] == kept
        assert select_samples(rows, per_prompt=5, seed=2)[0] != kept
        assert select_samples(rows[20:], per_prompt=5, seed=1)[0] == kept[5:]

    def test_of_two_alike_the_first_counts(self):
        rows = [record(5, score=1.0, name=name) for name in "abc"]
        for take in ("shortest", "longest", "best"):
            assert select_samples(rows, take=take)[0][0]["name"] == "a"

    def test_form(self):
        rows = [record(5, valid_format=False), record(6)]
        kept, report = select_samples(rows, valid_format=True)
        assert lengths(kept) == [6]
        assert report.reasons["not one thought with an answer"] == 1

    def test_what_cannot_be_done(self):
        with pytest.raises(DataError, match="take: expected one of .*; did you mean 'shortest'"):
            select_samples(KIMI, take="shortes")
        with pytest.raises(DataError, match="keep: expected one of right, all, got 'correct'"):
            select_samples(KIMI, "correct")
        with pytest.raises(DataError, match="problem 3, sample 1: no `score`"):
            select_samples([record(1, id=3, sample=1)], take="best")
        with pytest.raises(DataError, match="no column `solution`"):
            select_samples([record(1, None), record(2, None)])


class TestLong2Short:
    def test_kimis_pairs(self):
        pairs, report = long2short_pairs(KIMI)
        assert pair_lengths(pairs) == [(200, 310), (200, 250)]
        assert (report.kept, report.used, report.what) == (2, 1, "pairs")

    def test_the_ratio_is_reached_exactly(self):
        assert pair_lengths(long2short_pairs([record(200), record(300), record(299)])[0]) == [(200, 300)]
        assert pair_lengths(long2short_pairs(KIMI, 1.4)[0]) == [(200, 280), (200, 310), (200, 250)]

    def test_wrong_ones_that_are_not_longer_are_not_used(self):
        pairs, report = long2short_pairs([record(200), record(200, "wrong"), record(150, "unparsed")])
        assert pairs == []
        assert report.reasons["prompts with no longer sample"] == 1

    def test_a_prompt_without_a_right_one_gives_none(self):
        rows = [record(10, "wrong"), record(20, "unparsed"), record(30, prompt="p"), record(60, prompt="p")]
        pairs, report = long2short_pairs(rows)
        assert pair_lengths(pairs) == [(30, 60)]
        assert report.reasons["prompts with no right sample"] == 1
        assert (report.prompts, report.used) == (2, 1)

    @pytest.mark.parametrize("status", ["unreadable_gold", "timed_out", None])
    def test_what_was_not_judged_is_not_rejected(self, status):
        assert long2short_pairs([record(100), record(500, status)])[0] == []

    def test_a_cut_one_may_be_rejected_where_asked_for_and_is_never_chosen(self):
        rows = [record(50, finish_reason="length"), record(100), record(400, "wrong", finish_reason="length")]
        assert pair_lengths(long2short_pairs(rows)[0]) == []
        assert pair_lengths(long2short_pairs(rows, use_cut=True)[0]) == [(100, 400)]

    def test_the_cap_draws_from_the_seed(self):
        rows = [record(10), *(record(20 + place) for place in range(20))]
        assert len(long2short_pairs(rows)[0]) == 20
        drawn = [pair_lengths(long2short_pairs(rows, per_prompt=3, seed=seed)[0]) for seed in (0, 0, 1)]
        assert len(drawn[0]) == 3
        assert drawn[0] == drawn[1] != drawn[2]

    def test_a_ratio_has_to_ask_for_longer_ones(self):
        with pytest.raises(DataError, match="ratio: expected a number above 1, got 1"):
            long2short_pairs(KIMI, 1)


class TestBestWorst:
    def test_by_score_from_both_ends(self):
        rows = [record(place, score=score) for place, score in enumerate([0.1, 0.9, 0.5, 0.4, 0.2])]
        assert pair_lengths(best_worst_pairs(rows, "score")[0]) == [(1, 0)]
        # 0.9 against 0.1, then 0.5 against 0.2; 0.4 is in the middle.
        assert pair_lengths(best_worst_pairs(rows, "score", per_prompt=5)[0]) == [(1, 0), (2, 4)]

    def test_scores_that_are_alike_give_none(self):
        rows = [record(1, score=2.0), record(2, score=2.0), record(3, score=None)]
        pairs, report = best_worst_pairs(rows, "score")
        assert pairs == []
        assert report.reasons["prompts with one score"] == 1

    def test_by_verdict_a_right_one_against_a_wrong_one(self):
        pairs, report = best_worst_pairs(KIMI, per_prompt=9)
        assert len(pairs) == 2
        assert {(chosen["status"], rejected["status"]) for chosen, rejected in pairs} == {("right", "wrong")}
        assert len({id(sample) for pair in pairs for sample in pair}) == 4
        assert (report.used, report.kept) == (1, 2)

    def test_all_right_or_all_wrong_gives_none(self):
        rows = [record(1, prompt="a"), record(2, prompt="a"), record(1, "wrong", "b"), record(2, "unparsed", "b")]
        pairs, report = best_worst_pairs(rows)
        assert pairs == []
        assert report.reasons["prompts with no wrong sample"] == report.reasons["prompts with no right sample"] == 1

    def test_matched_in_length_the_nearest_go_together(self):
        rows = [record(10), record(30), record(100), record(33, "wrong"), record(12, "wrong"), record(400, "wrong")]
        pairs = pair_lengths(best_worst_pairs(rows, match="length", per_prompt=3)[0])
        assert pairs == [(10, 12), (30, 33), (100, 400)]

    def test_unmatched_the_choice_is_random_and_from_the_seed(self):
        rows = [*(record(place) for place in range(10)), *(record(place, "wrong") for place in range(10))]
        drawn = [pair_lengths(best_worst_pairs(rows, seed=seed)[0]) for seed in range(8)]
        assert len({tuple(pairs) for pairs in drawn}) > 4
        assert drawn[3] == pair_lengths(best_worst_pairs(rows, seed=3)[0])

    def test_a_cut_one_is_never_chosen(self):
        rows = [record(1, score=5.0, finish_reason="length"), record(2, score=1.0), record(3, score=0.0)]
        assert pair_lengths(best_worst_pairs(rows, "score")[0]) == [(2, 3)]
        # Nor does its score take the place of the one that may be.
        rows[0]["score"], rows[1]["score"], rows[2]["score"] = 0.9, 0.8, 0.1
        assert pair_lengths(best_worst_pairs(rows, "score", use_cut=True, per_prompt=5)[0]) == [(2, 3)]
        rows[2]["finish_reason"] = "length"
        assert pair_lengths(best_worst_pairs(rows, "score", use_cut=True, per_prompt=5)[0]) == [(2, 3)]
        rows[2]["score"] = 0.85
        pairs, report = best_worst_pairs(rows, "score", use_cut=True)
        assert (pairs, report.reasons["prompts with one score"]) == ([], 0)
        assert report.reasons["prompts whose uncut samples score lowest"] == 1
        cut = [record(1), record(2, "wrong", finish_reason="length")]
        assert best_worst_pairs(cut)[0] == []
        assert pair_lengths(best_worst_pairs(cut, use_cut=True)[0]) == [(1, 2)]

    def test_what_cannot_be_done(self):
        with pytest.raises(DataError, match="match: `length` is for `by: verifier`"):
            best_worst_pairs(KIMI, "score", match="length")
        with pytest.raises(DataError, match="by: expected one of verifier, score"):
            best_worst_pairs(KIMI, "verdict")
        with pytest.raises(DataError, match="no `score`"):
            best_worst_pairs(KIMI, "score")
