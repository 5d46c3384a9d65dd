"""SFFS and its relatives SFS, SBS and SBFS: sequential search for a subset, one feature at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted

from ._probing import accepted_by, bind, criterion_or_default, map_for, prepare, usual_block_size
from ._selector import Accepts, Selector
from .criteria import as_criterion
from .engine.probes import Subsets
from .engine.tally import TallySheet, positions, rounded
from .engine.units import Units
from .executors import Map
from .progress import Verbose, live_line
from .stopping import Rule, State, as_rule
from .validation.errors import warn
from .validation.parameters import check_parameters

Members = tuple[int, ...]
Path = dict[int, tuple[float, Members]]

PARAMETERS = {"direction": ("forward", "backward"), "floating": (True, False, "strict")}


@dataclass(eq=False, repr=False)
class SFFS(Selector):
    """Sequential floating search: builds a subset by adding and removing one feature at a time.

    A forward search adds the feature that gives the highest J; if ``floating``, it then removes features as long as
    that gives a better subset than the best known one of its size. A backward search starts from all features and
    removes instead. So SFS, SFFS, SBS and SBFS are one class. It is suited to tens to hundreds of features; for
    thousands use `DAF`.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Size of the subset: a number, a share in (0, 1], or None for half; a group counts as one. After ``fit`` it may
        be changed to any size on the path.
    criterion : str, criterion, estimator or callable, default="auto"
        As in `DAF`.
    direction : {"forward", "backward"}, default="forward"
        Backward starts from all features.
    floating : bool or "strict", default=True
        True steps back as long as that is better than the best known subset of the size. "strict" also requires that
        it is better than the larger subset, and does not move the feature that was just added (or removed), as in
        mlxtend. False is the plain sequential search: faster, with nested subsets, but it stops at worse optima.
    feature_groups : list of lists, dict of lists or list of labels, default=None
        As in `DAF`: features that are added and removed together.
    stop : stopping rule or None, default=None
        A rule of `probewise.stopping`, such as ``MaxTime(60)`` or ``MaxProbes(10_000)``, which counts subsets; the
        result is the best subset so far. None: search until the size is reached.
    cv, scoring, device, n_jobs, verbose
        As in `DAF`.

    Attributes
    ----------
    path_ : dict
        The best J and its subset for every size visited: ``{size: (J, (feature, ...))}``; a group counts as one.
    scores_ : array of shape (n_features,)
        The share of the sizes on the path whose subset contains the feature.
    ranking_, support_
        Ranks by ``scores_``, and the mask of the best subset of ``n_features_to_select`` features.
    n_evaluations_ : int
        Number of subsets scored.
    stop_reason_ : str
        Why the search stopped, in words.

    Notes
    -----
    J is rounded to 12 digits, and ties go to the lower column. Ctrl-C ends the search with the path so far and a
    ``ConvergenceWarning``.

    References
    ----------
    P. Pudil, J. Novovicova, J. Kittler, *Floating search methods in feature selection*, Pattern Recognition Letters
    15, 1994.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from probewise import SFFS
    >>> X, y = load_iris(return_X_y=True)
    >>> sffs = SFFS(2, criterion="linear").fit(X, y)
    >>> sffs.get_support(indices=True).tolist(), round(sffs.path_[2][0], 3)
    ([1, 3], 0.853)
    """

    n_features_to_select: Any = None
    _: KW_ONLY
    criterion: Any = "auto"
    direction: str = "forward"
    floating: bool | str = True
    feature_groups: Any = None
    stop: Any = None
    cv: Any = 3
    scoring: Any = None
    device: str = "cpu"
    n_jobs: int | None = None
    verbose: Verbose = 0

    def fit(self, X: Any, y: Any = None, *, groups: Any = None, sample_weight: Any = None) -> SFFS:
        """Search until the size is reached or ``stop`` holds. ``groups`` and ``sample_weight`` are as in `DAF.fit`."""
        check_parameters(self, PARAMETERS)
        rule = None if self.stop is None else as_rule(self.stop)
        criterion = as_criterion(self.criterion, X)
        # Every step would read all columns of a store, so the table is loaded.
        data = prepare(self, criterion, X, y, groups=groups, sample_weight=sample_weight, stores=False)
        units = data.table.units
        score = bind(criterion, data, cv=self.cv, scoring=self.scoring, device=self.device)
        size, workers = self._n_selected(units.n_units), map_for(criterion, data.matrix, score, self.n_jobs)
        block_size = usual_block_size(criterion, score)
        with live_line(self.verbose) as progress:
            evaluate = Evaluation(data.table.score_of_units(score), workers, rule, block_size, progress)
            forward = self.direction == "forward"
            path, self.stop_reason_ = search(evaluate, units.n_units, size, forward=forward, floating=self.floating)
        self.fit_arguments_ = data.arguments
        self.n_evaluations_ = evaluate.n_evaluations
        counts = np.zeros(units.n_units)
        for _, members in path.values():
            counts[list(members)] += 1
        self.scores_ = units.per_feature(counts / len(path))
        self.ranking_ = units.per_feature(positions(counts) + 1, 0)
        self.path_ = {size: (value, _features(units, members)) for size, (value, members) in path.items()}
        self._unreached = None if size in self.path_ else size
        if size not in self.path_:
            warn(f"SFFS {self.stop_reason_}: this is the best subset so far", ConvergenceWarning)
        return self

    @property
    def _accepts(self) -> Accepts:
        return accepted_by(criterion_or_default(self.criterion), self.device)

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self, "path_")
        size = self._n_selected(int(self.ranking_.max()))
        if size not in self.path_ and size != self._unreached:
            raise ValueError(
                f"n_features_to_select={size}: the path has sizes {min(self.path_)} to {max(self.path_)}; fit again to "
                "search for another size"
            )
        if size not in self.path_:
            size = max(self.path_) if self.direction == "forward" else min(self.path_)
        mask = np.zeros(len(self.scores_), dtype=bool)
        mask[list(self.path_[size][1])] = True
        return mask


def _features(units: Units, members: Members) -> Members:
    return tuple(sorted(int(feature) for unit in members for feature in units.members[unit]))


class StopSearch(Exception):
    """Raised when the stopping rule holds in the middle of a step."""


class Evaluation:
    """Evaluates J of a subset with each feature added or removed, in fixed batches over the workers."""

    def __init__(
        self, score: Any, map: Map, rule: Rule | None, block_size: int, progress: Callable[[str], None] | None
    ) -> None:
        self.score, self.map, self.rule, self.progress = score, map, rule, progress
        self.block_size = block_size
        self.n_evaluations = 0
        self.best = "starting"
        self.started = time.perf_counter()

    def __call__(self, members: Members, features: list[int], *, adding: bool) -> NDArray[np.float64]:
        """J of ``members`` with, or without, each of the features, to 12 digits."""
        function = partial(_score_each, self.score, members, adding)
        batches = [features[batch] for batch in gen_batches(len(features), self.block_size)]
        values = []
        for batch_values in self.map(function, batches):
            values.append(batch_values)
            self.n_evaluations += len(batch_values)
            state = State(self.n_evaluations, time.perf_counter() - self.started, TallySheet(0).view())
            if self.progress:
                self.progress(f"SFFS: {self.best}; {state.n_probes:,} subsets, {state.seconds:.1f} s")
            if self.rule is not None and self.rule(state):
                raise StopSearch(self.rule.reason(state))
        return rounded(np.concatenate(values))


def _score_each(score: Any, members: Members, adding: bool, features: list[int]) -> NDArray[np.float64]:
    """J of the members with, or without, each feature."""
    return score(Subsets.of([[*members, f] if adding else [m for m in members if m != f] for f in features]))


def search(
    evaluate: Evaluation, n_features: int, size: int, *, forward: bool, floating: bool | str
) -> tuple[Path, str]:
    """The best subset of every size on the way to ``size``, and why the search ended."""
    path: Path = {}
    members: Members = () if forward else tuple(range(n_features))

    def record(value: float) -> None:
        if len(members) not in path or value > path[len(members)][0]:
            path[len(members)] = value, members
        best = max(path, key=lambda size: (path[size][0], -size))
        evaluate.best = f"sizes {min(path)} to {max(path)}, best J {path[best][0]:.4f} with {best} features"

    try:
        if not forward:
            path[n_features] = float(rounded(evaluate.score(Subsets.of([members])))[0]), members
        while len(members) != size:
            before = set(members)
            members, value = _step(evaluate, members, n_features, forward)
            fixed = before ^ set(members) if floating == "strict" else set()
            record(value)
            while floating and 2 < len(members) < n_features - (not forward):
                back, back_value = _step(evaluate, members, n_features, not forward, fixed)
                if back_value <= path[len(back)][0] or (floating == "strict" and back_value <= value):
                    break
                members, value = back, back_value
                record(value)
    except StopSearch as reason:
        if not path:  # stopped in the first step of a forward search
            path = {1: (float(evaluate.score(Subsets.of([[0]]))[0]), (0,))}
        return path, str(reason)
    except KeyboardInterrupt:
        if not path:
            raise
        return path, f"interrupted after {evaluate.n_evaluations:,} subsets"
    return path, f"the size of {size} features was reached"


def _step(
    evaluate: Evaluation, members: Members, n_features: int, adding: bool, fixed: Collection[int] = ()
) -> tuple[Members, float]:
    """The best subset with one feature more, or less, and its J; features in ``fixed`` do not move."""
    inside = set(members)
    candidates = [f for f in range(n_features) if (f not in inside) == adding and f not in fixed]
    values = evaluate(members, candidates, adding=adding)
    best = candidates[int(np.argmax(values))]
    return tuple(sorted(inside ^ {best})), float(values.max())
