"""Sources that choose among samples: `from_samples` and `pairs`, their checks and their rows."""

import gzip
import json

import pytest

from trl_reasoning.data import DataError, load_source, parse_source
from trl_reasoning.data.sample_options import PairOptions, SampleOptions


def record(problem, sample, completion, tokens, status="right", **extra):
    return {
        "id": problem,
        "sample": sample,
        "prompt": [{"role": "user", "content": f"question {problem}"}],
        "completion": completion,
        "tokens": tokens,
        "status": status,
        "finish_reason": "stop",
        "valid_format": True,
        "solution": "4",
        "reply_start": "",
        **extra,
    }


ROWS = [
    record(0, 0, "<think>a long thought</think>4", 9),
    record(0, 1, "<think>short</think>4", 5),
    record(0, 2, "<think>wrong</think>5", 6, "wrong"),
    record(1, 0, "<think>hm</think>6", 5, "wrong"),
    record(1, 1, "<think>cut", 99, "unparsed", finish_reason="length"),
]


@pytest.fixture
def file(tmp_path):
    def write(rows=ROWS, name="records.jsonl"):
        path = tmp_path / name
        text = "".join(json.dumps(row) + "\n" for row in rows)
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
        return path

    return write


def load(path, notes=None, **spec):
    return load_source({"path": str(path), **spec}, notes=notes)


def test_the_right_ones_as_rows_for_sft(file):
    notes = []
    rows = load(file(), notes, from_samples={})
    assert rows.column_names == ["prompt", "solution", "completion"]
    assert rows["prompt"][0] == [{"role": "user", "content": "question 0"}]
    assert [turns[0]["content"] for turns in rows["completion"]] == [ROWS[0]["completion"], ROWS[1]["completion"]]
    assert rows["completion"][0][0]["role"] == "assistant"
    [note] = notes
    assert "2 samples of 1 of 2 prompts (5 samples); left out: wrong: 2, cut: 1" in note


def test_the_shortest_then_the_other_keys_of_a_source(file):
    spec = {"from_samples": {"keep": "all", "take": "shortest"}, "size": 1, "constants": {"scenario": "math"}}
    rows = load(file(), **spec)
    assert [turns[0]["content"] for turns in rows["completion"]] == ["<think>short</think>4"]
    assert rows["scenario"] == ["math"]


@pytest.mark.parametrize("name", ["records.jsonl", "mine.jsonl.gz"])
def test_a_folder_and_a_packed_file(file, name):
    path = file(name=name)
    assert len(load(path.parent if name == "records.jsonl" else path, from_samples={"take": "shortest"})) == 1


def test_prompts_of_plain_text_give_plain_text(file):
    rows = load(
        file([{**ROWS[1], "prompt": "User: 2+2? Assistant: <think>", "completion": "2+2=4</think>4"}]), from_samples={}
    )
    assert rows[0] == {"prompt": "User: 2+2? Assistant: <think>", "solution": "4", "completion": "2+2=4</think>4"}


def test_what_the_chat_template_began_is_put_back(file):
    rows = load(file([record(0, 0, "4</think>4", 3, reply_start="<think>\n")]), from_samples={})
    assert rows["completion"][0][0]["content"] == "<think>\n4</think>4"


def test_without_golds_there_is_no_column_for_them(file):
    rows = load(file([{**ROWS[0], "solution": None, "status": None}]), from_samples={"keep": "all"})
    assert rows.column_names == ["prompt", "completion"]


def test_pairs_for_shorter_thoughts(file):
    rows = load(file(), pairs={"rule": "long2short"})
    assert rows.column_names == ["prompt", "solution", "chosen", "rejected"]
    replies = [(row["chosen"][0]["content"], row["rejected"][0]["content"]) for row in rows]  # type: ignore[index]
    # 9 tokens are 1.8 times 5; the wrong one has 6.
    assert replies == [(ROWS[1]["completion"], ROWS[0]["completion"]), (ROWS[1]["completion"], ROWS[2]["completion"])]
    assert len(load(file(), pairs={"rule": "long2short", "ratio": 1.9})) == 1


def test_pairs_by_score_say_their_scores(file):
    scored = [{**row, "score": score} for row, score in zip(ROWS, [0.5, 2, 1.0, 1.0, None], strict=True)]
    rows = load(file(scored), pairs={"rule": "best_worst", "by": "score"})
    assert [(row["score_chosen"], row["score_rejected"]) for row in rows] == [(2.0, 0.5)]  # type: ignore[index]
    assert rows["chosen"][0][0]["content"] == ROWS[1]["completion"]


def test_pairs_by_verdict_pass_the_check_of_pairs(file):
    from trl_reasoning.data import check_columns

    rows = load(file(), pairs={"rule": "best_worst", "match": "length"})
    assert rows["chosen"][0][0]["content"] == ROWS[1]["completion"]
    check_columns(rows, "preference")


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"from_samples": {"take": "shortes"}}, "from_samples.take: expected one of .*did you mean 'shortest'"),
        ({"from_samples": {"per_promt": 1}}, "from_samples: unknown key 'per_promt'; did you mean 'per_prompt'"),
        ({"from_samples": {"per_prompt": 0}}, "from_samples.per_prompt: expected a whole number of at least 1, got 0"),
        ({"from_samples": {"seed": -1}}, "from_samples.seed: expected a whole number of at least 0, got -1"),
        ({"from_samples": {"valid_format": 1}}, "from_samples.valid_format: expected true or false, got 1"),
        ({"from_samples": "right"}, "from_samples: expected a mapping"),
        ({"pairs": {}}, r"pairs: needs the key 'rule' \(best_worst or long2short\)"),
        ({"pairs": {"rule": "best"}}, "pairs.rule: expected one of best_worst, long2short, got 'best'"),
        ({"pairs": {"rule": "best_worst", "ratio": 2}}, "pairs.ratio: `rule: best_worst` does not read this key"),
        ({"pairs": {"rule": "long2short", "by": "score"}}, "pairs.by: `rule: long2short` does not read this key"),
        ({"pairs": {"rule": "long2short", "ratio": 1}}, "pairs.ratio: expected a number above 1, got 1"),
        ({"pairs": {"rule": "long2short", "ratio": "x"}}, "pairs.ratio: expected a number, got 'x'"),
        ({"pairs": {"rule": "best_worst", "by": "score", "match": "length"}}, "pairs.match: `length` is for"),
        ({"pairs": {"rule": "long2short"}, "from_samples": {}}, "from_samples and pairs both say"),
        ({"from_samples": {}, "adapter": "gsm8k"}, "adapter: samples have keys of their own"),
        ({"from_samples": {}, "columns": {"prompt": "question"}}, "columns: samples have keys of their own"),
        ({"path": "builtin:chain", "from_samples": {}}, "from_samples: needs a file of `trl-reasoning sample`"),
    ],
    ids=str,
)
def test_wrong_keys(spec, words):
    with pytest.raises(DataError, match=words):
        parse_source({"path": "records.jsonl", **spec})


def test_the_options_that_are_right():
    source = parse_source({"path": "a.jsonl", "from_samples": {"per_prompt": 2, "take": None}})
    assert source.from_samples == SampleOptions(per_prompt=2)
    source = parse_source({"path": "a.jsonl", "pairs": {"rule": "long2short", "ratio": 2}})
    assert source.pairs == PairOptions("long2short", ratio=2)
    assert source.has_samples
    assert not parse_source({"path": "a.jsonl"}).has_samples


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"tokens": "9"}, r"records.jsonl, line 2: `tokens`: expected int, got '9'"),
        ({"tokens": True}, r"line 2: `tokens`: expected int, got True"),
        ({"prompt": 3}, r"line 2: `prompt`: expected str or list, got 3"),
        ({"score": float("nan")}, r"line 2: `score`: expected a finite number or null, got nan"),
        ({"prompt": [{"role": "assistant", "content": "4 is"}]}, r"line 2: the sample continues a reply"),
        ({"prompt": "plain text"}, "mixes prompts of plain text and of messages: record 1"),
    ],
    ids=str,
)
def test_wrong_records_name_their_line(file, change, words):
    with pytest.raises(DataError, match=words):
        load(file([ROWS[0], {**ROWS[1], **change}]), from_samples={})


def test_a_file_of_another_program_is_refused(file):
    with pytest.raises(DataError, match=r"line 1: not a sample of `trl-reasoning sample`: id, sample, .* missing"):
        load(file([{"prompt": "q", "completion": "a"}]), from_samples={})
    path = file()
    path.write_text(path.read_text() + '{"id": 5, ')
    with pytest.raises(DataError, match="records.jsonl, line 6: not valid JSON"):
        load(path, from_samples={})
    path.write_text("[1]\n")
    with pytest.raises(DataError, match=r"line 1: expected an object"):
        load(path, from_samples={})


def test_nothing_is_left(file):
    with pytest.raises(DataError, match="the data set is empty: 0 samples of 0 of 1 prompts .*wrong: 1"):
        load(file([ROWS[2]]), from_samples={})
    with pytest.raises(DataError, match="the data set is empty: 0 pairs .*prompts with no right sample: 1"):
        load(file([ROWS[2]]), pairs={"rule": "best_worst"})


def test_a_file_that_is_not_there(tmp_path):
    for path in (tmp_path / "records.jsonl", "owner/samples"):
        with pytest.raises(DataError, match="no file or folder"):
            load(path, from_samples={})
    with pytest.raises(DataError, match=r"has no records\.jsonl"):
        load(tmp_path, from_samples={})
    (tmp_path / "records.jsonl").write_text("\n")
    with pytest.raises(DataError, match="is empty"):
        load(tmp_path, from_samples={})
