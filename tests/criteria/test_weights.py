"""Weights of rows count in the score, and in the fit of models that use them, as in scikit-learn."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn import metrics
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.model_selection import GroupKFold, RepeatedStratifiedKFold, StratifiedGroupKFold, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from probewise import BIF, DAF, SFFS, Tournament
from probewise.criteria import KNN, SVM, Criterion, Linear, NaiveBayes, Scorer, Separability, Tree
from probewise.engine.ledger import Ledger, LedgerError
from probewise.engine.probes import ProbePlan
from probewise.stopping import MaxProbes

SUBSETS = ProbePlan(20, max_size=14, seed=3).draw(0, 5)
CLASSIFIERS = {
    "knn": (KNN(3), KNeighborsClassifier(3, algorithm="brute")),
    "linear": (Linear(), RidgeClassifier()),
    "naive_bayes": (NaiveBayes(), GaussianNB()),
    "tree": (Tree(), DecisionTreeClassifier(random_state=0)),
}
REGRESSORS = {
    "knn": (KNN(3), KNeighborsRegressor(3, algorithm="brute")),
    "linear": (Linear(), Ridge()),
    "tree": (Tree(), DecisionTreeRegressor(random_state=0)),
}
CVS = {"folds": StratifiedKFold(3), "repeated": RepeatedStratifiedKFold(n_splits=2, n_repeats=2, random_state=0)}
SCORES = {
    "accuracy": metrics.accuracy_score,
    "balanced_accuracy": metrics.balanced_accuracy_score,
    "f1_macro": lambda *args, **options: metrics.f1_score(*args, average="macro", **options),
    "roc_auc": metrics.roc_auc_score,
    "r2": metrics.r2_score,
    "neg_mean_squared_error": lambda *args, **options: -metrics.mean_squared_error(*args, **options),
}


def table(n=120, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.minimum(np.arange(n) % (n_classes + 1), n_classes - 1))
    X = rng.standard_normal((n, 20)) + 3
    X[:, :6] += 0.7 * y[:, None]
    return X, y, rng.choice([0.0, 0.3, 1.0, 4.0], n, p=[0.1, 0.3, 0.4, 0.2])


def fitted(model, X, y, weights):
    return (
        model.fit(X, y) if isinstance(model, KNeighborsClassifier | KNeighborsRegressor) else model.fit(X, y, weights)
    )


def told(model, X, scoring):
    if scoring != "roc_auc":
        return model.predict(X)
    return model.decision_function(X) if hasattr(model, "decision_function") else model.predict_proba(X)[:, 1]


def literal(model, X, y, weights, scoring, splits):
    """The mean over folds of the metric with weights, of a model fitted with weights, written out."""
    out = []
    for subset in SUBSETS:
        scores = []
        for train, test in splits:
            trained = fitted(clone(model), X[train][:, subset], y[train], weights[train])
            said = told(trained, X[test][:, subset], scoring)
            scores.append(SCORES[scoring](y[test], said, sample_weight=weights[test]))
        out.append(np.mean(scores))
    return out


@pytest.mark.matrix(pairs=True)
@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("cv", CVS)
@pytest.mark.parametrize(
    ("scoring", "n_classes"), [("accuracy", 3), ("balanced_accuracy", 3), ("f1_macro", 2), ("roc_auc", 2)]
)
def test_classes(name, cv, scoring, n_classes):
    criterion, model = CLASSIFIERS[name]
    X, y, weights = table(n_classes=n_classes)
    splits = list(CVS[cv].split(X, y))
    ours = criterion.bind(X, y, CVS[cv], scoring=scoring, sample_weight=weights)(SUBSETS)
    np.testing.assert_allclose(ours, literal(model, X, y, weights, scoring, splits), rtol=1e-9)


@pytest.mark.parametrize("name", REGRESSORS)
@pytest.mark.parametrize("scoring", ["r2", "neg_mean_squared_error"])
def test_numbers(name, scoring):
    criterion, model = REGRESSORS[name]
    X, classes, weights = table()
    y = X[:, 1] + X[:, 8] + 0.2 * np.random.default_rng(0).standard_normal(len(X))
    splits = list(StratifiedKFold(3).split(X, classes))
    ours = criterion.bind(X, y, splits, scoring=scoring, sample_weight=weights)(SUBSETS)
    np.testing.assert_allclose(ours, literal(model, X, y, weights, scoring, splits), rtol=1e-9)


@pytest.mark.parametrize("name", ["linear", "naive_bayes"])
@pytest.mark.parametrize("cv", CVS)
def test_sparse(name, cv):
    criterion, model = CLASSIFIERS[name]
    X, y, weights = table()
    X[X < 3.2] = 0
    splits = list(CVS[cv].split(X, y))
    ours = criterion.bind(sp.csr_matrix(X), y, splits, sample_weight=weights)(SUBSETS)
    np.testing.assert_allclose(ours, literal(model, X, y, weights, "accuracy", splits), rtol=1e-9)


@pytest.mark.parametrize("scoring", ["accuracy", "roc_auc"])
def test_many_rows_for_the_features(scoring):
    X, y, weights = table(n=600)
    score = Linear().bind(X, y, StratifiedKFold(3), scoring=scoring, sample_weight=weights)
    assert score.has_sums
    splits = list(StratifiedKFold(3).split(X, y))
    np.testing.assert_allclose(score(SUBSETS), literal(RidgeClassifier(), X, y, weights, scoring, splits), rtol=1e-9)


@pytest.mark.parametrize("name", ["linear", "naive_bayes"])
def test_a_class_without_weight_is_no_class(name):
    criterion, model = CLASSIFIERS[name]
    X, y, weights = table(n_classes=3)
    weights[y == 1] = 0
    splits = list(StratifiedKFold(3).split(X, y))
    keep = y != 1
    ours = criterion.bind(X, y, splits, sample_weight=weights)(SUBSETS)
    cut = [(train[keep[train]], test) for train, test in splits]
    model = RidgeClassifier() if name == "linear" else GaussianNB(var_smoothing=1e-12)
    np.testing.assert_allclose(ours, literal(model, X, y, weights, "accuracy", cut), rtol=1e-9)


@pytest.mark.matrix
@pytest.mark.parametrize("name", ["knn", "linear", "naive_bayes"])
@pytest.mark.parametrize("scoring", [None, "balanced_accuracy", "roc_auc"])
def test_equal_weights_are_none(name, scoring):
    X, y, _ = table()
    criterion = CLASSIFIERS[name][0]
    plain = criterion.bind(X, y, scoring=scoring)(SUBSETS)
    weighted = criterion.bind(X, y, scoring=scoring, sample_weight=np.ones(120))(SUBSETS)
    np.testing.assert_allclose(weighted, plain, rtol=1e-12)


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("estimator", "scoring"),
    [
        (LogisticRegression(), None),
        (LogisticRegression(), "roc_auc"),
        (make_pipeline(StandardScaler(), LogisticRegression()), "balanced_accuracy"),
        (KNeighborsClassifier(3), None),
        (KNeighborsClassifier(3), "accuracy"),
    ],
    ids=["own score", "roc_auc", "pipeline", "score only", "accuracy only"],
)
@pytest.mark.parametrize("routing", [False, True])
def test_estimators_get_them(estimator, scoring, routing):
    X, y, weights = table()
    with sklearn.config_context(enable_metadata_routing=routing):
        ours = Scorer(estimator).bind(X, y, scoring=scoring, sample_weight=weights)(SUBSETS)
    for subset, value in zip(SUBSETS, ours, strict=True):
        scores = []
        for train, test in StratifiedKFold(3).split(X, y):
            name = "logisticregression__sample_weight" if isinstance(estimator, Pipeline) else "sample_weight"
            options = {} if isinstance(estimator, KNeighborsClassifier) else {name: weights[train]}
            model = clone(estimator).fit(X[train][:, subset], y[train], **options)
            said = told(model, X[test][:, subset], scoring)
            scores.append(SCORES[scoring or "accuracy"](y[test], said, sample_weight=weights[test]))
        assert value == pytest.approx(np.mean(scores), rel=1e-12)


class OwnCriterion(Criterion):
    """Knows of no weights."""

    def bind(self, X, y, cv=3, *, groups=None, scoring=None):
        return KNN().bind(X, y, cv, groups=groups, scoring=scoring)


class Unweighted(KNeighborsClassifier):
    def score(self, X, y):
        return float(np.mean(self.predict(X) == y))


def spread(X, y):
    return float(X.std())


@pytest.mark.parametrize(
    ("criterion", "words"),
    [
        (SVM(), r"SVM does not use weights.*LinearSVC\(\)"),
        (Separability(), "Separability does not use weights"),
        (spread, "a criterion that is a function"),
        (OwnCriterion(), "OwnCriterion.bind takes no weights"),
        (Unweighted(), "neither fit of criterion=Unweighted.. nor the score takes weights"),
    ],
    ids=["svm", "separability", "function", "own", "estimator"],
)
def test_criteria_without_weights_say_so(criterion, words):
    X, y, weights = table()
    with pytest.raises(ValueError, match=f"sample_weight.*{words}"):
        BIF(criterion=criterion).fit(X, y, sample_weight=weights)
    assert np.isfinite(BIF(criterion=criterion).fit(X, y).scores_).all()


@pytest.mark.matrix
@pytest.mark.parametrize("selector", [BIF(), SFFS(2), DAF(stop=MaxProbes(20), random_state=0)], ids=type)
@pytest.mark.parametrize(
    ("weights", "words"),
    [
        (np.ones(119), r"\(119,\), expected \(120,\)"),
        (-np.ones(120), "Negative values"),
        (np.r_[np.nan, np.ones(119)], "contains NaN"),
        (np.r_[np.inf, np.ones(119)], "contains infinity"),
        (np.zeros(120), "at least one non-zero"),
        (np.ones((120, 2)), r"1D array|expected \(120,\)"),
        (np.array(["heavy"] * 120), "heavy"),
        (np.r_[np.ones(60), np.zeros(60)], "is 0 for all test rows of fold"),
    ],
    ids=["length", "negative", "nan", "infinity", "zero", "shape", "text", "fold"],
)
def test_weights_that_cannot_be_are_refused(selector, weights, words):
    X, y, _ = table()
    cv = [(np.arange(60), np.arange(60, 120)), (np.arange(60, 120), np.arange(60))]
    with pytest.raises(ValueError, match=f"sample_weight.*{words}"):
        clone(selector).set_params(cv=cv).fit(X, y, sample_weight=weights)


@pytest.mark.matrix
@pytest.mark.parametrize("selector", [BIF(1), SFFS(1), DAF(1, stop=MaxProbes(400), random_state=0)], ids=type)
@pytest.mark.parametrize("criterion", ["knn", "linear", "naive_bayes"])
def test_they_can_turn_a_ranking(selector, criterion):
    """Feature 4 tells the classes of the first rows, feature 9 of the others."""
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    X = rng.standard_normal((200, 12))
    X[:100, 4] += 4 * y[:100]
    X[100:, 9] += 4 * y[100:]
    cv = StratifiedKFold(3, shuffle=True, random_state=0)
    for best, first in ((4, 1.0), (9, 0.01)):
        weights = np.where(np.arange(200) < 100, first, 1.01 - first)
        chosen = clone(selector).set_params(criterion=criterion, cv=cv).fit(X, y, sample_weight=weights)
        assert chosen.get_support(indices=True).tolist() == [best]


def test_a_ledger_with_other_weights_is_refused(tmp_path):
    X, y, weights = table()
    daf = DAF(stop=MaxProbes(40), random_state=0)
    for path, given in ((tmp_path / "with", weights), (tmp_path / "without", None)):
        clone(daf).set_params(ledger=path).fit(X, y, sample_weight=given)
        other = None if given is not None else weights
        with pytest.raises(LedgerError, match="its sample_weight is"):
            clone(daf).set_params(ledger=path).fit(X, y, sample_weight=other)
        more = clone(daf).set_params(ledger=path, stop=MaxProbes(80)).fit(X, y, sample_weight=given)
        assert more.n_probes_ == 80
    with Ledger(tmp_path / "without") as ledger:
        assert ledger.settings["sample_weight"] is None


def test_weights_and_groups_through_a_pipeline():
    """By scikit-learn's metadata routing."""
    X, y, weights = table()
    groups = np.arange(120) // 5
    daf = DAF(4, cv=GroupKFold(3), stop=MaxProbes(100), random_state=0)
    direct = clone(daf).fit(X, y, groups=groups, sample_weight=weights)
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = Pipeline(
            [
                ("scale", StandardScaler().set_fit_request(sample_weight=False)),
                ("select", clone(daf).set_fit_request(sample_weight=True, groups=True)),
                ("classify", LogisticRegression().set_fit_request(sample_weight=True)),
            ]
        )
        pipeline.set_params(scale="passthrough").fit(X, y, sample_weight=weights, groups=groups)
    np.testing.assert_array_equal(pipeline["select"].scores_, direct.scores_)
    expected = LogisticRegression().fit(direct.transform(X), y, weights)
    np.testing.assert_array_equal(pipeline["classify"].coef_, expected.coef_)
    with sklearn.config_context(enable_metadata_routing=True), pytest.raises(ValueError, match="groups"):
        Pipeline([("select", clone(daf).set_fit_request(sample_weight=True, groups=False))]).fit(X, y)


def test_a_criterion_alone_wants_a_weight_for_each_row():
    X, y, weights = table()
    with pytest.raises(ValueError, match=r"sample_weight is of shape \(119,\): give one number for each of 120 rows"):
        KNN().bind(X, y, sample_weight=weights[1:])


@pytest.mark.parametrize("criterion", ["knn", "linear", "naive_bayes"])
def test_weights_that_leave_one_class_are_refused(criterion):
    X, y = np.random.default_rng(0).standard_normal((30, 4)), np.arange(30) % 2
    with pytest.raises(ValueError, match="sample_weight is 0 for all rows but those with y = 1"):
        BIF(criterion=criterion).fit(X, y, sample_weight=y)


@pytest.mark.parametrize("groups", [None, np.arange(120) // 2], ids=["rows", "groups"])
def test_what_rows_without_weight_tell_does_not_stand_out(groups):
    rng = np.random.default_rng(0)
    y, weights = np.repeat(np.arange(60) % 2, 2), np.repeat(rng.permutation(np.arange(60) % 3 > 0).astype(float), 2)
    X = rng.standard_normal((120, 20))
    X[:, 0] += 6 * y * (weights == 0)
    X[:, 1] += 3 * y * (weights > 0)
    cv = "auto" if groups is None else StratifiedGroupKFold(3)
    found = Tournament(n_probes=200, cv=cv, random_state=0).fit(X, y, groups=groups, sample_weight=weights)
    assert np.flatnonzero(found.stands_out()).tolist() == [1]
    counted = weights > 0
    of_counted = None if groups is None else groups[counted]
    left = Tournament(n_probes=200, cv=cv, random_state=0).fit(X[counted], y[counted], groups=of_counted)
    np.testing.assert_array_equal(found.stands_out(), left.stands_out())
