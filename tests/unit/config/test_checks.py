"""Contradictions among the values of a recipe."""

import pytest

from trl_reasoning.config import RecipeError


@pytest.mark.parametrize(
    ("base", "changes", "mentions"),
    [
        ("sft", {"model_name_or_path": ...}, ["model_name_or_path", "missing", "builtin:tiny"]),
        ("sft", {"datasets": ...}, ["datasets", "missing", "builtin:chain"]),
        ("sft", {"datasets": []}, ["datasets", "empty"]),
        ("sft", {"datasets": [{"pth": "x"}]}, ["datasets[0]", "pth", "path"]),
        ("sft", {"datasets": ["builtin:chain"]}, ["datasets[0]", "a mapping"]),
        ("sft", {"datasets": [{"path": "x", "adapter": "gsm8"}]}, ["datasets[0]", "gsm8", "gsm8k"]),
        ("dr_grpo", {"reward_funcs": ...}, ["reward_funcs", "missing", "accuracy"]),
        ("dr_grpo", {"num_generations": 1}, ["num_generations", "at least 2", "got 1"]),
        ("dr_grpo", {"temperature": 0}, ["temperature", "every advantage is 0"]),
        ("dr_grpo", {"top_p": 0}, ["top_p", "(0, 1]"]),
        ("dr_grpo", {"per_device_train_batch_size": 0}, ["per_device_train_batch_size", "at least 1"]),
        ("dr_grpo", {"max_completion_length": 0}, ["max_completion_length", "at least 1"]),
        ("dr_grpo", {"steps_per_generation": 2, "generation_batch_size": 8}, ["steps_per_generation", "keep one"]),
        (
            "dr_grpo",
            {"use_vllm": True, "vllm_max_model_length": 600, "max_completion_length": 512, "max_prompt_tokens": 100},
            ["vllm_max_model_length", "max_prompt_tokens` 100", "612"],
        ),
        (
            "dr_grpo",
            {"use_vllm": True, "vllm_mode": "server", "load_in_4bit": True, "use_peft": True},
            ["load_in_4bit", "vllm_mode: server", "use_vllm: false", "dtype: bfloat16"],
        ),
        (
            "dr_grpo",
            {"use_vllm": True, "load_in_4bit": True, "use_peft": True},
            ["load_in_4bit", "vllm_mode: colocate", "packed 4-bit weights"],
        ),
        ("dr_grpo", {"use_vllm": True, "load_in_8bit": True, "use_peft": True}, ["load_in_8bit", "vLLM"]),
        ("dr_grpo", {"max_completion_length": None}, ["max_completion_length", "null"]),
        ("dr_grpo", {"learning_rate": -1}, ["learning_rate", "more than 0", "-1"]),
        ("dr_grpo", {"epsilon": 0}, ["epsilon", "more than 0"]),
        ("dr_grpo", {"min_p": 3}, ["min_p", "at most 1"]),
        ("dr_grpo", {"max_seconds": 0}, ["max_seconds", "more than 0"]),
        ("dr_grpo", {"max_steps": 0}, ["max_steps", "at least 1"]),
        ("dr_grpo", {"save_only_model": True}, ["save_only_model", "resumed"]),
        ("sft", {"adam_beta2": 1.5}, ["adam_beta2", "at most 1"]),
        ("sft", {"load_in_8bit": True}, ["load_in_8bit", "use_peft"]),
        ("sft", {"load_in_4bit": True, "use_peft": True, "dtype": "auto"}, ["dtype", "load_in_4bit", "auto"]),
        (
            "sft",
            {"add_special_tokens": ["<a>"], "use_peft": True, "lora_modules_to_save": ["lm_head"]},
            ["<a>", "embed"],
        ),
        ("dr_grpo", {"eval_strategy": "steps", "eval_steps": 5}, ["eval_strategy: got 'steps'", "heldout: {"]),
        ("sft", {"eval_on_start": True}, ["eval_on_start", "no evaluation set", "heldout"]),
        ("sft", {"load_best_model_at_end": True, "eval_strategy": "steps"}, ["load_best_model_at_end", "heldout"]),
        ("sft", {"save_strategy": "best"}, ["save_strategy: got 'best'", "heldout"]),
        ("dr_grpo", {"heldout": {"evry": 5}}, ["heldout.evry", "Did you mean `every`"]),
        ("dr_grpo", {"heldout": {"every": 5}}, ["heldout", "`task`"]),
        ("dr_grpo", {"heldout": {"task": "builtin:chain", "every": 0}}, ["heldout.every", "at least 1"]),
        ("dr_grpo", {"heldout": {"task": "builtin:chain", "every": "often"}}, ["heldout.every", "whole number"]),
        ("dr_grpo", {"heldout": {"task": "builtin:chain", "temperature": -1}}, ["heldout.temperature", "greedy"]),
        ("dr_grpo", {"heldout": {"task": "a", "datasets": [{"path": "b"}]}}, ["heldout", "either"]),
        ("dr_grpo", {"heldout": {"datasets": [{"pth": "b"}]}}, ["heldout.datasets[0]", "path"]),
        ("dr_grpo", {"heldout": {"datasets": [{"path": "b"}], "split": "test"}}, ["heldout.split", "each entry"]),
    ],
)
def test_contradictions(base: str, changes: dict, mentions: list[str], load) -> None:
    with pytest.raises(RecipeError) as caught:
        load(base, **changes)
    for mention in mentions:
        assert mention in str(caught.value)


@pytest.mark.parametrize(
    ("base", "changes"),
    [
        ("sft", {"load_in_4bit": True, "use_peft": True}),
        ("sft", {"load_in_4bit": True, "adapter_name_or_path": "some/adapter"}),
        ("sft", {"add_special_tokens": ["<a>"]}),
        ("sft", {"add_special_tokens": ["<a>"], "use_peft": True, "lora_modules_to_save": ["embed_tokens"]}),
        ("dr_grpo", {"vllm_max_model_length": 2048, "max_completion_length": 1024, "max_prompt_tokens": 1024}),
        ("dr_grpo", {"heldout": {"task": "builtin:chain", "every": "5", "max_new_tokens": None}}),
        ("dr_grpo", {"use_vllm": True, "use_peft": True}),
        ("dr_grpo", {"eval_strategy": False, "save_strategy": False}),  # an unquoted `no`
    ],
)
def test_what_goes_together(base: str, changes: dict, load) -> None:
    load(base, **changes)
