"""The chosen number formats on a CPU, on Ampere and on Turing, and what a recipe may ask for."""

import pytest

from trl_reasoning.config import Precision, RecipeError, choose_precision


AMPERE = {"device_kind": "cuda", "capability": (8, 0)}
TURING = {"device_kind": "cuda", "capability": (7, 5)}
CPU = {"device_kind": "cpu", "capability": None}
FULL = {"lora": False, "quantized": False}
LORA = {"lora": True, "quantized": False}
QLORA = {"lora": True, "quantized": True}


@pytest.mark.parametrize(
    ("device", "training", "dtype", "bf16", "words"),
    [
        (AMPERE, FULL, "float32", True, "`dtype: bfloat16` halves"),
        (AMPERE, LORA, "bfloat16", True, "frozen"),
        (AMPERE, QLORA, "bfloat16", True, "frozen"),
        ({"device_kind": "cuda", "capability": (12, 0)}, LORA, "bfloat16", True, "frozen"),
        (TURING, FULL, "float32", False, "no bfloat16 arithmetic"),
        (TURING, LORA, "float32", False, "float16 overflows"),
        (TURING, QLORA, "float32", False, "float16 overflows"),
        (CPU, FULL, "float32", False, "Full fine-tuning on cpu"),
        (CPU, LORA, "bfloat16", False, "frozen"),
        (CPU, QLORA, "bfloat16", False, "frozen"),
        ({"device_kind": "mps", "capability": None}, LORA, "float32", False, "mps"),
    ],
)
def test_defaults(device: dict, training: dict, dtype: str, bf16: bool, words: str) -> None:
    chosen = choose_precision(**device, **training)
    assert (chosen.dtype, chosen.bf16, chosen.fp16) == (dtype, bf16, False)
    assert words in chosen.reason
    assert chosen.reason.endswith(".")


@pytest.mark.parametrize(
    ("device", "training", "asked", "expected"),
    [
        (AMPERE, FULL, {"requested_dtype": "bfloat16"}, ("bfloat16", True, False)),
        (AMPERE, LORA, {"requested_dtype": "float32"}, ("float32", True, False)),
        (AMPERE, LORA, {"bf16": False}, ("bfloat16", False, False)),
        (AMPERE, FULL, {"fp16": True}, ("float32", False, True)),
        (AMPERE, FULL, {"requested_dtype": "float16"}, ("float16", False, False)),
        (AMPERE, FULL, {"requested_dtype": "auto"}, ("auto", True, False)),
        (TURING, FULL, {"fp16": True}, ("float32", False, True)),
        (CPU, FULL, {"requested_dtype": "bfloat16"}, ("bfloat16", False, False)),
        (CPU, FULL, {"bf16": True}, ("float32", True, False)),
        (CPU, LORA, {"requested_dtype": "float32", "bf16": False, "fp16": False}, ("float32", False, False)),
    ],
)
def test_what_the_recipe_asks_for_wins(device: dict, training: dict, asked: dict, expected: tuple) -> None:
    chosen = choose_precision(**device, **training, **asked)
    assert (chosen.dtype, chosen.bf16, chosen.fp16) == expected
    assert "The recipe asks for" in chosen.reason


@pytest.mark.parametrize(
    ("device", "asked", "key", "words"),
    [
        (TURING, {"bf16": True}, "bf16", "no bfloat16 arithmetic"),
        (TURING, {"requested_dtype": "bfloat16"}, "dtype", "dtype: float32"),
        (CPU, {"fp16": True}, "fp16", "bf16: true"),
        (AMPERE, {"bf16": True, "fp16": True}, "bf16", "fp16"),
    ],
)
def test_what_the_device_cannot_do_is_refused(device: dict, asked: dict, key: str, words: str) -> None:
    with pytest.raises(RecipeError, match=words) as caught:
        choose_precision(**device, **FULL, **asked)
    assert caught.value.key == key


def test_prepared_on_this_cpu(prepared, monkeypatch) -> None:
    """TRL's own defaults, float32 weights under bfloat16 autocast everywhere, are not taken over."""
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    full = prepared()
    assert full.precision == Precision("float32", False, False, full.precision.reason)
    assert (full.args.bf16, full.args.fp16, full.model_config.dtype) == (False, False, "float32")
    lora = prepared(use_peft=True)
    assert (lora.args.bf16, lora.model_config.dtype) == (False, "bfloat16")
    assert (lora.recipe.values["dtype"], lora.recipe.values["bf16"]) == ("bfloat16", False)


@pytest.mark.parametrize(
    ("capability", "use_peft", "dtype", "bf16"),
    [((8, 6), True, "bfloat16", True), ((8, 6), False, "float32", True), ((7, 5), True, "float32", False)],
)
def test_prepared_on_a_mocked_gpu(
    capability: tuple[int, int], use_peft: bool, dtype: str, bf16: bool, load, monkeypatch
) -> None:
    from trl_reasoning.config import arguments

    recipe = load(use_peft=use_peft, use_cpu=True)  # the trainer's own configuration looks for the device itself
    monkeypatch.setattr(arguments, "device_facts", lambda use_cpu=False: ("cuda", capability))
    _, args, model_config, precision, _ = arguments.build_arguments(recipe)
    assert (model_config.dtype, args.bf16, args.fp16) == (dtype, bf16, False)
    assert precision.reason
