"""A trainer whose completions are written by a stub, for the tests of the watch for tricked rewards."""

from trl_reasoning.rewards import REWARDS
from trl_reasoning.trainers import ReasoningGRPOConfig, ReasoningGRPOTrainer


GUESS, THOUGHT = r"\boxed{5}", r"<think>2+3=5</think>\boxed{5}"


class Policy:
    """Writes texts that depend on the step alone, in place of the model."""

    def __init__(self, texts_at):
        self.texts_at = texts_at

    def __call__(self, prompts, trainer):
        tokenizer, texts = trainer.processing_class, self.texts_at(trainer.state.global_step)
        return {
            "prompt_ids": [tokenizer.apply_chat_template(p, add_generation_prompt=True)["input_ids"] for p in prompts],
            "completion_ids": [tokenizer(texts[row % len(texts)])["input_ids"] for row in range(len(prompts))],
            "logprobs": None,
        }


def make_builder(tiny, chain, common, monkeypatch):
    """Blocks of 3 logs and samples every 3 steps, so that runs are short."""
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")  # of `rollout_func`
    monkeypatch.setattr("trl_reasoning.rewards.watch.BLOCK", 3)
    monkeypatch.setattr("trl_reasoning.trainers._hacking.SAMPLES_EVERY", 3)

    def make(texts_at, names=("accuracy",), trainer=ReasoningGRPOTrainer, config=ReasoningGRPOConfig, **changes):
        callbacks = changes.pop("callbacks", [])
        dataset = changes.pop("dataset", chain)
        settings = {
            "per_device_train_batch_size": 2,
            "num_generations": 2,
            "max_completion_length": 24,
            "max_steps": 9,
            "beta": 0.0,
            "learning_rate": 0.0,
        }
        return trainer(
            model=tiny,
            args=config(**{**common, **settings, **changes}),
            reward_funcs=[REWARDS[name]() if isinstance(name, str) else name for name in names],
            train_dataset=dataset,
            rollout_func=Policy(texts_at),
            callbacks=callbacks,
        )

    return make
