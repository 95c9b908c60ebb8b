"""A language model as judge: it is shown question, reference answer and answer, and gives a score."""

import functools
import statistics
from collections.abc import Sequence
from typing import Any, Literal, get_args

from ..errors import UserError
from ..rewards._reward import LogExtra, LogMetric, read_rows
from ..text import prompt_opens_thought, split_thought
from .backends import TransformersBackend
from .judge_prompt import JudgePrompt, check_scale, check_template, default_template
from .judge_text import read_grade
from .loading import check_model_folder, load_backend
from .next_token import next_word_shares
from .params import SamplingParams
from .views import Conversation, Sees, process_device, shown_parts


Mode = Literal["grade", "probability"]
Ids = tuple[int, ...]


class JudgeScorer:
    r"""
    The verdict of a language model on an answer, beside a reference answer, as a reward in [0, 1].

    In the mode `grade` the judge writes its reasons and a grade, which our parser reads from its last line with one:

    $$ r_i = \operatorname{median}_k \frac{g_{ik} - l}{h - l} $$

    for the grades $g_{ik}$ of its samples on the scale from $l$ to $h$; `None`, so that the completion leaves the sum,
    where no sample has one. In the mode `probability` it is asked for yes or no and writes nothing, which is cheaper:

    $$ r_i = \frac{P(\text{yes})}{P(\text{yes}) + P(\text{no})} $$

    of its next token, over the first tokens of both words in their spellings (`Yes`, `yes`, `YES`, after a blank).

    No answer can be kept from asking for a good grade, and judges fall for some: watch held-out accuracy. What is
    done: the judge's control tokens are taken out of all that it is shown, so that no answer opens a turn of its own
    (turns that a template marks with ordinary text are not protected); the lines around an answer carry a mark that it
    cannot know; grades are read from the judge's words alone.

    Per completion it logs 0 or 1 to `judge/unreadable` (no grade), `judge/cut` (answer shown in part) and
    `judge/skipped` (no reference answer, or no room), and in the mode `grade` the replies to the column `judge`.

    The object holds settings only and can be pickled; the model is loaded at the first use, on the device that
    accelerate chose for the process. Judges of one model share it, and equal questions are asked once.

    Args:
        model (`str`):
            `builtin:tiny`, folder or hub id of a causal language model, or of a LoRA adapter for one.
        mode (`"grade"` or `"probability"`, *optional*, defaults to `"grade"`):
            How it judges.
        reference (`str`, *optional*, defaults to `"solution"`):
            Column with the reference answer; rows without one score `None`. `None` shows none at all.
        scale (`list[float]`, *optional*):
            Least and highest grade; 0 and 10 by default.
        template (`str`, *optional*):
            The question to the judge, with `{question}`, `{answer}`, with a reference `{reference}`, and optionally
            `{mark}`, `{low}` and `{high}`. A grade is asked for as a last line `Grade: NUMBER`.
        sees (`"answer"` or `"everything"`, *optional*, defaults to `"answer"`):
            What it is shown of a completion: without its thought, or whole.
        empty_score (`float`, *optional*, defaults to `0.0`):
            Score of an empty answer, of a thought that never closes for instance. The judge is not asked.
        adapter (`str`, *optional*):
            Folder or hub id of a LoRA adapter to put on the model.
        samples (`int`, *optional*, defaults to `1`):
            Grades whose median counts, at least 1.
        temperature (`float`, *optional*, defaults to `0.0`):
            Of the replies; above 0 with several samples.
        max_new_tokens (`int`, *optional*, defaults to `256`):
            Most tokens of a reply.
        max_answer_tokens (`int`, *optional*, defaults to `1024`):
            A longer answer, or reference, is shown without its middle, with a note; also one that would not fit into
            the judge's positions.
        chat_template_kwargs (`dict`, *optional*):
            For the judge's chat template; `enable_thinking` is false unless it is given here.
        dtype (`str`, *optional*, defaults to `"auto"`):
            Format of the weights, as for [`load_backend`].
        load_in_4bit (`bool`, *optional*, defaults to `False`):
            Quantize the weights with bitsandbytes.
        device (`str`, *optional*):
            Another device than the process's.
        batch_size (`int`, *optional*, defaults to `16`):
            Most rows in one batch, at least 1.

    Raises:
        ValueError: when a value is outside its range or without effect, or the folder `model` holds another model.

    Reference: DeepSeek-R1 (https://huggingface.co/papers/2501.12948), section 2.3.3, and Qwen3
    (https://huggingface.co/papers/2505.09388), section 4.4: model-based rewards with a reference answer.

    Example:

    ```python
    judge = JudgeScorer("Qwen/Qwen3-4B", mode="probability")
    judge(["Why is the sky blue?"], ["<think>...</think>Blue scatters most."], [[1]], solution=["Scattering."])
    ```
    """

    __name__ = "judge"
    gold_is_text = True
    """Golds are shown, not verified: they need not be readable as answers."""

    def __init__(
        self,
        model: str,
        mode: Mode = "grade",
        reference: str | None = "solution",
        scale: list[float] | None = None,
        template: str | None = None,
        sees: Sees = "answer",
        empty_score: float | None = 0.0,
        adapter: str | None = None,
        samples: int = 1,
        temperature: float = 0.0,
        max_new_tokens: int = 256,
        max_answer_tokens: int = 1024,
        chat_template_kwargs: dict[str, Any] | None = None,
        dtype: str = "auto",
        load_in_4bit: bool = False,
        device: str | None = None,
        batch_size: int = 16,
    ):
        for name, value, choices in (("mode", mode, get_args(Mode)), ("sees", sees, get_args(Sees))):
            if value not in choices:
                raise ValueError(f"{name}: expected one of {', '.join(choices)}, got {value!r}")
        counts = {"samples": samples, "max_new_tokens": max_new_tokens, "batch_size": batch_size}
        for name, count in {**counts, "max_answer_tokens": max_answer_tokens}.items():
            if count < 1:
                raise ValueError(f"{name}: expected at least 1, got {count}")
        if temperature < 0 or (samples > 1 and temperature == 0):
            raise ValueError(f"temperature: expected 0 or more, above 0 with several samples, got {temperature}")
        written = {"scale": scale is not None, "samples": samples > 1, "temperature": temperature > 0}
        for name, is_set in written.items():
            if is_set and mode == "probability":
                raise ValueError(f"{name}: has no effect with `mode: probability`, which writes nothing; remove it")
        check_model_folder(model, "ForCausalLM")
        template = default_template(mode, reference is not None) if template is None else template
        check_template(template, reference is not None)
        low, high = check_scale(scale)
        thinking = {"enable_thinking": False, **(chat_template_kwargs or {})}
        self.path = model
        self.adapter = adapter
        self.mode: Mode = mode
        self.reference = reference
        self.columns: tuple[str, ...] = () if reference is None else (reference,)
        self.prompt = JudgePrompt(template, low, high, max_answer_tokens, thinking)
        self.sees: Sees = sees
        self.empty_score = empty_score
        self.samples = samples
        self.temperature = temperature
        self.max_new_tokens = 1 if mode == "probability" else max_new_tokens
        self.dtype = dtype
        self.load_in_4bit = load_in_4bit
        self.device = device
        self.batch_size = batch_size

    @property
    def model_paths(self) -> dict[str, str]:
        """The folders or hub ids that it loads, by parameter."""
        return {"model": self.path, **({} if self.adapter is None else {"adapter": self.adapter})}

    @property
    def backend(self) -> TransformersBackend:
        """The judge with its tokenizer, loaded at the first use."""
        device = self.device or process_device()
        loaded = _load_once(self.path, self.adapter, self.dtype, self.load_in_4bit, device)
        return TransformersBackend(loaded.model, loaded.tokenizer, self.batch_size, name=loaded.name)

    def __call__(
        self,
        prompts: Sequence[Conversation],
        completions: Sequence[Conversation],
        completion_ids: Sequence[Sequence[int]],
        *,
        thought_opened: Sequence[bool | None] | None = None,
        log_metric: LogMetric | None = None,
        log_extra: LogExtra | None = None,
        **columns: Any,
    ) -> list[float | None]:
        texts, opened = read_rows(completions, thought_opened)
        given = [None] * len(texts) if self.reference is None else columns[self.reference]
        references = ["" if value is None else str(value) for value in given]
        scores: list[float | None] = [None] * len(texts)
        asked: dict[int, Ids] = {}
        skipped, cut = set[int](), set[int]()
        for row, (prompt, text) in enumerate(zip(prompts, texts, strict=True)):
            question, answer = shown_parts(prompt, text, opened[row], self.sees)
            is_missing = self.reference is not None and not references[row].strip()
            if not is_missing and not answer.strip():
                scores[row] = self.empty_score
                continue
            ids, is_cut = (None, False) if is_missing else self._question(question, references[row], answer)
            if is_cut:
                cut.add(row)
            if ids is None:
                skipped.add(row)
            else:
                asked[row] = ids
        questions = list(dict.fromkeys(asked.values()))
        verdicts = dict(zip(questions, self._judge(questions), strict=True))
        for row, ids in asked.items():
            scores[row] = verdicts[ids][0]
        if log_metric is not None:
            for row in range(len(texts)):
                log_metric("judge/unreadable", float(row in asked and scores[row] is None))
                log_metric("judge/cut", float(row in cut))
                log_metric("judge/skipped", float(row in skipped))
        if log_extra is not None and self.mode == "grade":
            log_extra("judge", [verdicts[asked[row]][1] if row in asked else None for row in range(len(texts))])
        return scores

    def _question(self, prompt: Conversation, reference: str, answer: str) -> tuple[Ids | None, bool]:
        backend = self.backend
        room = backend.model.config.max_position_embeddings - self.max_new_tokens
        return self.prompt.token_ids(backend.tokenizer, prompt, reference, answer, room=room)

    def _judge(self, questions: Sequence[Ids]) -> list[tuple[float | None, str | None]]:
        """Score and reply of each question."""
        if not questions:
            return []
        opens = [prompt_opens_thought(str(self.backend.tokenizer.decode(list(ids)))) for ids in questions]
        if self.mode == "probability":
            if any(opens):
                raise UserError(
                    f"judge: the chat template of {self.path} opens a thought, so that no yes or no can follow; use "
                    "`mode: grade`"
                )
            return [(share, None) for share in next_word_shares(self.backend, questions, "Yes", "No")]
        params = SamplingParams(self.max_new_tokens, self.temperature)
        drawn = self.backend.generate([ids for ids in questions for _ in range(self.samples)], params)
        verdicts = []
        for place, opened in enumerate(opens):
            replies = [reply.text for reply in drawn[place * self.samples : (place + 1) * self.samples]]
            grades = [self._grade(reply, opened) for reply in replies]
            readable = [grade for grade in grades if grade is not None]
            verdicts.append((statistics.median(readable) if readable else None, replies[0]))
        return verdicts

    def _grade(self, reply: str, opened: bool) -> float | None:
        low, high = self.prompt.low, self.prompt.high
        grade = read_grade(split_thought(reply, opened=opened).answer, low, high)
        return None if grade is None else (grade - low) / (high - low)


@functools.cache
def _load_once(path: str, adapter: str | None, dtype: str, load_in_4bit: bool, device: str) -> TransformersBackend:
    return load_backend(path, adapter, dtype=dtype, load_in_4bit=load_in_4bit, device=device)
