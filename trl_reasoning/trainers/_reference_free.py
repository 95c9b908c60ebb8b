"""DPO's trainer without a reference model."""

from typing import Any

from ..errors import UserError
from ._preference import PreferenceTrainer


class ReferenceFreeTrainer(PreferenceTrainer):
    """
    [`~trl.DPOTrainer`] that loads, copies and runs no reference; a subclass writes `preference_loss` and nothing else.

    The parent is told that there is a reference, so that it makes none (a second model, or a copy of the start
    adapter), and reads log-probs of 0 for it where its loss wants them.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        if kwargs.get("ref_model") is not None:
            raise UserError("ref_model: this method has no reference model; remove it")
        super().__init__(*args, **{**kwargs, "ref_model": _NO_REFERENCE})

    @property
    def ref_model(self) -> None:  # type: ignore[override]
        """There is none, whatever the parent was given."""

    @ref_model.setter
    def ref_model(self, value: Any) -> None:
        pass

    def _compute_loss(self, model: Any, inputs: dict[str, Any], return_outputs: bool) -> Any:
        rows = len(inputs["input_ids"]) // 2
        zeros = inputs["input_ids"].new_zeros(rows).float()
        # For the loss alone: `evaluate` would go and compute them, with a model that is not there.
        self.precompute_ref_logps = True
        try:
            references = {"ref_chosen_logps": zeros, "ref_rejected_logps": zeros}
            return super()._compute_loss(model, {**inputs, **references}, return_outputs)
        finally:
            self.precompute_ref_logps = False


_NO_REFERENCE = object()
