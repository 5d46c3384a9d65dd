"""Base classes of the selectors: checked input, a ranking from scores, and how many features are kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from .criteria import Criterion, as_criterion
from .criteria.device import OnDevice, to_device
from .engine.probes import Subsets
from .engine.tally import positions
from .evaluation.nested_score import HonestScore, honest_score_of
from .evaluation.size_curve import SizeCurve, size_curve_of, warn_of_forgotten
from .executors import Map, ahead, executor, serial, stays_here
from .validation import tables
from .validation.errors import ForPython, Message, Setting
from .validation.labels import checked_weights, plain_labels, require_two_weighted, warn_of_another_order
from .validation.parameters import number_of
from .validation.stores import CANNOT_TRAVEL, Stored, as_dense, is_stored, readable_type

if TYPE_CHECKING:  # scikit-learn has no types, and a dataclass with a base that mypy does not know may take anything

    class SelectorMixin:
        def __sklearn_tags__(self) -> Any: ...
        def transform(self, X: Any) -> Any: ...

    class BaseEstimator:
        _repr_html_: Any
        _repr_mimebundle_: Any

        def __getattr__(self, name: str) -> Any: ...
else:
    from sklearn.base import BaseEstimator
    from sklearn.feature_selection import SelectorMixin

FRAMES = ("pandas", "polars")
ANY_NUMBERS: dict[str, Any] = {"accept_sparse": ("csr", "csc"), "dtype": "numeric", "ensure_all_finite": False}


class RankingSelector(SelectorMixin, BaseEstimator):
    """A selector that scores every feature; the subclass owes ``fit``, which ends in ``_keep(scores)``.

    ``n_features_to_select`` is read when features are selected, so it may be changed after ``fit``. What input a method
    can use it says by the names below; where it does not stream, a table in a store is read as a whole.
    """

    n_features_to_select: Any
    scores_: NDArray[np.float64]
    ranking_: NDArray[np.int64]

    _takes_nan: Any = False
    _needs_target: Any = True
    _streams: Any = False
    _takes_categories: Any = False
    missing_category: float = -1  # how a missing category is numbered: a value of its own
    _widths: Any = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self._needs_target
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self._takes_nan
        return tags

    def _checked(self, X: Any, y: Any, *, reset: bool = True) -> tuple[Any, Any]:
        """X and y as arrays, X not copied, or a `Stored`; a clear error where the method cannot use them."""
        given = X
        warn_of_another_order(X, y)
        if is_stored(X):
            X, y = self._checked_stored(X, y, reset=reset)
        else:
            X, y = self._checked_arrays(X, y, reset=reset)
        if reset:
            self._given_as = type(given).__module__.split(".")[0] if tables.is_frame(given) else None
        names = getattr(self, "feature_names_in_", None)
        if self._widths is not None:
            tables.require_widths(X, names, self._widths, allow_nan=self._takes_nan, remedy=self._remedy_for_missing)
        elif not self._takes_nan:
            tables.require_finite(X, names, self._remedy_for_missing)
        self._n_selected(X.shape[1])
        return X, y

    def _checked_arrays(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, Any]:
        X, y = tables.validated(self, X, y, with_target=y is not None or self._needs_target, reset=reset, **ANY_NUMBERS)
        if isinstance(X, np.ndarray) and X.dtype != readable_type(X.dtype):
            X = Stored(X) if self._streams else X.astype(readable_type(X.dtype))
        return X, y

    def _checked_stored(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, Any]:
        tables.require_numbers(X)
        X = as_dense(X)
        validate_data(self, X, reset=reset, skip_check_array=True)
        if y is not None or self._needs_target:
            y = validate_data(self, "no_validation", None if y is None else plain_labels(y), reset=False)
            check_consistent_length(X, y)
        return X if self._streams else np.asarray(X), y

    def as_numbers(self, X: Any, missing_category: float = np.nan) -> Any:
        """X, with the features of ``fit``, as an array of numbers or a `Stored`; missing values stay."""
        if is_stored(X):
            return as_dense(X)
        return validate_data(self, tables.number_categories(X, missing_category)[0], reset=False, **ANY_NUMBERS)

    def criterion_input(self, X: Any) -> tuple[Any, Subsets | None]:
        """What a criterion sees of X, an array of numbers, and the columns of each feature in it.

        None for the columns: each feature has the one of its number.
        """
        return X, None

    def transform(self, X: Any) -> Any:
        """The selected columns of X, categories as they are; of a table in a store no others are read."""
        if not is_stored(X):
            tables.require_plain(X)
            check_is_fitted(self, "ranking_")
            numbers, found = self._numbered(X) if tables.is_frame(X) else (X, None)
            return super().transform(X) if found is None or not found.any() else self._selected(X, numbers)
        check_is_fitted(self, "ranking_")
        tables.require_numbers(X)
        X = as_dense(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        selected = X[:, self.get_support()]
        if not self._takes_nan:
            tables.require_finite(selected, self.get_feature_names_out())
        return selected

    def _selected(self, X: Any, numbers: Any) -> Any:
        validate_data(self, numbers, dtype=None, ensure_all_finite=not self._takes_nan, reset=False)
        places = self.get_support(indices=True)
        chosen = X.iloc[:, places] if hasattr(X, "iloc") else X[:, places.tolist()]
        return chosen if self._frames_asked() else np.asarray(chosen)

    def _numbered(self, X: Any) -> tuple[Any, NDArray[np.bool_] | None]:
        """X with numbers for categories, and which columns of a frame they were in."""
        kinds = tables.kinds_of_columns(X) if self._takes_categories else None
        if kinds is None:
            return X, None
        return tables.number_categories(X, self.missing_category)[0], tables.are_categories(kinds)

    def _keep(self, scores: NDArray[np.float64]) -> None:
        self.scores_ = scores
        self.ranking_ = positions(scores) + 1

    @property
    def support_(self) -> NDArray[np.bool_]:
        """Which features are selected."""
        return self._get_support_mask()

    def to_frame(self, backend: str | None = None) -> Any:
        """The ranking as a data frame, best first.

        Parameters
        ----------
        backend : {"pandas", "polars"} or None, default=None
            None: what ``set_output`` asks for, else what X was in ``fit``, else the one that is installed.

        Returns
        -------
        DataFrame
            Columns ``feature``, ``rank``, ``score`` and ``selected``; of methods that make probes also ``std_error``,
            ``above_average`` (the score less that of the average feature), ``probed`` (in how many probes),
            ``rank_low`` and ``rank_high`` (95 % sure), ``in_top`` (the chance to be in the true top), and
            ``p_value`` and ``stands_out`` (beyond luck) where they are known.
        """
        check_is_fitted(self, "ranking_")
        from .report.ranking_table import columns_of_selector

        library = _library_of_frames(backend or self._frames_asked() or getattr(self, "_given_as", None))
        columns = columns_of_selector(self, self._named(np.arange(len(self.ranking_))), certainty=True)
        columns["selected"] = self.support_[np.argsort(self.ranking_, kind="stable")]
        return library.DataFrame({"feature": columns["feature"], **columns})

    def _named(self, columns: NDArray[np.int64]) -> list[str]:
        """The names of these columns, x0, x1, ... where they have none."""
        names = getattr(self, "feature_names_in_", None)
        return [f"x{column}" if names is None else str(names[column]) for column in columns.tolist()]

    def _frames_asked(self) -> str | None:
        # ``set_output`` keeps its choice in this attribute; scikit-learn has no public way to ask for it.
        own: dict[str, str] = getattr(self, "_sklearn_output_config", {})
        asked = own.get("transform", get_config()["transform_output"])
        return None if asked == "default" else asked

    def report(
        self,
        path: str | PathLike[str] | None = None,
        X: Any = None,
        y: Any = None,
        *,
        feature_names: Sequence[str] | None = None,
    ) -> Any:
        """Write a report of the fitted selector, in the format that the name says, or show it in a notebook.

        Parameters
        ----------
        path : path-like or None, default=None
            Where to: .html, .md or .json. None: a page that a notebook shows inline.
        X, y : array-like or None, default=None
            The data of ``fit``: then it also says which way features go, how many are enough, which are alike, and how
            they rank on their own.
        feature_names : sequence of str or None, default=None
            Of all columns, where X has none, as a matrix of words: what a vectorizer's ``get_feature_names_out`` gives.

        Returns
        -------
        Path or InlinePage
            Of the file written, or what a notebook shows.
        """
        check_is_fitted(self, "ranking_")
        if path is not None and not isinstance(path, str | PathLike):
            raise TypeError(
                f"path is of type {type(path).__name__}: report('report.html', X, y) writes a file, and "
                "report(X=X, y=y) shows one in a notebook"
            )
        from . import report  # one of the two ways up that tests/test_imports.py allows

        if path is not None:
            report.require_report_path(path)
        summary = report.summarize(self, X, y, feature_names=feature_names)
        if path is not None:
            return report.save(summary, path)
        from .report.html import InlinePage

        return InlinePage(report.render_html(summary))

    def size_curve(
        self,
        X: Any = None,
        y: Any = None,
        *,
        sizes: Iterable[int] | None = None,
        cv: Any = 5,
        nested: bool = False,
        groups: Any = None,
        sample_weight: Any = None,
    ) -> SizeCurve:
        """How good the best 1, 2, ... features are by cross-validation, and the fewest that are good enough.

        Parameters
        ----------
        X, y : array-like or None, default=None
            The data of ``fit``. None: the curve that ``fit`` made, if it was asked for one.
        sizes : iterable of int or None, default=None
            Numbers of features; None: up to 16 from 1 to 100 (or all), evenly spaced by ratio.
        cv : int, splitter or iterable of splits, default=5
            Folds; for a number shuffled, and stratified for classes.
        nested : bool, default=False
            True ranks anew, with as many probes, on the training rows of every fold: the curve is honest, and takes as
            many times as long as there are folds. False takes the ranking as it is. It has seen the rows tested on, so
            all means are optimistic; sizes can be compared all the same.
        groups : array-like or None, default=None
            Of the rows; those of one group are never both trained and tested on.
        sample_weight : array-like or None, default=None
            Of the rows, as in ``fit``.

        Returns
        -------
        SizeCurve
            With the best and the suggested size.
        """
        check_is_fitted(self, "ranking_")
        if X is not None:
            warn_of_forgotten(self, groups)
            of_rows = {"groups": groups, "sample_weight": sample_weight}
            return size_curve_of(self, X, y, sizes=sizes, cv=cv, nested=nested, **of_rows)
        curve: SizeCurve | None = getattr(self, "size_curve_", None)
        if curve is None:
            raise ValueError("X=None: no size curve was made when this selector was fitted; give X and y, those of fit")
        return curve

    def honest_score(
        self,
        X: Any,
        y: Any,
        *,
        seconds: float | None = None,
        shuffled: bool = False,
        groups: Any = None,
        sample_weight: Any = None,
    ) -> HonestScore:
        """What this method reaches on rows that it has not seen: ranked, cut and trained on some, scored on others.

        Parameters
        ----------
        X, y : array-like
            The data of ``fit``.
        seconds : float or None, default=None
            How long to repeat it, after five folds, which are made in any case; with less time copies of the run have
            fewer probes. None: as long as ``fit`` took, at least 1.
        shuffled : bool, default=False
            Whether to do the same with the target shuffled, which says how good it looks on noise.
        groups, sample_weight : array-like or None, default=None
            Of the rows, as in ``fit``.

        Returns
        -------
        HonestScore
            Its ``mean``, ``std_error``, ``guess`` and ``beats_guessing``.
        """
        warn_of_forgotten(self, groups)
        return honest_score_of(self, X, y, seconds, shuffled, groups=groups, sample_weight=sample_weight)

    @property
    def _repr_html_(self) -> Any:
        diagram = super()._repr_html_  # an AttributeError where diagrams are not wanted
        return lambda: diagram() + self._top_features()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        bundle = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] += self._top_features()
        return bundle

    def _top_features(self) -> str:
        if not hasattr(self, "ranking_"):
            return ""
        from .report.html import top_features_table

        return top_features_table(self, self._named(np.arange(len(self.ranking_))))

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self, "ranking_")
        return self.ranking_ <= self._n_selected(len(self.ranking_))

    def _remedy_for_missing(self) -> Message:
        return tables.REMEDY

    def _n_selected(self, n_features: int) -> int:
        asked = number_of("n_features_to_select", self.n_features_to_select, n_features, "features", "half")
        return max(1, n_features // 2) if asked is None else asked


def _library_of_frames(asked: str | None) -> Any:
    """pandas or polars, the one asked for, else the one that is installed."""
    if asked is not None and asked not in FRAMES:
        raise ValueError(f"backend={asked!r} is not known: choose 'pandas' or 'polars'")
    for name in FRAMES if asked is None else (asked,):
        if find_spec(name) is not None:
            return import_module(name)
    raise ImportError(f"a data frame needs {asked or 'pandas or polars'}: pip install {asked or 'polars'}")


@dataclass(eq=False, repr=False)
class WrapperSelector(RankingSelector):
    """A selector whose input is as its ``criterion`` wants it; parameters that all of them have."""

    n_features_to_select: Any = None
    _: KW_ONLY
    criterion: Any = "auto"
    cv: Any = 3
    scoring: Any = None
    device: str = "cpu"
    n_jobs: int | None = None

    @property
    def _takes_nan(self) -> bool:
        return self._criterion_or_default().allow_nan

    def _remedy_for_missing(self) -> Message:
        criterion = self._criterion_or_default()
        if "missing" not in criterion.get_params(deep=False) or criterion.allow_nan:
            return tables.REMEDY
        in_criterion = ForPython(
            f"criterion={type(criterion).__name__}(missing='median')", Setting("missing", "median")
        )
        return ("fill gaps inside the folds with ", in_criterion, ", or ", *tables.REMEDY)

    @property
    def _needs_target(self) -> bool:
        return self._criterion_or_default().needs_target

    @property
    def _streams(self) -> bool:
        return self._criterion_or_default().streams and self.device == "cpu"

    @property
    def _widths(self) -> tuple[float, float] | None:
        return self._criterion_or_default().widths

    def _checked(self, X: Any, y: Any, *, reset: bool = True) -> tuple[Any, Any]:
        self._criterion_for()
        return super()._checked(X, y, reset=reset)

    def _bound(self, criterion: Criterion, X: Any, y: Any, groups: Any, sample_weight: Any = None) -> Any:
        """The criterion bound to the data, on the device asked for."""
        cv, scoring = self._folds_and_score(criterion, y, groups)
        options = {"groups": groups, "scoring": scoring}
        given = {"groups": groups, "sample_weight": sample_weight}
        self.fit_arguments_ = [name for name, value in given.items() if value is not None]
        if sample_weight is not None:  # a criterion of the user's own need not know of it
            if "sample_weight" not in signature(criterion.bind).parameters:
                raise ValueError(
                    f"sample_weight: {type(criterion).__name__}.bind takes none; leave it out, or use "
                    "criterion='linear' or 'knn'"
                )
            options["sample_weight"] = weights = checked_weights(sample_weight, X.shape[0])
            require_two_weighted(y, weights)
        bound = criterion.bind(X, y, cv, **options)
        return bound if self.device == "cpu" else to_device(bound, self.device)

    def _folds_and_score(self, criterion: Criterion, y: Any, groups: Any = None) -> tuple[Any, Any]:
        """``cv`` and ``scoring`` as the criterion is to be bound with them."""
        return self.cv, self.scoring

    def _criterion_for(self, X: Any = None) -> Criterion:
        """The criterion meant; "auto" depends on X."""
        return as_criterion(self.criterion, X)

    def _map(self, criterion: Criterion, X: Any, score: Any) -> Map:
        """Where the criterion runs: in threads, if there is a choice, where X cannot be sent to another process.

        A device is one worker, served by some threads; several workers are processes, each with a device, and all
        cores means all devices.
        """
        if isinstance(score, OnDevice):
            n_jobs = score.n_devices if self.n_jobs is not None and self.n_jobs < 0 else self.n_jobs
            map = executor(n_jobs, prefer="processes")
            return partial(ahead, score.in_flight) if map is serial else map
        if isinstance(X, Stored) and not X.can_travel:
            if not stays_here(self.n_jobs):
                raise ValueError(CANNOT_TRAVEL)
            return executor(self.n_jobs, prefer="threads")
        return executor(self.n_jobs, prefer=criterion.prefer)

    def _criterion_or_default(self) -> Criterion:
        """The criterion meant, or, before parameters are checked, what stands in for one that is not known."""
        try:
            return self._criterion_for()
        except ValueError:
            return as_criterion("auto")
