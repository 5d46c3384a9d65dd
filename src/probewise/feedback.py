"""Relevance feedback: find the rows that a person means by labeling a few rows at a time."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from operator import methodcaller
from os import PathLike
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import check_array, check_X_y
from sklearn.utils.multiclass import check_classification_targets

from .criteria.scorer import seeded
from .engine.fingerprints import fingerprint
from .executors import executor
from .filters.efs import EFS
from .forest import AdaptiveRandomForestClassifier
from .validation.errors import ParameterError
from .validation.parameters import check_parameter, completed_file, random_of, seed_of, whole_number, writable_path

FORMAT = "probewise feedback 1"
DEFAULT_FEATURES = 20


class FeedbackSession:
    """A search that learns from a person: `ask` for rows to look at, `tell` which of them are relevant, and repeat.

    No target is needed. Once there are relevant and irrelevant rows, the selector and the classifier are fitted to the
    labeled rows, and `ask` returns the unlabeled rows with the highest scores. A labeled row is never returned again.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The table, such as images by features. Scale columns of different units first.
    selector : estimator or None, default="efs"
        A scikit-learn selector; None uses all features. "efs" is ``EFS`` with 20 features and MDL cut points.
    classifier : estimator, default="arf"
        A scikit-learn classifier with ``decision_function`` or ``predict_proba``. "arf" is
        `AdaptiveRandomForestClassifier`, which trains on all relevant rows and on cluster centers of the others.
    random_state : int, RandomState or None, default=None
        Seed of the first rows, and of every ``random_state`` of the classifier and selector that is None. What `ask`
        returns is a function of X, the seed and the labels, so a resumed session continues with the same rows.

    Attributes
    ----------
    rows, labels : array of int, array of bool
        The labeled rows, in the order of their first label, and whether they are relevant.
    features_ : array of int
        The columns that the last `ask` selected; empty if it fitted nothing.

    References
    ----------
    Y. Wu, A. Zhang, *Feature selection for classifying high-dimensional numerical data*, CVPR 2004, sec. 2.3 and 5.3.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from probewise.feedback import FeedbackSession
    >>> X, y = load_digits(return_X_y=True)
    >>> session = FeedbackSession(X, random_state=0)
    >>> for _ in range(4):
    ...     rows = session.ask(20)
    ...     session.tell(rows, y[rows] == 3)  # a person would look at the pictures
    FeedbackSession(20 labeled rows, 1 relevant)
    FeedbackSession(40 labeled rows, 9 relevant)
    FeedbackSession(60 labeled rows, 29 relevant)
    FeedbackSession(80 labeled rows, 49 relevant)
    """

    def __init__(
        self,
        X: Any,
        *,
        selector: Any = "efs",
        classifier: Any = "arf",
        random_state: Any = None,
    ) -> None:
        self.X = check_array(X, accept_sparse="csr", dtype="numeric", ensure_all_finite=False)
        if isinstance(selector, str):
            if selector != "efs":
                raise ParameterError(f"selector={selector!r}: give 'efs', a scikit-learn selector, or None")
            selector = EFS(min(DEFAULT_FEATURES, self.X.shape[1]), discretization="mdl")
        if isinstance(classifier, str):
            if classifier != "arf":
                raise ParameterError(f"classifier={classifier!r}: give 'arf' or a scikit-learn classifier")
            classifier = AdaptiveRandomForestClassifier()
            if sp.issparse(self.X):  # the forest needs dense columns
                dense = FunctionTransformer(methodcaller("toarray"), accept_sparse=True)
                classifier = make_pipeline(dense, classifier)
        self.model = make_pipeline("passthrough" if selector is None else selector, classifier)
        self.seed = seed_of(random_state, None)
        self._labels: dict[int, bool] = {}
        self.features_: NDArray[np.int64] = np.empty(0, np.int64)

    def __repr__(self) -> str:
        return f"FeedbackSession({len(self._labels)} labeled rows, {sum(self._labels.values())} relevant)"

    @property
    def rows(self) -> NDArray[np.int64]:
        return np.array(list(self._labels), dtype=np.int64)

    @property
    def labels(self) -> NDArray[np.bool_]:
        return np.array(list(self._labels.values()), dtype=bool)

    def tell(self, rows: Any, labels: Any) -> FeedbackSession:
        """Learn from answers: for each row, whether it is relevant. A later answer replaces an earlier one."""
        rows, labels = np.atleast_1d(np.asarray(rows)), np.atleast_1d(np.asarray(labels))
        if rows.shape != labels.shape or rows.ndim != 1:
            raise ParameterError(f"labels has shape {labels.shape}, but rows {rows.shape}: give one label for each row")
        if len(rows) and (rows.dtype.kind not in "iu" or rows.min() < 0 or rows.max() >= self.X.shape[0]):
            raise ParameterError(f"rows must be whole numbers from 0 to {self.X.shape[0] - 1}, as `ask` returns them")
        if not np.isin(labels, (0, 1)).all():
            raise ParameterError("labels must be True or False (or 1 and 0), one for each row")
        self._labels.update(zip(rows.tolist(), labels.astype(bool).tolist(), strict=True))
        return self

    def ask(self, n_rows: int = 20) -> NDArray[np.int64]:
        """Rows to look at next, the most promising first; fewer if fewer are left, and never a labeled row.

        Without a relevant row the rows are drawn at random; with relevant rows only, they are the nearest to the mean
        of those. Ties go to the lower row number.
        """
        check_parameter("n_rows", n_rows, whole_number(1))
        return self._ranked()[:n_rows]

    def _ranked(self) -> NDArray[np.int64]:
        """All unlabeled rows, the most promising first."""
        self.features_ = np.empty(0, np.int64)
        unlabeled = np.setdiff1d(np.arange(self.X.shape[0]), self.rows)
        seed = int(np.random.SeedSequence([self.seed, len(self._labels)]).generate_state(1)[0])
        if not self.labels.any() or not len(unlabeled):
            return np.random.default_rng(seed).permutation(unlabeled)
        if self.labels.all():
            order = np.argsort(_distances(self.X, self.rows)[unlabeled], kind="stable")
            return unlabeled[order]
        order = np.argsort(self.rows)  # the answers, and not their order, decide
        rows, labels = self.rows[order], self.labels[order].astype(np.int64)
        fitted: Pipeline = seeded(self.model, seed % 2**31)
        selected = fitted[:-1].fit_transform(self.X[rows], labels)
        fitted[-1].fit(selected, labels)
        has_support = hasattr(fitted[0], "get_support")
        self.features_ = fitted[0].get_support(indices=True) if has_support else np.arange(selected.shape[1])
        return unlabeled[np.argsort(-_scores(fitted, self.X)[unlabeled], kind="stable")]

    def save(self, path: str | PathLike[str]) -> None:
        """Write the seed and the answers to a file, as JSON; the table and the estimators are not written."""
        state = {"format": FORMAT, "seed": self.seed, "data": fingerprint(self.X)}
        state |= {"rows": self.rows.tolist(), "labels": self.labels.astype(int).tolist()}
        with completed_file(writable_path(path)) as file:
            file.write_text(json.dumps(state) + "\n", encoding="utf-8")

    @classmethod
    def resume(
        cls, path: str | PathLike[str], X: Any, *, selector: Any = "efs", classifier: Any = "arf"
    ) -> FeedbackSession:
        """Continue a saved session with the same table, and the same estimators if they were not the defaults."""
        try:
            state = json.loads(Path(path).read_text(encoding="utf-8"))
            if state["format"] != FORMAT:
                raise ValueError(state["format"])
            session = cls(X, selector=selector, classifier=classifier, random_state=int(state["seed"]))
            if state["data"] != fingerprint(session.X):
                raise ParameterError(f"{path} was saved with another table: give the X of that session")
            return session.tell(state["rows"], state["labels"])
        except ParameterError:
            raise
        except (ValueError, KeyError, TypeError) as error:
            raise ParameterError(f"{path} is not a saved feedback session: {error}") from error


@dataclass(frozen=True, eq=False)
class FeedbackResult:
    """Precision of the search for each query class, round by round, among rows that were not labeled before.

    Arrays are of shape (rounds + 1, n_queries): row 0 is the search before any feedback, row r after r rounds. Where no
    unlabeled row is left, nothing is fitted: ``n_features`` is 0, and the other arrays contain NaN.
    """

    queries: NDArray[Any]  # the class of each query
    precision: NDArray[np.float64]  # share of the returned rows that are of the class
    possible: NDArray[np.float64]  # 1 until fewer rows of the class are left than are returned
    n_features: NDArray[np.int64]  # of the trained classifier
    seconds: NDArray[np.float64]  # to select features, train and rank
    initial_rows: NDArray[np.int64]  # labeled from the start, the same for every query

    @property
    def relative_precision(self) -> NDArray[np.float64]:
        """For each query, mean of precision / possible over the rounds with something to find; NaN if there is none."""
        counts = self.possible > 0
        share = np.divide(self.precision, self.possible, out=np.zeros_like(self.precision), where=counts)
        with np.errstate(invalid="ignore"):
            return share.sum(axis=0) / counts.sum(axis=0)


def relevance_feedback(
    X: Any,
    y: Any,
    classifier: Any,
    *,
    selector: Any = None,
    initial: int = 5,
    rounds: int = 10,
    returned: int = 20,
    queries: Iterable[Any] | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> FeedbackResult:
    """Simulate relevance feedback: a `FeedbackSession` for each class, with a user who is replaced by y.

    For each query class, the labeled rows are positive (of that class) or negative (of any other class).

    Parameters
    ----------
    X, y : array-like
        The table, such as images by features, and the true class of every row.
    classifier, selector, random_state
        See `FeedbackSession`. The classes are 1 (positive) and 0.
    initial : int, default=5
        Number of rows of each class that are labeled from the start, drawn at random once for all queries.
    rounds : int, default=10
        Number of rounds of feedback.
    returned : int, default=20
        Number of rows that a search returns; a round labels at most that many rows.
    queries : iterable or None, default=None
        The classes to search for; None for all. The initial rows are drawn from all classes, so the result for a class
        does not depend on the other queries.
    n_jobs : int or None, default=None
        Number of workers, each with a query at a time; it changes nothing but the times.

    Notes
    -----
    Differences from the paper: it ranks rows by their distance to the query, chooses the number of features by
    cross-validation, and may return rows that are labeled already, whose precision would be memory.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from probewise.feedback import relevance_feedback
    >>> X, y = load_iris(return_X_y=True)
    >>> result = relevance_feedback(X, y, GaussianNB(), initial=2, rounds=3, random_state=0)
    >>> result.precision.shape
    (4, 3)
    >>> result.relative_precision.round(2)
    array([1.  , 0.95, 0.96])
    """
    X, y = check_X_y(X, y, accept_sparse="csr", dtype="numeric", ensure_all_finite=False)
    check_classification_targets(y)
    classes = np.unique(y)
    _require_valid_counts(y, classes, initial, rounds, returned)
    query_classes = classes if queries is None else _known_classes(queries, classes)

    random = random_of(random_state)
    drawn = [random.choice(np.flatnonzero(y == label), initial, replace=False) for label in classes]
    initial_rows = np.sort(np.concatenate(drawn))
    seeds = dict(zip(classes.tolist(), random.randint(2**31 - 1, size=len(classes)).tolist(), strict=True))
    options = {"selector": selector, "classifier": classifier}
    search = partial(_search, X, y, options, initial_rows, rounds, returned)
    # Processes, because fitting trees and selectors to a few rows mostly runs Python code, which holds the GIL.
    map = executor(n_jobs, prefer="processes")
    searches = list(map(search, [(label, seeds[label]) for label in query_classes.tolist()]))
    precision, possible, n_features, seconds = (np.array(part) for part in np.transpose(searches, (2, 1, 0)))
    return FeedbackResult(query_classes, precision, possible, n_features.astype(np.int64), seconds, initial_rows)


def _search(
    X: Any,
    y: NDArray[Any],
    options: dict[str, Any],
    initial_rows: NDArray[np.int64],
    rounds: int,
    returned: int,
    query: tuple[Any, int],
) -> list[tuple[float, ...]]:
    """For each round: precision, possible precision, number of features, and seconds."""
    label, seed = query
    is_positive = y == label
    session = FeedbackSession(X, random_state=seed, **options)
    found: list[tuple[float, ...]] = []
    first = initial_rows[np.argsort(~is_positive[initial_rows], kind="stable")]  # the query, then the others
    session.tell(first, is_positive[first])
    for _ in range(rounds + 1):
        n_left = int(is_positive.sum() - session.labels.sum())
        start = perf_counter()
        rows = session.ask(returned)
        seconds = perf_counter() - start
        if len(rows):
            precision, possible = float(is_positive[rows].mean()), min(1.0, n_left / len(rows))
            found.append((precision, possible, len(session.features_), seconds))
        else:
            found.append((np.nan, np.nan, 0, np.nan))
        session.tell(rows, is_positive[rows])
    return found


def _distances(X: Any, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """Euclidean distance of every row to the mean of the given rows."""
    center = np.asarray(X[rows].mean(axis=0)).reshape(1, -1)
    return euclidean_distances(X, center)[:, 0]


def _scores(model: Any, X: Any) -> NDArray[np.float64]:
    """Score of each row; larger means more relevant."""
    if hasattr(model, "decision_function"):
        return model.decision_function(X)
    if hasattr(model, "predict_proba"):
        return model.predict_proba(X)[:, 1]
    raise ValueError(f"classifier={model[-1]!r} has neither decision_function nor predict_proba: rows cannot be ranked")


def _known_classes(queries: Iterable[Any], classes: NDArray[Any]) -> NDArray[Any]:
    labels = np.asarray(list(queries))
    if len(labels) == 0:
        raise ValueError("queries is empty: give classes of y, or None for all of them")
    unknown = [label for label in labels.tolist() if label not in classes.tolist()]
    if unknown:
        raise ValueError(f"queries contains {unknown[0]!r}, which is not a class in y: {classes.tolist()[:10]}")
    return labels.astype(classes.dtype)


def _require_valid_counts(y: NDArray[Any], classes: NDArray[Any], initial: int, rounds: int, returned: int) -> None:
    for name, value, least in (("initial", initial, 1), ("rounds", rounds, 0), ("returned", returned, 1)):
        check_parameter(name, value, whole_number(least))
    if len(classes) < 2:
        raise ValueError(f"y contains only one class, {classes.tolist()[0]!r}: at least two are needed")
    if returned > len(y):
        raise ValueError(f"returned={returned} must be at most {len(y)}, the number of rows")
    sizes = [int((y == label).sum()) for label in classes]
    if min(sizes) < initial:
        smallest = classes.tolist()[int(np.argmin(sizes))]
        raise ValueError(
            f"initial={initial}, but class {smallest!r} has {min(sizes)} rows: lower initial or leave the class out"
        )
