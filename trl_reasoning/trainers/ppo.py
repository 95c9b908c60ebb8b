"""`ppo`: proximal policy optimisation with a learned value function, as in InstructGPT and Tulu 3."""

import textwrap
from typing import Any

import torch
from accelerate.utils import DistributedType
from peft import PeftModel
from transformers import PreTrainedModel

from ..errors import UserError
from ..generation.scorers import held_models
from ..losses import (
    LossOutput,
    PolicyTokens,
    clipped_loss,
    clipped_value_loss,
    generalized_advantages,
    k1,
    shaped_rewards,
    whiten,
)
from ._packing import plan_passes, row_lengths, take_rows
from ._ppo_config import PPOConfig
from ._ptx import PretrainingLoss, PretrainingMix
from ._reference import REFERENCE_ADAPTER, add_reference_adapter
from ._shared_base import AdapterSwitch, RewardAdapter, frozen_copy
from ._value import make_value_function
from ._value_state import TrainedValue, rollout_statistics
from .grpo import ReasoningGRPOTrainer


__all__ = ["PPOConfig", "PPOTrainer"]


class PPOTrainer(TrainedValue, PretrainingLoss, ReasoningGRPOTrainer):
    """
    PPO over TRL's rollouts, with a value function that is trained in the same optimizer.

    With LoRA there is one copy of the base: the policy is the adapter `default`, the value the adapter `value` with a
    head, the reference the base itself (or a frozen copy of the adapter that training goes on from), and a reward
    model may be an adapter too (`reward_adapter`). With full fine-tuning value and reference are models of their own.
    What `save_model` writes is the policy alone; checkpoints have the value beside it.

    Takes the parent's arguments; `reward_funcs` may hold reward models as TRL takes them.

    Args:
        ptx_dataset ([`~datasets.Dataset`], *optional*):
            Pretraining rows for `ptx_coef`: `text`, `messages`, or `prompt` and `completion`.

    Example:

    ```python
    from trl_reasoning import PPOConfig, PPOTrainer
    from trl_reasoning.builtin import make_chain_dataset, resolve_model
    from trl_reasoning.rewards import REWARDS

    trainer = PPOTrainer(
        model=resolve_model("builtin:tiny"),
        args=PPOConfig(output_dir="out", max_steps=10, use_cpu=True, bf16=False),
        reward_funcs=[REWARDS["accuracy"]()],
        train_dataset=make_chain_dataset(size=512),
    )
    trainer.train()
    ```
    """

    args: PPOConfig
    model: Any

    token_keys = ReasoningGRPOTrainer.token_keys | {"old_values", "returns"}
    _tag_names = ["trl", "ppo", "trl-reasoning"]
    _name = "PPO"
    _paper = {
        "title": "Training language models to follow instructions with human feedback",
        "id": "2203.02155",
        "citation": textwrap.dedent("""\
            @article{ouyang2022training,
                title        = {{Training language models to follow instructions with human feedback}},
                author       = {Long Ouyang and Jeff Wu and Xu Jiang and Diogo Almeida and Carroll L. Wainwright and
                                others},
                year         = 2022,
                eprint       = {arXiv:2203.02155},
            }"""),
    }

    def __init__(
        self,
        model: Any,
        reward_funcs: Any = None,
        args: Any = None,
        *rest: Any,
        ptx_dataset: Any = None,
        **kwargs: Any,
    ):
        args = PPOConfig("ppo") if args is None else args
        goes_on = isinstance(model, PeftModel)
        scorer = None
        if args.reward_adapter is not None:
            scorer = RewardAdapter(args.reward_adapter)
            others = reward_funcs if isinstance(reward_funcs, list) else [reward_funcs]
            reward_funcs = [*(func for func in others if func is not None), scorer]
            if args.reward_weights is not None and len(args.reward_weights) == len(reward_funcs) - 1:
                args.reward_weights = [*args.reward_weights, 1.0]
        super().__init__(model, reward_funcs, args, *rest, **kwargs)
        if self._is_vlm:
            raise UserError("model: ppo trains text models; this one reads images")
        if self.accelerator.distributed_type in (DistributedType.DEEPSPEED, DistributedType.FSDP):
            raise UserError("accelerate: ppo runs on one process or on DDP; DeepSpeed and FSDP are not supported")
        if (args.ptx_coef > 0) != (ptx_dataset is not None):
            raise UserError("ptx_dataset: needs `ptx_coef` above 0 (27.8 in InstructGPT), and the other way round")
        if ptx_dataset is not None:
            size, length, kwargs = args.ptx_batch_size, args.ptx_max_length, args.chat_template_kwargs
            self._ptx = PretrainingMix(ptx_dataset, self._tokenizer, size, length, args.seed, kwargs)
        self._add_other_models(scorer, goes_on)

    def _add_other_models(self, scorer: RewardAdapter | None, goes_on: bool) -> None:
        """Reference, reward adapter and value function, on the policy's base where it has adapters."""
        args, policy = self.args, self.model
        is_peft = isinstance(policy, PeftModel)
        if scorer is not None and not is_peft:
            raise UserError("reward_adapter: shares the policy's base with LoRA; set `use_peft: true`")
        reward_models: list[Any] = [func for func in self.reward_funcs if isinstance(func, PreTrainedModel)]
        if args.value_model in (None, "reward") and not is_peft:
            reward_models += held_models(self.reward_funcs)
        start = args.value_model or ("reward" if scorer or (reward_models and not is_peft) else "policy")
        if start == "reward" and (scorer is None if is_peft else not reward_models):
            raise UserError(
                "value_model: there is no reward model to start from; "
                + ("with LoRA it is named by `reward_adapter`, otherwise " if is_peft else "")
                + "use `policy`"
            )
        self._reference_model: Any = None
        if is_peft:
            if goes_on and args.kl_coef != 0.0:
                add_reference_adapter(policy)
            if scorer is not None:
                scorer.attach(policy, self.processing_class, args.per_device_train_batch_size)
        elif args.kl_coef != 0.0:
            copied = frozen_copy(policy, self.temperature, args.cast_lm_head_to_fp32)
            self._reference_model = self.accelerator.prepare_model(copied, evaluation_mode=True)
        self.value_function = make_value_function(
            policy, start, reward_models[0] if reward_models else None, scorer.head if scorer else None
        )
        self._switch = AdapterSwitch(policy) if is_peft else None
        if scorer is not None:
            scorer.use(self._switch)  # type: ignore[arg-type]

    @property
    def reduction(self) -> str:
        return "batch_tokens"

    def has_gradient(self, batch: dict[str, Any]) -> torch.Tensor:
        # An advantage of 0 leaves the value loss.
        return (self.loss_mask(batch) != 0).any(dim=1)

    def policy_loss(self, tokens: PolicyTokens) -> LossOutput:
        output = clipped_loss(tokens, epsilon_low=self.epsilon_low, epsilon_high=self.epsilon_high)
        with self.accelerator.autocast():
            values = self.value_function(tokens.batch)  # (N, T)
        old_values, returns = tokens.batch["old_values"], tokens.batch["returns"]
        value_loss = clipped_value_loss(values, old_values, returns, self.args.cliprange_value)
        output.loss = output.loss + self.args.vf_coef * value_loss
        output.metrics |= {"value_loss": value_loss, "values": values}
        if self.args.cliprange_value is not None:
            moved = (values - old_values).abs() > self.args.cliprange_value
            output.metrics["value_clip_ratio"] = moved.float()
        output.extra = self.pretraining_loss(tokens)
        return output

    def _get_per_token_logps_and_entropies(self, *args: Any, **kwargs: Any) -> Any:
        with self.value_function.listening():
            return super()._get_per_token_logps_and_entropies(*args, **kwargs)

    def _calculate_rewards(
        self, inputs: Any, prompts: Any, completions: Any, completion_ids_list: Any
    ) -> torch.Tensor:
        rewards = super()._calculate_rewards(inputs, prompts, completions, completion_ids_list)  # (N_global, F)
        start = self.accelerator.process_index * len(prompts)
        local = rewards[start : start + len(prompts)]
        scores = (local * self.reward_weights.to(local.device)).nansum(dim=1)
        if self.args.missing_eos_penalty is not None:
            complete = torch.tensor(self._is_complete, device=scores.device)
            scores = torch.where(complete, scores, self.args.missing_eos_penalty)
        # Not applicable (None from every function) is not 0: the row is left out.
        self._scores = torch.where(local.isnan().all(dim=1), torch.nan, scores)  # (N,)
        return rewards

    def _generate_and_score_completions(self, inputs: Any) -> dict[str, Any]:
        output = super()._generate_and_score_completions(inputs)
        is_scored = ~self._scores.isnan()
        if not is_scored.all():
            output["completion_mask"] = output["completion_mask"] * is_scored.unsqueeze(1)
        mask = self.loss_mask(output)  # (N, T)
        output["num_items_in_batch"] = self._sum(mask.sum())
        logps, values = self._score_rollout(output)
        logps = output.setdefault("old_per_token_logps", logps)
        ref_logps = self._reference_logps(output)
        rewards = shaped_rewards(logps, ref_logps, self._scores.nan_to_num(), mask, self.args.kl_coef)
        advantages, returns = generalized_advantages(rewards, values, mask, self.args.gamma, self.args.lam)
        if self.args.whiten_advantages:
            advantages = whiten(advantages, mask, reduce=self._sum)
        output |= {"advantages": advantages, "old_values": values, "returns": returns}
        kl = torch.zeros_like(rewards) if ref_logps is None else k1(logps, ref_logps)
        metrics = self._metrics["train" if self.model.training else "eval"]
        metrics.pop("frac_reward_zero_std", None)  # a spread within groups, which nothing here depends on
        for name, value in rollout_statistics(mask, rewards, values, returns, kl, self._sum).items():
            metrics[name].append(value)
        return output

    @torch.no_grad()
    def _score_rollout(self, batch: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
        """(N, T) log-probs and values of the models that sampled; one pass for both where they share the trunk."""
        logps = torch.zeros_like(batch["completion_mask"], dtype=torch.float32)
        values = torch.zeros_like(logps)
        lengths = row_lengths(batch)
        policy = self.accelerator.unwrap_model(self.model)
        budget = self.args.per_device_train_batch_size * (batch["prompt_ids"].size(1) + logps.size(1))
        needed = {key: batch[key] for key in ("prompt_ids", "prompt_mask", "completion_ids", "completion_mask")}
        for rows in plan_passes(lengths, range(len(logps)), self.args.max_tokens_per_pass or budget):
            taken = take_rows(needed, rows, lengths, self.token_keys)
            width, index = taken["completion_ids"].size(1), torch.tensor(rows, device=logps.device)
            part, _, _ = self._get_per_token_logps_and_entropies(
                policy,
                torch.cat([taken["prompt_ids"], taken["completion_ids"]], dim=1),
                torch.cat([taken["prompt_mask"], taken["completion_mask"]], dim=1),
                width,
            )
            logps[index, :width] = part.float()
            with self.accelerator.autocast():
                values[index, :width] = self.value_function(taken).float()
        return logps, values

    def _reference_logps(self, batch: dict[str, Any]) -> torch.Tensor | None:
        """(N, T) under the policy that the run started from; None without a KL term."""
        if self.args.kl_coef == 0.0:
            return None
        rows = list(range(len(batch["completion_ids"])))
        width = batch["prompt_ids"].size(1) + batch["completion_ids"].size(1)
        budget = self.args.max_tokens_per_pass or self.args.per_device_train_batch_size * width
        if self._switch is None:
            return self._packed_logps(self._reference_model, batch, rows, budget)
        has_start = REFERENCE_ADAPTER in self.model.peft_config
        with self._switch.use(REFERENCE_ADAPTER if has_start else None):
            return self._packed_logps(self.model, batch, rows, budget)

    def _sum(self, values: torch.Tensor) -> torch.Tensor:
        """Added up over the processes."""
        return self.accelerator.reduce(values, reduction="sum")  # type: ignore[return-value]
