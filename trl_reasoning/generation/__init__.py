"""Generation: backends, prompt rendering, stop strings and resumable sampling."""

from .backends import Backend, TransformersBackend, length_batches
from .judge import JudgeScorer
from .loading import load_backend, parameters_hash, split_adapter, weights_hash
from .params import Generation, SamplingParams
from .records import RecordsError, read_records
from .sampling import sample_problems
from .scorers import RewardModelScorer
from .scoring import WeightedReward, score_records
from .tokens import FinishReason, completion_to_text, render_prompt, trim_at_stop


__all__ = [
    "Backend",
    "FinishReason",
    "Generation",
    "JudgeScorer",
    "RecordsError",
    "RewardModelScorer",
    "SamplingParams",
    "TransformersBackend",
    "WeightedReward",
    "completion_to_text",
    "length_batches",
    "load_backend",
    "parameters_hash",
    "read_records",
    "render_prompt",
    "sample_problems",
    "score_records",
    "split_adapter",
    "trim_at_stop",
    "weights_hash",
]
