"""Rows for training and evaluation: sources, adapters, prompts, chat templates and their checks."""

from .adapters import ADAPTERS, Adapter
from .chat_templates import chat_template_names, resolve_chat_template
from .columns import check_columns
from .difficulty import read_difficulties
from .errors import DataError
from .gold_check import GoldReport, check_golds
from .golds import last_boxed, number_text
from .pairs import split_pairs
from .prompts import PROMPTS, PromptTemplate, add_prompts, build_prompt, find_prompt_template
from .sample_pairs import best_worst_pairs, long2short_pairs
from .selection import SelectionReport, select_samples
from .sft import ANSWER_FORMS, to_sft
from .source_spec import SOURCE_KEYS, SourceSpec, parse_source
from .sources import load_source


__all__ = [
    "ADAPTERS",
    "ANSWER_FORMS",
    "PROMPTS",
    "SOURCE_KEYS",
    "Adapter",
    "DataError",
    "GoldReport",
    "PromptTemplate",
    "SelectionReport",
    "SourceSpec",
    "add_prompts",
    "best_worst_pairs",
    "build_prompt",
    "chat_template_names",
    "check_columns",
    "check_golds",
    "find_prompt_template",
    "last_boxed",
    "load_source",
    "long2short_pairs",
    "number_text",
    "parse_source",
    "read_difficulties",
    "resolve_chat_template",
    "select_samples",
    "split_pairs",
    "to_sft",
]
