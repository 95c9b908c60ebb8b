import re
from types import SimpleNamespace

import pytest

from trl_reasoning.trainers._fixed_keys import check_fixed_keys


FIXED = {"beta": (0.0, "there is no KL term"), "delta": (None, "nothing is clipped")}


def test_the_methods_own_values_pass():
    check_fixed_keys(SimpleNamespace(beta=0.0, delta=None), "mine", FIXED)


@pytest.mark.parametrize(
    ("otherwise", "end"),
    [("", "remove the key"), (", or use `method: grpo`", "remove the key, or use `method: grpo`")],
)
def test_another_value_is_named_with_the_reason(otherwise, end):
    message = f"delta: mine needs None, got 2.0 (nothing is clipped); {end}"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        check_fixed_keys(SimpleNamespace(beta=0.0, delta=2.0), "mine", FIXED, otherwise)
