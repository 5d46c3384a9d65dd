"""What ridge regression says of rows left out: sure only if it is sure of every problem."""

import numpy as np
import pytest

from probewise.kernels.ridge_decisions import Fit, Problem, decide


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_digits_lost_in_one_problem_are_not_found_again_in_another(order):
    lines = np.random.default_rng(0).standard_normal((2, 24))
    lines[1, :12] = lines[0, :12] = 1e9 * lines[0, :12]  # the same column twice, far larger than the penalty
    borders = np.array([0, 9, 12])
    problems = [Problem(np.arange(12), borders, 1, False), Problem(np.arange(12, 24), borders, 1, False)]
    fit, decisions = Fit(np.where(np.arange(24) % 2, 1.0, -1.0)[None], np.ones(24), 1.0), np.empty((1, 6, 1))
    probe = lines, np.arange(2, dtype=np.int32), np.array([0, 2]), np.empty(0, np.int64), np.empty((2, 0))
    alone = [decide(*probe, [problem], fit, decisions)[0] for problem in problems]
    assert alone == [False, True]
    assert not decide(*probe, [problems[number] for number in order], fit, decisions)[0]
