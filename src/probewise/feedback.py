"""Relevance feedback: rows of a class are searched for, the user labels what was returned, and so on in rounds."""

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
    """How well, and how fast, the rows of each query class were found, round by round.

    Row 0 of the arrays is the search before any feedback, row r the search after r rounds of it.

    Attributes
    ----------
    queries : array of shape (n_queries,)
        The class each query was after.
    precision, seconds, n_features : array of shape (rounds + 1, n_queries)
        Share of the query's class among the returned rows; time to select, train and rank; number of features the
        classifier was trained on.
    new_precision, selection_seconds, training_seconds : array of shape (rounds + 1, n_queries)
        The same share among as many rows that were not labelled yet; and the parts of the time that the selector, and
        the training of the classifier, took.
    mean_precision, mean_seconds, mean_n_features : array of shape (rounds + 1,)
        Their means over queries. The last precision is what the paper's table 2 shows.
    initial_rows : array of int
        The rows labelled from the start, the same for every query.
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
    """Precision of the search for each class of y, before feedback and after each round of it.

    For each query class the labelled rows are positive (of that class) or negative (of any other). In every round the
    selector, if any, and the classifier are fitted on them, all rows of X are ranked, and the top ``returned`` come
    back; the user, here y, labels these, and they join the labelled rows of this query. Precision is the share of the
    query's class among the returned.

    Parameters
    ----------
    X, y : array-like
        The table (images, say, by features) and the true class of every row.
    classifier : estimator
        A scikit-learn classifier with ``decision_function`` or ``predict_proba``, by the first of which rows are
        ranked (see ``ranked_by``), ties to the lower row; such as `AdaptiveRandomForestClassifier`. Its classes are 1,
        positive, and 0.
    selector : estimator or None, default=None
        A scikit-learn selector fitted on the labelled rows, afresh in every round; None for all features.
    initial : int, default=5
        Rows of every class that are labelled from the start, drawn at random once for all queries.
    rounds : int, default=10
        How often the user labels what was returned.
    returned : int, default=20
        Rows that come back from a search: what precision is counted over, and what a round adds at most.
    queries : iterable or None, default=None
        The classes to search for; None for all. The others still give initial rows, so that what is found for a class
        does not depend on which other classes are searched for.
    ranked_by : {"score", "distance"}, default="score"
        "distance": rows that the classifier calls positive come first, the nearest to the query before others, then the
        rest in the same way. The query is the mean of its class's rows that were labelled from the start; distances are
        Euclidean, over the features selected.
    random_state : int, RandomState or None, default=None
        Seed of the initial rows, and of every ``random_state`` the classifier or selector leaves at None.
    n_jobs : int or None, default=None
        Workers, each with a query at a time; all but ``seconds`` is the same for any number.

    Returns
    -------
    FeedbackResult
        With ``mean_precision`` per round over queries.

    Notes
    -----
    Departures: for how rows are ranked the paper refers to an earlier one of its authors, where the nearest to the
    query among those called relevant come back (``ranked_by="distance"``); by default the score decides here. The paper
    leaves open, and here it is so: rows already labelled may be returned again (each query is run on the whole data
    set), and count in precision (not in ``new_precision``) but join the labelled rows once; the precision to report is
    that after the last round; feature selection is part of every round; initial rows are drawn at random. The number of
    features, which the paper chose by cross-validation, is the selector's business.

    References
    ----------
    Y. Wu, A. Zhang, *Feature selection for classifying high-dimensional numerical data*, CVPR 2004, sec. 5.1 and 5.3.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from probewise.feedback import relevance_feedback
    >>> X, y = load_iris(return_X_y=True)
    >>> found = relevance_feedback(X, y, GaussianNB(), initial=2, rounds=3, random_state=0)
    >>> found.precision.shape
    (4, 3)
    >>> found.mean_precision[-1] >= found.mean_precision[0]
    np.True_
    """
    X, y = check_X_y(X, y, accept_sparse="csr", dtype="numeric", ensure_all_finite=False)
    check_classification_targets(y)
    classes = np.unique(y)
    _check_numbers(y, classes, initial, rounds, returned)
    if ranked_by not in ("score", "distance"):
        raise ValueError(f"ranked_by={ranked_by!r}: choose 'score' or 'distance'")
    asked = classes if queries is None else _known(queries, classes)

    random = random_of(random_state)
    initial_rows = np.sort(
        np.concatenate([random.choice(np.flatnonzero(y == label), initial, replace=False) for label in classes])
    )
    seeds = dict(
        zip(classes.tolist(), random.randint(2**31 - 1, size=(len(classes), rounds + 1)).tolist(), strict=True)
    )
    model = make_pipeline("passthrough" if selector is None else selector, classifier)
    search = partial(_search, X, y, model, initial_rows, returned, ranked_by == "distance")
    # Trees and selectors on a few rows spend their time in Python, where threads wait for each other.
    map = executor(n_jobs, prefer="processes")
    found = list(map(search, [(label, seeds[label]) for label in asked.tolist()]))
    precision, seconds, n_features, *more = (np.array(part) for part in np.transpose(found, (2, 1, 0)))
    return FeedbackResult(asked, precision, seconds, n_features.astype(np.int64), initial_rows, *more)


def _search(
    X: Any,
    y: NDArray[Any],
    model: Any,
    initial_rows: NDArray[np.int64],
    returned: int,
    nearest: bool,
    query: tuple[Any, list[int]],
) -> list[tuple[float, float, int, float, float, float]]:
    """Precision, seconds, number of features, new precision, seconds of selection and training of every round."""
    label, seeds = query
    wanted = (y == label).astype(np.int64)
    labelled, found = initial_rows, []
    asked = initial_rows[wanted[initial_rows] == 1]
    for seed in seeds:
        fitted, start = seeded(model, seed), perf_counter()
        narrowed = fitted[:-1].fit_transform(X[labelled], wanted[labelled])
        selecting = perf_counter() - start
        fitted[-1].fit(narrowed, wanted[labelled])
        training = perf_counter() - start - selecting
        ranked = _nearest_first(fitted, X, asked) if nearest else np.argsort(-_scores(fitted, X), kind="stable")
        seconds, top = perf_counter() - start, ranked[:returned]
        new = ranked[~np.isin(ranked, labelled)][:returned]
        found.append((_share(wanted[top]), seconds, narrowed.shape[1], _share(wanted[new]), selecting, training))
        labelled = np.union1d(labelled, top)
    return found


def _nearest_first(model: Any, X: Any, asked: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows called positive, then the others, each by distance to the mean of the rows asked for."""
    narrowed = model[:-1].transform(X)
    centre = np.asarray(narrowed[asked].mean(axis=0)).reshape(1, -1)
    return np.lexsort((euclidean_distances(narrowed, centre)[:, 0], model[-1].predict(narrowed) != 1))


def _share(wanted: NDArray[np.int64]) -> float:
    return float(wanted.mean()) if len(wanted) else float("nan")


def _scores(model: Any, X: Any) -> NDArray[np.float64]:
    if hasattr(model, "decision_function"):
        return model.decision_function(X)
    if hasattr(model, "predict_proba"):
        return model.predict_proba(X)[:, 1]
    raise ValueError(f"classifier={model[-1]!r} has neither decision_function nor predict_proba: rows cannot be ranked")


def _known(queries: Iterable[Any], classes: NDArray[Any]) -> NDArray[Any]:
    asked = np.asarray(list(queries))
    if len(asked) == 0:
        raise ValueError("queries is empty: give classes of y, or None for all of them")
    unknown = [query for query in asked.tolist() if query not in classes.tolist()]
    if unknown:
        raise ValueError(f"queries holds {unknown[0]!r}, which is none of the classes in y: {classes.tolist()[:10]}")
    return asked.astype(classes.dtype)


def _check_numbers(y: NDArray[Any], classes: NDArray[Any], initial: int, rounds: int, returned: int) -> None:
    for name, value, least in (("initial", initial, 1), ("rounds", rounds, 0), ("returned", returned, 1)):
        if not is_whole(value, least):
            raise ValueError(f"{name}={value!r}: give a number from {least}")
    if len(classes) < 2:
        raise ValueError(f"y holds one class only, {classes.tolist()[0]!r}: there is nothing to tell it from")
    if returned > len(y):
        raise ValueError(f"returned={returned} with {len(y)} rows: give at most {len(y)}")
    sizes = [int((y == label).sum()) for label in classes]
    if min(sizes) < initial:
        smallest = classes.tolist()[int(np.argmin(sizes))]
        raise ValueError(
            f"initial={initial}, but the class {smallest!r} has {min(sizes)} rows: lower initial or leave the class out"
        )
