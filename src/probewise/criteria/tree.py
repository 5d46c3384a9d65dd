"""Cross-validated scores of scikit-learn's decision trees, for studies that compare by them."""

from __future__ import annotations

from typing import Any

from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from .base import Criterion, Target, require_few_classes
from .scorer import BoundScorer, Scorer
from .scoring import require_scoring


class Tree(Criterion):
    """Cross-validated score of a single decision tree: accuracy for classes, R^2 for numbers.

    Equal to ``cross_val_score`` of scikit-learn's ``DecisionTreeClassifier`` or ``DecisionTreeRegressor`` with
    ``random_state=0``. Of splits that are equally good the tree takes one at random, by this seed and the
    order of the subset's columns. X may hold NaN where scikit-learn's trees take it. Columns narrower
    than 1e-7 but not constant are refused: those trees would take them for constant. ``scoring`` of ``bind``, or of the
    selector, is "accuracy" for classes or "r2" for numbers if None, or any other that scikit-learn knows;
    ``sample_weight`` counts in the fit and in the score.

    Parameters
    ----------
    max_depth : int or None, default=None
        The deepest a tree may grow; None grows until leaves are pure, which fits noise too.
    min_samples_leaf : int, default=1
        Rows a leaf must keep; larger is smoother and faster.
    task : {"auto", "classification", "regression"}, default="auto"
        "auto" is regression if y is continuous, that is has fractions.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from probewise.criteria import Tree
    >>> from probewise.engine.probes import Subsets
    >>> X, y = load_iris(return_X_y=True)
    >>> Tree(max_depth=2).bind(X, y, cv=3)(Subsets.of([[0, 1], [3]])).round(3)
    array([0.687, 0.94 ])
    """

    block_size = Scorer.block_size
    prefer = Scorer.prefer
    streams = Scorer.streams
    widths = (1e-7, 1e38)  # scikit-learn's trees see float32, and in a narrower column no difference at all

    def __init__(self, *, max_depth: int | None = None, min_samples_leaf: int = 1, task: str = "auto") -> None:
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.task = task

    @property
    def allow_nan(self) -> bool:
        return Scorer(DecisionTreeClassifier()).allow_nan

    def bind(
        self, X: Any, y: Any, cv: Any = 3, *, groups: Any = None, scoring: Any = None, sample_weight: Any = None
    ) -> BoundScorer:
        target = Target.of(y, self.task)
        is_classification = target.is_classification
        remedy = "use KNN, or task='regression' if y is a quantity"
        require_few_classes(target.classes, "Tree, which counts all of them in every leaf,", remedy)
        tree = DecisionTreeClassifier if is_classification else DecisionTreeRegressor
        if scoring is None:
            scoring = "accuracy" if is_classification else "r2"
        require_scoring(scoring, target, criterion="Tree", estimator=f"{tree.__name__}()")
        estimator = tree(max_depth=self.max_depth, min_samples_leaf=self.min_samples_leaf, random_state=0)
        return Scorer(estimator).bind(X, y, cv, groups=groups, scoring=scoring, sample_weight=sample_weight)
