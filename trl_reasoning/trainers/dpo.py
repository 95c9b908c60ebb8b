"""`dpo`: direct preference optimisation, against the reference that training started from or another one."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from accelerate.utils import broadcast_object_list
from datasets import Dataset
from peft import PeftModel
from trl.trainer.utils import create_model_from_path

from ..builtin import resolve_model
from ..errors import UserError, did_you_mean
from ._preference import PreferenceConfig, PreferenceTrainer


LOSS_TYPES = (
    "sigmoid", "hinge", "ipo", "exo_pair", "nca_pair", "robust", "bco_pair", "sppo_hard", "aot", "aot_unpaired",
    "apo_zero", "apo_down", "discopop", "sft", "sigmoid_norm",
)  # fmt: skip


@dataclass
class ReasoningDPOConfig(PreferenceConfig):
    r"""
    DPO ([paper](https://huggingface.co/papers/2305.18290), Equation 7): $-\log\sigma(z)$ with

    $$z = \beta\left[\left(\log\pi(y_w|x) - \log\pi_{\mathrm{ref}}(y_w|x)\right) - \left(\log\pi(y_l|x) -
    \log\pi_{\mathrm{ref}}(y_l|x)\right)\right]$$

    The defaults are the paper's: `loss_type` `sigmoid`, `beta` 0.1, `learning_rate` 1e-6. The other losses of TRL can
    be named, `[sigmoid, sft]` with `loss_weights` among them; the length-normalised one is `method: ln_dpo`.

    Args:
        ref_model_name_or_path (`str`, *optional*):
            Folder or hub id of another reference than the model that training starts from: a whole model, not an
            adapter. It is loaded as the policy is (dtype, 4-bit).
        precompute_ref_log_probs (`bool`, *optional*):
            Whether the reference's log-probs of all rows are computed before training. Unset, they are wherever a
            second model would be held otherwise, in full fine-tuning and with `ref_model_name_or_path`: one model
            less in memory, and one forward pass less in a step. With LoRA the reference is the base with the adapter
            off (or the frozen start adapter), and nothing is saved. The computation covers the whole data set; set
            False where a run is to see a small part of it only.
    """

    precompute_ref_log_probs: bool | None = field(  # type: ignore[assignment]
        default=None,
        metadata={"help": "Reference log-probs before training. Unset: where a second model would be held otherwise."},
    )
    ref_model_name_or_path: str | None = field(
        default=None, metadata={"help": "Another reference than the model that training starts from."}
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in self.loss_type:
            if name not in LOSS_TYPES:
                raise ValueError(
                    f"loss_type: expected some of {list(LOSS_TYPES)}, got {name!r}.{did_you_mean(name, LOSS_TYPES)}"
                )
        if self.precompute_ref_log_probs and self.sync_ref_model:
            raise ValueError(
                "precompute_ref_log_probs: sync_ref_model renews the reference, whose log-probs cannot be computed "
                "before; set it to false"
            )
        self._check_loss()

    def _check_loss(self) -> None:
        if "sigmoid_norm" in self.loss_type:
            raise ValueError(
                "loss_type: sigmoid_norm is length-normalised and needs a beta some fifty times as high; use "
                "`method: ln_dpo`"
            )


class ReasoningDPOTrainer(PreferenceTrainer):
    """
    [`~trl.DPOTrainer`] that holds no second model where it can do without.

    Args:
        model (`str` or [`~transformers.PreTrainedModel`] or [`~peft.PeftModel`]):
            The policy.
        ref_model ([`~transformers.PreTrainedModel`], *optional*):
            The reference, already loaded; see also `ref_model_name_or_path`.
        args ([`ReasoningDPOConfig`], *optional*):
            The configuration.
        train_dataset ([`~datasets.Dataset`]):
            Rows with `prompt`, `chosen` and `rejected`.
        kwargs:
            As for [`~trl.DPOTrainer`].

    Example:

    ```python
    from trl_reasoning import ReasoningDPOConfig, ReasoningDPOTrainer, resolve_model
    from trl_reasoning.builtin import make_chain_pairs_dataset

    trainer = ReasoningDPOTrainer(
        model=resolve_model("builtin:tiny"),
        args=ReasoningDPOConfig(output_dir="out", max_steps=10, use_cpu=True, bf16=False),
        train_dataset=make_chain_pairs_dataset(size=64),
    )
    trainer.train()
    ```
    """

    _tag_names = ["trl", "dpo", "trl-reasoning"]

    def __init__(
        self,
        model: Any,
        ref_model: Any = None,
        args: ReasoningDPOConfig | None = None,
        train_dataset: Any = None,
        quantization_config: Any = None,
        peft_config: Any = None,
        **kwargs: Any,
    ):
        if args is None:
            args = ReasoningDPOConfig(output_dir="outputs/dpo")
        self._has_released_reference = False
        is_named = args.ref_model_name_or_path is not None
        if is_named and ref_model is not None:
            raise UserError("ref_model_name_or_path: a `ref_model` was passed as well; give one of the two")
        if args.precompute_ref_log_probs is None:
            has_adapter = peft_config is not None or isinstance(model, PeftModel)
            needs_model = is_named or ref_model is not None or not has_adapter
            args.precompute_ref_log_probs = needs_model and _can_precompute(args, train_dataset)
        if is_named:
            ref_model = _load_reference(args, model, quantization_config)
        super().__init__(
            model,
            ref_model=ref_model,
            args=args,
            train_dataset=train_dataset,
            quantization_config=quantization_config,
            peft_config=peft_config,
            **kwargs,
        )
        if is_named and args.precompute_ref_log_probs:
            # Nothing else is prepared yet: the policy will be when training starts.
            self.ref_model = None
            self.accelerator.free_memory()
            self._has_released_reference = True

    @property
    def collapse_advice(self) -> str:
        return "raise beta, lower learning_rate or add sft to loss_type"

    def _precompute_ref_logps(self, dataset: Dataset, name: str, batch_size: int) -> Dataset:
        if self._has_released_reference:
            raise UserError(
                "precompute_ref_log_probs: the reference is no longer in memory; give this data set as `eval_dataset` "
                "when the trainer is made, or set it to false"
            )
        if self.accelerator.num_processes > 1 and not dataset.cache_files:
            _share_cache(dataset)
        return super()._precompute_ref_logps(dataset, name, batch_size)


def _can_precompute(args: ReasoningDPOConfig, train_dataset: Any) -> bool:
    """TRL computes for a set of text rows, whose reference stays the same."""
    is_text = isinstance(train_dataset, Dataset) and not {"image", "images"} & set(train_dataset.column_names)
    return is_text and not args.sync_ref_model


def _share_cache(dataset: Any) -> None:
    """
    Let all processes look for the file of log-probs where the first one writes it.

    For rows in memory that is a temporary folder, which each process has of its own.
    """
    folders = [str(Path(dataset._get_cache_file_path("")).parent)]
    broadcast_object_list(folders, from_process=0)
    dataset._get_cache_file_path = lambda fingerprint: str(Path(folders[0]) / f"cache-{fingerprint}.arrow")


def _load_reference(args: ReasoningDPOConfig, policy: Any, quantization_config: Any) -> Any:
    path = resolve_model(str(args.ref_model_name_or_path))
    if (Path(path) / "adapter_config.json").is_file() and not (Path(path) / "config.json").is_file():
        raise UserError(
            f"ref_model_name_or_path: {path} holds an adapter alone; merge it into its base with "
            "`trl-reasoning export`"
        )
    settings: dict[str, Any] = dict(cast(dict, args.model_init_kwargs) or {})
    settings.pop("revision", None)  # the policy's
    if quantization_config is not None:
        settings["quantization_config"] = quantization_config
    if not isinstance(policy, str):
        settings.setdefault("dtype", policy.dtype)
        settings.setdefault("attn_implementation", policy.config._attn_implementation)
        if getattr(policy.config, "quantization_config", None) is not None:  # only quantised models have it
            settings.setdefault("quantization_config", policy.config.quantization_config)
    settings.setdefault("trust_remote_code", args.trust_remote_code)
    # "auto" would spread each process's model over all devices.
    if cast(Any, args.distributed_state).distributed_type in ("MULTI_GPU", "DEEPSPEED"):
        settings["device_map"] = None
    return create_model_from_path(path, **settings)
