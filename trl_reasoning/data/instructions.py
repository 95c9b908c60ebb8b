"""Rows of public data sets with verifiable instructions, in the names and arguments of IFEval."""

import json
from typing import Any

from ..rewards.instructions import write_instructions
from .errors import DataError
from .rows import Row


# Functions of RLVR-IFeval's ground truths: the instruction of each, and our names of its arguments.
_RLVR: dict[str, tuple[str, dict[str, str]]] = {
    "validate_choice": ("detectable_format:constrained_response", {"options": "options"}),
    "validate_end": ("startend:end_checker", {"end_phrase": "end_phrase"}),
    "validate_forbidden_words": ("keywords:forbidden_words", {"forbidden_words": "forbidden_words"}),
    "validate_frequency_capital_words": (
        "change_case:capital_word_frequency",
        {"N": "capital_frequency", "quantifier": "capital_relation"},
    ),
    "validate_highlighted_sections": ("detectable_format:number_highlighted_sections", {"N": "num_highlights"}),
    "validate_json_format": ("detectable_format:json_format", {}),
    "validate_lowercase": ("change_case:english_lowercase", {}),
    "validate_no_commas": ("punctuation:no_comma", {}),
    "validate_paragraphs": (
        "length_constraints:nth_paragraph_first_word",
        {"N": "num_paragraphs", "i": "nth_paragraph", "first_word": "first_word"},
    ),
    "validate_placeholders": ("detectable_content:number_placeholders", {"N": "num_placeholders"}),
    "validate_quotation": ("startend:quotation", {}),
    "validate_repeat_prompt": ("combination:repeat_prompt", {"original_prompt": "prompt_to_repeat"}),
    "validate_response_language": ("language:response_language", {"language": "language"}),
    "validate_sections": (
        "detectable_format:multiple_sections",
        {"N": "num_sections", "section_splitter": "section_spliter"},
    ),
    "validate_title": ("detectable_format:title", {}),
    "validate_two_responses": ("combination:two_responses", {}),
    "validate_uppercase": ("change_case:english_capital", {}),
    "validate_word_constraint": ("length_constraints:number_words", {"N": "num_words", "quantifier": "relation"}),
    "verify_bullet_points": ("detectable_format:number_bullet_lists", {"N": "num_bullets"}),
    "verify_keyword_frequency": ("keywords:frequency", {"word": "keyword", "N": "frequency"}),
    "verify_keywords": ("keywords:existence", {"keyword_list": "keywords"}),
    "verify_letter_frequency": ("keywords:letter_frequency", {"letter": "letter", "N": "let_frequency"}),
    "verify_paragraph_count": ("length_constraints:number_paragraphs", {"N": "num_paragraphs"}),
    "verify_postscript": ("detectable_content:postscript", {"postscript_marker": "postscript_marker"}),
    "verify_sentence_constraint": (
        "length_constraints:number_sentences",
        {"N": "num_sentences", "quantifier": "relation"},
    ),
}


def convert_ifeval(row: Row) -> Row:
    """
    google/IFEval, and data in its columns.

    Example:

    ```python
    >>> row = {"prompt": "Hi", "instruction_id_list": ["punctuation:no_comma"], "kwargs": [{"num_words": None}]}
    >>> convert_ifeval(row)["instructions"]
    '[{"id": "punctuation:no_comma", "kwargs": {}}]'

    ```
    """
    arguments = row["kwargs"]
    if isinstance(arguments, str):
        arguments = _parse(arguments, "kwargs")
    return {"question": _question(row["prompt"]), "instructions": _written(row["instruction_id_list"], arguments)}


def convert_rlvr_ifeval(row: Row) -> Row:
    """allenai/RLVR-IFeval: one instruction a row, named by the function that verifies it."""
    truth = row["ground_truth"]
    if isinstance(truth, str):
        truth = _parse(truth, "ground_truth")
    function = truth.get("func_name") if isinstance(truth, dict) else None
    if function not in _RLVR:
        raise DataError(f"`ground_truth` names no known function: {function!r}")
    name, names = _RLVR[function]
    arguments = {ours: truth.get(theirs) for theirs, ours in names.items()}
    users = [turn["content"] for turn in row["messages"] if turn.get("role") == "user"]
    if not users:
        raise DataError("`messages` has no user turn")
    return {"question": _question(users[-1]), "instructions": _written([name], [arguments])}


def _parse(text: str, column: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"`{column}` is not JSON: {text[:80]!r}") from error


def _question(prompt: Any) -> str:
    if not isinstance(prompt, str) or not prompt.strip():
        raise DataError(f"the prompt should be a non-empty string, got {prompt!r}")
    return prompt


def _written(names: Any, arguments: Any) -> str:
    try:
        return write_instructions(names, arguments)
    except (TypeError, ValueError) as error:
        raise DataError(f"instructions: {error}") from error
