"""Evaluation: tasks, the runner behind `evaluate`, its numbers, and the report with its pictures."""

from .live import LiveMeasure
from .plots import curve_series, curves_figure, difficulty_figure, stage_colors
from .report import format_accuracy, report_figures, stage_table, write_report
from .runner import evaluate, finished_metrics, peak_memory_mb
from .summary import heldout_metrics, paired_change, per_problem_accuracy, summarize
from .tasks import load_task, task_source, template_stop_strings


__all__ = [
    "LiveMeasure",
    "curve_series",
    "curves_figure",
    "difficulty_figure",
    "evaluate",
    "finished_metrics",
    "format_accuracy",
    "heldout_metrics",
    "load_task",
    "paired_change",
    "peak_memory_mb",
    "per_problem_accuracy",
    "report_figures",
    "stage_colors",
    "stage_table",
    "summarize",
    "task_source",
    "template_stop_strings",
    "write_report",
]
