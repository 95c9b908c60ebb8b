import collections
import enum
import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trl_reasoning.rewards.code.inside.codec import decode, encode, update_in_place


def travelled(value):
    return decode(json.loads(json.dumps(encode(value))))


HASHABLE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=-(2**200), max_value=2**200),
    st.floats(allow_nan=False),
    st.complex_numbers(allow_nan=False),
    st.text(),
    st.binary(),
)
KEYS = HASHABLE | st.tuples(HASHABLE, HASHABLE) | st.frozensets(HASHABLE, max_size=3)
VALUES = st.recursive(
    HASHABLE,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(KEYS, inner, max_size=4)
        | st.sets(KEYS, max_size=4)
    ),
    max_leaves=12,
)


@settings(deadline=None, max_examples=150)
@given(VALUES)
def test_values_arrive_as_they_were(value):
    arrived = travelled(value)
    assert arrived == value and repr(type(arrived)) == repr(type(value))


def test_types_are_kept_apart():
    value = [1, 1.0, True, (1,), [1], b"1", bytearray(b"1"), "1", {1}, frozenset({1}), 1 + 0j, -0.0, None]
    assert repr(travelled(value)) == repr(value)
    assert math.isnan(travelled(math.nan)) and travelled(-math.inf) == -math.inf
    assert travelled(10**6000) == 10**6000
    assert travelled("\ud800") == "\ud800"


def test_subclasses_arrive_as_what_they_hold():
    class Count(int):
        def __eq__(self, other):
            return True

        __hash__ = int.__hash__

    class Color(enum.IntEnum):
        RED = 1

    pair = collections.namedtuple("pair", "a b")
    values = [Count(5), Color.RED, collections.Counter("aab"), collections.OrderedDict(a=1), pair(1, 2)]
    arrived = travelled(values)
    assert arrived == [5, 1, {"a": 2, "b": 1}, {"a": 1}, (1, 2)]
    assert [type(value) for value in arrived] == [int, int, dict, dict, tuple]


@pytest.mark.parametrize("value", [object(), len, iter([1]), range(3), {1: object()}, [print], lambda: 0, {}.keys()])
def test_objects_do_not_travel(value):
    with pytest.raises(TypeError):
        encode(value)


def test_cycles_and_deep_nesting_do_not_travel():
    cycle: list = []
    cycle.append(cycle)
    deep: list = []
    for _ in range(150):
        deep = [deep]
    for value in (cycle, deep):
        with pytest.raises(ValueError, match="deeply"):
            encode(value)


NO_VALUES = [1.5, {}, {"x": 1}, {"i": "zz"}, {"i": 5}, {"f": 1}, {"f": "nope"}, {"f": "0x1p99999"}, {"c": ["0x1p0"]}]
NO_VALUES += [{"b": "0"}, {"t": 5}, {"s": [[1]]}, {"d": [[1]]}, {"d": [[[], 1]]}, {"d": 3}, {"i": "1", "f": "1"}]


@pytest.mark.parametrize("data", [*NO_VALUES, {"t": {"t": None}}])
def test_what_is_no_form_of_a_value_is_refused(data):
    with pytest.raises(ValueError):
        decode(data)


def test_deep_forms_are_refused():
    data: list = []
    for _ in range(150):
        data = [data]
    with pytest.raises(ValueError, match="deeply"):
        decode(data)


def test_changes_in_place_reach_the_containers_inside():
    row, table, seen = [1, 2], {"a": [1]}, {1}
    value = [row, table, (seen, [0])]
    assert update_in_place(value, [[2], {"a": [1, 5], "b": 0}, ({1, 2}, [3, 4])]) is value
    assert (row, table, seen) == ([2], {"a": [1, 5], "b": 0}, {1, 2})
    assert value == [[2], {"a": [1, 5], "b": 0}, ({1, 2}, [3, 4])] and value[0] is row
    shorter = [1, 2, 3]
    update_in_place(shorter, [])
    assert shorter == []
