"""Checks of tokenizer, chat template, adapter and checkpoint against the recipe."""

import json
from pathlib import Path

import pytest
import yaml

from trl_reasoning.config import RecipeError
from trl_reasoning.config.tokenizer import is_hub_model, template_end_token


def test_end_token_of_the_shipped_template(prepared) -> None:
    run = prepared()
    assert template_end_token(run.tokenizer) == "<|end|>" == run.tokenizer.eos_token


@pytest.mark.parametrize("base", ["sft", "dr_grpo"])
def test_template_that_ends_with_another_token(base: str, prepared, tmp_path: Path) -> None:
    template = tmp_path / "other_end.jinja"
    template.write_text("{% for m in messages %}{{ m.role }}:{{ m.content }} <|pad|>\n{% endfor %}")
    with pytest.raises(RecipeError) as caught:
        prepared(base, chat_template=str(template))
    assert "'<|pad|>'" in str(caught.value)
    assert "'<|end|>'" in str(caught.value)
    assert 'eos_token: "<|pad|>"' in str(caught.value)
    run = prepared(base, chat_template=str(template), eos_token="<|pad|>")
    assert run.tokenizer.eos_token == "<|pad|>"
    assert getattr(run.args, "eos_token", "<|pad|>") == "<|pad|>"


def test_template_without_an_end(prepared, tmp_path: Path) -> None:
    template = tmp_path / "no_end.jinja"
    template.write_text("{% for m in messages %}{{ m.role }}:{{ m.content }}{% endfor %}")
    with pytest.raises(RecipeError, match="chat_template: writes no token after a reply"):
        prepared("sft", chat_template=str(template))
    prepared("dr_grpo", chat_template=str(template))  # the policy ends its own replies


def test_generation_config_that_stops_elsewhere(prepared, tiny_copy: Path) -> None:
    path = tiny_copy / "generation_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"eos_token_id": [0]}))
    with pytest.raises(RecipeError, match=r"generation_config.json stops at '<\|pad\|>'.*eos_token: \"<\|end\|>\""):
        prepared(model_name_or_path=str(tiny_copy))
    prepared(model_name_or_path=str(tiny_copy), eos_token="<|end|>")
    path.unlink()
    prepared(model_name_or_path=str(tiny_copy))


def test_messages_without_a_chat_template(prepared, tiny_copy: Path) -> None:
    (tiny_copy / "chat_template.jinja").unlink()
    with pytest.raises(RecipeError, match=r"chat_template: the rows are messages.*none_text"):
        prepared(model_name_or_path=str(tiny_copy))
    run = prepared(model_name_or_path=str(tiny_copy), prompt_template="none_text")
    assert isinstance(run.train_dataset[0]["prompt"], str)
    assert prepared(model_name_or_path=str(tiny_copy), chat_template="builtin_tiny").tokenizer.chat_template


def test_unknown_tokens_and_templates(prepared) -> None:
    with pytest.raises(
        RecipeError, match=r"eos_token: '<\|ennd\|>' is not in the vocabulary.*Did you mean `<\|end\|>`"
    ):
        prepared(eos_token="<|ennd|>")
    with pytest.raises(RecipeError, match=r"chat_template: unknown template 'chatml_thnk'.*chatml_think"):
        prepared(chat_template="chatml_thnk")


def test_new_tokens_need_embedding_rows(prepared, tiny_copy: Path) -> None:
    settings = {"model_name_or_path": str(tiny_copy), "add_special_tokens": ["<step>"]}
    path = tiny_copy / "config.json"
    config = json.loads(path.read_text())
    rows = config["vocab_size"]  # as many as tokens
    with pytest.raises(
        RecipeError, match=rf"add_special_tokens: .*{rows + 1} tokens and the model {rows} embedding rows"
    ):
        prepared("sft", **settings)
    path.write_text(json.dumps(config | {"vocab_size": rows + 1}))
    assert len(prepared("sft", **settings).tokenizer("<step>")["input_ids"]) == 1


def test_assistant_only_loss_needs_marks(prepared, write_rows, tmp_path: Path) -> None:
    template = tmp_path / "no_marks.jinja"
    template.write_text("{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}")
    turns = [{"role": "user", "content": "1+1"}, {"role": "assistant", "content": "2"}]
    rows = write_rows([{"messages": turns}])
    with pytest.raises(RecipeError, match="assistant_only_loss"):  # on by default for rows of messages
        prepared("sft", datasets=rows, chat_template=str(template))
    prepared("sft", datasets=rows)
    prepared("sft", datasets=rows, chat_template=str(template), assistant_only_loss=False)
    prepared("sft", chat_template=str(template))  # prompt and completion: the loss is on the completion anyway


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("builtin:tny", "no builtin model"),
        ("./nowhere", "not a folder with a model"),
        ("/nowhere/model", "not a folder with a model"),
    ],
)
def test_models_that_are_not_there(model: str, words: str, prepared) -> None:
    with pytest.raises(RecipeError, match=f"model_name_or_path: .*{words}"):
        prepared(model_name_or_path=model)


def test_a_folder_with_an_adapter_alone_is_no_model(prepared, tmp_path: Path) -> None:
    (tmp_path / "adapter_config.json").write_text("{}")
    with pytest.raises(RecipeError, match=r"holds an adapter alone.*adapter_name_or_path"):
        prepared(model_name_or_path=str(tmp_path))
    with pytest.raises(RecipeError, match=r"adapter_name_or_path: .*no adapter_config.json"):
        prepared(adapter_name_or_path=str(tmp_path / "none"), use_peft=True)


def test_hub_ids_are_told_from_folders(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "outputs" / "sft").mkdir(parents=True)
    names = ["Qwen/Qwen3-0.6B", "gpt2", "builtin:tiny", "./x", "/x", "a/b/c", "outputs/sft"]
    assert [is_hub_model(name) for name in names] == [True, True, False, False, False, False, False]


@pytest.mark.parametrize(
    ("targets", "words"),
    [
        (["q_proj", "v_prj"], "no module is called 'v_prj'.*Did you mean `v_proj`.*all-linear"),
        ("q_proj", "the pattern 'q_proj' matches no module"),
    ],
)
def test_lora_targets_that_match_nothing(targets: str | list[str], words: str, prepared) -> None:
    with pytest.raises(RecipeError, match=f"lora_target_modules: {words}"):
        prepared(use_peft=True, lora_target_modules=targets)


def test_lora_targets(prepared) -> None:
    assert prepared(use_peft=True).peft_config.target_modules == "all-linear"
    # TRL would turn the list of one into text, which PEFT takes as a pattern over whole names and does not find.
    assert prepared(use_peft=True, lora_target_modules=["q_proj"]).peft_config.target_modules == {"q_proj"}
    assert prepared(use_peft=True, lora_target_modules=".*_proj").peft_config.target_modules == ".*_proj"
    assert prepared().peft_config is None


def _checkpoint(tmp_path: Path, **resolved: object) -> str:
    folder = tmp_path / "run" / "checkpoint-50"
    folder.mkdir(parents=True)
    (folder.parent / "resolved.yaml").write_text(yaml.safe_dump(resolved))
    return str(folder)


def test_resume_layout(prepared, tmp_path: Path) -> None:
    checkpoint = _checkpoint(tmp_path, per_device_train_batch_size=4, num_generations=4)
    assert prepared(resume_from_checkpoint=checkpoint).args.resume_from_checkpoint == checkpoint
    with pytest.raises(RecipeError, match=r"num_generations: 2 in this recipe and 4 in the run of .*checkpoint-50"):
        prepared(resume_from_checkpoint=checkpoint, num_generations=2)
    with pytest.raises(RecipeError, match="gradient_accumulation_steps: 2 in this recipe and 1"):
        prepared(resume_from_checkpoint=checkpoint, gradient_accumulation_steps=2)
    (tmp_path / "run" / "environment.json").write_text(json.dumps({"processes": 2}))
    with pytest.raises(RecipeError, match="saved with 2 processes and this run has 1"):
        prepared(resume_from_checkpoint=checkpoint)


def test_resume_from_nowhere(prepared, tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="resume_from_checkpoint: no folder"):
        prepared(resume_from_checkpoint=str(tmp_path / "checkpoint-1"))
    with pytest.raises(RecipeError, match="--restart"):
        prepared(resume_from_checkpoint=False)
    assert prepared(resume_from_checkpoint=True).args.resume_from_checkpoint is None


def test_a_mixture_of_references_with_an_adapter(prepared) -> None:
    with pytest.raises(RecipeError, match=r"ref_model_mixup_alpha: expected 1\.0 with an adapter"):
        prepared("grpo", use_peft=True, sync_ref_model=True, ref_model_mixup_alpha=0.6)
    prepared("grpo", use_peft=True, sync_ref_model=True)
    prepared("grpo", sync_ref_model=True, ref_model_mixup_alpha=0.6)
