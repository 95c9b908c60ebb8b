"""Step labels by continuations, with a scripted policy: which prefixes are continued, what counts, and resuming."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from trl_reasoning.builtin.tiny import build_tokenizer
from trl_reasoning.data.step_rows import check_step_row
from trl_reasoning.errors import UserError
from trl_reasoning.generation import Generation, RecordsError, SamplingParams, read_records, render_prompt
from trl_reasoning.generation.step_labels import label_steps


PROMPT = [{"role": "user", "content": "7+5-3=?"}]
PARAMS = SamplingParams(max_new_tokens=20)
# Prefix of the completion: how many of four continuations end in 9.
RIGHT = {
    "<think>7+5=12\n": 3,
    "<think>7+5=12\n12-3=9": 4,
    "<think>7+5=13\n": 1,
    "<think>7+5=13\n13-3=10": 0,
}


class ScriptedPolicy:
    """Continues a prefix rightly as often as the table says, over four places in a row."""

    def __init__(self, fails_after=None):
        self.tokenizer = build_tokenizer()
        self.batch_size = 4
        self.name = "scripted"
        self.weights = "w1"
        self.seen = []
        self.fails_after = fails_after

    def fingerprint(self):
        return self.weights

    def generate(self, prompt_ids, params):
        if len(self.seen) == self.fails_after:
            raise KeyboardInterrupt
        prefixes = [self.tokenizer.decode(ids).split("<|assistant|>")[1] for ids in prompt_ids]
        self.seen.append((params.seed, prefixes))
        return [self._continue(prefix, params.seed + row) for row, prefix in enumerate(prefixes)]

    def _continue(self, prefix, place):
        text = f"</think>{9 if place % 4 < RIGHT[prefix] else 1}"
        return Generation([*self.tokenizer(text)["input_ids"], self.tokenizer.eos_token_id], text, "stop")


def record(sample: int, completion: str, status: str, finish_reason: str = "stop", **changes):
    return {
        "id": 0, "sample": sample, "prompt": PROMPT, "completion": completion, "finish_reason": finish_reason,
        "status": status, "solution": "9", "tokens": 20, **changes,
    }  # fmt: skip


RECORDS = [
    record(0, "<think>7+5=12\n12-3=9</think>9", "right"),
    record(1, "<think>7+5=13\n13-3=10</think>10", "wrong"),
    record(2, "<think>7+5=12\n12-", "unparsed", "length"),
]


def test_labels_are_shares_of_right_continuations():
    policy = ScriptedPolicy()
    rows = label_steps(policy, RECORDS, PARAMS, rollouts=4)
    assert [row["steps"] for row in rows] == [["7+5=12", "12-3=9", "9"], ["7+5=13", "13-3=10", "10"], ["7+5=12"]]
    # The last step of a finished solution is its verdict; the step that was cut has no label.
    assert [row["labels"] for row in rows] == [[0.75, 1.0, 1.0], [0.25, 0.0, 0.0], [0.75]]
    assert [row["rollout_tokens"] for row in rows] == [24, 24, 12]  # 3 tokens each
    assert {prefix for _, prefixes in policy.seen for prefix in prefixes} == set(RIGHT)
    seeds = [seed + row for seed, prefixes in policy.seen for row in range(len(prefixes))]
    assert len(set(seeds)) == len(seeds) == 20
    for index, row in enumerate(rows):
        assert check_step_row(row, index) == len(row["steps"])


def test_a_finished_thought_without_an_answer_ends_with_its_verdict():
    rows = label_steps(ScriptedPolicy(), [record(0, "<think>7+5=12\n12-3=9", "unparsed")], PARAMS, rollouts=4)
    assert [(row["steps"], row["labels"]) for row in rows] == [(["7+5=12", "12-3=9"], [0.75, 0.0])]


def test_nothing_to_label():
    records = [record(0, "<think>7+", "unparsed", "length"), record(1, "<think>1</think>9", "unreadable_gold")]
    assert label_steps(ScriptedPolicy(), records, PARAMS, rollouts=4) == []


def test_the_same_rows_in_a_file(tmp_path):
    path = tmp_path / "step_labels.jsonl"
    assert label_steps(ScriptedPolicy(), RECORDS, PARAMS, rollouts=4, path=path) == label_steps(
        ScriptedPolicy(), RECORDS, PARAMS, rollouts=4
    )
    policy = ScriptedPolicy()
    assert label_steps(policy, RECORDS, PARAMS, rollouts=4, path=path) == read_records(path)
    assert policy.seen == []


def many() -> list[dict]:
    """Two groups of solutions: a group has four times the batch size over the rollouts."""
    return [{**RECORDS[sample % 2], "id": sample, "sample": 0} for sample in range(6)]


@pytest.mark.parametrize("kept", [0, 1, 4, 5])
def test_a_killed_run_continues_to_the_same_rows(tmp_path, kept):
    whole = label_steps(ScriptedPolicy(), many(), PARAMS, rollouts=4)
    path = tmp_path / "step_labels.jsonl"
    label_steps(ScriptedPolicy(), many(), PARAMS, rollouts=4, path=path)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:kept]) + lines[kept][:20])
    policy = ScriptedPolicy()
    assert label_steps(policy, many(), PARAMS, rollouts=4, path=path) == whole
    # The first group is drawn with seeds from 0, the second one (two steps each of four solutions) from 32.
    assert min(seed for seed, _ in policy.seen) == (0 if kept < 4 else 32)


def test_an_interruption_loses_one_group(tmp_path):
    path = tmp_path / "step_labels.jsonl"
    with pytest.raises(KeyboardInterrupt):
        label_steps(ScriptedPolicy(fails_after=9), many(), PARAMS, rollouts=4, path=path)
    assert len(read_records(path)) == 4


def test_solutions_without_room_are_left_out_before_the_first_group(tmp_path, caplog):
    """The third solution's prefix is longer than what the positions leave; the others, and a resumed run, go on."""
    long = record(9, "<think>" + "7+5=12\n" * 9 + "12</think>12", "wrong")
    room = len(render_prompt(build_tokenizer(), PROMPT)) + 30 + PARAMS.max_new_tokens
    path = tmp_path / "step_labels.jsonl"
    policy = ScriptedPolicy(fails_after=9)
    policy.model = SimpleNamespace(config=SimpleNamespace(max_position_embeddings=room))
    with pytest.raises(KeyboardInterrupt):
        label_steps(policy, [*many(), long], PARAMS, rollouts=4, path=path)
    assert f"1 of 7 solutions have prefixes of more than {room - 20} tokens" in caplog.text
    policy.fails_after = None
    rows = label_steps(policy, [*many(), long], PARAMS, rollouts=4, path=path)
    assert rows == label_steps(ScriptedPolicy(), many(), PARAMS, rollouts=4)
    with pytest.raises(UserError, match="step labels: 1 of 1 solutions .* lower max_new_tokens"):
        label_steps(policy, [long], PARAMS, rollouts=4)


@pytest.mark.parametrize("changed", ["weights", "rollouts", "step_split", "temperature", "solutions"])
def test_rows_of_other_settings_are_not_mixed(tmp_path, changed):
    path = tmp_path / "step_labels.jsonl"
    label_steps(ScriptedPolicy(), RECORDS, PARAMS, rollouts=4, path=path)
    policy, params = ScriptedPolicy(), PARAMS
    if changed == "weights":
        policy.weights = "w2"
    if changed == "temperature":
        params = replace(PARAMS, temperature=0.5)
    options = {"rollouts": 2 if changed == "rollouts" else 4, "by": "paragraph" if changed == "step_split" else "line"}
    records = RECORDS[:1] if changed == "solutions" else RECORDS
    with pytest.raises(RecordsError, match=f"{changed}: .* there, .* now"):
        label_steps(policy, records, params, path=path, **options)


def test_paragraphs_and_prompts_that_opened_the_thought():
    class Opened(ScriptedPolicy):
        def _continue(self, prefix, place):
            return Generation([], "</think>9", "stop")

    policy = Opened()
    opened = record(0, "7+5=12\n\n  12-3=9</think>9", "right", prompt="<|assistant|><think>")
    rows = label_steps(policy, [opened], PARAMS, rollouts=1, by="paragraph")
    assert [(row["steps"], row["labels"]) for row in rows] == [(["7+5=12", "12-3=9", "9"], [1.0, 1.0, 1.0])]
    # Up to the last line break: blanks before the next step are the continuation's own.
    assert [prefixes for _, prefixes in policy.seen] == [["<think>7+5=12\n\n", "<think>7+5=12\n\n  12-3=9"]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rollouts": 0}, "step_rollouts: expected at least 1, got 0"),
        ({"by": "word"}, "step_split: expected one of"),
        ({"params": replace(PARAMS, temperature=0.0)}, "step_rollouts: with temperature 0"),
        ({"records": [record(0, "<think>1</think>1", None, solution=None)]}, "problem 0 has no `solution`"),
    ],
)
def test_bad_settings(change, message):
    settings = {"records": RECORDS, "params": PARAMS, "rollouts": 4, "by": "line", **change}
    with pytest.raises(UserError, match=message):
        label_steps(ScriptedPolicy(), settings.pop("records"), settings.pop("params"), **settings)
