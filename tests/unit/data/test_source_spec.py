import pytest

from trl_reasoning.data import SOURCE_KEYS, DataError, parse_source


def test_values_get_their_types():
    source = parse_source(
        {"path": "rows.jsonl", "size": "100", "shuffle_seed": 7, "weight": "5e-1", "split": None, "columns": None}
    )
    assert source.size == 100
    assert source.shuffle_seed == 7
    assert source.weight == 0.5
    assert source.split is None
    assert source.columns == {}


def test_keys_are_those_of_the_recipes():
    assert set(SOURCE_KEYS) == {
        "path", "name", "split", "adapter", "columns", "size", "shuffle_seed", "weight", "fraction", "params",
        "constants", "from_step", "from_samples", "pairs",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("spec", "mentions"),
    [
        ({"path": "x.jsonl", "splt": "train"}, ["splt", "split"]),
        ({"split": "train"}, ["path"]),
        ({"path": ""}, ["path", "non-empty"]),
        ({"path": 3}, ["path", "string"]),
        ({"path": "x.jsonl", "adapter": "gsm8"}, ["gsm8", "gsm8k"]),
        ({"path": "x.jsonl", "size": 0}, ["size", "0"]),
        ({"path": "x.jsonl", "size": 2.5}, ["size", "integer", "2.5"]),
        ({"path": "x.jsonl", "size": True}, ["size", "integer", "True"]),
        ({"path": "x.jsonl", "size": "many"}, ["size", "many"]),
        ({"path": "x.jsonl", "size": "inf"}, ["size", "inf"]),
        ({"path": "x.jsonl", "shuffle_seed": -1}, ["shuffle_seed", "-1"]),
        ({"path": "x.jsonl", "fraction": 1.5}, ["fraction", "1.5"]),
        ({"path": "x.jsonl", "fraction": 0.5, "size": 3}, ["fraction", "size"]),
        ({"path": "x.jsonl", "weight": 0}, ["weight", "0"]),
        ({"path": "x.jsonl", "from_step": -1}, ["from_step", "-1"]),
        ({"path": "x.jsonl", "from_step": 1.5}, ["from_step", "integer"]),
        ({"path": "x.jsonl", "constants": ["math"]}, ["constants", "mapping"]),
        ({"path": "x.jsonl", "constants": {"kind": ["a"]}}, ["constants", "kind", "text or number"]),
        ({"path": "x.jsonl", "columns": ["solution"]}, ["columns", "mapping"]),
        ({"path": "x.jsonl", "columns": {"solution": 3}}, ["columns", "solution", "3"]),
        ({"path": "x.jsonl", "params": {"size": 3}}, ["params", "builtin"]),
        ({"path": "builtin:chain", "name": "main"}, ["name", "params"]),
    ],
)
def test_a_wrong_spec_names_what_is_wrong(spec, mentions):
    with pytest.raises(DataError) as caught:
        parse_source(spec)
    for word in mentions:
        assert word in str(caught.value)


def test_a_source_that_is_no_mapping():
    with pytest.raises(DataError, match="mapping"):
        parse_source("gsm8k")  # pyright: ignore[reportArgumentType]
