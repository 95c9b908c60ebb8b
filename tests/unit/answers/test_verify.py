import json
import subprocess
import sys
import threading

import pytest

from trl_reasoning.answers import are_readable_golds, is_readable_gold, numeric_value, verify, verify_batch


# prediction, gold, status
CASES = [
    # marks and plain values
    ("The answer is 18 eggs per day.", "18", "right"),
    (r"The answer is \$18.50.", "18.5", "right"),
    ("Answer: 1,234 dollars", "1234", "right"),
    ("#### 70,000", "70000", "right"),
    ("The final answer is\n$$\n\\frac{1}{2}\n$$", "0.5", "right"),
    ("答案是：25元", "25", "right"),
    ("<think>12-7</think>5", "5", "right"),
    ("**42**.", "42", "right"),
    ("So she has 5 left.", "5", "unparsed"),
    ("7+5-3", "9", "unparsed"),
    ("7+5-3=9", "9", "right"),
    ("13 + 5 = 18.", "18", "right"),
    ("36/2 = 18", "18", "right"),
    ("3 × 6 = 18", "18", "right"),
    ("5+5=apple", "apple", "unparsed"),
    (r"\boxed{2 1/2}", "21/2", "wrong"),
    (r"\boxed{1 8}", "18", "wrong"),
    (r"\boxed{18 thousands}", "18", "wrong"),
    (r"\boxed{18\text{K}}", "18", "wrong"),
    ("The answer is 18 wrong", "18", "wrong"),
    ("13 + 5 = 6", "18", "wrong"),
    ("13 + 5 =", "18", "unparsed"),
    ("13 + 5 = 18 = 17", "18", "unparsed"),
    ("So 13 + 5 = 18", "18", "unparsed"),
    ("The answer is 5 or 6.", "5", "wrong"),
    # calculations
    (r"\boxed{7+5-3}", "9", "wrong"),
    (r"\boxed{7+5-3=9}", "9", "right"),
    (r"\boxed{2^{10}}", "1024", "right"),
    # number words and mixed numbers never lend a part
    (r"\boxed{3 million}", "3", "wrong"),
    (r"\boxed{5 squared}", "5", "wrong"),
    (r"\boxed{4 10/3}", "10", "wrong"),
    (r"\boxed{2 2/3}", "2", "wrong"),
    # units
    (r"\boxed{12 cm}", "12 mm", "wrong"),
    (r"\boxed{12\text{ cm}}", "12 centimeters", "right"),
    (r"\boxed{x = 12 \text{ eggs}}", "12", "right"),
    (r"\boxed{10 m/s}", r"10 \mathrm{~m} / \mathrm{s}", "right"),
    # numbers
    (r"\boxed{0.333}", "1/3", "wrong"),
    (r"\boxed{1.414214}", r"\sqrt{2}", "wrong"),
    (r"\boxed{\frac{\pi}{3^{80}}}", r"\frac{\pi}{3^{81}}", "wrong"),
    (r"\boxed{50\%}", "1/2", "right"),
    (r"\boxed{4.5e33}", r"4.5 \times 10^{33}", "right"),
    # names, lists, sets, intervals
    (r"\boxed{y=5}", "x=5", "wrong"),
    (r"\boxed{2,3}", "(2,3)", "wrong"),
    (r"\boxed{\{2,1\}}", "1, 2", "right"),
    (r"\boxed{3\pm\sqrt{2}}", r"3+\sqrt{2}, 3-\sqrt{2}", "right"),
    (r"\boxed{x \in (0,1)}", "(0,1)", "right"),
    # choices and words
    ("The answer is (B) 5 cm.", "B", "right"),
    (r"\boxed{\text{Friday}}", "friday", "right"),
    (r"\boxed{3:30}", "3:30", "right"),
    (r"\boxed{1:2}", "2:4", "wrong"),
    # formulas
    (r"\boxed{x^2+2x+1}", "(x+1)^2", "right"),
    (r"\boxed{2\sqrt3}", r"\sqrt{12}", "right"),
    (r"\boxed{|x|}", "x", "wrong"),
    # golds
    (r"\boxed{4}", None, "unreadable_gold"),
    (r"\boxed{4}", "  ", "unreadable_gold"),
    ("no idea", "4. Both pumps together need a quarter of the time.", "unreadable_gold"),
    (r"\boxed{72}", "He sold 48+24=72 clips.\n#### 72", "right"),
    # too large
    (r"\boxed{10^{10^{10}}}", "3", "timed_out"),
    (r"\boxed{(x+1)^{99999}}", "x", "timed_out"),
    (r"\boxed{" + "9" * 5000 + "}", "9", "timed_out"),
]

FIRST_HOSTILE_ID = "v143"


@pytest.mark.parametrize(("prediction", "gold", "status"), CASES)
def test_verify(prediction, gold, status):
    assert verify(prediction, gold).status == status


def test_verdict_fields():
    verdict = verify(r"It is \boxed{0.5}.", r"\frac{1}{2}")
    assert (verdict.is_right, verdict.score, verdict.rule) == (True, 1.0, "number")
    assert (verdict.extracted, verdict.gold) == ("0.5", r"\frac{1}{2}")
    assert verify("no idea", "4").score == 0.0
    assert verify("4", None).score is None


@pytest.mark.parametrize("gold", [4, 4.0, ["4"], b"4"])
def test_gold_of_another_type_is_an_error(gold):
    with pytest.raises(TypeError, match=f"got {type(gold).__name__}"):
        verify("4", gold)


def test_unknown_kind_names_the_nearest():
    with pytest.raises(ValueError, match=r"got 'choise'. Did you mean `choice`\?"):
        verify("4", "4", kind="choise")


@pytest.mark.parametrize(
    ("kind", "prediction", "gold", "status"),
    [
        ("number", r"\boxed{4.0}", "4", "right"),
        ("number", r"\boxed{x}", "4", "wrong"),
        ("number", r"\boxed{x}", "x", "unreadable_gold"),
        ("choice", r"\boxed{b}", "(B)", "right"),
        ("choice", r"\boxed{4}", "4", "unreadable_gold"),
        ("text", r"\boxed{1/2}", "0.5", "wrong"),
        ("text", r"\boxed{NEW  york}", "New York", "right"),
    ],
)
def test_kind(kind, prediction, gold, status):
    assert verify(prediction, gold, kind=kind).status == status


@pytest.mark.parametrize(
    ("gold", "readable"),
    [
        ("18", True),
        ("3, 5", True),
        ("x^2+1", True),
        ("Evelyn", True),
        ("10:30", True),
        (None, False),
        ("$$", False),
        ("14. The first pump fills a quarter of the tank.", False),
    ],
)
def test_is_readable_gold(gold, readable):
    assert is_readable_gold(gold) is readable


def test_numeric_value():
    assert numeric_value(r"\$1,250 dollars") == 1250.0
    assert numeric_value(r"\frac{1}{4}") == 0.25
    assert numeric_value("x") is None
    assert numeric_value("10^{400}") is None
    assert numeric_value("10^{10^{10}}") is None


def _outcome(row):
    status = verify(row["prediction"], row["gold"]).status
    return {"right": True, "unreadable_gold": None}.get(status, False)


def test_shared_cases(shared_dir):
    lines = (shared_dir / "cases" / "verify_cases.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if row["id"] < FIRST_HOSTILE_ID]
    failures = {row["id"] for row in rows if _outcome(row) != row["right"]}
    assert failures == set()


def test_batch_gives_the_verdicts_of_one_by_one():
    predictions, golds = [case[0] for case in CASES], [case[1] for case in CASES]
    verdicts = verify_batch([*predictions, *predictions], [*golds, *golds])
    assert verdicts[: len(CASES)] == verdicts[len(CASES) :]
    assert [verdict.status for verdict in verdicts[: len(CASES)]] == [status for _, _, status in CASES]
    assert verify_batch([], []) == []


def test_batch_takes_a_thought_mark_for_each():
    texts = ["12-7</think>5", "12-7</think>5", "5"]
    assert [verdict.status for verdict in verify_batch(texts, ["5"] * 3, opened=[True, False, True])] == [
        verify(text, "5", opened=opened).status for text, opened in zip(texts, [True, False, True], strict=True)
    ]
    with pytest.raises(ValueError, match="shorter"):
        verify_batch(["5", "5"], ["5"])


def test_batch_of_golds():
    golds = ["18", None, "x^2+1", "$$", "18", "14. The first pump fills a quarter of the tank."]
    assert are_readable_golds(golds) == [is_readable_gold(gold) for gold in golds]
    assert are_readable_golds(["4", "x", "\\frac{1}{2}"], "number") == [True, False, True]


def test_worker_thread_agrees():
    statuses = []
    thread = threading.Thread(target=lambda: statuses.extend(verify(*case[:2]).status for case in CASES))
    thread.start()
    thread.join()
    assert statuses == [status for _, _, status in CASES]


def test_large_data_set_golds_are_readable_and_equal_to_themselves(shared_dir):
    lines = (shared_dir / "data" / "gsm8k_test.jsonl").read_text(encoding="utf-8").splitlines()
    golds = [json.loads(line)["answer"] for line in lines]
    assert all(is_readable_gold(gold, "number") for gold in golds)
    assert all(verify(gold, gold).is_right for gold in golds)


def test_import_is_light():
    program = (
        "import sys, trl_reasoning.answers as a; a.verify('5', '5'); "
        "print([m for m in ('sympy', 'math_verify', 'torch', 'numpy') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
