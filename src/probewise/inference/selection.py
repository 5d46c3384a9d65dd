"""Bayesian variable selection: which columns are needed to predict y, given all other columns.

y is modeled by a sparse sum of lines, shapes and products of columns. Models are sampled from their posterior, and the
share of models that use a column is the probability that it is needed. Similar columns share this probability: their
cluster is needed, and the data cannot tell which of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage

from ..executors import Map, in_turn, one_blas_thread, threads
from ..kernels.variable_selection import sample_models
from ..validation.errors import USUAL_ERROR_STATE
from ..validation.parameters import SHARE, check_parameter, named_columns, seed_of
from .additive import N_SHAPES, AdditiveFit
from .base import Discoveries, Neighborhood, Table
from .interactions import MAX_PRODUCTS, scan

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MAX_PAIRS = 50  # strongest pairs whose products enter the model of y
MAX_LINES = 800  # columns that enter the models as lines: those most related to y and to what a first model leaves
EMPTY = 0.5  # prior probability that no column is needed
GROWTH = 0.95  # a model of k + 1 atoms has this prior probability, relative to one of k > 0: 20 atoms are expected
# Larger models of numbers have the probabilities of a Poisson law: the variance of their noise is unknown and shrinks
# with every atom, so that a flat law lets noise in.
GEOMETRIC_SIZE = 8
SHAPE_SHARE = 0.5  # prior probability of all shapes of a column, relative to that of its line
PRODUCT_SHARE = 0.3  # the same for the products of all pairs, relative to the lines of all columns
SLAB = 0.2  # prior variance of an effect, relative to the variance of the noise
MAX_MEMBERS, ROWS_PER_MEMBER = 40, 4  # limits on the atoms of a model
CHAINS, STEPS, BURN_IN = 2, 6000, 1000
EXPLORATION = 5.0  # rate of draws that ignore the odds, in atoms per step
SIMILAR = 0.6  # mean absolute correlation in a cluster
COPIES = 0.95  # mean absolute correlation of near copies, which share the probability of a model that uses several


@USUAL_ERROR_STATE
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
    """Find the columns that are needed to predict y, given all other columns.

    Parameters
    ----------
    X, y, groups, sample_weight, strata, adjust, task, fdr, random_state, n_jobs
        As in `associated`. Missing values in X count as average. Rows of one group count as one observation.
    candidates : list of columns, optional
        Columns to test in addition to those found by screening.

    Returns
    -------
    Discoveries
        ``q_values`` are the expected share of false discoveries among the column and all more probable ones; a column
        that is more probably false than true is never named at a rate below 0.5.
        ``p_values`` are inverse Bayes factors against a model without the column, at most 1. ``clusters`` are
        neighborhoods of similar columns of which one is needed, where the data cannot tell which. Their first column
        represents the others: its q-value is that of the cluster, if smaller than its own.

    Notes
    -----
    The ranks of each column and of a numeric y are replaced by normal scores. y is modeled by a sum of lines of all
    columns, shapes of some (the absolute value, or a step) and products of pairs found by `pairs`, plus normal noise.
    Classes are modeled by their indicators. For two classes without groups and weights, half of the models are
    sampled from a probit model instead: the second class is observed where the sum is positive.
    A model without any column has a prior probability of 0.5; the number of terms of the others is geometric with mean
    20, but large models of numbers become rare as fast as in a Poisson law. Models are sampled by weighted tempered
    Gibbs sampling (Zanella and Roberts 2019). Columns that are not found by screening have a probability of 0.

    The error rate is exact if this model is right. ``python -m benchmarks discover`` measures it where it is not.

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
        if table.n_rows * table.n_columns**2 / 2 <= MAX_PRODUCTS:
            fit = fit.with_products(scan(fit, fdr, seed, run).pairs[:MAX_PAIRS])
        posterior = Posterior.of(fit, seed, run)
    return posterior.discoveries(fdr)


@dataclass(frozen=True, eq=False)
class Posterior:
    """Sampled models of y: the columns of each, and its weight."""

    n_columns: int
    columns: Ints  # those that some atom uses, ascending
    values: Floats  # (rows, columns): their normal scores
    uses: NDArray[np.bool_]  # (models, columns)
    weights: Floats  # of the models, with sum 1

    @classmethod
    def of(cls, fit: AdditiveFit, seed: int, run: Map = in_turn) -> Posterior:
        n_rows = fit.table.n_effective
        chosen, log_prior = _prior(fit)
        if not len(chosen):
            return cls(fit.table.n_columns, chosen, np.empty((fit.table.n_rows, 0)), np.zeros((1, 0), bool), np.ones(1))
        atoms = fit.atoms.values[:, chosen]
        atoms /= np.sqrt((atoms**2).mean(axis=0))
        scale = n_rows / len(atoms)
        table = fit.table
        gram, products = atoms.T @ atoms * scale, np.ascontiguousarray(atoms.T @ _whitened(fit.targets).T * scale)
        models_of_y = [(n_rows, (np.empty((0, 0)), np.empty(0), table.strata))]
        if table.n_classes == 2 and table.weights is None and table.groups is None:
            models_of_y.append((0.0, (np.ascontiguousarray(atoms.T), 2.0 * table.target - 1, table.strata)))
        most = max(1, min(MAX_MEMBERS, int(n_rows) // ROWS_PER_MEMBER, len(chosen)))
        sample = partial(_chain, gram, products, models_of_y, log_prior, _log_size(most, table.n_classes > 0))
        owners = fit.atoms.owners[chosen]
        columns = np.unique(owners)
        places = np.searchsorted(columns, owners)
        uses, weights = [], []
        for models, sizes, weights_of_chain in run(sample, [seed * CHAINS + chain for chain in range(CHAINS)]):
            used = np.zeros((len(models), len(columns)), dtype=bool)
            steps = np.repeat(np.arange(len(models)), sizes)
            members = models[np.arange(models.shape[1]) < sizes[:, None]]
            used[steps[:, None], places[members]] = True
            uses.append(used)
            weights.append(weights_of_chain / weights_of_chain.sum() / CHAINS)
        values = fit.columns[:, columns]
        return cls(fit.table.n_columns, columns, values, np.concatenate(uses), np.concatenate(weights))

    def discoveries(self, fdr: float) -> Discoveries:
        """q-values of columns and of clusters; a cluster is represented by its most probable column."""
        probability = np.zeros(self.n_columns)
        probability[self.columns] = self.weights @ self.uses
        # A model may use the line of one near copy and a shape of the other: the data cannot tell whose they are.
        for copies in _clusters(self.values, COPIES):
            if len(copies) > 1:
                used = self.uses[:, copies]
                shares = used / np.maximum(1, used.sum(axis=1, keepdims=True))
                probability[self.columns[copies]] = self.weights @ shares
        clusters = _clusters(self.values, SIMILAR)
        together = np.array([self.weights @ self.uses[:, members].any(axis=1) for members in clusters])
        q_columns, q_clusters = _bayesian_q_values(probability), _bayesian_q_values(together)
        combined, found = q_columns.copy(), []
        for cluster, q_cluster in zip(clusters, q_clusters.tolist(), strict=True):
            members = self.columns[cluster]
            members = members[np.argsort(-probability[members], kind="stable")]
            combined[members[0]] = min(q_columns[members[0]], q_cluster)
            if len(members) > 1:
                found.append(Neighborhood(members, q_cluster, float(q_columns[members[0]])))
        prior_odds = (1 - EMPTY) / (1 - GROWTH) / self.n_columns
        odds = probability / np.maximum(1 - probability, 1e-12)
        return Discoveries(np.minimum(prior_odds / np.maximum(odds, prior_odds), 1.0), combined, fdr, found)


def _chain(
    gram: Floats,
    products: Floats,
    models_of_y: list[tuple[float, tuple[Floats, Floats, Ints]]],
    log_prior: Floats,
    log_size: Floats,
    seed: int,
) -> tuple[Ints, Ints, Floats]:
    """Models, sizes and weights of one chain, after its burn-in; the chains take turns in the models of y."""
    n_rows, latent_of = models_of_y[seed % CHAINS % len(models_of_y)]
    most = len(log_size) - 1
    models, sizes, weights = np.zeros((STEPS, most), np.int64), np.zeros(STEPS, np.int64), np.zeros(STEPS)
    exploration = EXPLORATION / len(log_prior)
    sample_models(
        gram, products, n_rows, latent_of, log_prior, log_size, SLAB, exploration, seed, models, sizes, weights
    )
    return models[BURN_IN:], sizes[BURN_IN:], weights[BURN_IN:]


def _log_size(most: int, is_classification: bool) -> Floats:
    """The log prior odds of one more atom for models of 0, 1, ..., ``most`` atoms, where all atoms have a share of 1.

    A model of k atoms has one of (p choose k), about p**k / k!, sets of atoms.
    """
    sizes = np.arange(1, most + 2)
    log_size = np.log((sizes if is_classification else np.minimum(sizes, GEOMETRIC_SIZE)) * GROWTH)
    log_size[0] = np.log((1 - GROWTH) * (1 - EMPTY) / EMPTY)
    return np.asarray(log_size)


def _prior(fit: AdditiveFit) -> tuple[Ints, Floats]:
    """The atoms that models may use, and the log of their prior share of the terms of a model."""
    owners, n_columns = fit.atoms.owners, fit.table.n_columns
    is_pair = owners[:, 0] != owners[:, 1]
    is_shape = (np.arange(len(owners)) >= n_columns) & ~is_pair
    is_used = fit.atoms.norms > 1e-6 * len(fit.columns)
    if n_columns > MAX_LINES:
        lines = fit.atoms.values[:, :n_columns]
        left = fit.residuals() / fit.root_weights
        strength = [(lines.T @ targets.T) ** 2 for targets in (fit.targets, left)]
        best = [np.argsort(-values.sum(axis=1), kind="stable")[: MAX_LINES // 2] for values in strength]
        is_used[np.setdiff1d(np.arange(n_columns), np.concatenate([fit.candidates, *best]))] = False
    share = np.where(is_shape, SHAPE_SHARE / N_SHAPES / n_columns, 1 / n_columns)
    share[is_pair] = PRODUCT_SHARE / max(1, n_columns * (n_columns - 1) / 2)
    chosen = np.flatnonzero(is_used)
    return chosen, np.log(share[chosen])


def _whitened(targets: Floats) -> Floats:
    """(targets, rows): uncorrelated targets with mean square 1; indicators of classes depend on each other."""
    lengths, rows = np.linalg.svd(targets, full_matrices=False)[1:]
    return np.asarray(rows[lengths > 1e-6 * lengths[0]] * np.sqrt(targets.shape[1]))


def _clusters(values: Floats, similar: float) -> list[Ints]:
    """Clusters of columns, by average linkage of absolute correlations; ``similar``: the mean in a cluster."""
    n_rows, n_columns = values.shape
    if n_columns < 2:
        return [np.arange(n_columns)] * n_columns
    distances = np.maximum(1 - np.abs(values.T @ values) / n_rows, 0.0)
    tree = linkage(distances[np.triu_indices(n_columns, 1)], "average")
    label = fcluster(tree, 1 - similar, "distance")
    return [np.flatnonzero(label == which) for which in range(1, label.max() + 1)]


def _bayesian_q_values(probability: Floats) -> Floats:
    """The mean probability of being false among each unit and all more probable ones.

    A unit that is more probably false than true gets its own probability of being false, so that it is never named.
    """
    order = np.argsort(-probability, kind="stable")
    false = 1 - probability[order]
    q_values = np.empty(len(probability))
    q_values[order] = np.where(false > 0.5, false, np.cumsum(false) / np.arange(1, len(false) + 1))
    return q_values
