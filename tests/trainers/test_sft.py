"""SFT: the loss falls on the assistant's text alone, thoughts included."""

import pytest
from datasets import Dataset

from trl_reasoning.trainers import ReasoningSFTConfig, ReasoningSFTTrainer


QUESTION = {"role": "user", "content": "7+5-3=?"}
REPLY = {"role": "assistant", "content": "<think>7+5=12\n12-3=9</think>9"}


def target_of(trainer, tokenizer) -> str:
    """The text under the labels of the first row as the model gets it."""
    batch = trainer.data_collator([trainer.train_dataset[0]])
    return tokenizer.decode([label for label in batch["labels"][0].tolist() if label != -100])


@pytest.mark.parametrize(
    "row", [{"prompt": [QUESTION], "completion": [REPLY]}, {"messages": [QUESTION, REPLY]}], ids=["pair", "messages"]
)
def test_target_is_the_reply_with_its_thought_and_end_token(tiny, tokenizer, common, row):
    trainer = ReasoningSFTTrainer(
        model=tiny, args=ReasoningSFTConfig(**common), train_dataset=Dataset.from_list([row] * 8)
    )
    assert target_of(trainer, tokenizer) == "<think>7+5=12\n12-3=9</think>9<|end|>"
    assert trainer.args.assistant_only_loss is ("messages" in row)


def test_earlier_thoughts_are_kept_in_the_target(tiny, tokenizer, common):
    messages = [QUESTION, REPLY, {"role": "user", "content": "1+1=?"}, {"role": "assistant", "content": "2"}]
    trainer = ReasoningSFTTrainer(
        model=tiny, args=ReasoningSFTConfig(**common), train_dataset=Dataset.from_list([{"messages": messages}] * 8)
    )
    assert target_of(trainer, tokenizer) == "<think>7+5=12\n12-3=9</think>9<|end|>2<|end|>"


def test_it_learns_a_row_by_heart(tiny, tokenizer, common):
    row = {"prompt": [QUESTION], "completion": [{"role": "assistant", "content": "zzz"}]}
    config = ReasoningSFTConfig(**common, max_steps=20, learning_rate=3e-3, lr_scheduler_type="constant")
    trainer = ReasoningSFTTrainer(model=tiny, args=config, train_dataset=Dataset.from_list([row] * 8))
    trainer.train()
    losses = [log["loss"] for log in trainer.state.log_history if "loss" in log]
    assert losses[-1] < 0.1 < losses[0]
