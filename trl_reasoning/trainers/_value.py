"""The value function of PPO: a head on the policy's trunk, on an adapter of its own, or on a model of its own."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from peft import PeftModel
from torch import nn
from transformers import PreTrainedModel
from trl.trainer.utils import disable_dropout_in_model

from ..errors import UserError
from ._shared_base import (
    POLICY_ADAPTER,
    REWARD_ADAPTER,
    VALUE_ADAPTER,
    AdapterSwitch,
    adapter_parameters,
    add_adapter_copy,
)


# The name under which the policy holds it, so that one optimizer, one gradient norm and one reducer have both.
NAME = "value_function"
FILE = "value_model.pt"


class ValueFunction(nn.Module):
    """
    Values of the states in which a completion's tokens were sampled.

    The value of token t is read where the policy predicts it, from the hidden state of the token before it.

    Args:
        head (`torch.nn.Linear`):
            From hidden size to 1, in float32.
    """

    def __init__(self, head: nn.Linear):
        super().__init__()
        self.head = head.float()

    def trained_parameters(self) -> dict[str, nn.Parameter]:
        """All that is trained for the value alone, for the checkpoint."""
        return {f"{NAME}.{name}": parameter for name, parameter in self.named_parameters()}

    def hidden_states(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """(N, L, H) of the value's trunk."""
        raise NotImplementedError

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Around the policy's forward pass, which gives the hidden states where the trunk is shared."""
        yield

    def forward(self, batch: dict[str, Any]) -> torch.Tensor:
        """(N, T) values of the completion tokens of a batch with prompts on the left and completions on the right."""
        hidden = self.hidden_states(
            torch.cat([batch["prompt_ids"], batch["completion_ids"]], dim=1),
            torch.cat([batch["prompt_mask"], batch["completion_mask"]], dim=1),
        )
        prompt = batch["prompt_ids"].size(1)
        return self.head(hidden[:, prompt - 1 : -1].float()).squeeze(-1)


class SharedValue(ValueFunction):
    """A head on the policy's own hidden states: they come from the pass that gives the log-probs."""

    def __init__(self, head: nn.Linear, trunk: nn.Module):
        super().__init__(head)
        self._heard: list[torch.Tensor] = []
        self._listens = False
        trunk.register_forward_hook(self._hear)

    def _hear(self, module: nn.Module, args: Any, output: Any) -> None:
        if self._listens:
            self._heard.append(output.last_hidden_state)

    @contextmanager
    def listening(self) -> Iterator[None]:
        self._heard.clear()
        self._listens = True
        try:
            yield
        finally:
            self._listens = False

    def hidden_states(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        hidden = torch.cat(self._heard)
        self._heard.clear()
        return hidden


class AdapterValue(ValueFunction):
    """A head on an adapter of its own on the policy's base."""

    def __init__(self, head: nn.Linear, model: PeftModel, switch: AdapterSwitch):
        super().__init__(head)
        # Not as a submodule: the policy holds this module, and the trunk already.
        self._shared = (model, switch)

    def trained_parameters(self) -> dict[str, nn.Parameter]:
        return super().trained_parameters() | adapter_parameters(self._shared[0], VALUE_ADAPTER)

    def hidden_states(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        model, switch = self._shared
        trunk: Any = model.get_base_model().base_model
        with switch.use(VALUE_ADAPTER), switch.checkpointing_through(trunk, VALUE_ADAPTER):
            return trunk(input_ids, attention_mask=attention_mask, use_cache=False).last_hidden_state


class SeparateValue(ValueFunction):
    """A model of its own with its head."""

    def __init__(self, head: nn.Linear, trunk: nn.Module):
        super().__init__(head)
        self.trunk = trunk

    def hidden_states(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        return self.trunk(input_ids, attention_mask=attention_mask, use_cache=False).last_hidden_state


def make_value_function(
    policy: Any, start: str, reward_model: PreTrainedModel | None, reward_head: nn.Linear | None
) -> ValueFunction:
    """
    Make the value function and hang it on the policy, from whose parameters the optimizer is made.

    Args:
        policy ([`~transformers.PreTrainedModel`] or [`~peft.PeftModel`]):
            Gets the attribute `value_function`.
        start (`"shared"`, `"policy"` or `"reward"`):
            What its trunk is: the policy's own, a copy of the policy's, a copy of the reward model's.
        reward_model ([`~transformers.PreTrainedModel`], *optional*):
            For `"reward"` without adapters.
        reward_head (`torch.nn.Linear`, *optional*):
            For `"reward"` with adapters: the head of the reward adapter.
    """
    is_peft = isinstance(policy, PeftModel)
    trunk: Any = (policy.get_base_model() if is_peft else policy).base_model
    head = nn.Linear(policy.config.get_text_config().hidden_size, 1)
    # Zero: the first advantages are the rewards themselves, not a random head's noise.
    nn.init.zeros_(head.weight)
    nn.init.zeros_(head.bias)
    if start == "shared":
        value: ValueFunction = SharedValue(head, trunk)
    elif is_peft:
        add_adapter_copy(policy, REWARD_ADAPTER if start == "reward" else POLICY_ADAPTER, VALUE_ADAPTER)
        if start == "reward" and reward_head is not None:
            _copy_head(reward_head, head)
        for parameter in adapter_parameters(policy, VALUE_ADAPTER).values():
            parameter.requires_grad_(True)
        value = AdapterValue(head, policy, AdapterSwitch(policy))
    elif start == "reward" and reward_model is not None:
        _check_reward_model(reward_model, policy)
        _copy_head(reward_model.score, head)  # type: ignore[arg-type]
        copied: Any = copy.deepcopy(reward_model.base_model)
        disable_dropout_in_model(copied)
        value = SeparateValue(head, copied.to(policy.dtype).requires_grad_(True))
    else:
        value = SeparateValue(head, copy.deepcopy(trunk))
    value.to(policy.device)
    policy.add_module(NAME, value)
    return value


def _copy_head(source: nn.Linear, head: nn.Linear) -> None:
    head.weight.data.copy_(source.weight)
    if source.bias is not None:  # scores that were centred on demonstrations
        head.bias.data.copy_(source.bias)


def _check_reward_model(reward_model: PreTrainedModel, policy: PreTrainedModel) -> None:
    """Its trunk has to read the policy's tokens, and its head to be one number for each hidden state."""
    head = getattr(reward_model, "score", None)
    size, wanted = reward_model.config.get_text_config().vocab_size, policy.config.get_text_config().vocab_size
    problem = None
    if not isinstance(head, nn.Linear) or head.out_features != 1:
        problem = f"{type(reward_model).__name__} has no linear head `score` of one label"
    elif head.in_features != policy.config.get_text_config().hidden_size:
        problem = f"the reward model's hidden size is {head.in_features}, the policy's another"
    elif size != wanted:
        problem = f"the reward model's vocabulary has {size} entries, the policy's {wanted}"
    if problem is not None:
        raise UserError(f"value_model: a value function cannot start from this reward model, {problem}; use `policy`")


@contextmanager
def without_value(policy: Any) -> Iterator[None]:
    """The policy alone inside the `with` block: what is saved, loaded and sent to an engine."""
    value = policy._modules.pop(NAME, None)
    try:
        yield
    finally:
        if value is not None:
            policy._modules[NAME] = value


def save_value(value: ValueFunction, folder: str) -> None:
    """Write the value's own weights into a checkpoint."""
    weights = {name: parameter.detach().cpu() for name, parameter in value.trained_parameters().items()}
    torch.save(weights, Path(folder) / FILE)


def load_value(value: ValueFunction, folder: str) -> None:
    """
    Read them back, in place.

    Raises:
        FileNotFoundError: The checkpoint has none.
        [`~trl_reasoning.errors.UserError`]: They are those of another kind of value function.
    """
    path = Path(folder) / FILE
    if not path.exists():
        raise FileNotFoundError(f"resume_from_checkpoint: {folder} has no {FILE}; it was not written by ppo")
    weights, own = torch.load(path, weights_only=True), value.trained_parameters()
    if weights.keys() != own.keys():
        raise UserError(
            f"resume_from_checkpoint: {path} holds another kind of value function; keep `value_model` and the "
            "adapter's settings as they were"
        )
    for name, parameter in own.items():
        parameter.data.copy_(weights[name])
