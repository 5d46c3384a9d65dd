"""Displays in scikit-learn's manner, drawn with matplotlib: made from a result, drawn by ``plot``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_regressor
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from .checks.tables import number_categories
from .criteria import Scorer
from .criteria.base import Target
from .probing.interactions import CHANCE, FEWEST_IN_A_CELL, Interactions, interactions_of
from .probing.progress import shown
from .selectors.size_curve import Judge, SizeCurve, as_sizes, curve_along, fewest_enough, rows_of, splits_for
from .study import CLASSIFIERS, STABILITY, StudyResult, deviation, select

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, told apart by the colour-blind too; yellow is too faint for a line.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
LINES = ("-", "--", ":", "-.")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
MEASURES = {"cw_rel": "CW$_{rel}$", "ati": "ATI", "anhi": "ANHI", "nogueira": "Nogueira"}
DECADE = 10
WIDTH, HEIGHT = 7.0, 2.6
ROW = 0.2

Floats = NDArray[np.float64]


class StudyDisplay:
    """Accuracy by number of features, a line and a shaded deviation for each selector, and stability beneath.

    Parameters
    ----------
    result : the `StudyResult`.
    classifiers : names of the classifiers to show, a panel each.
    stability : the measure to show: "cw_rel", "ati", "anhi" or "nogueira"; or several, a panel each.

    Attributes
    ----------
    figure_ : the matplotlib figure, once drawn.
    axes_ : array of its panels: one for each classifier, then one for each measure of stability.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
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

    figure_: Figure
    axes_: Any

    def __init__(
        self, result: StudyResult, *, classifiers: Sequence[str], stability: str | Sequence[str] = "cw_rel"
    ) -> None:
        self.result = result
        self.classifiers = classifiers
        self.stability = stability

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
        if classifier is not None:
            _require_classifier(result, classifier)
        if not _measures(stability) or not all(measure in STABILITY for measure in _measures(stability)):
            raise ValueError(f"stability={stability!r} is not known: choose one of {', '.join(STABILITY)}")
        classifiers = result.classifiers if classifier is None else (classifier,)
        return cls(result, classifiers=classifiers, stability=stability).plot(figure)

    def plot(self, figure: Figure | None = None) -> StudyDisplay:
        """Draw into the figure, or into a new one of pyplot's."""
        measures = _measures(self.stability)
        n_panels = len(self.classifiers) + len(measures)
        if figure is None:
            figure = _pyplot().figure(figsize=(WIDTH, HEIGHT * n_panels))
        figure.set_layout_engine("constrained")
        self.figure_ = figure
        self.axes_ = figure.subplots(n_panels, 1, sharex=True)
        for axes, classifier in zip(self.axes_, self.classifiers, strict=False):
            self._draw_accuracy(axes, classifier)
        for axes, measure in zip(self.axes_[len(self.classifiers) :], measures, strict=True):
            self._draw_stability(axes, measure)
        self.axes_[-1].set_xlabel("number of features")
        self._finish(self.axes_)
        return self

    def _draw_accuracy(self, axes: Axes, classifier: str) -> None:
        accuracy = self.result.accuracy[:, :, self.result.classifiers.index(classifier)]
        means, deviations = accuracy.mean(axis=0), deviation(accuracy)
        for place in range(len(self.result.selectors)):
            _draw_band(axes, self.result.sizes, means[place], deviations[place], self._look(place))
        axes.set_ylabel(f"accuracy, {_literal(classifier)}")

    def _draw_stability(self, axes: Axes, measure: str) -> None:
        for place, values in enumerate(self.result.stability()[measure]):
            if not self._takes_all(place):
                axes.plot(self.result.sizes, values, **self._look(place))
        axes.set_ylabel(f"stability, {MEASURES[measure]}")
        axes.set_ylim(top=1.03)

    def _finish(self, panels: Any) -> None:
        for axes in panels:
            _space_sizes(axes, self.result.sizes)
        trials = len(self.result.trials)
        panels[0].set_title(f"{trials} trials: mean and standard deviation", fontsize="medium")
        self.figure_.legend(handles=panels[0].lines, loc="outside right upper", frameon=False)

    def _look(self, place: int) -> dict[str, Any]:
        return _look(self.result.selectors[place], place, is_selection=not self._takes_all(place))

    def _takes_all(self, place: int) -> bool:
        return _takes_all(self.result, self.result.selectors[place])


def save_study(
    result: StudyResult, path: str | PathLike[str], *, stability: str | Sequence[str] = "cw_rel", title: str = ""
) -> None:
    """Draw the study with all its classifiers to a file: .png, .svg, .pdf and others. No window system is asked."""
    path = require_picture_path(path)
    n_panels = len(result.classifiers) + len(_measures(stability))
    figure = matplotlib_figure()(figsize=(WIDTH, HEIGHT * n_panels))
    StudyDisplay.from_study(result, stability=stability, figure=figure)
    if title:
        figure.suptitle(_literal(title))
    figure.savefig(path, dpi=150)


class ConvergenceDisplay:
    """C and relative C2 by number of probes: mean over runs and shaded deviation, with what C2 does on any data.

    Parameters
    ----------
    histories : dict of name to a list of ``DAF.history_``, one for each run; all runs of a name look at the same
        numbers of probes.

    Attributes
    ----------
    figure_ : the matplotlib figure, once drawn.
    axes_ : array of its two panels.

    References
    ----------
    P. Somol, J. Grim, J. Filip, P. Pudil, *On stopping rules in dependency-aware feature ranking*, CIARP 2013, figures
    1 and 2.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from probewise import DAF
    >>> from probewise.datasets import make_madelon
    >>> from probewise.plots import ConvergenceDisplay
    >>> from probewise.stopping import MaxProbes
    >>> data = make_madelon(100, 30, random_state=0)
    >>> daf = DAF(stop=MaxProbes(2000), random_state=0).fit(data.X, data.y)
    >>> [panel.get_ylabel() for panel in ConvergenceDisplay.from_estimator(daf).axes_]
    ['C, places', 'C2 / first C2']
    """

    figure_: Figure
    axes_: Any

    def __init__(self, histories: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        self.histories = histories

    @classmethod
    def from_estimator(cls, daf: Any, *, name: str = "DAF", figure: Figure | None = None) -> ConvergenceDisplay:
        """Draw the run of a fitted DAF."""
        _require_fitted(daf, "history_")
        looks = len(daf.history_["probes"])
        if looks < 3:
            raise ValueError(
                f"C and C2 are drawn from the third look on, and this run of {daf.n_probes_:,} probes had {looks}: "
                f"make more probes, or look more often (check_every={daf.check_every})"
            )
        return cls({name: [daf.history_]}).plot(figure)

    def plot(self, figure: Figure | None = None) -> ConvergenceDisplay:
        """Draw into the figure, or into a new one of pyplot's."""
        if figure is None:
            figure = _pyplot().figure(figsize=(WIDTH, 2 * HEIGHT))
        figure.set_layout_engine("constrained")
        self.figure_ = figure
        self.axes_ = figure.subplots(2, 1, sharex=True)
        panels = (("order_change", "C, places"), ("relative_change", "C2 / first C2"))
        for axes, (measure, label) in zip(self.axes_, panels, strict=True):
            for colour, (name, runs) in zip(COLOURS, self.histories.items(), strict=False):
                self._draw(axes, colour, _literal(name), runs, measure)
            axes.set(ylabel=label, xscale="log", yscale="log")
            axes.grid(alpha=0.3)
            _number_plainly(axes.xaxis)
            _number_plainly(axes.yaxis)
        probes = np.asarray(next(iter(self.histories.values()))[0]["probes"])
        expected = self.axes_[1].plot(probes[1:], expected_change(len(probes))[1:], color="0.3", linestyle=":")[0]
        expected.set_label("expected on any data")
        self.axes_[1].set_xlabel("number of probes")
        self.axes_[1].legend(frameon=False, fontsize="small")
        return self

    def _draw(self, axes: Axes, colour: str, name: str, runs: Sequence[Mapping[str, Any]], measure: str) -> None:
        probes, values = np.asarray(runs[0]["probes"]), np.array([run[measure] for run in runs], dtype=np.float64)
        mean, spread = values.mean(axis=0), deviation(values) if len(values) > 1 else np.zeros(len(probes))
        _draw_band(axes, probes, mean, spread, {"color": colour, "label": name})


def expected_change(n_looks: int) -> NDArray[np.float64]:
    """Relative C2 at each look when coefficients are averages over equal groups of probes; NaN at the first.

    Between looks k and k + 1 it is sqrt(1 + 1/k) / (k + 1) over its value at k = 1.
    """
    k = np.arange(1, n_looks)
    return np.append(np.nan, np.sqrt(2 * (1 + 1 / k)) / (k + 1))


def save_convergence(histories: Mapping[str, Sequence[Mapping[str, Any]]], path: str | PathLike[str]) -> None:
    """Draw `ConvergenceDisplay` to a file. No window system is asked."""
    path = require_picture_path(path)
    figure = matplotlib_figure()(figsize=(WIDTH, 2 * HEIGHT))
    ConvergenceDisplay(histories).plot(figure)
    figure.savefig(path, dpi=150)


class RankingDisplay:
    """The scores of the best features, the best on top, with one standard error to each side where it is known.

    Parameters
    ----------
    names : of the features, best first.
    scores : array, the score of each.
    std_errors : array, the standard error of each score; None: not known.
    measure : what the score is.

    Attributes
    ----------
    ax_ : the matplotlib axes, once drawn.
    figure_ : its figure.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import load_iris
    >>> from probewise import FSDD
    >>> from probewise.plots import RankingDisplay
    >>> iris = load_iris(as_frame=True)
    >>> display = RankingDisplay.from_estimator(FSDD().fit(iris.data, iris.target), top=2)
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['petal length (cm)', 'petal width (cm)']
    """

    ax_: Axes
    figure_: Figure

    def __init__(
        self, names: Sequence[str], scores: Floats, *, std_errors: Floats | None = None, measure: str = "score"
    ) -> None:
        self.names = names
        self.scores = scores
        self.std_errors = std_errors
        self.measure = measure

    @classmethod
    def from_estimator(cls, selector: Any, *, top: int = 30, ax: Axes | None = None) -> RankingDisplay:
        """Draw the first ``top`` features of a fitted selector."""
        _require_fitted(selector, "scores_", "ranking_")
        best = _best(selector, top)
        errors = getattr(selector, "std_errors_", None)
        measure = getattr(selector, "coefficient", f"score of {type(selector).__name__}")
        return cls(
            _names(selector, best),
            selector.scores_[best],
            std_errors=None if errors is None else errors[best],
            measure=measure.upper() if hasattr(selector, "coefficient") else measure,
        ).plot(ax)

    def plot(self, ax: Axes | None = None) -> RankingDisplay:
        """Draw into the axes, or into a new figure of pyplot's."""
        self.ax_, self.figure_ = _axes(ax, height=1 + ROW * len(self.names))
        places = np.arange(len(self.names))
        self.ax_.errorbar(self.scores, places, xerr=self.std_errors, fmt="o", color=COLOURS[0], markersize=4)
        self.ax_.set_yticks(places, [_literal(shown(name)) for name in self.names])
        self.ax_.set_ylim(len(places) - 0.5, -0.5)
        self.ax_.set(
            ylabel="feature", xlabel=self.measure + (" ± standard error" if self.std_errors is not None else "")
        )
        self.ax_.grid(alpha=0.3)
        return self


class SizeCurveDisplay:
    """How good the best 1, 2, ... features are on rows not selected on, and the fewest that are good enough.

    Good enough is a mean within one standard error of the best: the one-standard-error rule. The fewest are ringed.

    Parameters
    ----------
    sizes : array of the numbers of features, ascending.
    means : dict of name to array, the mean score at each size.
    std_errors : dict of name to array, its standard error; NaN: not known.
    measure : what the score is.
    without_selection : names of those that take all features at any size: drawn in grey, with no ring.

    Attributes
    ----------
    enough_ : dict of name to the fewest features that are good enough.
    ax_ : the matplotlib axes, once drawn.
    figure_ : its figure.

    References
    ----------
    L. Breiman, J. Friedman, R. Olshen, C. Stone, *Classification and regression trees*, 1984, chapter 3. The standard
    error of a study: C. Nadeau, Y. Bengio, *Inference for the generalization error*, Machine Learning 52, 2003.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import load_iris
    >>> from probewise import FSDD
    >>> from probewise.plots import SizeCurveDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> SizeCurveDisplay.from_estimator(FSDD().fit(X, y), X, y).enough_
    {'FSDD': 3}
    """

    ax_: Axes
    figure_: Figure

    def __init__(
        self,
        sizes: NDArray[np.int64],
        means: Mapping[str, Floats],
        std_errors: Mapping[str, Floats],
        *,
        measure: str = "accuracy",
        without_selection: Iterable[str] = (),
    ) -> None:
        self.sizes = sizes
        self.means = means
        self.std_errors = std_errors
        self.measure = measure
        self.without_selection = without_selection

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
        selector : a fitted selector; it is left as it is. A copy of a DAF keeps no ledger.
        X, y : the data.
        classifier : what judges the features: a scikit-learn classifier, a name ("knn", "linear", "svm",
            "naive_bayes", "tree", "forest"), or a regressor, judged by R². None: "knn", on scaled columns.
        cv : folds: a number (shuffled, stratified for classes), a splitter, or an iterable of splits.
        sizes : numbers of features; None: up to 16 from 1 to 100 (or all, or as many as the selector found), evenly
            spaced by ratio.
        ax : the axes to draw into; None: a new figure.
        """
        _require_fitted(selector, "get_support")
        curve = _judged_by(_judge(classifier, X), selector, X, y, as_sizes(selector, sizes), cv)
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
        classifier = result.classifiers[0] if classifier is None else classifier
        _require_classifier(result, classifier)
        accuracy = result.accuracy[:, :, result.classifiers.index(classifier)]
        errors = deviation(accuracy) * np.sqrt(1 / len(accuracy) + result.n_test / result.n_train)
        return cls(
            result.sizes,
            dict(zip(result.selectors, accuracy.mean(axis=0), strict=True)),
            dict(zip(result.selectors, errors, strict=True)),
            measure=f"accuracy, {classifier}",
            without_selection=[name for name in result.selectors if _takes_all(result, name)],
        ).plot(ax)

    def plot(self, ax: Axes | None = None) -> SizeCurveDisplay:
        """Draw into the axes, or into a new figure of pyplot's."""
        self.ax_, self.figure_ = _axes(ax)
        enough = self.enough_
        for place, (name, mean) in enumerate(self.means.items()):
            look = _look(name, place, is_selection=name in enough)
            if name in enough:
                look["label"] += f": {enough[name]} are enough"
                self._ring(enough[name], mean[np.flatnonzero(self.sizes == enough[name])[0]], look["color"])
            _draw_band(self.ax_, self.sizes, mean, self.std_errors[name], look)
        self.ax_.set(xlabel="number of features", ylabel=_literal(self.measure))
        self.ax_.set_title("ringed: the fewest within one standard error of the best", fontsize="small")
        self.ax_.legend(frameon=False, fontsize="small")
        _space_sizes(self.ax_, self.sizes)
        return self

    def _ring(self, size: int, mean: float, colour: str) -> None:
        self.ax_.axvline(size, color=colour, linestyle=":", linewidth=1)
        self.ax_.scatter([size], [mean], s=120, facecolors="none", edgecolors=colour, linewidths=1.5, zorder=3)


class StabilityDisplay:
    """How alike the features are that repeated selections choose, by number of features, a line for each selector.

    Parameters
    ----------
    values : dict of name to a dict of number of features to stability.
    stability : the measure: "cw_rel", "ati", "anhi" or "nogueira".

    Attributes
    ----------
    ax_ : the matplotlib axes, once drawn.
    figure_ : its figure.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from probewise.plots import StabilityDisplay
    >>> chosen = {"mine": {1: [[0], [0]], 2: [[0, 1], [0, 2]]}}
    >>> display = StabilityDisplay.from_selections(chosen, n_features=5, stability="ati")
    >>> display.ax_.get_ylabel(), display.values["mine"][1]
    ('stability, ATI', 1.0)
    """

    ax_: Axes
    figure_: Figure

    def __init__(self, values: Mapping[str, Mapping[int, float]], *, stability: str = "cw_rel") -> None:
        self.values = values
        self.stability = stability

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
        if stability not in STABILITY:
            raise ValueError(f"stability={stability!r} is not known: choose one of {', '.join(STABILITY)}")
        if not selections:
            raise ValueError("there is no selection to draw")
        measure = STABILITY[stability]
        values = {
            name: {size: measure(by_size[size], n_features) for size in sorted(by_size)}
            for name, by_size in selections.items()
        }
        return cls(values, stability=stability).plot(ax)

    def plot(self, ax: Axes | None = None) -> StabilityDisplay:
        """Draw into the axes, or into a new figure of pyplot's."""
        self.ax_, self.figure_ = _axes(ax)
        for place, (name, by_size) in enumerate(self.values.items()):
            self.ax_.plot(list(by_size), list(by_size.values()), **_look(name, place))
        self.ax_.set(xlabel="number of features", ylabel=f"stability, {MEASURES[self.stability]}")
        self.ax_.set_ylim(top=1.03)
        self.ax_.legend(frameon=False, fontsize="small")
        _space_sizes(self.ax_, np.unique([size for by_size in self.values.values() for size in by_size]))
        return self


class InteractionDisplay:
    """Which of the best features help each other in a probe, and which stand in for each other: a map of pairs.

    The contrast of a pair is mean J of the probes with both, less with only the one, less with only the other, plus
    with neither. J is less the mean of probes of like size, since larger probes hold more pairs and are better anyway.
    A dot is a contrast that luck of the draw would not give (5 % for all pairs together); grey was not probed enough.

    Parameters
    ----------
    names : of the features, best first.
    contrast : array (n_features, n_features).
    std_errors, p_values : arrays of the same shape; p-values adjusted for the number of pairs.

    Attributes
    ----------
    ax_ : the matplotlib axes, once drawn.
    figure_ : its figure.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from probewise import DAF
    >>> from probewise.datasets import make_madelon
    >>> from probewise.plots import InteractionDisplay
    >>> from probewise.stopping import MaxProbes
    >>> data = make_madelon(100, 30, random_state=0)
    >>> daf = DAF(stop=MaxProbes(1000), random_state=0).fit(data.X, data.y)
    >>> InteractionDisplay.from_estimator(daf, top=5).contrast.shape
    (5, 5)
    """

    ax_: Axes
    figure_: Figure

    def __init__(self, names: Sequence[str], contrast: Floats, std_errors: Floats, p_values: Floats) -> None:
        self.names = names
        self.contrast = contrast
        self.std_errors = std_errors
        self.p_values = p_values

    @classmethod
    def from_estimator(cls, daf: Any, *, top: int = 15, ax: Axes | None = None) -> InteractionDisplay:
        """Draw the pairs among the first ``top`` features of a fitted DAF, replayed from its ledger."""
        _require_fitted(daf, "ledger_", "plan_")
        found: Interactions = interactions_of(daf, top)
        if not np.isfinite(found.contrast).any():
            raise ValueError(
                f"no pair of the top {len(found.names)} features was together, apart and away in {FEWEST_IN_A_CELL} "
                f"probes each: more or larger probes would tell (there were {daf.n_probes_:,})"
            )
        return cls(_names(daf, found.features), found.contrast, found.std_error, found.p_adjusted).plot(ax)

    def plot(self, ax: Axes | None = None) -> InteractionDisplay:
        """Draw into the axes, or into a new figure of pyplot's."""
        side = 2.2 + 1.3 * ROW * len(self.names)
        self.ax_, self.figure_ = _axes(ax, height=side, width=side + 1)
        from matplotlib.colors import LinearSegmentedColormap

        colours = LinearSegmentedColormap.from_list("interaction", [COLOURS[0], "white", COLOURS[1]])
        limit = float(np.nanmax(np.abs(self.contrast), initial=0)) or 1.0
        self.ax_.set_facecolor("0.85")
        image = self.ax_.imshow(self.contrast, cmap=colours, vmin=-limit, vmax=limit)
        first, second = np.nonzero(self.is_clear())
        self.ax_.plot(second, first, linestyle="none", marker=".", color="black", markersize=4)
        places, names = range(len(self.names)), [_literal(shown(name)) for name in self.names]
        self.ax_.set_xticks(places, names, rotation=90)
        self.ax_.set_yticks(places, names)
        self.ax_.set(xlabel="feature", ylabel="feature")
        self.ax_.set_title("orange: worth more together; blue: worth less", fontsize="small")
        self.figure_.colorbar(image, ax=self.ax_, shrink=0.8, label="contrast of J")
        return self

    def is_clear(self) -> NDArray[np.bool_]:
        """Which contrasts are further from 0 than luck, at 5 % for all pairs together (Holm)."""
        with np.errstate(invalid="ignore"):
            return self.p_values < CHANCE


def require_picture_path(path: str | PathLike[str]) -> Path:
    """The path, if a picture can be written there: a known format, in a folder that exists."""
    path = Path(path)
    figure = matplotlib_figure()()
    formats = [f".{ending}" for ending in figure.canvas.get_supported_filetypes()]
    if path.suffix.lower() not in formats:
        raise ValueError(f"a picture cannot be written to {path}: name it {', '.join(formats[:-1])} or {formats[-1]}")
    if not path.parent.is_dir():
        raise ValueError(f"{path} cannot be written: the folder {path.parent} does not exist")
    if path.is_dir():
        raise ValueError(f"{path} cannot be written: it is a folder")
    return path


def _judged_by(judge: Any, selector: Any, X: Any, y: Any, sizes: NDArray[np.int64], cv: Any) -> SizeCurve:
    """The curve of copies of the selector, one for the training rows of each fold, in the eyes of a classifier."""
    y = np.asarray(y)
    target = Target.of(y, "regression" if is_regressor(judge) else "classification")

    def choose(rows: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        return select(_unkept(selector), rows_of(X, rows), y[rows], sizes.tolist())

    return curve_along(
        choose,
        _numbers(X),
        None,
        y,
        target,
        sizes=sizes,
        splits=splits_for(cv, target),
        judge=Judge(Scorer(judge), type(judge).__name__),
        nested=True,
    )


def _numbers(X: Any) -> Any:
    return check_array(number_categories(X)[0], accept_sparse="csr", dtype="numeric", ensure_all_finite=False)


def _judge(classifier: Any, X: Any) -> Any:
    name = "knn" if classifier is None else classifier
    if not isinstance(name, str):
        if not (hasattr(name, "fit") and hasattr(name, "score")):
            raise ValueError(f"classifier={name!r} is no classifier: it needs fit and score")
        return name
    if name not in CLASSIFIERS:
        raise ValueError(f"classifier={name!r} is not known: choose one of {', '.join(CLASSIFIERS)}")
    return CLASSIFIERS[name](not hasattr(X, "tocsr"))


def _unkept(selector: Any) -> Any:
    """A copy that writes no ledger, which holds one run."""
    copy = clone(selector)
    return copy.set_params(ledger=None) if hasattr(copy, "ledger") else copy


def _require_fitted(selector: Any, *attributes: str) -> None:
    """Refuse a selector that is not fitted, or has not what is to be drawn."""
    check_is_fitted(selector)
    missing = [name for name in attributes if not hasattr(selector, name)]
    if missing:
        remedy = (
            "give a fitted DAF"
            if {"history_", "ledger_", "plan_"} & set(missing)
            else "give a fitted selector of Probewise"
        )
        raise ValueError(f"{type(selector).__name__} has no {' and no '.join(missing)}: {remedy}")


def _require_classifier(result: StudyResult, classifier: str) -> None:
    if classifier not in result.classifiers:
        known = ", ".join(result.classifiers)
        raise ValueError(f"classifier={classifier!r} is not in this study: choose one of {known}")


def _best(selector: Any, top: int) -> NDArray[np.int64]:
    if not isinstance(top, int | np.integer) or top < 1:
        raise ValueError(f"top={top!r} must be a whole number of at least 1")
    return np.argsort(selector.ranking_, kind="stable")[:top]


def _names(selector: Any, columns: NDArray[np.int64]) -> list[str]:
    """Names of the columns, or their numbers."""
    return [str(name) for name in getattr(selector, "feature_names_in_", np.arange(selector.n_features_in_))[columns]]


def _takes_all(result: StudyResult, name: str) -> bool:
    """Whether all features were used at every size: no selection, whose stability would say nothing."""
    return all(len(subset) == result.n_features for size in result.sizes for subset in result.subsets(name, size))


def _look(name: str, place: int, *, is_selection: bool = True) -> dict[str, Any]:
    if not is_selection:
        return {"label": _literal(name), "color": "0.45", "linestyle": "--"}
    turn, colour = divmod(place, len(COLOURS))
    return {
        "label": _literal(name),
        "color": COLOURS[colour],
        "linestyle": LINES[turn % len(LINES)],
        "marker": MARKERS[colour],
        "markersize": 4,
    }


def _draw_band(axes: Axes, places: Any, mean: Floats, spread: Floats, look: dict[str, Any]) -> None:
    axes.plot(places, mean, **look)
    axes.fill_between(places, mean - spread, mean + spread, color=look["color"], alpha=0.15, linewidth=0)


def _space_sizes(axes: Axes, sizes: NDArray[np.int64]) -> None:
    """A grid, and numbers of features spaced by ratio where they span more than a decade."""
    axes.grid(alpha=0.3)
    if sizes[-1] > DECADE * sizes[0]:
        axes.set_xscale("log")
        _number_plainly(axes.xaxis)


def _number_plainly(axis: Any) -> None:
    """1, 2, 5, 10, ... on a logarithmic axis."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def _axes(ax: Axes | None, *, height: float = 1.5 * HEIGHT, width: float = WIDTH) -> tuple[Axes, Any]:
    """The axes and their figure; where there are none, those of a new one of pyplot's."""
    if ax is None:
        ax = _pyplot().figure(figsize=(width, height), layout="constrained").subplots()
    return ax, ax.figure


def _measures(stability: str | Sequence[str]) -> tuple[str, ...]:
    return (stability,) if isinstance(stability, str) else tuple(stability)


def _pyplot() -> Any:
    matplotlib_figure()
    import matplotlib.pyplot as plt

    return plt


def matplotlib_figure() -> type[Figure]:
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise ImportError("drawing needs the report extra: pip install 'probewise[report]'") from None
    return Figure


def _literal(name: str) -> str:
    """The name with nothing matplotlib would read as mathematics, nor hide from a legend."""
    name = name.replace("$", r"\$")
    return f" {name}" if name.startswith("_") else name
