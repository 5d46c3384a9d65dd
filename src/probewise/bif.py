"""BIF, best individual features: every feature ranked by its criterion value alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import gen_batches

from ._selector import WrapperSelector
from .criteria import as_criterion
from .engine.probes import Subsets
from .validation.stores import ReadAhead, Stored

FEATURES_A_BLOCK = 256  # scored by one worker at a time


class BIF(WrapperSelector):
    """Ranks features by J({f}), the criterion on each feature alone: the papers' baseline.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Features to keep: a number, a share in (0, 1], or None for half. May be changed after ``fit``.
    criterion, cv, scoring, device
        As in `DAF`.
    n_jobs : int or None, default=None
        Workers; the result is the same for any number.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        J of each feature alone.
    ranking_, support_ : array of shape (n_features,)
        Ranks, 1 is best, ties to the lower column; and which features are selected.

    References
    ----------
    P. Somol, J. Grim, *Fast dependency-aware feature selection in very-high-dimensional pattern recognition
    problems*, research report 2295, UTIA, 2011, eq. 2.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from probewise import BIF
    >>> X, y = load_iris(return_X_y=True)
    >>> BIF(2).fit(X, y).ranking_.tolist()
    [3, 4, 2, 1]
    """

    def fit(self, X: Any, y: Any = None, *, groups: Any = None, sample_weight: Any = None) -> BIF:
        """Score every feature alone. ``groups`` goes to the splitter, ``sample_weight`` as in `DAF.fit`."""
        X, y = self._checked(X, y)
        criterion = as_criterion(self.criterion, X)
        X = ReadAhead(X) if isinstance(X, Stored) else X
        score = self._bound(criterion, X, y, groups, sample_weight)
        map = self._map(criterion, X, score)
        # Of a table in a store, columns that are read together.
        blocks = X.parts if isinstance(X, ReadAhead) else gen_batches(X.shape[1], FEATURES_A_BLOCK)
        alone = (np.arange(block.start, block.stop)[:, None] for block in blocks)
        self._keep(np.concatenate(list(map(score, (Subsets.of(features) for features in alone)))))
        return self
