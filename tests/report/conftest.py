"""Runs to report on, each made once."""

import numpy as np
import polars as pl
import pytest

from probewise import DAF
from probewise.datasets import make_madelon
from probewise.stopping import MaxProbes
from probewise.study import Study

HOSTILE = "<img src=x onerror=\"window.attacked='image'\">"
BREAKING = "</script><script>window.attacked='script'</script>"


@pytest.fixture(scope="session")
def hostile():
    return HOSTILE, BREAKING


@pytest.fixture(scope="session")
def madelon():
    """A data frame like Madelon with hostile names of two columns, and labels as text."""
    data = make_madelon(150, 40, random_state=0)
    names = list(data.feature_names)
    names[data.informative[0]], names[data.informative[1]] = HOSTILE, BREAKING
    return pl.from_numpy(data.X, schema=names, orient="row"), np.where(data.y == 1, "ill", "<b>well</b>")


@pytest.fixture(scope="session")
def saved_run(madelon, tmp_path_factory):
    """A fitted DAF and the path of its ledger."""
    path = tmp_path_factory.mktemp("run") / "run.ledger"
    return DAF(stop=MaxProbes(1600), ledger=path, random_state=3).fit(*madelon), path


@pytest.fixture(scope="session")
def study(madelon, tmp_path_factory):
    """The result of a small study and the path of its ledger."""
    from sklearn.neighbors import KNeighborsClassifier

    from probewise import BIF, FSDD

    path = tmp_path_factory.mktemp("study") / "study.jsonl"
    selectors = {"bif": BIF(), "fsdd": FSDD(), "all": None}
    classifiers = {"3-nn": KNeighborsClassifier(3)}
    comparison = Study(selectors, classifiers, trials=3, sizes=[2, 8], random_state=0, ledger=path)
    return comparison.compare(*madelon), path
