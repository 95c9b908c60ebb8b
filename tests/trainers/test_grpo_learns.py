"""GRPO with a renewed reference and Dr. GRPO learn: from a base that thinks in six of ten cases to one that does."""

import pytest


@pytest.mark.slow
@pytest.mark.parametrize("stem", ["grpo", "dr_grpo"])
def test_held_out_accuracy_rises_by_a_fifth(learn, stem):
    """40 steps: 62.5 % of 120 held-out chains before; at least 82.5 % after."""
    log = learn(f"{stem}_tiny", 40)
    if stem == "grpo":
        assert [row["reference/step"] for row in log if "reference/step" in row] == [0.0] * 20 + [20.0] * 20
