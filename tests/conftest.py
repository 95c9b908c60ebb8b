"""Settings and fixtures of all tests."""

import os
from pathlib import Path

import pytest


# Before any library reads them: no hub, no telemetry, quiet progress bars.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
os.environ.setdefault("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """Folder with shared cases and data sets; tests that need it are skipped where it is absent."""
    default = Path(__file__).resolve().parents[2] / "shared"
    path = Path(os.environ.get("TRL_REASONING_SHARED", default))
    if not path.is_dir():
        pytest.skip(f"no shared cases at {path}; set TRL_REASONING_SHARED to their folder")
    return path
