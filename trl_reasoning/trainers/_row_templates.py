"""Chat template settings that differ from row to row, for trainers that render prompts while they train."""

import random
from typing import Any

from ..errors import UserError


COLUMN = "chat_template_kwargs"


def add_thinking_share(dataset: Any, share: float, tokenizer: Any, seed: int) -> Any:
    """
    Let a share of the prompts ask for a thought and the others for none.

    Args:
        dataset ([`~datasets.Dataset`]):
            Rows with `prompt` as messages.
        share (`float`):
            Share of rows with `enable_thinking: true`, in [0, 1], rounded to whole rows.
        tokenizer ([`~transformers.PreTrainedTokenizerBase`]):
            Its chat template has to know `enable_thinking`.
        seed (`int`):
            Which rows these are.

    Returns:
        [`~datasets.Dataset`]: with the column `chat_template_kwargs`.

    Raises:
        [`~trl_reasoning.errors.UserError`]: The rows have such a column already, are plain text, or the template makes
            no difference.
    """
    if COLUMN in dataset.column_names:
        raise UserError(f"thinking_share: the rows have a column `{COLUMN}` already; remove the key or the column")
    if isinstance(dataset[0]["prompt"], str):
        raise UserError("thinking_share: the prompts are plain text, and only the chat template of messages knows it")
    probe = [{"role": "user", "content": "1"}]
    with_and_without = {
        tokenizer.apply_chat_template(probe, tokenize=False, add_generation_prompt=True, enable_thinking=thinks)
        for thinks in (True, False)
    }
    if len(with_and_without) == 1:
        raise UserError("thinking_share: the chat template does not know `enable_thinking`; choose one that does")
    thinking = round(share * len(dataset))
    flags = [True] * thinking + [False] * (len(dataset) - thinking)
    random.Random(seed).shuffle(flags)
    return dataset.add_column(COLUMN, [{"enable_thinking": flag} for flag in flags])


class RowTemplates:
    """
    Mixin for TRL's trainers that generate: a row's column `chat_template_kwargs` goes before the config's.

    TRL takes these settings for the whole run only.
    """

    _row_kwargs: list[dict[str, Any]] | None = None  # of the rows that are being generated

    def _generate_and_score_completions(self, inputs: Any) -> dict[str, Any]:
        if COLUMN in inputs[0]:
            # A column of several sources has all keys in all rows, those that a row does not name as None.
            given = [row[COLUMN] or {} for row in inputs]
            self._row_kwargs = [{key: value for key, value in row.items() if value is not None} for row in given]
        try:
            return super()._generate_and_score_completions(inputs)  # type: ignore[misc]
        finally:
            self._row_kwargs = None

    def _tokenize_prompts(self, prompts: list) -> Any:
        if self._row_kwargs is None:
            return super()._tokenize_prompts(prompts)  # type: ignore[misc]
        common, prompt_ids = self.chat_template_kwargs, []
        try:
            for prompt, kwargs in zip(prompts, self._row_kwargs, strict=True):
                self.chat_template_kwargs = {**common, **kwargs}
                prompt_ids += super()._tokenize_prompts([prompt])[0]  # type: ignore[misc]
        finally:
            self.chat_template_kwargs = common
        return prompt_ids, None, {}
