"""The transformers backend on a small random model."""

import pytest
import torch
from peft import LoraConfig, get_peft_model

from trl_reasoning.errors import UserError
from trl_reasoning.generation import SamplingParams, TransformersBackend, length_batches, render_prompt


GREEDY = SamplingParams(max_new_tokens=12, temperature=0)
SAMPLED = SamplingParams(max_new_tokens=12, seed=7)


@pytest.fixture
def prompts(tokenizer):
    questions = ["7+5=?", "1+2+3+4-5=?", "9-3=?", "2+2+2=?"]
    return [render_prompt(tokenizer, [{"role": "user", "content": question}]) for question in questions]


def greedy_by_hand(model, prompt, count):
    """The most likely token, again and again, without a cache, a batch or `generate`."""
    ids = list(prompt)
    with torch.no_grad():
        for _ in range(count):
            ids.append(model(torch.tensor([ids])).logits[0, -1].argmax().item())
    return ids[len(prompt) :]


def texts(generations):
    return [generation.text for generation in generations]


def test_greedy_equals_an_argmax_loop(model, tokenizer, prompts):
    generation = TransformersBackend(model, tokenizer).generate(prompts[:1], GREEDY)[0]
    assert generation.token_ids == greedy_by_hand(model, prompts[0], 12)
    assert generation.finish_reason == "length"


def test_a_padded_batch_equals_single_rows_and_keeps_the_order(model, tokenizer, prompts):
    batched = TransformersBackend(model, tokenizer, batch_size=4).generate(prompts, GREEDY)
    single = [TransformersBackend(model, tokenizer).generate([prompt], GREEDY)[0] for prompt in prompts]
    assert batched == single
    assert len(set(texts(batched))) > 1


@pytest.mark.parametrize("pad_is_eos", [False, True])
def test_a_second_eos_of_the_generation_config_ends_a_row(model, tokenizer, prompts, pad_is_eos):
    if pad_is_eos:
        model.generation_config.pad_token_id = tokenizer.eos_token_id
    by_hand = greedy_by_hand(model, prompts[0], 12)
    other_eos = by_hand[4]
    model.generation_config.eos_token_id = [tokenizer.eos_token_id, other_eos]
    backend = TransformersBackend(model, tokenizer, batch_size=2)
    assert backend.eos_ids == [tokenizer.eos_token_id, other_eos]
    generation = backend.generate(prompts[:2], GREEDY)[0]
    assert generation.token_ids == by_hand[: by_hand.index(other_eos) + 1]
    assert generation.finish_reason == "stop"


@pytest.mark.parametrize("pad_is_eos", [False, True])
def test_a_stop_string_ends_its_row_alone(model, tokenizer, prompts, pad_is_eos):
    backend = TransformersBackend(model, tokenizer, batch_size=2)
    if pad_is_eos:
        backend.pad_id = tokenizer.eos_token_id
    free = backend.generate(prompts[:2], GREEDY)
    stop = tokenizer.decode(free[0].token_ids[3:5])
    assert stop not in free[1].text
    params = SamplingParams(max_new_tokens=12, temperature=0, stop_strings=(stop,))
    ended, other = backend.generate(prompts[:2], params)
    assert ended.finish_reason == "stop_string"
    assert ended.token_ids == free[0].token_ids[:5]
    assert ended.text.endswith(stop)
    assert other == free[1]


def test_sampling_depends_on_the_seed_alone(model, tokenizer, prompts):
    backend = TransformersBackend(model, tokenizer)
    first = backend.generate(prompts, SAMPLED)
    torch.manual_seed(123)
    assert backend.generate(prompts, SAMPLED) == first
    assert backend.generate(prompts, SamplingParams(max_new_tokens=12, seed=8)) != first


def test_the_global_random_state_is_untouched(model, tokenizer, prompts):
    before = torch.get_rng_state()
    TransformersBackend(model, tokenizer).generate(prompts, SAMPLED)
    assert torch.equal(torch.get_rng_state(), before)


def test_the_models_own_sampling_settings_do_not_leak(model, tokenizer, prompts):
    expected = TransformersBackend(model, tokenizer).generate(prompts, SAMPLED)
    model.generation_config.update(
        do_sample=False, temperature=0.1, top_k=1, top_p=0.1, min_p=0.9, repetition_penalty=2.0, no_repeat_ngram_size=1
    )
    assert TransformersBackend(model, tokenizer).generate(prompts, SAMPLED) == expected


def test_a_model_in_training_is_left_as_it_was(model, tokenizer, prompts):
    model.train()
    model.model.layers[0].eval()  # a frozen part
    model.activation_checkpointing_enable()
    model.config.use_cache = False
    modes = [module.training for module in model.modules()]
    expected = greedy_by_hand(model, prompts[0], 12)
    generation = TransformersBackend(model, tokenizer).generate(prompts[:1], GREEDY)[0]
    assert generation.token_ids == expected
    assert [module.training for module in model.modules()] == modes
    assert model.is_activation_checkpointing
    assert model.config.use_cache is False
    model(torch.tensor([prompts[0]])).logits.sum().backward()
    assert model.lm_head.weight.grad.abs().sum() > 0


def test_a_live_peft_model_generates_with_its_adapter(model, tokenizer, prompts):
    base = TransformersBackend(model, tokenizer).generate(prompts, GREEDY)
    peft_model = get_peft_model(model, LoraConfig(r=4, target_modules="all-linear", init_lora_weights=False))
    peft_model.train()
    adapted = TransformersBackend(peft_model, tokenizer).generate(prompts, GREEDY)
    assert adapted != base
    assert peft_model.training


def test_a_prompt_without_room_is_named(model, tokenizer, prompts):
    with pytest.raises(UserError, match=r"prompt 1 has 250 tokens.*at most 6"):
        TransformersBackend(model, tokenizer).generate([prompts[0], [10] * 250], GREEDY)


def test_very_different_lengths_do_not_share_a_batch():
    assert length_batches([10, 200, 12, 11, 190], batch_size=3) == [[0, 3, 2], [4, 1]]
    assert length_batches([10, 42, 43], batch_size=8) == [[0, 1], [2]]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_new_tokens": 0}, "max_new_tokens: expected a value at least 1, got 0"),
        ({"temperature": -1.0}, "temperature"),
        ({"top_p": 0.0}, "top_p"),
        ({"stop_strings": "</answer>"}, "stop_strings: expected a list"),
        ({"stop_strings": ("",)}, "stop_strings: an empty string"),
    ],
)
def test_impossible_settings_name_their_key(settings, message):
    with pytest.raises(UserError, match=message):
        SamplingParams(**{"max_new_tokens": 4, **settings})
