"""Samples of finished iterations, kept to train a reward model on old and new ones together."""

import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class ScoredSample:
    """
    A completion of the policy with its rewards.

    Args:
        prompt (`str` or `list[dict]`):
            The prompt.
        completion (`str` or `list[dict]`):
            What the policy wrote.
        rewards (`tuple[float | None, ...]`):
            One value a reward function, without weights; `None` where a function did not apply.
    """

    prompt: Any
    completion: Any
    rewards: tuple[float | None, ...]


class ReplayBuffer:
    """
    Keeps a uniform sample of everything it was given, and draws from it.

    Args:
        share (`float`, *optional*, defaults to `0.1`):
            Share of history in the data of an iteration, history and new samples together; in [0, 1). DeepSeekMath
            trains its reward model with 10 % historical data, and does not say of what.
        capacity (`int`, *optional*, defaults to `4096`):
            Most samples that are kept.
        seed (`int`, *optional*, defaults to `0`):
            Seed of what is kept and drawn; the same in all processes.

    Raises:
        ValueError: a value is outside its range.

    Reference: DeepSeekMath (https://huggingface.co/papers/2402.03300), Section 4.1.4.

    Example:

    ```python
    >>> buffer = ReplayBuffer(share=0.5)
    >>> buffer.draw(2)  # there is no history yet
    []
    >>> buffer.add([ScoredSample("1+1=?", "2", (1.0,)), ScoredSample("1+1=?", "3", (0.0,))])
    >>> len(buffer.draw(1)), len(buffer.draw(100))
    (1, 2)

    ```
    """

    def __init__(self, share: float = 0.1, capacity: int = 4096, seed: int = 0):
        if not 0.0 <= share < 1.0:
            raise ValueError(f"share: expected a share in [0, 1), got {share}")
        if capacity < 1:
            raise ValueError(f"capacity: expected at least 1, got {capacity}")
        self.share = share
        self.capacity = capacity
        self.seed = seed
        self._kept: list[ScoredSample] = []
        self._seen = 0
        self._draws = 0

    def __len__(self) -> int:
        return len(self._kept)

    def draw(self, new: int) -> list[ScoredSample]:
        """
        Draw history for `new` new samples, without repeats.

        Args:
            new (`int`):
                Number of new samples.

        Returns:
            `list[ScoredSample]`: as many as `share` asks for, or all that there are.
        """
        self._draws += 1
        wanted = round(new * self.share / (1.0 - self.share))
        return random.Random(f"draw-{self.seed}-{self._draws}").sample(self._kept, min(wanted, len(self._kept)))

    def add(self, samples: Sequence[ScoredSample]) -> None:
        """Take new samples in; each that was ever given is kept with the same probability."""
        rng = random.Random(f"add-{self.seed}-{self._seen}")
        for sample in samples:
            self._seen += 1
            if len(self._kept) < self.capacity:
                self._kept.append(sample)
            else:
                place = rng.randrange(self._seen)
                if place < self.capacity:
                    self._kept[place] = sample

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint has to hold, ready for JSON."""
        return {"seen": self._seen, "draws": self._draws, "kept": [asdict(sample) for sample in self._kept]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a [`state_dict`]."""
        self._seen, self._draws = state["seen"], state["draws"]
        self._kept = [read_sample(row) for row in state["kept"]]


def read_sample(row: dict[str, Any]) -> ScoredSample:
    """A sample from its JSON form."""
    return ScoredSample(row["prompt"], row["completion"], tuple(row["rewards"]))
