"""Held-out scores of models of covariates alone, of features alone, and of both."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression, RidgeCV

from ..criteria import Scorer
from ..criteria.base import Floats, Target
from ..criteria.columns import on_scaled_columns
from .covariates import Covariates
from .nested import CONVINCING, NestedScore
from .subsets import PENALTIES, SubsetScorer
from .survival import CoxModel


@dataclass(frozen=True, eq=False)
class AdjustedScores:
    """Scores of each fold of models of the covariates, of features ranked with ``adjust``, and of both."""

    measure: str
    covariates: Floats
    features: Floats
    both: Floats
    test_to_train: float

    def summary(self, name: str) -> tuple[float, float]:
        """Mean and standard error of "covariates", "features", "both", or "gain" (both minus covariates)."""
        scores = self.both - self.covariates if name == "gain" else getattr(self, name)
        # Folds share training rows (Nadeau and Bengio 2003).
        shared = np.sqrt(1 / len(scores) + self.test_to_train)
        return float(scores.mean()), float(scores.std(ddof=1) * shared)

    @property
    def adds(self) -> bool:
        """Whether features add to the covariates: the gain is above two standard errors."""
        gain, error = self.summary("gain")
        return gain > CONVINCING * error

    def __repr__(self) -> str:
        parts = (f"{name} {self.summary(name)[0]:.3g} ± {self.summary(name)[1]:.2g}" for name in NAMES)
        return f"AdjustedScores: {self.measure} of {', '.join(parts)} on held-out rows"


NAMES = ("covariates", "features", "both", "gain")


def adjusted_scores(score: NestedScore, X: Any, y: NDArray[Any], target: Target, adjust: Any) -> AdjustedScores:
    """Compare models of covariates, of features and of both on the folds of a nested score.

    Parameters
    ----------
    score : NestedScore
        The result of `nested_score` with ``adjust``. Its features are used: each fold has ranked its training rows.
    X : {array, sparse matrix} of shape (n_samples, n_columns)
        The matrix that the criterion sees.
    y : array of shape (n_samples,)
    target : Target
    adjust : array or data frame
        The covariates.

    Returns
    -------
    AdjustedScores
        All models are linear (ridge, logistic or Cox) on scaled columns. Each fold uses the number of features that is
        best in the other folds; a model of both may use no feature.
    """
    values = Covariates.of(adjust, len(y)).values
    X = sp.hstack([X, sp.csc_matrix(values)], format="csc") if sp.issparse(X) else np.hstack([X, values])
    extra = np.arange(X.shape[1] - values.shape[1], X.shape[1])
    scorer, features, both = _scorer(target), [], []
    for split, subsets in score.curve.chosen:
        alone = scorer.scores(X, y, split, list(subsets))
        together = scorer.scores(X, y, split, [extra, *(np.append(subset, extra) for subset in subsets)])
        features.append(alone)
        both.append(together)
    sizes = np.append(0, score.curve.sizes)  # size 0 are the covariates alone
    curve = replace(score.curve, guess=None)
    return AdjustedScores(
        scorer.measure(target),
        np.array(both)[:, 0],
        replace(score, curve=replace(curve, scores=np.array(features))).scores,
        replace(score, curve=replace(curve, sizes=sizes, scores=np.array(both))).scores,
        curve.test_to_train,
    )


def _scorer(target: Target) -> SubsetScorer:
    if target.survival is not None:
        return SubsetScorer(CoxModel(), "a Cox model with a ridge penalty", "concordance")
    logistic = LogisticRegression(C=0.1, class_weight="balanced", max_iter=2000)
    model = on_scaled_columns(logistic if target.is_classification else RidgeCV(PENALTIES))
    scoring = "roc_auc" if target.n_classes == 2 else None
    return SubsetScorer(Scorer(model), "a linear model on scaled columns", scoring)
