"""A sparse additive model of y: forward selection of lines and shapes of columns by the extended BIC."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import gen_batches

from .association import CELLS_PER_BATCH, column_functions, rank_functions
from .base import Table

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
STEPS = np.arange(-7, 8) / 5  # normal scores at which a step may lie
N_SHAPES = 1 + len(STEPS)
# The price of a term is that of the extended BIC with gamma = 0.9 - log(n) / (2 log(p)) for p atoms; it is consistent
# from 1 - log(n) / (2 log(p)) on. With a lower price, models of few rows contain noise, and noise is then named.
TERM_PRICE = 1.8
SHAPE_COST = 10.0  # of a shape in the BIC, on top of the cost of a line
PATIENCE = 4  # steps without a better model after which the search ends
N_MARGINAL, N_RESIDUAL = 40, 40  # candidates by lines, by shapes, and by what a first model leaves
ROWS_PER_TERM = 8
LEAST_NORM = 1e-3  # share of an atom's length that must be left after the chosen atoms


def shapes(columns: Floats) -> Floats:
    """(rows, columns * shapes): the absolute value of each column, and indicators of being above each step."""
    parts = [np.abs(columns), *(columns > step for step in STEPS)]
    return np.stack(parts, axis=2).astype(np.float64).reshape(len(columns), -1)


@dataclass(frozen=True, eq=False)
class Atoms:
    """Functions of columns that a model may choose: lines of all columns, shapes and products of some.

    Attributes
    ----------
    values : array of shape (n_rows, n_atoms)
        Centered, times the square root of the weights.
    owners : array of shape (n_atoms, 2)
        The column, or the two columns, of each atom; a single column stands twice.
    cost : array of shape (n_atoms,)
        Added to the BIC where the atom is chosen.
    """

    values: Floats
    owners: Ints
    cost: Floats
    _products: dict[int, Floats] = field(default_factory=dict, repr=False)

    @cached_property
    def norms(self) -> Floats:
        return np.asarray((self.values**2).sum(axis=0))

    def products_with(self, atom: int) -> Floats:
        """Inner products of all atoms with one atom."""
        if atom not in self._products:
            self._products[atom] = self.values.T @ self.values[:, atom]
        return self._products[atom]

    def forward(self, target: Floats, most: int, n_independent: int | None = None) -> list[int]:
        """The atoms chosen by forward selection; ``target`` is centered like the atoms.

        Each step adds the atom that explains most, net of its cost. The model with the smallest extended BIC is kept.
        ``n_independent`` is the number of independent rows, or of groups of rows; None: all rows.
        """
        n_rows, n_atoms = self.values.shape
        n_independent = n_rows if n_independent is None else n_independent
        price = TERM_PRICE * np.log(n_atoms)
        products, norms = self.values.T @ target, self.norms.copy()
        left = float(target @ target)
        chosen: list[int] = []
        directions: list[Floats] = []  # inner products of all atoms with each orthonormal direction
        best, n_best, total_price = n_independent * np.log(left / n_rows), 0, 0.0
        while len(chosen) < most and len(chosen) - n_best < PATIENCE:
            is_new = norms > LEAST_NORM * np.maximum(self.norms, 1e-12)
            gains = np.where(is_new, products**2 / np.maximum(norms, 1e-12) - self.cost * left / n_independent, -np.inf)
            atom = int(np.argmax(gains))
            if gains[atom] <= 0:
                break
            direction = self.products_with(atom) - sum((d[atom] * d for d in directions), np.zeros(n_atoms))
            direction /= np.sqrt(norms[atom])
            step = products[atom] / np.sqrt(norms[atom])
            products, norms = products - step * direction, norms - direction**2
            norms[atom] = 0.0
            directions.append(direction)
            chosen.append(atom)
            left = max(left - step**2, 1e-12 * n_rows)
            total_price += price + self.cost[atom]
            value = n_independent * np.log(left / n_rows) + total_price
            if value < best:
                best, n_best = value, len(chosen)
        return chosen[:n_best]

    def residual(self, target: Floats, atoms: Ints) -> Floats:
        """The target minus its least-squares fit by these atoms."""
        if not len(atoms):
            return target
        chosen = self.values[:, atoms]
        return np.asarray(target - chosen @ np.linalg.lstsq(chosen, target, rcond=None)[0])


@dataclass(frozen=True, eq=False)
class AdditiveFit:
    """A sparse additive model of each target, and the candidate columns that its search found.

    Attributes
    ----------
    columns : array of shape (n_rows, n_columns)
        Normal scores of the ranks, standardized.
    targets : array of shape (n_targets, n_rows)
        Normal scores of y or indicators of classes, centered, times the square root of the weights.
    candidates : array of int
        Columns related to y alone or to what a first model leaves, and columns given by the caller.
    models : list of lists of int
        The chosen atoms for each target.
    """

    table: Table
    columns: Floats
    targets: Floats
    root_weights: Floats
    candidates: Ints
    atoms: Atoms
    models: list[list[int]]

    @classmethod
    def of(cls, table: Table, also: list[int]) -> AdditiveFit:
        n_columns = table.n_columns
        weights = np.ones(table.n_rows) if table.weights is None else table.weights
        targets = _weighted(table.scores.T, weights, table.strata).T
        sizes = np.sqrt((targets**2).mean(axis=1, keepdims=True))
        varies = sizes[:, 0] > 1e-9  # not so for a class that is a stratum
        targets = targets[varies] / sizes[varies]
        columns, strength = _normal_scores(table, targets * np.sqrt(weights))
        lines = Atoms(_weighted(columns, weights, table.strata), _twice(np.arange(n_columns)), np.zeros(n_columns))
        candidates = list(also)
        for target in targets:
            model = lines.forward(target, _most_terms(table), table.n_independent)
            left = np.abs(lines.values.T @ lines.residual(target, np.array(model)))
            candidates += [*model, *np.argsort(-left, kind="stable")[:N_RESIDUAL].tolist()]
        for evidence in (strength[:, 0], strength[:, 1:].max(axis=1)):
            candidates += np.argsort(-evidence, kind="stable")[:N_MARGINAL].tolist()
        varying = set(np.flatnonzero(columns.std(axis=0) > 0).tolist())
        chosen = np.array([column for column in dict.fromkeys(candidates) if column in varying], dtype=np.int64)
        fit = cls(table, columns, targets, np.sqrt(weights), chosen, lines, [])
        return fit._with_atoms(shapes(columns[:, chosen]), _twice(np.repeat(chosen, N_SHAPES)))

    def with_products(self, pairs: Ints) -> AdditiveFit:
        """The fit with products of these pairs of columns, which become candidates."""
        if not len(pairs):
            return self
        candidates = np.array(list(dict.fromkeys([*self.candidates.tolist(), *pairs.ravel().tolist()])))
        products = self.columns[:, pairs[:, 0]] * self.columns[:, pairs[:, 1]]
        return replace(self, candidates=candidates)._with_atoms(products, pairs)

    def _with_atoms(self, values: Floats, owners: Ints) -> AdditiveFit:
        atoms = Atoms(
            np.hstack([self.atoms.values, _weighted(values, self.root_weights**2, self.table.strata)]),
            np.concatenate([self.atoms.owners, owners]),
            np.concatenate([self.atoms.cost, np.full(len(owners), SHAPE_COST)]),
        )
        models = [atoms.forward(target, _most_terms(self.table), self.table.n_independent) for target in self.targets]
        return replace(self, atoms=atoms, models=models)

    def residuals(self) -> Floats:
        """(targets, rows): what the models leave of the targets, times the square root of the weights."""
        left = [
            self.atoms.residual(target, np.array(model, dtype=np.int64))
            for target, model in zip(self.targets, self.models, strict=True)
        ]
        return np.stack(left) * self.root_weights

    def residuals_on_curved_scales(self) -> Floats:
        """Like `residuals`, with the square and the cube of each fit added to its model.

        If a class is rare, for example, effects that add up on the logit scale multiply on the scale of probabilities,
        and the products of all related columns would seem to have an effect.
        """
        left = []
        for target, model in zip(self.targets, self.models, strict=True):
            fitted = (target - self.atoms.residual(target, np.array(model, dtype=np.int64))) / self.root_weights
            powers = _weighted(np.column_stack([fitted**2, fitted**3]), self.root_weights**2, self.table.strata)
            terms = np.hstack([self.atoms.values[:, model], powers])
            left.append(target - terms @ np.linalg.lstsq(terms, target, rcond=None)[0])
        return np.stack(left) * self.root_weights


def _most_terms(table: Table) -> int:
    return max(2, table.n_independent // ROWS_PER_TERM)


def _weighted(columns: Floats, weights: Floats, strata: Ints) -> Floats:
    """Columns minus their weighted means in each stratum, times the square root of the weights."""
    centered = columns - (weights @ columns) / weights.sum()
    for stratum in range(1, strata.max() + 1):
        rows = strata == stratum
        centered[rows] -= (weights[rows] @ centered[rows]) / weights[rows].sum()
    if strata.any():
        rows = strata == 0
        centered[rows] -= (weights[rows] @ centered[rows]) / weights[rows].sum()
    return np.asarray(centered * np.sqrt(weights)[:, None])


def _twice(columns: Ints) -> Ints:
    return np.column_stack([columns, columns])


def _normal_scores(table: Table, targets: Floats) -> tuple[Floats, Floats]:
    """(rows, columns): standardized normal scores; (columns, functions): squared correlations with the targets."""
    basis = rank_functions(table.n_rows)
    columns = np.empty((table.n_rows, table.n_columns))
    strength = np.empty((table.n_columns, len(basis)))
    lengths = np.sqrt((targets**2).sum(axis=1))
    for batch in gen_batches(table.n_columns, max(1, CELLS_PER_BATCH // table.n_rows)):
        functions = column_functions(table.columns(batch), basis)[0]
        own_lengths = np.sqrt((functions**2).sum(axis=-1))
        products = functions @ targets.T / np.maximum(own_lengths[..., None] * lengths, 1e-12)
        strength[batch] = (products**2).sum(axis=-1)
        columns[:, batch] = (functions[:, 0] / np.maximum(own_lengths[:, :1], 1e-9)).T * np.sqrt(table.n_rows)
    return columns, strength
