"""The size curve: cross-validated J of the best 1, 2, ... features of a ranking, and the suggested number."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_consistent_length, check_is_fitted, has_fit_parameter

from ..criteria import Criterion, as_criterion
from ..criteria.base import Split, Target
from ..display import small_table
from ..engine.probes import Subsets
from ..executors import in_turn, one_blas_thread, require_complete, runs_in_this_process, threads
from ..stopping import MaxProbes
from ..validation.errors import warn
from ..validation.parameters import checked_groups, checked_weights, is_whole, outcome_array
from ..validation.stores import Stored
from ..validation.tables import is_frame
from .covariates import Covariates
from .subsets import SubsetScorer as SubsetScorer
from .subsets import TooFewRows as TooFewRows
from .subsets import distinct_ranking
from .subsets import splits_for as splits_for

Floats = NDArray[np.float64]
Columns = NDArray[np.int64]
Choose = Callable[[list[Columns]], Iterable[list[Columns]]]  # training rows of the folds -> subsets of each
MISSING_CATEGORY = -1.0  # a missing category is a level of its own
MAX_SIZE, N_SIZES, FOLDS = 100, 16, 5  # the default sizes and folds
MAX_SEED = 2**63
SHORT_FIT = 2**21  # values of a table whose fits to parts of the rows run at the same time
CONVINCING = 2  # standard errors above guessing; one in 17 tables of pure noise passes


@dataclass(frozen=True, eq=False)
class SizeCurve:
    """Cross-validated J of the best 1, 2, ... features in each fold, and the suggested number of features.

    Attributes
    ----------
    sizes : array of int of shape (n_sizes,)
        Numbers of features, ascending.
    scores : array of shape (n_folds, n_sizes)
        J on the test rows of each fold.
    mean, std_error : array of shape (n_sizes,)
        Mean over folds and its standard error, which is NaN for a single fold.
    best : int
        The size with the largest mean; the smallest such size.
    suggested : int
        The smallest size whose mean is within one standard error of the best mean.
    measure : str
        Name of J: "accuracy", "R²", or the name of a scoring.
    scored_by : str
        Description of the model that scored the subsets: the criterion of the run, or a classifier.
    nested : bool
        Whether features were ranked again on the training rows of every fold. If not, the ranking has seen the test
        rows and the means are optimistic, more so with more features to choose from.
    guess : float or None
        J without any feature: the most frequent class, or the mean of y; None: not known.
    guess_error : float
        Standard error of the score of guessing, which counts groups and not rows if there are any; NaN: not known.
    test_to_train : float
        Number of test rows divided by number of training rows in a fold.
    ranking : array of int or None
        The ranking of all rows with near copies of better features at the end (see `representatives`): the features
        with ranks up to ``suggested`` are enough.
    chosen : sequence of (split, list of arrays)
        For each fold its rows, and the columns of the criterion's matrix at each size.

    References
    ----------
    L. Breiman, J. Friedman, R. Olshen, C. Stone, *Classification and regression trees*, 1984, chapter 3: the
    one-standard-error rule. C. Nadeau, Y. Bengio, *Inference for the generalization error*, Machine Learning 52, 2003.
    """

    sizes: Columns
    scores: Floats
    measure: str
    scored_by: str
    nested: bool
    guess: float | None = None
    guess_error: float = np.nan
    test_to_train: float = 0.0
    ranking: Columns | None = None
    chosen: Sequence[tuple[Split, list[Columns]]] = ()

    def __repr__(self) -> str:
        marks = {self.best: "best", self.suggested: "suggested"}
        columns: dict[str, list[Any]] = {"features": self.sizes.tolist(), self.measure: self.mean.tolist()}
        columns["std_error"] = self.std_error.tolist()
        columns[""] = [marks.get(size, "") for size in self.sizes.tolist()]
        ranking = "ranked again in each fold" if self.nested else "ranked once on all rows"
        title = f"SizeCurve: {self.measure} by number of features, {ranking}"
        return small_table(columns, title, len(self.sizes))

    @property
    def mean(self) -> Floats:
        return self.scores.mean(axis=0)

    @property
    def std_error(self) -> Floats:
        if len(self.scores) < 2:
            return np.full(len(self.sizes), np.nan)
        return self.scores.std(axis=0, ddof=1) / np.sqrt(len(self.scores))

    @property
    def best(self) -> int:
        return int(self.sizes[np.argmax(self.mean)])

    @property
    def suggested(self) -> int:
        return suggested_size(self.sizes, self.mean, self.std_error)

    @property
    def beats_guessing(self) -> bool | None:
        """Whether the best mean is above guessing by two standard errors; None where guessing is not known.

        The standard error is the larger one of the error over folds and the error of guessing, both times
        sqrt(1 + n_folds * test_to_train), because folds share training rows. One in 17 tables of pure noise passes if
        the curve is nested; most pass if it is not, because the ranking has seen the test rows.
        """
        if self.guess is None:
            return None
        best = int(np.argmax(self.mean))
        error = np.nanmax([self.std_error[best], self.guess_error, 0.0])
        shared = np.sqrt(1 + len(self.scores) * self.test_to_train)
        return bool(self.mean[best] - CONVINCING * shared * error > self.guess)


def suggested_size(sizes: Columns, means: Floats, errors: Floats) -> int:
    """The smallest size whose mean is within one standard error of the best mean; an unknown error counts as 0."""
    best = int(np.argmax(means))
    return int(sizes[np.flatnonzero(means >= means[best] - np.nan_to_num(errors[best]))[0]])


def size_curve(
    selector: Any,
    X: Any,
    y: Any,
    *,
    sizes: Iterable[int] | None = None,
    cv: Any = FOLDS,
    nested: bool = False,
    groups: Any = None,
    sample_weight: Any = None,
    adjust: Any = None,
    n_probes: int | None = None,
    seed: int = 0,
) -> SizeCurve:
    """Cross-validated J of the best 1, 2, ... features of a fitted selector, and the fewest that are good enough.

    Near copies of better features count last (see `representatives`), unless the selector chose features as a set.

    Parameters
    ----------
    selector : selector
        A fitted selector.
    X, y : array-like
        The data of ``fit``.
    sizes : iterable of int or None, default=None
        Numbers of features; None: up to 16 numbers from 1 to 100 (or all), evenly spaced by ratio.
    cv : int, splitter or iterable of splits, default=5
        Folds; for a number shuffled, and stratified for classes.
    nested : bool, default=False
        True ranks the features again, with as many probes, on the training rows of every fold, so that the scores are
        unbiased. False uses the ranking as it is: the ranking has seen the test rows, so all means are optimistic,
        but sizes can be compared.
    groups : array-like or None, default=None
        Group of each row; a fold never trains and tests on rows of the same group.
    sample_weight : array-like or None, default=None
        Weight of each row, as in ``fit``.
    adjust : array, data frame or None, default=None
        Covariates, as in ``fit``: rankings of folds are adjusted for them. The scores are those of the features alone.
    n_probes : int or None, default=None
        Number of probes of each nested ranking; None: as many as the selector used.
    seed : int, default=0
        Seed of the folds.
    """
    warn_if_groups_missing(selector, groups)
    check_is_fitted(selector, "ranking_")
    numbers, y = selector._numbers_of(X, MISSING_CATEGORY), outcome_array(y)
    check_consistent_length(numbers, y)
    of_rows = arguments_of_rows(len(y), groups, sample_weight, adjust)
    groups, sample_weight = of_rows.get("groups"), of_rows.get("sample_weight")
    criterion = criterion_of(selector, numbers)
    target = Target.of(y, getattr(criterion, "task", "auto"))
    ranking, n_representatives = distinct_ranking(selector, numbers)
    curve_sizes, table = as_sizes(selector, sizes, n_representatives), X if is_frame(X) else numbers
    if nested:
        require_splittable(selector)

    def choose(parts: list[Columns]) -> Iterable[list[Columns]]:
        if not nested:
            return [columns_at_sizes(selector, curve_sizes.tolist(), ranking)] * len(parts)
        return ranked_on_parts(selector, table, y, parts, subsets_of, curve_sizes.tolist(), of_rows, n_probes=n_probes)

    def subsets_of(copy: Any, rows: Columns) -> list[Columns]:
        return columns_at_sizes(copy, curve_sizes.tolist(), distinct_ranking(copy, rows_of(numbers, rows))[0])

    matrix, splits = selector._criterion_input(numbers), splits_for(cv, target, groups, seed=seed)
    missing = getattr(selector, "missing", None)
    scorer = SubsetScorer.like(criterion, numbers, target, scoring_for(selector, target, splits), missing)
    options = {"nested": nested, "sample_weight": sample_weight, "groups": groups}
    curve = curve_along(choose, matrix, y, target, curve_sizes, splits, scorer, **options)
    return replace(curve, ranking=ranking)


def arguments_of_rows(n_rows: int, groups: Any, sample_weight: Any, adjust: Any) -> dict[str, NDArray[Any]]:
    """The arguments of ``fit`` that have a value for each row, as arrays; covariates as numbers."""
    of_rows = {"groups": checked_groups(groups, n_rows), "sample_weight": checked_weights(sample_weight, n_rows)}
    of_rows["adjust"] = None if adjust is None else Covariates.of(adjust, n_rows).values
    return {name: values for name, values in of_rows.items() if values is not None}


def scoring_for(selector: Any, target: Target, splits: Sequence[Split]) -> Any:
    """The scoring of the selector; for two classes of which one is rare, the area under the ROC curve."""
    if getattr(selector, "class_weight_", None) is None or target.n_classes != 2:
        return getattr(selector, "scoring", None)
    has_both = all(len(np.unique(target.values[part])) == 2 for split in splits for part in split)
    return "roc_auc" if has_both else None


def warn_if_groups_missing(selector: Any, groups: Any) -> None:
    """Warn where ``fit`` had groups of rows and the evaluation has none."""
    if groups is None and "groups" in getattr(selector, "fit_arguments_", ()):
        warn(
            "fit had groups, but this evaluation has none: rows of one group may be in both training and test folds; "
            "pass groups=groups here too"
        )


def curve_along(
    choose: Choose,
    matrix: tuple[Any, Subsets | None],
    y: NDArray[Any],
    target: Target,
    sizes: Columns,
    splits: Sequence[Split],
    scorer: SubsetScorer,
    *,
    nested: bool,
    sample_weight: Any = None,
    groups: Any = None,
) -> SizeCurve:
    """The curve of the subsets that ``choose`` returns for the training rows of each fold, one for each size.

    ``matrix`` is X and the columns of each feature in it; None: feature j is column j.
    """
    X, columns = matrix
    X = X.tocsc() if sp.issparse(X) else X
    subsets_of_folds = [columns_of_each(subsets, columns) for subsets in choose([train for train, _ in splits])]
    chosen = list(zip(splits, subsets_of_folds, strict=True))
    scores = np.array([scorer.scores(X, y, split, subsets, sample_weight) for split, subsets in chosen])
    guess, chance = scorer.guessing(y, target, splits, sample_weight, groups)
    share = float(np.mean([len(test) / len(train) for train, test in splits]))
    return SizeCurve(sizes, scores, scorer.measure(target), scorer.words, nested, guess, chance, share, chosen=chosen)


def criterion_of(selector: Any, X: Any = None) -> Criterion | None:
    """The criterion of a fitted selector; None for a filter."""
    if hasattr(selector, "criterion_") or "criterion" not in selector.get_params(deep=False):
        return getattr(selector, "criterion_", None)
    return as_criterion(selector.criterion, X)


def as_sizes(selector: Any, sizes: Iterable[int] | None = None, most: int = MAX_SIZE) -> Columns:
    """The requested sizes; or default sizes, from the smallest to the largest that the selector can give, or ``most``.

    Features that share a rank, as in a group, count as one. Features of ``keep`` are part of every size.
    """
    ranking = getattr(selector, "ranking_", None)
    n_ranks = int(selector.n_features_in_ if ranking is None else ranking.max())
    least = max(1, len(getattr(getattr(selector, "_units", None), "kept", ())))
    if sizes is not None:
        requested = list(sizes) if isinstance(sizes, Iterable) else []
        if not requested or not all(is_whole(size, least, n_ranks) for size in requested):
            raise ValueError(f"sizes={sizes!r} must be whole numbers from {least} to {n_ranks}, in a list")
        return np.unique(np.array(requested, dtype=np.int64))
    if hasattr(selector, "path_"):
        return np.array(sorted(selector.path_)[: 2 * N_SIZES], dtype=np.int64)
    if not {"n_features_to_select", "k"} & set(selector.get_params(deep=False)):
        return spaced_sizes(int(selector.get_support().sum()))
    # A tournament ranks dropped features too, by the round they reached.
    scores = selector.run_.coefficient()[0] if hasattr(selector, "run_") else getattr(selector, "scores_", None)
    n_known = n_ranks if scores is None or ranking is None else ranks_known(ranking, scores)
    return spaced_sizes(min(most, n_known), least)


def ranks_known(ranking: Columns, scores: Floats) -> int:
    """Number of ranks, from the first, whose features have a score or are always kept."""
    return int(ranking[np.isfinite(scores)].max(initial=1))


def spaced_sizes(n_features: int, least: int = 1, steps: int = N_SIZES) -> Columns:
    """Sizes from 1, or the smallest possible, to 100, or all features, evenly spaced by ratio."""
    most = max(least, min(MAX_SIZE, n_features))
    return np.unique(np.geomspace(least, most, steps).round().astype(np.int64))


def columns_at_sizes(selector: Any, sizes: Iterable[int], ranking: Columns | None = None) -> list[Columns]:
    """The columns that a fitted selector takes at each size: from its path, if it has one, else from the ranking."""
    path = getattr(selector, "path_", None)
    if path is None:
        return up_to_rank(selector.ranking_ if ranking is None else ranking, sizes)
    on_path = [max((size for size in path if size <= wanted), default=min(path)) for wanted in sizes]
    return [np.array(path[size][1], dtype=np.int64) for size in on_path]


def up_to_rank(ranking: Columns, sizes: Iterable[int]) -> list[Columns]:
    """The columns of ranks 1 to each size, best first."""
    order = np.argsort(ranking, kind="stable")
    return [order[: np.searchsorted(ranking[order], size, side="right")] for size in sizes]


def ranked_on_parts(
    selector: Any,
    X: Any,
    y: NDArray[Any],
    parts: list[Columns],
    use: Callable[[Any, Columns], Any],
    sizes: list[int],
    of_rows: dict[str, NDArray[Any]],
    *,
    n_probes: int | None = None,
    seeds: Iterable[int] | None = None,
) -> list[Any]:
    """The results of ``use(copy, rows)`` for copies of the selector fitted to parts of the rows.

    The copies have the same number of probes and no ledger. ``of_rows`` are other arguments of ``fit``, with a value
    for each row. ``seeds`` are added to the seed of the run.

    Short fits run at the same time, in threads: a single one has too little work for the workers of ``n_jobs``.
    """
    n_jobs = getattr(selector, "n_jobs", None)
    is_short = (isinstance(X, np.ndarray) or is_frame(X)) and np.prod(X.shape) <= SHORT_FIT
    is_short = is_short and getattr(criterion_of(selector, X), "prefer", None) == "threads"
    is_short = is_short and getattr(selector, "device", "cpu") == "cpu" and runs_in_this_process(n_jobs)
    settings = {"n_probes": n_probes, "n_jobs": 1 if is_short else n_jobs}

    def result_of(part: tuple[Columns, int]) -> Any:
        rows, seed = part
        return use(_ranked_on_rows(selector, X, y, rows, sizes, of_rows, seed=seed, **settings), rows)

    # The fit to all rows has warned. Fits whose BLAS has threads of its own would take twice as long side by side.
    blas = one_blas_thread() if is_short else nullcontext()
    with warnings.catch_warnings(action="ignore", category=UserWarning), blas:
        return list((threads(n_jobs) if is_short else in_turn)(result_of, zip(parts, seeds or repeat(0), strict=False)))


def _ranked_on_rows(
    selector: Any,
    X: Any,
    y: NDArray[Any],
    rows: Columns,
    sizes: list[int],
    of_rows: dict[str, NDArray[Any]],
    *,
    seed: int,
    n_probes: int | None,
    n_jobs: int | None,
) -> Any:
    copy = clone(selector)
    known = copy.get_params(deep=False)
    size = min(sizes) if known.get("direction") == "backward" else max(sizes)
    settings: dict[str, Any] = {"n_features_to_select": size, "ledger": None, "verbose": 0, "n_jobs": n_jobs}
    if hasattr(selector, "run_"):
        n_features = selector.n_features_to_select
        settings |= {"n_features_to_select": None if isinstance(n_features, str) else n_features}
        n_probes = selector.n_probes_ if n_probes is None else n_probes
        settings |= {"stop": MaxProbes(n_probes), "n_probes": n_probes}
        settings |= {"random_state": (selector.run_.plan.seed + seed) % MAX_SEED}
    copy.set_params(**{name: value for name, value in settings.items() if name in known})
    arguments = {name: values[rows] for name, values in of_rows.items() if has_fit_parameter(copy, name)}
    copy.fit(rows_of(X, rows), y[rows], **arguments)
    require_complete(copy)
    return copy


def columns_of_each(subsets: list[Columns], columns: Subsets | None) -> list[Columns]:
    """Subsets of features as subsets of the columns of a matrix; with None, column j is feature j."""
    if columns is None:
        return subsets
    return [np.concatenate([columns[feature] for feature in subset]).astype(np.int64) for subset in subsets]


def rows_of(X: Any, rows: Columns) -> Any:
    """Some rows of an array, a sparse matrix, a data frame (with its names), or a `Stored`."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    if isinstance(X, Stored):
        return X.rows(rows)
    if sp.issparse(X):
        return X.tocsr()[rows]
    return np.asarray(X)[rows] if isinstance(X, list | tuple) else X[rows]


def require_splittable(selector: Any) -> None:
    """Raise an error where ``cv`` is a list of splits, which cannot be used for a part of the rows."""
    cv = getattr(selector, "cv", None)
    if cv is not None and not isinstance(cv, int | np.integer) and not hasattr(cv, "split"):
        raise ValueError(
            f"cv of {type(selector).__name__} is a list of splits of all rows, but nested=True ranks on a part of "
            "them: use a number or a splitter, or nested=False"
        )
