"""Pictures by number of features: accuracy and stability in a study, and how many features are enough."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_regressor
from sklearn.utils import check_array

from ..criteria import Scorer
from ..criteria.base import Target
from ..evaluation.sizes import SizeCurve, SubsetScorer, as_sizes, curve_along, fewest_enough, rows_of, splits_for
from ..study import CLASSIFIERS, STABILITY, StudyResult, deviation, select
from ..validation.tables import number_categories
from .drawing import AxesDisplay, Floats, PanelsDisplay, draw_band, draw_sizes, line_style, literal, require_fitted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MEASURES = {"cw_rel": "CW$_{rel}$", "ati": "ATI", "anhi": "ANHI", "nogueira": "Nogueira"}


@dataclass(eq=False, repr=False)
class StudyDisplay(PanelsDisplay):
    """Accuracy by number of features, a line and a shaded deviation for each selector, and stability beneath.

    Parameters
    ----------
    result : StudyResult
        What is drawn.
    classifiers : sequence of str
        Names of the classifiers to show, a panel each.
    stability : {"cw_rel", "ati", "anhi", "nogueira"} or sequence of these, default="cw_rel"
        The measures of stability to show, a panel each.

    Attributes
    ----------
    figure_ : matplotlib.figure.Figure
        The figure, once drawn.
    axes_ : ndarray of matplotlib.axes.Axes
        Its panels: one for each classifier, then one for each measure of stability.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from probewise import BIF
    >>> from probewise.plots import StudyDisplay
    >>> from probewise.study import Study
    >>> study = Study({"bif": BIF(), "all": None}, {"naive Bayes": GaussianNB()}, trials=3, random_state=0)
    >>> display = StudyDisplay.from_study(study.compare(*load_iris(return_X_y=True)))
    >>> [panel.get_ylabel() for panel in display.axes_]
    ['accuracy, naive Bayes', 'stability, CW$_{rel}$']
    """

    result: StudyResult
    _: KW_ONLY
    classifiers: Sequence[str]
    stability: str | Sequence[str] = "cw_rel"

    @classmethod
    def from_study(
        cls,
        result: StudyResult,
        *,
        classifier: str | None = None,
        stability: str | Sequence[str] = "cw_rel",
        figure: Figure | None = None,
    ) -> StudyDisplay:
        """Draw a study: with one of its classifiers, or, by default, with all."""
        classifiers = result.classifiers if classifier is None else (_known(classifier, result),)
        return cls(result, classifiers=classifiers, stability=stability).plot(figure)

    @property
    def _measures(self) -> tuple[str, ...]:
        measures = (self.stability,) if isinstance(self.stability, str) else tuple(self.stability)
        _require_known(self.stability, measures)
        return measures

    def _n_panels(self) -> int:
        return len(self.classifiers) + len(self._measures)

    def _draw(self, panels: Any) -> None:
        result = self.result
        selects = [not _takes_all(result, name) for name in result.selectors]
        styles = [line_style(name, k, is_selection=selects[k]) for k, name in enumerate(result.selectors)]
        for axes, classifier in zip(panels, self.classifiers, strict=False):
            accuracy = _accuracy(result, classifier)
            for mean, error, style in zip(accuracy.mean(axis=0), deviation(accuracy), styles, strict=True):
                draw_band(axes, result.sizes, mean, error, style)
            axes.set_ylabel(f"accuracy, {literal(classifier)}")
        for axes, measure in zip(panels[len(self.classifiers) :], self._measures, strict=True):
            for values, style, is_selection in zip(result.stability()[measure], styles, selects, strict=True):
                if is_selection:
                    axes.plot(result.sizes, values, **style)
            axes.set(ylabel=f"stability, {MEASURES[measure]}")
            axes.set_ylim(top=1.03)
        for axes in panels:
            draw_sizes(axes, result.sizes)
        panels[-1].set_xlabel("number of features")
        panels[0].set_title(f"{len(result.trials)} trials: mean and standard deviation", fontsize="medium")
        self.figure_.legend(handles=panels[0].lines, loc="outside right upper", frameon=False)


def save_study(
    result: StudyResult, path: str | PathLike[str], *, stability: str | Sequence[str] = "cw_rel", title: str = ""
) -> None:
    """Draw the study with all its classifiers to a file: .png, .svg, .pdf and others."""
    StudyDisplay(result, classifiers=result.classifiers, stability=stability).save(path, title=title)


@dataclass(eq=False, repr=False)
class SizeCurveDisplay(AxesDisplay):
    """How good the best 1, 2, ... features are on rows not selected on, and the fewest that are good enough.

    Good enough is a mean within one standard error of the best: the one-standard-error rule. The fewest are ringed.

    Parameters
    ----------
    sizes : ndarray of shape (n_sizes,)
        Numbers of features, ascending.
    means, std_errors : dict of str to ndarray of shape (n_sizes,)
        By name, the mean score at each size, and its standard error; NaN where it is not known.
    measure : str, default="accuracy"
        What the score is, for the label.
    without_selection : iterable of str, default=()
        Names of those that take all features at any size: drawn in grey, with no ring.

    Attributes
    ----------
    enough_ : dict of str to int
        By name, the fewest features that are good enough.
    ax_, figure_ : matplotlib.axes.Axes, matplotlib.figure.Figure
        The axes, once drawn, and their figure.

    References
    ----------
    L. Breiman, J. Friedman, R. Olshen, C. Stone, *Classification and regression trees*, 1984, chapter 3. The standard
    error of a study: C. Nadeau, Y. Bengio, *Inference for the generalization error*, Machine Learning 52, 2003.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from probewise import FSDD
    >>> from probewise.plots import SizeCurveDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> SizeCurveDisplay.from_estimator(FSDD().fit(X, y), X, y).enough_
    {'FSDD': 3}
    """

    sizes: NDArray[np.int64]
    means: Mapping[str, Floats]
    std_errors: Mapping[str, Floats]
    _: KW_ONLY
    measure: str = "accuracy"
    without_selection: Iterable[str] = ()

    @property
    def enough_(self) -> dict[str, int]:
        """The fewest features that are good enough."""
        return {
            name: fewest_enough(self.sizes, mean, self.std_errors[name])
            for name, mean in self.means.items()
            if name not in self.without_selection
        }

    @classmethod
    def from_estimator(
        cls,
        selector: Any,
        X: Any,
        y: Any,
        *,
        classifier: Any = None,
        cv: Any = 5,
        sizes: Iterable[int] | None = None,
        ax: Axes | None = None,
    ) -> SizeCurveDisplay:
        """Cross-validate selection and classifier together: a copy of the selector is fitted anew in each fold.

        Parameters
        ----------
        selector : fitted selector
            It is left as it is. A copy of a DAF keeps no ledger.
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The data.
        y : array-like of shape (n_samples,)
            The target.
        classifier : estimator or str, default=None
            What scores the features: a scikit-learn classifier, a name ("knn", "linear", "svm", "naive_bayes",
            "tree", "forest"), or a regressor, scored by R². None: "knn", on scaled columns.
        cv : int, splitter or iterable of splits, default=5
            Folds; for a number shuffled, and stratified for classes.
        sizes : iterable of int, default=None
            Numbers of features; None: up to 16 from 1 to 100 (or all, or as many as the selector found), evenly spaced
            by ratio.
        ax : matplotlib.axes.Axes, default=None
            The axes to draw into; None: a new figure.
        """
        require_fitted(selector, "get_support", remedy="give a fitted selector of Probewise")
        curve = _size_curve(_as_model(classifier, X), selector, X, y, as_sizes(selector, sizes), cv)
        return cls.from_curve(curve, name=type(selector).__name__, ax=ax)

    @classmethod
    def from_curve(cls, curve: SizeCurve, *, name: str = "ranking", ax: Axes | None = None) -> SizeCurveDisplay:
        """Draw what ``size_curve`` of a selector gave."""
        measure = f"cross-validated {curve.measure}{'' if curve.nested else ', optimistic'}"
        return cls(curve.sizes, {name: curve.mean}, {name: curve.std_error}, measure=measure).plot(ax)

    @classmethod
    def from_study(
        cls, result: StudyResult, *, classifier: str | None = None, ax: Axes | None = None
    ) -> SizeCurveDisplay:
        """Draw a study with one of its classifiers, the first by default.

        Trials share their rows, which the standard error counts in: sqrt((1/n + n_test/n_train) var) for n trials.
        """
        classifier = result.classifiers[0] if classifier is None else _known(classifier, result)
        accuracy = _accuracy(result, classifier)
        errors = deviation(accuracy) * np.sqrt(1 / len(accuracy) + result.n_test / result.n_train)
        return cls(
            result.sizes,
            dict(zip(result.selectors, accuracy.mean(axis=0), strict=True)),
            dict(zip(result.selectors, errors, strict=True)),
            measure=f"accuracy, {classifier}",
            without_selection=[name for name in result.selectors if _takes_all(result, name)],
        ).plot(ax)

    def _draw(self, ax: Axes) -> None:
        enough = self.enough_
        for place, (name, mean) in enumerate(self.means.items()):
            style = line_style(name, place, is_selection=name in enough)
            if name in enough:
                fewest, colour = enough[name], style["color"]
                style["label"] += f": {fewest} are enough"
                height = mean[np.searchsorted(self.sizes, fewest)]
                ax.axvline(fewest, color=colour, linestyle=":", linewidth=1)
                ax.scatter([fewest], [height], s=120, facecolors="none", edgecolors=colour, linewidths=1.5, zorder=3)
            draw_band(ax, self.sizes, mean, self.std_errors[name], style)
        ax.set(xlabel="number of features", ylabel=literal(self.measure))
        ax.set_title("ringed: the fewest within one standard error of the best", fontsize="small")
        ax.legend(frameon=False, fontsize="small")
        draw_sizes(ax, self.sizes)


@dataclass(eq=False, repr=False)
class StabilityDisplay(AxesDisplay):
    """How alike the features are that repeated selections choose, by number of features, a line for each selector.

    Parameters
    ----------
    values : dict of str to dict of int to float
        By name, the stability at each number of features.
    stability : {"cw_rel", "ati", "anhi", "nogueira"}, default="cw_rel"
        The measure, for the label.

    Attributes
    ----------
    ax_, figure_ : matplotlib.axes.Axes, matplotlib.figure.Figure
        The axes, once drawn, and their figure.

    Examples
    --------
    >>> from probewise.plots import StabilityDisplay
    >>> chosen = {"mine": {1: [[0], [0]], 2: [[0, 1], [0, 2]]}}
    >>> display = StabilityDisplay.from_selections(chosen, n_features=5, stability="ati")
    >>> display.ax_.get_ylabel(), display.values["mine"][1]
    ('stability, ATI', 1.0)
    """

    values: Mapping[str, Mapping[int, float]]
    _: KW_ONLY
    stability: str = "cw_rel"

    @classmethod
    def from_study(cls, result: StudyResult, *, stability: str = "cw_rel", ax: Axes | None = None) -> StabilityDisplay:
        """Draw the agreement between the trials of a study; what takes all features is left out."""
        if len(result.trials) < 2:
            raise ValueError("stability is the agreement between trials, and this study has one: conduct more")
        selections = {
            name: {int(size): result.subsets(name, size) for size in result.sizes}
            for name in result.selectors
            if not _takes_all(result, name)
        }
        return cls.from_selections(selections, result.n_features, stability=stability, ax=ax)

    @classmethod
    def from_selections(
        cls,
        selections: Mapping[str, Mapping[int, Any]],
        n_features: int,
        *,
        stability: str = "cw_rel",
        ax: Axes | None = None,
    ) -> StabilityDisplay:
        """Draw the agreement of selections made in any way: name -> number of features -> subsets.

        Subsets are what the functions of `probewise.stability` take: lists of column numbers, or masks.
        """
        _require_known(stability, [stability])
        if not selections:
            raise ValueError("there is no selection to draw")
        measure = STABILITY[stability]
        values = {
            name: {size: measure(subsets[size], n_features) for size in sorted(subsets)}
            for name, subsets in selections.items()
        }
        return cls(values, stability=stability).plot(ax)

    def _draw(self, ax: Axes) -> None:
        for place, (name, values) in enumerate(self.values.items()):
            ax.plot(list(values), list(values.values()), **line_style(name, place))
        ax.set(xlabel="number of features", ylabel=f"stability, {MEASURES[self.stability]}")
        ax.set_ylim(top=1.03)
        ax.legend(frameon=False, fontsize="small")
        draw_sizes(ax, np.unique([size for values in self.values.values() for size in values]))


def _size_curve(model: Any, selector: Any, X: Any, y: Any, sizes: NDArray[np.int64], cv: Any) -> SizeCurve:
    """The model's scores with the features that copies of the selector choose on the training rows of each fold."""
    y = np.asarray(y)
    target = Target.of(y, "regression" if is_regressor(model) else "classification")

    def choose(rows: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        copy = clone(selector)
        if hasattr(copy, "ledger"):
            copy.set_params(ledger=None)  # a ledger holds one run
        return select(copy, rows_of(X, rows), y[rows], sizes.tolist())

    numbers = check_array(number_categories(X)[0], accept_sparse="csr", dtype="numeric", ensure_all_finite=False)
    scorer, splits = SubsetScorer(Scorer(model), type(model).__name__), splits_for(cv, target)
    return curve_along(choose, (numbers, None), y, target, sizes, splits, scorer, nested=True)


def _as_model(classifier: Any, X: Any) -> Any:
    name = "knn" if classifier is None else classifier
    if not isinstance(name, str):
        if not (hasattr(name, "fit") and hasattr(name, "score")):
            raise ValueError(f"classifier={name!r} is no classifier: it needs fit and score")
        return name
    if name not in CLASSIFIERS:
        raise ValueError(f"classifier={name!r} is not known: choose one of {', '.join(CLASSIFIERS)}")
    return CLASSIFIERS[name](not hasattr(X, "tocsr"))


def _known(classifier: str, result: StudyResult) -> str:
    return result.classifiers[result.index_of("classifier", classifier, result.classifiers)]


def _require_known(stability: str | Sequence[str], measures: Sequence[str]) -> None:
    if not measures or not all(measure in STABILITY for measure in measures):
        raise ValueError(f"stability={stability!r} is not known: choose one of {', '.join(STABILITY)}")


def _accuracy(result: StudyResult, classifier: str) -> Floats:
    """Of each trial, selector and size."""
    return result.accuracy[:, :, result.classifiers.index(classifier)]


def _takes_all(result: StudyResult, name: str) -> bool:
    """Whether all features were used at every size: no selection, whose stability would say nothing."""
    return all(len(subset) == result.n_features for size in result.sizes for subset in result.subsets(name, size))
