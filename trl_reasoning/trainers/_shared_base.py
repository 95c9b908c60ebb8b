"""Models beside the policy: adapters with different parts on one copy of the base weights, or a frozen copy."""

import copy
import functools
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from peft import LoraConfig, PeftModel
from peft.tuners.tuners_utils import BaseTunerLayer
from peft.utils import AuxiliaryTrainingWrapper, load_peft_weights, set_peft_model_state_dict
from torch import nn
from transformers import AutoTokenizer, PreTrainedModel
from trl.trainer.utils import add_fused_lm_head

from ..errors import UserError
from ..generation.reward_model import find_file, read_score_bias, scored_token_ids


POLICY_ADAPTER = "default"
VALUE_ADAPTER = "value"
REWARD_ADAPTER = "reward"


class AdapterSwitch:
    """
    Chooses the adapter that the next forward pass goes through.

    PEFT's own `set_adapter` and `disable_adapter` also freeze every adapter that is not chosen, so that of two
    adapters in one optimizer only one would be trained. Here the choice and the training are two things.

    Args:
        model ([`~peft.PeftModel`]):
            With all its adapters.
    """

    def __init__(self, model: PeftModel):
        self._layers: list[Any] = [
            module for module in model.modules() if isinstance(module, BaseTunerLayer | AuxiliaryTrainingWrapper)
        ]

    @contextmanager
    def use(self, adapter: str | None) -> Iterator[None]:
        """Pass through this adapter, or through the bare base for None, inside the `with` block."""
        before = [(layer._active_adapter, layer._disable_adapters) for layer in self._layers]
        for layer in self._layers:
            layer._disable_adapters = adapter is None
            if adapter is not None:
                layer._active_adapter = [adapter]
        try:
            yield
        finally:
            for layer, (active, disabled) in zip(self._layers, before, strict=True):
                layer._active_adapter, layer._disable_adapters = active, disabled

    @contextmanager
    def checkpointing_through(self, trunk: nn.Module, adapter: str) -> Iterator[None]:
        """
        Make activation checkpointing recompute the passes of `trunk` inside the `with` block through `adapter`.

        The recomputation happens in the backward pass, long after `use` has switched back; without this the gradient
        would be that of another adapter, and nothing would say so.
        """

        def contexts() -> tuple[AbstractContextManager, AbstractContextManager]:
            return nullcontext(), self.use(adapter)

        checkpoints: dict[Any, Any] = {
            module: module._gradient_checkpointing_func
            for module in trunk.modules()
            if getattr(module, "gradient_checkpointing", False)
        }
        for module, checkpoint in checkpoints.items():
            module._gradient_checkpointing_func = functools.partial(checkpoint, context_fn=contexts)
        try:
            yield
        finally:
            for module, checkpoint in checkpoints.items():
                module._gradient_checkpointing_func = checkpoint


def adapter_parameters(model: PeftModel, adapter: str) -> dict[str, nn.Parameter]:
    """The parameters of one adapter, under their names in the model."""
    found = set()
    for layer in model.modules():
        if isinstance(layer, BaseTunerLayer):
            for part in layer.adapter_layer_names:
                weights = getattr(layer, part)
                if adapter in weights:
                    weight = weights[adapter]
                    found |= {id(weight)} if isinstance(weight, nn.Parameter) else set(map(id, weight.parameters()))
    return {name: parameter for name, parameter in model.named_parameters() if id(parameter) in found}


def add_adapter_copy(model: PeftModel, source: str, name: str) -> None:
    """
    Add an adapter with the weights of another one, in float32.

    Modules that the source trains in full (`modules_to_save`) are not copied: the new adapter uses the base's.

    Args:
        model ([`~peft.PeftModel`]):
            Changed in place; what is trained stays as it was.
        source, name (`str`):
            The adapter to copy, and the new one.
    """
    config = copy.deepcopy(model.peft_config[source])
    if not isinstance(config, LoraConfig):
        raise UserError(f"peft_config: expected a LoraConfig, whose base can be shared, got {type(config).__name__}")
    config.modules_to_save = None
    config.lora_dropout = 0.0  # the trainer switched dropout off before this adapter was there
    config.init_lora_weights = True  # others, such as PiSSA, change the base; the weights are copied below
    model.add_adapter(name, config)
    copies = adapter_parameters(model, name).values()
    for target, weight in zip(copies, adapter_parameters(model, source).values(), strict=True):
        target.data = weight.data.to(torch.float32, copy=True)


def frozen_copy(model: PreTrainedModel, temperature: float, cast_lm_head_to_fp32: bool) -> PreTrainedModel:
    """
    A copy of a policy as it is now, for log-probs without gradient.

    Args:
        model ([`~transformers.PreTrainedModel`]):
            With TRL's fused head.
        temperature (`float`), cast_lm_head_to_fp32 (`bool`):
            Of the fused head.
    """
    fused = model.__dict__.pop("forward")  # bound to this model; the copy gets its own below
    try:
        copied = copy.deepcopy(model)
    finally:
        model.__dict__["forward"] = fused
    add_fused_lm_head(copied, temperature=temperature, cast_lm_head_to_fp32=cast_lm_head_to_fp32)
    return copied.requires_grad_(False).eval()


class RewardAdapter:
    """
    A reward model that is a LoRA adapter on the policy's base: a reward function for the trainer.

    Args:
        path (`str`):
            Folder or hub id of an adapter trained for sequence classification with one label, on the same base. Its
            head is the saved module `score`.
    """

    __name__ = "reward_adapter"
    columns = ()

    def __init__(self, path: str):
        self.path = path
        self.head: nn.Linear | None = None

    def attach(self, model: PeftModel, tokenizer: Any, batch_size: int) -> None:
        """Load the adapter's weights beside the others of the model."""
        config: Any = LoraConfig.from_pretrained(self.path)
        weights = load_peft_weights(self.path, device="cpu")
        heads = [name for name in weights if name.endswith("score.weight")]
        if len(heads) != 1 or weights[heads[0]].size(0) != 1:
            raise UserError(
                f"reward_adapter: expected a LoRA adapter with a head `score` of one label, found "
                f"{[(name, tuple(weights[name].shape)) for name in heads] or 'no head'} in {self.path}"
            )
        head = weights.pop(heads[0])
        if head.size(1) != model.config.get_text_config().hidden_size:
            raise UserError(
                f"reward_adapter: its head takes {head.size(1)} features, the policy's base gives "
                f"{model.config.get_text_config().hidden_size}; it was trained on another base"
            )
        config.modules_to_save, config.inference_mode, config.task_type = None, True, "CAUSAL_LM"
        config.lora_dropout = 0.0
        model.add_adapter(REWARD_ADAPTER, config)
        unexpected = set_peft_model_state_dict(model, weights, adapter_name=REWARD_ADAPTER).unexpected_keys
        if unexpected:
            raise UserError(f"reward_adapter: {self.path} has weights for modules that the base lacks: {unexpected}")
        bias = read_score_bias(self.path)
        self.head = nn.Linear(head.size(1), 1, bias=bias is not None, device=model.device)
        self.head.weight.data.copy_(head)
        if bias is not None:
            self.head.bias.data.fill_(bias)
        self.head.requires_grad_(False)
        self._model, self._batch_size = model, batch_size
        # Its own, where it was saved with one: the end token, the padding and the template of its training.
        has_own = find_file(self.path, "tokenizer_config.json") is not None
        self._tokenizer = AutoTokenizer.from_pretrained(self.path) if has_own else tokenizer

    def use(self, switch: AdapterSwitch) -> None:
        """Take the switch, which has to be made when all adapters are there."""
        self._switch = switch

    @torch.no_grad()
    def __call__(self, prompts: list[Any], completions: list[Any], **kwargs: Any) -> list[float]:
        rows = [scored_token_ids(self._tokenizer, *pair) for pair in zip(prompts, completions, strict=True)]
        scores: list[float] = []
        for start in range(0, len(rows), self._batch_size):
            encoded = self._tokenizer.pad(
                {"input_ids": rows[start : start + self._batch_size]}, padding_side="right", return_tensors="pt"
            ).to(self._model.device)
            with self._switch.use(REWARD_ADAPTER):
                trunk: Any = self._model.get_base_model().base_model
                hidden = trunk(encoded["input_ids"], attention_mask=encoded["attention_mask"]).last_hidden_state
            places = torch.arange(hidden.size(1), device=hidden.device)
            # As in transformers: the last token that is not the pad token, which may be the end token.
            last = (places * (encoded["input_ids"] != self._tokenizer.pad_token_id)).argmax(dim=1)  # (N,)
            rows_of = torch.arange(len(last), device=last.device)
            scores += self.head(hidden[rows_of, last].float()).squeeze(1).tolist()  # type: ignore[misc]
        return scores
