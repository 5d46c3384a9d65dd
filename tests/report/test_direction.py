"""Which way features go: equal to a literal twin, for classes and numbers, sparse data and gaps, in every format."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import pearsonr
from tests import naive

from probewise import DAF, FSDD
from probewise.criteria.base import Target
from probewise.report import direction, render_html, render_markdown, summarize
from probewise.report.direction import direction_columns, in_words
from probewise.stopping import MaxProbes

NONE = np.empty(0, np.int64)


def table(n_classes, *, gaps=False):
    rng = np.random.default_rng(n_classes)
    y = np.array([f"class {k}" for k in range(n_classes)])[rng.integers(0, n_classes, 60)]
    X = rng.lognormal(0.0, 1.0, (60, 7))
    X[:, 2] *= 100
    if gaps:
        X[rng.random(X.shape) < 0.1] = np.nan
    return X, y


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("gaps", [False, True])
def test_classes_equal_the_twin(n_classes, gaps):
    X, y = table(n_classes, gaps=gaps)
    order = np.array([2, 0, 1, 6, 5, 4, 3])
    columns = direction_columns(X, Target.of(y), order, NONE)
    assert ("lower_in" in columns) == (n_classes > 2)
    for place, column in enumerate(order):
        high, low, *interval = naive.direction(X[:, column], y)
        assert columns["higher_in"][place] == high
        assert columns.get("lower_in", [low] * 7)[place] == low
        found = [columns[name][place] for name in ("difference", "difference_low", "difference_high")]
        np.testing.assert_allclose(found, interval, atol=1e-6)
    means = [np.nanmean(X[y == label, 2]) for label in np.unique(y)]
    np.testing.assert_allclose(columns["fold_change"][0], max(means) / min(means), atol=1e-6)
    assert np.isnan(columns["fold_change"][1:]).all()  # these span too little to be intensities


def test_sparse_and_parts_are_the_same(monkeypatch):
    X, y = table(3)
    X[X < 1] = 0
    dense = direction_columns(X, Target.of(y), np.arange(7), NONE)
    monkeypatch.setattr(direction, "CELLS_AT_A_TIME", 150)
    sparse = direction_columns(sp.csc_matrix(X), Target.of(y), np.arange(7), NONE)
    for name, column in dense.items():
        same = np.testing.assert_array_equal if name.endswith("_in") else np.testing.assert_allclose
        same(column, sparse[name])
    monkeypatch.setattr(direction, "MOST_CELLS", 240)
    some = direction_columns(X, Target.of(y), np.arange(7), NONE)
    assert some["higher_in"] == [*dense["higher_in"][:4], None, None, None]
    assert np.isnan(some["difference"]).tolist() == [False] * 4 + [True] * 3


def test_what_goes_no_way():
    X = np.column_stack([np.ones(8), [0, 0, 0, 0, 1, 1, 1, 1], np.arange(8), [np.nan] * 4 + [1, 2, 3, 4]]).astype(float)
    y = np.repeat(["a", "b"], 4)
    columns = direction_columns(X, Target.of(y), np.arange(4), np.array([2]))
    assert columns["higher_in"] == [None, "b", None, None]
    assert np.isnan(columns["difference"]).all()  # the second differs, but has no deviation to measure it by
    assert [in_words(columns, place) for place in range(4)] == ["", "higher in b", "", ""]


def test_numbers_are_correlated():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 4)), rng.standard_normal(40)
    X[:, 1] -= y
    X[:7, 2], X[:, 3] = np.nan, 5.0
    columns = direction_columns(X, Target.of(y), np.arange(4), NONE)
    for place in range(3):
        known = np.isfinite(X[:, place])
        expected = pearsonr(X[known, place], y[known])
        interval = expected.confidence_interval(0.95)
        found = [columns[name][place] for name in ("correlation", "correlation_low", "correlation_high")]
        np.testing.assert_allclose(found, [expected.statistic, interval.low, interval.high], atol=1e-6)
    assert np.isnan(columns["correlation"][3])
    assert in_words(columns, 1).startswith("falls with the target, correlation −0.")


def test_every_format_says_it():
    X, y = table(3, gaps=True)
    fsdd = FSDD().fit(X, y)
    summary = summarize(fsdd, X, y)
    columns, drawn = summary["ranking"]["columns"], summary["values"]
    assert columns["higher_in"][0] == naive.direction(X[:, np.argmin(fsdd.ranking_)], y)[0]
    assert drawn["features"] == columns["feature"]
    place = int(drawn["features"][0][1:])
    inside = X[(y == "class 1") & np.isfinite(X[:, place]), place]
    np.testing.assert_allclose(drawn["boxes"][0][1], np.quantile(inside, [0, 0.25, 0.5, 0.75, 1]))
    assert drawn["points"][0][1] == sorted(inside)
    words = in_words(columns, 0)
    assert words.startswith(f"higher in {columns['higher_in'][0]} than in {columns['lower_in'][0]}, by ")
    assert words in render_html(summary)
    assert words in render_markdown(summary)
    without = summarize(fsdd)
    assert without["values"] is None
    assert "higher_in" not in without["ranking"]["columns"]
    assert "Up or down?" not in render_html(without)


def test_numbers_are_drawn_against_the_target():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 6))
    y = X[:, 1] + 0.1 * rng.standard_normal(300)
    summary = summarize(DAF(stop=MaxProbes(200), random_state=0).fit(X, y), X, y)
    drawn = summary["values"]
    assert len(drawn["target"]) == len(drawn["values"][0]) == 200
    assert "rises with the target, correlation 0.9" in render_html(summary)


def test_many_classes_are_drawn_by_their_size():
    y = np.repeat(np.arange(9), np.arange(2, 11))
    drawn = summarize(FSDD().fit(np.arange(54.0)[:, None] % 7, y), np.arange(54.0)[:, None] % 7, y)["values"]
    assert drawn["classes"] == ["3", "4", "5", "6", "7", "8"]
    assert drawn["left_out"] == 3
