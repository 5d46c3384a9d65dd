"""Base class of all selectors, and the results that selectors with a run of probes share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from . import inference
from .criteria import Criterion
from .engine.probes import Subsets
from .engine.run import Run
from .engine.tally import positions
from .engine.units import Units, UnitTable, one_hot
from .evaluation.nested import automatic_size
from .evaluation.sizes import MISSING_CATEGORY, SizeCurve
from .inference import Discoveries, Pairs
from .inference.base import q_values
from .validation import tables
from .validation.contents import notes_on_id_columns
from .validation.errors import USUAL_ERROR_STATE, ParameterError, warn
from .validation.parameters import named_columns, number_of, plain_labels, warn_of_another_order
from .validation.stores import Stored, as_dense, is_stored, readable_type
from .validation.tables import scaled

if TYPE_CHECKING:  # scikit-learn has no types, and mypy accepts any argument of a dataclass whose base it cannot see

    class SelectorMixin:
        fit: Any

        def __sklearn_tags__(self) -> Any: ...
        def transform(self, X: Any) -> Any: ...

    class BaseEstimator:
        _repr_html_: Any
        _repr_mimebundle_: Any

        def __getattr__(self, name: str) -> Any: ...
else:
    from sklearn.base import BaseEstimator
    from sklearn.feature_selection import SelectorMixin

DEFAULT_FDR, AUTO = 0.1, "auto"
N_CANDIDATES = 20  # best features of a ranking that are tested in addition to those that `needed` finds itself
ANY_NUMBERS: dict[str, Any] = {"accept_sparse": ("csr", "csc"), "dtype": "numeric", "ensure_all_finite": False}


@dataclass(frozen=True)
class Accepts:
    """The kinds of input that a method can use."""

    nan: bool = False
    no_target: bool = False
    stores: bool = False  # reads a table in a store column by column; other methods load it
    several: bool = False  # several targets
    categories: bool = False  # columns of a data frame with a categorical type
    widths: tuple[float, float] | None = None  # bounds on max - min of a column that is not constant
    remedy: str = tables.REMEDY  # what a user can do about NaN


class Selector(SelectorMixin, BaseEstimator):
    """Base of all selectors. ``fit`` of a subclass sets ``scores_`` and ``ranking_``.

    ``n_features_to_select`` is read when features are selected, so it may be changed after ``fit``.
    """

    n_features_to_select: Any
    scores_: NDArray[np.float64]
    ranking_: NDArray[np.int64]

    _accepts: Any = Accepts()
    _sizes_by_name: tuple[str, ...] = ()  # values of ``n_features_to_select`` that are decided after the ranking

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "fit" in vars(cls):
            cls.fit = USUAL_ERROR_STATE(cls.fit)

    def __sklearn_tags__(self) -> Any:
        tags, accepts = super().__sklearn_tags__(), self._accepts
        tags.target_tags.required = not accepts.no_target
        tags.target_tags.multi_output = accepts.several
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = accepts.nan
        return tags

    # ---- input

    def _checked(self, X: Any, y: Any, accepts: Accepts | None = None, *, reset: bool = True) -> tuple[Any, Any]:
        """X and y as arrays without a copy of X, or X as a `Stored`; a clear error where the method cannot use them."""
        accepts = self._accepts if accepts is None else accepts
        warn_of_another_order(X, y)
        with_target = y is not None or not accepts.no_target
        if is_stored(X):
            X, y = self._checked_store(X, y, with_target, reset)
            X = X if accepts.stores else np.asarray(X)
        else:
            options = {"with_target": with_target, "several": accepts.several, "reset": reset}
            X, y = tables.validated(self, X, y, **options, **ANY_NUMBERS)
            if isinstance(X, np.ndarray) and X.dtype != readable_type(X.dtype):
                X = Stored(X) if accepts.stores else X.astype(readable_type(X.dtype))
        names = getattr(self, "feature_names_in_", None)
        if reset:
            self.notes_ = notes_on_id_columns(X, names)
            for note in self.notes_:
                warn(note)
        if accepts.widths is not None or not accepts.nan:
            widths = accepts.widths or tables.ANY_WIDTH
            tables.require_finite(X, names, accepts.remedy, allow_nan=accepts.nan, widths=widths)
        self._n_selected(X.shape[1])
        return X, y

    def _checked_store(self, X: Any, y: Any, with_target: bool, reset: bool) -> tuple[Any, Any]:
        tables.require_numbers(X)
        X = as_dense(X)
        validate_data(self, X, reset=reset, skip_check_array=True)
        if with_target:
            y = validate_data(self, "no_validation", None if y is None else plain_labels(y), reset=False)
            check_consistent_length(X, y)
        return X, y

    def _numbered(self, X: Any) -> tuple[Any, NDArray[np.bool_] | None]:
        """X with numbers in place of categories, and a mask of the categorical columns (None unless X is a frame)."""
        columns = getattr(self, "categorical_features", "from_dtype" if self._accepts.categories else None)
        kinds = None if columns is None else tables.kinds_of_columns(X)
        if kinds is None:
            return X, None
        text_columns = None
        if not isinstance(columns, str):
            names = np.array([str(name) for name in X.columns])
            text_columns = named_columns(columns, "categorical_features", names, len(names))
        is_category = tables.are_categories(kinds, text_columns)
        return tables.number_categories(X, MISSING_CATEGORY, text_columns)[0] if is_category.any() else X, is_category

    def _numbers_of(self, X: Any, missing_category: float = np.nan) -> Any:
        """X, with the features of ``fit``, as an array of numbers or a `Stored`; missing values stay."""
        if is_stored(X):
            return as_dense(X)
        X = validate_data(self, tables.number_categories(X, missing_category)[0], reset=False, **ANY_NUMBERS)
        return X.astype(readable_type(X.dtype), copy=False)

    def _criterion_input(self, X: Any) -> tuple[Any, Subsets | None]:
        """The matrix that a criterion sees, and the columns of each feature in it (None: column j is feature j)."""
        return X, None

    # ---- selected features

    @property
    def support_(self) -> NDArray[np.bool_]:
        """Mask of the selected features."""
        return self._get_support_mask()

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self, "ranking_")
        return self.ranking_ <= self._n_selected(len(self.ranking_))

    def _n_selected(self, n_features: int) -> int:
        if isinstance(self.n_features_to_select, str) and self.n_features_to_select in self._sizes_by_name:
            return n_features
        n_selected = number_of("n_features_to_select", self.n_features_to_select, n_features, "features", "half")
        return max(1, n_features // 2) if n_selected is None else n_selected

    def _rank_by(self, scores: NDArray[np.float64]) -> None:
        self.scores_, self.ranking_ = scores, positions(scores) + 1

    def transform(self, X: Any) -> Any:
        """Return the selected columns of X; categories stay as they are, and a store reads no other column."""
        if is_stored(X):
            return self._selected_from_store(X)
        tables.require_plain(X)
        check_is_fitted(self, "ranking_")
        numbers, is_category = self._numbered(X) if tables.is_frame(X) else (X, None)
        if is_category is None or not is_category.any():
            return super().transform(X)
        validate_data(self, numbers, dtype=None, ensure_all_finite=not self._accepts.nan, reset=False)
        columns = self.get_support(indices=True)
        selected = X.iloc[:, columns] if hasattr(X, "iloc") else X[:, columns.tolist()]
        return np.asarray(selected) if frame_library(self) is None else selected

    def _selected_from_store(self, X: Any) -> Any:
        check_is_fitted(self, "ranking_")
        selected = self._checked_store(X, None, with_target=False, reset=False)[0][:, self.get_support()]
        if not self._accepts.nan:
            tables.require_finite(selected, self.get_feature_names_out())
        return selected

    def _names(self, columns: NDArray[np.int64]) -> list[str]:
        """Names of these columns; x0, x1, ... where X had no names."""
        names = getattr(self, "feature_names_in_", None)
        return [f"x{column}" if names is None else str(names[column]) for column in columns.tolist()]

    # ---- notebooks

    @property
    def _repr_html_(self) -> Any:
        diagram = super()._repr_html_  # raises AttributeError where diagrams are switched off
        return lambda: diagram() + self._top_features()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        bundle = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] += self._top_features()
        return bundle

    def _top_features(self) -> str:
        if not hasattr(self, "ranking_"):
            return ""
        from .report.html import top_features_table  # the one import that points up (tests/test_imports.py)

        return top_features_table(self)


class RunResultsMixin:
    """Results that `DAF` and `Tournament` read from ``run_``, and tests of features on the data of ``fit``."""

    run_: Run
    criterion_: Criterion
    ranking_: NDArray[np.int64]
    size_curve_: SizeCurve
    n_features_to_select: Any
    n_jobs: int | None
    _sizes_by_name: tuple[str, ...] = (AUTO,)
    _tests: dict[str, Discoveries]
    _data: Any  # of ``fit``; not saved with the selector

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """The scores as shares with sum 1; features with a negative score, or none, have 0."""
        check_is_fitted(self, "run_")
        scores = np.maximum(np.nan_to_num(self.run_.scores()), 0.0)
        return scores / scores.sum() if scores.any() else scores

    @property
    def n_probes_(self) -> int:
        """Number of probes scored."""
        return self.run_.tally.n_probes

    @property
    def stop_reason_(self) -> str:
        """Why the run stopped, in words."""
        return self.run_.stop_reason or ""

    @property
    def history_(self) -> dict[str, NDArray[Any]]:
        """The measures of convergence at every look."""
        check_is_fitted(self, "run_")
        return self.run_.history

    @property
    def std_errors_(self) -> NDArray[np.float64]:
        """Standard errors of the scores over other random probes of the same rows; not over new samples."""
        return self.run_.std_errors()

    # ---- inference

    def stands_out(self, fdr: float = DEFAULT_FDR) -> NDArray[np.bool_]:
        """Mask of the features that are related to the target at this false discovery rate (`inference.associated`)."""
        return self._tested("associated").at(fdr).mask

    def needed(self, fdr: float = DEFAULT_FDR) -> NDArray[np.bool_]:
        """Mask of the features that are needed given all others, at this false discovery rate (`inference.needed`).

        Of a cluster of similar features, the one that represents it is in the mask.
        """
        return self._tested("needed").at(fdr).mask

    @property
    def p_values_(self) -> NDArray[np.float64]:
        """p-value of each feature: is it related to the target? NaN for features of ``keep``."""
        return self._tested("associated").p_values

    @property
    def q_values_(self) -> NDArray[np.float64]:
        """q-value of each feature: the smallest false discovery rate at which it is related to the target."""
        return self._tested("associated").q_values

    def interactions(self, fdr: float = DEFAULT_FDR) -> Pairs:
        """Pairs of features that act together on the target, beyond what each does alone (`inference.pairs`)."""
        data, of_rows = self._test_data("pairs")
        return pairs_of_units(*data, self.run_, fdr, **of_rows)

    def _tested(self, test: str) -> Discoveries:
        """A test of all features, by its name in `inference`, on the data of ``fit``; it runs when first needed."""
        check_is_fitted(self, "run_")
        if test not in self._tests:
            data, of_rows = self._test_data(test)
            self._tests[test] = discoveries_of_units(test, *data, self.run_, **of_rows)
        return self._tests[test]

    def _test_data(self, test: str) -> tuple[tuple[UnitTable, Any, bool | None], dict[str, Any]]:
        """The columns of the units, the target and whether it has classes; and the options of a test."""
        check_is_fitted(self, "run_")
        data = getattr(self, "_data", None)
        if data is None:
            raise ParameterError(
                f"a loaded selector has no data to test features on: call probewise.inference.{test}(X, y), or "
                "test the features before the selector is saved"
            )
        of_rows = {"groups": data.groups, "sample_weight": data.sample_weight, "adjust": data.adjust}
        return (data.table, data.y, data.is_classification), {**of_rows, "n_jobs": self.n_jobs}

    def __getstate__(self) -> dict[str, Any]:
        """The state without the data of ``fit``; results of tests are kept."""
        state: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]
        return {name: value for name, value in state.items() if name != "_data"}

    # ---- support

    @property
    def _units(self) -> Units:
        return self.run_.settings.units

    def _choose_size(self, X: Any, y: Any, **of_rows: Any) -> None:
        vars(self).pop("size_curve_", None)  # of an earlier fit
        if self.n_features_to_select == AUTO:
            self.size_curve_ = automatic_size(self, X, y, **of_rows)

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self, "ranking_")
        if self.n_features_to_select != AUTO:
            selected = self.ranking_ <= n_selected_units(self, self._units)
        else:
            if not hasattr(self, "size_curve_"):
                raise ParameterError("n_features_to_select='auto' was set after fit: fit again, or give a number")
            selected = np.asarray(self.size_curve_.ranking) <= self.size_curve_.suggested
        selected[self._units.kept] = True
        return selected

    def _criterion_input(self, X: Any) -> tuple[Any, Subsets | None]:
        settings, names = self.run_.settings, getattr(self, "feature_names_in_", None)
        is_category = np.isin(np.arange(X.shape[1]), () if settings.categorical is None else settings.categorical)
        X = scaled(X, settings.scale, is_category)
        return one_hot(X, is_category, names) if is_category.any() else (X, None)


def discoveries_of_units(
    test: str,
    table: UnitTable,
    y: Any,
    is_classification: bool | None,
    run: Run,
    *,
    n_jobs: int | None = None,
    **of_rows: Any,
) -> Discoveries:
    """A test of `inference`, by name, for each feature. The best features of the run are candidates of ``needed``.

    ``of_rows`` are groups, weights and covariates of the rows. A unit with several columns has their smallest p-value
    times their number (Bonferroni); q-values are then adjusted over units (Benjamini and Hochberg).
    """
    units, columns = table.units, table.columns
    options = _options_of_test(test, table, is_classification, run)
    options |= {**of_rows, "n_jobs": n_jobs}
    tested = np.ones(table.matrix.shape[1], dtype=bool)
    if test == "needed":
        # The levels of a category add up to 1, so that none is needed given the others: the first one is left out.
        tested[columns.indices[columns.offsets[:-1]][columns.sizes > units.members.sizes]] = False
        best = units.unit_of[run.best(N_CANDIDATES)]
        candidates = [column for unit in best[best >= 0] for column in columns[unit].tolist() if tested[column]]
        options["candidates"] = (np.cumsum(tested) - 1)[candidates]
    matrix = table.matrix if tested.all() else table.matrix[:, tested]
    found: Discoveries = getattr(inference, test)(matrix, y, **options)
    if units.are_features and len(columns.indices) == len(columns):
        return found
    p_values = np.ones(len(tested))
    p_values[tested] = found.p_values
    n_tested = np.add.reduceat(tested[columns.indices].astype(np.int64), columns.offsets[:-1])
    p_values = np.minimum.reduceat(p_values[columns.indices], columns.offsets[:-1]) * n_tested
    p_values = np.minimum(p_values, 1.0)
    return Discoveries(units.per_feature(p_values), units.per_feature(q_values(p_values)))


def _options_of_test(test: str, table: UnitTable, is_classification: bool | None, run: Run) -> dict[str, Any]:
    """Task and seed of a test; an error where features cannot be tested."""
    if is_classification is None:
        raise ParameterError("features can only be tested against one column of classes or numbers: y is none")
    if isinstance(table.matrix, Stored):
        raise ParameterError(
            f"features are tested in memory, and X is in a store: call probewise.inference.{test}(X[:, columns], y) "
            "for columns that fit into memory"
        )
    return {"task": "classification" if is_classification else "regression", "random_state": run.plan.seed}


def pairs_of_units(
    table: UnitTable, y: Any, is_classification: bool | None, run: Run, fdr: float, **options: Any
) -> Pairs:
    """`inference.pairs` for features; the first feature stands for its group, and pairs within a unit do not count."""
    options |= _options_of_test("pairs", table, is_classification, run)
    found = inference.pairs(table.matrix, y, fdr=fdr, **options)
    units, columns = table.units, table.columns
    if units.are_features and len(columns.indices) == len(columns):
        return found
    feature_of = np.full(table.matrix.shape[1], -1)  # features of ``keep`` have no unit
    feature_of[columns.indices] = np.repeat(units.first_features(), columns.sizes)
    pairs = np.sort(feature_of[found.pairs], axis=1)
    first = np.sort(np.unique(pairs, axis=0, return_index=True)[1])
    first = first[(pairs[first, 0] >= 0) & (pairs[first, 0] != pairs[first, 1])]
    return Pairs(pairs[first], found.q_values[first], fdr)


def n_selected_units(selector: Any, units: Units) -> int:
    """The number of selected ranks; an error where it is less than the number of features in ``keep``."""
    # A group has one rank, and so has every feature of ``keep``.
    n_selected: int = selector._n_selected(units.n_units + len(units.kept))
    if n_selected < len(units.kept):
        raise ValueError(
            f"n_features_to_select={selector.n_features_to_select!r} is less than the {len(units.kept)} features of "
            "keep: give at least as many"
        )
    return n_selected


def frame_library(selector: Selector) -> str | None:
    """The data frame library that ``set_output`` chose, None for arrays."""
    # scikit-learn keeps this choice in a private attribute and has no public way to read it.
    config: dict[str, str] = getattr(selector, "_sklearn_output_config", {})
    library = config.get("transform", get_config()["transform_output"])
    return None if library == "default" else library
