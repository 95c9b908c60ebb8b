"""KL to a start model on records: problems are the clusters, tokens are those that were drawn."""

import math

import pytest

from trl_reasoning.errors import UserError
from trl_reasoning.evaluation import divergence


END = "<|end|>"
OURS = {"": {"a": 0.5, END: 0.5}}
START = {"": {"a": 0.25, END: 0.75}}
# At every position 0.5 ln(0.5/0.25) + 0.5 ln(0.5/0.75) = 0.5 ln(4/3).
TOKEN = 0.5 * math.log(4 / 3)


def records(backend, *replies):
    return [
        {"id": problem, "sample": 0, "prompt": "x", "token_ids": backend.tokenizer(text=text)["input_ids"]}
        for problem, text in replies
    ]


def test_a_reply_adds_up_its_tokens_and_problems_are_averaged(table_backend):
    backend, start = table_backend(OURS), table_backend(START)
    # Problem 0: 2 and 4 tokens, mean 3; problem 1: 1 token. Mean 2, standard deviation sqrt 2, standard error 1.
    found = divergence(records(backend, (0, f"a{END}"), (0, f"aaa{END}"), (1, END)), backend, start)
    assert found["per_reply"] == pytest.approx(2 * TOKEN)
    assert found["interval"] == pytest.approx([(2 - 12.7062) * TOKEN, (2 + 12.7062) * TOKEN], abs=1e-4)
    assert found["per_token"] == pytest.approx(TOKEN)
    assert found["problems"] == 2


def test_a_model_does_not_diverge_from_itself_and_one_problem_has_no_interval(table_backend):
    backend = table_backend(OURS)
    found = divergence(records(backend, (0, f"a{END}")), backend, table_backend(OURS))
    assert found == {"per_reply": 0.0, "interval": None, "per_token": 0.0, "problems": 1}


def test_what_cannot_be_measured(table_backend):
    backend = table_backend(OURS)
    with pytest.raises(UserError, match="reference: there are no samples"):
        divergence([], backend, backend)
    with pytest.raises(UserError, match="without their token ids; --restart draws them again"):
        divergence([{"id": 0, "prompt": "x"}], backend, backend)
