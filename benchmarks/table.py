"""Render `benchmarks/results/*.json` as one markdown table: `python benchmarks/table.py`."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any


FOLDER = Path(__file__).resolve().parent
HEADER = ("experiment", "what", "result", "hardware", "versions", "date")


def render(results: Sequence[dict[str, Any]]) -> str:
    """
    The table.

    Args:
        results (`Sequence[dict[str, Any]]`):
            Contents of result files.

    Returns:
        `str`: markdown, one row an experiment.
    """
    rows = [HEADER, ["---"] * len(HEADER), *(_row(result) for result in results)]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |\n" for row in rows)


def _row(result: dict[str, Any]) -> list[str]:
    environment = result["environment"]
    versions = environment["packages"]
    return [
        f"`{result['name']}`",
        result["settings"]["what"],
        result["summary"],
        f"{environment['device']}, {environment['cores']} cores",
        f"trl {versions['trl']}, torch {versions['torch']}, commit {environment['commit']}",
        environment["date"],
    ]


def main() -> int:
    """Print the table of all results."""
    paths = sorted((FOLDER / "results").glob("*.json"))
    if not paths:
        print("no results yet: python benchmarks/run.py NAME", file=sys.stderr)
        return 1
    print(render([json.loads(path.read_text()) for path in paths]), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
