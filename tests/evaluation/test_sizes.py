"""How many features are enough: the curve against scikit-learn's cross-validation, and noise that is called noise."""

from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, ShuffleSplit, StratifiedKFold, cross_val_score, cross_validate
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import naive
from probewise import BIF, DAF, FSDD, SFFS, Tournament
from probewise.criteria import KNN, Linear
from probewise.datasets import make_madelon
from probewise.engine.probes import Subsets
from probewise.evaluation import nested_score
from probewise.evaluation.sizes import SizeCurve, TooFewRows, size_curve, spaced_sizes, suggested_size
from probewise.stopping import MaxProbes


def curve_of(scores, **options):
    scores = np.asarray(scores, dtype=float)
    settings = {"measure": "accuracy", "scored_by": "somebody", "nested": True} | options
    return SizeCurve(np.arange(1, scores.shape[1] + 1), scores, **settings)


@pytest.fixture(scope="module")
def madelon():
    return make_madelon(200, 30, n_dimensions=3, n_combinations=3, random_state=0)


@pytest.fixture(scope="module")
def daf(madelon):
    return DAF(stop=MaxProbes(800), random_state=0).fit(madelon.X, madelon.y)


# ---- the rule


def test_the_fewest_within_one_standard_error_of_the_best():
    curve = curve_of([[0.5, 0.70, 0.8, 0.7], [0.5, 0.78, 0.8, 0.7], [0.5, 0.75, 0.95, 0.7]])
    np.testing.assert_allclose(curve.mean, [0.5, 0.7433333, 0.85, 0.7])
    np.testing.assert_allclose(curve.std_error[2], 0.05)
    assert (curve.best, curve.suggested) == (3, 3)
    wide = curve_of([[0.5, 0.80, 0.7], [0.5, 0.78, 0.95], [0.5, 0.75, 0.8]])
    assert (wide.best, wide.suggested) == (3, 2)
    assert suggested_size(np.array([1, 5]), np.array([0.6, 0.7]), np.array([np.nan, np.nan])) == 5


def test_of_two_that_are_equally_good_the_smaller_is_best():
    assert curve_of([[0.5, 0.8, 0.8], [0.5, 0.8, 0.8]]).best == 2


def test_one_fold_has_no_error():
    curve = curve_of([[0.5, 0.8, 0.9]], guess=0.5)
    assert np.isnan(curve.std_error).all()
    assert curve.suggested == 3
    assert curve.beats_guessing


def test_guessing_is_beaten_by_two_errors_that_know_of_shared_rows():
    scores = [[0.60, 0.7], [0.62, 0.74]]
    assert curve_of(scores, guess=0.6).beats_guessing
    assert curve_of(scores, guess=0.6, guess_error=0.055).beats_guessing
    assert not curve_of(scores, guess=0.6, guess_error=0.065).beats_guessing
    assert not curve_of(scores, guess=0.6, guess_error=0.05, test_to_train=1.0).beats_guessing
    assert curve_of(scores, guess=None).beats_guessing is None


def test_sizes_are_spaced_by_ratio():
    assert spaced_sizes(4).tolist() == [1, 2, 3, 4]
    assert spaced_sizes(10_000)[[0, -1]].tolist() == [1, 100]
    assert len(spaced_sizes(10_000)) <= 16


# ---- against scikit-learn


def test_the_curve_is_cross_validated_accuracy_along_the_ranking(madelon, daf):
    curve = size_curve(daf, madelon.X, madelon.y, sizes=[9, 1, 4])
    assert curve.sizes.tolist() == [1, 4, 9]
    assert not curve.nested
    order = np.argsort(curve.ranking)
    assert order[:9].tolist() == naive.representatives(madelon.X.T, daf.ranking_)[:9]
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    for place, size in enumerate(curve.sizes):
        expected = cross_val_score(KNeighborsClassifier(3), madelon.X[:, order[:size]], madelon.y, cv=folds)
        np.testing.assert_allclose(curve.scores[:, place], expected, atol=1e-12)
    assert curve.guess == np.bincount(madelon.y).max() / 200
    assert "nearest neighbors" in curve.scored_by


def test_nested_ranks_on_the_training_rows_alone(madelon, daf):
    folds = StratifiedKFold(3)
    curve = size_curve(daf, madelon.X, madelon.y, sizes=[2, 5], cv=folds, nested=True)
    assert curve.nested
    for fold, (train, test) in enumerate(folds.split(madelon.X, madelon.y)):
        again = DAF(stop=MaxProbes(800), random_state=0).fit(madelon.X[train], madelon.y[train])
        order = naive.representatives(madelon.X[train].T, again.ranking_)
        for place, size in enumerate((2, 5)):
            model = KNeighborsClassifier(3).fit(madelon.X[train][:, order[:size]], madelon.y[train])
            expected = model.score(madelon.X[test][:, order[:size]], madelon.y[test])
            assert curve.scores[fold, place] == pytest.approx(expected)


def test_nested_makes_as_many_probes_from_the_same_seed_and_leaves_the_ledger_alone(madelon, tmp_path, monkeypatch):
    path = tmp_path / "run"
    daf = DAF(stop=MaxProbes(100), random_state=7, ledger=path, verbose=0).fit(madelon.X, madelon.y)
    kept, seen = path.read_bytes(), []
    fit = DAF.fit

    def noted(self, *arguments, **options):
        fitted = fit(self, *arguments, **options)
        seen.append((fitted.n_probes_, fitted.run_.feature_plan.seed, fitted.ledger))
        return fitted

    monkeypatch.setattr(DAF, "fit", noted)
    size_curve(daf, madelon.X, madelon.y, sizes=[2], cv=2, nested=True)
    assert seen == [(100, 7, None)] * 2
    assert path.read_bytes() == kept
    assert len(daf.run_.ledger.values()) == 100


def test_nested_is_the_same_for_any_number_of_workers(madelon):
    curves = [
        size_curve(
            DAF(stop=MaxProbes(100), random_state=1, n_jobs=jobs).fit(madelon.X, madelon.y),
            madelon.X,
            madelon.y,
            sizes=[1, 3],
            cv=2,
            nested=True,
        )
        for jobs in (None, 2)
    ]
    assert curves[0].scores.tobytes() == curves[1].scores.tobytes()


# ---- what it suggests


def test_few_features_that_hold_all_there_is_are_suggested():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 40))
    y = (X[:, 3] + X[:, 8] + X[:, 21] > 0).astype(int)
    daf = DAF(criterion="linear", stop=MaxProbes(800), random_state=0).fit(X, y)
    curve, honest = (size_curve(daf, X, y, nested=nested) for nested in (False, True))
    assert curve.suggested == 3
    assert 3 <= honest.suggested <= 7
    assert curve.beats_guessing
    assert honest.beats_guessing


def test_two_that_tell_only_together_are_suggested_together():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 30))
    y = (X[:, 4] * X[:, 9] > 0).astype(int)
    curve = size_curve(DAF(max_probe_size=8, stop=MaxProbes(1500), random_state=0).fit(X, y), X, y)
    assert curve.suggested == 2
    assert curve.mean[0] < 0.65 < 0.85 < curve.mean[1]


@pytest.mark.parametrize("seed", range(4))
def test_noise_does_not_beat_guessing_where_the_curve_is_nested(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((80, 150)), np.arange(80) % 2
    daf = DAF(stop=MaxProbes(300), random_state=seed).fit(X, y)
    assert size_curve(daf, X, y, nested=True).beats_guessing is False


def test_where_it_is_not_nested_it_is_optimistic():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((80, 150)), np.arange(80) % 2
    daf = DAF(stop=MaxProbes(600), random_state=0).fit(X, y)
    seen, honest = (size_curve(daf, X, y, nested=nested).mean.max() for nested in (False, True))
    assert seen > honest + 0.1


def test_numbers_as_target():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((120, 12))
    y = X[:, 2] + 0.5 * X[:, 5]
    curve = size_curve(DAF(criterion="linear", stop=MaxProbes(300), random_state=0).fit(X, y), X, y)
    assert (curve.measure, curve.guess, curve.suggested, curve.beats_guessing) == ("R²", 0.0, 2, True)
    noise = rng.standard_normal(120)
    curve = size_curve(DAF(stop=MaxProbes(300), random_state=0).fit(X, noise), X, noise, nested=True)
    assert curve.beats_guessing is False


# ---- scorers, scores, folds


def test_a_criterion_that_is_not_cross_validated_has_a_stand_in(madelon):
    def spread(X, y):
        return float(np.abs(X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0)).sum())

    X, y = madelon.X, madelon.y
    for criterion in (spread, "separability"):
        curve = size_curve(BIF(criterion=criterion).fit(X, y), X, y, sizes=[3])
        assert curve.scored_by == "3 nearest neighbors, on scaled columns"
    gaps = X.copy()
    gaps[::7, 1] = np.nan
    assert size_curve(FSDD().fit(gaps, y), gaps, y, sizes=[3]).scored_by.endswith("missing values filled")


def test_a_scoring_has_its_own_guess(madelon):
    X, y = madelon.X, madelon.y
    daf = DAF(criterion=LogisticRegression(), scoring="roc_auc", stop=MaxProbes(40), random_state=0).fit(X, y)
    curve = size_curve(daf, X, y, sizes=[1, 3])
    assert (curve.measure, curve.guess) == ("roc_auc", 0.5)
    own = DAF(criterion=LogisticRegression(), scoring=by_nothing, stop=MaxProbes(40), random_state=0).fit(X, y)
    curve = size_curve(own, X, y, sizes=[1, 3])
    assert (curve.measure, curve.guess, curve.beats_guessing) == ("score", None, None)


def by_nothing(estimator, X, y):
    return float(estimator.coef_.sum())


def test_groups_stay_together(madelon):
    X, y = madelon.X, madelon.y
    groups = np.arange(200) // 10
    daf = DAF(stop=MaxProbes(100), random_state=0, cv=GroupKFold(3)).fit(X, y, groups=groups)
    for cv in (4, GroupKFold(4)):
        curve = size_curve(daf, X, y, sizes=[2], cv=cv, nested=True, groups=groups)
        assert curve.scores.shape == (4, 1)
    with pytest.raises(ValueError, match="all rows are in one group"):
        size_curve(daf, X, y, groups=np.zeros(200))


def test_weights_count(madelon):
    X, y = madelon.X, madelon.y
    weights = np.where(np.arange(200) % 2, 1.0, 3.0)
    daf = DAF(criterion="linear", stop=MaxProbes(100), random_state=0).fit(X, y, sample_weight=weights)
    plain, weighted = size_curve(daf, X, y, sizes=[3]), size_curve(daf, X, y, sizes=[3], sample_weight=weights)
    assert plain.scores.tolist() != weighted.scores.tolist()
    equal = size_curve(daf, X, y, sizes=[3], sample_weight=np.ones(200))
    np.testing.assert_allclose(equal.scores, plain.scores)
    assert size_curve(daf, X, y, sizes=[3], cv=2, nested=True, sample_weight=weights).scores.shape == (2, 1)


def test_a_splitter_or_splits_may_be_given(madelon, daf):
    X, y = madelon.X, madelon.y
    splitter = ShuffleSplit(3, test_size=0.25, random_state=0)
    by_splitter = size_curve(daf, X, y, sizes=[3], cv=splitter)
    by_list = size_curve(daf, X, y, sizes=[3], cv=list(splitter.split(X)))
    np.testing.assert_array_equal(by_splitter.scores, by_list.scores)
    assert by_list.test_to_train == pytest.approx(1 / 3)


# ---- any selector, any table


@pytest.mark.parametrize("selector", [FSDD(), BIF(criterion="linear")], ids=["FSDD", "BIF"])
@pytest.mark.parametrize("nested", [False, True], ids=["as it is", "nested"])
def test_selectors_without_probes_have_it(selector, nested, madelon):
    curve = size_curve(selector.fit(madelon.X, madelon.y), madelon.X, madelon.y, nested=nested, cv=2)
    assert curve.sizes[-1] == len(naive.representatives(madelon.X.T, selector.ranking_)) > 20
    assert curve.suggested in curve.sizes


def test_a_path_gives_its_subsets(madelon):
    X, y = madelon.X, madelon.y
    sffs = SFFS(4, criterion=Linear()).fit(X, y)
    curve = size_curve(sffs, X, y, cv=3)
    assert curve.sizes.tolist() == sorted(sffs.path_)
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    own = Linear().bind(X, y, folds)
    np.testing.assert_allclose(curve.mean[1], own(Subsets.of([sffs.path_[2][1]]))[0])
    assert size_curve(sffs, X, y, sizes=[2, 4], cv=2, nested=True).scores.shape == (2, 2)


def test_frames_sparse_tables_and_tables_on_disk_give_the_same(madelon, tmp_path):
    X, y = madelon.X.astype(np.float32), madelon.y
    np.save(tmp_path / "X.npy", X)
    frames = (
        pd.DataFrame(X, columns=madelon.feature_names),
        pl.from_numpy(X, schema=list(madelon.feature_names), orient="row"),
        np.load(tmp_path / "X.npy", mmap_mode="r"),
    )
    options = {"sizes": [1, 4], "cv": 2, "nested": True}
    expected = size_curve(DAF(stop=MaxProbes(60), random_state=0).fit(X, y), X, y, **options)
    for frame in frames:
        curve = size_curve(DAF(stop=MaxProbes(60), random_state=0).fit(frame, y), frame, y, **options)
        np.testing.assert_array_equal(curve.scores, expected.scores)
    sparse = sp.csr_array(X)
    curve = size_curve(DAF(criterion="linear", stop=MaxProbes(60), random_state=0).fit(sparse, y), sparse, y, **options)
    assert np.isfinite(curve.scores).all()


# ---- inside fit


@pytest.mark.parametrize("kind", [partial(DAF, stop=MaxProbes(400)), partial(Tournament, n_probes=400)])
def test_auto_selects_by_the_one_standard_error_rule_over_repeats(madelon, kind):
    X, y = madelon.X, madelon.y
    auto, plain = kind("auto", random_state=0).fit(X, y), kind(random_state=0).fit(X, y)
    assert plain.scores_.tobytes() == auto.scores_.tobytes()
    nested = nested_score(plain, X, y).curve
    np.testing.assert_array_equal(nested.scores, auto.size_curve_.scores)
    assert len(nested.scores) == 15
    enough = naive.suggested_size(nested.sizes, nested.scores)
    best = naive.representatives(X.T, plain.ranking_)[:enough]
    assert np.flatnonzero(auto.support_).tolist() == sorted(best)
    assert auto.transform(X).shape == (200, enough)


@pytest.mark.slow
def test_auto_in_a_pipeline_chooses_on_the_training_rows_of_each_fold(madelon):
    X, y = madelon.X, madelon.y
    pipeline = make_pipeline(
        StandardScaler(), Tournament("auto", n_probes=200, random_state=0), KNeighborsClassifier(3)
    )
    folds = cross_validate(pipeline, X, y, cv=2, return_estimator=True)
    for model, (train, _) in zip(folds["estimator"], StratifiedKFold(2).split(X, y), strict=True):
        alone = Tournament("auto", n_probes=200, random_state=0).fit(StandardScaler().fit_transform(X[train]), y[train])
        assert model[1].support_.tolist() == alone.support_.tolist()
    assert min(folds["test_score"]) > 0.6


def test_auto_says_so_where_there_is_nothing_but_noise():
    X, y = np.random.default_rng(0).standard_normal((80, 100)), np.arange(80) % 2
    with pytest.warns(UserWarning, match="no number of features predicts convincingly better than guessing"):
        DAF("auto", stop=MaxProbes(400), random_state=0).fit(X, y)


def test_sizes_count_groups_as_one_and_begin_with_what_is_kept(madelon):
    X, y = madelon.X, madelon.y
    groups = [[0, 1, 2], [3, 4], list(range(5, 30))]
    options = {"criterion": "linear", "stop": MaxProbes(100), "random_state": 0}
    daf = DAF(feature_groups=groups[:2], **options).fit(X, y)
    curve = size_curve(daf, X, y, cv=2)
    assert curve.sizes[-1] == 26  # one feature is nearly a copy
    for nested in (False, True):
        kept = DAF("auto", keep=[7, 8], **options).fit(X, y)
        curve = size_curve(kept, X, y, cv=3, nested=nested)
        assert curve.sizes[0] == 2
    first = Linear().bind(X[:, [7, 8]], y, StratifiedKFold(3, shuffle=True, random_state=0))(Subsets.of([[0, 1]]))[0]
    assert curve.mean[0] == pytest.approx(first)
    assert kept.support_[[7, 8]].all()
    with pytest.raises(ValueError, match="must be whole numbers from 2 to 30"):
        size_curve(kept, X, y, sizes=[1])


@pytest.mark.parametrize("nested", [False, True], ids=["as it is", "nested"])
def test_categories_are_judged_as_the_run_judged_them(nested):
    """The middle of three levels is class 1: as a number it would tell a linear model nothing."""
    rng = np.random.default_rng(0)
    level = rng.integers(0, 3, 150)
    y = (level == 1).astype(int)
    frame = pd.DataFrame(rng.standard_normal((150, 6)), columns=list("abcdef"))
    frame["kind"] = pd.Categorical(np.array(["low", "middle", "high"])[level])
    daf = DAF(criterion="linear", stop=MaxProbes(200), random_state=0).fit(frame, y)
    curve = size_curve(daf, frame, y, nested=nested)
    assert curve.suggested == 1
    assert curve.mean[0] == 1.0


# ---- what cannot be


def test_what_cannot_be_judged_is_said(madelon, daf):
    X, y = madelon.X, madelon.y
    with pytest.raises(NotFittedError):
        size_curve(DAF(), X, y)
    with pytest.raises(ValueError, match="y=None"):
        size_curve(daf, X, None)
    for sizes in ([], [0], [31], [1.5], [True]):
        with pytest.raises(ValueError, match="must be whole numbers from 1 to 30"):
            size_curve(daf, X, y, sizes=sizes)
    with pytest.raises(ValueError, match="cv=1 must be at least 2"):
        size_curve(daf, X, y, cv=1)
    with pytest.raises(ValueError, match="30 features"):
        size_curve(daf, X[:, :5], y)
    with pytest.raises(ValueError, match="inconsistent"):
        size_curve(daf, X, y[:-1])
    few = FSDD().fit(X[:6], y[:6])
    with pytest.raises(TooFewRows, match="6 rows are too few to cross-validate in 5 folds"):
        size_curve(few, X[:6], y[:6])
    rare = np.where(np.arange(200) == 3, 2, y)
    with pytest.raises(TooFewRows, match="a class has a single row"):
        size_curve(FSDD().fit(X, rare), X, rare)


def test_folds_given_as_rows_are_of_all_rows(madelon):
    X, y = madelon.X, madelon.y
    fixed = DAF(cv=list(StratifiedKFold(3).split(X, y)), stop=MaxProbes(60), random_state=0).fit(X, y)
    assert size_curve(fixed, X, y, sizes=[2]).scores.shape == (5, 1)
    with pytest.raises(ValueError, match="is a list of splits of all rows, but nested=True"):
        size_curve(fixed, X, y, sizes=[2], nested=True)


def test_nothing_the_user_gave_is_changed(madelon, daf):
    X, y = madelon.X.copy(), madelon.y.copy()
    before = (daf.scores_.copy(), daf.get_params())
    size_curve(daf, X, y, sizes=[2], cv=2, nested=True)
    np.testing.assert_array_equal(X, madelon.X)
    np.testing.assert_array_equal(y, madelon.y)
    np.testing.assert_array_equal(daf.scores_, before[0])
    assert daf.get_params() == before[1]


def test_subsets_are_scored_by_the_criterion_of_the_run(madelon):
    X, y = madelon.X, madelon.y
    five = size_curve(DAF(criterion=KNN(5), stop=MaxProbes(60), random_state=0).fit(X, y), X, y, sizes=[4])
    order = np.argsort(DAF(criterion=KNN(5), stop=MaxProbes(60), random_state=0).fit(X, y).ranking_)[:4]
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    expected = cross_val_score(KNeighborsClassifier(5), X[:, order], y, cv=folds)
    np.testing.assert_allclose(five.scores[:, 0], expected, atol=1e-12)


def test_where_no_nested_curve_can_be_had_fit_says_so_and_goes_on():
    data = make_madelon(60, 20, n_dimensions=2, n_combinations=2, random_state=0)
    splits = [(np.arange(30), np.arange(30, 60)), (np.arange(30, 60), np.arange(30))]
    daf = DAF("auto", cv=splits, stop=MaxProbes(200), random_state=0)
    with pytest.warns(UserWarning, match="not chosen on held-out rows: cv of DAF is a list of splits"):
        daf.fit(data.X, data.y)
    assert daf.support_.sum() == daf.size_curve_.suggested
    assert not daf.size_curve_.nested


@pytest.mark.parametrize("evaluate", [partial(size_curve, sizes=[2], cv=3), partial(nested_score, repeats=1)])
def test_missing_groups_are_warned_about(evaluate):
    rng = np.random.default_rng(0)
    X, y, groups = rng.standard_normal((60, 5)), np.arange(60) % 2, np.arange(60) // 2
    bif = BIF(criterion="linear", cv=GroupKFold(3)).fit(X, y, groups=groups)
    evaluate(bif, X, y, groups=groups)
    bif.cv = 3
    with pytest.warns(UserWarning, match=r"fit had groups, but .* pass groups=groups here too") as warned:
        evaluate(bif, X, y)
    assert warned[0].filename == __file__
