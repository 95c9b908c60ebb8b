"""Rows for training and evaluation: sources, adapters, prompts, chat templates and their checks."""

from .adapters import ADAPTERS, Adapter
from .chat_templates import chat_template_names, resolve_chat_template
from .columns import GoldReport, check_columns, check_golds
from .difficulty import read_difficulties
from .errors import DataError
from .golds import last_boxed, number_text
from .prompts import PROMPTS, PromptTemplate, add_prompts, build_prompt, find_prompt_template
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
    "SourceSpec",
    "add_prompts",
    "build_prompt",
    "chat_template_names",
    "check_columns",
    "check_golds",
    "find_prompt_template",
    "last_boxed",
    "load_source",
    "number_text",
    "parse_source",
    "read_difficulties",
    "resolve_chat_template",
    "to_sft",
]
