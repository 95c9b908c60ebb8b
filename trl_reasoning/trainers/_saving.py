"""What a trainer writes into a saved folder."""

from typing import Any

from peft import PeftModel


class AdapterOnlySaving:
    """
    Mixin: a saved folder holds the trained adapter alone.

    TRL keeps a frozen copy of the start adapter under the name `ref` beside the trained one when training goes on from a
    saved adapter with a KL term, and PEFT would write both. The copy is made anew from the start adapter on resume, so
    nothing is lost.
    """

    def _save(self, output_dir: str | None = None, state_dict: dict | None = None) -> None:
        model: Any = self.accelerator.unwrap_model(self.model)  # type: ignore[attr-defined]
        if not isinstance(model, PeftModel) or "ref" not in model.peft_config:
            super()._save(output_dir, state_dict)  # type: ignore[misc]
            return
        reference = model.peft_config.pop("ref")
        try:
            super()._save(output_dir, state_dict)  # type: ignore[misc]
        finally:
            model.peft_config["ref"] = reference
