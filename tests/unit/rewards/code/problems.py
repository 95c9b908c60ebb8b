"""A small set of problems with a right program and wrong ones, in the forms of public data sets."""

from typing import Any


# Each has a program that passes, and programs with the share of tests that they pass.
PROBLEMS: dict[str, dict[str, Any]] = {
    "check_function": {
        "tests": "def check(candidate):\n    assert candidate(2) == 4\n    assert candidate(-3) == 9\n"
        "    for n in range(5):\n        assert candidate(n) == n ** 2\n    assert True",
        "entry_point": "square",
        "code_prompt": "def square(x: int) -> int:\n    '''x times x'''\n",
        "right": "    return x * x",
        "wrong": {"    return 2 * x": 1 / 3, "    return abs(x) * x": 2 / 3, "    return None": 0.0},
    },
    "list_of_asserts": {
        "tests": ["assert add(1, 2) == 3", "assert add(a='x', b='y') == 'xy'", "assert add([1], []) == [1]"],
        "right": "def add(a, b):\n    return a + b",
        "wrong": {
            "def add(a, b):\n    return int(a) + int(b)": 1 / 3,
            "def add(a, b):\n    return [*a, *b]": 1 / 3,
            "def add(x, y):\n    return x + y": 2 / 3,
            "def sub(a, b):\n    return a - b": 0.0,
            "def add(a, b)\n    return a + b": 0.0,
        },
    },
    "in_place": {
        "tests": "rows = [[2, 1], [3]]\nfirst = rows[0]\nassert order(rows=rows) is None\nassert first == [1, 2]\n"
        "assert rows == [[1, 2], [3]]",
        "right": "def order(rows):\n    for row in rows:\n        row.sort()",
        "wrong": {
            "def order(rows):\n    return [sorted(row) for row in rows]": 0.0,
            "def order(rows):\n    rows[:] = []": 1 / 3,
            "def order(rows):\n    pass": 1 / 3,
        },
    },
    "exceptions": {
        "tests": [
            "try:\n    root(-1)\nexcept ValueError as error:\n    assert 'negative' in str(error)\n"
            "else:\n    assert False",
            "assert root(16) == 4",
        ],
        "right": "def root(x):\n    if x < 0:\n        raise ValueError('negative number')\n    return x ** 0.5",
        "wrong": {
            "def root(x):\n    return abs(x) ** 0.5": 1 / 2,
            "def root(x):\n    raise ValueError('negative')": 1 / 2,
            "def root(x):\n    raise KeyError('negative')": 0.0,
        },
    },
    "helper_of_the_prompt": {
        "tests": "def check(candidate):\n    for text in ('ab', 'xyz', ''):\n"
        "        assert candidate(turn(text)) == text",
        "entry_point": "turn_back",
        "code_prompt": "def turn(text):\n    return text[::-1]\n\ndef turn_back(text):\n",
        "right": "def turn_back(text):\n    return turn(text)",
        "wrong": {"    return text": 0.0},
    },
    "method": {
        "tests": "def check(candidate):\n    assert candidate({'a': 1}) == {'a': 2}\n    assert candidate({}) == {}",
        "entry_point": "Solution().step",
        "right": "class Solution:\n    def step(self, counts):\n"
        "        return {key: n + 1 for key, n in counts.items()}",
        "wrong": {
            "class Solution:\n    def step(self, counts):\n        return counts": 1 / 2,
            "def step(counts):\n    return {}": 0.0,
        },
    },
    "setup": {
        "tests": ["assert closest([1.5, 2.5], LIMIT) == 2.5", "import math\nassert math.isnan(closest([], LIMIT))"],
        "test_setup": "LIMIT = 3",
        "right": "def closest(xs, limit):\n    return min(xs, key=lambda x: abs(x - limit), default=float('nan'))",
        "wrong": {
            "def closest(xs, limit):\n    return LIMIT - 0.5": 0.0,
            "def closest(xs, limit):\n    return xs[-1]": 1 / 2,
        },
    },
}
STDIN = {
    "tests": [
        {"input": "3\n1 2 3\n", "output": "6\n"},
        {"input": "1\n-5\n", "output": "-5"},
        {"input": "0\n\n", "output": "0\n"},
    ],
    "right": "input()\nprint(sum(map(int, input().split())))",
    "wrong": {
        "print(6)": 1 / 3,
        "input()\nprint(sum(map(abs, map(int, input().split()))))": 2 / 3,
        "n = int(input())\nprint(sum(int(x) for x in input().split()) // (n > 0))": 2 / 3,
        "def main():\n    pass": 0.0,
        "print(1 +": 0.0,
    },
}
