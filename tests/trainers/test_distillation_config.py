"""Keys of on-policy distillation: one way to say a divergence, and shares in their range."""

import pytest

from trl_reasoning.trainers import ReasoningDistillationConfig


@pytest.mark.parametrize(
    ("given", "beta"),
    [
        ({}, 1.0),
        ({"beta": 0.3}, 0.3),
        ({"divergence": "forward"}, 0.0),
        ({"divergence": "js"}, 0.5),
        ({"divergence": "reverse"}, 1.0),
        ({"divergence": "forward", "beta": 0.0}, 0.0),  # as a resolved recipe says it
    ],
)
def test_beta(common, given, beta):
    assert ReasoningDistillationConfig(**common, **given).beta == beta


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"divergence": "forward", "beta": 1.0},
            "^divergence: 'forward' is `beta: 0.0`, and `beta` is 1.0; remove one",
        ),
        ({"divergence": "backward"}, r"^divergence: expected one of \['forward', 'js', 'reverse'\], got 'backward'"),
        ({"beta": 1.5}, r"^beta: expected a number in \[0, 1\]"),
        ({"thinking_share": 1.2}, r"^thinking_share: expected a share in \[0, 1\], got 1.2"),
        ({"stop_strings": [""]}, "^stop_strings: expected non-empty"),
    ],
)
def test_refused(common, given, message):
    with pytest.raises(ValueError, match=message):
        ReasoningDistillationConfig(**common, **given)


def test_the_engine_gets_stop_strings_with_vllm(common):
    config = ReasoningDistillationConfig(**common, stop_strings=["</answer>"], use_vllm=True)
    assert config.generation_kwargs == {"stop": ["</answer>"], "include_stop_str_in_output": True}
