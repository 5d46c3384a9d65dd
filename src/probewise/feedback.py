"""Relevance feedback: a search for the rows of a class, improved in rounds as the user labels the returned rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.pipeline import make_pipeline
from sklearn.utils import check_X_y
from sklearn.utils.multiclass import check_classification_targets

from .criteria.scorer import seeded
from .executors import executor
from .validation.parameters import is_whole, random_of


@dataclass(frozen=True, eq=False)
class FeedbackResult:
    """Precision and time of the search for each query class, round by round.

    Row 0 of each array is the search before any feedback, row r the search after r rounds.

    Attributes
    ----------
    queries : array of shape (n_queries,)
        The class of each query.
    precision, seconds, n_features : array of shape (rounds + 1, n_queries)
        Fraction of the returned rows that belong to the query's class; time to select features, train and rank; number
        of features of the trained classifier.
    new_precision, selection_seconds, training_seconds : array of shape (rounds + 1, n_queries)
        Precision among as many rows that were not labeled yet; time of feature selection alone, and of training alone.
    mean_precision, mean_seconds, mean_n_features : array of shape (rounds + 1,)
        Means over queries. Table 2 of the paper shows the last mean precision.
    initial_rows : array of int
        The rows labeled from the start, the same for every query.
    """

    queries: NDArray[Any]
    precision: NDArray[np.float64]
    seconds: NDArray[np.float64]
    n_features: NDArray[np.int64]
    initial_rows: NDArray[np.int64]
    new_precision: NDArray[np.float64]
    selection_seconds: NDArray[np.float64]
    training_seconds: NDArray[np.float64]

    @property
    def mean_precision(self) -> NDArray[np.float64]:
        return self.precision.mean(axis=1)

    @property
    def mean_seconds(self) -> NDArray[np.float64]:
        return self.seconds.mean(axis=1)

    @property
    def mean_n_features(self) -> NDArray[np.float64]:
        return self.n_features.mean(axis=1)


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
    ranked_by: str = "score",
    random_state: Any = None,
    n_jobs: int | None = None,
) -> FeedbackResult:
    """Simulate relevance feedback: precision of the search for each class, before and after each round of feedback.

    For each query class, the labeled rows are positive (of that class) or negative (of any other class). In every round
    the selector, if any, and the classifier are fitted on the labeled rows, all rows of X are ranked, and the first
    ``returned`` rows are returned. The user, simulated by y, labels them, and they join the labeled rows of the query.
    Precision is the fraction of returned rows that belong to the query's class.

    Parameters
    ----------
    X, y : array-like
        The table, such as images by features, and the true class of every row.
    classifier : estimator
        A scikit-learn classifier with ``decision_function`` or ``predict_proba``, such as
        `AdaptiveRandomForestClassifier`. Its classes are 1 (positive) and 0. Rows are ranked by ``decision_function``
        if it exists (see ``ranked_by``), and ties by row number.
    selector : estimator or None, default=None
        A scikit-learn selector, fitted on the labeled rows in every round; None for all features.
    initial : int, default=5
        Number of rows of each class that are labeled from the start, drawn at random once for all queries.
    rounds : int, default=10
        Number of rounds of feedback.
    returned : int, default=20
        Number of rows that a search returns; a round labels at most that many rows.
    queries : iterable or None, default=None
        The classes to search for; None for all. The initial rows are drawn from all classes, so the result for a class
        does not depend on the other queries.
    ranked_by : {"score", "distance"}, default="score"
        "distance" ranks rows that are predicted positive before the others, and within each by the Euclidean distance
        to the query in the selected features. The query is the mean of the initial rows of its class.
    random_state : int, RandomState or None, default=None
        Seed of the initial rows, and of every ``random_state`` of the classifier and selector that is None.
    n_jobs : int or None, default=None
        Number of workers, each with a query at a time; it changes nothing but the times.

    Returns
    -------
    FeedbackResult

    Notes
    -----
    Differences from the paper: it ranks rows as an earlier paper of its authors does, by distance to the query
    (``ranked_by="distance"``); the default here is the score. The paper chose the number of features by
    cross-validation; here the selector decides.

    The paper leaves some details open. Here, rows that are labeled already may be returned again, because each query is
    run on the whole data set; they count in ``precision`` but not in ``new_precision``. The precision to report is the
    one after the last round, feature selection is part of every round, and initial rows are drawn at random.

    References
    ----------
    Y. Wu, A. Zhang, *Feature selection for classifying high-dimensional numerical data*, CVPR 2004, sec. 5.1 and 5.3.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from probewise.feedback import relevance_feedback
    >>> X, y = load_iris(return_X_y=True)
    >>> result = relevance_feedback(X, y, GaussianNB(), initial=2, rounds=3, random_state=0)
    >>> result.precision.shape
    (4, 3)
    >>> result.mean_precision[-1] >= result.mean_precision[0]
    np.True_
    """
    X, y = check_X_y(X, y, accept_sparse="csr", dtype="numeric", ensure_all_finite=False)
    check_classification_targets(y)
    classes = np.unique(y)
    _require_valid_counts(y, classes, initial, rounds, returned)
    if ranked_by not in ("score", "distance"):
        raise ValueError(f"ranked_by={ranked_by!r} must be 'score' or 'distance'")
    query_classes = classes if queries is None else _known_classes(queries, classes)

    random = random_of(random_state)
    initial_rows = np.sort(
        np.concatenate([random.choice(np.flatnonzero(y == label), initial, replace=False) for label in classes])
    )
    drawn = random.randint(2**31 - 1, size=(len(classes), rounds + 1)).tolist()
    seeds = dict(zip(classes.tolist(), drawn, strict=True))
    model = make_pipeline("passthrough" if selector is None else selector, classifier)
    search = partial(_search, X, y, model, initial_rows, returned, ranked_by == "distance")
    # Processes, because fitting trees and selectors to a few rows mostly runs Python code, which holds the GIL.
    map = executor(n_jobs, prefer="processes")
    searches = list(map(search, [(label, seeds[label]) for label in query_classes.tolist()]))
    precision, seconds, n_features, *others = (np.array(part) for part in np.transpose(searches, (2, 1, 0)))
    return FeedbackResult(query_classes, precision, seconds, n_features.astype(np.int64), initial_rows, *others)


def _search(
    X: Any,
    y: NDArray[Any],
    model: Any,
    initial_rows: NDArray[np.int64],
    returned: int,
    by_distance: bool,
    query: tuple[Any, list[int]],
) -> list[tuple[float, float, int, float, float, float]]:
    """For each round: precision, seconds, number of features, new precision, seconds of selection, of training."""
    label, seeds = query
    is_positive = (y == label).astype(np.int64)
    labeled, rounds = initial_rows, []
    query_rows = initial_rows[is_positive[initial_rows] == 1]
    for seed in seeds:
        fitted, start = seeded(model, seed), perf_counter()
        selected = fitted[:-1].fit_transform(X[labeled], is_positive[labeled])
        selecting = perf_counter() - start
        fitted[-1].fit(selected, is_positive[labeled])
        training = perf_counter() - start - selecting
        if by_distance:
            ranked = _ranked_by_distance(fitted, X, query_rows)
        else:
            ranked = np.argsort(-_scores(fitted, X), kind="stable")
        seconds, top = perf_counter() - start, ranked[:returned]
        new = ranked[~np.isin(ranked, labeled)][:returned]
        precisions = [is_positive[rows].mean() if len(rows) else np.nan for rows in (top, new)]
        rounds.append((precisions[0], seconds, selected.shape[1], precisions[1], selecting, training))
        labeled = np.union1d(labeled, top)
    return rounds


def _ranked_by_distance(model: Any, X: Any, query_rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows that are predicted positive, then the others, each by distance to the mean of the query's rows."""
    selected = model[:-1].transform(X)
    center = np.asarray(selected[query_rows].mean(axis=0)).reshape(1, -1)
    return np.lexsort((euclidean_distances(selected, center)[:, 0], model[-1].predict(selected) != 1))


def _scores(model: Any, X: Any) -> NDArray[np.float64]:
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
        if not is_whole(value, least):
            raise ValueError(f"{name}={value!r} must be a whole number of at least {least}")
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
