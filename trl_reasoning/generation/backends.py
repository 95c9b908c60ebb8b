"""Batched text generation: what a backend is, and the one on transformers."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from ..errors import UserError
from .params import Generation, SamplingParams
from .tokens import completion_to_text, trim_at_stop


if TYPE_CHECKING:
    import torch
    from transformers import GenerationConfig, PreTrainedModel, PreTrainedTokenizerBase

# A prompt joins a batch of shorter ones while it is at most twice the shortest, or at most this many tokens longer.
_LENGTH_SLACK = 32


class Backend(Protocol):
    """What sampling and evaluation need of a generation engine."""

    tokenizer: "PreTrainedTokenizerBase"
    batch_size: int
    name: str

    def fingerprint(self) -> str:
        """Hash of the weights: equal for equal weights."""
        ...

    def generate(self, prompt_ids: Sequence[Sequence[int]], params: SamplingParams) -> list[Generation]:
        """Draw one completion for each prompt, in the order of the prompts."""
        ...


class TransformersBackend:
    """
    Generation with `model.generate`.

    The model may be in the middle of training: its train or eval modes, its caches and the global random state are as
    before after each call. The sampling settings are those of `params` alone; what the model's generation config sets
    (Qwen3 ships temperature 0.6 and top-k 20) does not leak in, except that its EOS ids count beside the tokenizer's.

    Args:
        model ([`~transformers.PreTrainedModel`] or [`~peft.PeftModel`]):
            The model, unwrapped.
        tokenizer ([`~transformers.PreTrainedTokenizerBase`]):
            Its tokenizer. The pad token may equal EOS; without one EOS pads.
        batch_size (`int`, *optional*, defaults to `32`):
            Most rows in one batch.
        name (`str`, *optional*):
            Shown in settings; defaults to the model's name or path.
        weights (`str`, *optional*):
            Hash of the weights where it is known; otherwise [`~TransformersBackend.fingerprint`] reads the parameters.
    """

    def __init__(
        self,
        model: "PreTrainedModel",
        tokenizer: "PreTrainedTokenizerBase",
        batch_size: int = 32,
        *,
        name: str | None = None,
        weights: str | None = None,
    ) -> None:
        if batch_size < 1:
            raise UserError(f"batch_size: expected at least 1, got {batch_size}")
        self.model = model
        self.tokenizer = tokenizer
        self.batch_size = batch_size
        self.name = name or str(model.config._name_or_path)
        self._weights = weights
        configured: Any = model.generation_config.eos_token_id  # type: ignore[union-attr]
        named = [tokenizer.eos_token_id, *(configured if isinstance(configured, list) else [configured])]
        self.eos_ids: list[int] = list(dict.fromkeys(token for token in named if token is not None))
        if not self.eos_ids:
            raise UserError(f"{self.name}: neither the tokenizer nor the generation config names an EOS token")
        self.pad_id: int = self.eos_ids[0] if tokenizer.pad_token_id is None else tokenizer.pad_token_id  # type: ignore[assignment]

    @classmethod
    def load(cls, model_name_or_path: str, adapter_name_or_path: str | None = None, **options: Any) -> "Backend":
        """
        Load a model, see [`~trl_reasoning.generation.loading.load_backend`].

        Args:
            model_name_or_path (`str`):
                `builtin:tiny`, a local folder (a saved adapter, too) or a hub id.
            adapter_name_or_path (`str`, *optional*):
                LoRA adapter to put on the model.
            **options:
                `dtype`, `load_in_4bit`, `device`, `batch_size`.

        Returns:
            [`TransformersBackend`].
        """
        from .loading import load_backend

        return load_backend(model_name_or_path, adapter_name_or_path, **options)

    def fingerprint(self) -> str:
        """Hash of the weights: equal for equal weights, whatever the model is called."""
        from .loading import parameters_hash

        return self._weights or parameters_hash(self.model)

    def generate(self, prompt_ids: Sequence[Sequence[int]], params: SamplingParams) -> list[Generation]:
        """
        Draw one completion for each prompt.

        Prompts are sorted by length and padded on the left; rows of very different lengths do not share a batch.

        Args:
            prompt_ids (`Sequence[Sequence[int]]`):
                Token ids of each prompt, see [`render_prompt`].
            params ([`SamplingParams`]):
                How to draw.

        Returns:
            `list[Generation]`: in the order of `prompt_ids`.

        Raises:
            [`~trl_reasoning.errors.UserError`]: for an empty prompt, or one that leaves no room for `max_new_tokens`.
        """
        self._check_room(prompt_ids, params.max_new_tokens)
        generations: dict[int, Generation] = {}
        with _evaluation_mode(self.model):
            batches = length_batches([len(ids) for ids in prompt_ids], self.batch_size)
            for index, rows in enumerate(batches):
                with _seeded(params.seed + index, self.model.device):
                    completions = self._generate_batch([prompt_ids[row] for row in rows], params)
                generations.update(zip(rows, completions, strict=True))
        return [generations[row] for row in range(len(prompt_ids))]

    def _generate_batch(self, prompts: list[Sequence[int]], params: SamplingParams) -> list[Generation]:
        import torch

        longest = max(len(ids) for ids in prompts)
        padding = [longest - len(ids) for ids in prompts]
        rows = [[self.pad_id] * pad + list(ids) for pad, ids in zip(padding, prompts, strict=True)]
        mask = [[0] * pad + [1] * (longest - pad) for pad in padding]
        device = self.model.device
        # `tokenizer` may only be passed with stop strings: StopStringCriteria reads the vocabulary.
        stopping = {"tokenizer": self.tokenizer} if params.stop_strings else {}
        with torch.no_grad():
            output = self.model.generate(  # type: ignore[operator]
                input_ids=torch.tensor(rows, device=device),  # (N, T)
                attention_mask=torch.tensor(mask, device=device),  # (N, T)
                generation_config=self._generation_config(params),
                **stopping,
            )
        return [self._finish(row, params) for row in output[:, longest:].tolist()]

    def _finish(self, row: list[int], params: SamplingParams) -> Generation:
        token_ids, reason = trim_at_stop(row, self.tokenizer, params.stop_strings, self.eos_ids, self.pad_id)
        return Generation(token_ids, completion_to_text(self.tokenizer, token_ids), reason)

    def _generation_config(self, params: SamplingParams) -> "GenerationConfig":
        """Every setting that changes the distribution is given: `generate` fills gaps from the model's own config."""
        from transformers import GenerationConfig

        greedy = params.temperature == 0
        min_p = params.min_p
        if min_p is None and self.model.generation_config.min_p is not None:  # type: ignore[union-attr]
            min_p = 0.0
        sampling = {"temperature": params.temperature, "top_p": params.top_p, "top_k": params.top_k, "min_p": min_p}
        return GenerationConfig(
            max_new_tokens=params.max_new_tokens,
            do_sample=not greedy,
            num_beams=1,
            repetition_penalty=params.repetition_penalty,
            no_repeat_ngram_size=0,
            min_length=0,
            typical_p=1.0,
            epsilon_cutoff=0.0,
            eta_cutoff=0.0,
            use_cache=True,
            eos_token_id=self.eos_ids,
            pad_token_id=self.pad_id,
            stop_strings=list(params.stop_strings) or None,
            **({} if greedy else sampling),
        )

    def _check_room(self, prompt_ids: Sequence[Sequence[int]], max_new_tokens: int) -> None:
        room = self.model.config.max_position_embeddings
        for index, ids in enumerate(prompt_ids):
            if not ids:
                raise UserError(f"prompt {index} has no tokens")
            if len(ids) + max_new_tokens > room:
                raise UserError(
                    f"prompt {index} has {len(ids)} tokens; with max_new_tokens {max_new_tokens} that is more than "
                    f"the {room} positions of {self.name}; set max_new_tokens to at most {max(room - len(ids), 0)}"
                )


def length_batches(lengths: Sequence[int], batch_size: int) -> list[list[int]]:
    """
    Cut rows into batches of similar length.

    Args:
        lengths (`Sequence[int]`):
            Length of each row in tokens.
        batch_size (`int`):
            Most rows in a batch.

    Returns:
        `list[list[int]]`: row indices of each batch, by rising length; rows of one length keep their order.

    Example:

    ```python
    >>> length_batches([5, 300, 4, 6], batch_size=2)
    [[2, 0], [3], [1]]

    ```
    """
    batches: list[list[int]] = []
    for row in sorted(range(len(lengths)), key=lambda row: lengths[row]):
        if batches and len(batches[-1]) < batch_size:
            shortest = lengths[batches[-1][0]]
            if lengths[row] <= max(2 * shortest, shortest + _LENGTH_SLACK):
                batches[-1].append(row)
                continue
        batches.append([row])
    return batches


@contextmanager
def _seeded(seed: int, device: "torch.device") -> Iterator[None]:
    """Draw from `seed` inside the block and leave the global random state as it was."""
    import torch

    accelerators = [] if device.type == "cpu" else [device]
    with torch.random.fork_rng(devices=accelerators, device_type="cuda" if device.type == "cpu" else device.type):
        torch.manual_seed(seed)
        yield


@contextmanager
def _evaluation_mode(model: "PreTrainedModel") -> Iterator[None]:
    """Eval mode inside the block; after it each module has its own mode again (a frozen part may have another)."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training
