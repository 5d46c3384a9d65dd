"""Data with known truth: Madelon's recipe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state


@dataclass(frozen=True)
class KnownTruth:
    """A table whose informative columns are known."""

    X: NDArray[np.float32]
    y: NDArray[np.int64]
    informative: NDArray[np.int64]
    feature_names: list[str]


def make_madelon(
    n_samples: int = 1000,
    n_features: int = 500,
    *,
    n_dimensions: int = 5,
    n_combinations: int = 15,
    flip: float = 0.01,
    random_state: Any = None,
) -> KnownTruth:
    """Two classes that only several features together can tell apart, among many columns of noise.

    Gaussian clusters, each stretched by its own random linear map, sit on the vertices of a cube in
    ``n_dimensions`` dimensions; the vertices are dealt to the two classes at random. ``n_combinations`` random
    linear combinations of these columns are added, then standard normal noise up to ``n_features``; a share
    ``flip`` of the labels is turned over and the columns are shuffled.

    scikit-learn's ``make_classification`` deals the vertices in index order, so that one column alone
    nearly separates the classes; here none does.

    References
    ----------
    I. Guyon, *Design of experiments of the NIPS 2003 variable selection benchmark*, 2003.

    Examples
    --------
    >>> from probewise.datasets import make_madelon
    >>> data = make_madelon(random_state=0)
    >>> data.X.shape, len(data.informative)
    ((1000, 500), 20)
    """
    n_informative = n_dimensions + n_combinations
    if n_features < n_informative:
        raise ValueError(f"n_features={n_features} must be at least {n_informative}, the informative ones")
    random = check_random_state(random_state)
    n_clusters = 2**n_dimensions
    vertices = 2.0 * ((np.arange(n_clusters)[:, None] >> np.arange(n_dimensions)) & 1) - 1.0
    labels_of_vertices = random.permutation(np.arange(n_clusters) % 2)
    cluster = random.permutation(np.arange(n_samples) % n_clusters)

    cube = random.standard_normal((n_samples, n_dimensions))
    for vertex in range(n_clusters):
        stretch = random.uniform(-1, 1, (n_dimensions, n_dimensions))
        members = cluster == vertex
        cube[members] = cube[members] @ stretch + vertices[vertex]
    combined = cube @ random.uniform(-1, 1, (n_dimensions, n_combinations))
    noise = random.standard_normal((n_samples, n_features - n_informative))

    y = labels_of_vertices[cluster]
    y = np.where(random.uniform(size=n_samples) < flip, 1 - y, y)
    place = random.permutation(n_features)
    X = np.empty((n_samples, n_features), dtype=np.float32)
    X[:, place] = np.hstack([cube, combined, noise])
    digits = len(str(n_features - 1))
    names = [f"f{column:0{digits}d}" for column in range(n_features)]
    return KnownTruth(X, y.astype(np.int64), np.sort(place[:n_informative]), names)
