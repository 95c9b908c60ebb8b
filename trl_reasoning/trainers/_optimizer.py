"""Forgetting what an optimizer has gathered, in the middle of a run."""

from typing import Any


# What bitsandbytes gathers; the other entries of its states are lookup tables.
_BITSANDBYTES_BUFFERS = ("state1", "state2", "absmax1", "absmax2", "unorm_vec")


def reset_optimizer_state(optimizer: Any) -> None:
    """
    Put an optimizer back to where it knows no gradient; learning rates and other settings stay.

    Args:
        optimizer ([`~torch.optim.Optimizer`]):
            One of torch, bitsandbytes or accelerate. The states of bitsandbytes are cleared in place, since its paged
            memory is never given back.
    """
    states = optimizer.state
    for state in states.values():
        if "state1" not in state:
            state.clear()
            continue
        state["step"] = 0
        for name in _BITSANDBYTES_BUFFERS:
            if name in state:
                state[name].zero_()
