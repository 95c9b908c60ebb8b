"""Grouping rows by length, without a model."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from trl_reasoning.trainers._packing import (
    RowLengths,
    join_batches,
    plan_passes,
    row_lengths,
    split_to_count,
    take_rows,
)


KEYS = frozenset(("completion_ids", "completion_mask", "importance_sampling_ratio"))


def batch_of(prompts: list[int], completions: list[int]) -> dict:
    """Each row's tokens are its own number, so that a mix-up shows."""
    rows, width_p, width_c = len(prompts), max(prompts), max(completions)
    number = torch.arange(1, rows + 1).unsqueeze(1)
    prompt_mask = (torch.arange(width_p) >= width_p - torch.tensor(prompts).unsqueeze(1)).long()
    mask = (torch.arange(width_c) < torch.tensor(completions).unsqueeze(1)).long()
    return {
        "prompt_ids": number * prompt_mask,
        "prompt_mask": prompt_mask,
        "completion_ids": number * mask,
        "completion_mask": mask,
        "advantages": number.squeeze(1).float(),
        "num_items_in_batch": torch.tensor(3),
    }


def test_lengths_are_read_from_the_masks():
    assert row_lengths(batch_of([2, 4], [5, 1])) == RowLengths(prompt=[2, 4], completion=[5, 1])


def test_a_hole_in_the_mask_does_not_shorten_a_row():
    batch = batch_of([1], [5])
    batch["completion_mask"] = torch.tensor([[1, 0, 1, 1, 0]])
    assert row_lengths(batch).completion == [4]


def test_a_row_that_is_masked_out_has_one_token():
    batch = batch_of([1], [5])
    batch["completion_mask"] = torch.zeros(1, 5, dtype=torch.long)
    assert row_lengths(batch).completion == [1]


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 60)), min_size=1, max_size=40),
    st.integers(1, 300),
    st.integers(1, 12),
)
def test_every_row_once_within_the_budget(sizes, budget, count):
    lengths = RowLengths(prompt=[p for p, _ in sizes], completion=[c for _, c in sizes])
    passes = plan_passes(lengths, range(len(sizes)), budget)
    assert sorted(row for rows in passes for row in rows) == list(range(len(sizes)))
    assert all(lengths.padded(rows) <= budget or len(rows) == 1 for rows in passes)
    split = split_to_count(passes, lengths, count)
    assert sorted(row for rows in split for row in rows) == list(range(len(sizes)))
    assert len(split) == max(len(passes), min(count, len(sizes)))
    assert all(rows for rows in split)


def test_rows_are_cut_and_stay_together():
    batch = batch_of([2, 4, 3], [5, 1, 2])
    lengths = row_lengths(batch)
    taken = take_rows({key: value for key, value in batch.items() if value.dim()}, [2, 1], lengths, KEYS)
    assert taken["prompt_ids"].tolist() == [[0, 3, 3, 3], [2, 2, 2, 2]]
    assert taken["completion_ids"].tolist() == [[3, 3], [2, 0]]
    assert taken["advantages"].tolist() == [3.0, 2.0]


def test_batches_of_different_widths_are_joined():
    joined = join_batches([batch_of([2], [3]), batch_of([1], [4])], KEYS)
    assert joined["prompt_ids"].tolist() == [[1, 1], [0, 1]]
    assert joined["completion_ids"].tolist() == [[1, 1, 1, 0], [1, 1, 1, 1]]
    assert "num_items_in_batch" not in joined


def test_a_batch_of_one_token_is_joined_with_a_longer_one():
    joined = join_batches([batch_of([1, 1], [1, 1]), batch_of([2], [3])], KEYS)
    assert joined["completion_ids"].tolist() == [[1, 0, 0], [2, 0, 0], [1, 1, 1]]
    assert joined["completion_mask"].tolist() == [[1, 0, 0], [1, 0, 0], [1, 1, 1]]


def test_a_ratio_a_row_is_joined_as_it_is():
    batches = [{**batch_of([1], [width]), "importance_sampling_ratio": torch.full((1, 1), 0.5)} for width in (1, 3)]
    assert join_batches(batches, KEYS)["importance_sampling_ratio"].tolist() == [[0.5], [0.5]]


@pytest.mark.parametrize("width", [1, 5])
def test_a_ratio_a_row_is_kept_whole(width):
    batch = {**batch_of([1, 1], [5, 2]), "importance_sampling_ratio": torch.arange(2 * width).view(2, width)}
    del batch["num_items_in_batch"]
    taken = take_rows(batch, [1], row_lengths(batch), KEYS)
    assert taken["importance_sampling_ratio"].shape == (1, min(width, 2))
