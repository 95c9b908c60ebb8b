"""How far two models are from each other: their logits on a few token sequences."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any


if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedTokenizerBase

# Questions with worked answers: what a reasoning model reads and writes.
_PROBES = (
    ("What is 17+25?", "17+25 is 42. The answer is 42."),
    (
        "A shop sells 3 pens for 2 dollars. How much do 12 pens cost?",
        "12 pens are 4 times 3 pens, so they cost 4*2=8 dollars. The answer is 8.",
    ),
    ("Solve x+5=12 for x.", "Subtract 5 on both sides: x=12-5=7. The answer is 7."),
    (
        "Tom is 4 years older than Ann, and together they are 20. How old is Ann?",
        "If Ann is a, then a+a+4=20, so 2a=16 and a=8. The answer is 8.",
    ),
)


@dataclass(frozen=True)
class Difference:
    """
    How far the logits of two models are apart.

    Args:
        mean (`float`):
            Mean absolute difference of the logits over all tokens of the vocabulary and all positions.
        max (`float`):
            Largest absolute difference.
        kl (`float`):
            KL(reference, other) of the next-token distributions, in nats, mean over the positions.
        scale (`float`, *optional*, defaults to `0.0`):
            Largest absolute logit of the reference; rounding errors grow with it.
    """

    mean: float
    max: float
    kl: float
    scale: float = 0.0

    def __str__(self) -> str:
        return f"logit difference mean {self.mean:.2g}, max {self.max:.2g}; KL {self.kl:.2g} nats a token"


def probe_sequences(tokenizer: "PreTrainedTokenizerBase") -> list[list[int]]:
    """
    The token sequences on which models are compared: short problems with a worked answer, in the model's chat format.

    Args:
        tokenizer ([`~transformers.PreTrainedTokenizerBase`]):
            The tokenizer; without a chat template the text is plain.

    Returns:
        `list[list[int]]`: token ids of each sequence.
    """
    sequences = []
    for question, answer in _PROBES:
        if tokenizer.chat_template is None:
            text: Any = f"{question}\n{answer}"
        else:
            messages = [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
            text = tokenizer.apply_chat_template(messages, tokenize=False)
        sequences.append(list(tokenizer(text, add_special_tokens=tokenizer.chat_template is None)["input_ids"]))
    return sequences


def sequence_logits(model: Any, sequences: Sequence[Sequence[int]]) -> "list[torch.Tensor]":
    """
    The logits at every position, each sequence on its own so that no padding takes part.

    Args:
        model ([`~transformers.PreTrainedModel`] or [`~peft.PeftModel`]):
            In evaluation mode.
        sequences (`Sequence[Sequence[int]]`):
            Token ids.

    Returns:
        `list[torch.Tensor]`: for each sequence a float32 tensor of shape (T, V) in the main memory.
    """
    import torch

    with torch.no_grad():
        inputs = [torch.tensor([list(sequence)], device=model.device) for sequence in sequences]  # (1, T)
        return [model(input_ids=ids, use_cache=False).logits[0].float().cpu() for ids in inputs]


def compare(reference: "Sequence[torch.Tensor]", other: "Sequence[torch.Tensor]") -> Difference:
    r"""
    Compare logits of two models on the same sequences.

    $$\mathrm{KL} = \frac{1}{T}\sum_t \sum_v p_t(v)\,(\log p_t(v) - \log q_t(v))$$

    with $p$ the reference's and $q$ the other's softmax.

    Args:
        reference (`Sequence[torch.Tensor]`):
            Logits of shape (T, V), one tensor a sequence.
        other (`Sequence[torch.Tensor]`):
            Logits of the same shapes.

    Returns:
        [`Difference`]

    Example:

    ```python
    >>> import torch
    >>> difference = compare([torch.tensor([[0.0, 0.0]])], [torch.tensor([[1.0, 0.0]])])
    >>> difference.mean, difference.max, round(difference.kl, 4)
    (0.5, 1.0, 0.1201)

    ```
    """
    import torch

    # Position by position, in float64: a KL of 1e-9 between near models would drown in float32.
    p = torch.cat([logits.double().log_softmax(-1) for logits in reference])  # (T, V)
    q = torch.cat([logits.double().log_softmax(-1) for logits in other])  # (T, V)
    gap = torch.cat([(left - right).abs() for left, right in zip(reference, other, strict=True)])  # (T, V)
    kl = (p.exp() * (p - q)).sum(-1).mean()
    scale = max(logits.abs().max().item() for logits in reference)
    return Difference(gap.mean().item(), gap.max().item(), kl.item(), scale)
