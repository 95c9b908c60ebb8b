"""From hidden states to logits, for losses and scores that never hold the logits of all positions."""

from collections.abc import Callable
from typing import Any


def backbone_of(model: Any) -> Any:
    """
    The part of a causal language model below its head of logits, adapters included.

    Args:
        model ([`~transformers.PreTrainedModel`] or [`~peft.PeftModel`]):
            The model, unwrapped.
    """
    from peft import PeftModel

    return (model.get_base_model() if isinstance(model, PeftModel) else model).base_model


def logit_head(model: Any) -> Callable[[Any], Any]:
    """
    The head of a causal language model with what its own forward pass does to the logits.

    Args:
        model ([`~transformers.PreTrainedModel`] or [`~peft.PeftModel`]):
            The model, unwrapped.

    Returns:
        `Callable`: from hidden states (..., H) to logits (..., V).
    """
    head, config = model.get_output_embeddings(), model.config.get_text_config()
    scale = _scale(config)
    softcap = getattr(config, "final_logit_softcapping", None)

    def logits(hidden_states: Any) -> Any:
        values = head(hidden_states)
        if scale != 1.0:
            values = values * scale
        return values if softcap is None else softcap * (values / softcap).tanh()

    return logits


def _scale(config: Any) -> float:
    """Most families have none of these settings; a setting of None is none."""
    for name in ("logit_scale", "output_multiplier", "lm_head_multiplier"):  # Cohere, Muse Glimmer, Falcon-H1
        if getattr(config, name, None) is not None:
            return getattr(config, name)
    scaling = getattr(config, "logits_scaling", None)  # Granite divides, HyperCLOVA X multiplies
    if scaling is None:
        return 1.0
    return scaling if config.model_type == "hyperclovax" else 1 / scaling
