"""A frozen reference policy that can be renewed, with full fine-tuning and with adapters, and is checkpointed."""

import copy
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed.checkpoint as dcp
from peft import LoraConfig, PeftModel

from ..errors import UserError


# TRL reads its reference from an adapter of this name where there is one, and from the bare base otherwise.
REFERENCE_ADAPTER = "ref"
_TRAINED_ADAPTER = re.compile(r"\.default(?=\.|$)")


class RenewableReference:
    """
    Mixin for subclasses of [`~trl.GRPOTrainer`]: the reference of the KL term is replaced by the policy now and then.

    TRL's keys drive it. `sync_ref_model: true` renews every `ref_model_sync_steps` optimizer steps,
    `ref_model_mixup_alpha` is the policy's share in the new reference. Unlike TRL's own callback it works with an
    adapter, too (with a share of 1): the reference is then a frozen adapter named `ref` beside the trained one, which
    costs some megabytes.

    When: the log-probabilities of the reference are computed once, when a batch of completions is generated, and serve
    every update on that batch. So the reference changes between two such batches and never inside one: before the
    first generation at or after every `ref_model_sync_steps` steps, which makes the reference the very policy that
    samples next (DeepSeekMath, [paper](https://huggingface.co/papers/2402.03300), Algorithm 1, line 3; every 400 steps
    in [DeepSeek-R1](https://huggingface.co/papers/2501.12948)). Evaluation never renews it.

    A checkpoint gets the folder `reference` with the weights and the step that they are from. A full reference that
    was not renewed yet is left out, since it is the model that the run starts from.

    A subclass with another rhythm overrides [`renews_reference`] and [`is_reference_due`].
    """

    def __init__(self, model: Any, reward_funcs: Any = None, args: Any = None, *rest: Any, **kwargs: Any):
        is_synced = args is not None and args.sync_ref_model
        if args is not None:
            args.sync_ref_model = False  # TRL's callback refuses adapters and acts inside a generation batch
        super().__init__(model, reward_funcs, args, *rest, **kwargs)  # type: ignore[call-arg]
        self.args.sync_ref_model = is_synced  # type: ignore[has-type]
        self._reference_step = 0
        if not self.renews_reference:
            return
        if self.beta == 0.0:  # type: ignore[attr-defined]
            raise ValueError("beta: a reference that is renewed needs a KL term, expected more than 0, got 0")
        if self.is_deepspeed_enabled and self.accelerator.state.deepspeed_plugin.zero_stage == 3:  # type: ignore[attr-defined]
            raise UserError(
                "sync_ref_model: not with DeepSpeed ZeRO-3, where no process holds whole weights to copy; use ZeRO-2 "
                "or FSDP2"
            )
        policy = self._unwrapped(self.model)  # type: ignore[attr-defined]
        if isinstance(policy, PeftModel):
            mixup = self.args.ref_model_mixup_alpha  # type: ignore[attr-defined]
            if mixup != 1.0:
                # A mixture of the factors A and B is not the factors of a mixture.
                raise UserError(
                    "ref_model_mixup_alpha: expected 1.0 with an adapter, whose two factors cannot be mixed, got "
                    f"{mixup}"
                )
            add_reference_adapter(policy)

    @property
    def renews_reference(self) -> bool:
        """Whether the reference changes during the run; fixed once the trainer is made."""
        return self.args.sync_ref_model  # type: ignore[attr-defined]

    def is_reference_due(self) -> bool:
        """Whether to renew before the generation that is about to start."""
        every = self.args.ref_model_sync_steps  # type: ignore[attr-defined]
        return self.state.global_step // every > self._reference_step // every  # type: ignore[attr-defined]

    @torch.no_grad()
    def renew_reference(self, mixup: float = 1.0) -> None:
        r"""
        Set the reference to $\alpha\pi + (1-\alpha)\pi_{ref}$ of the weights, in place.

        Args:
            mixup (`float`, *optional*, defaults to `1.0`):
                $\alpha$ in (0, 1]; 1 copies the policy exactly.
        """
        for target, source in self._reference_pairs():
            if mixup == 1.0:
                target.copy_(source)
            else:
                target.mul_(1.0 - mixup).add_(source.to(target.dtype), alpha=mixup)
        self._reference_step = self.state.global_step  # type: ignore[attr-defined]

    def _generate_and_score_completions(self, inputs: Any) -> dict[str, Any]:
        if self.renews_reference and self.model.training:  # type: ignore[attr-defined]
            if self.is_reference_due():
                self.renew_reference(self.args.ref_model_mixup_alpha)  # type: ignore[attr-defined]
            self._metrics["train"]["reference/step"].append(float(self._reference_step))  # type: ignore[attr-defined]
        return super()._generate_and_score_completions(inputs)  # type: ignore[misc]

    def _save_rng_state(self, output_dir: str) -> None:
        super()._save_rng_state(output_dir)  # type: ignore[misc]
        is_start = self.ref_model is not None and self._reference_step == 0  # type: ignore[attr-defined]
        if self.renews_reference and not is_start:
            with _quiet_single_process():
                dcp.save(self._reference_state(), checkpoint_id=_reference_folder(output_dir))

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)  # type: ignore[misc]
        if checkpoint is None or not self.renews_reference:
            return
        folder = _reference_folder(checkpoint)
        if os.path.isdir(folder):
            state = self._reference_state()
            with _quiet_single_process():
                dcp.load(state, checkpoint_id=folder)  # into the tensors in place
            self._reference_step = int(state["step"])

    def _reference_state(self) -> dict[str, Any]:
        policy = self._unwrapped(self.model)  # type: ignore[attr-defined]
        if isinstance(policy, PeftModel):
            names = [_reference_name(name) for name in _trained_names(policy)]
            weights = {name: policy.get_parameter(name).data for name in names}
        else:
            weights = self._unwrapped(self.ref_model).state_dict()  # type: ignore[attr-defined]
        return {"step": torch.tensor(self._reference_step), "weights": weights}

    def _reference_pairs(self) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """The reference's parameters, each with the policy's."""
        policy = self._unwrapped(self.model)  # type: ignore[attr-defined]
        if isinstance(policy, PeftModel):
            names = _trained_names(policy)
            return [(policy.get_parameter(_reference_name(name)), policy.get_parameter(name)) for name in names]
        reference = self._unwrapped(self.ref_model)  # type: ignore[attr-defined]
        return list(zip(reference.parameters(), policy.parameters(), strict=True))

    def _unwrapped(self, model: Any) -> Any:
        return self.accelerator.unwrap_model(model)  # type: ignore[attr-defined]


def check_reference_keys(args: Any) -> None:
    """
    Check the keys of a renewed reference.

    Args:
        args ([`~trl.GRPOConfig`]):
            The configuration.

    Raises:
        ValueError: `sync_ref_model` without a KL term, or a rhythm or share out of range.
    """
    if not args.sync_ref_model:
        return
    if args.beta == 0.0:
        raise ValueError(
            "sync_ref_model: renews the reference of the KL term, which `beta: 0` switches off; set beta (0.04 in "
            "DeepSeekMath, 0.001 in DeepSeek-R1) or remove the key"
        )
    if args.ref_model_sync_steps < 1:
        raise ValueError(f"ref_model_sync_steps: expected at least 1 step, got {args.ref_model_sync_steps}")
    if not 0.0 < args.ref_model_mixup_alpha <= 1.0:
        raise ValueError(
            f"ref_model_mixup_alpha: expected a share in (0, 1] (1.0 copies the policy), got "
            f"{args.ref_model_mixup_alpha}"
        )


def add_reference_adapter(model: PeftModel) -> None:
    """Put a frozen copy of the trained adapter beside it; one that TRL has made is brought up to date."""
    if REFERENCE_ADAPTER not in model.peft_config:
        config = copy.deepcopy(model.peft_config["default"])
        if isinstance(config, LoraConfig):
            config.init_lora_weights = True  # others, such as PiSSA, change the base; the weights are copied anyway
            config.lora_dropout = 0.0  # the trainer has switched dropout off already, in the modules that it found
        model.add_adapter(REFERENCE_ADAPTER, config)
    for name in _trained_names(model):
        reference = model.get_parameter(_reference_name(name))
        # In the trained adapter's own format: in a coarser one, the two would differ at step 0.
        reference.data = model.get_parameter(name).data.clone()
        reference.requires_grad_(False)


def _trained_names(model: PeftModel) -> list[str]:
    return [name for name, _ in model.named_parameters() if _TRAINED_ADAPTER.search(name)]


def _reference_name(name: str) -> str:
    return _TRAINED_ADAPTER.sub(f".{REFERENCE_ADAPTER}", name)


def _reference_folder(checkpoint: str) -> str:
    return os.path.join(checkpoint, "reference")


@contextmanager
def _quiet_single_process() -> Iterator[None]:
    """torch warns that a checkpoint written by one process is written by one process."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "torch.distributed is disabled, unavailable or uninitialized")
        yield
