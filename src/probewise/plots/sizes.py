"""Displays by number of features: accuracy and stability of a study, and how many features are enough."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..evaluation.sizes import SizeCurve, size_curve, suggested_size
from ..study import STABILITY, StudyResult, deviation
from ..validation.parameters import check_parameter
from .drawing import AxesDisplay, Floats, PanelsDisplay, draw_band, draw_sizes, line_style, literal, require_fitted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MEASURES = {"cw_rel": "CW$_{rel}$", "ati": "ATI", "anhi": "ANHI", "nogueira": "Nogueira"}


@dataclass(eq=False, repr=False)
class StudyDisplay(PanelsDisplay):
    """Accuracy and stability of a study by number of features: mean and standard deviation for each selector.

    Parameters
    ----------
    result : StudyResult
        The result of a study.
    classifiers : sequence of str
        Names of the classifiers to show, one panel each.
    stability : {"cw_rel", "ati", "anhi", "nogueira"}, default="cw_rel"
        The stability measure of the last panel.

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
    stability: str = "cw_rel"

    @classmethod
    def from_study(
        cls,
        result: StudyResult,
        *,
        classifier: str | None = None,
        stability: str = "cw_rel",
        figure: Figure | None = None,
    ) -> StudyDisplay:
        """Draw a study with one of its classifiers, by default with all."""
        check_parameter("stability", stability, *STABILITY)
        classifiers = result.classifiers if classifier is None else (_checked_classifier(classifier, result),)
        return cls(result, classifiers=classifiers, stability=stability).plot(figure)

    def _n_panels(self) -> int:
        return len(self.classifiers) + 1

    def _draw(self, panels: Any) -> None:
        result = self.result
        selects = [name in result.selecting for name in result.selectors]
        styles = [line_style(name, k, is_selection=selects[k]) for k, name in enumerate(result.selectors)]
        for axes, classifier in zip(panels, self.classifiers, strict=False):
            accuracy = _accuracy(result, classifier)
            for mean, error, style in zip(accuracy.mean(axis=0), deviation(accuracy), styles, strict=True):
                draw_band(axes, result.sizes, mean, error, style)
            axes.set_ylabel(f"accuracy, {literal(classifier)}")
        for values, style, is_selection in zip(result.stability()[self.stability], styles, selects, strict=True):
            if is_selection:
                panels[-1].plot(result.sizes, values, **style)
        panels[-1].set(ylabel=f"stability, {MEASURES[self.stability]}")
        panels[-1].set_ylim(top=1.03)
        for axes in panels:
            draw_sizes(axes, result.sizes)
        panels[-1].set_xlabel("number of features")
        panels[0].set_title(f"{len(result.trials)} trials: mean and standard deviation", fontsize="medium")
        self.figure_.legend(handles=panels[0].lines, loc="outside right upper", frameon=False)


def save_study(result: StudyResult, path: str | PathLike[str]) -> None:
    """Draw the study with all its classifiers to a file (.png, .svg, .pdf, ...)."""
    StudyDisplay(result, classifiers=result.classifiers).save(path)


@dataclass(eq=False, repr=False)
class SizeCurveDisplay(AxesDisplay):
    """Score of the best 1, 2, ... features on held-out samples, and the smallest number that is enough.

    A number of features is enough if its mean is within one standard error of the best (the one-standard-error rule).
    The smallest such number is marked with a ring.

    Parameters
    ----------
    sizes : ndarray of shape (n_sizes,)
        Numbers of features, ascending.
    means, std_errors : dict of str to ndarray of shape (n_sizes,)
        By name, the mean score at each size and its standard error; NaN if it is not known.
    measure : str, default="accuracy"
        Label of the score.
    without_selection : iterable of str, default=()
        Names of methods that use all features at any size: drawn in gray without a ring.

    References
    ----------
    L. Breiman, J. Friedman, R. Olshen, C. Stone, *Classification and regression trees*, 1984, chapter 3. The standard
    error of a study: C. Nadeau, Y. Bengio, *Inference for the generalization error*, Machine Learning 52, 2003.
    """

    sizes: NDArray[np.int64]
    means: Mapping[str, Floats]
    std_errors: Mapping[str, Floats]
    _: KW_ONLY
    measure: str = "accuracy"
    without_selection: Iterable[str] = ()

    @property
    def enough_(self) -> dict[str, int]:
        """By name, the smallest number of features that is enough."""
        return {
            name: suggested_size(self.sizes, mean, self.std_errors[name])
            for name, mean in self.means.items()
            if name not in self.without_selection
        }

    @classmethod
    def from_estimator(
        cls, selector: Any, X: Any, y: Any, *, cv: Any = 5, sizes: Iterable[int] | None = None, ax: Axes | None = None
    ) -> SizeCurveDisplay:
        """Draw the nested size curve of a fitted selector: a copy of it is fitted in each fold.

        Parameters
        ----------
        selector : fitted selector
            A selector of this library. It is not changed.
        X, y : array-like
            The data of ``fit``.
        cv : int, splitter or iterable of splits, default=5
            Folds; an int means shuffled folds, stratified for classes.
        sizes : iterable of int, default=None
            Numbers of features; None: up to 16 from 1 to 100 (or all features, or as many as the selector ranked),
            evenly spaced by ratio.
        ax : matplotlib.axes.Axes, default=None
            The axes to draw into; None means a new figure.
        """
        require_fitted(selector, "ranking_", "scores_", remedy="give a fitted selector of Probewise")
        curve = size_curve(selector, X, y, sizes=sizes, cv=cv, nested=True)
        return cls.from_curve(curve, name=type(selector).__name__, ax=ax)

    @classmethod
    def from_curve(cls, curve: SizeCurve, *, name: str = "ranking", ax: Axes | None = None) -> SizeCurveDisplay:
        """Draw the result of ``size_curve`` of a selector."""
        measure = f"cross-validated {curve.measure}{'' if curve.nested else ', optimistic'}"
        return cls(curve.sizes, {name: curve.mean}, {name: curve.std_error}, measure=measure).plot(ax)

    @classmethod
    def from_study(
        cls, result: StudyResult, *, classifier: str | None = None, ax: Axes | None = None
    ) -> SizeCurveDisplay:
        """Draw a study with one of its classifiers, the first by default.

        Trials share samples, so the standard error of n trials is sqrt((1/n + n_test/n_train) var).
        """
        classifier = result.classifiers[0] if classifier is None else _checked_classifier(classifier, result)
        accuracy = _accuracy(result, classifier)
        errors = deviation(accuracy) * np.sqrt(1 / len(accuracy) + result.n_test / result.n_train)
        return cls(
            result.sizes,
            dict(zip(result.selectors, accuracy.mean(axis=0), strict=True)),
            dict(zip(result.selectors, errors, strict=True)),
            measure=f"accuracy, {classifier}",
            without_selection=[name for name in result.selectors if name not in result.selecting],
        ).plot(ax)

    def _draw(self, ax: Axes) -> None:
        enough = self.enough_
        for index, (name, mean) in enumerate(self.means.items()):
            style = line_style(name, index, is_selection=name in enough)
            if name in enough:
                size, color = enough[name], style["color"]
                style["label"] += f": {size} {'is' if size == 1 else 'are'} enough"
                score = mean[np.searchsorted(self.sizes, size)]
                ax.axvline(size, color=color, linestyle=":", linewidth=1)
                ax.scatter([size], [score], s=120, facecolors="none", edgecolors=color, linewidths=1.5, zorder=3)
            draw_band(ax, self.sizes, mean, self.std_errors[name], style)
        ax.set(xlabel="number of features", ylabel=literal(self.measure))
        ax.set_title("ring: smallest size within one standard error of the best", fontsize="small")
        ax.legend(frameon=False, fontsize="small")
        draw_sizes(ax, self.sizes)


@dataclass(eq=False, repr=False)
class StabilityDisplay(AxesDisplay):
    """Stability of repeated selections by number of features, one line for each selector.

    Parameters
    ----------
    values : dict of str to dict of int to float
        By name, the stability at each number of features.
    stability : {"cw_rel", "ati", "anhi", "nogueira"}, default="cw_rel"
        The stability measure.
    """

    values: Mapping[str, Mapping[int, float]]
    _: KW_ONLY
    stability: str = "cw_rel"

    @classmethod
    def from_study(cls, result: StudyResult, *, stability: str = "cw_rel", ax: Axes | None = None) -> StabilityDisplay:
        """Draw the stability over the trials of a study, without methods that use all features."""
        if len(result.trials) < 2:
            raise ValueError("stability needs at least two trials, and this study has one: run more trials")
        selections = {
            name: {int(size): result.subsets(name, size) for size in result.sizes} for name in result.selecting
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
        """Draw the stability of any selections: name -> number of features -> subsets.

        Subsets are lists of column numbers, or masks, as in `probewise.stability`.
        """
        check_parameter("stability", stability, *STABILITY)
        if not selections:
            raise ValueError("selections is empty: give at least one")
        measure = STABILITY[stability]
        values = {
            name: {size: measure(subsets[size], n_features) for size in sorted(subsets)}
            for name, subsets in selections.items()
        }
        return cls(values, stability=stability).plot(ax)

    def _draw(self, ax: Axes) -> None:
        for index, (name, values) in enumerate(self.values.items()):
            ax.plot(list(values), list(values.values()), **line_style(name, index))
        ax.set(xlabel="number of features", ylabel=f"stability, {MEASURES[self.stability]}")
        ax.set_ylim(top=1.03)
        ax.legend(frameon=False, fontsize="small")
        draw_sizes(ax, np.unique([size for values in self.values.values() for size in values]))


def _checked_classifier(classifier: str, result: StudyResult) -> str:
    return result.classifiers[result.index_of("classifier", classifier, result.classifiers)]


def _accuracy(result: StudyResult, classifier: str) -> Floats:
    """Accuracy with one classifier: array (trials, selectors, sizes)."""
    return result.accuracy[:, :, result.classifiers.index(classifier)]
