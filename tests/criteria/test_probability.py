"""scoring="probability", cv="loo" and Average: equal to the slow twins, and to scikit-learn where it has them."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics
from sklearn.base import clone
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.model_selection import LeaveOneOut, ShuffleSplit, StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.tree import DecisionTreeRegressor

import naive
from probewise import BIF, DAF, SFFS
from probewise.criteria import KNN, SVM, Average, Linear, NaiveBayes, Scorer, Separability
from probewise.criteria import columns as held
from probewise.criteria.base import Folds
from probewise.engine.ledger import LedgerError
from probewise.engine.probes import ProbePlan, Subsets
from probewise.stopping import MaxProbes
from probewise.validation.stores import Stored

CRITERIA = {"knn": KNN(6), "linear": Linear(), "naive_bayes": NaiveBayes()}
CVS = {
    "loo": "loo",
    "folds": StratifiedKFold(3, shuffle=True, random_state=1),
    "shuffled": ShuffleSplit(4, test_size=0.3, random_state=0),
    "one split": [(np.arange(25), np.arange(20, 40))],  # it tests some rows that it trains on
}
SUBSETS = ProbePlan(20, max_size=14, seed=3).draw(0, 8)
PROBABILITY = {"scoring": "probability"}


def table(n=40, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % n_classes)
    X = rng.standard_normal((n, 20))
    X[:, :6] += 0.7 * y[:, None]
    return X, y


def splits_of(cv, X, y):
    return list(LeaveOneOut().split(X)) if isinstance(cv, str) else list(Folds.of(cv, y, is_classification=True).splits)


def by_twin(criterion, X, y, cv, weights=None):
    splits = splits_of(cv, X, y)
    if isinstance(criterion, KNN):
        return naive.soft_knn(X, y, splits, criterion.n_neighbors, weights)
    if isinstance(criterion, Linear):
        return naive.soft_linear(X, y, splits, criterion.alpha, weights)
    return naive.soft_bayes(X, y, splits, criterion.var_smoothing, weights)


@pytest.mark.parametrize("name", CRITERIA)
@pytest.mark.parametrize("cv", CVS)
@pytest.mark.parametrize("is_weighted", [False, True])
def test_equals_its_twin(name, cv, is_weighted):
    X, y = table()
    weights = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 3.0], len(y)) if is_weighted else None
    options = {} if weights is None else {"sample_weight": weights}
    ours = CRITERIA[name].bind(X + 1000, np.array(["c", "a", "b"])[y], CVS[cv], **PROBABILITY, **options)(SUBSETS)
    twin = [by_twin(CRITERIA[name], X[:, subset], y, CVS[cv], weights) for subset in SUBSETS]
    np.testing.assert_allclose(ours, twin, rtol=1e-9)


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(sorted(CRITERIA)),
    n=st.integers(8, 30),
    size=st.integers(1, 40),
    n_classes=st.integers(2, 4),
    rare=st.sampled_from([1, 2, 3]),
    is_whole=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_any_shape(name, n, size, n_classes, rare, is_whole, seed):
    """Fewer rows than features, a class of one row or two, ties (of whole numbers), constant columns."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes - 1, n)
    y[:2] = 0
    y[rng.permutation(np.arange(2, n))[:rare]] = n_classes - 1
    X = rng.integers(-3, 4, (n, size)).astype(float) if is_whole else rng.standard_normal((n, size))
    X[:, rng.random(size) < 0.2] = 2.0
    subsets = Subsets.of([np.arange(size), rng.permutation(size)[: (size + 1) // 2]])
    criterion = CRITERIA[name]
    ours = criterion.bind(X, y, "loo", **PROBABILITY)(subsets)
    twin = [by_twin(criterion, X[:, subset], np.unique(y, return_inverse=True)[1], "loo") for subset in subsets]
    np.testing.assert_allclose(ours, twin, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("n", [300, 700])
@pytest.mark.parametrize("cv", ["loo", 3])
@pytest.mark.parametrize("n_neighbors", [3, 10, 40])
def test_many_rows(n, cv, n_neighbors):
    """More than are compared at a time; many at equal distance."""
    X, y = table(n)
    for values in (X, np.rint(2 * X)):
        ours = KNN(n_neighbors).bind(values, y, cv, **PROBABILITY)(SUBSETS)
        some = [0, 3]
        twin = [by_twin(KNN(n_neighbors), values[:, SUBSETS[k]], y, cv) for k in some] if n == 300 else ours[some]
        np.testing.assert_allclose(ours[some], twin, rtol=1e-9)
        np.testing.assert_allclose(KNN(n_neighbors).bind(values[:, ::-1], y, cv, **PROBABILITY)(mirrored()), ours)


def mirrored():
    return Subsets.of([19 - subset for subset in SUBSETS])


@pytest.mark.parametrize("name", CRITERIA)
@pytest.mark.parametrize("cv", ["loo", "folds"])
def test_other_forms_of_X(name, cv, monkeypatch):
    X, y = table()
    X[np.abs(X) < 0.4] = 0
    bind = CRITERIA[name].bind
    expected = bind(X, y, CVS[cv], **PROBABILITY)(SUBSETS)
    narrow = X.astype(np.float32)
    np.testing.assert_allclose(bind(narrow, y, CVS[cv], **PROBABILITY)(SUBSETS), expected, rtol=1e-5)
    np.testing.assert_array_equal(bind(np.asfortranarray(X), y, CVS[cv], **PROBABILITY)(SUBSETS), expected)
    np.testing.assert_array_equal(bind(Stored(X), y, CVS[cv], **PROBABILITY)(SUBSETS), expected)
    np.testing.assert_allclose(bind(sp.csr_matrix(X), y, CVS[cv], **PROBABILITY)(SUBSETS), expected, rtol=1e-10)
    monkeypatch.setattr(held, "CELLS_HELD", 1000)  # columns are gathered, a few probes at a time
    for other in (X, Stored(X)):
        np.testing.assert_array_equal(bind(other, y, CVS[cv], **PROBABILITY)(SUBSETS), expected)
    np.testing.assert_allclose(bind(sp.csc_matrix(X), y, CVS[cv], **PROBABILITY)(SUBSETS), expected, rtol=1e-10)


@pytest.mark.parametrize("name", CRITERIA)
def test_same_bits_in_any_batch_and_after_a_journey(name):
    X, y = table()
    bound = CRITERIA[name].bind(X.astype(np.float32), y, "loo", **PROBABILITY)
    together = bound(SUBSETS)
    one_by_one = np.concatenate([bound(Subsets.of([subset])) for subset in SUBSETS])
    np.testing.assert_array_equal(one_by_one, together)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(bound))(SUBSETS), together)


def test_neither_offset_nor_scale_counts_for_neighbours():
    X, y = table()
    expected = KNN(6).bind(X, y, "loo", **PROBABILITY)(SUBSETS)
    moved = (X + 2000).astype(np.float32)
    np.testing.assert_allclose(KNN(6).bind(moved, y, "loo", **PROBABILITY)(SUBSETS), expected, atol=2e-3)
    for factor in (1e-25, 1e25):
        scaled = (factor * X).astype(np.float32)
        np.testing.assert_allclose(KNN(6).bind(scaled, y, "loo", **PROBABILITY)(SUBSETS), expected, rtol=1e-5)


def test_linear_with_copies_of_columns_and_a_penalty_too_small_to_be_seen():
    X, y = table()
    copies = 1e9 * np.hstack([X[:, :3]] * 3)
    ours = Linear(1e-6).bind(copies, y, "loo", **PROBABILITY)(Subsets.of([np.arange(9)]))
    np.testing.assert_allclose(
        ours, Linear(1e-6).bind(X, y, "loo", **PROBABILITY)(Subsets.of([np.arange(3)])), rtol=1e-4
    )


SCORES = {
    "accuracy": metrics.accuracy_score,
    "balanced_accuracy": metrics.balanced_accuracy_score,
    "f1_macro": lambda *args, **options: metrics.f1_score(*args, average="macro", **options),
    "f1": metrics.f1_score,  # of two classes
}
OF_CLASSES = {
    "knn": (KNN(3), KNeighborsClassifier(3, algorithm="brute")),
    "linear": (Linear(), RidgeClassifier()),
    "naive_bayes": (NaiveBayes(), GaussianNB()),
}
OF_NUMBERS = {"knn": (KNN(3), KNeighborsRegressor(3, algorithm="brute")), "linear": (Linear(), Ridge())}


@pytest.mark.parametrize("name", OF_CLASSES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_other_scores_of_all_left_out_rows_together(name, n_classes):
    X, y = table(n_classes=n_classes)
    y[y == 1] = np.where(np.arange((y == 1).sum()) < 2, 1, 0)  # a class of two rows
    criterion, estimator = OF_CLASSES[name]
    predicted = [cross_val_predict(estimator, X[:, subset], y, cv=LeaveOneOut()) for subset in SUBSETS]
    for make in (np.asarray, sp.csr_matrix):
        for scoring, score in list(SCORES.items())[: 4 if n_classes == 2 else 3]:
            ours = criterion.bind(make(X), y, "loo", scoring=scoring)(SUBSETS)
            np.testing.assert_allclose(ours, [score(y, said) for said in predicted], rtol=1e-12)


@pytest.mark.parametrize("name", ["linear", "naive_bayes"])
def test_area_under_the_curve_of_all_left_out_rows_together(name):
    X, y = table(n_classes=2)
    criterion, estimator = OF_CLASSES[name]
    method = "decision_function" if name == "linear" else "predict_proba"
    said = [cross_val_predict(estimator, X[:, subset], y, cv=LeaveOneOut(), method=method) for subset in SUBSETS]
    expected = [metrics.roc_auc_score(y, one if one.ndim == 1 else one[:, 1]) for one in said]
    np.testing.assert_allclose(criterion.bind(X, y, "loo", scoring="roc_auc")(SUBSETS), expected, rtol=1e-12)


@pytest.mark.parametrize("name", OF_NUMBERS)
@pytest.mark.parametrize("n", [12, 40])
def test_numbers_left_out_one_by_one(name, n):
    X, _ = table(n)
    y = X[:, 0] + X[:, 3] + 0.3 * np.random.default_rng(0).standard_normal(n)
    criterion, estimator = OF_NUMBERS[name]
    predicted = [cross_val_predict(estimator, X[:, subset], y, cv=LeaveOneOut()) for subset in SUBSETS]
    for make in (np.asarray, sp.csr_matrix, Stored):
        ours = criterion.bind(make(X), y, "loo")(SUBSETS)
        np.testing.assert_allclose(ours, [metrics.r2_score(y, said) for said in predicted], rtol=1e-9)
        ours = criterion.bind(make(X), y, "loo", scoring="neg_mean_squared_error")(SUBSETS)
        np.testing.assert_allclose(ours, [-metrics.mean_squared_error(y, said) for said in predicted], rtol=1e-9)


def test_linear_numbers_with_weights():
    X, _ = table()
    y, weights = X[:, 0] + X[:, 7] ** 2, np.random.default_rng(1).choice([0.0, 0.5, 3.0], len(X))
    rows = np.arange(len(X))
    ours = Linear().bind(X, y, "loo", sample_weight=weights)(SUBSETS)
    for k, subset in enumerate(SUBSETS):
        said = [naive.ridge_decision(X[:, subset], y, row, np.delete(rows, row), 1.0, weights) for row in rows]
        np.testing.assert_allclose(ours[k], metrics.r2_score(y, said, sample_weight=weights), rtol=1e-9)


def test_average():
    X, y = table()
    both = Average((KNN(10), Linear()))
    parts = [part.bind(X, y, "loo", **PROBABILITY)(SUBSETS) for part in both.parts]
    np.testing.assert_array_equal(both.bind(X, y, "loo", **PROBABILITY)(SUBSETS), np.mean(parts, axis=0))
    assert both.describe() == f"Average({KNN(10).describe()}, {Linear().describe()})"
    assert clone(both).describe() == both.describe()
    assert (both.streams, both.needs_target, both.allow_nan, both.prefer) == (True, True, False, "threads")
    assert Average((KNN(missing="mean"), Linear(missing="mean"))).allow_nan
    assert not Average((Separability(), KNN())).allow_nan
    assert (both.task, Average((KNN(), Linear(task="regression"))).task) == ("auto", "regression")
    with pytest.raises(ValueError, match=r"parts=\(\): give one or more criteria"):
        Average(()).bind(X, y)
    with pytest.raises(ValueError, match="give one or more criteria"):
        Average(("knn",)).bind(X, y)


def test_an_average_has_one_set_of_folds():
    X, y = table()
    splits = list(StratifiedKFold(3, shuffle=True, random_state=2).split(X, y))
    both, parts = Average((KNN(3), Linear())), (KNN(3), Linear())
    expected = np.mean([part.bind(X, y, splits)(SUBSETS) for part in parts], axis=0)
    np.testing.assert_array_equal(both.bind(X, y, iter(splits))(SUBSETS), expected)
    drawn = both.bind(X, y, ShuffleSplit(3)).parts
    for one, other in zip(drawn[0].folds.splits, drawn[1].folds.splits, strict=True):
        np.testing.assert_array_equal(np.concatenate(one), np.concatenate(other))
    np.testing.assert_array_equal(
        Average((Separability(), KNN())).bind(X, y, iter(splits)).parts[1].folds.order[:5],
        Folds(splits, len(y)).order[:5],
    )


def test_in_selectors(tmp_path):
    X, y = table()
    X[:, 0] += 2 * y
    options = {"criterion": Average((KNN(10), Linear())), "cv": "loo", **PROBABILITY}
    daf = DAF(3, stop=MaxProbes(200), random_state=0, ledger=tmp_path / "run", **options).fit(X, y)
    again = DAF(3, stop=MaxProbes(200), random_state=0, n_jobs=2, **options).fit(X, y)
    np.testing.assert_array_equal(daf.scores_, again.scores_)
    DAF(3, stop=MaxProbes(300), random_state=0, ledger=tmp_path / "run", **options).fit(X, y)
    with pytest.raises(LedgerError):
        DAF(3, stop=MaxProbes(300), random_state=0, ledger=tmp_path / "run", **(options | {"cv": 3})).fit(X, y)
    assert BIF(3, **options).fit(X, y).ranking_[0] == 1
    assert SFFS(2, **options).fit(X, y).get_support()[0]


def test_a_class_of_one_row_needs_no_folds():
    X, y = table()
    y[7] = 3
    daf = DAF(3, cv="loo", criterion="knn", stop=MaxProbes(100), random_state=0, **PROBABILITY).fit(X, y)
    assert daf.scores_.max() > 0


def test_a_million_rows_left_out_take_no_room():
    folds = Folds.of("loo", np.zeros(10**6), is_classification=False)
    assert (folds.is_partition, len(folds.order)) == (True, 10**6)
    assert sum(part.nbytes for split in folds.identity for part in split) < 100
    train, test = folds.splits[3]
    assert (test.tolist(), len(train)) == ([3], 10**6 - 1)
    small = Folds.of("loo", np.zeros(4), is_classification=False)
    for ours, theirs in zip(small.splits, LeaveOneOut().split(np.zeros((4, 1))), strict=True):
        np.testing.assert_array_equal(ours[0], theirs[0])
        np.testing.assert_array_equal(ours[1], theirs[1])


@pytest.mark.parametrize("criterion", [KNN(), Linear()])
def test_a_number_has_no_probability(criterion):
    X, _ = table()
    with pytest.raises(
        ValueError, match=r"scoring='probability' is the probability of a row's own class, and y is a quantity.*'r2'"
    ):
        criterion.bind(X, X[:, 0], **PROBABILITY)


def test_what_is_refused(monkeypatch):
    X, y = table()
    with pytest.raises(ValueError, match="scoring='probability': SVM measures"):
        SVM().bind(X, y, **PROBABILITY)
    for criterion in (SVM(task="regression"), Scorer(DecisionTreeRegressor())):
        with pytest.raises(ValueError, match="cv='loo': a single row has no r2"):
            criterion.bind(X, X[:, 0], "loo")
    with pytest.raises(ValueError, match="n_neighbors=40 must be from 1 to the rows of the smallest training fold"):
        KNN(40).bind(X, y, "loo", **PROBABILITY)
    with pytest.raises(ValueError, match="smallest training fold, n_samples=2"):
        KNN(3).bind(X, y, [([0, 1, 1, 0], [2, 3])], **PROBABILITY)
    with pytest.raises(ValueError, match="sample_weight is above 0 for fewer than two rows"):
        KNN().bind(X, y, "loo", sample_weight=np.eye(len(y))[0])
    with pytest.raises(ValueError, match="scoring='roc_auc' needs two rows of each class"):
        Linear().bind(X, np.eye(len(y))[0].astype(int), "loo", scoring="roc_auc")
    with pytest.raises(ValueError, match="cv='loo' needs at least 2 rows"):
        Folds.of("loo", y[:1], is_classification=True)
    X[3, 2] = np.nan
    with pytest.raises(ValueError, match=r"with scoring='probability' missing='mean' cannot fill it"):
        KNN(missing="mean").bind(X, y, **PROBABILITY)
    for criterion in (KNN(missing="mean"), Linear(missing="mean")):
        with pytest.raises(ValueError, match=r"with cv='loo' missing='mean' cannot fill it"):
            criterion.bind(X, y, "loo")


def test_linear_fills_gaps_inside_the_folds():
    X, y = table()
    X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    splits = splits_of(3, X, y)
    expected = []
    for train, test in splits:
        filled = np.where(np.isnan(X), np.nanmean(X[train], axis=0), X)
        expected.append(len(test) * naive.soft_linear(filled[:, [0, 3, 5]], y, [(train, test)], 1.0))
    found = Linear(missing="mean").bind(X, y, splits, **PROBABILITY)(Subsets.of([[0, 3, 5]]))
    np.testing.assert_allclose(found, sum(expected) / len(y), rtol=1e-9)


def test_a_device_knows_all_parts_or_none(monkeypatch):
    monkeypatch.setattr("probewise.criteria.device.find", lambda device: None if device == "cpu" else "cuda")
    X, y = table()
    both = Average((KNN(), SVM()))
    with pytest.raises(ValueError, match=r"device='cuda': SVM runs on the CPU only: use device='cpu'"):
        BIF(criterion=both, device="cuda").fit(X, y)
    BIF(criterion=both, device="auto").fit(X, y)
