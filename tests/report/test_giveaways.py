"""Features that tell the target of every row are pointed out, and nothing else is."""

import numpy as np
import pytest

from probewise import FSDD, MRMR, Tournament
from probewise.criteria.base import Target
from probewise.report import summarize
from probewise.report.leakage import giveaway_sentence, giveaways

random = np.random.default_rng(0)
CLASSES = random.integers(0, 3, 90)
NUMBERS = random.standard_normal(90)


def found(column, y):
    X = random.standard_normal((len(y), 5))
    X[:, 2] = column
    return giveaways(X, Target.of(y), np.array([4, 2, 0, 1, 3]))


@pytest.mark.parametrize(
    "column",
    [
        CLASSES,
        -CLASSES + random.random(90) / 2,
        np.array([7.0, -1.0, 3.0])[CLASSES],
        CLASSES + 3 * random.integers(0, 4, 90),  # four codes a class
        np.where(np.arange(90) % 10, CLASSES, np.nan),
    ],
)
def test_classes_in_other_words(column):
    assert found(column, CLASSES) == [2]


@pytest.mark.parametrize("column", [NUMBERS, np.exp(NUMBERS), -3 * NUMBERS + 1, (100 * NUMBERS).round()])
def test_numbers_in_other_words(column):
    assert found(column, NUMBERS) == [2]


@pytest.mark.parametrize(
    "column",
    [
        np.where(np.arange(90) == 5, 2 - CLASSES, CLASSES) + 0.0,  # one row is not told
        np.arange(90),  # a number for each row
        CLASSES + random.standard_normal(90),
        np.where(CLASSES == 0, np.nan, CLASSES),
        np.where(np.arange(90) % 3, np.nan, CLASSES),
        np.zeros(90),
    ],
)
def test_what_tells_less_is_not_named(column):
    y = np.where(np.arange(90) == 5, 0, CLASSES)
    assert found(np.where(np.arange(90) == 5, 2, column), y) == []


def test_few_rows_are_told_by_luck():
    y = np.array([0, 0, 0, 1, 1, 1])
    assert found(y, y) == []


def test_the_verdict_says_so():
    X, y = random.standard_normal((90, 6)), np.array(["a", "b", "c"])[CLASSES]
    assert len(summarize(FSDD().fit(X, y), X, y)["verdict"]) == 2
    X[:, 3] = CLASSES
    for selector in (FSDD(), MRMR(), Tournament(n_probes=200, random_state=0)):
        summary = summarize(selector.fit(X, y), X, y)
        assert summary["giveaways"] == ["x3"]
        assert summary["verdict"][2].startswith("Beware: x3 tells the target of every row on its own: if it is ")


def test_many_are_counted():
    assert giveaway_sentence(list("abcde")).startswith("a, b, c and 2 more each tell the target of every row")
