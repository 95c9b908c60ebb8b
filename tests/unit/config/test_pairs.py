"""Recipes on pairs: what does not fit is left out and counted, evaluation sets, the task of an adapter."""

import pytest

from trl_reasoning.config import RecipeError


def pair(reply: str, other: str) -> dict:
    return {"prompt": "q", "chosen": reply, "rejected": other}


def test_pairs_that_would_be_cut_are_left_out(prepared, write_rows) -> None:
    # One token a character, and the end token: prompt 1 + reply 5 + 1 = 7 and 1 + 8 + 1 = 10.
    rows = write_rows([pair("short", "no"), pair("no", "too long"), pair("yes", "no")])
    run = prepared("dpo", datasets=rows, max_length=7)
    assert run.train_dataset["chosen"] == ["short", "yes"]
    assert (
        "max_length: 1 of 3 pairs do not fit into 7 tokens and are left out (the first is row 1 with 10)" in run.notes
    )
    assert len(prepared("dpo", datasets=rows, max_length=10).train_dataset) == 3
    assert len(prepared("dpo", datasets=rows, max_length=None).train_dataset) == 3


def test_nothing_fits(prepared, write_rows) -> None:
    with pytest.raises(RecipeError, match="max_length: 6 tokens hold no pair: row 0 has 10 tokens.*at least 7"):
        prepared("dpo", datasets=write_rows([pair("no", "too long"), pair("short", "no")]), max_length=6)


def test_identical_pairs_are_left_out(prepared, write_rows) -> None:
    rows = [pair(f"{index:03d}", "no") for index in range(99)] + [pair("x", "x")]
    run = prepared("reward", datasets=write_rows(rows))
    assert len(run.train_dataset) == 99
    assert "1 of 100 pairs have two identical replies and are left out" in run.notes


def test_messages_are_measured_through_the_chat_template(prepared, write_rows) -> None:
    row = {
        "prompt": [{"role": "user", "content": "q"}],
        "chosen": [{"role": "assistant", "content": "a"}],
        "rejected": [{"role": "assistant", "content": "bb"}],
    }
    # The template writes role, text and end token of each turn, and a line end after it: 4 + (1 + 2 + 1 + 1) tokens.
    tokenizer = prepared("dpo", datasets=write_rows([row])).tokenizer
    text = tokenizer.apply_chat_template([*row["prompt"], *row["rejected"]], tokenize=False)
    length = len(tokenizer(text)["input_ids"])
    assert len(prepared("dpo", datasets=write_rows([row]), max_length=length).train_dataset) == 1
    with pytest.raises(RecipeError, match=f"row 0 has {length} tokens"):
        prepared("dpo", datasets=write_rows([row]), max_length=length - 1)


def test_evaluation_sets(prepared, write_rows) -> None:
    rows = write_rows([pair("yes", "no"), pair("so", "not so")], name="heldout.jsonl")
    run = prepared("dpo", datasets=write_rows([pair("a", "b")]), eval_datasets=rows)
    assert run.eval_dataset["chosen"] == ["yes", "so"]
    assert run.args.eval_strategy == "epoch"
    run = prepared(
        "dpo", datasets=write_rows([pair("a", "b")]), eval_datasets=rows, eval_strategy="steps", eval_steps=5
    )
    assert run.args.eval_strategy == "steps"
    with pytest.raises(RecipeError, match="eval_strategy: .*no evaluation set; write `eval_datasets"):
        prepared("dpo", eval_strategy="steps")
    with pytest.raises(RecipeError, match=r"eval_datasets\[0\].*no column `rejected`"):
        prepared("dpo", eval_datasets=write_rows([{"prompt": "q", "chosen": "a"}], name="bad.jsonl"))


def test_methods_have_the_keys_of_their_kind(load) -> None:
    with pytest.raises(RecipeError, match="heldout: `method: reward` does not read this key"):
        load("reward", heldout={"task": "builtin:chain"})
    with pytest.raises(RecipeError, match="eval_datasets: `method: dr_grpo` does not read this key"):
        load("dr_grpo", eval_datasets=[{"path": "builtin:chain"}])
    with pytest.raises(RecipeError, match="reward_funcs: `method: dpo` does not read this key"):
        load("dpo", reward_funcs=["accuracy"])


def test_the_task_of_an_adapter_follows_the_method(prepared) -> None:
    assert prepared("reward", use_peft=True).peft_config.task_type == "SEQ_CLS"
    assert prepared("dpo", use_peft=True).peft_config.task_type == "CAUSAL_LM"
    with pytest.raises(RecipeError, match="lora_task_type: `method: dpo` needs CAUSAL_LM, got SEQ_CLS; remove"):
        prepared("dpo", use_peft=True, lora_task_type="SEQ_CLS")


def test_reward_model_is_another_name_for_reward(load) -> None:
    recipe = load("reward", method="reward_model")
    assert recipe.method == "reward"
