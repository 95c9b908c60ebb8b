"""What the preference methods lean on in TRL's DPO trainer and in `datasets`, beside the names in test_trl_api.py."""

import ast
import inspect
import textwrap

from datasets import Dataset
from trl import DPOTrainer

from trl_reasoning.trainers.dpo import LOSS_TYPES


def body_of(method) -> list[ast.AST]:
    return list(ast.walk(ast.parse(textwrap.dedent(inspect.getsource(method)))))


def test_the_loss_only_calls_its_model_and_calls_the_policy_first():
    """Ours passes something that can be called and nothing else."""
    names = [node for node in body_of(DPOTrainer._compute_loss) if isinstance(node, ast.Name) and node.id == "model"]
    calls = [node for node in body_of(DPOTrainer._compute_loss) if isinstance(node, ast.Call)]
    assert len(names) == sum(isinstance(call.func, ast.Name) and call.func.id == "model" for call in calls) == 2
    source = inspect.getsource(DPOTrainer._compute_loss)
    assert source.index("outputs = model(**model_kwargs, labels=labels") < source.index("self.ref_model(")


def test_the_loss_reads_precomputed_log_probs_from_the_batch():
    source = inspect.getsource(DPOTrainer._compute_loss)
    assert "if self.precompute_ref_logps:" in source
    assert 'inputs["ref_chosen_logps"], inputs["ref_rejected_logps"]' in source
    assert "self.router_aux_loss_coef * aux_loss" in source


def test_a_reference_that_is_passed_is_neither_loaded_nor_copied():
    source = inspect.getsource(DPOTrainer.__init__)
    assert source.count("create_model_from_path(") == 2  # the policy; the reference where none is passed
    assert "elif is_peft_model(model) and ref_model is None:" in source
    assert "self.ref_model = ref_model" in source


def test_the_known_losses_are_trls():
    source = inspect.getsource(DPOTrainer._compute_loss)
    assert all(f'loss_type == "{name}"' in source for name in LOSS_TYPES)
    assert source.count("loss_type == ") == len(LOSS_TYPES)


def test_precomputed_log_probs_go_into_the_cache_folder_of_the_rows():
    assert "dataset._get_cache_file_path(fingerprint)" in inspect.getsource(DPOTrainer._precompute_ref_logps)
    assert list(inspect.signature(Dataset._get_cache_file_path).parameters) == ["self", "fingerprint"]
    assert Dataset.from_dict({"a": [1]}).cache_files == []
