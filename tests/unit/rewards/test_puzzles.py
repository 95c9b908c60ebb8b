import json
import os
import pickle

import pytest
import reasoning_gym

from trl_reasoning.rewards import judge_puzzles, make_reasoning_gym_reward
from trl_reasoning.rewards._free_answer import find_free_answer
from trl_reasoning.rewards._puzzle_audit import CAP
from trl_reasoning.rewards._puzzle_entries import encode_entry, score_answer
from trl_reasoning.rewards._puzzle_scorers import OWN_SCORERS


def puzzles(task, count=6, seed=5, **params):
    entries = reasoning_gym.create_dataset(task, seed=seed, size=count, **params)
    return [(entry, encode_entry(task, params, entry["answer"], entry["metadata"])) for entry in entries]


def score(task, answer, gold, metadata=None):
    return score_answer(encode_entry(task, {}, gold, metadata or {}), answer)


LIBRARY = (
    "acre", "ab", "base_conversion", "bf", "caesar_cipher", "calendar_arithmetic", "chain_sum", "circuit_logic",
    "cryptarithm", "decimal_arithmetic", "fraction_simplification", "game_of_life", "gsm_symbolic", "jugs",
    "knights_knaves", "letter_jumble", "mini_sudoku", "palindrome_generation", "polynomial_equations", "pool_matrix",
    "prime_factorization", "quantum_lock", "rearc", "sentence_reordering", "shortest_path", "survo", "syllogism",
    "time_intervals", "tower_of_hanoi", "word_ladder", "word_sorting",
)  # fmt: skip


@pytest.mark.parametrize("task", [*LIBRARY, *OWN_SCORERS])
def test_the_librarys_own_answer_is_right_and_others_are_not(task):
    for entry, puzzle in puzzles(task, 2):
        if "Integral" in entry["answer"]:  # an integral that the library did not solve
            continue
        assert score_answer(puzzle, entry["answer"].strip()) == pytest.approx(1.0, abs=1e-9)
        for wrong in ("", "zzz", "nan", "NaN", "[NaN, NaN, NaN]", "[]", "{}", "-7777.123", entry["question"]):
            assert score_answer(puzzle, wrong) < 1


@pytest.mark.parametrize(
    ("task", "metadata_key"), [("graph_color", "possible_answer"), ("rubiks_cube", "example_correct_answer")]
)
def test_tasks_without_an_answer_of_their_own(task, metadata_key):
    for entry, puzzle in puzzles(task, 2):
        found = entry["metadata"][metadata_key]
        assert score_answer(puzzle, found if isinstance(found, str) else json.dumps(found)) == 1.0
        assert score_answer(puzzle, "{}") < 1 and score_answer(puzzle, "U") < 1


def test_rush_hour_and_boxnet_by_hand():
    # One row: the red car AA stands two cells from the exit with nothing in its way.
    board = "oooooo" * 2 + "ooAAoo" + "oooooo" * 3
    rush = encode_entry("rush_hour", {}, None, {"board_config": board})
    assert score_answer(rush, "A+2") == 1.0
    assert score_answer(rush, "A+1") < 1
    state = {"0.5_0.5": ["box_red"], "0.5_1.5": ["target_red"]}
    boxes = encode_entry("boxnet", {}, None, {"initial_state": state})
    plan = '[{"Agent[0.5, 0.5]": "move(box_red, square[0.5, 1.5])"}, {"Agent[0.5, 1.5]": "move(box_red, target_red)"}]'
    assert score_answer(boxes, plan) == 1.0
    assert score_answer(boxes, plan.partition(",  ")[0].replace("target_red", "target_blue")) < 1
    assert score_answer(boxes, '{"a": 1}') == 0.0


@pytest.mark.parametrize(
    ("task", "gold", "metadata", "scores"),
    [
        ("puzzle24", "(7-3)*6*1", {"numbers": [7, 3, 6, 1]},
         {"(7-3)*6*1": 1, "24": 0.05, "8*3": 0.05, "7+3+6+1": 0.05, "12+12": 0.05, "hm": 0.01}),
        ("polynomial_multiplication", "x**2 + 3*x + 2", {},
         {"x**2+3*x+2": 1, "2 + x*x + x + 2*x": 1, "x^2+3*x+2": 1, "(x+1)*(x+2)": 0, "x**2+3*x+1": 0, "x(x+3)": 0,
          "y**2+3*y+2": 0, "x**99999999": 0,
          # The line through the values of the gold at x = 1000003 and x = -524287.
          "475719*x + 524288572863": 0, "*".join(["x**-500"] * 240): 0, "9**9**9**9": 0, "exec('1')": 0}),
        ("simple_integration", "x**3 + C", {"integrand": "3*x**2", "variable": "x"},
         {"x**3 + C": 1, "x**3": 1, "C + x^3 + 7": 1, "x**3 + C*x": 0, "x**3 + x": 0, "3*x**2": 0, "x**4": 0,
          "Integral(3*x**2, x)": 0, "y**3": 0, "C": 0, "1/0": 0, "x**(10**9)": 0,
          "x**3 + x*sin(pi*C)": 0,
          # The slope of what is added is 0 at each of these points, where slopes are compared.
          "x**3+((x-0.3127)*(x-0.7391)*(x-1.2853)*(x-2.1767)*(x-3.4153)*(x+0.4391)*(x+1.6127))**2": 0}),
        ("intermediate_integration", "", {"integrand": "x*cos(x)", "variable": "x"},
         {"x*sin(x) + cos(x) + C": 1, "x*sin(x)": 0, "sin(x)*x - -cos(x)": 1}),
        ("intermediate_integration", "", {"integrand": "1/(2*x)", "variable": "x"},
         {"log(x)/2 + C": 1, "log(3*x)/2": 1, "log(x)": 0, "ln(x)/2": 1}),
        ("intermediate_integration", "", {"integrand": "-8*sqrt(2 - 8*x)", "variable": "x"},
         {"2*(2 - 8*x)**(3/2)/3 + C": 1, "(2 - 8*x)**(3/2)/3": 0}),
        ("binary_matrix", "0 1\n1 2", {}, {"0 1\n1 2": 1, "[[0, 1], [1, 2]]": 0.1, "0 1 1 2": 0, "[[0], [1]]": 0}),
        ("spiral_matrix", "1 2 3", {}, {"1 2 3": 1, "[1, 2, 3]": 0.1, "[1, 2]": 0, "list('123')": 0}),
        ("string_insertion", "ABCD", {}, {"ABCD": 1, "['A', 'B', 'C', 'D']": 0.1, "ABC": 0, "'AB'+'CD'": 0}),
        ("n_queens", "Q _\n_ Q", {"valid_answers": ["Q _\n_ Q"]},
         {"Q _\n_ Q": 1, '[["Q", "_"], ["_", "Q"]]': 0.5, "_ Q\nQ _": 0}),
        ("number_sorting", "['-1.5', '2', '10']", {"direction": "ascending"},
         {"['-1.5', '2', '10']": 1, "[-1.5, 2.0, 10]": 1, "[10, 2, -1.5]": 0, "[-1, 2, 10]": 0, "[NaN, NaN, NaN]": 0,
          "[" + "9" * 400 + "]": 0, "[2, 1e999, -1e999]": 0,
          "-1.5, 2, 10": 0}),
        ("bitwise_arithmetic", "-0x1F", {}, {"-0x1f": 1, "-31": 1, "-0b11111": 1, "31": 0, "0x1f": 0, "-0x20+1": 0}),
        ("game_of_life_halting", "False", {}, {"False": 1, "false": 1, "True": 0, "maybe": 0, "": 0}),
        ("complex_arithmetic", "3 - 2i", {"result": [3.0, -2.0]},
         {"3 - 2i": 1, "3.0-2.0i": 1, "(3-2j)": 1, "nan": 0, "nan+nanj": 0, "infj": 0, "3-2": 0}),
        ("coin_flip", "0.234375", {}, {"0.234375": 1, "15/64": 1, "0.2344": 1, "0": 0, "0.2": 0, "1e999": 0}),
        ("coin_flip", "3.0517e-05", {}, {"3.0517e-05": 1, "1/32768": 1, "0": 0}),
        ("spell_backward", "cba", {}, {"cba": 1, "CBA": 1, "cba or not": 0.8, "zba": 2 / 3}),
        ("letter_jumble", "a b", {}, {"a b": 1, "A B": 1, "a b c": CAP, "a c": 0.5}),
        ("figlet_font", "ABCDEFGHIJKL", {}, {"abcdefghijkl": 1, "abcdefghijxx": CAP, "abcdexxxxxxx": 0.5}),
        ("word_sorting", "a, b", {"sorted_words": ["a", "b"]}, {"a, b": 1, "a, b, c": CAP}),
        ("calendar_arithmetic", "5", {"task": "count_days"}, {"5": 1}),
    ],
)  # fmt: skip
def test_scores_by_hand(task, gold, metadata, scores):
    for answer, expected in scores.items():
        assert score(task, answer, gold, metadata) == pytest.approx(expected, abs=1e-12), answer


def test_partial_credit_of_a_complex_number_falls_with_the_distance():
    assert score("complex_arithmetic", "4-2i", "3 - 2i", {"result": [3.0, -2.0]}) == pytest.approx(0.367879, abs=1e-6)


@pytest.mark.parametrize("task", OWN_SCORERS)
def test_no_text_is_run(task, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for entry, puzzle in puzzles(task, 1):
        for text in (
            "__import__('os').system('touch ran')",
            "[__import__('os').system('touch ran')]",
            "(lambda: open('ran', 'w'))()",
            "exec(\"open('ran','w')\")",
            "x*__import__('os').system('touch ran')",
            entry["answer"] + "*__import__('os').system('touch ran')",
        ):
            assert score_answer(puzzle, text) < 1
    assert os.listdir(tmp_path) == []


def test_the_reward_reads_visible_answers_and_logs_them():
    [(entry, puzzle)] = puzzles("mini_sudoku", 1)
    board = entry["answer"]
    changed = ("2" if board[0] == "1" else "1") + board[1:]
    completions = [
        f"<think>?</think><answer>\n{board}\n</answer>",
        f"<think>?</think>```\n{board}\n```",
        f"<think>{board}</think>I do not know",
        f"<think>?</think><answer>{changed}</answer>",
        "<think>?",
        board,
    ]
    rows = [puzzle] * 5 + ["broken"]
    logged = {}
    reward = make_reasoning_gym_reward()
    found = reward(
        ["?"] * 6, completions, [[1]] * 6, puzzle=rows,
        log_metric=lambda name, value: logged.setdefault(name, []).append(value),
    )  # fmt: skip
    # 15 of 16 cells, and a tenth less for a board that is not the gold's text
    assert found == [1.0, 1.0, 0.0, pytest.approx(0.9 * 15 / 16), 0.0, None]
    assert logged["answers/right"] == [1, 1, 0, 0, 0, 0]
    assert logged["answers/unparsed"] == [0, 0, 0, 0, 1, 0]
    assert logged["answers/unreadable_gold"] == [0, 0, 0, 0, 0, 1]
    assert logged["answers/score"] == found[:5]
    strict = make_reasoning_gym_reward(threshold=1.0)
    assert strict(["?"] * 6, completions, [[1]] * 6, puzzle=rows) == [1.0, 1.0, 0.0, 0.0, 0.0, None]
    half = make_reasoning_gym_reward(threshold=0.5)
    assert half(["?"] * 6, completions, [[1]] * 6, puzzle=rows) == [1.0, 1.0, 0.0, 1.0, 0.0, None]


def test_hostile_moves_cost_nothing():
    [(_, cube)] = puzzles("rubiks_cube", 1)
    [(_, cars)] = puzzles("rush_hour", 1)
    texts = ["<answer>U99999999999</answer>", "<answer>A+99999999999</answer>", f"<answer>{'U ' * 30_000}</answer>"]
    verdicts, scores = judge_puzzles(texts, [cube, cars, cube], [False] * 3)
    assert scores == [0.0, 0.0, 0.0]
    assert [verdict.status for verdict in verdicts] == ["wrong"] * 3


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<think>a</think>1 2\n3 4", "1 2\n3 4"),
        ("<think>a</think>So:\n<answer>\n1 2\n3 4\n</answer>.", "1 2\n3 4"),
        ("<answer>1</answer> no, <answer>2</answer>", "2"),
        ("<answer>1", None),
        ("<think>a", None),
        ("<think>a</think>", None),
        (r"It is $\boxed{\text{B A}}$.", "B A"),
        (r"\boxed{1", None),
        ("```python\n[1, 2]\n```", "[1, 2]"),
        ("Here:\n```\n[1]\n```", "Here:\n```\n[1]\n```"),
        ("<answer>```\n1\n```</answer>", "1"),
    ],
)
def test_free_answers(text, answer):
    assert find_free_answer(text) == answer


def test_parameters():
    assert pickle.loads(pickle.dumps(make_reasoning_gym_reward(0.5))).threshold == 0.5
    for threshold in (0, 1.5, -1):
        with pytest.raises(ValueError, match="threshold: expected"):
            make_reasoning_gym_reward(threshold)
