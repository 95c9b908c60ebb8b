"""Programs against tests: the reward, the sandbox that its programs run in, and the parts of both."""

from .answer import build_program, extract_code
from .backends import BACKENDS, Backend, Bubblewrap, PlainSubprocess, bubblewrap_problem, find_backend
from .cases import AssertTests, StdinTests, UnreadableTestsError, read_asserts, read_stdin
from .limits import Limits
from .output import is_same_output
from .reward import CodeTestsReward, make_code_tests_reward
from .runs import Outcome, run_asserts, run_stdin


__all__ = [
    "BACKENDS",
    "AssertTests",
    "Backend",
    "Bubblewrap",
    "CodeTestsReward",
    "Limits",
    "Outcome",
    "PlainSubprocess",
    "StdinTests",
    "UnreadableTestsError",
    "bubblewrap_problem",
    "build_program",
    "extract_code",
    "find_backend",
    "is_same_output",
    "make_code_tests_reward",
    "read_asserts",
    "read_stdin",
    "run_asserts",
    "run_stdin",
]
