"""Conditional tests: which columns are needed given all others (distilled conditional randomization).

For each candidate column: y minus a sparse additive model of the other columns is compared with functions of the
column, for the observed column and for copies drawn from its distribution given the others (a sparse linear model with
permuted residuals). Columns that are not candidates get a p-value of 1, which can only raise it. Columns that are
nearly copies of each other form a cluster, which is tested as one given everything outside.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.stats import chi2
from sklearn.linear_model import Lasso

from ..executors import Map, in_turn, one_blas_thread, threads
from ..kernels import permutations as kernels
from ..validation.parameters import SHARE, check_parameter, named_columns, seed_of
from .additive import N_SHAPES, STEPS, AdditiveFit
from .association import tail_p_values
from .base import Discoveries, Table, q_values
from .interactions import scan
from .permutations import Permutations

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MAX_PAIRS = 50  # strongest pairs whose products enter the model of y
NEAREST = 150  # columns that may explain a candidate
PENALTY = 0.8  # of the lasso for a candidate, in units of sqrt(2 log p / n)
ROWS_PER_NEIGHBOR = 5  # of the model of a candidate
MOST_EXPLAINED = 0.5  # share of a candidate's variance up to which only columns of the model of y explain it
RIDGE = 0.02  # of the refit of that model
SHAPE_PRICE = 8.0  # of shapes and products in the statistic, in squared standard errors
SIMILAR, RELATED = 0.6, 0.5  # mean absolute correlation in a cluster; correlation from which columns may be in one
MAX_MEMBERS = 8  # columns that represent a cluster in its test
DRAWS, FIRST_DRAWS, STOP_ABOVE = 2000, 200, 0.1  # copies of a candidate; few where the first ones give a large p-value
N_CONTROLS, MIN_CONTROLS = 200, 50  # columns that are no candidates, by which the statistics are calibrated
SELECTION_PRICE = 1.3  # times the p-value, because the model of y was chosen with the candidate among the columns
STREAM = 0xC0DE  # separates these random numbers from others with the same seed


def needed(
    X: Any,
    y: Any,
    *,
    candidates: Any = None,
    groups: Any = None,
    sample_weight: Any = None,
    strata: Any = None,
    adjust: Any = None,
    task: str = "auto",
    fdr: float = 0.1,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> Discoveries:
    """Test whether each column is needed to predict y, given all other columns.

    Parameters
    ----------
    X, y, groups, sample_weight, strata, adjust, task, fdr, random_state, n_jobs
        As in `associated`. Missing values in X count as average.
    candidates : list of columns, optional
        Columns to test in addition to those found by screening.

    Returns
    -------
    Discoveries
        ``p_values`` are those of single columns given all others. ``clusters`` are neighborhoods of similar columns of
        which one is needed, where the data cannot tell which. The q-value of the first column of a cluster is that of
        the cluster, if smaller than its own.

    Notes
    -----
    A conditional randomization test is exact if the distribution of a candidate given the other columns is known and
    the model of y does not use the candidate (Candès et al. 2018; Liu et al. 2022). Here the distribution is estimated,
    and the model of y is the one chosen with the candidate, minus its terms, so error rates are approximate.
    ``python -m benchmarks discover`` measures them.

    Examples
    --------
    >>> import numpy as np
    >>> from probewise.inference import needed
    >>> X = np.random.default_rng(0).standard_normal((200, 50))
    >>> X[:, 7] = X[:, 3] + X[:, 7]  # related to y only through column 3
    >>> y = X[:, 3] + X[:, 5] + np.random.default_rng(1).standard_normal(200)
    >>> np.flatnonzero(needed(X, y, random_state=0).mask)
    array([3, 5])
    """
    check_parameter("fdr", fdr, SHARE)
    table = Table.of(X, y, groups=groups, sample_weight=sample_weight, strata=strata, adjust=adjust, task=task)
    seed = seed_of(random_state, None)
    chosen = [] if candidates is None else named_columns(candidates, "candidates", None, table.n_columns).tolist()
    run = in_turn if n_jobs in (None, 1) else threads(n_jobs)
    with one_blas_thread():
        fit = AdditiveFit.of(table, chosen)
        together = scan(fit, fdr, seed, run).pairs[:MAX_PAIRS]
        fit = fit.with_products(together)
        test = ConditionalTest(fit, _partners(together), seed).with_inflation(run)
        found = test.p_values_of([np.array([column]) for column in fit.candidates], run)
        p_values = np.ones(table.n_columns)
        p_values[fit.candidates] = [p for p, _ in found]
        clusters, n_clusters = test.clusters(p_values)
        found = test.p_values_of([members for members in clusters if len(members) > 1], run)
    return _discoveries(p_values, clusters, n_clusters, found, fdr)


def _discoveries(
    p_values: Floats, clusters: list[Ints], n_clusters: int, found: list[tuple[float, int]], fdr: float
) -> Discoveries:
    """Benjamini and Hochberg for single columns and for clusters; a cluster is represented by its best column."""
    q_single = q_values(p_values)
    remaining = iter(found)
    results = [next(remaining) if len(members) > 1 else (p_values[members[0]], members[0]) for members in clusters]
    padded = np.ones(n_clusters)
    padded[: len(results)] = [p for p, _ in results]
    combined, named = q_single.copy(), []
    for members, (_, strongest), q_cluster in zip(clusters, results, q_values(padded), strict=False):
        best = members[np.argmin(p_values[members])]
        first = best if q_single[best] <= fdr else strongest
        combined[first] = min(combined[first], q_cluster)
        if len(members) > 1 and q_cluster <= fdr:
            named.append(np.concatenate([[first], members[members != first]]))
    return Discoveries(p_values, combined, fdr, named)


@dataclass(frozen=True, eq=False)
class ConditionalTest:
    """The tests of single candidates and of clusters."""

    fit: AdditiveFit
    partners: dict[int, list[int]]  # columns that act in a pair with a column
    seed: int
    inflation: float = 1.0

    @property
    def columns(self) -> Floats:
        return self.fit.columns

    def with_inflation(self, run: Map) -> ConditionalTest:
        """Estimate how much too large the statistics of columns without an effect are (genomic control)."""
        varies = np.ptp(self.columns, axis=0) > 0
        varies[self.fit.candidates] = False
        others = np.random.default_rng([self.seed, STREAM]).permutation(np.flatnonzero(varies))[:N_CONTROLS]
        if len(others) < MIN_CONTROLS:
            return self
        squares = list(run(self._square_of_line, [np.array([column]) for column in others]))
        inflation = float(np.median(squares)) / chi2.median(len(self.fit.targets))
        return replace(self, inflation=max(1.0, inflation))

    def _square_of_line(self, members: Ints) -> float:
        """The squared statistic of a line, with the permutation variance."""
        support = self._neighbors(members, members)
        residuals = self._distribution(members, support)[1][0]
        left = self.fit.residuals(members, support)
        left = left - left.mean(axis=1, keepdims=True)
        return float(((left @ residuals) ** 2 / ((left**2).sum(axis=1) * residuals.var())).sum())

    def p_values_of(self, sets: list[Ints], run: Map) -> list[tuple[float, int]]:
        """For each set of columns, its p-value given all columns outside, and its strongest member."""
        return list(run(self._test, sets))

    def _test(self, members: Ints) -> tuple[float, int]:
        represented = members[:MAX_MEMBERS]
        support = self._neighbors(represented, members)
        fitted, residuals = self._distribution(represented, support)
        left = self.fit.residuals(members, support)
        seed = int(np.random.SeedSequence([self.seed, STREAM, int(members[0]), len(members)]).generate_state(1)[0])
        rows = np.arange(self.fit.table.n_rows, dtype=np.float64)[None]
        draws = Permutations.of(rows, self.fit.table.groups, self.fit.table.strata, seed)
        sums = partial(self._sums, represented, fitted, residuals, left)
        observed = sums(rows.astype(np.int64))
        null = sums(_orders(draws, 0, FIRST_DRAWS))
        p_value, strongest = _compare(observed, null, self.inflation)
        if p_value < STOP_ABOVE:
            null = np.concatenate([null, sums(_orders(draws, FIRST_DRAWS, DRAWS))])
            p_value, strongest = _compare(observed, null, self.inflation)
        return min(SELECTION_PRICE * p_value, 1.0), int(represented[strongest])

    def _neighbors(self, represented: Ints, members: Ints) -> Ints:
        """Columns outside that explain the members: chosen by the lasso for their first principal component."""
        column = self.columns[:, represented]
        if len(represented) > 1:
            column = np.linalg.svd(column, full_matrices=False)[0][:, :1] * np.sqrt(len(column))
        similarity = np.abs(column[:, 0] @ self.columns) / len(column)
        similarity[members] = -1.0
        nearest = np.argsort(-similarity, kind="stable")[: min(NEAREST, self.columns.shape[1] - len(members))]
        if not len(nearest):
            return nearest
        penalty = PENALTY * np.sqrt(2 * np.log(self.columns.shape[1]) / len(column))
        model = Lasso(penalty, max_iter=500, tol=1e-3).fit(self.columns[:, nearest], column[:, 0])
        strength = np.abs(model.coef_)
        n_neighbors = min(len(column) // ROWS_PER_NEIGHBOR, int((strength > 0).sum()))
        support = np.asarray(nearest[np.argsort(-strength, kind="stable")[:n_neighbors]])
        fitted = self._distribution(represented, support)[0]
        if fitted.var() <= MOST_EXPLAINED * self.columns[:, represented].var():
            # Columns outside the model of y can hardly stand in for this one, and conditioning on them costs power.
            owners = np.concatenate([self.fit.atoms.owners[model].ravel() for model in self.fit.models])
            support = support[np.isin(support, owners)]
        return support

    def _distribution(self, represented: Ints, support: Ints) -> tuple[Floats, Floats]:
        """(members, rows): fitted values of the members given the support, and residuals."""
        columns, others = self.columns[:, represented], self.columns[:, support]
        ridge = RIDGE * len(columns) * np.eye(len(support))
        fitted = others @ np.linalg.solve(others.T @ others + ridge, others.T @ columns)
        return np.ascontiguousarray(fitted.T), np.ascontiguousarray((columns - fitted).T)

    def _sums(self, represented: Ints, fitted: Floats, residuals: Floats, left: Floats, orders: Ints) -> Floats:
        """(draws, members, functions, targets): sums of functions of permuted members times what is left of y."""
        partners = [self.partners.get(int(member), []) for member in represented]
        n_functions = 1 + N_SHAPES
        out = np.zeros((len(orders), len(fitted), n_functions + max(map(len, partners)), len(left)))
        alone = np.empty((*out.shape[:2], n_functions, len(left)))
        kernels.conditional_sums(fitted, residuals, orders, left, STEPS, alone)
        out[:, :, :n_functions] = alone
        for member, others in enumerate(partners):
            for place, other in enumerate(others):
                values = fitted[member] + residuals[member][orders]
                out[:, member, n_functions + place] = values @ (left * self.columns[:, other]).T
        return out

    def clusters(self, p_values: Floats) -> tuple[list[Ints], int]:
        """Clusters with a candidate, by average linkage of absolute correlations; and the number of all clusters.

        The most significant candidate of a cluster is its first column.
        """
        n_rows, n_columns = self.columns.shape
        correlations = np.abs(self.columns[:, self.fit.candidates].T @ self.columns) / n_rows
        around = np.flatnonzero((correlations >= RELATED).any(axis=0))
        label = np.arange(n_columns) + len(around) + 1
        if len(around) > 1:
            distances = 1 - np.abs(self.columns[:, around].T @ self.columns[:, around]) / n_rows
            tree = linkage(np.maximum(distances[np.triu_indices(len(around), 1)], 0.0), "average")
            label[around] = fcluster(tree, 1 - SIMILAR, "distance")
        clusters, seen = [], set[int]()
        for candidate in np.argsort(p_values[self.fit.candidates], kind="stable").tolist():
            column = self.fit.candidates[candidate]
            if int(label[column]) in seen:
                continue
            seen.add(int(label[column]))
            others = np.setdiff1d(np.flatnonzero(label == label[column]), column)
            nearest = np.argsort(-correlations[candidate, others], kind="stable")
            clusters.append(np.concatenate([[column], others[nearest]]))
        return clusters, len(np.unique(label))


def _compare(observed: Floats, null: Floats, inflation: float) -> tuple[float, int]:
    """The p-value of the observed sums (1, members, functions, targets) among drawn ones, and the strongest member."""
    center, error = null.mean(axis=0), np.maximum(null.std(axis=0), 1e-9)

    def strength(sums: Floats) -> Floats:
        squares = (((sums - center) / error) ** 2).sum(axis=-1)
        return np.maximum(squares[..., 0], squares[..., 1:].max(axis=-1) - SHAPE_PRICE)

    own = strength(observed)[0] / inflation
    return float(tail_p_values(own.max(keepdims=True), np.sort(strength(null).max(axis=1)))[0]), int(np.argmax(own))


def _partners(pairs: Ints) -> dict[int, list[int]]:
    """The other columns of the pairs of each column."""
    partners: dict[int, list[int]] = {}
    for one, two in pairs.tolist():
        partners.setdefault(one, []).append(two)
        partners.setdefault(two, []).append(one)
    return partners


def _orders(draws: Permutations, start: int, stop: int) -> Ints:
    return np.rint(draws.draw(start, stop)[:, 0]).astype(np.int64)
