"""Rules of combination: a reward that counts only where another one reaches a value."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import did_you_mean
from ._accuracy import AccuracyReward
from .routing import unrouted


# Rewards come back from the trainer in single precision: 0.7 is then 0.69999999.
_ROUNDING = 1e-6


@dataclass(frozen=True)
class Gate:
    """
    What one reward needs of another one to count.

    Args:
        reward (`int`):
            Place of the other reward among the rewards.
        at_least (`float`):
            Its least value, before its weight.
        otherwise (`float`, *optional*, defaults to `0.0`):
            What the gated reward is worth below.
    """

    reward: int
    at_least: float
    otherwise: float = 0.0

    def is_open(self, value: float) -> bool:
        """Whether the other reward's value is enough."""
        return value >= self.at_least - _ROUNDING * max(1.0, abs(self.at_least))


def read_gates(gates: Mapping[str, Any], rewards: Mapping[str, Any]) -> list[Gate | None]:
    """
    Read gates as a recipe writes them: `{format: accuracy}`, or `{format: {reward: accuracy, at_least: 1.0}}`.

    Args:
        gates (`Mapping[str, Any]`):
            For the name of a reward the name of the one that opens its gate, or a mapping with `reward`, `at_least`
            (default: the value above which it says that an answer is right, 1 for a reward that has no such value)
            and `otherwise` (default: 0). A `_reward` at the end of a name may be left out.
        rewards (`Mapping[str, Any]`):
            Names of all rewards, as they are logged, and their functions.

    Returns:
        `list[Gate | None]`: one for each reward, `None` for those that always count.

    Raises:
        ValueError: an unknown name or key, a value that is no finite number, or gates that wait for each other.

    Example:

    ```python
    >>> read_gates({"format": "accuracy"}, {"accuracy_reward": None, "format_reward": None})
    [None, Gate(reward=0, at_least=1.0, otherwise=0.0)]

    ```
    """
    names = list(rewards)
    found: list[Gate | None] = [None] * len(names)
    for name, entry in gates.items():
        where = f"reward_gates.{name}"
        place = _place(name, names, where)
        if found[place] is not None:
            raise ValueError(f"{where}: {names[place]} has a gate already; keep one of the two")
        found[place] = _gate(entry, rewards, where)
    for place, name in enumerate(names):
        seen = [place]
        while (gate := found[seen[-1]]) is not None:
            if gate.reward in seen:
                chain = " -> ".join(names[each] for each in (*seen, gate.reward))
                raise ValueError(f"reward_gates: {name} would wait for itself ({chain}); remove one of these gates")
            seen.append(gate.reward)
    return found


def gate_rewards(rewards: Sequence[Sequence[float | None]], gates: Sequence[Gate | None]) -> list[list[float | None]]:
    r"""
    Put gates before rewards.

    $$ r'_f = r_f \text{ where } r'_g \ge t_f, \text{ else } o_f $$

    with the reward $g$ that opens the gate, its least value $t_f$ and the value $o_f$ otherwise. Style then pays only
    where the answer is right. A gate looks at the other reward after that one's own gate. Where it is `None` (the gold
    cannot be read, or it is for other rows), nobody knows whether the gate is open, and the gated reward is `None`,
    too; a reward that is `None` stays `None`.

    Args:
        rewards (`Sequence[Sequence[float | None]]`):
            For each reward its values, one a completion.
        gates (`Sequence[Gate | None]`):
            From [`read_gates`].

    Returns:
        `list[list[float | None]]`: in the same shape.

    Example:

    ```python
    >>> accuracy, form = [1.0, 0.0, None], [1.0, 1.0, 1.0]
    >>> gate_rewards([accuracy, form], [None, Gate(reward=0, at_least=1.0)])
    [[1.0, 0.0, None], [1.0, 0.0, None]]

    ```
    """
    gated: list[list[float | None] | None] = [None] * len(rewards)

    def column(place: int) -> list[float | None]:
        ready = gated[place]
        if ready is None:
            gate, own = gates[place], rewards[place]
            if gate is None:
                ready = list(own)
            else:
                ready = [_pass(value, opener, gate) for value, opener in zip(own, column(gate.reward), strict=True)]
            gated[place] = ready
        return ready

    return [column(place) for place in range(len(rewards))]


def _pass(value: float | None, opener: float | None, gate: Gate) -> float | None:
    if value is None or opener is None:
        return None
    return value if gate.is_open(opener) else gate.otherwise


def _gate(entry: Any, rewards: Mapping[str, Any], where: str) -> Gate:
    settings: Any = {"reward": entry} if isinstance(entry, str) else entry
    known = ("reward", "at_least", "otherwise")
    if not isinstance(settings, Mapping) or not isinstance(settings.get("reward"), str):
        raise ValueError(
            f"{where}: expected the name of a reward, or {{reward: accuracy, at_least: 1.0}}, got {entry!r}"
        )
    for key, value in settings.items():
        if key not in known:
            raise ValueError(
                f"{where}: {key!r} is not a key of a gate ({', '.join(known)}).{did_you_mean(key, known)}"
            )
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if key != "reward" and not (is_number and math.isfinite(value)):
            raise ValueError(f"{where}: {key} expected a finite number, got {value!r}")
    opener = _place(settings["reward"], list(rewards), where)
    function = unrouted(list(rewards.values())[opener])
    gate = Gate(
        opener,
        float(settings.get("at_least", getattr(function, "threshold", 1.0))),
        float(settings.get("otherwise", 0.0)),
    )
    if isinstance(function, AccuracyReward) and not gate.is_open(function.values["right"]):
        raise ValueError(
            f"{where}: at_least {gate.at_least:g} is never reached, a right answer is worth "
            f"{function.values['right']:g}"
        )
    return gate


def _place(name: Any, names: Sequence[str], where: str) -> int:
    for candidate in (name, f"{name}_reward"):
        if candidate in names:
            return names.index(candidate)
    raise ValueError(
        f"{where}: {name!r} is not one of the rewards ({', '.join(names)}).{did_you_mean(str(name), names)}"
    )
