"""Generated data whose informative features are known, and real data from .npz files or OpenML."""

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

FOLDER_VARIABLE = "PROBEWISE_DATA"
SPARSE = ("data", "indices", "indptr", "shape")
MFEAT = ("fourier", "factors", "karhunen", "pixel", "zernike", "morphological")
# What each set is made of there: names of parts that are put side by side, all of version 1.
OPENML = {
    "authorship": ("analcatdata_authorship",),
    "iris": ("iris",),
    "madelon": ("madelon",),
    "mfeat": tuple(f"mfeat-{view}" for view in MFEAT),
    "satimage": ("satimage",),
    "spambase": ("spambase",),
    "spectrometer": ("spectrometer",),
    "wine": ("wine",),
}


@dataclass(frozen=True)
class KnownTruth:
    """A generated table whose informative columns are known.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
    informative : ndarray of int
        The informative columns.
    feature_names : list of str
    """

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
    """Two classes that only several features together separate, among many columns of noise.

    Gaussian clusters, each stretched by its own random linear map, sit on the vertices of a cube in
    ``n_dimensions`` dimensions; the vertices are dealt to the two classes at random. ``n_combinations`` random
    linear combinations of these columns are added, then standard normal noise up to ``n_features``; a share
    ``flip`` of the labels is turned over and the columns are shuffled.

    scikit-learn's ``make_classification`` deals the vertices in index order, so that one column alone
    nearly separates the classes; here none does.

    Parameters
    ----------
    n_samples, n_features : int, default=1000, 500
        Size of the table.
    n_dimensions : int, default=5
        Number of dimensions of the cube.
    n_combinations : int, default=15
        Number of linear combinations of them.
    flip : float, default=0.01
        Share of wrong labels.
    random_state : int, RandomState instance or None, default=None
        An int for the same data each time.

    Returns
    -------
    KnownTruth

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
    random = random_of(random_state)
    n_clusters = 2**n_dimensions
    vertices = 2.0 * ((np.arange(n_clusters)[:, None] >> np.arange(n_dimensions)) & 1) - 1.0
    labels_of_vertices = random.permutation(np.arange(n_clusters) % 2)
    cluster = random.permutation(np.arange(n_samples) % n_clusters)

    cube = random.standard_normal((n_samples, n_dimensions))
    for vertex in range(n_clusters):
        linear_map = random.uniform(-1, 1, (n_dimensions, n_dimensions))
        members = cluster == vertex
        cube[members] = cube[members] @ linear_map + vertices[vertex]
    combined = cube @ random.uniform(-1, 1, (n_dimensions, n_combinations))
    noise = random.standard_normal((n_samples, n_features - n_informative))

    y = labels_of_vertices[cluster]
    y = np.where(random.uniform(size=n_samples) < flip, 1 - y, y)
    place = random.permutation(n_features)
    X = np.empty((n_samples, n_features), dtype=np.float32)
    X[:, place] = np.hstack([cube, combined, noise])
    return KnownTruth(X, y.astype(np.int64), np.sort(place[:n_informative]), _numbered(n_features))


def _numbered(n_features: int) -> list[str]:
    digits = len(str(n_features - 1))
    return [f"f{column:0{digits}d}" for column in range(n_features)]


def make_xor(
    n_samples: int = 1000,
    n_features: int = 500,
    *,
    n_pairs: int = 1,
    spread: float = 0.3,
    random_state: Any = None,
) -> KnownTruth:
    """Two classes that depend on pairs of features, each useless alone, among columns of noise.

    The two features of a pair are -1 or 1, by the toss of a coin, plus normal noise, scaled to variance 1. A pair
    votes for the first class where the two have the same sign, and the class is the vote of most pairs. All other
    columns are standard normal; the columns are shuffled.

    Parameters
    ----------
    n_samples, n_features : int, default=1000, 500
        Size of the table.
    n_pairs : int, default=1
        Number of pairs, which must be odd.
    spread : float, default=0.3
        Standard deviation of the noise of the pairs.
    random_state : int, RandomState instance or None, default=None
        An int for the same data each time.

    Returns
    -------
    KnownTruth
        ``informative`` lists the columns pair by pair.

    Examples
    --------
    >>> from probewise.datasets import make_xor
    >>> data = make_xor(n_pairs=3, random_state=0)
    >>> data.X.shape, len(data.informative)
    ((1000, 500), 6)
    """
    if n_pairs < 1 or n_pairs % 2 == 0:
        raise ValueError(f"n_pairs={n_pairs} must be odd, so that the vote of the pairs is never a draw")
    if n_features < 2 * n_pairs:
        raise ValueError(f"n_features={n_features} must be at least {2 * n_pairs}, the informative ones")
    random = random_of(random_state)
    signs = 2.0 * random.randint(0, 2, (n_samples, 2 * n_pairs)) - 1.0
    X = random.standard_normal((n_samples, n_features)).astype(np.float32)
    place = random.permutation(n_features)[: 2 * n_pairs]
    X[:, place] = (signs + spread * X[:, place]) / np.sqrt(1 + spread**2)
    y = (signs[:, ::2] * signs[:, 1::2]).sum(axis=1) > 0
    return KnownTruth(X, y.astype(np.int64), place.astype(np.int64), _numbered(n_features))


@dataclass(frozen=True, eq=False)
class Dataset:
    """A real table.

    Attributes
    ----------
    name : str
    X : {ndarray, sparse matrix} of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
    train_index, test_index : ndarray of int or None
        The official split, if there is one.
    more : dict of str to ndarray
        Whatever else the file holds.
    """

    name: str
    X: Any
    y: NDArray[Any]
    train_index: NDArray[np.int64] | None = None
    test_index: NDArray[np.int64] | None = None
    more: Mapping[str, NDArray[Any]] = field(default_factory=dict)


def load(name: str, folder: str | PathLike[str] | None = None, *, openml: bool = False) -> Dataset:
    """The data set of that name, from ``name.npz`` in a folder.

    The file holds arrays ``X`` and ``y``, or, for a sparse table, ``data``, ``indices``, ``indptr`` and ``shape`` in
    place of ``X``; ``train_index`` and ``test_index`` if there is an official split.

    Parameters
    ----------
    name : str
        Of the file, without its ending.
    folder : path-like, default=None
        Where it is; None: the folder named by the environment variable PROBEWISE_DATA.
    openml : bool, default=False
        Fetch a set that is not in the folder from OpenML (`sklearn.datasets.fetch_openml`), if it is one of `OPENML`.
        Its numeric columns are taken, in its order of rows, without an official split.

    Returns
    -------
    Dataset
    """
    folder = folder or os.environ.get(FOLDER_VARIABLE)
    path = None if folder is None else Path(folder) / f"{name}.npz"
    if path is not None and path.is_file():
        return _from_file(name, path)
    if openml and name in OPENML:
        return _from_openml(name)
    missing = "no folder of data was given" if path is None else f"there is no file {path}"
    fetch = ", or have it fetched (openml=True)" if name in OPENML and not openml else ""
    raise ParameterError(
        f"the data set {name} is not at hand, {missing}: pass the folder that holds {name}.npz, or set the environment "
        f"variable {FOLDER_VARIABLE} to it{fetch}"
    )


def _from_file(name: str, path: Path) -> Dataset:
    with np.load(path, allow_pickle=False) as file:
        arrays = dict(file)
    if all(part in arrays for part in SPARSE):
        data, indices, indptr, shape = (arrays.pop(part) for part in SPARSE)
        arrays["X"] = sp.csr_matrix((data, indices, indptr), shape=tuple(shape))
    if "X" not in arrays or "y" not in arrays:
        raise ValueError(f"{path} holds {', '.join(arrays)}: a data set needs X and y")
    known = {key: arrays.pop(key, None) for key in ("X", "y", "train_index", "test_index")}
    return Dataset(name, **known, more=arrays)


def _from_openml(name: str) -> Dataset:
    from sklearn.datasets import fetch_openml

    parts = [fetch_openml(part, version=1, as_frame=False) for part in OPENML[name]]
    tables = []
    for part in parts:
        numeric = [place for place, column in enumerate(part.feature_names) if column not in (part.categories or {})]
        tables.append(np.asarray(part.data)[:, numeric].astype(np.float64))
    return Dataset(name, np.hstack(tables), np.asarray(parts[0].target))
