import math
import pickle

import pytest

from trl_reasoning.config import RecipeError
from trl_reasoning.config.rewards import make_rewards
from trl_reasoning.rewards import REWARDS


def chat(text):
    return [{"role": "assistant", "content": text}]


# What a reward needs to be made.
NEEDED = {"cosine_length": {"max_length": 100}, "soft_overlong": {"max_length": 100, "cache": 20}}


@pytest.mark.parametrize("name", sorted(REWARDS))
def test_rewards_are_named_picklable_and_keep_their_settings(name):
    reward = REWARDS[name](**NEEDED.get(name, {}))
    copy = pickle.loads(pickle.dumps(reward))
    assert copy.__name__ == f"{name}_reward"
    assert copy.columns == reward.columns
    assert vars(copy) == vars(reward)


@pytest.mark.parametrize("name", ["accuracy", "closeness", "format"])
def test_good_beats_bad_in_plain_and_chat_form(name):
    good, bad = r"<think>9-5</think>\boxed{4}", "I do not know."
    for completions in ([good, bad], [chat(good), chat(bad)]):
        # TRL passes more than a reward needs
        values = REWARDS[name]()(["?"] * 2, completions, [[1], [1]], solution=["4", "4"], trainer_state=None)
        assert values == [1.0, 0.0]


@pytest.mark.parametrize("name", ["accuracy", "closeness"])
def test_unreadable_gold_is_not_applicable(name):
    values = REWARDS[name]()(["?"] * 3, [r"\boxed{4}"] * 3, [[1]] * 3, solution=[None, "", "4"])
    assert values == [None, None, 1.0]


@pytest.mark.parametrize("name", ["accuracy", "closeness"])
def test_number_as_gold_is_an_error_that_names_the_type(name):
    with pytest.raises(TypeError, match=r"str or None, got int: 4"):
        REWARDS[name]()(["?"], [r"\boxed{4}"], [[1]], solution=[4])


@pytest.mark.parametrize("name", ["accuracy", "closeness", "cosine_length", "format", "language_consistency"])
def test_column_of_another_length_is_an_error(name):
    reward = REWARDS[name](**NEEDED.get(name, {}))
    with pytest.raises(ValueError, match=r"zip\(\)"):
        reward(["?"] * 2, ["4"] * 2, [[1]] * 2, solution=["4"] * 2, thought_opened=[False])


def test_accuracy_logs_shares_lengths_and_verdicts():
    metrics, extra = [], {}
    values = REWARDS["accuracy"]()(
        ["?"] * 5,
        [r"\boxed{4}", r"\boxed{5}", "no idea", r"\boxed{9^{9^{9}}}", r"\boxed{4}"],
        [[1, 2], [1, 2, 3], [1], [1], [1]],
        solution=["4", "4", "4", "4", None],
        log_metric=lambda name, value: metrics.append((name, value)),
        log_extra=lambda column, column_values: extra.update({column: column_values}),
    )
    assert values == [1.0, 0.0, 0.0, 0.0, None]
    assert extra["verdict"] == ["right", "wrong", "unparsed", "timed_out", "unreadable_gold"]
    assert extra["extracted"] == ["4", "5", None, "9^{9^{9}}", "4"]
    for index, status in enumerate(extra["verdict"]):
        logged = [value for name, value in metrics if name == f"answers/{status}"]
        assert logged == [float(row == index) for row in range(5)]
    assert [value for name, value in metrics if name == "length/right"] == [2.0]
    assert [value for name, value in metrics if name == "length/wrong"] == [3.0, 1.0, 1.0]


def test_accuracy_reads_the_visible_answer_only():
    reward = REWARDS["accuracy"]()
    completions = [r"<think>\boxed{4}</think>5", r"\boxed{4} so far", r"\boxed{9}</think>4"]
    values = reward(["?"] * 3, completions, [[1]] * 3, solution=["4"] * 3, thought_opened=[False, True, True])
    assert values == [0.0, 0.0, 1.0]


def test_accuracy_kind():
    assert REWARDS["accuracy"](kind="text")(["?"], [r"\boxed{4.0}"], [[1]], solution=["4"]) == [0.0]
    with pytest.raises(ValueError, match=r"got 'numbr'. Did you mean `number`\?"):
        REWARDS["accuracy"](kind="numbr")


def test_format_depends_on_how_the_prompt_ended():
    completions = ["<think>a</think>4", "a</think>4", "4", "<think>a</think>"]
    reward = REWARDS["format"]()
    assert reward(["?"] * 4, completions, [[1]] * 4) == [1.0, 0.0, 0.0, 0.0]
    assert reward(["?"] * 4, completions, [[1]] * 4, thought_opened=[True] * 4) == [0.0, 1.0, 0.0, 0.0]


def test_format_of_parsed_reasoning_in_an_opened_thought():
    completion = [{"role": "assistant", "reasoning_content": "a", "content": "4"}]
    assert REWARDS["format"]()(["?"], [completion], [[1]], thought_opened=[True]) == [1.0]


@pytest.mark.parametrize(
    ("completion", "gold", "expected"),
    [
        (r"\boxed{10}", "10", 1.0),
        (r"\boxed{10.0}", "10", 1.0),
        (r"\boxed{15}", "10", 0.2 + 0.6 / 1.5),  # half the gold away
        (r"\boxed{0}", "10", 0.2 + 0.6 / 2),
        (r"\boxed{2}", "0", 0.2 + 0.6 / 3),  # distances to a gold below 1 are absolute
        ("That makes 15 eggs in all.", "10", 0.5 * (0.2 + 0.6 / 1.5)),  # no answer mark
        ("That makes 1,000 of 5 eggs: 10 in all.", "10", 0.5 * 0.8),
        ("<think>10</think>I do not know.", "10", 0.0),
        (r"\boxed{10}", "x+1", None),
    ],
)
def test_closeness_formula(completion, gold, expected):
    assert REWARDS["closeness"]()(["?"], [completion], [[1]], solution=[gold]) == [pytest.approx(expected)]


def test_closeness_pays_most_for_the_right_answer():
    with pytest.raises(ValueError, match=r"parsable=0\.5 and near=0\.5"):
        REWARDS["closeness"](parsable=0.5, near=0.5)
    with pytest.raises(ValueError, match=r"unmarked must be in \[0, 1\], got 2"):
        REWARDS["closeness"](unmarked=2)


def test_parameters_come_from_a_recipe():
    rewards = make_rewards(
        [
            {"name": "accuracy", "right": 10, "wrong": 0, "unparsed": -1.5, "kind": "number"},
            {"name": "cosine_length", "max_length": 1000, "wrong_long": -0.1, "overlong": -2},
            {"name": "format", "template": "think_answer", "credit": "partial", "allow_empty_thought": False},
            {"name": "language_consistency", "language": "de", "part": "both", "by": "script"},
            {"name": "repetition", "ngram": 20, "unit": "words", "max_penalty": 0.5, "weight": 0.1},
            {"name": "soft_overlong", "max_length": 1000, "cache": 200},
        ]
    )
    batch = {"completion_ids": [[1] * 900], "solution": ["4"]}
    text = "<think>Wir ziehen 5 von 9 ab.</think><answer>4</answer>"
    values = [reward.function(prompts=["?"], completions=[text], **batch)[0] for reward in rewards]
    cosine = 0.5 + 0.25 * (1 + math.cos(math.pi * 0.9))
    assert values == pytest.approx([10.0, cosine, 1.0, 1.0, 0.0, -0.5])
    assert rewards[4].weight == 0.1


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"name": "soft_overlong", "max_length": 100}, "needs `cache`"),
        ({"name": "soft_overlong", "max_length": 100, "cash": 20}, "no parameter `cash`.*Did you mean `cache`"),
        ({"name": "format", "credit": "half"}, "credit"),
        ({"name": "repetition", "ngram": 2.5}, "ngram"),
        ({"name": "accuracy", "wrong": 3}, "wrong: expected less than right"),
        ({"name": "cosine_length", "max_length": 100, "wrong_short": 0}, "wrong_short: expected at most wrong_long"),
        ({"name": "language_consistency", "language": "xx"}, "language: expected one of"),
    ],
)
def test_bad_parameters_are_errors_of_the_recipe(entry, message):
    with pytest.raises(RecipeError, match=message):
        make_rewards([entry])
