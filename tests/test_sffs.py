"""Floating search walks the twin's path, for any criterion, and never loses what it found."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SequentialFeatureSelector
from sklearn.linear_model import RidgeClassifier

import naive
from probewise import BIF, SFFS
from probewise.criteria import KNN, Linear
from probewise.datasets import make_madelon
from probewise.engine.probes import Subsets
from probewise.stopping import MaxProbes


def table(n=90, d=12, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    X = np.rint(10 * rng.standard_normal((n, d)))
    X[:, [2, 7, 9]] += 8.0 * y[:, None]
    X[:, 5] = X[:, 2] + rng.integers(-4, 5, n)
    return X, y


class Game:
    """A made-up J per subset: no structure, so that the floating steps have much to do."""

    def __init__(self, seed):
        self.seed = seed

    def __call__(self, members):
        return np.random.default_rng([self.seed, *members]).uniform() + 0.08 * len(members)


def named_columns(n_features):
    """A table whose first row has the number of each column."""
    return np.append(np.tile(np.arange(float(n_features)), (29, 1)), np.ones((1, n_features)), axis=0)


class Judged:
    """A criterion over that game: columns are told apart by their first row."""

    def __init__(self, game):
        self.game = game

    def __call__(self, X, y):
        return self.game(sorted(int(name) for name in X[0]))


@pytest.mark.matrix(pairs=True)
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    ("direction", "floating"),
    [("forward", True), ("forward", False), ("forward", "strict"), ("backward", True), ("backward", False)],
)
def test_the_path_is_the_twins(seed, direction, floating):
    X = named_columns(9)
    y = np.arange(30) % 2
    size = 6 if direction == "forward" else 3
    criterion = Judged(Game(seed))
    fitted = SFFS(size, criterion=criterion, direction=direction, floating=floating).fit(X, y)
    twin = naive.floating_search if direction == "forward" else naive.backward_search
    expected = twin(Game(seed), 9, size, floating)
    assert {k: (round(v, 12), list(m)) for k, (v, m) in fitted.path_.items()} == {
        k: (round(v, 12), m) for k, (v, m) in expected.items()
    }


def test_values_that_differ_by_rounding_are_ties():
    """Means of three accuracies of 40 rows are 0.6 or 0.6000000000000001, by the order of the folds."""
    data = make_madelon(120, 24, random_state=1)
    score = KNN(3).bind(data.X, data.y)
    expected = naive.floating_search(lambda subset: score(Subsets.of([subset]))[0], 24, 5)
    path = SFFS(5, criterion="knn").fit(data.X, data.y).path_
    assert {k: list(m) for k, (_, m) in path.items()} == {k: m for k, (_, m) in expected.items()}
    assert path[5][0] == 0.675


def test_bif_breaks_ties_of_rounded_values_in_favor_of_the_lower_column():
    data = make_madelon(120, 24, random_state=1)
    scores = [round(J, 10) for J in KNN(3).bind(data.X, data.y)(Subsets.of(np.arange(24)[:, None]))]
    expected = sorted(range(24), key=lambda column: -scores[column])
    assert np.argsort(BIF(criterion="knn").fit(data.X, data.y).ranking_).tolist() == expected


@pytest.mark.parametrize("criterion", [KNN(3), Linear()])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_with_built_in_criteria_the_path_is_the_twins(criterion, make):
    X, y = table()
    score = criterion.bind(X, y)
    expected = naive.floating_search(lambda s: score(Subsets.of([s]))[0], 12, 6)
    fitted = SFFS(6, criterion=criterion, n_jobs=2).fit(make(X), y)
    assert {k: list(m) for k, (_, m) in fitted.path_.items()} == {k: m for k, (_, m) in expected.items()}
    for size, (value, _) in fitted.path_.items():
        assert value == pytest.approx(expected[size][0], rel=1e-12)
    assert fitted.support_.sum() == 6
    for size in (1, 3, 5):
        fitted.n_features_to_select = size
        assert fitted.get_support(indices=True).tolist() == list(fitted.path_[size][1])


@pytest.mark.parametrize(
    ("direction", "twin"), [("forward", naive.floating_search), ("backward", naive.backward_search)]
)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_groups_enter_and_leave_as_one(direction, twin, n_jobs):
    X, y = named_columns(12), np.arange(30) % 2
    units = [[0, 7], [1], [2], [3, 4, 11], [5], [6], [8], [9], [10]]
    expected = twin(lambda s: Game(2)(sorted(f for unit in s for f in units[unit])), len(units), 5)
    sffs = SFFS(5, criterion=Judged(Game(2)), direction=direction, feature_groups=[[7, 0], [3, 11, 4]], n_jobs=n_jobs)
    path = sffs.fit(X, y).path_
    assert {k: list(m) for k, (_, m) in path.items()} == {
        k: sorted(f for unit in m for f in units[unit]) for k, (_, m) in expected.items()
    }
    assert sffs.get_support(indices=True).tolist() == list(path[5][1])
    assert sffs.ranking_.max() == len(units)
    assert all(len(set(sffs.ranking_[unit])) == len(set(sffs.scores_[unit])) == 1 for unit in units)


def test_groups_of_built_in_criteria():
    X, y = table()
    score = Linear().bind(X, y)
    fitted = SFFS(2, criterion="linear", feature_groups=["a", "b", "a", *range(9)]).fit(X, y)
    for value, members in fitted.path_.values():
        assert (0 in members) == (2 in members)
        assert value == pytest.approx(score(Subsets.of([members]))[0], rel=1e-11)


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_without_floating_it_selects_as_sklearn(direction):
    X, y = table()
    theirs = SequentialFeatureSelector(RidgeClassifier(), n_features_to_select=4, direction=direction, cv=3).fit(X, y)
    ours = SFFS(4, criterion="linear", direction=direction, floating=False).fit(X, y)
    assert ours.support_.tolist() == theirs.support_.tolist()
    by_estimator = SFFS(4, criterion=RidgeClassifier(), direction=direction, floating=False).fit(X, y)
    assert by_estimator.path_.keys() == ours.path_.keys()
    assert by_estimator.support_.tolist() == ours.support_.tolist()


def test_a_limit_keeps_the_best_so_far():
    X, y = table(d=40)
    with pytest.warns(ConvergenceWarning, match="the limit of 150 probes was reached: this is the best subset so far"):
        fitted = SFFS(20, criterion="linear", stop=MaxProbes(150)).fit(X, y)
    assert set(fitted.path_) == {1, 2, 3} or set(fitted.path_) == {1, 2, 3, 4}
    assert fitted.support_.sum() == max(fitted.path_)
    with pytest.warns(ConvergenceWarning):
        assert SFFS(20, criterion="linear", stop=MaxProbes(1)).fit(X, y).support_.sum() == 1


def test_ctrl_c_keeps_the_path():
    X, y = table()
    calls = []

    def interrupting(X, y):
        calls.append(1)
        if len(calls) > 30:
            raise KeyboardInterrupt
        return float(X.std())

    with pytest.warns(ConvergenceWarning, match="interrupted"):
        fitted = SFFS(8, criterion=interrupting).fit(X, y)
    assert 1 in fitted.path_


def test_bad_parameters_are_named():
    X, y = table()
    with pytest.raises(ValueError, match="direction='up'"):
        SFFS(direction="up").fit(X, y)
    with pytest.raises(ValueError, match="floating='loose'"):
        SFFS(floating="loose").fit(X, y)
    fitted = SFFS(3, criterion="linear").fit(X, y)
    fitted.n_features_to_select = 2
    assert fitted.support_.sum() == 2
    fitted.n_features_to_select = 4
    with pytest.raises(ValueError, match="n_features_to_select=4: the path has sizes 1 to 3"):
        fitted.get_support()
    back = SFFS(10, criterion="linear", direction="backward").fit(X, y)
    back.n_features_to_select = 12
    assert back.support_.all()
