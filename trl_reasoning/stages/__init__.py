"""The stages of a pipeline: definition, loading, command lines, processes and results."""

from .commands import default_accelerate, stage_command, stage_overrides
from .definition import KINDS, Pipeline, Stage, StageKind, references
from .loading import load_pipeline
from .planning import PlannedStage, StageCheck, plan_stages
from .process import Outcome, last_lines, run_attached, run_process
from .results import report_curves, report_rows
from .state import read_state, write_state


__all__ = [
    "KINDS",
    "Outcome",
    "Pipeline",
    "PlannedStage",
    "Stage",
    "StageCheck",
    "StageKind",
    "default_accelerate",
    "last_lines",
    "load_pipeline",
    "plan_stages",
    "read_state",
    "references",
    "report_curves",
    "report_rows",
    "run_attached",
    "run_process",
    "stage_command",
    "stage_overrides",
    "write_state",
]
