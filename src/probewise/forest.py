"""`AdaptiveRandomForestClassifier`: a random forest for a small positive class and a large negative one."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.cluster import KMeans
from sklearn.ensemble import RandomForestClassifier
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted

from .validation.parameters import is_whole, random_of
from .validation.tables import require_finite, validated

MIN_RANGE = 1e-7  # scikit-learn's trees do not split a column with a smaller range
MAX_RANGE = {4: 1e18, 8: 1e38}  # by item size: trees use float32, and k-means squares the values


@dataclass(eq=False, repr=False)
class AdaptiveRandomForestClassifier(ClassifierMixin, BaseEstimator):
    """A random forest trained on all positive samples and on cluster centers of the negative samples.

    k-means clusters the negative samples. The classifier is meant for two classes of which one is much larger, as in
    relevance feedback (`probewise.feedback`). Clusters, unlike trees, depend on the scale of the columns: scale columns
    of different units first.

    Parameters
    ----------
    n_estimators : int, default=60
        Number of trees; in the paper, 60 trees are as good as 120 (fig. 3).
    n_clusters : int or None, default=None
        Number of clusters of the negative samples; more clusters keep more detail and take more time. None means the
        number of positive samples. With no more distinct negative samples than clusters, these samples are used.
    positive : label or None, default=None
        Label of the positive class. None means ``classes_[1]``, the larger label (1, or True).
    max_features, n_jobs
        As in `sklearn.ensemble.RandomForestClassifier`.
    random_state : int, RandomState or None, default=None
        Seed of the clusters and of the trees.

    Attributes
    ----------
    classes_ : array of shape (2,)
        The labels; ``positive_`` is the label of the positive class.
    centroids_ : array of shape (n_clusters, n_features)
        The cluster centers of the negative samples.
    forest_ : sklearn.ensemble.RandomForestClassifier
        The fitted forest.
    feature_importances_ : array of shape (n_features,)
        Impurity-based importances of the forest.

    References
    ----------
    Y. Wu, A. Zhang, *Feature selection for classifying high-dimensional numerical data*, CVPR 2004, sec. 2.3 and 5.3.
    The paper states neither the clustering method nor the number of clusters.

    Examples
    --------
    >>> import numpy as np
    >>> from probewise.forest import AdaptiveRandomForestClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((500, 10))
    >>> y = np.arange(500) < 20
    >>> AdaptiveRandomForestClassifier(random_state=0).fit(X, y).centroids_.shape
    (20, 10)
    """

    n_estimators: int = 60
    _: KW_ONLY
    n_clusters: int | None = None
    positive: Any = None
    max_features: Any = "sqrt"
    n_jobs: int | None = None
    random_state: Any = None

    def fit(self, X: Any, y: Any) -> AdaptiveRandomForestClassifier:
        """Cluster the negative samples and grow the forest."""
        X, y = validated(self, X, y, dtype=[np.float64, np.float32], ensure_all_finite=False)
        require_finite(X, getattr(self, "feature_names_in_", None), widths=(MIN_RANGE, MAX_RANGE[X.itemsize]))
        self.classes_ = _two_classes(y)
        self.positive_ = self._positive_label()
        is_positive = y == self.positive_
        n_clusters = int(is_positive.sum()) if self.n_clusters is None else self.n_clusters
        if not is_whole(n_clusters, 1):
            raise ValueError(f"n_clusters={n_clusters!r} must be a whole number of at least 1, or None")
        random = random_of(self.random_state)
        self.centroids_ = np.unique(X[~is_positive], axis=0)
        if len(self.centroids_) > n_clusters:
            self.centroids_ = KMeans(n_clusters, random_state=random).fit(X[~is_positive]).cluster_centers_
        negative = self.classes_[self.classes_ != self.positive_]
        rows = np.concatenate([X[is_positive], self.centroids_])
        labels = np.concatenate([y[is_positive], np.repeat(negative, len(self.centroids_))])
        options = {"max_features": self.max_features, "n_jobs": self.n_jobs, "random_state": random}
        self.forest_ = RandomForestClassifier(self.n_estimators, **options).fit(rows, labels)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """The more probable label of each sample; the smaller label if both are equally probable."""
        probabilities = self.predict_proba(X)
        return self.classes_[probabilities.argmax(axis=1)]

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of the two classes, in the order of ``classes_``: an array of shape (n_samples, 2)."""
        check_is_fitted(self, "forest_")
        options: dict[str, Any] = {"dtype": [np.float64, np.float32], "ensure_all_finite": False, "reset": False}
        X, _ = validated(self, X, with_target=False, **options)
        require_finite(X, getattr(self, "feature_names_in_", None), widths=(0.0, MAX_RANGE[8]))
        return self.forest_.predict_proba(X)

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Impurity-based importances of the forest; they sum to 1."""
        check_is_fitted(self, "forest_")
        return self.forest_.feature_importances_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _positive_label(self) -> Any:
        if self.positive is None:
            return self.classes_[1]
        matches = self.classes_[self.classes_ == self.positive]
        if len(matches) != 1:
            raise ValueError(f"positive={self.positive!r} must be one of the classes in y, {self.classes_.tolist()}")
        return matches[0]


def _two_classes(y: NDArray[Any]) -> NDArray[Any]:
    check_classification_targets(y)
    classes = np.unique(y)
    if len(classes) > 2:
        raise ValueError(
            f"Only binary classification is supported. The type of the target is {type_of_target(y)}: y has "
            f"{len(classes)} classes; make it one class against the rest"
        )
    if len(classes) < 2:
        raise ValueError(f"y contains only one class, {classes.tolist()[0]!r}: positive and negative rows are needed")
    return classes
