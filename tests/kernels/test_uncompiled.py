"""With NUMBA_DISABLE_JIT=1, for debuggers and coverage tools, kernels are Python functions with the same results."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import probewise
from probewise.criteria import KNN, Average, Linear, NaiveBayes, Separability
from probewise.engine.probes import ProbePlan

FILTERS = ("FSDD", "ReliefF", "MRMR", "JMI", "CMIM", "EFS", "DFE", "BIF")


def results():
    """J of a few subsets by all criteria, and scores by all filters, on small tables."""
    rng = np.random.default_rng(0)
    y = np.arange(36) % 2
    X = rng.normal(size=(36, 9))
    X[:, 2] += y
    subsets, out = ProbePlan(9, 6, seed=1).draw(0, 6), {}
    tables = {"dense": X, "sparse": sp.csr_array(np.where(X > 0, X, 0))}
    for kind, table in tables.items():
        for criterion in (KNN(3), Linear(), Average([KNN(3), Linear()])):
            name = type(criterion).__name__
            for scoring in (None, "roc_auc", "probability"):
                out[f"{name} {scoring} {kind}"] = criterion.bind(table, y, 3, scoring=scoring)(subsets)
            out[f"{name} loo {kind}"] = criterion.bind(table, y, "loo")(subsets)
            out[f"{name} numbers {kind}"] = criterion.bind(table, X[:, 0] + rng.normal(size=36), 3)(subsets)
        for name in FILTERS:
            out[f"{name} {kind}"] = getattr(probewise, name)(3).fit(table, y).scores_
    for criterion in (NaiveBayes(), Separability()):
        out[type(criterion).__name__] = criterion.bind(X, y, 3)(subsets)
    out["Tournament"] = probewise.Tournament(3, n_probes=100, random_state=0).fit(X, y).scores_
    out["ranges"] = probewise.CFS().fit(X, y).scores_
    return {name: np.asarray(values).tolist() for name, values in out.items()}


@pytest.mark.slow
def test_uncompiled_kernels_have_the_results_of_compiled_ones():
    code = "import json, test_uncompiled as t; print(json.dumps(t.results()))"
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    folder = os.path.dirname(__file__)
    ran = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=folder, capture_output=True, text=True, check=True
    )
    uncompiled, compiled = json.loads(ran.stdout), results()
    assert uncompiled.keys() == compiled.keys()
    for name, values in compiled.items():
        assert uncompiled[name] == pytest.approx(values, rel=1e-9, abs=1e-12, nan_ok=True), name
