"""Compile the kernels that most tests use once for all workers of pytest-xdist, instead of once in each."""

import fcntl
import warnings
from functools import partial

import numpy as np
import scipy.sparse as sp

from probewise import CFS, DAF, DFE, EFS, FSDD, JMI, MRMR, ReliefF
from probewise.inference import needed
from probewise.stopping import MaxProbes

X = np.random.default_rng(0).standard_normal((40, 8))
X[np.abs(X) < 0.2] = 0
X32, WIDE = X.astype(np.float32), np.tile(X[:24], 12) + np.random.default_rng(1).standard_normal((24, 96))
CLASSES, NUMBERS = np.arange(40) % 3, X.sum(axis=1)


def probes(criterion, table, y=CLASSES, **options):
    DAF(criterion=criterion, stop=MaxProbes(20), random_state=0, **options).fit(table, y[: table.shape[0]])


def filters(*selectors, tables=(X, X32)):
    for selector in selectors:
        for table in tables:
            selector.fit(table, CLASSES)


# Those that compile longest first. Each has kernels of its own: two workers that begin together compile none twice.
JOBS = [
    partial(probes, "knn", X),
    partial(filters, EFS(), DFE(), CFS(), MRMR(), JMI()),
    partial(probes, "linear", WIDE, cv=3),
    partial(probes, "linear", X),
    partial(probes, "knn", X, scoring="probability"),
    partial(probes, "knn", X32),
    partial(needed, X, CLASSES, random_state=0),
    partial(probes, "linear", X, cv="loo"),
    partial(probes, "linear", sp.csr_matrix(X)),
    partial(filters, FSDD(), ReliefF()),
    partial(probes, "linear", sp.csr_matrix(X32)),
    partial(probes, "naive_bayes", X),
    partial(probes, "knn", X, NUMBERS),
    partial(probes, "knn", sp.csr_matrix(X)),
]


def share_compilation(folder):
    """Run each of the small fits in one worker or another; afterwards all load their kernels from numba's cache.

    A worker first takes the fits that no other has in hand, then waits for the others. Where the cache on disk is warm
    all of them take a second.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for how in (fcntl.LOCK_EX | fcntl.LOCK_NB, fcntl.LOCK_EX):
            for place, fit in enumerate(JOBS):
                with open(folder / f"compiled-{place}", "a") as marker:
                    try:
                        fcntl.flock(marker, how)
                    except BlockingIOError:
                        continue
                    if not marker.seek(0, 2):  # nobody has run it to its end
                        fit()
                        marker.write("done")
