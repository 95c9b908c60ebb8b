"""Evaluation: tasks, the runner behind `evaluate`, its numbers, and the report with its pictures."""

from .best_of import best_of_accuracy, majority_of_n
from .divergence import divergence
from .live import LiveMeasure
from .pairs import is_reward_model, load_pairs, pair_accuracy, pair_score_accuracy
from .plots import curve_series, curves_figure, difficulty_figure, stage_colors
from .report import report_figures, write_report
from .runner import evaluate, finished_metrics, peak_memory_mb, write_metrics
from .stage_table import format_accuracy, stage_table
from .summary import heldout_metrics, paired_change, per_problem_accuracy, summarize
from .tasks import load_task, task_source, template_stop_strings
from .win_rate import JUDGES, Judge, win_rate


__all__ = [
    "JUDGES",
    "Judge",
    "LiveMeasure",
    "best_of_accuracy",
    "curve_series",
    "curves_figure",
    "difficulty_figure",
    "divergence",
    "evaluate",
    "finished_metrics",
    "format_accuracy",
    "heldout_metrics",
    "is_reward_model",
    "load_pairs",
    "load_task",
    "majority_of_n",
    "pair_accuracy",
    "pair_score_accuracy",
    "paired_change",
    "peak_memory_mb",
    "per_problem_accuracy",
    "report_figures",
    "stage_colors",
    "stage_table",
    "summarize",
    "task_source",
    "template_stop_strings",
    "win_rate",
    "write_metrics",
    "write_report",
]
