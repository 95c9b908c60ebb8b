"""What a trainer writes into a saved folder."""

import shutil
from pathlib import Path
from typing import Any

from peft import PeftModel


class AdapterOnlySaving:
    """
    Mixin: a saved folder holds the trained adapter alone.

    TRL keeps a frozen copy of the start adapter under the name `ref` beside the trained one when training goes on from
    a saved adapter with a KL term, and a method may keep more adapters on the same base; PEFT would write them all.
    Nothing is lost: on resume the copy is made anew from the start adapter, and what a method trains beside the policy
    it writes into its checkpoints itself.
    """

    def _save(self, output_dir: str | None = None, state_dict: dict | None = None) -> None:
        super()._save(output_dir, state_dict)  # type: ignore[misc]
        model: Any = self.accelerator.unwrap_model(self.model)  # type: ignore[attr-defined]
        if isinstance(model, PeftModel) and self.args.should_save:  # type: ignore[attr-defined]
            for adapter in model.peft_config.keys() - {"default"}:
                shutil.rmtree(Path(output_dir or self.args.output_dir) / adapter, ignore_errors=True)  # type: ignore[attr-defined]
