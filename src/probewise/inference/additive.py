"""A sparse additive model of y: forward selection of lines and shapes of columns by the extended BIC."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
STEPS = np.array([-1.2, -0.8, -0.4, 0.0, 0.4, 0.8, 1.2])  # normal scores at which a step may lie
N_SHAPES = 1 + len(STEPS)
EBIC = 0.5  # gamma of the extended BIC
SHAPE_COST = 10.0  # of a shape in the BIC, on top of the cost of a line
PATIENCE = 4  # steps without a better model after which the search ends
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

    def forward(self, target: Floats, most: int) -> list[int]:
        """The atoms chosen by forward selection; ``target`` is centered like the atoms.

        Each step adds the atom that explains most, net of its cost. The model with the smallest extended BIC is kept.
        """
        n_rows, n_atoms = self.values.shape
        price = np.log(n_rows) + 2 * EBIC * np.log(n_atoms)
        products, norms = self.values.T @ target, self.norms.copy()
        left = float(target @ target)
        chosen: list[int] = []
        directions: list[Floats] = []  # inner products of all atoms with each orthonormal direction
        best, n_best, total_price = n_rows * np.log(left / n_rows), 0, 0.0
        while len(chosen) < most and len(chosen) - n_best < PATIENCE:
            is_new = norms > LEAST_NORM * np.maximum(self.norms, 1e-12)
            gains = np.where(is_new, products**2 / np.maximum(norms, 1e-12) - self.cost * left / n_rows, -np.inf)
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
            value = n_rows * np.log(left / n_rows) + total_price
            if value < best:
                best, n_best = value, len(chosen)
        return chosen[:n_best]

    def residual(self, target: Floats, atoms: Ints) -> Floats:
        """The target minus its least-squares fit by these atoms."""
        if not len(atoms):
            return target
        chosen = self.values[:, atoms]
        return np.asarray(target - chosen @ np.linalg.lstsq(chosen, target, rcond=None)[0])
