"""Two functions are the same criterion only if their code and all that they capture are the same."""

import functools
import importlib
import subprocess
import sys
import threading
from itertools import combinations
from types import ModuleType

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from probewise import DAF
from probewise.criteria import KNN, Function, Scorer
from probewise.criteria.identity import _name, _parts, stable_text
from probewise.engine.ledger import LedgerError
from probewise.stopping import MaxProbes
from probewise.study.trials import _described

MODULE = """
import functools
import numpy as np
from sklearn.linear_model import Ridge
import other_of_the_user as other
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import make_scorer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

FACTOR, NAMES, TABLE = {factor}, {{"a", "b", "c"}}, np.arange(3)

def closed(factor):
    def inner(X, y):
        return factor * X.mean()
    return inner

def default(X, y, factor={factor}):
    return factor * X.mean()

def by_keyword(X, y, *, factor={factor}):
    return factor * X.mean()

def by_global(X, y):
    return FACTOR * X.mean() if "a" in NAMES else TABLE.sum()

def helper(X):
    return {factor} * X.mean()

def calls(X, y):
    return helper(X)

def calls_inside(X, y):
    return (lambda Z: {factor} * Z.mean())(X)

def recursive(X, y, depth=2):
    return {factor} if depth == 0 else recursive(X, y, depth - 1)

class Callable:
    def __init__(self, factor):
        self.factor = factor
    def __call__(self, X, y):
        return self.factor * X.mean()
    def method(self, X, y):
        return self.factor * X.sum()

class Coded:
    def __call__(self, X, y):
        return {factor} * X.mean()

class Estimator(ClassifierMixin, BaseEstimator):
    def predict(self, X):
        return X[:, 0] > {factor}

def imports(X, y):
    from other_of_the_user import scale
    return scale(X)

def by_attribute(X, y):
    return by_attribute.factor * X.mean()

by_attribute.factor = {factor}

THINGS = {{
    "closure": closed({factor}), "default": default, "keyword": by_keyword, "global": by_global, "helper": calls,
    "lambda inside": calls_inside, "recursive": recursive, "object": Callable({factor}),
    "method": Callable({factor}).method, "code of a class": Coded(), "partial": functools.partial(closed(1), {factor}),
    "cached": functools.lru_cache(default), "scorer": make_scorer(lambda y, z: {factor} * (y == z).mean()),
    "estimator": Estimator(), "import": imports, "attribute": by_attribute, "module": lambda X, y: other.FACTOR,
    "array": closed(np.array([{factor}, 1.0])), "long array": closed(np.append(np.zeros(5000), {factor})),
    "pipeline": make_pipeline(StandardScaler(), Ridge(alpha={factor})),
}}
"""


def things(*folders):
    """What a user's module has, made from its sources in another process, one after the other."""
    code = """
import sys
from probewise.criteria.identity import stable_text
for folder in sys.argv[1:]:
    sys.path.insert(0, folder)
    sys.modules.pop("of_the_user", None)
    sys.modules.pop("other_of_the_user", None)
    import of_the_user
    print(*(f"{name}={stable_text(thing)}" for name, thing in of_the_user.THINGS.items()), sep=";")
"""
    done = subprocess.run([sys.executable, "-c", code, *map(str, folders)], capture_output=True, text=True, check=True)
    return [dict(part.split("=", 1) for part in line.split(";")) for line in done.stdout.splitlines()]


@pytest.mark.slow
def test_functions_are_known_by_what_they_capture_in_every_process(tmp_path, monkeypatch):
    for factor in (1, 2):
        (tmp_path / str(factor)).mkdir()
        (tmp_path / str(factor) / "of_the_user.py").write_text(MODULE.format(factor=factor))
        scale = f"FACTOR = {factor}\n\ndef scale(X):\n    return FACTOR * X.mean()\n"
        (tmp_path / str(factor) / "other_of_the_user.py").write_text(scale)
    other, again = things(tmp_path / "2", tmp_path / "1")
    monkeypatch.syspath_prepend(tmp_path / "1")
    first = {name: stable_text(thing) for name, thing in importlib.import_module("of_the_user").THINGS.items()}
    for name in ("of_the_user", "other_of_the_user"):
        monkeypatch.delitem(sys.modules, name)
    assert first == again
    assert len(first) == 20
    assert [name for name in first if first[name] == other[name]] == []
    assert not any("0x" in text or "not to be" in text for text in first.values())


def scaled(factor):
    return lambda X, y: factor * X.mean()


class Judge:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, X, y):
        return self.factor * X.mean()

    def judged(self, X, y):
        return self.factor * X.mean()


def executed(code, **names):
    exec(code, names)
    return names["judged"]


class Wrapper:
    """As decorators are written: it looks like the function that it holds."""

    def __init__(self, function, factor):
        functools.update_wrapper(self, function)
        self.function, self.factor = function, factor

    def __call__(self, X, y):
        return self.factor * self.function(X, y)


def under_the_name_of_a_library(factor):
    @functools.wraps(accuracy_score)
    def judged(X, y):
        return factor * X.mean()

    return judged


def with_attribute(factor):
    def judged(X, y):
        return judged.factor * X.mean()

    judged.factor = factor
    return judged


def own_estimator(factor):
    class Own(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            self.classes_ = np.unique(y)
            return self

        def predict(self, X):
            return (X[:, 0] > factor).astype(int)

    return Own()


def own_criterion(factor):
    class Own(KNN):
        def bind(self, *data, **options):
            return super().bind(factor * data[0], *data[1:], **options)

    return Own(3)


def a_module_of_the_user(factor):
    module = ModuleType("settings_of_the_user")
    module.factor = factor
    return executed("def judged(X, y):\n    return settings.factor * X.mean()", settings=module)


def a_closure_of_a_library(factor):
    """A function that a library made of a user's function."""
    return np.errstate(all="ignore")(scaled(factor))


HIDDEN = {
    "made from text": lambda factor: executed(f"def judged(X, y):\n    return {factor} * X.mean()"),
    "wrapper": lambda factor: Wrapper(scaled(1), factor),
    "name of a library": under_the_name_of_a_library,
    "attribute": with_attribute,
    "estimator": own_estimator,
    "estimator in a pipeline": lambda factor: make_pipeline(StandardScaler(), own_estimator(factor)),
    "criterion": own_criterion,
    "module": a_module_of_the_user,
    "closure of a library": a_closure_of_a_library,
}


@pytest.mark.parametrize("make", HIDDEN.values(), ids=HIDDEN)
def test_what_hides_under_another_name_is_told_apart(make, tmp_path):
    path = tmp_path / "run.ledger"
    daf(path, make(1))
    assert daf(path, make(1), 20).n_probes_ == 20
    with pytest.raises(LedgerError, match="holds another run: its criterion"):
        daf(path, make(2), 30)


def test_what_a_library_has_is_known_by_its_name():
    for thing in (accuracy_score, GaussianNB, KNN, np.float64, type(None), type(scaled)):
        assert list(_parts(thing)) == [_name(thing)]
    assert stable_text(GaussianNB()) == "GaussianNB(priors=None, var_smoothing=1e-09)"
    assert KNN(3).describe().startswith("KNN(")


def test_a_study_knows_an_estimator_by_its_code():
    assert (
        _described(own_estimator(1), "own")
        == _described(own_estimator(1), "own")
        != _described(own_estimator(2), "own")
    )


def daf(ledger, criterion, n_probes=10, scoring=None):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 6)), np.arange(30) % 2
    stop = MaxProbes(n_probes)
    options = {"stop": stop, "check_every": 10, "random_state": 0, "ledger": ledger, "scoring": scoring}
    return DAF(criterion=criterion, **options).fit(X, y)


def scorers(factor):
    return {
        "lambda": scaled(factor),
        "object": Judge(factor),
        "method": Judge(factor).judged,
        "partial": functools.partial(np.quantile, factor / 10),
        "scorer": Scorer(GaussianNB(), scoring=make_scorer(lambda y, z: factor * accuracy_score(y, z))),
        "transformer": Scorer(FunctionTransformer(scaled(factor))),
        "named": Function(scaled(1), name=f"version {factor}"),
    }


def test_described_apart():
    described = [
        criterion if isinstance(criterion, Scorer | Function) else Function(criterion)
        for f in (1, 2)
        for criterion in scorers(f).values()
    ]
    texts = [criterion.describe() for criterion in described]
    assert all(a != b for a, b in combinations(texts, 2))


@pytest.mark.parametrize("kind", ["lambda", "object", "scorer"])
def test_a_ledger_does_not_go_on_with_another_function(kind, tmp_path):
    path = tmp_path / "run.ledger"
    daf(path, scorers(1)[kind])
    assert daf(path, scorers(1)[kind], 20).n_probes_ == 20
    with pytest.raises(LedgerError, match=r"holds another run: its criterion .* all that it captures"):
        daf(path, scorers(2)[kind], 30)


def test_a_name_says_that_it_is_the_same(tmp_path):
    path = tmp_path / "run.ledger"
    daf(path, Function(scaled(1), name="mean"))
    assert daf(path, Function(scaled(2), name="mean"), 20).n_probes_ == 20
    with pytest.raises(LedgerError, match=r"its criterion is .*name='mean'.* not .*name='median'"):
        daf(path, Function(scaled(1), name="median"), 30)


def my_scoring(estimator, X, y):
    return estimator.score(X, y)


def test_scoring_by_a_function_goes_on_in_another_process(tmp_path):
    path = tmp_path / "run.ledger"
    text = daf(path, GaussianNB(), scoring=my_scoring).run_.ledger.settings["scoring"]
    assert "my_scoring#" in text
    assert "0x" not in text
    assert daf(path, GaussianNB(), 20, scoring=my_scoring).n_probes_ == 20
    with pytest.raises(LedgerError, match="its scoring is"):
        daf(path, GaussianNB(), 30, scoring=lambda estimator, X, y: 1.0)


def test_what_cannot_be_identified_keeps_no_ledger_without_a_name(tmp_path):
    lock = threading.Lock()

    def locked(X, y):
        with lock:
            return X.mean()

    path = tmp_path / "run.ledger"
    with pytest.raises(LedgerError, match=r"cannot be kept: .*locked#.* give it a name, as in criterion=Function"):
        daf(path, locked)
    assert not path.exists()
    assert daf(None, locked).n_probes_ == daf(path, Function(locked, name="mean")).n_probes_ == 10
