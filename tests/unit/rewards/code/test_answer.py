import pytest

from trl_reasoning.rewards.code import build_program, extract_code


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("```python\nx = 1\n```", "x = 1"),
        ("First\n```python\nx = 1\n```\nbetter:\n```py\nx = 2\n```\nDone.", "x = 2"),
        ("```Python3\nx = 1\n```\n```bash\nls\n```", "x = 1"),
        ("```\nx = 1\n```", "x = 1"),
        ("```python\nx = 1\n```\nwhich prints\n```\n1\n```", "x = 1"),
        ("  ```python title=a.py\n  x = 1\n  ```", "  x = 1"),
        ("````python\ns = '```'\n````", "s = '```'"),
        ("```python\r\nx = 1\r\ny = 2\r\n```", "x = 1\ny = 2"),
        ("<think>```python\nx = 1\n```</think>```python\nx = 2\n```", "x = 2"),
        ("<think>```python\nx = 1\n```</think>It is x.", None),
        ("<think>\n```python\nx = 1\n```", None),
        ("```python\nx = 1", None),
        ("```python\n\n```", None),
        ("```bash\nls\n```", None),
        ("x = 1", None),
        ("", None),
    ],
)
def test_the_program_is_the_last_python_block_of_the_visible_answer(text, code):
    assert extract_code(text) == code


def test_a_prompt_that_opens_the_thought_hides_it():
    text = "```python\nx = 1\n```</think>```python\nx = 2\n```"
    assert extract_code(text, opened=True) == "x = 2"
    assert extract_code("```python\nx = 1\n```", opened=True) is None


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("    return x + 1\n", "    return x + 1"),
        ("\n    y = x\n    return y", "    y = x\n    return y"),
        ("<think>Add.</think>\n    return x + 1", "    return x + 1"),
        ("def up(x):\n    return x + 1", "def up(x):\n    return x + 1"),
        ("I do not know.", None),
        ("```python\nreturn", None),
    ],
)
def test_an_answer_may_continue_the_code_of_the_prompt(text, code):
    assert extract_code(text, continues=True) == code
    assert extract_code(text) is None


PROMPT = 'import math\n\ndef helper(x):\n    return x\n\n\ndef up(x):\n    """Adds one."""\n'


@pytest.mark.parametrize(
    "code", ["    return helper(x) + 1", "def up(x):\n    return helper(x) + 1", "up = lambda x: x + 1"]
)
@pytest.mark.parametrize("prompt", [PROMPT, PROMPT.replace('    """Adds one."""\n', ""), PROMPT.rstrip()])
def test_a_program_has_the_code_of_the_prompt(code, prompt):
    namespace = {}
    exec(build_program(code, prompt, "up"), namespace)
    assert namespace["up"](2) == 3 and namespace["math"]


def test_without_code_in_the_prompt_the_block_is_the_program():
    assert build_program("x = 1", None, "x") == "x = 1"
    assert (
        build_program("class Solution: ...", "import math", "Solution().add") == "import math\n\nclass Solution: ..."
    )
