"""A prepared run: defaults, rows, held-out problems and the text of a dry run."""

from pathlib import Path

import pytest
import yaml

from trl_reasoning.config import RecipeError, dry_run_text, make_recipe


CHAIN = {"path": "builtin:chain", "size": 8}


def test_defaults_of_this_package(prepared) -> None:
    policy = prepared(report_to=None, output_dir=None)
    assert policy.args.report_to == ["tensorboard"]
    assert policy.args.logging_steps == 1
    assert policy.args.output_dir == "outputs/recipe"  # by the file's name
    assert prepared("sft").args.logging_steps == 10
    assert prepared(report_to="none").args.report_to == []
    assert prepared(logging_steps=5).args.logging_steps == 5


def test_objects_for_the_trainer(prepared) -> None:
    from trl_reasoning import DrGRPOConfig

    run = prepared(learning_rate="2e-6", reward_funcs=["accuracy", {"name": "format", "weight": 0.5}])
    assert isinstance(run.args, DrGRPOConfig)
    assert run.args.learning_rate == 2e-6
    assert run.args.reward_weights == [1.0, 0.5]
    assert [reward.__name__ for reward in run.reward_funcs] == ["accuracy_reward", "format_reward"]
    assert run.model_config.model_name_or_path == "builtin:tiny"
    assert run.quantization_config is None
    assert run.heldout is None
    assert len(run.train_dataset) == 8
    assert {"prompt", "solution", "thought_opened"} <= set(run.train_dataset.column_names)
    assert prepared("sft").reward_funcs == []
    assert "thought_opened" not in prepared("sft").train_dataset.column_names


def test_errors_name_the_file(prepared, tmp_path: Path) -> None:
    with pytest.raises(RecipeError) as caught:
        prepared(beta=0.1)
    assert str(caught.value).startswith(f"{tmp_path / 'recipe.yaml'}: beta: ")


def test_env_is_set(prepared, monkeypatch) -> None:
    monkeypatch.setenv("TRL_REASONING_TEST", "before")
    prepared(env={"TRL_REASONING_TEST": 5})
    import os

    assert os.environ["TRL_REASONING_TEST"] == "5"


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"loss_type": "grpo"}, "loss_type"),
        ({"beta": 0.04}, "beta"),
        ({"scale_rewards": "group"}, "scale_rewards"),
        ({"mask_truncated_completions": True}, "mask_truncated_completions"),
        ({"stop_strings": [""]}, "stop_strings"),
        ({"torch_empty_cache_steps": 0}, "torch_empty_cache_steps"),
    ],
)
def test_what_the_configuration_refuses_names_the_key(changes: dict, key: str, prepared) -> None:
    with pytest.raises(RecipeError) as caught:
        prepared(**changes)
    assert key in str(caught.value)
    assert caught.value.key in changes


def test_thought_opened_follows_the_rendered_prompt(prepared, tmp_path: Path) -> None:
    assert prepared().train_dataset["thought_opened"][:] == [False] * 8
    opens = tmp_path / "opens.jinja"
    template = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}"
    opens.write_text(template + "{% if add_generation_prompt %}<|assistant|><think>{% endif %}")
    assert prepared(chat_template=str(opens)).train_dataset["thought_opened"][:] == [True] * 8
    primed = prepared(prompt_template="r1_zero_primed").train_dataset
    assert primed["thought_opened"][:] == [True] * 8
    assert primed[0]["prompt"].endswith("<think>")


def test_stop_strings_of_a_prompt_template(prepared) -> None:
    assert prepared(prompt_template="r1_zero").args.stop_strings == ["</answer>"]
    assert prepared(prompt_template="r1_zero", stop_strings=["x"]).args.stop_strings == ["x"]
    assert prepared().args.stop_strings is None


def test_long_prompts_are_left_out_and_counted(prepared, write_rows) -> None:
    # `<|user|>` + text + `<|end|>` + `<|assistant|>`: three tokens and one for each character.
    rows = write_rows([{"prompt": [{"role": "user", "content": "1+1=?"}], "solution": "2"} for _ in range(3)])
    longer = write_rows([{"prompt": [{"role": "user", "content": "1+1+1=?"}], "solution": "3"}], name="longer.jsonl")
    run = prepared(datasets=rows + longer, max_prompt_tokens=8)
    assert [row["solution"] for row in run.train_dataset] == ["2", "2", "2"]
    assert run.notes == ["max_prompt_tokens: 1 of 4 prompts are longer and left out"]
    assert len(prepared(datasets=rows + longer, max_prompt_tokens=10).train_dataset) == 4
    with pytest.raises(RecipeError, match="max_prompt_tokens: the data set is empty: no prompt has at most 7 tokens"):
        prepared(datasets=rows + longer, max_prompt_tokens=7)


def test_mixture_by_weight(prepared) -> None:
    sources = [
        {"path": "builtin:chain", "size": 400, "params": {"operands": 2}, "weight": 3},
        {"path": "builtin:chain", "size": 400, "params": {"operands": 5}, "weight": 1},
    ]
    mixed = prepared(datasets=sources).train_dataset
    share = sum(row == 2 for row in mixed["difficulty"]) / len(mixed)
    assert 0.68 < share < 0.82  # 3 of 4, about 530 draws: three standard deviations are 0.056
    both = [{key: value for key, value in source.items() if key != "weight"} for source in sources]
    plain = prepared(datasets=both).train_dataset
    assert plain["difficulty"][:] == [2] * 400 + [5] * 400


def test_sources_that_do_not_fit_together(prepared, write_rows) -> None:
    text = write_rows([{"prompt": "1+1=?", "solution": "2"}])
    with pytest.raises(RecipeError, match="datasets: the sources do not agree on the column `prompt`"):
        prepared(datasets=[CHAIN, *text])


def test_columns_are_renamed_for_all_sources(prepared, write_rows) -> None:
    rows = write_rows([{"text": "1+1=?", "answer": 2}])
    run = prepared(datasets=rows, columns={"question": "text", "solution": "answer"}, prompt_template="none")
    assert run.train_dataset[0]["prompt"] == [{"role": "user", "content": "1+1=?"}]
    assert run.train_dataset[0]["solution"] == "2"


def test_golds_that_cannot_be_read(prepared, write_rows) -> None:
    rows = [{"prompt": "q", "solution": ""}] + [{"prompt": "q", "solution": "2"}] * 9
    with pytest.raises(RecipeError, match=r"datasets\[0\].*1 of 10 golds.*row 0"):
        prepared(datasets=write_rows(rows))
    run = prepared(datasets=write_rows(rows), max_failing_golds=0.1)
    assert "1 of 10 golds do not verify against themselves (10.0%)" in run.notes[0]
    with pytest.raises(RecipeError, match="max_failing_golds: expected at least 0 and at most 1, got 2"):
        prepared(max_failing_golds=2.0)
    # Without a reward that reads it the column is free.
    prepared(datasets=write_rows(rows), reward_funcs=["format"])


def test_cold_start_rows_from_worked_problems(prepared, write_rows) -> None:
    rows = write_rows([{"question": "1+1?", "answer": "1+1 = <<1+1=2>>2.\n#### 2"}])
    sources = [{**rows[0], "adapter": "gsm8k"}]
    run = prepared("sft", datasets=sources, answer_form="plain", prompt_template="none")
    assert run.train_dataset[0]["prompt"] == [{"role": "user", "content": "1+1?"}]
    assert run.train_dataset[0]["completion"][0]["content"] == "<think>\n1+1 = 2.\n</think>\n\n2"


def test_keys_that_the_rows_leave_without_effect(prepared, write_rows) -> None:
    with pytest.raises(RecipeError, match="answer_form: these rows have their replies"):
        prepared("sft", answer_form="plain")
    turns = [{"role": "user", "content": "1+1"}, {"role": "assistant", "content": "2"}]
    with pytest.raises(RecipeError, match="no effect on rows of `messages`"):
        prepared("sft", datasets=write_rows([{"messages": turns}]), prompt_template="qwen_boxed")


def test_heldout_problems_are_not_trained_on(prepared, write_rows) -> None:
    questions = [{"prompt": f"{number}+1=?", "solution": str(number + 1)} for number in range(6)]
    train, test = write_rows(questions[:4]), write_rows(questions[2:], name="test.jsonl")
    run = prepared(datasets=train, heldout={"datasets": test, "every": 3, "limit": 1})
    assert run.heldout["prompt"][:] == ["4+1=?"]
    assert run.notes == ["heldout: 2 of 4 problems are trained on and left out"]
    assert run.heldout_settings == {
        "every": 3,
        "samples": 1,
        "limit": 1,
        "temperature": 1.0,
        "max_new_tokens": None,
        "batch_size": 64,
    }
    with pytest.raises(RecipeError, match="heldout: all 4 problems are trained on"):
        prepared(datasets=train, heldout={"task": train[0]["path"]})


def test_heldout_task(prepared) -> None:
    run = prepared(heldout={"task": "builtin:chain", "params": {"operands": 3}, "limit": 5, "samples": 2})
    assert run.heldout["difficulty"][:] == [3] * 5
    assert run.heldout_settings["samples"] == 2
    assert not set(run.heldout["question"]) & set(run.train_dataset["question"])
    with pytest.raises(RecipeError, match=r"heldout: .*no builtin task 'chian'.*chain"):
        prepared(heldout={"task": "builtin:chian"})


def test_dry_run_text_can_be_run_again(prepared, tmp_path: Path) -> None:
    run = prepared(use_peft=True, gradient_accumulation_steps=2, heldout={"task": "builtin:chain", "limit": 3})
    text = dry_run_text(run)
    comments = [line for line in text.splitlines() if line.startswith("# ")]
    assert any("dtype bfloat16" in line and run.precision.reason in line for line in comments)
    assert any("rows: 8, held out: 3" in line for line in comments)
    assert any("4 x 2 x 1 = 8 completions, 2 prompts" in line for line in comments)
    values = yaml.safe_load(text)
    assert values["lora_target_modules"] == "all-linear"
    assert values["dtype"] == "bfloat16"
    assert values["num_generations"] == 4
    assert make_recipe(values).values == run.recipe.values


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"use_peft": True, "load_in_4bit": True}, r"load_in_4bit: needs bitsandbytes.*trl-reasoning\[quantization\]"),
        ({"optim": "paged_adamw_8bit"}, "optim: needs bitsandbytes"),
        ({"use_vllm": True}, r"use_vllm: needs vllm.*trl-reasoning\[vllm\]"),
        ({"report_to": ["trackio"]}, r"report_to: trackio is not installed.*trl-reasoning\[track\]"),
    ],
)
def test_missing_extras_are_named(changes: dict, words: str, prepared, monkeypatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(RecipeError, match=words):
        prepared(**changes)
