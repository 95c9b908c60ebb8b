"""
The names of TRL and transformers that we lean on and that their makers do not promise to keep.

With a new version of TRL this file is read first: what fails here has to be looked at in `trl_reasoning/trainers`. The
last tests read our code and fail when it leans on a private name that the tables here do not hold.
"""

import ast
import functools
import importlib
import inspect

import pytest
import trl
from source_tree import PACKAGE, imports_of, modules, relative
from transformers import Trainer
from trl import DistillationTrainer, DPOTrainer, GRPOConfig, GRPOTrainer, RewardTrainer, SFTTrainer
from trl.trainer.utils import RepeatSampler


# Method to the names of its parameters after `self`.
SIGNATURES = {
    (DistillationTrainer, "_compute_loss"): ["unwrapped_student", "inputs", "num_items_in_batch"],
    (DistillationTrainer, "_generate"): ["prompts"],
    (DistillationTrainer, "_generate_and_score_completions"): ["inputs"],
    (DistillationTrainer, "_generate_single_turn"): ["prompt_ids", "images", "multimodal_fields", "has_tool_images"],
    (DistillationTrainer, "_get_train_sampler"): ["dataset"],
    (DistillationTrainer, "_tokenize_prompts"): ["prompts"],
    (DistillationTrainer, "compute_loss"): ["model", "inputs", "return_outputs", "num_items_in_batch"],
    (DPOTrainer, "_compute_loss"): ["model", "inputs", "return_outputs"],
    (DPOTrainer, "_precompute_ref_logps"): ["dataset", "name", "batch_size"],
    (DPOTrainer, "_prepare_dataset"): ["dataset", "processing_class", "args", "dataset_name"],
    (GRPOTrainer, "_calculate_rewards"): ["inputs", "prompts", "completions", "completion_ids_list"],
    (GRPOTrainer, "_compute_loss"): ["model", "inputs"],
    (GRPOTrainer, "_generate"): ["prompts"],
    (GRPOTrainer, "_generate_and_score_completions"): ["inputs"],
    (GRPOTrainer, "_generate_single_turn"): [
        "prompt_ids",
        "images",
        "multimodal_fields",
        "num_generations",
        "has_tool_images",
    ],
    (GRPOTrainer, "_get_per_token_logps_and_entropies"): [
        "model",
        "input_ids",
        "attention_mask",
        "logits_to_keep",
        "batch_size",
        "compute_entropy",
        "compute_aux_loss",
        "pixel_values",
        "image_grid_thw",
        "num_images",
        "pixel_attention_mask",
        "spatial_shapes",
        "num_tiles",
        "image_sizes",
        "token_type_ids",
        "mm_token_type_ids",
        "image_position_ids",
    ],
    (GRPOTrainer, "_get_train_sampler"): ["dataset"],
    (GRPOTrainer, "_log_completion_extra"): ["column", "values"],
    (GRPOTrainer, "_prepare_inputs"): ["generation_batch"],
    (GRPOTrainer, "_save_checkpoint"): ["model", "trial"],
    (GRPOTrainer, "_set_signature_columns_if_needed"): [],
    (GRPOTrainer, "get_high_entropy_mask"): ["entropies", "mask", "threshold"],
    (GRPOTrainer, "get_off_policy_mask"): [
        "per_token_logps",
        "sampling_per_token_logps",
        "mask",
        "off_policy_threshold",
    ],
    (GRPOTrainer, "log"): ["logs", "start_time"],
    (GRPOTrainer, "training_step"): ["model", "inputs", "num_items_in_batch"],
    (RewardTrainer, "_prepare_dataset"): ["dataset", "processing_class", "args", "dataset_name"],
    (RewardTrainer, "_set_signature_columns_if_needed"): [],
    (RewardTrainer, "compute_loss"): ["model", "inputs", "return_outputs", "num_items_in_batch"],
    (SFTTrainer, "_prepare_dataset"): [
        "dataset",
        "processing_class",
        "args",
        "packing",
        "formatting_func",
        "dataset_name",
    ],
    (SFTTrainer, "compute_loss"): ["model", "inputs", "return_outputs", "num_items_in_batch"],
    (Trainer, "_get_num_items_in_batch"): ["batch_samples", "device"],
    (Trainer, "_load_from_checkpoint"): ["resume_from_checkpoint", "model"],
    (Trainer, "_load_optimizer_and_scheduler"): ["checkpoint"],
    (Trainer, "_save"): ["output_dir", "state_dict"],
    (Trainer, "create_optimizer"): ["model"],
    (Trainer, "_save_rng_state"): ["output_dir"],
    (Trainer, "save_model"): ["output_dir", "_internal_call"],
    (Trainer, "train"): ["resume_from_checkpoint", "trial", "ignore_keys_for_eval"],
    (Trainer, "training_step"): ["model", "inputs", "num_items_in_batch"],
    (RepeatSampler, "__init__"): ["data_source", "mini_repeat_count", "batch_size", "repeat_count", "shuffle", "seed"],
    (RepeatSampler, "__iter__"): [],
}
# Attributes of a GRPO trainer, each with a check of what it holds after one step.
ATTRIBUTES = {
    "_buffered_inputs": lambda value: isinstance(value, list) and isinstance(value[0], dict),
    "_entropy_bonus_enabled": lambda value: value is False,
    "_entropy_window_stats": lambda value: value is None,
    "_is_vlm": lambda value: value is False,
    "_last_world_entropy": lambda value: value == float("inf"),
    "_logs": lambda value: [len(column) for column in value["rewards"].values()] == [8],  # rows, gathered
    "_metrics": lambda value: set(value) == {"train", "eval"},
    "_signature_columns": lambda value: value is None,  # set only with `remove_unused_columns`
    "_step": lambda value: value == 2,  # micro-steps
    "_tokenizer": lambda value: value.pad_token_id is not None,
    "_total_train_tokens": lambda value: value == 0,
    "aux_loss_enabled": lambda value: value is False,
    "beta": lambda value: value == 0.04,
    "chat_template_kwargs": lambda value: value == {},
    "current_gradient_accumulation_steps": lambda value: value == 2,
    "data_collator": callable,
    "entropy_coef": lambda value: value == 0.0,
    "eos_token_ids": lambda value: all(isinstance(token, int) for token in value),
    "loss_is_scaled_for_ga": lambda value: value is True,
    "model_accepts_loss_kwargs": lambda value: value is True,
    "mask_truncated_completions": lambda value: value is False,
    "num_generations_eval": lambda value: value == 4,
    "ref_model": lambda value: value is not None,
    "reward_func_names": lambda value: value == ["length_reward"],
    "reward_funcs": lambda value: [function.__name__ for function in value] == ["length_reward"],
    "reward_weights": lambda value: value.tolist() == [1.0],
    "train_dataset": lambda value: len(value) > 0,
    "use_vllm": lambda value: value is False,
}
SAMPLER_ATTRIBUTES = {
    "batch_size", "data_source", "generator", "mini_repeat_count", "num_samples", "repeat_count", "seed", "shuffle",
}  # fmt: skip
# Keys of the batch that `_generate_and_score_completions` gives, with a KL term and more than one update a sample.
BATCH_KEYS = {
    "advantages",
    "completion_ids",
    "completion_mask",
    "num_items_in_batch",
    "old_per_token_logps",
    "prompt_ids",
    "prompt_mask",
    "ref_per_token_logps",
}
# Metric names that our callbacks and corrections read or write.
METRICS = {
    "completions/clipped_ratio",
    "completions/max_terminated_length",
    "completions/mean_length",
    "completions/mean_terminated_length",
    "completions/min_terminated_length",
    "frac_reward_zero_std",
    "kl",
    "reward",
}
# Names that are imported from below the top of `trl`.
INNER_IMPORTS = {
    ("trl.chat_template_utils", "get_training_chat_template"),
    ("trl.chat_template_utils", "has_generation_markers"),
    ("trl.models.utils", "_ForwardRedirection"),
    ("trl.models.utils", "disable_gradient_checkpointing"),
    ("trl.trainer.model_config", "ModelConfig"),
    ("trl.trainer.utils", "RepeatSampler"),
    ("trl.trainer.utils", "add_fused_lm_head"),
    ("trl.trainer.utils", "create_model_from_path"),
    ("trl.trainer.utils", "disable_dropout_in_model"),
    ("trl.trainer.utils", "get_config_model_id"),
    ("trl.trainer.utils", "get_peft_config"),
    ("trl.trainer.utils", "get_quantization_config"),
    ("trl.trainer.utils", "global_then_local_main_first"),
    ("trl.trainer.utils", "pad"),
}


@pytest.mark.parametrize(("owner", "name"), SIGNATURES, ids=lambda value: getattr(value, "__name__", value))
def test_signatures(owner, name):
    assert list(inspect.signature(getattr(owner, name)).parameters)[1:] == SIGNATURES[owner, name]


def test_the_version_is_the_pinned_one():
    assert trl.__version__.startswith("1.16.")


def test_the_generated_single_turn_is_two_values_for_text():
    """Our stop strings trim both; a third value would be left as it was."""
    source = inspect.getsource(GRPOTrainer._generate_single_turn)
    assert "return completion_ids, logprobs" in source


def test_the_check_of_the_group_size_is_what_ppo_gets_around():
    """Our PPO lets one completion a prompt through by showing the check another number, which only it reads."""
    source = inspect.getsource(GRPOConfig.__post_init__)
    assert source.count("self.num_generations < 2") == 1
    assert "self.num_generations =" not in source
    assert source.count("self.generation_batch_size % self.num_generations") == 1


@pytest.fixture(scope="module")
def step(tmp_path_factory):
    """TRL's own trainer after one optimizer step, and the batch that it generated."""
    from trl_reasoning.builtin import make_chain_dataset, resolve_model

    class Recorder(GRPOTrainer):
        batches: list = []
        rewards: list = []
        seen_metrics: set = set()

        def _calculate_rewards(self, *args):
            self.rewards.append(super()._calculate_rewards(*args))
            return self.rewards[-1]

        def _generate_and_score_completions(self, inputs):
            self.batches.append(super()._generate_and_score_completions(inputs))
            return self.batches[-1]

        def log(self, logs, start_time=None):
            self.seen_metrics |= set(self._metrics["train"])
            super().log(logs, start_time)

    def length_reward(completions, **kwargs):
        return [float(index) for index in range(len(completions))]

    trainer = Recorder(
        model=resolve_model("builtin:tiny"),
        args=GRPOConfig(
            output_dir=str(tmp_path_factory.mktemp("grpo")),
            per_device_train_batch_size=4,
            gradient_accumulation_steps=2,
            num_generations=4,
            num_iterations=2,
            max_completion_length=8,
            max_steps=1,
            beta=0.04,
            use_cpu=True,
            bf16=False,
            activation_checkpointing=False,
            report_to=[],
            disable_tqdm=True,
            logging_steps=1,
            save_strategy="no",
            dataloader_pin_memory=False,
        ),
        reward_funcs=[length_reward],
        train_dataset=make_chain_dataset(size=8, operands=(2, 2)),
    )
    trainer.train()
    return trainer


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_attributes(step, name):
    assert ATTRIBUTES[name](getattr(step, name))


def test_the_batch(step):
    batch = step.batches[0]
    assert set(batch) == BATCH_KEYS
    # Two micro-batches of 4 rows are generated at once.
    rows, tokens = batch["completion_ids"].shape
    assert rows == 8
    assert batch["advantages"].shape == (rows,)
    assert batch["completion_mask"].shape == batch["old_per_token_logps"].shape == (rows, tokens)
    assert batch["num_items_in_batch"] == batch["completion_mask"].sum()


def test_rewards_come_gathered_with_one_column_a_function(step):
    assert step.rewards[0].shape == (8, 1)


def test_metric_names(step):
    assert step.seen_metrics >= METRICS


def test_the_sampler_draws_one_order_a_pass_from_one_generator():
    sampler = RepeatSampler(list(range(4)), mini_repeat_count=2, batch_size=2, repeat_count=1, shuffle=True, seed=0)
    assert set(vars(sampler)) >= SAMPLER_ATTRIBUTES
    state = sampler.generator.get_state()
    first, second = list(sampler), list(sampler)
    assert sorted(first) == sorted(second) == [0, 0, 1, 1, 2, 2, 3, 3]
    sampler.generator.set_state(state)
    assert list(sampler) == first


TRAINERS = sorted((PACKAGE / "trainers").glob("*.py"))


@functools.cache
def own_names() -> set[str]:
    """Attributes that our trainers and their mixins set, and methods that they define."""
    found = set()
    for path in TRAINERS:
        classes = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)]
        for owner, node in [(each, node) for each in classes for node in ast.walk(each)]:
            is_store = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and is_self(node.value)
            if isinstance(node, ast.FunctionDef):
                found.add(node.name)
            elif is_store and not owner.name.endswith("Config"):
                found.add(node.attr)
    return found


def is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"


@pytest.mark.parametrize("path", TRAINERS, ids=relative)
def test_our_trainers_lean_on_listed_names_only(path):
    methods = {name for _, name in SIGNATURES} | {"__init__", "__post_init__"}
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Attribute):
            continue
        where = f"{relative(path)}:{node.lineno}: {node.attr}"
        if is_super(node.value):
            owners = (GRPOTrainer, DPOTrainer, RewardTrainer, SFTTrainer, RepeatSampler)
            is_theirs = any(hasattr(owner, node.attr) for owner in owners)
            is_ours = node.attr in own_names() and not is_theirs
            assert node.attr in methods or is_ours, f"{where} is not in SIGNATURES"
        elif is_self(node.value) and node.attr.startswith("_"):
            assert node.attr in ATTRIBUTES or node.attr in methods | own_names(), f"{where} is not in ATTRIBUTES"


def test_attributes_that_our_trainers_set_on_top_of_trls_are_listed():
    """An attribute of TRL that we overwrite counts as ours above; those are pinned here."""
    theirs = inspect.getsource(GRPOTrainer.__init__) + inspect.getsource(Trainer.__init__)
    shared = {name for name in own_names() if f"self.{name} = " in theirs}
    assert shared <= set(ATTRIBUTES)


@pytest.mark.parametrize("path", modules(), ids=relative)
def test_inner_imports_are_listed_and_exist(path):
    for entry in imports_of(path):
        if entry.module.startswith("trl."):
            for name in entry.names:
                assert (entry.module, name) in INNER_IMPORTS, f"{relative(path)}:{entry.line}: {entry.module}.{name}"
                assert hasattr(importlib.import_module(entry.module), name)


def test_every_listed_inner_import_is_used():
    used = {(entry.module, name) for path in modules() for entry in imports_of(path) for name in entry.names}
    assert used >= INNER_IMPORTS
