"""
Run one experiment: `python benchmarks/run.py NAME`.

Settings are `benchmarks/defaults.yaml` with `benchmarks/experiments/NAME.yaml` over it; the key `measure: X` of an
experiment names the module `measure_X.py` that runs it. The result goes to `benchmarks/results/NAME.json`; the last
line that is printed sums it up.
"""

import argparse
import importlib
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml


FOLDER = Path(__file__).resolve().parent
PACKAGES = ("trl-reasoning", "torch", "transformers", "trl", "peft", "accelerate", "datasets")


def main(argv: list[str] | None = None) -> int:
    """Run the experiment that the command line names."""
    names = experiment_names()
    parser = argparse.ArgumentParser(description="Run one experiment and write its result.")
    parser.add_argument("name", choices=names, metavar="NAME", help=", ".join(names))
    name = parser.parse_args(argv).name
    settings = load_settings(name)
    started = time.monotonic()
    figures, summary = importlib.import_module(f"measure_{settings['measure']}").measure(name, settings)
    result = {
        "name": name,
        "summary": summary,
        "figures": figures,
        "settings": settings,
        "environment": environment(),
        "seconds": round(time.monotonic() - started, 1),
    }
    path = FOLDER / "results" / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(result, indent=2) + "\n")
    print(f"{name}: {summary}")
    return 0


def experiment_names() -> list[str]:
    """Names of the experiments there are."""
    return sorted(path.stem for path in (FOLDER / "experiments").glob("*.yaml"))


def load_settings(name: str) -> dict[str, Any]:
    """The defaults with the experiment's own settings over them."""
    defaults = yaml.safe_load((FOLDER / "defaults.yaml").read_text())
    own = yaml.safe_load((FOLDER / "experiments" / f"{name}.yaml").read_text())
    return {**defaults, **own}


def environment() -> dict[str, Any]:
    """What the figures depend on: hardware, versions, commit."""
    import torch

    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "commit": _commit(),
        "device": torch.cuda.get_device_name(0) if torch.cuda.is_available() else f"CPU, {_processor()}",
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {package: importlib.metadata.version(package) for package in PACKAGES},
    }


def _processor() -> str:
    """The processor's name; platform.processor() is empty on Linux."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _commit() -> str | None:
    """The commit, with a plus sign when the checkout differs from it; `None` outside a checkout."""
    command = ["git", "-C", str(FOLDER), "describe", "--always", "--abbrev=12", "--dirty=+"]
    result = subprocess.run(command, capture_output=True, text=True)
    return result.stdout.strip() or None


if __name__ == "__main__":
    sys.exit(main())
