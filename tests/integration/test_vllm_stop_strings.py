"""Stop strings on the vLLM engine: a row that one ends is complete, and its log-probs keep its length."""

import os

import pytest


pytestmark = pytest.mark.vllm
MODEL = os.environ.get("TRL_REASONING_SMOLLM2")


@pytest.mark.skipif(MODEL is None, reason="TRL_REASONING_SMOLLM2 does not name a folder with SmolLM2-135M-Instruct")
def test_row_ended_by_a_string_is_complete(tmp_path):
    pytest.importorskip("vllm", reason="vLLM is not installed here; see CONTRIBUTING.md for its own environment")
    from datasets import Dataset
    from transformers import AutoTokenizer

    from trl_reasoning.trainers import DrGRPOConfig, DrGRPOTrainer

    tokenizer = AutoTokenizer.from_pretrained(MODEL)
    prompt = [{"role": "user", "content": "Tell me a long story about a dog and a cat."}]
    config = DrGRPOConfig(
        output_dir=str(tmp_path),
        bf16=False,
        use_cpu=True,
        activation_checkpointing=False,
        dataloader_pin_memory=False,
        report_to=[],
        per_device_train_batch_size=8,
        num_generations=8,
        max_completion_length=24,
        stop_strings=[" the"],
        use_vllm=True,
        vllm_mode="colocate",
        vllm_max_model_length=256,
    )
    trainer = DrGRPOTrainer(
        model=MODEL,
        args=config,
        reward_funcs=[lambda completion_ids, **kwargs: [float(len(ids)) for ids in completion_ids]],
        train_dataset=Dataset.from_list([{"prompt": prompt}] * 8),
        processing_class=tokenizer,
    )
    # The CPU engine's layers are repacked, and TRL's weight push cannot write them; the weights are the same anyway.
    trainer.vllm_generation.sync_weights = lambda: None
    trainer.model.train()
    batch = trainer._generate_and_score_completions([{"prompt": prompt}] * 8)
    texts = []
    for ids, mask in zip(batch["completion_ids"], batch["completion_mask"], strict=True):
        texts.append(tokenizer.decode(ids[mask.bool()]))
    ended = [" the" in text for text in texts]
    assert any(ended)
    for text, by_string, complete in zip(texts, ended, trainer._is_complete, strict=True):
        if by_string:
            assert complete
            assert text.count(" the") == 1
    assert batch["sampling_per_token_logps"].shape == batch["completion_ids"].shape
