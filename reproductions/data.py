"""Data recipes: where each data set comes from, how it is built, and the checksum of the result.

A checksum is that of the numbers, not of a file: rows are sorted, so that it does not depend on their order or on the
format of the source.
"""

from __future__ import annotations

import csv
import hashlib
import html
import re
import tarfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np
import scipy.sparse as sp
from scipy.io import loadmat
from sklearn import datasets as of_sklearn
from sklearn.datasets import load_svmlight_file
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from probewise.datasets import SPARSE_PARTS, load

GITHUB = "https://raw.githubusercontent.com"
OPENML = "https://www.openml.org"
# Names on OpenML, all of version 1, or numbers of data sets, where they are not our names; the columns of several parts
# are concatenated.
VIEWS = ("fourier", "factors", "karhunen", "pixel", "zernike", "morphological")
PARTS: dict[str, tuple[str | int, ...]] = {
    "authorship": ("analcatdata_authorship",),
    "mfeat": tuple(f"mfeat-{view}" for view in VIEWS),
    "vowel": (307,),
}
SECONDS = 60  # to wait for a server
CELLS = ("DLBCL", "activated blood B", "FL", "CLL", "resting/activated T", "transformed cell lines")
CELLS += ("resting blood B", "germinal centre B", "normal lymph node/tonsil")
CANCEROUS = (1, 3, 4, 6)  # DLBCL, follicular lymphoma, CLL, transformed cell lines
MADELON_ROWS, MADELON_SUM = 2000, 488083511  # training rows of the competition, and the published sum of their values
ROUNDING = 4e-4  # of a number up to 999, from six digits of its share of the largest

Arrays = dict[str, Any]


class DataError(ValueError):
    """A data set that is missing, cannot be fetched, or is not the one of the experiments."""


@dataclass(frozen=True)
class Recipe:
    """The address of a data set, its checksum, the function that builds it, and the raw files that it needs."""

    address: str
    checksum: str
    build: Callable[..., Arrays]
    files: tuple[str, ...] = ()


def from_openml(name: str) -> Arrays:
    """The numeric columns and the target of a data set of OpenML."""
    names = PARTS.get(name, (name,))
    queries = [{"data_id": part} if isinstance(part, int) else {"name": part, "version": 1} for part in names]
    try:
        with warnings.catch_warnings(action="ignore"):  # each retry gives a warning
            parts = [of_sklearn.fetch_openml(**query, as_frame=False) for query in queries]
    except OSError as error:
        raise DataError(f"{RECIPES[name].address} cannot be fetched ({error}); repeat the command later") from error
    tables = []
    for part in parts:
        numeric = [column for column, text in enumerate(part.feature_names) if text not in (part.categories or {})]
        tables.append(np.asarray(part.data)[:, numeric].astype(np.float64))
    X, y = np.hstack(tables), np.asarray(parts[0].target)
    arrays = {"X": X, "y": y.astype(str) if y.dtype == object else y}
    if name == "madelon":
        if X[:MADELON_ROWS].sum() != MADELON_SUM:
            raise DataError(f"the first rows of {RECIPES[name].address} are not the training rows of the competition")
        arrays |= split_after(MADELON_ROWS, len(y))
    return arrays


def split_after(n_train: int, n_rows: int) -> Arrays:
    return {"train_index": np.arange(n_train), "test_index": np.arange(n_train, n_rows)}


def from_sklearn(name: str) -> Arrays:
    X, y = getattr(of_sklearn, f"load_{name}")(return_X_y=True)
    return {"X": X, "y": y}


def from_mat(name: str, path: Path) -> Arrays:
    """Files of scikit-feature (X, Y) and of MSRC-v1 (a cell array X of blocks with features in columns, Y)."""
    file = loadmat(path)
    X = file["X"]
    if X.dtype == object:
        X = np.hstack([np.asarray(block, dtype=np.float64) for block in X.ravel()])
    return {"X": X, "y": file["Y"].ravel()}


def from_alizadeh(name: str, matrix: Path, labels: Path) -> Arrays:
    """Lymphoma: a table of genes by samples, in hundredths, in which 999 is a missing value, and the kinds of cells."""
    table = np.loadtxt(matrix)
    table = np.where(table == 999, np.nan, table / 100)
    filled = np.where(np.isnan(table), np.nanmean(table, axis=1, keepdims=True), table)
    cells = loadmat(labels)["Y"].ravel()
    names = {"y_multi": cells, "class_names": np.array(CELLS)}
    return {"X": filled.T.astype(np.float32), "y": np.isin(cells, CANCEROUS).astype(np.int64), **names}


def from_libsvm(name: str, path: Path) -> Arrays:
    """Gisette: whole numbers from 0 to 999, recovered from LIBSVM's copy, in which each feature is scaled to [-1, 1].

    A feature's largest number in the training rows, which are not at hand, is the largest one that makes every value a
    whole number. Features without any value were constant in the training rows and are lost.
    """
    table, y = load_svmlight_file(path, n_features=5000)
    shares = np.where(table.getnnz(axis=0) > 0, (table.toarray() + 1) / 2, 0.0)
    for column in shares.T:
        largest = np.arange(1, 1000)
        largest = largest[np.rint(largest * column.max()) < 1000]
        for share in np.unique(column):
            largest = largest[np.abs(largest * share - np.rint(largest * share)) < ROUNDING]
            if len(largest) < 2:
                break
        column[:] = np.rint(column * largest[-1]) if len(largest) else 0  # a wrong file has another checksum
    return {"X": shares.astype(np.uint16), "y": y.astype(np.int64)}


def from_reuters(name: str, archive: Path) -> Arrays:
    """Reuters: counts of stems in title and body of the documents with one topic, in the ModApte split.

    A topic needs 18 documents, and a stem 3 occurrences in all documents with topics and one in those that are kept.
    """
    try:
        from nltk.stem.porter import PorterStemmer
    except ImportError as error:
        raise DataError("reuters needs Porter's stemmer; install it: pip install nltk") from error
    stem, topics, counts, is_train = cache(PorterStemmer("ORIGINAL_ALGORITHM").stem), [], [], []
    with tarfile.open(archive) as files:
        for file in sorted(path for path in files.getnames() if path.endswith(".sgm")):
            document = re.compile(r"<REUTERS (.*?)>(.*?)</REUTERS>", re.DOTALL)
            for attributes, content in document.findall(files.extractfile(file).read().decode("latin-1")):
                named = re.findall(r"<D>(.*?)</D>", re.search(r"<TOPICS>(.*?)</TOPICS>", content)[1])
                split = re.search(r'LEWISSPLIT="(TRAIN|TEST)"', attributes)
                if not (named and split and 'TOPICS="YES"' in attributes):
                    continue
                parts = [part for _, part in re.findall(r"<(TITLE|BODY)>(.*?)</\1>", content, re.DOTALL)]
                text = html.unescape("\n".join(parts) or re.search(r"<TEXT.*?>(.*)</TEXT>", content, re.DOTALL)[1])
                words = re.findall(r"[^\W_]+", re.sub(r"\s*reuter\s*$", "", text.lower()))
                words = [word for word in words if word.isalpha() and len(word) > 1 and word not in ENGLISH_STOP_WORDS]
                topics.append(named[0] if len(named) == 1 else "")
                is_train.append(split[1] == "TRAIN")
                counts.append(Counter(map(stem, words)))
    sizes = Counter(topics)
    rows = np.array([bool(topic) and sizes[topic] >= 18 for topic in topics])
    table = DictVectorizer(dtype=np.int64)
    X = table.fit_transform(counts)
    columns = (X.sum(axis=0).A1 >= 3) & (X[rows].sum(axis=0).A1 > 0)
    names = sorted(set(np.array(topics)[rows].tolist()), key=lambda topic: (-sizes[topic], topic))
    y = np.array([names.index(topic) for topic in np.array(topics)[rows]])
    train = np.array(is_train)[rows]
    more = {"train_index": np.flatnonzero(train), "test_index": np.flatnonzero(~train), "class_names": np.array(names)}
    more["feature_names"] = table.get_feature_names_out()[columns].astype(str)
    return {"X": X[rows][:, columns].astype(np.int32), "y": y, **more}


def from_golub(name: str, train: Path, test: Path, labels: Path) -> Arrays:
    """Leukemia: two tables of genes by patients, in which columns of calls alternate with values, and the labels."""
    values, genes = {}, []
    for path in (train, test):
        with path.open(newline="") as lines:
            rows = list(csv.reader(lines))
        patients = {place: int(text) for place, text in enumerate(rows[0]) if text.strip().isdigit()}
        table = np.array([[int(row[place]) for place in patients] for row in rows[1:]])
        values |= dict(zip(patients.values(), table.T, strict=True))
        genes = [row[rows[0].index("Gene Accession Number")] for row in rows[1:]]
    with labels.open(newline="") as lines:
        diagnosis = {int(row["patient"]): row["cancer"] for row in csv.DictReader(lines)}
    order = sorted(values)
    y = np.array([diagnosis[patient] == "AML" for patient in order], dtype=np.int64)
    names = {"feature_names": np.array(genes), "class_names": np.array(["ALL", "AML"])}
    return {"X": np.array([values[patient] for patient in order]), "y": y, **split_after(38, 72), **names}


def github(repository: str) -> str:
    return f"{GITHUB}/{repository}/master"


LEWIS = "https://www.daviddlewis.com/resources/testcollections/reuters21578"
LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary"
ALIZADEH = (
    "hankuipeng/Cluster_GeneExpression/master/lymphoma.matrix",
    "jundongl/scikit-feature/master/skfeature/data/lymphoma.mat",
)
GOLUB = ("data_set_ALL_AML_train.csv", "data_set_ALL_AML_independent.csv", "actual.csv")
RECIPES = {
    "authorship": Recipe(f"{OPENML}/d/458", "9d42cb5db895219e", from_openml),
    "coil20": Recipe(github("jundongl/scikit-feature"), "d516d2e4a79f066f", from_mat, ("skfeature/data/COIL20.mat",)),
    "gisette_valid": Recipe(LIBSVM, "a6aeb60faab72da9", from_libsvm, ("gisette_scale.t.bz2",)),
    "iris": Recipe("https://scikit-learn.org", "a15f296d4a6dc9ad", from_sklearn),
    "leukemia": Recipe(github("tkhan11/Gene-Expression-Classification"), "f1dace950ae5f8c4", from_golub, GOLUB),
    "lymphoma": Recipe(GITHUB, "1e3be604097a1527", from_alizadeh, ALIZADEH),
    "madelon": Recipe(f"{OPENML}/d/1485", "bcf5c2a8524254b1", from_openml),
    "mfeat": Recipe(f"{OPENML}/search?q=mfeat", "52fc8814b51b7de6", from_openml),
    "msrcv1": Recipe(github("h10666/GRNet"), "d99f5ea5101b0ae6", from_mat, ("data/MSRCV1.mat",)),
    "reuters": Recipe(LEWIS, "4389a1db897b77d8", from_reuters, ("reuters21578.tar.gz",)),
    "satimage": Recipe(f"{OPENML}/d/182", "b634ca10842e35d8", from_openml),
    "spambase": Recipe(f"{OPENML}/d/44", "463887a0d62737bc", from_openml),
    "spectrometer": Recipe(f"{OPENML}/d/313", "fff28720d6a84298", from_openml),
    "vowel": Recipe(f"{OPENML}/d/307", "1d7300dd73da9295", from_openml),
    "wine": Recipe("https://scikit-learn.org", "8ccef6509fd03abe", from_sklearn),
}
SETS = {
    "daf-2011": ("reuters", "gisette_valid", "madelon", "spambase"),
    "daf-2013": ("reuters", "madelon"),
    "efs-2004": ("leukemia", "lymphoma", "msrcv1", "coil20", "mfeat"),
    "fsdd-2008": ("wine", "vowel", "authorship", "spectrometer", "iris", "mfeat", "satimage", "spambase"),
}


def checksum(X: Any, y: Any) -> str:
    """Digest of the rows, sorted, as float32, and of the class sizes."""
    rows = X.tocsr() if sp.issparse(X) else np.asarray(X, dtype=np.float32)
    dense = rows.toarray().astype(np.float32) if sp.issparse(rows) else rows
    digest = hashlib.sha256(str((dense.shape, sorted(np.unique(y, return_counts=True)[1].tolist()))).encode())
    for row in sorted(row.tobytes() for row in np.ascontiguousarray(dense)):
        digest.update(row)
    return digest.hexdigest()[:16]


def prepare(paper: str, folder: Path) -> Iterator[str]:
    """Verify the data sets of a paper and build the missing ones, with a line for each; raises if one is missing."""
    failed = []
    for name in SETS[paper]:
        try:
            yield f"{name}: {one_set(name, folder)}"
        except DataError as error:
            failed.append(name)
            yield f"{name}: {error}"
    if failed:
        raise DataError(f"{len(failed)} of {len(SETS[paper])} data sets are missing: {', '.join(failed)}")


def one_set(name: str, folder: Path) -> str:
    """Verify a data set, or build and verify it; what was done, in words."""
    recipe, path = RECIPES[name], folder / f"{name}.npz"
    if path.exists():
        found = readable(name, path, load, name, folder)
        require_same(name, found.X, found.y, f"{path} is not the data set of the experiments")
        return f"{path.name} is complete ({found.X.shape[0]:,} x {found.X.shape[1]:,})"
    files = [fetched(recipe, file, folder / "raw") for file in recipe.files]
    arrays = readable(name, ", ".join(map(str, files)), recipe.build, name, *files)
    require_same(name, arrays["X"], arrays["y"], f"what {recipe.address} gives is not the data set of the experiments")
    folder.mkdir(parents=True, exist_ok=True)
    save(path, arrays)
    return f"built from {recipe.address}"


def readable(name: str, place: object, read: Callable[..., Any], *arguments: Any) -> Any:
    """The result of read(*arguments); what goes wrong in a damaged file becomes one sentence."""
    try:
        return read(*arguments)
    except DataError:
        raise
    except Exception as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        source = RECIPES[name].address
        raise DataError(f"{place} cannot be read ({reason}); delete it and repeat; the source is {source}") from error


def fetched(recipe: Recipe, file: str, raw: Path) -> Path:
    """A raw file, downloaded unless it is in the folder of raw files."""
    path, address = raw / Path(file).name, f"{recipe.address}/{file}"
    if not path.exists():
        raw.mkdir(parents=True, exist_ok=True)
        try:
            with urlopen(address, timeout=SECONDS) as answer:
                content = answer.read()
        except OSError as error:
            raise DataError(f"{address} cannot be fetched ({error}); download it and save it as {path}") from error
        part = path.with_suffix(".part")
        part.write_bytes(content)
        part.replace(path)
    return path


def require_same(name: str, X: Any, y: Any, complaint: str) -> None:
    found, recipe = checksum(X, y), RECIPES[name]
    if found != recipe.checksum:
        raise DataError(f"{complaint}: its checksum is {found}, not {recipe.checksum}; the source is {recipe.address}")


def save(path: Path, arrays: Arrays) -> None:
    """Write a file that `probewise.datasets.load` reads."""
    if sp.issparse(X := arrays["X"]):
        parts = dict(zip(SPARSE_PARTS, (X.data, X.indices, X.indptr, np.array(X.shape)), strict=True))
        arrays = parts | {name: array for name, array in arrays.items() if name != "X"}
    np.savez_compressed(path, **arrays)
