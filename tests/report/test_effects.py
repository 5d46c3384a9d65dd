"""Effects of single features: their direction, equal to a naive twin, and target leakage."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import pearsonr
from tests import naive

from probewise import DAF, FSDD, MRMR, Tournament
from probewise.criteria.base import Target
from probewise.report import ranking_table, render_html, render_markdown, summarize
from probewise.report.ranking_table import direction_columns, direction_in_words, leaking_columns
from probewise.report.sentences import leakage_sentence
from probewise.stopping import MaxProbes

NONE = np.empty(0, np.int64)


def table(n_classes, *, missing=False):
    rng = np.random.default_rng(n_classes)
    y = np.array([f"class {k}" for k in range(n_classes)])[rng.integers(0, n_classes, 60)]
    X = rng.lognormal(0.0, 1.0, (60, 7))
    X[:, 2] *= 100
    if missing:
        X[rng.random(X.shape) < 0.1] = np.nan
    return X, y


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("missing", [False, True])
def test_classes_equal_the_twin(n_classes, missing):
    X, y = table(n_classes, missing=missing)
    order = np.array([2, 0, 1, 6, 5, 4, 3])
    columns = direction_columns(X, Target.of(y), order, NONE)
    assert ("lower_in" in columns) == (n_classes > 2)
    for row, column in enumerate(order):
        high, low, *interval = naive.direction(X[:, column], y)
        assert columns["higher_in"][row] == high
        assert columns.get("lower_in", [low] * 7)[row] == low
        difference = [columns[name][row] for name in ("difference", "difference_low", "difference_high")]
        np.testing.assert_allclose(difference, interval, atol=1e-6)
    means = [np.nanmean(X[y == label, 2]) for label in np.unique(y)]
    np.testing.assert_allclose(columns["fold_change"][0], max(means) / min(means), atol=1e-6)
    assert np.isnan(columns["fold_change"][1:]).all()  # the range of these is too small for intensities


def test_sparse_data_and_batches_give_the_same(monkeypatch):
    X, y = table(3)
    X[X < 1] = 0
    dense = direction_columns(X, Target.of(y), np.arange(7), NONE)
    monkeypatch.setattr(ranking_table, "BATCH_CELLS", 150)
    sparse = direction_columns(sp.csc_matrix(X), Target.of(y), np.arange(7), NONE)
    for name, column in dense.items():
        same = np.testing.assert_array_equal if name.endswith("_in") else np.testing.assert_allclose
        same(column, sparse[name])
    monkeypatch.setattr(ranking_table, "MAX_CELLS", 240)
    limited = direction_columns(X, Target.of(y), np.arange(7), NONE)
    assert limited["higher_in"] == [*dense["higher_in"][:4], None, None, None]
    assert np.isnan(limited["difference"]).tolist() == [False] * 4 + [True] * 3


def test_features_without_a_direction():
    X = np.column_stack([np.ones(8), [0, 0, 0, 0, 1, 1, 1, 1], np.arange(8), [np.nan] * 4 + [1, 2, 3, 4]]).astype(float)
    y = np.repeat(["a", "b"], 4)
    columns = direction_columns(X, Target.of(y), np.arange(4), np.array([2]))
    assert columns["higher_in"] == [None, "b", None, None]
    assert np.isnan(columns["difference"]).all()  # the second has no variance within the classes
    assert [direction_in_words(columns, row) for row in range(4)] == ["", "higher in b", "", ""]


def test_correlation_with_a_numeric_target():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 4)), rng.standard_normal(40)
    X[:, 1] -= y
    X[:7, 2], X[:, 3] = np.nan, 5.0
    columns = direction_columns(X, Target.of(y), np.arange(4), NONE)
    for row in range(3):
        known = np.isfinite(X[:, row])
        expected = pearsonr(X[known, row], y[known])
        interval = expected.confidence_interval(0.95)
        correlation = [columns[name][row] for name in ("correlation", "correlation_low", "correlation_high")]
        np.testing.assert_allclose(correlation, [expected.statistic, interval.low, interval.high], atol=1e-6)
    assert np.isnan(columns["correlation"][3])
    assert direction_in_words(columns, 1).startswith("decreases with the target, correlation −0.")


def test_every_format_has_the_direction():
    X, y = table(3, missing=True)
    fsdd = FSDD().fit(X, y)
    summary = summarize(fsdd, X, y)
    columns, values = summary["ranking"]["columns"], summary["values"]
    assert columns["higher_in"][0] == naive.direction(X[:, np.argmin(fsdd.ranking_)], y)[0]
    assert values["features"] == columns["feature"]
    column = int(values["features"][0][1:])
    known = X[(y == "class 1") & np.isfinite(X[:, column]), column]
    np.testing.assert_allclose(values["boxes"][0][1], np.quantile(known, [0, 0.25, 0.5, 0.75, 1]))
    assert values["points"][0][1] == sorted(known)
    words = direction_in_words(columns, 0)
    assert words.startswith(f"higher in {columns['higher_in'][0]} than in {columns['lower_in'][0]} by ")
    assert words in render_html(summary)
    assert words in render_markdown(summary)
    without_data = summarize(fsdd)
    assert without_data["values"] is None
    assert "higher_in" not in without_data["ranking"]["columns"]
    assert 'id="values"' not in render_html(without_data)


def test_values_to_draw():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 6))
    y = X[:, 1] + 0.1 * rng.standard_normal(300)
    summary = summarize(DAF(stop=MaxProbes(200), random_state=0).fit(X, y), X, y)
    values = summary["values"]
    assert len(values["target"]) == len(values["values"][0]) == 200
    assert "increases with the target, correlation 0.9" in render_html(summary)
    y = np.repeat(np.arange(9), np.arange(2, 11))  # of many classes the largest are drawn
    values = summarize(FSDD().fit(np.arange(54.0)[:, None] % 7, y), np.arange(54.0)[:, None] % 7, y)["values"]
    assert values["classes"] == ["3", "4", "5", "6", "7", "8"]
    assert values["left_out"] == 3


# ---- target leakage

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


@pytest.mark.parametrize(("name", "none"), [("correlation", 0.0), ("hazard_ratio", 1.0)])
def test_an_interval_that_contains_no_effect_has_no_direction(name, none):
    ends = {f"{name}_low": [none - 0.2, none + 0.1, np.nan], f"{name}_high": [none + 0.3, none + 0.3, np.nan]}
    columns = {name: [none + 0.1, none + 0.2, none + 0.2], **ends}
    words = [direction_in_words(columns, row) for row in range(3)]
    assert words[0].startswith(f"no clear direction, {name.replace('_', ' ')} {none + 0.1:.2f} (")
    assert all(each.startswith(("increases with the target", "higher is worse")) for each in words[1:])
