"""Representatives: near copies of better features come last; spectra need few wavelengths; bands have names."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LinearRegression, RidgeCV
from sklearn.model_selection import LeaveOneOut, cross_val_predict, cross_val_score
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import naive
from probewise import DAF, FSDD, Tournament
from probewise.evaluation import representatives, size_curve
from probewise.evaluation.subsets import PENALTIES, TunedRegressor, copies_and_bands, distinct_ranking
from probewise.stopping import MaxProbes


def spectra(n_rows=90, n_columns=150, seed=0, weight=-4):
    """Five broad absorption bands, 10 nm apart in columns of 2 nm; y is the first one where the fourth is corrected."""
    random = np.random.default_rng(seed)
    nm = 1100 + 2 * np.arange(n_columns)
    peaks = np.exp(-(((nm - np.array([[1140], [1200], [1260], [1320], [1370]])) / 14) ** 2))
    amounts = random.lognormal(0, 0.3, (n_rows, 5))
    X = 0.05 * amounts @ peaks + 0.0002 * random.standard_normal((n_rows, n_columns))
    return (
        X,
        10 * amounts[:, 0] + weight * amounts[:, 3] + 0.2 * random.standard_normal(n_rows),
        [f"{each} nm" for each in nm],
    )


@pytest.fixture(scope="module")
def fitted():
    X, y, names = spectra()
    return Tournament("auto", n_probes=1500, random_state=0).fit(pd.DataFrame(X, columns=names), y), X, y, names


def test_two_wavelengths_are_enough_and_stand_for_their_bands(fitted):
    tournament, X, y, names = fitted
    best = np.argsort(tournament.ranking_)[:10]
    nm = np.array([int(name.split()[0]) for name in names])
    assert len(set(np.round(nm[best] / 60))) <= 2  # the ten best wavelengths belong to two bands
    curve = tournament.size_curve_
    assert curve.suggested == 2
    assert curve.mean[1] > 0.9
    two = np.sort(nm[tournament.support_])
    assert abs(two - [1140, 1320]).max() < 30  # peaks are 60 nm apart
    of_two, of_peaks = (
        cross_val_score(LinearRegression(), X[:, np.isin(nm, columns)], y, cv=5).mean()
        for columns in (two, [1140, 1320])
    )
    assert of_two > of_peaks - 0.01
    coefficients = np.linalg.lstsq(np.column_stack([X[:, tournament.support_], np.ones(90)]), y, rcond=None)[0]
    residual = y - X[:, tournament.support_] @ coefficients[:2] - coefficients[2]
    assert 1 - residual.var() / y.var() > 0.9
    assert 1 <= len(tournament.run_.settings.schedule.paired) <= 5
    found = copies_and_bands(tournament, X, names, np.flatnonzero(tournament.support_))
    for each, column in zip(found, np.flatnonzero(tournament.support_), strict=True):
        low, high = (float(end.removesuffix(" nm")) for end in each["band"].split("–"))
        assert each["band"].endswith(" nm")
        assert low <= nm[column] <= high
        assert 8 <= high - low <= 60
        assert each["n_copies"] > 3


@pytest.mark.parametrize("seed", range(3))
def test_a_band_with_a_small_effect_is_second(seed):
    """All of the best twenty wavelengths would be of the first band, and its noisy ends would come second."""
    X, y, _ = spectra(80, 200, seed, weight=-2.5)
    two = representatives(Tournament(n_probes=1500, random_state=0).fit(X, y), X, n_features=2)
    assert abs(np.sort(1100 + 2 * two) - [1140, 1320]).max() <= 24
    assert cross_val_score(LinearRegression(), X[:, two], y, cv=5).mean() > 0.9


@pytest.mark.slow
def test_a_stepwise_regression_adds_no_noise():
    random = np.random.default_rng(0)
    added = []
    for _ in range(40):
        X, y = random.standard_normal((60, 200)), random.standard_normal(60)
        added.append(len(Tournament(n_probes=20, random_state=0).fit(X, y).run_.settings.schedule.paired))
    assert np.mean(np.array(added) > 0) <= 0.15  # 5% are expected, and 2 standard errors


def test_a_difference_of_two_wavelengths_is_scored_as_by_a_tuned_ridge():
    """A fixed penalty of 1 hides it: the difference of columns that correlate by 0.99 has a small variance."""
    random = np.random.default_rng(0)
    X = random.standard_normal((80, 1)) + 0.1 * random.standard_normal((80, 20))
    y = 10 * (X[:, 0] - X[:, 1]) + 0.2 * random.standard_normal(80)
    tournament = Tournament(n_probes=1000, random_state=0).fit(X, y)
    curve = size_curve(tournament, X, y, sizes=[2])
    assert curve.ranking[[0, 1]].tolist() in ([1, 2], [2, 1])
    tuned, splits = make_pipeline(StandardScaler(), RidgeCV(PENALTIES)), [split for split, _ in curve.chosen]
    expected = cross_val_score(tuned, X[:, :2], y, cv=splits)
    np.testing.assert_allclose(curve.scores[:, 0], expected)
    assert expected.mean() > 0.95
    fixed = size_curve(tournament.set_params(criterion="linear").fit(X, y), X, y, sizes=[2])
    assert fixed.mean[0] < 0.9


@pytest.mark.parametrize("shape", [np.sin, np.asarray])
def test_the_model_of_numbers_has_the_smaller_leave_one_out_error(shape):
    random = np.random.default_rng(0)
    X = random.uniform(-5, 5, (60, 1))
    y = shape(X[:, 0]) + 0.1 * random.standard_normal(60)
    model = TunedRegressor().fit(X, y)
    scaled, k = StandardScaler().fit_transform(X), KNeighborsRegressor(10)
    errors = [((cross_val_predict(each, scaled, y, cv=LeaveOneOut()) - y) ** 2).mean() for each in (model.model_, k)]
    assert isinstance(model.model_, RidgeCV if shape is np.asarray else KNeighborsRegressor)
    assert errors[0] <= errors[1] + 1e-12
    np.testing.assert_allclose(model.predict(X), model.model_.predict(scaled))


def test_representatives_equal_their_twin(fitted):
    tournament, X, _, _ = fitted
    expected = naive.representatives(X.T, tournament.ranking_)
    assert representatives(tournament, pd.DataFrame(X, columns=fitted[3])).tolist() == expected
    assert representatives(tournament, pd.DataFrame(X, columns=fitted[3]), n_features=3).tolist() == expected[:3]
    ranking, n_first = distinct_ranking(tournament, X)
    assert np.argsort(ranking)[:n_first].tolist() == expected
    rest = np.argsort(ranking)[n_first:]
    assert (np.diff(tournament.ranking_[rest]) > 0).all()


def test_columns_that_are_no_copies_keep_their_ranks():
    random = np.random.default_rng(0)
    X, y = random.standard_normal((80, 30)), np.arange(80) % 2
    fsdd = FSDD().fit(X, y)
    assert (distinct_ranking(fsdd, X)[0] == fsdd.ranking_).all()
    sparse = sp.random_array((80, 30), density=0.3, rng=0, format="csr")
    assert (distinct_ranking(fsdd, sparse)[0] == distinct_ranking(fsdd, sparse.toarray())[0]).all()
    X[:, 7] = X[:, 3]
    X[3, 7] = np.nan
    assert sorted([3, 7]) != sorted(representatives(fsdd, np.nan_to_num(X))[:2])


def test_groups_kept_features_and_categories_are_no_copies():
    random = np.random.default_rng(0)
    X, y = random.standard_normal((80, 30)), np.arange(80) % 2
    X[:, 10:14] = X[:, [0]]
    options = {"stop": MaxProbes(60), "random_state": 0, "criterion": "linear"}
    daf = DAF(feature_groups=[[10, 11]], keep=[12], categorical_features=None, **options).fit(X, y)
    ranking, n_first = distinct_ranking(daf, X)
    assert n_first == daf.ranking_.max() - len({0, 13})
    assert ranking[12] == daf.ranking_[12]
    assert ranking[10] == ranking[11]
    assert (ranking[[0, 13]] > n_first).all()


@pytest.mark.parametrize(
    ("form", "band"),
    [("{}", "1114–1164"), ("{} nm", "1114–1164 nm"), ("{}cm-1", "1114–1164cm-1"), ("x{}", None), ("{}_at", None)],
)
def test_bands_need_names_that_are_numbers(form, band):
    X, y, _ = spectra()
    names = [form.format(1100 + 2 * column) for column in range(150)]
    fsdd = FSDD().fit(X, y > np.median(y))
    assert copies_and_bands(fsdd, X, names, np.array([20]))[0]["band"] == band
    falling = names[::-1]
    assert copies_and_bands(fsdd, X[:, ::-1], falling, np.array([129]))[0]["band"] == band


def test_the_curve_of_copies_has_one_size():
    random = np.random.default_rng(0)
    X, y = np.repeat(random.standard_normal((60, 1)), 12, axis=1), np.arange(60) % 2
    X += 1e-4 * random.standard_normal(X.shape)
    X[:, 11] = random.standard_normal(60)
    assert size_curve(FSDD().fit(X, y), X, y).sizes.tolist() == [1, 2]
