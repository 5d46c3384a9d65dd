"""Every score of the built-in criteria equals scikit-learn's on the same folds."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.metrics import f1_score, fbeta_score, make_scorer, roc_auc_score
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedKFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.svm import SVC, SVR, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from probewise import BIF, DAF, SFFS
from probewise.criteria import KNN, SVM, Linear, NaiveBayes, Tree
from probewise.criteria.scoring import ScoredTests
from probewise.engine.probes import ProbePlan, Subsets
from probewise.kernels import scores as kernels
from probewise.stopping import MaxProbes

PAIRS = {
    "knn": (KNN(3), KNeighborsClassifier(3, algorithm="brute")),
    "linear": (Linear(), RidgeClassifier()),
    "naive_bayes": (NaiveBayes(), GaussianNB()),
    "svm": (SVM("linear"), LinearSVC(random_state=0)),
    "rbf": (SVM("rbf", C=2.0), SVC(C=2.0)),
    "tree": (Tree(), DecisionTreeClassifier(random_state=0)),
}
OF_NUMBERS = {
    "knn": (KNN(3), KNeighborsRegressor(3, algorithm="brute")),
    "linear": (Linear(), Ridge()),
    "svm": (SVM("rbf", C=0.1), SVR(C=0.1)),
}
OF_TWO = ("f1", "precision", "recall")
LABELS = ("accuracy", "balanced_accuracy", "f1_macro")
SUBSETS = ProbePlan(20, max_size=14, seed=3).draw(0, 5)
CVS = {
    "folds": 3,
    "repeated": RepeatedStratifiedKFold(n_splits=2, n_repeats=2, random_state=0),
    "splits": [(np.arange(60), np.arange(60, 120)), (np.arange(30, 120), np.arange(30))],
}


def table(n=120, n_classes=3, seed=0):
    """Overlapping classes of unequal size."""
    rng = np.random.default_rng(seed)
    y = rng.choice(n_classes, n, p=np.arange(1, n_classes + 1)[::-1] / np.arange(1, n_classes + 1).sum())
    X = rng.standard_normal((n, 20))
    X[:, :6] += 0.6 * y[:, None]
    return X, y


def kind(selector):
    return type(selector).__name__


def by_sklearn(estimator, X, y, scoring, cv=3, subsets=SUBSETS):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about classes that are not predicted or not in a fold
        return [cross_val_score(estimator, X[:, s], y, cv=cv, scoring=scoring).mean() for s in subsets]


@pytest.mark.matrix(pairs=True)
@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("cv", CVS)
@pytest.mark.parametrize(("scoring", "n_classes"), [(s, k) for s in LABELS[1:] for k in (2, 3)] + [("roc_auc", 2)])
def test_of_classes(name, cv, scoring, n_classes):
    criterion, estimator = PAIRS[name]
    X, y = table(n_classes=n_classes)
    labels = np.array(["c", "a", "b"])[y]
    ours = criterion.bind(X, labels, CVS[cv], scoring=scoring)(SUBSETS)
    np.testing.assert_allclose(ours, by_sklearn(estimator, X, labels, scoring, CVS[cv]), rtol=1e-12)


@pytest.mark.matrix(pairs=True)
@pytest.mark.parametrize("name", ["knn", "linear", "naive_bayes", "svm"])
@pytest.mark.parametrize("scoring", ["balanced_accuracy", "f1_macro", "roc_auc"])
@pytest.mark.parametrize("cv", ["folds", "splits"])
def test_sparse(name, scoring, cv):
    criterion, estimator = PAIRS[name]
    X, y = table(n_classes=2)
    X[X < 0.3] = 0
    subsets = Subsets.of([np.arange(12), np.arange(4, 20)])  # large, so that few rows are equal
    ours = criterion.bind(sp.csr_matrix(X), y, CVS[cv], scoring=scoring)(subsets)
    np.testing.assert_allclose(ours, by_sklearn(estimator, X, y, scoring, CVS[cv], subsets), rtol=1e-12)


@pytest.mark.matrix(pairs=True)
@pytest.mark.parametrize("name", OF_NUMBERS)
@pytest.mark.parametrize("scoring", ["r2", "neg_mean_squared_error"])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_of_numbers(name, scoring, make):
    criterion, estimator = OF_NUMBERS[name]
    X, _ = table()
    X[np.abs(X) < 0.5] = 0
    y = X[:, 0] + X[:, 3] + 0.3 * np.random.default_rng(0).standard_normal(len(X))
    subsets = Subsets.of([subset for subset in SUBSETS if len(subset) > 3])  # no ties of distances
    ours = criterion.bind(make(X), y, scoring=scoring)(subsets)
    np.testing.assert_allclose(ours, by_sklearn(estimator, X, y, scoring, subsets=subsets), rtol=1e-9)


@pytest.mark.matrix(times=2)
@pytest.mark.parametrize("name", ["knn", "linear", "naive_bayes", "svm", "tree"])
@pytest.mark.parametrize("scoring", LABELS)
@pytest.mark.parametrize("cv", ["a class without rows to test", "a class without rows to train on"])
@pytest.mark.filterwarnings("ignore:y_pred contains classes not in y_true")  # a tree is scikit-learn's own
def test_a_class_that_is_not_in_every_fold(name, scoring, cv):
    criterion, estimator = PAIRS[name]
    X, y = table(n=60)
    first = np.flatnonzero(y < 2)[:20]
    rest = np.setdiff1d(np.arange(60), first)
    splits = [(rest, first), (first, rest)]
    splits = splits[:1] if cv == "a class without rows to test" else splits[1:]
    ours = criterion.bind(X, y, splits, scoring=scoring)(SUBSETS)
    np.testing.assert_allclose(ours, by_sklearn(estimator, X, y, scoring, splits), rtol=1e-12)


@pytest.mark.parametrize("scoring", [*LABELS[1:], "roc_auc"])
def test_many_rows_for_the_features(scoring):
    """Linear keeps sums of all columns and scores a batch together, in pieces if it is large."""
    X, y = table(n=900, n_classes=2)
    ours = Linear().bind(X, y, scoring=scoring)
    assert ours.has_sums
    np.testing.assert_allclose(ours(SUBSETS), by_sklearn(RidgeClassifier(), X, y, scoring), rtol=1e-12)


@pytest.mark.parametrize("scoring", ["balanced_accuracy", "roc_auc"])
def test_a_batch_in_pieces_is_the_same(scoring, monkeypatch):
    X, y = table(n=900, n_classes=2)
    together = Linear().bind(X, y, scoring=scoring)(SUBSETS)
    monkeypatch.setattr("probewise.criteria.scoring.MOST_PREDICTIONS", 900)
    assert together.tobytes() == Linear().bind(X, y, scoring=scoring)(SUBSETS).tobytes()


def test_naive_bayes_orders_rows_by_log_odds():
    """If probabilities round to 1, scikit-learn's decisions tie; log odds do not."""
    rng = np.random.default_rng(0)
    y = np.arange(150) % 2
    X = rng.standard_normal((150, 20)) + 0.8 * (y + rng.standard_normal(150))[:, None] * 4
    expected = []
    for subset in SUBSETS:
        areas = []
        for train, test in StratifiedKFold(3).split(X, y):
            model = GaussianNB().fit(X[train][:, subset], y[train])
            costs = model.predict_joint_log_proba(X[test][:, subset])
            areas.append(roc_auc_score(y[test], costs[:, 1] - costs[:, 0]))
        expected.append(np.mean(areas))
    np.testing.assert_allclose(NaiveBayes().bind(X, y, scoring="roc_auc")(SUBSETS), expected, rtol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_ties_count_one_half_in_roc_auc(weighted):
    rng = np.random.default_rng(1)
    for n in (2, 3, 10, 200, 3000):
        truth = rng.permutation(np.arange(n) % 2)
        decisions = rng.integers(0, 4, n).astype(float)
        weights = rng.integers(1, 4, n).astype(float) if weighted else np.empty(0)
        expected = roc_auc_score(truth, decisions, sample_weight=weights if weighted else None)
        tests = ScoredTests(kernels.ROC_AUC, truth.astype(float), weights, 2, np.array([0, n]))
        assert tests.score(decisions[None])[0] == pytest.approx(expected, rel=1e-12)


def test_the_default_score_is_accuracy():
    """The bits are the same with None and with the name."""
    X, y = table()
    for criterion, _ in PAIRS.values():
        plain, named = (criterion.bind(X, y, scoring=scoring)(SUBSETS) for scoring in (None, "accuracy"))
        assert plain.tobytes() == named.tobytes()


@pytest.mark.parametrize("name", ["knn", "linear", "naive_bayes", "svm"])
def test_scores_that_do_not_fit_the_target_are_refused(name):
    criterion = PAIRS[name][0]
    X, y = table()
    with pytest.raises(ValueError, match=r"scoring='roc_auc'.*y has 3.*scoring='balanced_accuracy'"):
        criterion.bind(X, y, scoring="roc_auc")
    with pytest.raises(ValueError, match=r"scoring='r2'.*measures 'accuracy', 'balanced_accuracy'"):
        criterion.bind(X, y, scoring="r2")


@pytest.mark.parametrize("name", ["knn", "linear", "naive_bayes", "svm"])
def test_roc_auc_of_one_class_is_refused(name):
    X, y = table(n_classes=2)
    zeros = np.flatnonzero(y == 0)
    splits = [(np.arange(60, 120), zeros[zeros < 60])]
    with pytest.raises(ValueError, match="needs rows of both classes, but test rows of fold 0"):
        PAIRS[name][0].bind(X, y, splits, scoring="roc_auc")


@pytest.mark.matrix
@pytest.mark.parametrize("selector", [BIF(2), SFFS(2), DAF(2, stop=MaxProbes(300), random_state=0)], ids=kind)
@pytest.mark.parametrize("criterion", ["knn", "linear", "naive_bayes"])
def test_selectors_pass_it_on(selector, criterion):
    """Features 2 and 7 identify a rare class that accuracy overlooks; no feature separates the frequent classes."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(150) % 10 == 0, 2, np.arange(150) % 2)
    X = rng.standard_normal((150, 10))
    X[:, [2, 7]] += 2.5 * (y == 2)[:, None]
    fitted = selector.set_params(criterion=criterion, scoring="balanced_accuracy").fit(X, y)
    if isinstance(selector, SFFS):
        assert fitted.path_[1][1] in ((2,), (7,))
        alone = BIF(criterion=criterion, scoring="balanced_accuracy").fit(X, y)
        assert fitted.path_[1][0] == alone.scores_.max()
    else:
        assert fitted.get_support(indices=True).tolist() == [2, 7]


NAMED = [
    *(f"{ratio}_{mean}" for ratio in ("f1", "precision", "recall") for mean in ("macro", "weighted")),
    "matthews_corrcoef",
]
CUSTOM = {
    "scorer": make_scorer(fbeta_score, beta=2, average="macro"),
    "function": lambda estimator, X, y: np.mean(estimator.predict(X) == y) ** 2,
}


@pytest.mark.matrix(times=2)
@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("cv", CVS)
@pytest.mark.parametrize("scoring", [*NAMED, "f1_micro", "jaccard_macro", *CUSTOM, *OF_TWO, "average_precision"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")  # a tree is scikit-learn's own
def test_any_score_of_predictions(name, cv, scoring):
    criterion, estimator = PAIRS[name]
    of_two = scoring in (*OF_TWO, "average_precision")
    X, y = table(n_classes=2 if of_two else 3)
    labels = y + 1 if of_two else np.array(["c", "a", "b"])[y]  # the class labelled 1 is the first
    scoring = CUSTOM.get(scoring, scoring)
    ours = criterion.bind(X, labels, CVS[cv], scoring=scoring)(SUBSETS)
    np.testing.assert_allclose(ours, by_sklearn(estimator, X, labels, scoring, CVS[cv]), rtol=1e-9)


@pytest.mark.matrix(times=2)
@pytest.mark.parametrize("name", OF_NUMBERS)
@pytest.mark.parametrize("scoring", ["neg_mean_absolute_error", "neg_root_mean_squared_error", "explained_variance"])
@pytest.mark.parametrize("n", [120, 900])
def test_any_score_of_numbers(name, scoring, n):
    criterion, estimator = OF_NUMBERS[name]
    X, _ = table(n)
    y = 7 + X[:, 0] + 0.3 * np.random.default_rng(0).standard_normal(n)
    subsets = Subsets.of([SUBSETS[0], np.arange(n + 5) % 20]) if n == 120 else SUBSETS
    subsets = Subsets.of([np.unique(subset) for subset in subsets])
    ours = criterion.bind(X, y, scoring=scoring)(subsets)
    np.testing.assert_allclose(ours, by_sklearn(estimator, X, y, scoring, subsets=subsets), rtol=1e-9)


@pytest.mark.parametrize("name", ["knn", "linear", "naive_bayes", "svm"])
def test_a_class_labelled_1_that_a_fold_does_not_train_on(name):
    X, y = table(n=60)
    first = np.flatnonzero(y > 0)[:20]
    splits = [(first, np.setdiff1d(np.arange(60), first))]
    ours = PAIRS[name][0].bind(X, y, splits, scoring="recall_macro")(SUBSETS)
    np.testing.assert_allclose(ours, by_sklearn(PAIRS[name][1], X, y, "recall_macro", splits), rtol=1e-12)


@pytest.mark.parametrize("name", ["knn", "linear"])
def test_predictions_with_weights_in_pieces(name, monkeypatch):
    X, y = table(n_classes=2)
    weights = np.random.default_rng(1).choice([0.5, 1.0, 3.0], len(y))
    score = PAIRS[name][0].bind(X, y, scoring="f1", sample_weight=weights)
    together = score(SUBSETS)
    custom = PAIRS[name][0].bind(X, y, scoring=make_scorer(f1_score), sample_weight=weights)
    np.testing.assert_allclose(together, custom(SUBSETS), rtol=1e-12)
    monkeypatch.setattr("probewise.criteria.scoring.MOST_PREDICTIONS", 250)
    assert together.tobytes() == score(SUBSETS).tobytes()
    assert len(score(Subsets.of([]))) == 0


REFUSED = {
    "neg_log_loss": r"needs more than predictions: KNN measures .* give the estimator, .*KNeighborsClassifier\(3\)",
    "neg_mean_absolute_error": "KNN measures 'accuracy'",
    "f2": "KNN measures 'accuracy'",
    "f1": "scores the class labeled 1, .*: use scoring='f1_macro'",
    "average_precision": "cannot score this y: pos_label=1",
}


@pytest.mark.parametrize("scoring", REFUSED)
def test_scores_that_need_more_than_predictions_are_refused(scoring):
    X, y = table(n_classes=2)
    with pytest.raises(ValueError, match=f"scoring='{scoring}'.*{REFUSED[scoring]}"):
        KNN().bind(X, np.array(["c", "a"])[y], scoring=scoring)


def test_a_score_without_weights_is_refused():
    X, y = table()
    with pytest.raises(ValueError, match=r"sample_weight: scoring=.* takes no weights"):
        KNN().bind(X, y, scoring=CUSTOM["function"], sample_weight=np.ones(len(y)))


def test_an_empty_fold_is_refused():
    X, y = table()
    with pytest.raises(ValueError, match="leaves no rows to train on, or to test, in fold 1"):
        KNN().bind(X, y, [(np.arange(60), np.arange(60, 120)), (np.arange(60), np.arange(0))])
