"""Target leakage: features that determine the target are reported, and no others."""

import numpy as np
import pytest

from probewise import FSDD, MRMR, Tournament
from probewise.criteria.base import Target
from probewise.report import summarize
from probewise.report.leakage import leaking_columns
from probewise.report.sentences import leakage_sentence

random = np.random.default_rng(0)
CLASSES = random.integers(0, 3, 90)
NUMBERS = random.standard_normal(90)


def leaking(column, y):
    X = random.standard_normal((len(y), 5))
    X[:, 2] = column
    return leaking_columns(X, Target.of(y), np.array([4, 2, 0, 1, 3]))


@pytest.mark.parametrize(
    "column",
    [
        CLASSES,
        -CLASSES + random.random(90) / 2,
        np.array([7.0, -1.0, 3.0])[CLASSES],
        CLASSES + 3 * random.integers(0, 4, 90),  # four codes for each class
        np.where(np.arange(90) % 10, CLASSES, np.nan),
    ],
)
def test_encodings_of_classes(column):
    assert leaking(column, CLASSES) == [2]


@pytest.mark.parametrize("column", [NUMBERS, np.exp(NUMBERS), -3 * NUMBERS + 1, (100 * NUMBERS).round()])
def test_functions_of_a_numeric_target(column):
    assert leaking(column, NUMBERS) == [2]


@pytest.mark.parametrize(
    "column",
    [
        np.where(np.arange(90) == 5, 2 - CLASSES, CLASSES) + 0.0,  # wrong for one sample
        np.arange(90),  # a different number for each sample
        CLASSES + random.standard_normal(90),
        np.where(CLASSES == 0, np.nan, CLASSES),
        np.where(np.arange(90) % 3, np.nan, CLASSES),
        np.zeros(90),
    ],
)
def test_less_informative_features_are_not_reported(column):
    y = np.where(np.arange(90) == 5, 0, CLASSES)
    assert leaking(np.where(np.arange(90) == 5, 2, column), y) == []


def test_few_samples_can_be_separated_by_chance():
    y = np.array([0, 0, 0, 1, 1, 1])
    assert leaking(y, y) == []


def test_the_verdict_warns():
    X, y = random.standard_normal((90, 6)), np.array(["a", "b", "c"])[CLASSES]
    assert len(summarize(FSDD().fit(X, y), X, y)["verdict"]) == 2
    X[:, 3] = CLASSES
    for selector in (FSDD(), MRMR(), Tournament(n_probes=200, random_state=0)):
        summary = summarize(selector.fit(X, y), X, y)
        assert summary["leakage"] == ["x3"]
        assert summary["verdict"][2].startswith("Possible target leakage: x3 determines the target exactly. Remove")


def test_many_features_are_counted():
    assert leakage_sentence(list("abcde")).startswith("a, b, c and 2 more each determine the target exactly.")
