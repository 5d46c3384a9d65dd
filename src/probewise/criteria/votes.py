"""Votes of the nearest rows: data, folds and target as the kernels of `kernels.votes` want them."""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..kernels import votes as kernels
from ..kernels.products import ROWS
from .base import Floats, Folds, Target
from .scoring import Measure, Outcomes, ScoredTests

Probes = tuple[NDArray[Any], NDArray[np.int32], NDArray[np.int64]]  # lines, places of features among them, offsets


class Votes:
    """J of many subsets in one compiled call, whatever the folds: hard votes in float32, soft ones in the type of X.

    ``one_by_one``: whether each fold is to be scored by a call of its own.
    """

    def __init__(
        self, target: Target, folds: Folds, measure: Measure, n_neighbors: int, dtype: Any, *, one_by_one: bool = False
    ) -> None:
        self.target, self.folds, self.measure, self.n_neighbors = target, folds, measure, n_neighbors
        kind = np.dtype(dtype) if measure.is_probability else np.dtype(np.float32)
        self.precision = np.array([np.finfo(kind).eps, np.finfo(kind).tiny], kind)
        self.is_alone = folds.is_partition and bool(np.all(folds.test_sizes == 1)) and not one_by_one
        self._extents: tuple[Any, Any] = None, None
        self.n_found, self.n_exact = 0, 0

    def score(self, probes: Probes, by_group: Outcomes, scores: Floats) -> None:
        lines, indices, offsets = probes
        columns = lines, *self._extents_of(lines)
        for some in self.tests.pieces(len(scores)):
            predicted, own = np.empty((len(scores[some]), len(self.tests.truth))), offsets[some.start : some.stop + 1]
            self.n_exact += kernels.vote_probes(
                columns, (indices, own), self.layout, self.n_neighbors, self.truth, self.precision, predicted
            )
            self.n_found += predicted.size
            self.tests.score(predicted, by_group.of_subsets(some), scores[some])

    def score_fold(self, fold: int, lines: NDArray[Any], by_group: Outcomes) -> float:
        """The score of one fold, of a single subset of all lines, which are its own."""
        tests, trains, train, _ = self.layout
        own = slice(tests[fold] - tests[0], tests[fold + 1] - tests[0])
        some = tests[fold : fold + 2], trains[fold : fold + 2], train, False
        probe = np.arange(len(lines), dtype=np.int32), np.array([0, len(lines)])
        columns = lines, *extents(lines)
        predicted = np.empty((1, own.stop - own.start))
        kernels.vote_probes(columns, probe, some, self.n_neighbors, self.truth, self.precision, predicted)
        known = self.measure.tests(self.tests.truth[own], self.tests.weights[own], self.target.n_classes)
        return known.score_one(predicted[0], by_group.of_tests(own))

    @property
    def exact_share(self) -> float:
        """Of the tests so far, those whose neighbours only exact distances told: these take several times as long."""
        return self.n_exact / max(1, self.n_found)

    @cached_property
    def layout(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], bool]:
        """Where each fold's tests start among the columns, where its training rows start in a list, that list."""
        folds, everything = self.folds, np.arange(self.folds.n_rows)
        if self.is_alone:
            tests, parts = np.array([0, folds.n_rows]), [everything]
        elif folds.is_partition:
            tests = folds.borders
            parts = [np.delete(everything, slice(*own)) for own in pairwise(tests)]
        else:
            tests = folds.n_rows + folds.borders
            once = np.unique if self.measure.is_probability else np.asarray
            parts = [once(train) for train, _ in folds.splits]
        train = np.concatenate([*parts, np.zeros(ROWS, np.int64)])
        return tests, np.cumsum([0, *map(len, parts)]), train, self.is_alone

    @cached_property
    def truth(self) -> tuple[Any, ...]:
        """What the kernel is told of columns."""
        n, order = self.folds.n_rows, self.folds.order
        of_rows = kernels.tie_keys(n)
        rows = order if self.folds.is_partition else np.append(np.arange(n), order)
        keys = np.append(of_rows[rows], np.zeros(kernels.WIDEST, np.int64))
        keepers = np.zeros(1 << (n - 1).bit_length(), np.int64)
        keepers[keys[:n]] = np.arange(n)
        targets = self.target.values[rows].astype(np.float64)
        return targets, keys, keepers, self.target.n_classes, self.measure.code

    @cached_property
    def tests(self) -> ScoredTests:
        return self.measure.tests_of(self.folds, self.target.values, self.target.n_classes)

    def _extents_of(self, lines: NDArray[Any]) -> Any:
        """Those of the lines that are held are found once."""
        known, found = self._extents
        if known is not lines:
            found = extents(lines)
            self._extents = lines, found
        return found

    def __getstate__(self) -> dict[str, Any]:
        """Without what another process makes for itself."""
        return self.__dict__ | {"_extents": (None, None)}


def extents(lines: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_]]:
    middles, reach = np.empty(len(lines), lines.dtype), np.empty(len(lines), lines.dtype)
    is_whole = np.empty(len(lines), bool)
    kernels.extents(lines, middles, reach, is_whole)
    return middles, reach, is_whole
