"""Metrics of a step: rows that no pass held, and passes that only fill up."""

import pytest
import torch
from accelerate import Accelerator

from trl_reasoning.losses import LossOutput
from trl_reasoning.trainers._metrics import WindowMetrics


@pytest.fixture(scope="module")
def accelerator() -> Accelerator:
    return Accelerator(cpu=True)


def output(values: torch.Tensor) -> LossOutput:
    return LossOutput(loss=values, flags={"mean": values}, minima={"least": values}, maxima={"greatest": values})


MASK = torch.tensor([[1.0, 1.0], [1.0, 0.0]])


def test_flags_of_tokens_are_0_in_left_out_tokens(accelerator):
    metrics = WindowMetrics()
    metrics.add_output(output(torch.tensor([[1.0, 0.0], [1.0, 1.0]])), MASK)
    metrics.leave_out(rows=2, tokens=5)
    assert metrics.reduce(accelerator) == {"mean": 2 / 8, "least": 0.0, "greatest": 1.0}


def test_rows_without_loss_tokens_count_for_flags_of_rows_alone(accelerator):
    """A flag a row counts rows that are masked out, as in TRL; a flag a token cannot."""
    by_row, by_token = WindowMetrics(), WindowMetrics()
    by_row.add_output(output(torch.ones(2, 1)), MASK)
    by_token.add_output(output(torch.ones(2, 2)), MASK)
    for metrics in (by_row, by_token):
        metrics.leave_out(rows=2, tokens=0)
    assert by_row.reduce(accelerator) == {"mean": 0.5, "least": 0.0, "greatest": 1.0}
    assert by_token.reduce(accelerator) == {"mean": 1.0, "least": 1.0, "greatest": 1.0}


def test_a_pass_that_fills_up_makes_the_names_known_alone(accelerator):
    metrics = WindowMetrics()
    metrics.add_output(output(torch.ones(2, 2)), MASK, is_counted=False)
    found = metrics.reduce(accelerator)
    assert found.keys() == {"mean", "least", "greatest"}
    assert all(value != value for value in found.values())
    metrics.add_output(output(torch.ones(2, 2)), MASK)
    assert metrics.reduce(accelerator)["mean"] == 1.0  # nothing is left of the step before
