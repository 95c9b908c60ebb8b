"""An optimizer that forgot its past steps as a new one does."""

import pytest
import torch
from accelerate import Accelerator

from trl_reasoning.trainers._optimizer import reset_optimizer_state


def eight_bit(parameters):
    optimizers = pytest.importorskip("bitsandbytes.optim", reason="bitsandbytes (extra `quantization`) is missing")
    return optimizers.AdamW8bit(parameters, lr=0.1)


def wrapped(parameters):
    return Accelerator(cpu=True).prepare_optimizer(torch.optim.AdamW(parameters, lr=0.1))


MAKERS = {
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=0.1, amsgrad=True),
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    "accelerate": wrapped,
    "bitsandbytes": eight_bit,
}


def step(parameter, optimizer, seed: int) -> None:
    parameter.grad = torch.randn(parameter.shape, generator=torch.Generator().manual_seed(seed))
    optimizer.step()


@pytest.mark.parametrize("name", MAKERS)
def test_steps_after_a_reset_are_those_of_a_new_optimizer(name):
    old = torch.nn.Parameter(torch.zeros(8192))  # from 4096 elements on, bitsandbytes quantises
    optimizer = MAKERS[name]([old])
    for seed in range(3):
        step(old, optimizer, seed)
    new = torch.nn.Parameter(old.detach().clone())
    unreset = torch.nn.Parameter(old.detach().clone())
    reset_optimizer_state(optimizer)
    fresh = MAKERS[name]([new])
    for seed in (3, 4):
        step(old, optimizer, seed)
        step(new, fresh, seed)
    assert torch.equal(old, new)
    assert not torch.equal(old, unreset)


def test_settings_stay():
    parameter = torch.nn.Parameter(torch.zeros(4))
    optimizer = torch.optim.AdamW([parameter], lr=0.1)
    step(parameter, optimizer, 0)
    optimizer.param_groups[0]["lr"] = 0.05
    reset_optimizer_state(optimizer)
    assert optimizer.param_groups[0]["lr"] == 0.05
    assert not any(optimizer.state.values())
