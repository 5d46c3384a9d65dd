"""Criteria and estimators are identified by class and parameters, a user's function by the name given to it."""

import functools

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.linear_model import Ridge
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import KFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from probewise import DAF
from probewise.criteria import KNN, Average, Function, Linear, Scorer
from probewise.criteria.base import stable_text
from probewise.engine.ledger import LedgerError
from probewise.engine.settings import UNNAMED as UNNAMED_MARK
from probewise.stopping import MaxProbes
from probewise.study.trials import _described


def mean_of_columns(X, y):
    return X.mean()


class Threshold(ClassifierMixin, BaseEstimator):
    def __init__(self, at=0.0):
        self.at = at

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return (X[:, 0] > self.at).astype(int)


TEXTS = {
    "KNN(": KNN(3),
    "Average(parts=": Average((KNN(3), Linear())),
    "GaussianNB(priors=None, var_smoothing=1e-09)": GaussianNB(),
    "Threshold(at=0.5)": Threshold(at=0.5),
    "Pipeline(": make_pipeline(StandardScaler(), Ridge(alpha=2)),
    "SelectKBest(k=10, score_func=f_classif)": SelectKBest(f_classif),
    "['a', (1, None), {'b': 2.5}]": ["a", (1, None), {"b": 2.5}],
    "KFold(n_splits=5, random_state=None, shuffle=False)": KFold(5),
    "MaxProbes(": MaxProbes(3),
    "array ": np.arange(5000),
    "log1p": np.log1p,
    "'<b>'": "<b>",
}
UNNAMED = {
    "function": mean_of_columns,
    "lambda": lambda X, y: X.mean(),
    "partial": functools.partial(np.quantile, 0.1),
    "method": Threshold().predict,
    "object": object(),
    "scorer": make_scorer(accuracy_score),
    "transformer": FunctionTransformer(mean_of_columns),
    "pipeline": make_pipeline(FunctionTransformer(lambda X: X), Ridge()),
}


@pytest.mark.parametrize("text", TEXTS)
def test_text_of_classes_and_parameters(text):
    assert stable_text(TEXTS[text]).startswith(text)
    assert UNNAMED_MARK not in stable_text(TEXTS[text])


@pytest.mark.parametrize("value", UNNAMED.values(), ids=UNNAMED)
def test_functions_and_unknown_objects_have_no_id(value):
    assert UNNAMED_MARK in stable_text(value)
    assert "0x" not in stable_text(value)


def test_other_parameters_give_other_texts():
    values = [KNN(3), KNN(5), KNN(3, missing="mean"), Scorer(Ridge()), Scorer(Ridge(alpha=2)), Threshold(1)]
    values += [Scorer(make_pipeline(StandardScaler(), Ridge(alpha=alpha))) for alpha in (1, 2)]
    values += [np.arange(5000), np.append(np.arange(4999), 0), sp.eye(3, format="csc"), sp.eye(4, format="csc")]
    values += [Function(mean_of_columns, name="a"), Function(mean_of_columns, name="b")]
    texts = [value.describe() if hasattr(value, "describe") else stable_text(value) for value in values]
    assert len(set(texts)) == len(texts)


def test_a_study_describes_an_estimator_by_class_and_parameters():
    assert _described(Threshold(1), "own") == {"own": "Threshold", "own.at": "1"}


def daf(ledger, criterion, n_probes=10, scoring=None):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 6)), np.arange(30) % 2
    stop = MaxProbes(n_probes)
    options = {"stop": stop, "check_every": 10, "random_state": 0, "ledger": ledger, "scoring": scoring}
    return DAF(criterion=criterion, **options).fit(X, y)


@pytest.mark.parametrize("make", [Threshold, KNN, lambda k: Function(mean_of_columns, name=f"version {k}")])
def test_a_run_is_not_resumed_with_another_criterion(make, tmp_path):
    path = tmp_path / "run.ledger"
    daf(path, make(1))
    assert daf(path, make(1), 20).n_probes_ == 20
    with pytest.raises(LedgerError, match="holds another run: its criterion"):
        daf(path, make(2), 30)


def test_a_name_identifies_any_function(tmp_path):
    path = tmp_path / "run.ledger"
    daf(path, Function(mean_of_columns, name="mean"))
    assert daf(path, Function(lambda X, y: X.sum(), name="mean"), 20).n_probes_ == 20
    with pytest.raises(LedgerError, match=r"its criterion is .*name='mean'.* not .*name='median'"):
        daf(path, Function(mean_of_columns, name="median"), 30)


@pytest.mark.parametrize("criterion", [mean_of_columns, Scorer(GaussianNB(), scoring=make_scorer(accuracy_score))])
def test_a_ledger_needs_a_name_for_a_function(criterion, tmp_path):
    path = tmp_path / "run.ledger"
    with pytest.raises(LedgerError, match=r"needs a name for .*unnamed.*: use Function\(my"):
        daf(path, criterion)
    assert not path.exists()
    assert daf(None, criterion).n_probes_ == 10


def test_a_ledger_needs_a_name_for_a_scoring_function(tmp_path):
    path = tmp_path / "run.ledger"
    scoring = make_scorer(accuracy_score)
    with pytest.raises(LedgerError, match="needs a name"):
        daf(path, GaussianNB(), scoring=scoring)
    assert daf(path, Scorer(GaussianNB(), scoring=scoring, name="first")).n_probes_ == 10
