"""Data sets: generated ones whose informative features are known, and real ones from .npz files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .validation.errors import ParameterError
from .validation.parameters import random_of
from .validation.survival import Survival

FOLDER_VARIABLE = "PROBEWISE_DATA"
FLIPPED = 0.01  # share of wrong labels in generated data
SPARSE_PARTS = ("data", "indices", "indptr", "shape")


@dataclass(frozen=True)
class KnownTruth:
    """A generated table whose informative columns are known."""

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
    random_state: Any = None,
) -> KnownTruth:
    """Generate two classes that only several features together separate, among many columns of noise.

    Gaussian clusters, each transformed by a random linear map, are centered on the vertices of a cube in
    ``n_dimensions`` dimensions, and each vertex is assigned to one of the two classes at random. The informative
    features are the coordinates and ``n_combinations`` random linear combinations of them; the others are standard
    normal noise. 1% of the labels are flipped, and the columns are shuffled.

    scikit-learn's ``make_classification`` assigns the vertices in index order, so that a single column nearly
    separates the classes; here no single column does.

    Parameters
    ----------
    n_samples, n_features : int, default=1000, 500
        Size of the table.
    n_dimensions : int, default=5
        Number of dimensions of the cube.
    n_combinations : int, default=15
        Number of linear combinations of the coordinates.
    random_state : int, RandomState instance or None, default=None
        Seed; an int gives the same data every time.

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
        raise ValueError(f"n_features={n_features} must be at least the {n_informative} informative features")
    random = random_of(random_state)
    n_clusters = 2**n_dimensions
    vertices = 2.0 * ((np.arange(n_clusters)[:, None] >> np.arange(n_dimensions)) & 1) - 1.0
    vertex_labels = random.permutation(np.arange(n_clusters) % 2)
    cluster = random.permutation(np.arange(n_samples) % n_clusters)

    cube = random.standard_normal((n_samples, n_dimensions))
    for vertex in range(n_clusters):
        linear_map = random.uniform(-1, 1, (n_dimensions, n_dimensions))
        members = cluster == vertex
        cube[members] = cube[members] @ linear_map + vertices[vertex]
    combinations = cube @ random.uniform(-1, 1, (n_dimensions, n_combinations))
    noise = random.standard_normal((n_samples, n_features - n_informative))

    y = vertex_labels[cluster]
    y = np.where(random.uniform(size=n_samples) < FLIPPED, 1 - y, y)
    order = random.permutation(n_features)
    X = np.empty((n_samples, n_features), dtype=np.float32)
    X[:, order] = np.hstack([cube, combinations, noise])
    names = [f"f{column:0{len(str(n_features - 1))}d}" for column in range(n_features)]
    return KnownTruth(X, y.astype(np.int64), np.sort(order[:n_informative]), names)


@dataclass(frozen=True, eq=False)
class Dataset:
    """A real data set."""

    name: str
    X: Any
    y: NDArray[Any]
    train_index: NDArray[np.int64] | None = None  # the official split, if there is one
    test_index: NDArray[np.int64] | None = None
    more: Mapping[str, NDArray[Any]] = field(default_factory=dict)  # the other arrays of the file


def load(name: str, folder: str | PathLike[str] | None = None) -> Dataset:
    """Load a data set from ``name.npz`` in a folder.

    The file contains the arrays ``X`` and ``y``; a sparse table has ``data``, ``indices``, ``indptr`` and ``shape``
    instead of ``X``, and a survival outcome ``time`` and ``event`` instead of ``y``. An official split is in
    ``train_index`` and ``test_index``. None is the folder in the environment variable PROBEWISE_DATA.
    """
    folder = folder or os.environ.get(FOLDER_VARIABLE)
    path = None if folder is None else Path(folder) / f"{name}.npz"
    if path is not None and path.is_file():
        return _from_file(name, path)
    reason = "no folder was given" if path is None else f"there is no file {path}"
    raise ParameterError(
        f"the data set {name} cannot be loaded, {reason}: pass the folder that contains {name}.npz, or set the "
        f"environment variable {FOLDER_VARIABLE} to it"
    )


def _from_file(name: str, path: Path) -> Dataset:
    with np.load(path, allow_pickle=False) as file:
        arrays = dict(file)
    if all(part in arrays for part in SPARSE_PARTS):
        data, indices, indptr, shape = (arrays.pop(part) for part in SPARSE_PARTS)
        arrays["X"] = sp.csr_matrix((data, indices, indptr), shape=tuple(shape))
    if "y" not in arrays and {"time", "event"} <= set(arrays):
        arrays["y"] = Survival(arrays["event"].astype(bool), arrays["time"]).array
    if "X" not in arrays or "y" not in arrays:
        raise ValueError(f"{path} contains {', '.join(arrays)}: a data set needs X and y")
    fields = {key: arrays.pop(key, None) for key in ("X", "y", "train_index", "test_index")}
    return Dataset(name, **fields, more=arrays)
