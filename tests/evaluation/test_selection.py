"""Selection frequencies on halves of the rows: equal to a literal loop, near chance on noise, high for clear signal."""

import numpy as np
import pytest

from probewise import FSDD, Tournament
from probewise.criteria.base import Target
from probewise.evaluation import nested_score, selection_frequency, size_curve
from probewise.evaluation.nested import SelectionFrequency, halves
from probewise.stability import kuncheva


def table(seed, n_rows=100, n_features=200, effect=0.0):
    random = np.random.default_rng(seed)
    y = np.arange(n_rows) % 2
    X = random.standard_normal((n_rows, n_features))
    X[:, :5] += effect * y[:, None]
    return X, y


def test_frequencies_are_those_of_a_loop_over_halves():
    X, y = table(0, effect=1.0)
    found = selection_frequency(FSDD(6).fit(X, y), X, y, n_pairs=3)
    subsets = []
    for seed in range(3):
        first, second = halves(Target.of(y), None, seed)
        assert np.sort(np.concatenate([first, second])).tolist() == list(range(100))
        assert [np.bincount(y[half]).tolist() for half in (first, second)] == [[25, 25], [25, 25]]
        subsets += [FSDD(6).fit(X[half], y[half]).support_ for half in (first, second)]
    np.testing.assert_array_equal(found.subsets, subsets)
    np.testing.assert_allclose(found.frequencies, np.mean(subsets, axis=0))
    pairs = [[np.flatnonzero(half) for half in subsets[k : k + 2]] for k in (0, 2, 4)]
    shared = [len(np.intersect1d(*pair)) for pair in pairs]
    assert found.shared == pytest.approx(np.mean(shared))
    assert found.stability == pytest.approx(np.mean([kuncheva(pair, 200) for pair in pairs]))
    assert found.shared_by_chance == pytest.approx(36 / 200)
    assert repr(found).startswith(f"SelectionFrequency: two halves of the rows share {found.shared:.1f} of their top 6")


def test_noise_is_selected_as_often_as_chance_would():
    """Over 12 tables of noise the stability is 0 within three standard errors; with a signal it is far above."""
    found = [selection_frequency(FSDD(20).fit(X, y), X, y, n_pairs=2) for X, y in map(table, range(12))]
    stability = np.array([each.stability for each in found])
    assert abs(stability.mean()) < 3 * stability.std(ddof=1) / np.sqrt(12)
    assert np.mean([each.shared for each in found]) == pytest.approx(2.0, abs=0.7)  # 20 * 20 / 200
    assert np.mean([each.frequencies[:5] for each in found]) == pytest.approx(0.1, abs=0.07)
    X, y = table(0, effect=2.0)
    clear = selection_frequency(FSDD(5).fit(X, y), X, y)
    assert clear.stability == 1
    assert clear.frequencies[:5].tolist() == [1.0] * 5


@pytest.mark.slow
def test_a_tournament_on_noise():
    """The stability of one table has a standard deviation of 0.07, so that of eight tables has an error of 0.025."""
    found = []
    for X, y in (table(seed, n_rows=60, n_features=150) for seed in range(8)):
        tournament = Tournament(20, n_probes=1000, random_state=0).fit(X, y)
        found.append(selection_frequency(tournament, X, y, n_pairs=2))
        assert found[-1].subsets.sum(axis=1).tolist() == [20] * 4
    assert abs(np.mean([each.stability for each in found])) < 0.075
    assert np.mean([each.frequencies[:5] for each in found]) == pytest.approx(20 / 150, abs=0.1)


def test_rows_of_a_group_stay_together():
    X, y = table(0)
    patients = np.arange(100) // 4
    for labels in (y, np.arange(100) / 7):
        for seed in range(3):
            first, second = halves(Target.of(labels), patients, seed)
            assert not set(patients[first]) & set(patients[second])
            assert 40 <= len(first) <= 60
    differ = [halves(Target.of(y), patients, seed)[0].tolist() for seed in range(2)]
    assert differ[0] != differ[1]
    found = selection_frequency(FSDD(5).fit(X, y), X, y, groups=patients)
    assert found.subsets.shape == (10, 200)


def test_too_few_rows_are_refused():
    X, y = table(0, n_rows=20)
    y = np.where(np.arange(20) < 3, 1, 0)
    with pytest.raises(ValueError, match="a class has fewer than 4 rows, too few for two halves"):
        selection_frequency(FSDD(5).fit(X, y), X, y)
    with pytest.raises(ValueError, match="fewer than 4 groups"):
        selection_frequency(FSDD(5).fit(X, y), X, y, groups=np.arange(20) % 3)
    with pytest.raises(ValueError, match="n_pairs=0 must be"):
        selection_frequency(FSDD(5).fit(X, y), X, y, n_pairs=0)


ROWS = {
    "groups without labels": ({"groups": [None] * 60}, "groups has no label"),
    "groups of NaN": ({"groups": np.full(60, np.nan)}, "groups has no label"),
    "two columns of groups": ({"groups": np.ones((60, 2))}, "groups has 2 dimensions"),
    "mixed groups": ({"groups": np.array(["a", 1] * 30, dtype=object)}, "labels of several kinds"),
    "negative weights": ({"sample_weight": -np.ones(60)}, "Negative values .* each of the 60 rows"),
    "no target": ({"y": None}, "y=None: a target is needed"),
    "mixed labels": ({"y": np.array(["a", 1] * 30, dtype=object)}, "y holds labels of several kinds"),
}


@pytest.mark.parametrize("evaluate", [selection_frequency, nested_score, size_curve])
@pytest.mark.parametrize("name", ROWS)
def test_rows_that_cannot_be_evaluated_are_refused(evaluate, name):
    options, message = ROWS[name]
    X, y = table(0, n_rows=60, n_features=8)
    with pytest.raises(ValueError, match=message):
        evaluate(FSDD(3).fit(X, y), X, **{"y": y, **options})


@pytest.mark.parametrize("evaluate", [selection_frequency, nested_score, size_curve])
def test_odd_data_have_the_result_of_plain_data(evaluate):
    X, y = table(0, n_rows=60, n_features=8, effect=1.0)
    X = X.astype(np.float16).astype(np.float32)
    fitted = Tournament(3, n_probes=200, random_state=0).fit(X, y)
    expected = evaluate(fitted, X, y, sample_weight=np.full(60, 2.0))
    found = evaluate(fitted, X.astype(np.float16), y[:, None], sample_weight=2.0)
    assert repr(found) == repr(expected)


def test_sizes_at_the_limits():
    X, y = table(0, n_rows=60, n_features=8)
    fitted = FSDD(3).fit(X, y)
    assert selection_frequency(fitted, X, y, top=8).stability == 1.0  # was a division by zero
    with pytest.raises(ValueError, match="sizes=5 must be whole numbers from 1 to 8"):
        size_curve(fitted, X, y, sizes=5)


def test_more_rows_have_fewer_halves():
    X, y = table(0, n_rows=600, n_features=30)
    assert selection_frequency(FSDD().fit(X, y), X, y).subsets.shape == (4, 30)
    assert selection_frequency(FSDD(25).fit(X, y), X, y).top == 7  # a quarter of the features
    assert SelectionFrequency(np.ones((2, 4), bool), 4).shared == 4
