"""The report's pictures, as matplotlib figures made from plain data."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any


if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette: told apart by readers with any colour vision.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#555555")
# Keys of a training log that the two panels show, and words for the training ones, of which the first that is there
# is drawn.
HELDOUT_ACCURACY, HELDOUT_LOW, HELDOUT_HIGH = "heldout/accuracy", "heldout/accuracy_low", "heldout/accuracy_high"
TRAINING_ACCURACY = {"answers/right": "training accuracy", "reward": "training reward"}
HELDOUT_LENGTH = "heldout/mean_tokens"
TRAINING_LENGTH = {"completions/mean_length": "training"}

Series = dict[str, list[float]]


def stage_colors(names: Sequence[str]) -> dict[str, str]:
    """
    One colour a stage, the same in every picture.

    Args:
        names (`Sequence[str]`):
            Stage names in the report's order.

    Returns:
        `dict[str, str]`: name to hexadecimal colour.
    """
    return {name: PALETTE[index % len(PALETTE)] for index, name in enumerate(dict.fromkeys(names))}


def curve_series(log: Sequence[Mapping[str, Any]]) -> dict[str, Series]:
    """
    The series of a training log that the curves show.

    Args:
        log (`Sequence[Mapping]`):
            Lines of `train_log.jsonl`: `step` and any metrics.

    Returns:
        `dict[str, Series]`: log key to `{"step": [...], "value": [...]}`, for the keys that the log has.

    Example:

    ```python
    >>> curve_series([{"step": 1, "reward": 0.5, "loss": 0.1}, {"step": 2, "reward": 0.75}])
    {'reward': {'step': [1, 2], 'value': [0.5, 0.75]}}

    ```
    """
    wanted = [HELDOUT_ACCURACY, HELDOUT_LOW, HELDOUT_HIGH, HELDOUT_LENGTH]
    for candidates in (TRAINING_ACCURACY, TRAINING_LENGTH):
        wanted += [key for key in candidates if any(key in line for line in log)][:1]
    series = {}
    for key in wanted:
        points = [(line["step"], line[key]) for line in log if line.get(key) is not None]
        if points:
            series[key] = {"step": [step for step, _ in points], "value": [value for _, value in points]}
    return series


def curves_figure(curves: Mapping[str, Mapping[str, Series]], colors: Mapping[str, str]) -> "Figure":
    """
    Accuracy above and completion length below, over the optimizer steps of each training stage.

    Held-out values are strong lines with markers and their 95 % interval, values of the training batches thin lines.

    Args:
        curves (`Mapping[str, Mapping[str, Series]]`):
            Stage name to the series of [`curve_series`].
        colors (`Mapping[str, str]`):
            Stage name to colour, see [`stage_colors`].

    Returns:
        [`~matplotlib.figure.Figure`] with two axes that share x.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    figure = Figure(figsize=(8, 7), dpi=150, layout="constrained")
    accuracy, length = figure.subplots(2, 1, sharex=True)
    for stage, series in curves.items():
        color = colors[stage]
        low, high = series.get(HELDOUT_LOW), series.get(HELDOUT_HIGH)
        if low and high:
            accuracy.fill_between(low["step"], low["value"], high["value"], color=color, alpha=0.15, linewidth=0)
        _draw(accuracy, stage, series, HELDOUT_ACCURACY, TRAINING_ACCURACY, color)
        _draw(length, stage, series, HELDOUT_LENGTH, TRAINING_LENGTH, color)
    accuracy.set_title("Accuracy and completion length during training", fontsize=14, pad=10)
    accuracy.set_ylabel("accuracy or reward (%)", fontsize=12)
    accuracy.yaxis.set_major_formatter(PercentFormatter(1.0, symbol=None))
    length.set_ylabel("completion length (tokens)", fontsize=12)
    length.set_xlabel("optimizer step", fontsize=12)
    length.xaxis.set_major_locator(MaxNLocator(integer=True))
    for axes in (accuracy, length):
        _style(axes)
    return figure


def difficulty_figure(
    stages: Mapping[str, Mapping[str, Mapping[str, Any]]],
    colors: Mapping[str, str],
    *,
    difficulty_label: str = "difficulty of the problem",
) -> "Figure":
    """
    Accuracy by difficulty for each evaluated stage, with 95 % intervals.

    Args:
        stages (`Mapping[str, Mapping[str, Mapping]]`):
            Stage name to its `by_difficulty`: level to `accuracy` and `interval`.
        colors (`Mapping[str, str]`):
            Stage name to colour.
        difficulty_label (`str`, *optional*, defaults to `"difficulty of the problem"`):
            Label of the x axis, with the unit.

    Returns:
        [`~matplotlib.figure.Figure`] with one axes and one error-bar container a stage.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import PercentFormatter

    levels = sorted({level for rows in stages.values() for level in rows}, key=float)
    figure = Figure(figsize=(8, 5), dpi=150, layout="constrained")
    axes = figure.subplots()
    for order, (stage, rows) in enumerate(stages.items()):
        shown = [(place, rows[level]) for place, level in enumerate(levels) if level in rows]
        # Side by side, so that intervals of the same level do not cover each other.
        shift = 0.08 * (order - (len(stages) - 1) / 2)
        accuracies = [row["accuracy"] for _, row in shown]
        below = [max(row["accuracy"] - row["interval"][0], 0.0) for _, row in shown]
        above = [max(row["interval"][1] - row["accuracy"], 0.0) for _, row in shown]
        places = [place + shift for place, _ in shown]
        axes.errorbar(
            places,
            accuracies,
            yerr=[below, above],
            label=stage,
            color=colors[stage],
            marker="o",
            markersize=6,
            linewidth=1.8,
            elinewidth=1.4,
            capsize=4,
        )
    axes.set_title("Accuracy by difficulty, with 95 % intervals", fontsize=14, pad=10)
    axes.set_xlabel(difficulty_label, fontsize=12)
    axes.set_ylabel("accuracy (%)", fontsize=12)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, symbol=None))
    axes.set_xticks(range(len(levels)), levels)
    axes.set_ylim(-0.03, 1.03)
    _style(axes)
    return figure


def _draw(
    axes: "Axes", stage: str, series: Mapping[str, Series], heldout: str, training: Mapping[str, str], color: str
) -> None:
    for key, words in training.items():
        if key in series:
            steps, values = series[key]["step"], series[key]["value"]
            axes.plot(steps, values, color=color, linewidth=1.1, alpha=0.55, label=f"{stage}: {words}")
    if heldout in series:
        steps, values = series[heldout]["step"], series[heldout]["value"]
        axes.plot(steps, values, color=color, linewidth=2.2, marker="o", markersize=5, label=f"{stage}: held-out")


def _style(axes: "Axes") -> None:
    axes.grid(True, color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.tick_params(labelsize=11)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=10.5, frameon=False)
