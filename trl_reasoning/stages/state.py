"""`stage.json`: what a stage was started with and how it ended."""

import json
import os
from pathlib import Path
from typing import Any


STATE_FILE = "stage.json"


def read_state(folder: Path) -> dict[str, Any]:
    """
    What is known of a stage.

    Args:
        folder (`Path`):
            The stage's folder.

    Returns:
        `dict[str, Any]`: `name`, `kind`, `role`, `status` (`running`, `finished`, `failed` or `interrupted`),
        `fingerprint`, `run`, `settings`, `version`, `seconds` (wall time of all its parts) and `command`; empty where
        the stage never ran.
    """
    path = folder / STATE_FILE
    return json.loads(path.read_text()) if path.is_file() else {}


def write_state(folder: Path, state: dict[str, Any]) -> None:
    """Write `stage.json` in one step, so that a killed pipeline leaves the old or the new one."""
    scratch = folder / f"{STATE_FILE}.tmp"
    scratch.write_text(json.dumps(state, indent=2, default=str) + "\n")
    os.replace(scratch, folder / STATE_FILE)
