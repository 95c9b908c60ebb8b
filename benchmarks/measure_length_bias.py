"""Train arms that differ in a few settings from one start, and follow the tokens of right and of wrong answers."""

import json
import os
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any


FOLDER = Path(__file__).resolve().parent
CURVES = ("length/right", "length/wrong", "reward_share")
WINDOW = 10  # steps that the first and the last number of a curve are averaged over


def measure(name: str, settings: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """
    Train every arm for every seed, draw the curves and sum them up.

    Args:
        name (`str`):
            Name of the experiment; its runs are kept in `benchmarks/runs/NAME`, where finished ones are
            not repeated; its picture is `results/NAME.png`.
        settings (`dict[str, Any]`):
            `start` (a recipe and settings over it, trained once), `recipe` and `shared` (settings of all arms), `arms`
            (settings by name), `workers` (trainings at a time, one thread each) and `seeds`.

    Returns:
        `tuple[dict[str, Any], str]`: per arm and seed the curves by step, and first and last values; and a summary.
    """
    runs = FOLDER / "runs" / name
    start = settings["start"]
    _train(start["recipe"], {**start["with"], "output_dir": str(runs / "start")})
    jobs = {
        (arm, seed): {
            **settings["shared"],
            **settings["arms"][arm],
            "model_name_or_path": str(runs / "start"),
            "output_dir": str(runs / f"{arm}_seed_{seed}"),
            "seed": seed,
        }
        for seed in settings["seeds"]
        for arm in settings["arms"]
    }
    with ThreadPoolExecutor(settings["workers"]) as pool:
        list(pool.map(lambda job: _train(settings["recipe"], job), jobs.values()))
    figures: dict[str, Any] = {arm: {} for arm in settings["arms"]}
    for (arm, seed), job in jobs.items():
        figures[arm][f"seed_{seed}"] = _read(Path(job["output_dir"]))
    _draw(figures, FOLDER / "results" / f"{name}.png", settings["what"])
    return figures, "; ".join(f"{arm}: {_summary(list(found.values()))}" for arm, found in figures.items())


def _train(recipe: str, changes: dict[str, Any]) -> None:
    words = [word for key, value in changes.items() for word in (f"--{key}", _word(value))]
    command = [sys.executable, "-m", "trl_reasoning", "train", str(FOLDER.parent / recipe), *words]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}\n{done.stderr[-3000:]}")


def _word(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _read(folder: Path) -> dict[str, Any]:
    logs = [json.loads(line) for line in (folder / "train_log.jsonl").read_text().splitlines()]
    steps = [log for log in logs if "length/wrong" in log or "length/right" in log]
    curves = {
        "step": [log["step"] for log in steps],
        "length/right": [_rounded(log.get("length/right")) for log in steps],
        "length/wrong": [_rounded(log.get("length/wrong")) for log in steps],
        "reward_share": [_rounded(log["rewards/accuracy_reward/mean"]) for log in steps],
    }
    ends = {}
    for name in CURVES:
        for end, part in (("first", curves[name][:WINDOW]), ("last", curves[name][-WINDOW:])):
            known = [value for value in part if value is not None]
            ends[f"{name} {end}"] = statistics.mean(known) if known else None
    heldout = [log["heldout/accuracy"] for log in logs if "heldout/accuracy" in log]
    return {"curves": curves, "ends": ends, "heldout": {"first": heldout[0], "last": heldout[-1]}}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def _summary(seeds: list[dict[str, Any]]) -> str:
    def over_seeds(key: str) -> str:
        values = [found["ends"][key] for found in seeds if found["ends"][key] is not None]
        return f"{statistics.mean(values):.1f}" if values else "none left"

    accuracy = "/".join(f"{found['heldout']['last']:.0%}" for found in seeds)
    return (
        f"tokens of right answers {over_seeds('length/right first')} to {over_seeds('length/right last')}, of wrong "
        f"ones {over_seeds('length/wrong first')} to {over_seeds('length/wrong last')}, held-out accuracy {accuracy}"
    )


def _draw(figures: dict[str, Any], path: Path, title: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 3, figsize=(14, 4))
    labels = ("tokens of right answers", "tokens of wrong answers", "share of right answers")
    for (name, label), axis in zip(zip(CURVES, labels, strict=True), axes, strict=True):
        for color, (arm, seeds) in enumerate(figures.items()):
            for number, found in enumerate(seeds.values()):
                points = [
                    (step, value)
                    for step, value in zip(found["curves"]["step"], found["curves"][name], strict=True)
                    if value is not None
                ]
                smooth = [
                    statistics.mean(value for _, value in points[max(0, index - WINDOW + 1) : index + 1])
                    for index in range(len(points))
                ]
                line = axis.plot([step for step, _ in points], smooth, color=f"C{color}", alpha=0.9 - 0.3 * number)
                line[0].set_label(arm if number == 0 else "_")
        axis.set_xlabel("step")
        axis.set_title(label)
    axes[0].legend()
    figure.suptitle(title)
    figure.tight_layout()
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
