"""Answers made to hang, crash or take over the checker; fuzzing of everything that reads an answer."""

import json
import subprocess
import sys
import time
from itertools import zip_longest

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trl_reasoning.answers import extract_answer, is_readable_gold, verify, verify_batch
from trl_reasoning.answers.symbolic import WALL_SECONDS


SECONDS = 5.0
FIRST_HOSTILE_ID = "v143"
PROGRAM = r"""
import asyncio, json, multiprocessing, resource, sys, threading, time
from trl_reasoning.answers import verify
resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))
rows = [json.loads(line) for line in sys.stdin]
def check(where):
    verify(r"\boxed{\sin 2x}", r"2\sin x\cos x")  # starts a worker
    for row in rows:
        if row["id"] == "slow" and "thread " in where:
            continue
        started = time.monotonic()
        status = verify(row["prediction"], row["gold"]).status
        print(json.dumps([where, row["id"], status, time.monotonic() - started]) + "\n", end="", flush=True)
def thread(where):
    thread = threading.Thread(target=check, args=(where,))
    thread.start()
    return thread
check("main")
thread("thread").join()
for started in [thread(f"thread {number}") for number in range(8)]:
    started.join()
async def loop():
    check("loop")
    await asyncio.gather(*(asyncio.to_thread(check, f"to_thread {number}") for number in range(2)))
asyncio.run(loop())
process = multiprocessing.get_context("fork").Process(target=check, args=("daemon",), daemon=True)
process.start()
process.join()
"""
PLACES = ["main", "thread", *(f"thread {n}" for n in range(8)), "loop", "to_thread 0", "to_thread 1", "daemon"]
BESIDE = [
    {"id": "fine 1", "prediction": r"\boxed{(x+1)^2}", "gold": "x^2+2x+1", "right": True},
    {"id": "fine 2", "prediction": r"\boxed{\tan x\cos x}", "gold": r"\sin x", "right": True},
    {"id": "fine 3", "prediction": r"\boxed{\tan x}", "gold": r"\sin x", "right": False},
    {"id": "slow", "prediction": r"\boxed{\int_0^x e^{\sin(t^t)+t^{t^2}} dt}", "gold": "x", "right": False},
]


def test_shared_hostile_rows_anywhere(shared_dir):
    lines = (shared_dir / "cases" / "verify_cases.jsonl").read_text(encoding="utf-8").splitlines()
    hostile = [row for row in map(json.loads, lines) if row["id"] >= FIRST_HOSTILE_ID]
    rows = [row for pair in zip_longest(hostile, BESIDE) for row in pair if row]
    assert len(rows) >= 9
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input="".join(json.dumps(row) + "\n" for row in rows),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, "")
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert sorted({where for where, *_ in found}) == sorted(PLACES)
    assert len(found) == len(rows) * len(PLACES) - sum("thread " in place for place in PLACES)
    expected = {row["id"]: row["right"] is True for row in rows}
    assert [row for row in found if (row[2] == "right") != expected[row[1]]] == []
    # alone each is done in time; in ten threads they wait for each other's workers
    alone = [row for row in found if not row[0].startswith(("thread ", "to_thread"))]
    assert [row for row in alone if row[3] > SECONDS] == []


def test_rows_beside_hostile_ones_in_a_batch():
    hostile = [
        r"\int_0^x e^{\sin(t^t)+t^{t^2}} dt",
        r"\prod_{k=1}^{999999} (k+x)",
        r"(x+y+z+w)^{300}",
        "{" * 3000,
        "9" * 5000,
    ]
    fine = [(rf"{number}(x+1)", f"{number}x+{number}") for number in range(2, 12)]
    pairs = [pair for number, text in enumerate(hostile) for pair in (fine[number], (text, "x"), fine[-1 - number])]
    verdicts = verify_batch([rf"\boxed{{{answer}}}" for answer, _ in pairs], [gold for _, gold in pairs])
    assert [verdict.is_right for verdict in verdicts] == [pair in fine for pair in pairs]


INJECTIONS = [
    "__import__('os').system('{command}')",
    r"\text{{__import__('os').system('{command}')}}",
    r"\operatorname{{__import__}}('os').system('{command}')",
    r"\mathrm{{eval}}(\mathrm{{open}}('{file}','w'))",
    "open('{file}','w')",
    "(lambda: open('{file}','w'))()",
    'f\'{{open("{file}","w")}}\'',
    "().__class__.__base__.__subclasses__()",
    "x.__class__.__init__.__globals__['__builtins__']['open']('{file}','w')",
    "1 if open('{file}','w') else 2",
    "\x00__import__('os').system('{command}')",
    "5\x00; import os; os.system('{command}')",
    "$(touch {file})",
    "5; touch {file} | `touch {file}`",
    "x_{{__import__('os').system('{command}')}}",
    r"\frac{{open('{file}','w')}}{{1}}",
    "cos(__import__('os').system('{command}'))",
    "Symbol('x', **{{}}).func(open('{file}','w'))",
    'sympify(\'open("{file}","w")\')',
    r"\begin{{pmatrix}} open('{file}','w') & 1 \end{{pmatrix}}",
    "\\{{open('{file}','w'), 1\\}}",
    "ｏｐｅｎ('{file}','w')",
    "cposix\nsystem\n(S'{command}'\ntR.",
    "5 __import__('os').system('{command}')%",
]
AUDIT = r"""
import builtins, json, os, pickle, subprocess, sys
from trl_reasoning.answers import are_readable_golds, verify_batch
from trl_reasoning.answers.formula_worker import PRELOAD, answer_question
for module in PRELOAD: __import__(module)
texts, marks = json.loads(sys.stdin.read())
caught = []
def watch(owner, name):
    real = getattr(owner, name)
    def call(*args, **kwargs):
        if any(mark in repr(args) for mark in marks):
            caught.append([name, repr(args)[:200]])
        return real(*args, **kwargs)
    setattr(owner, name, call)
for name in ("eval", "exec", "compile"): watch(builtins, name)
for name in ("loads", "load"): watch(pickle, name)
watch(os, "system")
watch(subprocess, "run")
forms = ("%s", "\\boxed{%s}", "The answer is %s", "\\boxed{5 %s}", "<answer>%s</answer>")
sides = [form % text for text in texts for form in forms]
for kind in ("auto", "number", "choice", "text"):
    verify_batch(sides, ["5"] * len(sides), kind=kind)
    verify_batch(["5"] * len(sides), sides, kind=kind)
    verify_batch(sides, sides[::-1], kind=kind)
    are_readable_golds(sides, kind)
for text in texts:
    # what the workers do, here where it can be watched
    answer_question(text)
    answer_question(text, "5")
    answer_question("x", text)
print(json.dumps(caught))
"""


def test_no_text_is_run(tmp_path):
    file = tmp_path / "canary"
    texts = [text.format(file=file, command=f"touch {file}") for text in INJECTIONS]
    result = subprocess.run(
        [sys.executable, "-c", AUDIT],
        input=json.dumps([texts, ["canary", "__import__", "__subclasses__"]]),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        cwd=tmp_path,
    )
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == []
    assert list(tmp_path.iterdir()) == []


def test_the_audit_finds_what_it_looks_for(tmp_path):
    program = AUDIT.replace("for text in texts:\n", "eval(texts[0])\nfor text in []:\n").replace(
        "sides = [", "sides = [] and ["
    )
    result = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps([["open('canary', 'w').close()"], ["canary"]]),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        cwd=tmp_path,
    )
    assert json.loads(result.stdout)[0][0] == "eval"
    assert [path.name for path in tmp_path.iterdir()] == ["canary"]


@pytest.mark.parametrize(
    "text", [r"\{" * 20_000, r"\boxed{" * 3_000 + "1" + "}" * 3_000, "2^" * 500 + "2", "1 and " * 4_000]
)
def test_deep_and_long_answers_are_refused_soon(text):
    started = time.process_time()
    for prediction, gold in (
        (text, text),
        (rf"\boxed{{{text}}}", text),
        (rf"\boxed{{{text}}}", "7"),
        (r"\boxed{7}", text),
    ):
        assert verify(prediction, gold).status in ("right", "wrong", "unparsed", "timed_out", "unreadable_gold")
    assert time.process_time() - started < SECONDS


PIECES = [
    *"0123456789xyabei+-*/^_{}()[]|,.;:=<>!%$&\\ \n~'\"#…°π½√¥٣²１·∞和或",
    *("\u202e", "\u200f", "\x00", "\ud800", "\ufffe", "\U0001d7d9"),
    *(r"\frac", r"\sqrt", r"\left", r"\right", r"\{", r"\}", r"\pi", r"\sin", r"\log", r"\text{", r"\boxed{"),
    *("^{", "_{", r"\cdot", r"\infty", r"\cup", r"\in", r"\pm", r"\begin{pmatrix}", r"\end{pmatrix}", r"\le", r"\\"),
    *(" and ", " or ", "cm", "million", "1e999999", "(-1)^", "9^9^", "999!", "The answer is ", "####", "</think>"),
]
hostile_text = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=25).map("".join),
    st.binary(max_size=60).map(lambda data: data.decode("utf-8", "replace")),
    st.tuples(st.sampled_from(PIECES), st.sampled_from([2, 30, 500])).map(lambda pair: pair[0] * pair[1]),
)


@settings(max_examples=60, deadline=None)
@given(hostile_text, hostile_text)
def test_no_text_raises_or_hangs(prediction, gold):
    for text in (rf"\boxed{{{prediction}}}", prediction):
        started = time.monotonic()
        verdict = verify(text, gold)
        assert time.monotonic() - started < 2 * WALL_SECONDS + 2, (text, gold)
        assert verdict.score in (0.0, 1.0, None)
    is_readable_gold(gold, "number")


REPEATED = [
    *PIECES,
    "1,",
    "1,000",
    "1 1/2 ",
    "<answer>",
    r"\boxed{1}, ",
    "answer is 1 ",
    "$1$",
    "and 1 ",
    "a.",
    "13 + 5 = ",
]


@pytest.mark.parametrize("piece", REPEATED)
def test_extraction_is_linear(piece):
    text = piece * (100_000 // len(piece))
    started = time.process_time()
    for attempt in (text, rf"\boxed{{{text}}}", f"The answer is {text}", rf"\boxed{{1}}{text}"):
        extract_answer(attempt)
    assert time.process_time() - started < 4.0
