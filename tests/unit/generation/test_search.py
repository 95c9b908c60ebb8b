"""Best of n and beam search over steps, with scripted models: which solution is taken, what is drawn."""

from types import SimpleNamespace

import pytest
import torch
from transformers import Qwen3Config, Qwen3ForSequenceClassification

from trl_reasoning.builtin.tiny import build_tokenizer
from trl_reasoning.errors import UserError
from trl_reasoning.generation import Generation, RewardModelScorer, SamplingParams, render_prompt
from trl_reasoning.generation.search import best_of_n, score_solutions, step_beam_search
from trl_reasoning.rewards.steps import StepScore, split_steps


PROMPT = [{"role": "user", "content": "2+3=?"}]
PARAMS = SamplingParams(max_new_tokens=20, seed=5)


def digits(prompts, texts, *, thought_opened, **columns):
    """A step's score is its last digit over 10; a step without one is not judged."""
    assert len(prompts) == len(texts) == len(thought_opened)
    return [
        [
            StepScore(end, int(text[end - 1]) / 10 if text[end - 1].isdigit() else None)
            for _, end in split_steps(text, opened=opened)
        ]
        for text, opened in zip(texts, thought_opened, strict=True)
    ]


def records(*completions: str, problem: int = 0) -> list[dict]:
    return [
        {"id": problem, "sample": sample, "prompt": PROMPT, "completion": text, "thought_opened": False, "tokens": 9}
        for sample, text in enumerate(completions)
    ]


SAMPLES = records("<think>9\n3</think>9", "<think>5\n6</think>5", "<think>x</think>y") + records(
    "<think>x</think>y", "<think>1</think>1", problem=4
)


@pytest.mark.parametrize(
    ("aggregate", "expected"),
    [
        ("min", [0.3, 0.5, None, None, 0.1]),
        ("product", [0.243, 0.15, None, None, 0.01]),
        ("last", [0.9, 0.5, None, None, 0.1]),
    ],
)
def test_scores_of_solutions(aggregate, expected):
    found = score_solutions(SAMPLES, digits, aggregate)
    assert found == [value if value is None else pytest.approx(value) for value in expected]


@pytest.mark.parametrize(("aggregate", "first"), [("min", 1), ("product", 0), ("last", 0)])
def test_best_of_each_problem(aggregate, first):
    best = best_of_n(SAMPLES, digits, aggregate)
    assert [(record["id"], record["sample"]) for record in best] == [(0, first), (4, 1)]


def test_ties_and_nothing_to_score():
    assert best_of_n(records("<think>5</think>5", "<think>5</think>5"), digits)[0]["sample"] == 0
    (alone,) = best_of_n(records("<think>x</think>y", "<think>x</think>y"), digits)
    assert (alone["sample"], alone["score"]) == (0, None)


def test_best_by_a_reward_model(tmp_path, tokenizer):
    config = Qwen3Config(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, head_dim=16, max_position_embeddings=256, num_labels=1, initializer_range=0.5,
        pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        Qwen3ForSequenceClassification(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    scorer = RewardModelScorer(str(tmp_path), device="cpu")
    texts = [record["completion"] for record in SAMPLES[:3]]
    scores = scorer([PROMPT] * 3, [[{"role": "assistant", "content": text}] for text in texts], [[]] * 3)
    assert score_solutions(SAMPLES[:3], scorer) == pytest.approx(scores, abs=1e-6)
    assert best_of_n(SAMPLES[:3], scorer)[0]["sample"] == scores.index(max(scores))


class ScriptedPolicy:
    """Continues each text by the next of the table's pieces, in turn."""

    def __init__(self, table):
        self.tokenizer = build_tokenizer()
        self.batch_size = 4
        self.name = "scripted"
        self.table = table
        self.calls = []

    def fingerprint(self):
        return "w1"

    def generate(self, prompt_ids, params):
        texts = [self.tokenizer.decode(ids).split("<|assistant|>")[1] for ids in prompt_ids]
        self.calls.append((params.seed, params.stop_strings, texts))
        used: dict[str, int] = {}
        found = []
        for text in texts:
            pieces = self.table[text]
            piece = pieces[used.get(text, 0) % len(pieces)]
            used[text] = used.get(text, 0) + 1
            ended = piece.endswith("<|end|>")
            ids = self.tokenizer(piece)["input_ids"]
            reason = "stop" if ended else "stop_string" if piece.endswith("\n") else "length"
            found.append(Generation(ids, piece.removesuffix("<|end|>"), reason))
        return found


TABLE = {
    "": ["<think>3\n", "<think>8\n", "<think>6\n", "<think>8\n"],
    "<think>8\n": ["2\n", "7</think>7<|end|>"],
    "<think>6\n": ["9\n", "6\n"],
    "<think>6\n9\n": ["9</think>9<|end|>", "1"],
    "<think>6\n6\n": ["5"],
}


def test_beams_by_hand():
    """Depth 1 keeps 8 and 6; depth 2 keeps 8,7 (finished, 0.7) and 6,9 (0.6); depth 3 finishes 6,9,9."""
    policy = ScriptedPolicy(TABLE)
    ((first, second),) = step_beam_search(policy, [PROMPT], digits, PARAMS, width=2, expansions=2)
    assert (first.text, first.score, first.finish_reason) == ("<think>8\n7</think>7", 0.7, "stop")
    assert (second.text, second.score, second.finish_reason) == ("<think>6\n9\n9</think>9", 0.6, "stop")
    assert policy.tokenizer.decode(first.token_ids) == "<think>8\n7</think>7<|end|>"
    # Four first steps; then two beams twice each; then the one that is not finished twice.
    assert [(seed, texts) for seed, _, texts in policy.calls] == [
        (5, ["", "", "", ""]),
        (9, ["<think>8\n"] * 2 + ["<think>6\n"] * 2),
        (13, ["<think>6\n9\n"] * 2),
    ]
    assert {stops for _, stops, _ in policy.calls} == {("\n",)}


def test_depth_is_bounded():
    ((first, second),) = step_beam_search(
        ScriptedPolicy(TABLE), [PROMPT], digits, PARAMS, width=2, expansions=2, max_steps=1
    )
    assert [(beam.text, beam.finish_reason) for beam in (first, second)] == [
        ("<think>8\n", "steps"),
        ("<think>6\n", "steps"),
    ]


def test_prompts_do_not_mix():
    other = [{"role": "user", "content": "1+1=?"}]
    alone = step_beam_search(ScriptedPolicy(TABLE), [PROMPT], digits, PARAMS, width=2, expansions=2)
    both = step_beam_search(ScriptedPolicy(TABLE), [PROMPT, other], digits, PARAMS, width=2, expansions=2)
    assert [beam.text for beam in both[0]] == [beam.text for beam in alone[0]]
    assert len(both) == 2


def test_a_step_that_is_cut_ends_its_beam():
    policy = ScriptedPolicy({"": ["<think>8"]})
    ((beam,),) = step_beam_search(policy, [PROMPT], digits, PARAMS, width=1, expansions=1)
    assert (beam.text, beam.finish_reason, len(policy.calls)) == ("<think>8", "length", 1)


def test_a_beam_that_fills_the_positions_ends_and_the_others_go_on():
    """8 and 6 are kept; 8 has ended at depth 2, and 6,9 holds two tokens more than the limit leaves room for."""
    policy = ScriptedPolicy(TABLE)
    length = len(render_prompt(policy.tokenizer, PROMPT)) + len(policy.tokenizer("<think>6\n")["input_ids"])
    policy.model = SimpleNamespace(config=SimpleNamespace(max_position_embeddings=length + PARAMS.max_new_tokens))
    ((first, second),) = step_beam_search(policy, [PROMPT], digits, PARAMS, width=2, expansions=2)
    assert (first.text, first.finish_reason) == ("<think>8\n7</think>7", "stop")
    assert (second.text, second.score, second.finish_reason) == ("<think>6\n9\n", 0.6, "length")
    assert len(policy.calls) == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"width": 0}, "width: expected at least 1, got 0"),
        ({"expansions": 0}, "expansions: expected at least 1, got 0"),
        ({"max_steps": 0}, "max_steps: expected at least 1, got 0"),
        ({"by": "word"}, "by: expected one of"),
    ],
)
def test_bad_settings(change, message):
    with pytest.raises(UserError, match=message):
        step_beam_search(ScriptedPolicy(TABLE), [PROMPT], digits, PARAMS, **{"width": 1, "expansions": 1, **change})
