"""A stop string ends a completion: complete, and without padding in its mask."""

import pytest

from trl_reasoning.trainers import DrGRPOConfig, DrGRPOTrainer, ReasoningGRPOConfig, ReasoningGRPOTrainer


@pytest.mark.parametrize("pad_is_eos", [False, True])
def test_row_ended_by_a_string_is_complete_and_unpadded(tiny, tokenizer, chain, common, length_reward, pad_is_eos):
    if pad_is_eos:
        tokenizer.pad_token = tokenizer.eos_token
    config = DrGRPOConfig(
        **common, num_generations=8, max_completion_length=48, stop_strings=["</think>"], temperature=1.0
    )
    trainer = DrGRPOTrainer(
        model=tiny, args=config, reward_funcs=[length_reward], train_dataset=chain, processing_class=tokenizer
    )
    trainer.model.train()
    batch = trainer._generate_and_score_completions([chain[3]] * 8)
    close, pad = tokenizer.convert_tokens_to_ids("</think>"), tokenizer.pad_token_id
    lengths = set()
    for ids, mask in zip(batch["completion_ids"].tolist(), batch["completion_mask"].tolist(), strict=True):
        kept = [token for token, keep in zip(ids, mask, strict=True) if keep]
        lengths.add(len(kept))
        assert kept[-1] == close
        assert kept.count(close) == 1
        assert pad not in kept
    assert len(lengths) > 1  # rows were padded, so that the mask had something to leave out
    metrics = trainer._metrics["train"]
    assert metrics["completions/clipped_ratio"] == [0.0]
    assert metrics["completions/max_terminated_length"] == [max(lengths)]
    assert trainer._is_complete == [True] * 8
    assert "generate" not in vars(trainer.model)


def test_masking_of_cut_rows_spares_rows_ended_by_a_string(tiny, tokenizer, chain, common, length_reward):
    config = ReasoningGRPOConfig(
        **common,
        num_generations=8,
        max_completion_length=6,
        stop_strings=["</think>"],
        mask_truncated_completions=True,
        beta=0.0,
        seed=5,
    )
    trainer = ReasoningGRPOTrainer(
        model=tiny, args=config, reward_funcs=[length_reward], train_dataset=chain, processing_class=tokenizer
    )
    trainer.model.train()
    batch = trainer._generate_and_score_completions([chain[2]] * 8)
    close = tokenizer.convert_tokens_to_ids("</think>")
    ended = [close in ids for ids in batch["completion_ids"].tolist()]
    assert True in ended and False in ended
    kept = batch["completion_mask"].sum(dim=1).tolist()
    assert [count > 0 for count in kept] == ended
    assert batch["num_items_in_batch"].item() == sum(kept)


def test_refused_where_they_cannot_work(common):
    with pytest.raises(ValueError, match="stop_strings.*continuous_batching"):
        ReasoningGRPOConfig(**common, stop_strings=["x"], use_transformers_continuous_batching=True)
    with pytest.raises(ValueError, match="stop_strings: expected non-empty"):
        ReasoningGRPOConfig(**common, stop_strings=[""])


def test_the_engine_gets_them_with_vllm(common):
    config = ReasoningGRPOConfig(**common, stop_strings=["</answer>"], use_vllm=True, generation_kwargs={"seed": 1})
    assert config.generation_kwargs == {"seed": 1, "stop": ["</answer>"], "include_stop_str_in_output": True}
