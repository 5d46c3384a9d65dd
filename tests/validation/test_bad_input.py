"""Odd and bad input to every estimator: the right result, or an error that says what is wrong.

Odd input has a plain equivalent and must give the same result. Bad input must be refused with a clear message. In both
cases the input must not be changed. ``conftest.py`` prints the number of cases.
"""

import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.exceptions import DataConversionWarning
from sklearn.neighbors import KNeighborsClassifier

from probewise import BIF, CFS, CMIM, DAF, DFE, EFS, FCBF, FSDD, JMI, MRMR, SFFS, ReliefF, Tournament
from probewise.criteria import KNN, Linear, NaiveBayes, Separability
from probewise.discretize import Discretizer
from probewise.engine.probes import Subsets
from probewise.forest import AdaptiveRandomForestClassifier
from probewise.stopping import MaxProbes
from probewise.study import Study
from sampling import covering

N = 24
Y = np.arange(N) % 2
NAMES = ["a", "b", "c", "d"]


def table():
    """Small whole numbers, which every numeric type can hold; the second and fourth column are informative."""
    X = np.random.default_rng(0).integers(-9, 10, (N, 4))
    X[:, 1] += 4 * Y
    X[:, 3] += 6 * Y
    return X.astype(np.float64)


X = table()
X.flags.writeable = False
SHIFTED = X + 20
SIGNS = np.where(X > 0, 1.0, 0.0)


# ---- the estimators


def difference_of_sums(X, y):
    return abs(X[:, [0]].astype(np.float64).sum() - X[:, [-1]].astype(np.float64).sum())


def daf(criterion, probes=20):
    stop = MaxProbes(probes)
    return lambda **options: DAF(
        missing=None, criterion=criterion, stop=stop, check_every=10, max_probe_size=3, random_state=0, **options
    )


ESTIMATORS = {
    "DAF-knn": daf("knn"),
    "DAF-linear": daf("linear"),
    "DAF-naive_bayes": daf("naive_bayes"),
    "DAF-separability": daf("separability"),
    "DAF-svm": daf("svm"),
    "DAF-tree": daf("tree", 1),
    "DAF-estimator": daf(KNeighborsClassifier(1), 1),
    "DAF-function": daf(difference_of_sums),
    "BIF": lambda: BIF(criterion="knn"),
    "SFFS": lambda: SFFS(2, criterion="linear"),
    "EFS": EFS,
    "DFE": DFE,
    "CFS": CFS,
    "FCBF": FCBF,
    "FSDD": FSDD,
    "ReliefF": ReliefF,
    "MRMR": MRMR,
    "JMI": JMI,
    "CMIM": CMIM,
    "Discretizer": Discretizer,
    "AdaptiveRandomForestClassifier": lambda: AdaptiveRandomForestClassifier(2, random_state=0),
    "Study": lambda: Study(
        {"fsdd": FSDD()}, {"1-nn": KNeighborsClassifier(1)}, trials=1, sizes=[1, 2], test_size=0.25, random_state=0
    ),
}
FOREST = "AdaptiveRandomForestClassifier"
CODED = {"EFS", "DFE", "CFS", "FCBF", "MRMR", "JMI", "CMIM"}
BY_ORDER = {"EFS", "DFE", "CFS", "FCBF", "Discretizer"}  # these use the order of values only
WITH_DISCRETE = CODED | {"ReliefF", "Discretizer"}
WITH_CATEGORIES = {name for name in ESTIMATORS if name.startswith("DAF")}
FOR_NUMBERS = {"DAF-knn", "DAF-linear", "DAF-svm", "DAF-tree", "DAF-function", "BIF", "SFFS", "ReliefF"}
FOR_SEVERAL_TARGETS = {"DAF-knn", "DAF-linear", "BIF", "SFFS"}
FILTERS = CODED | {"FSDD", "ReliefF"}


def answer(name, X, y, options=None):
    """All results of an estimator, as arrays."""
    estimator = ESTIMATORS[name]()
    if name == "Study":
        result = estimator.compare(X, y)
        return [result.accuracy, *result.subsets("fsdd", 1), *result.subsets("fsdd", 2)]
    if options and name in WITH_DISCRETE:
        estimator.set_params(**options)
    if options and name in WITH_CATEGORIES and isinstance(options["discrete_features"], list):
        estimator.set_params(categorical_features=options["discrete_features"])
    estimator.fit(X, y)
    if name == "Discretizer":
        return [np.diff(estimator.cut_points_.offsets), estimator.transform(X)]
    if name == FOREST:
        return [estimator.feature_importances_, estimator.predict_proba(X)]
    found = [estimator.scores_, estimator.ranking_]
    return [*found, estimator.run_.ledger.values()] if name.startswith("DAF") else found


def content(data):
    """Every byte of the input, to check that it was not changed."""
    if sp.issparse(data) and data.format in ("csr", "csc", "bsr"):
        return [part.tobytes() for part in (data.data, data.indices, data.indptr)]
    if sp.issparse(data):
        parts = data.tocoo()
        return [part.tobytes() for part in (parts.data, *parts.coords)]
    if isinstance(data, np.ndarray) and data.dtype != object:
        return [data.dtype, data.shape, data.strides, data.flags.writeable, data.tobytes()]
    if isinstance(data, pd.DataFrame | pd.Series):
        return [repr(data.to_numpy().tolist()), str(data.dtypes)]
    return repr(data.to_dict(as_series=False)) if isinstance(data, pl.DataFrame) else repr(data)


# ---- odd input


@dataclass(frozen=True)
class Odd:
    """Odd input, its plain equivalent, and the options with which both give the same result."""

    name: str
    make: Callable
    plain: Callable = lambda: (X, Y)
    options: dict = field(default_factory=dict)
    warns: type[Warning] | None = None
    refused: dict = field(default_factory=dict)
    only: set = field(default_factory=lambda: set(ESTIMATORS))

    def outcome(self, name):
        return self.refused.get(name)


def locked(array):
    array = array.copy()
    array.flags.writeable = False
    return array


def with_gaps(array, fill):
    """Every second row and third column of a larger array."""
    larger = np.full((2 * array.shape[0], 3 * array.shape[1]), fill, dtype=array.dtype)
    larger[::2, ::3] = array
    return larger[::2, ::3]


def frame(values=X, **columns):
    return pd.DataFrame(values, columns=NAMES).assign(**columns)


def stored_twice(kind):
    """A sparse matrix with each cell stored as two halves."""
    whole = kind(X)
    return kind((np.repeat(whole.data / 2, 2), np.repeat(whole.indices, 2), 2 * whole.indptr), shape=X.shape)


def unsorted(kind):
    matrix = kind(X)
    for start, stop in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True):
        for part in (matrix.indices, matrix.data):
            part[start:stop] = part[start:stop][::-1].copy()
    return kind((matrix.data, matrix.indices, matrix.indptr), shape=X.shape)


def with_stored_zeros(kind):
    matrix = kind(np.ones(X.shape))
    matrix.data[:] = (X if matrix.format == "csr" else X.T).ravel()
    return matrix


def with_long_indices(kind):
    matrix = kind(X)
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    return matrix


SPARSE_REFUSED = {FOREST: "Sparse data was passed for X, but dense data is required. Use '.toarray"}
SOME_ROWS = X * (np.arange(N) % 3 > 0)[:, None]
LABELS = np.array(["no", "yes"])

LAYOUTS = [
    Odd("read-only", lambda: (locked(X), locked(Y))),
    Odd("Fortran order", lambda: (np.asfortranarray(X), Y)),
    Odd("negative strides", lambda: (X[::-1, ::-1].copy()[::-1, ::-1], Y[::-1].copy()[::-1])),
    Odd("gaps between cells", lambda: (with_gaps(X, np.nan), np.repeat(Y, 2)[::2])),
    Odd("a list of lists", lambda: (X.tolist(), Y.tolist())),
    Odd("no masked cell", lambda: (np.ma.masked_array(X, np.zeros(X.shape, bool)), np.ma.masked_array(Y))),
    Odd("the other byte order", lambda: (X.astype(X.dtype.newbyteorder()), Y.astype(Y.dtype.newbyteorder()))),
    Odd("memory of a larger array", lambda: (np.c_[X, X][:, :4], Y)),
]
TYPES = [
    *(
        Odd(kind, lambda kind=kind: (X.astype(kind), Y))
        for kind in ("int8", "int32", "float16", "float32", "longdouble")
    ),
    *(Odd(kind, lambda kind=kind: (SHIFTED.astype(kind), Y), lambda: (SHIFTED, Y)) for kind in ("uint8", "uint64")),
    Odd("objects that are numbers", lambda: (X.astype(object), Y)),
    Odd("booleans", lambda: (SIGNS == 1, Y), lambda: (SIGNS, Y), {"discrete_features": True}),
    Odd(
        "int64 at its ends",
        lambda: (np.where(X > 0, 2**63 - 1, -(2**63)), Y),
        lambda: (np.where(X > 0, 2.0**63, -(2.0**63)), Y),
    ),
    Odd("uint64 beyond int64", lambda: (SHIFTED.astype(np.uint64) * 2**58, Y), lambda: (SHIFTED * 2.0**58, Y)),
    Odd("negative zeros", lambda: (np.where(X == 0, -0.0, X), Y)),
    Odd("values next to each other", lambda: (1 + (X + 20) * 2.0**-52, Y), lambda: (X, Y), only=BY_ORDER | {"ReliefF"}),
]
FRAMES = [
    Odd("a pandas frame", lambda: (frame(), pd.Series(Y))),
    Odd("a pandas frame of nullable integers", lambda: (frame().astype("Int64"), pd.Series(Y, dtype="Int64"))),
    Odd("a pandas frame of objects", lambda: (frame().astype(object), pd.Series(Y).astype("category"))),
    Odd("a pandas frame of mixed types", lambda: (frame().astype({"a": "int8", "b": "float32", "c": "int64"}), Y)),
    Odd("a pandas frame with numbers as text", lambda: (frame().astype({"b": str}), Y)),
    Odd(
        "a pandas frame with a category",
        lambda: (frame(b=SIGNS[:, 1]).astype({"b": "category"}), Y),
        lambda: (np.c_[X[:, 0], SIGNS[:, 1], X[:, 2:]], Y),
        {"discrete_features": [1]},
    ),
    Odd("a pandas frame of booleans", lambda: (frame(SIGNS == 1), Y), lambda: (SIGNS, Y), {"discrete_features": True}),
    Odd(
        "a sparse pandas frame",
        lambda: (pd.DataFrame.sparse.from_spmatrix(sp.csr_matrix(X), columns=NAMES), Y),
        refused=SPARSE_REFUSED,
    ),
    Odd("a polars frame", lambda: (pl.DataFrame(X, schema=NAMES), pl.Series(Y))),
]
LABEL_KINDS = [
    Odd("labels as text", lambda: (X, LABELS[Y])),
    Odd("labels as objects", lambda: (X, LABELS[Y].astype(object))),
    Odd("labels as booleans", lambda: (X, Y == 1)),
    Odd("labels as whole floats", lambda: (X, Y.astype(np.float32))),
    Odd("labels at the ends of int8", lambda: (X, np.where(Y, 127, -128).astype(np.int8))),
    Odd("labels at the end of uint64", lambda: (X, np.where(Y, 2**64 - 1, 0).astype(np.uint64))),
    Odd("labels far apart", lambda: (X, np.where(Y, 2**62, -(2**62)))),
    Odd("labels as dates", lambda: (X, Y.astype("datetime64[D]")), only=set(ESTIMATORS) - {FOREST}),
    Odd("labels as a pandas series of text", lambda: (X, pd.Series(LABELS[Y]))),
    Odd("labels as a column", lambda: (X, Y[:, None]), warns=DataConversionWarning),
]
SPARSE = [
    Odd(f"{name} {kind.__name__}", lambda make=make, kind=kind: (make(kind), Y), refused=SPARSE_REFUSED)
    for kind in (sp.csr_matrix, sp.csc_matrix)
    for name, make in {
        "stored zeros in a": with_stored_zeros,
        "unsorted": unsorted,
        "cells stored in parts of a": stored_twice,
        "long indices of a": with_long_indices,
        "read-only": lambda kind: kind(
            (locked(kind(X).data), locked(kind(X).indices), locked(kind(X).indptr)), X.shape
        ),
    }.items()
] + [
    *(
        Odd(f"a {kind}", lambda kind=kind: (getattr(sp, kind)(X), Y), refused=SPARSE_REFUSED)
        for kind in ("csr_array", "coo_matrix", "lil_matrix", "dok_matrix", "bsr_matrix", "dia_array")
    ),
    Odd("empty rows", lambda: (sp.csr_matrix(SOME_ROWS), Y), lambda: (SOME_ROWS, Y), refused=SPARSE_REFUSED),
    Odd("int8, sparse", lambda: (sp.csc_matrix(X.astype(np.int8)), Y), refused=SPARSE_REFUSED),
    Odd("long double, sparse", lambda: (sp.csr_matrix(X.astype(np.longdouble)), Y), refused=SPARSE_REFUSED),
]
ODD = [*LAYOUTS, *TYPES, *FRAMES, *LABEL_KINDS, *SPARSE]


def over(kinds, times):
    """Parametrize a test by estimators and kinds of input, grouped by kind so that kernels are compiled once.

    A sample that covers every outcome of each kind ``times`` times runs always; the rest is marked as exhaustive.
    """
    pairs = [(name, kind) for kind in kinds for name in ESTIMATORS if name in kind.only]
    sample = covering([(name, (kind.name, kind.outcome(name))) for name, kind in pairs], times=times)
    return pytest.mark.parametrize(
        ("name", "kind"),
        [
            pytest.param(*pair, id=f"{pair[0]}-{pair[1].name}", marks=[] if i in sample else pytest.mark.exhaustive)
            for i, pair in enumerate(pairs)
        ],
    )


@over(ODD, times=1)  # kernels are compiled for most of them
def test_odd_input_gives_the_result_of_plain_input(name, kind):
    data, labels = kind.make()
    before = content(data), content(labels)
    if refusal := kind.outcome(name):
        with pytest.raises((ValueError, TypeError), match=refusal):
            answer(name, data, labels)
    else:
        with pytest.warns(kind.warns) if kind.warns else nullcontext():
            found = answer(name, data, labels)
        for mine, plain in zip(found, answer(name, *kind.plain(), kind.options), strict=True):
            np.testing.assert_allclose(mine, plain, rtol=1e-9, atol=1e-12)
    assert (content(data), content(labels)) == before


# ---- bad input


@dataclass(frozen=True)
class Bad:
    """Bad input and its error message; ``but`` has other messages of some estimators, or None if they accept it."""

    name: str
    make: Callable
    message: str
    but: dict = field(default_factory=dict)
    only: set = field(default_factory=lambda: set(ESTIMATORS))

    def outcome(self, name):
        return self.but.get(name, self.message)


def but(message, *names):
    return dict.fromkeys(chain(*([name] if isinstance(name, str) else name for name in names)), message)


def with_cell(value, dtype=np.float64):
    data = X.astype(dtype)
    data[3, 2] = value
    return data


def damaged(kind, part, place, value):
    matrix = kind(X + 1)
    getattr(matrix, part)[place] = value
    return matrix


def times(factor, column=None):
    data = X.copy()
    data[:, column] *= factor
    return data


def matrix_of_numpy():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        return np.matrix(X)


def masked(array, cell):
    return np.ma.masked_array(array, np.arange(array.size).reshape(array.shape) == cell)


CORRELATED = ("MRMR", "CFS", "FCBF")  # filters that use correlations with a numeric target
NUMBERS_ARE_ANSWERED = but(None, FOR_NUMBERS, "DAF-function", *CORRELATED)
COMPLEX = "Complex data not supported: {} is complex128; give real numbers, such as {}.real"
NOT_FINITE = (
    r"X contains (NaN or )?infinity in 1 of 4 columns \({}\): (fill missing values inside .*, or )?impute or leave out"
)
J_FAILED = r"the criterion failed on probe \d+ .*J is {}"
SHAPES = [
    Bad("one dimension", lambda: (X[:, 0], Y), "Expected 2D array, got 1D array instead"),
    Bad("three dimensions", lambda: (X[:, :, None], Y), "Found array with dim 3, while dim <= 2 is required"),
    Bad("a number", lambda: (np.float64(3), Y), "Expected 2D array, got scalar array instead"),
    Bad("no rows", lambda: (X[:0], Y[:0]), r"Found array with 0 sample\(s\) \(shape=\(0, 4\)\)"),
    Bad("no columns", lambda: (X[:, :0], Y), r"Found array with 0 feature\(s\) \(shape=\(24, 0\)\)"),
    Bad("an empty pandas frame", lambda: (pd.DataFrame(), Y), r"0 sample\(s\) .*: X is an empty frame"),
    Bad("a frame without columns", lambda: (frame()[[]], Y), r"0 feature\(s\) .*: X is an empty frame"),
    Bad("rows of unequal length", lambda: ([*X.tolist()[:-1], [1.0]], Y), "rows of X differ in length, from 1 to 4"),
    Bad("a label too few", lambda: (X, Y[1:]), r"inconsistent numbers of samples: \[24, 23\]"),
    Bad(
        "two columns of labels",
        lambda: (X, np.c_[Y, Y]),
        r"shape \(24, 2\).*give one column at a time",
        but(None, FOR_SEVERAL_TARGETS),
    ),
    Bad(
        "a frame of labels",
        lambda: (X, pd.DataFrame({"a": Y, "b": Y})),
        r"y has 2 columns.*one column at a time",
        but(None, FOR_SEVERAL_TARGETS),
    ),
    Bad("one label for all", lambda: (X, np.int64(1)), r"y should be a 1d array, got an array of shape \(\)"),
    Bad(
        "no labels",
        lambda: (X, None),
        "requires y to be passed, but the target y is None|y is None: a study",
        but(None, "DAF-function"),
    ),
    Bad("one row", lambda: (X[:1], Y[:1]), "only one class|holds one class only", but(None, "DAF-function")),
]
KINDS = [
    Bad(
        "text",
        lambda: (X.astype(str), Y),
        "arrays of bytes/strings.*Convert your data to numeric values",
        but(None, FOREST),
    ),
    Bad(
        "objects that are text",
        lambda: (with_cell("high", object), Y),
        r"other than numbers in 1 of 4 columns \(2\): enc",
    ),
    Bad("complex numbers", lambda: (X + 1j, Y), COMPLEX.format("X", "X")),
    Bad("sparse complex numbers", lambda: (sp.csr_matrix(X + 1j), Y), COMPLEX.format("X", "X")),
    Bad(
        "dates",
        lambda: (X.astype("datetime64[D]"), Y),
        r"X is of type datetime64\[D\]: turn dates or times into numbers",
    ),
    Bad(
        "records",
        lambda: (np.zeros(N, [("a", "f8"), ("b", "f8")]), Y),
        "X is an array of records: make a data frame or an array",
    ),
    Bad(
        "a matrix of numpy's",
        lambda: (matrix_of_numpy(), Y),
        "np.matrix is not supported. Please convert to a numpy array",
    ),
    Bad(
        "a masked cell",
        lambda: (masked(X, 6), Y),
        "X is a masked array with 1 masked cells: fill them in, or leave out",
    ),
    Bad("nothing", lambda: (None, Y), "X is of type NoneType: give an array, a frame or a sparse matrix"),
    Bad("a word", lambda: ("table.csv", Y), "X is of type str: give an array, a frame or a sparse matrix"),
    Bad(
        "a dict", lambda: (dict(zip(NAMES, X.T.tolist(), strict=True)), Y), "X is of type dict: give an array, a frame"
    ),
    Bad("a lazy frame", lambda: (pl.DataFrame(X, schema=NAMES).lazy(), Y), r"X is a LazyFrame.*call its collect\(\)"),
    Bad(
        "two columns of a name",
        lambda: (frame().set_axis(list("abba"), axis=1), Y),
        "2 columns of the name 'b': rename",
    ),
    Bad(
        "names of two kinds",
        lambda: (frame().set_axis(["a", "b", 1, 2], axis=1), Y),
        "all input features have string",
    ),
    Bad(
        "a column of dates",
        lambda: (frame(b=pd.Timestamp("2020-01-01")), Y),
        r"dates or times in 1 of 4 .*\('b'\): turn",
    ),
    Bad("a column of text", lambda: (frame(b="high"), Y), r"other than numbers in 1 of 4 columns \('b'\): encode them"),
    Bad(
        "a category of text",
        lambda: (frame(b=pd.Categorical(LABELS[Y])), Y),
        r"other than numbers in 1 of 4 columns \('b'\): encode them",
        but(None, WITH_DISCRETE, WITH_CATEGORIES),
    ),
]
NAN_IS_TAKEN = but(None, "FSDD", "DAF-tree", "Study") | but(J_FAILED.format("nan"), "DAF-function")
NAN_IS_CHOSEN = but(
    "fsdd, trial 0: Input X contains NaN", "Study"
)  # the column is selected, and the classifier refuses it
INFINITE = but(J_FAILED.format("(nan|inf)"), "DAF-function") | but("infinity, or values too large", "FSDD", "Study")
CELLS = [
    Bad("NaN", lambda: (with_cell(np.nan), Y), NOT_FINITE.format(2), NAN_IS_TAKEN),
    Bad("NaN among objects", lambda: (with_cell(np.nan, object), Y), NOT_FINITE.format(2), NAN_IS_TAKEN),
    Bad("NaN in a frame", lambda: (frame(with_cell(np.nan)), Y), NOT_FINITE.format("'c'"), NAN_IS_TAKEN),
    Bad(
        "NA in a nullable frame",
        lambda: (frame().astype("Int64").replace(int(X[3, 2]), pd.NA).assign(a=1, b=2, d=3), Y),
        NOT_FINITE.format("'c'"),
        NAN_IS_TAKEN | NAN_IS_CHOSEN,
    ),
    Bad(
        "null in a polars frame",
        lambda: (pl.DataFrame(X, schema=NAMES).with_columns(b=pl.when(pl.col("a") > 3).then("b")), Y),
        NOT_FINITE.format("'b'"),
        NAN_IS_TAKEN | NAN_IS_CHOSEN,
    ),
    Bad(
        "NaN, sparse",
        lambda: (sp.csr_matrix(with_cell(np.nan)), Y),
        NOT_FINITE.format(2),
        {**NAN_IS_TAKEN, **SPARSE_REFUSED, "DAF-tree": "Input X contains NaN"},
    ),
    Bad("infinity", lambda: (with_cell(np.inf), Y), NOT_FINITE.format(2), INFINITE),
    Bad("negative infinity", lambda: (with_cell(-np.inf, np.float32), Y), NOT_FINITE.format(2), INFINITE),
    Bad(
        "a masked label",
        lambda: (X, masked(Y, 3)),
        "y is a masked array with 1 masked cells: fill them in, or leave out",
    ),
    Bad(
        "a label that is NaN",
        lambda: (X, np.where(np.arange(N) == 3, np.nan, Y)),
        "y contains NaN .*row 3.*: leave those",
    ),
    Bad(
        "a label that is None",
        lambda: (X, np.where(np.arange(N) == 3, None, LABELS[Y])),
        "NaN or None in 1 rows .*row 3",
    ),
    Bad(
        "a label that is NA",
        lambda: (X, pd.Series(Y, dtype="Int64").mask(pd.Series(Y.cumsum() == 3))),
        "y contains NaN",
    ),
    Bad("a label that is null", lambda: (X, pl.Series([None, *LABELS[Y[1:]]])), "y contains NaN or None .*row 0"),
    Bad("complex labels", lambda: (X, Y + 1j), COMPLEX.format("y", "y")),
    Bad(
        "labels as bytes",
        lambda: (X, np.array([b"no", b"yes"])[Y]),
        "labels represented as bytes is not supported",
        but(None, "DAF-function"),
    ),
    Bad(
        "labels of two kinds", lambda: (X, np.array([1, "a"], object)[Y]), "labels of several kinds .number, str.: give"
    ),
    Bad(
        "labels that are lists",
        lambda: (X, pd.Series([[1], [2]] * 12)),
        "label|list|sequence",
        but(None, "DAF-function"),
    ),
]
CLASSES = [
    Bad(
        "one class",
        lambda: (X, np.full(N, "yes")),
        "only one class.*yes|one class only, 'yes'",
        but(None, "DAF-function"),
    ),
    Bad("one value", lambda: (X, np.full(N, 0.5)), "continuous|only one (value|class)", but(None, "DAF-function")),
    Bad(
        "a class of one row",
        lambda: (X, np.r_[2, Y[1:]]),
        r"class 2 has n_samples=1, fewer than cv=3 folds: use a smaller cv|a single row of class 2: each class needs",
        but(None, FILTERS, "DAF-separability", "DAF-function", "Discretizer")
        | but("Only binary classification is supported.*y has 3 classes", FOREST),
    ),
    Bad("fractions", lambda: (X, X[:, 1] + 0.5), "continuous", NUMBERS_ARE_ANSWERED),
    Bad(
        "huge fractions",
        lambda: (X, X[:, 1] * 1e299 + 0.5),
        "y is too large to be computed with: its width.* is 2.2e\\+300; scale it|continuous",
        but(None, "DAF-function"),
    ),
    Bad(
        "denormal fractions",
        lambda: (X, X[:, 1] * 5e-324),
        "y is too small to be computed with: its width.*; scale it|continuous",
        but(None, "DAF-function"),
    ),
]
TOO_LARGE = r"values too large to be (computed with|squared),? in {} of 4 columns \({}.*\): .*scale"
TOO_SMALL = r"values too small to be computed with in {} of 4 columns \({}.*\): .*scale those columns"
LARGE_IS_TAKEN = but(None, BY_ORDER, "ReliefF", "DAF-estimator") | but(J_FAILED.format("inf"), "DAF-function")
SMALL_IS_TAKEN = but(None, BY_ORDER, "ReliefF", "DAF-function", "DAF-estimator")
SCALES = [
    Bad("1e300", lambda: (X * 1e299, Y), TOO_LARGE.format(4, 0), LARGE_IS_TAKEN),
    Bad(
        "the largest numbers",
        lambda: (X / np.abs(X).max() * np.finfo(np.float64).max, Y),
        TOO_LARGE.format(4, 0),
        but(None, BY_ORDER, "DAF-estimator") | but(J_FAILED.format("(nan|-?inf)"), "DAF-function"),
    ),
    Bad(
        "1e300, sparse",
        lambda: (sp.csr_matrix(X * 1e299), Y),
        TOO_LARGE.format(4, 0),
        {**LARGE_IS_TAKEN, **SPARSE_REFUSED, "DAF-function": J_FAILED.format("-?inf")},
    ),
    Bad("denormals", lambda: (X * 5e-324, Y), TOO_SMALL.format(4, 0), SMALL_IS_TAKEN),
    Bad("1e-160", lambda: (X * 1e-160, Y), TOO_SMALL.format(4, 0), SMALL_IS_TAKEN),
]
DAMAGED = r"X is a damaged sparse matrix of shape \(24, 4\): its indices or indptr point outside of it; build"
DAMAGES = [
    Bad(f"{name} of a {kind.__name__}", lambda kind=kind, at=at: (damaged(kind, *at), Y), DAMAGED)
    for kind in (sp.csr_matrix, sp.csc_matrix)
    for name, at in {
        "an index beyond the end": ("indices", 0, 10**6),
        "a negative index": ("indices", 3, -5),
        "a start beyond the end": ("indptr", 2, 10**6),
        "a last start beyond the end": ("indptr", -1, 10**6),
        "a negative start": ("indptr", 1, -4),
    }.items()
] + [Bad("an index beyond the end of a coo_matrix", lambda: (damaged(sp.coo_matrix, "col", 0, 10**6), Y), DAMAGED)]
BAD = [*SHAPES, *KINDS, *CELLS, *CLASSES, *SCALES, *DAMAGES]


@over(BAD, times=2)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # estimators and functions may square huge values
def test_bad_input_is_refused_in_clear_words(name, kind):
    data, labels = kind.make()
    before = content(data), content(labels)
    message = kind.outcome(name)
    if message is None:
        found = answer(name, data, labels)
        assert name in NAN_IS_TAKEN or all(np.isfinite(part).all() for part in found[-1:])
    else:
        with pytest.raises((ValueError, TypeError), match=message):
            answer(name, data, labels)
    assert (content(data), content(labels)) == before


# ---- results for unusual input


@pytest.mark.matrix
@pytest.mark.parametrize("factor", [1e299, 5e-324, 1e-160])
@pytest.mark.parametrize("name", sorted(BY_ORDER | {"ReliefF"}))
def test_methods_that_use_order_or_ranges_only_take_any_scale(name, factor):
    for mine, plain in zip(answer(name, X * factor, Y), answer(name, X, Y), strict=True):
        np.testing.assert_allclose(mine, plain, rtol=1e-9)


def test_missing_values_of_a_frame_are_those_of_an_array():
    holed = with_cell(np.nan)
    for name in ("FSDD", "DAF-tree"):
        plain = answer(name, holed, Y)
        for odd in (
            frame(holed),
            frame(holed).astype("Float64"),
            holed.astype(object),
            pl.DataFrame(holed, schema=NAMES),
        ):
            for mine, expected in zip(answer(name, odd, Y), plain, strict=True):
                np.testing.assert_array_equal(mine, expected)


@pytest.mark.matrix(times=2)
@pytest.mark.parametrize("name", sorted(FOR_NUMBERS - {"DAF-function"}))
@pytest.mark.parametrize("kind", [np.float32, list, pd.Series, pl.Series, object])
def test_a_regression_target_of_any_type(name, kind):
    y = X[:, 1] / 4 + X[:, 3]
    odd = y.astype(kind) if kind in (np.float32, object) else kind(y)
    for mine, plain in zip(answer(name, X, odd), answer(name, X, y), strict=True):
        np.testing.assert_allclose(mine, plain, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", sorted(set(ESTIMATORS) - {"Discretizer", "Study", FOREST}))
def test_one_feature_is_the_first(name):
    estimator = ESTIMATORS[name]() if name != "SFFS" else SFFS(1, criterion="linear")
    assert estimator.fit(X[:, [1]], Y).ranking_.tolist() == [1]
    assert estimator.transform(X[:, [1]]).shape == (N, 1)


@pytest.mark.parametrize("target", [Y[:, None], pd.DataFrame({"y": Y}), pl.DataFrame({"y": Y}), Y[:, None].tolist()])
@pytest.mark.parametrize("estimator", [Tournament(2, n_probes=40, random_state=0), daf("linear")(), daf("knn")()])
def test_a_target_of_one_column_is_one_target(estimator, target):
    """It was taken for several targets, and bound criteria failed."""
    expected = estimator.fit(X, Y).scores_
    with pytest.warns(DataConversionWarning):
        np.testing.assert_array_equal(estimator.fit(X, target).scores_, expected)


def test_tables_that_a_tournament_refuses():
    with pytest.raises(TypeError, match="y is a sparse matrix: give an array"):
        Tournament().fit(X, sp.csr_array(Y[:, None]))
    with pytest.raises(ValueError, match="rows of X differ in length, from 1 to 4"):
        Tournament().fit([*X.tolist()[:-1], [1.0]], Y)


@pytest.mark.matrix(times=2)
@pytest.mark.parametrize("name", sorted(set(ESTIMATORS) - {"Discretizer", "Study", FOREST}))
@pytest.mark.parametrize("value", [0.0, 7.0, -1e300, 5e-324])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # scikit-learn's nearest neighbors square huge values
@pytest.mark.filterwarnings("ignore:J is .* for all probes")
def test_constant_columns_are_equal_and_in_column_order(name, value):
    if name in ("DAF-svm", "DAF-tree") and abs(value) > 1e38:
        pytest.skip("these see the values themselves, as float32")
    if name == "DAF-function":
        pytest.skip("the function is free to tell them apart")
    found = answer(name, np.full((N, 4), value), Y)
    if name.startswith("DAF"):
        assert len(np.unique(found[2])) == 1
    else:
        assert found[1].tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "name", sorted(FILTERS | {"DAF-knn", "DAF-linear", "DAF-naive_bayes", "DAF-separability", "BIF"})
)
def test_the_value_of_a_constant_column_does_not_matter(name):
    zero, seven = (np.c_[X[:, :3], np.full(N, value)] for value in (0.0, 7.5))
    for mine, other in zip(answer(name, zero, Y), answer(name, seven, Y), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("criterion", [KNN(), Linear(), Separability()], ids=["knn", "linear", "separability"])
@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
def test_a_criterion_refuses_values_that_would_crash_it(criterion, value):
    with pytest.raises(ValueError, match="NaN, infinity or values too large to be squared: leave out or scale columns"):
        criterion.bind(with_cell(value), Y)


@pytest.mark.parametrize("criterion", [KNN(), Linear(), NaiveBayes()], ids=["knn", "linear", "naive_bayes"])
def test_a_column_on_a_very_different_scale_is_scored_correctly(criterion):
    y = Y.copy()
    for factor in (1e9, 1e-9):
        found = criterion.bind(times(factor, 1), y, cv=3)(Subsets.of([[1], [0, 1], [0, 2]]))
        alone = criterion.bind(X, y, cv=3)(Subsets.of([[1], [0, 1], [0, 2]]))
        assert found[2] == alone[2]
        assert np.isfinite(found).all()


# ---- ten thousand classes

MANY = 10_000
FEW_CLASSES = r"y has 10,000 classes, and .*: (use KNN|use a method without classes|draw fewer rows)"
MANY_REFUSED = {
    "DAF-svm": FEW_CLASSES,
    "DAF-separability": FEW_CLASSES,
    "DAF-tree": FEW_CLASSES,
    "EFS": FEW_CLASSES,
    "DFE": FEW_CLASSES,
    "CFS": FEW_CLASSES,
    "FCBF": FEW_CLASSES,
    "Discretizer": FEW_CLASSES,
    "ReliefF": FEW_CLASSES,
    FOREST: "Only binary classification is supported.*y has 10000 classes; make it one class against the rest",
}
ONE_PROBE = {"stop": MaxProbes(1), "check_every": 1, "max_probe_size": 1, "random_state": 0, "cv": 2}


@pytest.fixture(scope="module")
def many():
    y = np.tile(np.arange(MANY), 2)
    noise = np.random.default_rng(0).standard_normal((2 * MANY, 2))
    return noise + np.c_[np.zeros(2 * MANY), y], y.astype(str)  # text: so many numbers would be a quantity


@pytest.mark.parametrize("name", sorted(MANY_REFUSED))
def test_ten_thousand_classes_are_too_many_for_some(many, name):
    data, labels = many
    with pytest.raises(ValueError, match=MANY_REFUSED[name]):
        answer(name, data, labels)


@pytest.mark.parametrize("name", ["FSDD", "MRMR", "JMI", "CMIM"])
def test_ten_thousand_classes_for_filters(many, name):
    assert answer(name, *many)[1].tolist() == [2, 1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "criterion",
    [
        "knn",
        pytest.param("linear", marks=pytest.mark.slow),
        "naive_bayes",
        Separability("mahalanobis"),
        difference_of_sums,
    ],
)
def test_ten_thousand_classes_for_probes(many, criterion):
    found = DAF(criterion=criterion, **ONE_PROBE).fit(*many).run_.ledger.values()
    assert np.isfinite(found).all()
    assert found[0] >= 0


@pytest.mark.filterwarnings("ignore:.*number of unique classes:UserWarning")
def test_ten_thousand_classes_in_a_study(many):
    study = Study({"all": None}, {"1-nn": KNeighborsClassifier(1)}, trials=1, sizes=[2], random_state=0)
    result = study.compare(*many)
    assert result.accuracy.ravel()[0] > 10 / MANY


def test_cuts_by_description_length_among_many_classes():
    labels = np.repeat(np.arange(700), 4)
    cuts = Discretizer("mdl").fit(labels[:, None] + 0.0, labels).cut_points_[0]
    assert len(cuts) > 1


def test_a_criterion_whose_square_overflows_is_refused():
    with pytest.raises(ValueError, match=J_FAILED.format("inf")):
        DAF(criterion=lambda X, y: 1e200, stop=MaxProbes(10), check_every=10, random_state=0).fit(X, Y)


# ---- number of cases


def test_names_are_unique_and_there_are_2000_cases():
    names = [kind.name for kind in (*ODD, *BAD)]
    assert len(set(names)) == len(names)
    assert sum(len(kind.only) for kind in (*ODD, *BAD)) >= 2000
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert all(len(kind.make()) == 2 for kind in (*ODD, *BAD))
