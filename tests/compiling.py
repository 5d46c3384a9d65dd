"""Compile the kernels that most tests use once for all workers of pytest-xdist, instead of once in each."""

import fcntl
import warnings

import numpy as np
import scipy.sparse as sp

from probewise import BIF, CFS, CMIM, DAF, DFE, EFS, FSDD, JMI, MRMR, SFFS, ReliefF
from probewise.stopping import MaxProbes

X = np.random.default_rng(0).standard_normal((40, 8))
X[np.abs(X) < 0.2] = 0
FORMS = X, X.astype(np.float32), sp.csr_matrix(X), sp.csr_matrix(X.astype(np.float32))
CLASSES, NUMBERS = np.arange(40) % 3, X.sum(axis=1)
CRITERIA = "naive_bayes", "linear", "knn"  # those that compile longest first


def by_folds(name):
    for table in FORMS:
        DAF(criterion=name, stop=MaxProbes(20), random_state=0).fit(table, CLASSES)
    if name in ("linear", "knn"):
        DAF(criterion=name, stop=MaxProbes(20), random_state=0).fit(X, NUMBERS)


def by_probability(name):
    for options in ({"scoring": "probability"}, {"scoring": "probability", "cv": "loo"}, {"cv": "loo"}):
        for table in FORMS:
            DAF(criterion=name, stop=MaxProbes(20), random_state=0, **options).fit(table, CLASSES)


def by_others(selectors):
    for selector in selectors:
        for table in FORMS[:2]:
            selector.fit(table, CLASSES)


JOBS = [
    *((by_folds, name) for name in CRITERIA),
    *((by_probability, name) for name in ("naive_bayes", "linear", "knn")),
    (by_others, [ReliefF(), FSDD(), BIF(), SFFS(2)]),
    (by_others, [EFS(), DFE(), CFS(), MRMR(), JMI(), CMIM()]),
]


def share_compilation(folder):
    """Run each of the small fits in one worker or another; afterwards all load their kernels from numba's cache.

    A worker first takes the fits that no other has in hand, then waits for the others. Where the cache on disk is warm
    all of them take a second.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for how in (fcntl.LOCK_EX | fcntl.LOCK_NB, fcntl.LOCK_EX):
            for place, (fit, what) in enumerate(JOBS):
                with open(folder / f"compiled-{place}", "a") as marker:
                    try:
                        fcntl.flock(marker, how)
                    except BlockingIOError:
                        continue
                    if not marker.seek(0, 2):  # nobody has run it to its end
                        fit(what)
                        marker.write("done")
