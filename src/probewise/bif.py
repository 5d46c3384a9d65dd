"""BIF, best individual features: each feature is ranked by its criterion value alone."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import gen_batches

from ._probing import accepted_by, bind, criterion_or_default, map_for, prepare
from ._selector import Accepts, Selector
from .criteria import as_criterion
from .engine.probes import Subsets
from .engine.tally import rounded
from .validation.stores import ReadAhead, Stored

FEATURES_PER_BLOCK = 256  # scored by one worker at a time


@dataclass(eq=False, repr=False)
class BIF(Selector):
    """Ranks each feature by J({f}), the criterion on the feature alone (2011, eq. 2); the baseline of the papers.

    Parameters
    ----------
    n_features_to_select, criterion, cv, scoring, device, n_jobs
        As in `DAF`.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        J of each feature alone, to 12 digits.
    ranking_, support_
        As in `DAF`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from probewise import BIF
    >>> X, y = load_iris(return_X_y=True)
    >>> BIF(2).fit(X, y).ranking_.tolist()
    [3, 4, 2, 1]
    """

    n_features_to_select: Any = None
    _: KW_ONLY
    criterion: Any = "auto"
    cv: Any = 3
    scoring: Any = None
    device: str = "cpu"
    n_jobs: int | None = None

    def fit(self, X: Any, y: Any = None, *, groups: Any = None, sample_weight: Any = None) -> BIF:
        """Score every feature alone. ``groups`` goes to the splitter; ``sample_weight`` is as in `DAF.fit`."""
        criterion = as_criterion(self.criterion, X)
        data = prepare(self, criterion, X, y, groups=groups, sample_weight=sample_weight)
        blocks = gen_batches(data.shape[1], FEATURES_PER_BLOCK)
        if isinstance(data.matrix, Stored):
            stored = ReadAhead(data.matrix)
            data, blocks = replace(data, table=replace(data.table, matrix=stored)), stored.parts
        score = bind(criterion, data, cv=self.cv, scoring=self.scoring, device=self.device)
        single_features = (Subsets.of(np.arange(block.start, block.stop)[:, None]) for block in blocks)
        workers = map_for(criterion, data.matrix, score, self.n_jobs)
        self.fit_arguments_ = data.arguments
        self._rank_by(rounded(np.concatenate(list(workers(score, single_features)))))
        return self

    @property
    def _accepts(self) -> Accepts:
        return accepted_by(criterion_or_default(self.criterion), self.device)
