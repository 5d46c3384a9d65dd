"""Wu, Zhang 2004: what the paper proves, counted on the genes of Leukemia's training patients."""

from __future__ import annotations

import time
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from probewise.engine.fingerprints import fingerprint
from probewise.filters.dfe import DFE
from probewise.filters.efs import EFS
from probewise.information import extended_balanced_gain

from ..base import Claim
from ..work import Reproduction, least_seconds

Floats = NDArray[np.float64]
STEPS = (1, 2, 5, 10, 20, 50)
PAIRS = 500
TOP = 900


def proofs(reproduction: Reproduction) -> list[Claim]:
    """Theorems 1 and 2, lemmas 1 and 2, the cut points and the complexity of sections 3 and 4."""
    if "Leukemia" not in reproduction.settings.repeats:
        return []
    source = reproduction.data("leukemia")
    train = source.train_index
    X, y = np.ascontiguousarray(source.X[train], dtype=np.float64), source.y[train]
    found = reproduction.conduct(
        "proofs",
        partial(counted, X, y),
        [reproduction.seed],
        {"data": fingerprint(X), "target": fingerprint(y)},
        "proofs",
    )[reproduction.seed]
    place = f"Leukemia's training part, {X.shape[1]} genes"
    steps = found["seconds of algorithm 1"]
    return [
        Claim(
            "Extended balanced gain is symmetrical",
            found["asymmetry"] == 0,
            f"largest difference of the two directions, {PAIRS} pairs of genes: {found['asymmetry']:g}",
            "theorem 1",
            place,
        ),
        Claim(
            "A feature's correlation with those selected never falls, its importance never rises",
            found["falls"] == found["rises"] == 0,
            f"of all undetermined genes at {len(STEPS)} numbers of steps, correlations that fall: {found['falls']:g}, "
            f"importances that rise: {found['rises']:g}",
            "lemmas 1 and 2",
            place,
        ),
        Claim(
            "Features below the threshold are discarded for good, and nothing is lost by it",
            found["lost"] == 0,
            f"of the first {STEPS[-1]} genes without a threshold, important enough, but not taken with one: "
            f"{found['lost']:g}",
            "theorem 2",
            place,
        ),
        Claim(
            "The cut points with the largest balanced gain can be found (here: never less than the greedy ones')",
            found["least"] >= -1e-9,
            f"optimal less greedy gain of a gene: least {found['least']:.4f}, mean {found['mean']:.4f}",
            "section 3.1",
            place,
        ),
        Claim(
            "Algorithms for the best cut points apply to balanced gain, and not directly to symmetrical uncertainty",
            None,
            "a judgement on algorithms of the time; here the gain is maximised exactly for each number of intervals, "
            "which is all that its penalty depends on, and uncertainty's depends on the intervals themselves",
            "section 3.1",
            "the row above",
        ),
        Claim(
            "EFS takes time in proportion to the number of features (here: for 4 times as many at most 6 times)",
            steps[-1] <= 6 * steps[0],
            f"a quarter, half, all of the genes: {_shown(steps)} without the largest correlation of any two (eq. 10), "
            f"for which the paper counts nothing; {_shown(found['seconds'])} with it",
            "section 4",
            f"{place}; 20 to select, the threshold at the {TOP}th gain of all",
        ),
    ]


def counted(X: Floats, y: NDArray[Any], seed: int) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    cuts = DFE().fit(X, y).cut_points_
    codes = np.column_stack([np.searchsorted(cuts[k], X[:, k]) for k in range(X.shape[1])])
    a, b = random.integers(0, X.shape[1], (2, PAIRS))
    one_way, other = (
        [extended_balanced_gain(codes[:, i], codes[:, j]) for i, j in zip(*pair, strict=True)]
        for pair in ((a, b), (b, a))
    )
    steps = [size for size in STEPS if size <= X.shape[1]]
    fitted = [EFS(size, threshold=-1.0).fit(X, y) for size in steps]
    rises = falls = 0
    for before, after in pairwise(fitted):
        open_ = np.setdiff1d(np.arange(X.shape[1]), after.order_)
        rises += int(np.sum(after.scores_[open_] > before.scores_[open_] + 1e-12))
        falls += int(np.sum(after.redundancy_[open_] < before.redundancy_[open_] - 1e-12))
    with_one = EFS(steps[-1], threshold=("top", TOP)).fit(X, y)
    whole = fitted[-1]
    worth = whole.order_[whole.importances_ >= with_one.threshold_]
    gain = DFE().fit(X, y).scores_ - DFE(discretization="greedy").fit(X, y).scores_
    return {
        "asymmetry": float(np.max(np.abs(np.subtract(one_way, other)))),
        "rises": rises,
        "falls": falls,
        "lost": len(np.setdiff1d(worth, with_one.order_)),
        "least": float(gain.min()),
        "mean": float(gain.mean()),
        "seconds": seconds_of(EFS(20, threshold=with_one.threshold_), X, y),
        "seconds of algorithm 1": seconds_of(EFS(20, threshold=with_one.threshold_, normalize=None), X, y),
    }


def seconds_of(selector: EFS, X: Floats, y: NDArray[Any]) -> list[float]:
    """For a quarter, half and all of the columns: the processor's, the best of three."""
    found = []
    for part in (4, 2, 1):
        columns = X[:, : X.shape[1] // part]
        sized = clone(selector).set_params(n_features_to_select=min(20, columns.shape[1]))
        found.append(least_seconds(partial(sized.fit, columns, y), time.process_time))
    return found


def _shown(seconds: list[float]) -> str:
    return ", ".join(f"{each:.3f} s" for each in seconds)
