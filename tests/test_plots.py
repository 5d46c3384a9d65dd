"""Displays: the drawn numbers, file formats, and errors."""

import sys

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectKBest
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from probewise import BIF, CFS, DAF, EFS, FSDD, MRMR, SFFS
from probewise.datasets import make_madelon
from probewise.evaluation import size_curve
from probewise.plots import (
    ConvergenceDisplay,
    RankingDisplay,
    SizeCurveDisplay,
    StabilityDisplay,
    StudyDisplay,
    require_picture_path,
    save_study,
)
from probewise.plots.drawing import COLORS
from probewise.stopping import MaxProbes
from probewise.study import Study

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def _no_figures_left():
    yield
    plt.close("all")


def study(selectors, sizes, trials=3):
    data = make_madelon(80, 30, random_state=0)
    classifiers = {"nb": GaussianNB(), "1-nn": KNeighborsClassifier(1)}
    return Study(selectors, classifiers, trials=trials, sizes=sizes, random_state=0).compare(data.X, data.y)


@pytest.fixture(scope="module")
def result():
    return study({"bif": BIF(), "sffs": SFFS(criterion="linear", floating=False), "all": None}, [1, 2, 5, 11])


def test_a_study_has_lines_of_means_and_bands_of_standard_deviations(result):
    display = StudyDisplay.from_study(result)
    assert [axes.get_ylabel() for axes in display.axes_] == ["accuracy, nb", "accuracy, 1-nn", "stability, CW$_{rel}$"]
    assert display.axes_[-1].get_xlabel() == "number of features"
    for c, axes in enumerate(display.axes_[:2]):
        assert [line.get_label() for line in axes.lines] == ["bif", "sffs", "all"]
        for s, (line, shade) in enumerate(zip(axes.lines, axes.collections, strict=True)):
            values = result.accuracy[:, s, c]
            np.testing.assert_array_equal(line.get_xdata(), [1, 2, 5, 11])
            np.testing.assert_allclose(line.get_ydata(), values.mean(axis=0))
            heights = shade.get_paths()[0].vertices[:, 1]
            assert heights.max() == pytest.approx((values.mean(axis=0) + values.std(axis=0, ddof=1)).max())
            assert heights.min() == pytest.approx((values.mean(axis=0) - values.std(axis=0, ddof=1)).min())
    stability = display.axes_[-1].lines
    assert [line.get_label() for line in stability] == ["bif", "sffs"]
    np.testing.assert_allclose([line.get_ydata() for line in stability], result.stability()["cw_rel"][:2])


def test_one_classifier_and_another_measure(result):
    display = StudyDisplay.from_study(result, classifier="1-nn", stability="ati")
    assert [axes.get_ylabel() for axes in display.axes_] == ["accuracy, 1-nn", "stability, ATI"]
    np.testing.assert_allclose(display.axes_[1].lines[0].get_ydata(), result.stability()["ati"][0])
    with pytest.raises(ValueError, match="classifier='svm' is not in this study: choose one of nb, 1-nn"):
        StudyDisplay.from_study(result, classifier="svm")
    with pytest.raises(ValueError, match="stability='calm' must be 'cw_rel', 'ati'"):
        StudyDisplay.from_study(result, stability="calm")


def test_sizes_have_a_logarithmic_axis_beyond_a_decade(result):
    assert StudyDisplay.from_study(result).axes_[0].get_xscale() == "log"
    assert StudyDisplay.from_study(study({"bif": BIF()}, [2, 5, 20])).axes_[0].get_xscale() == "linear"


def test_every_selector_looks_different():
    many = {f"_{k}": BIF() for k in range(len(COLORS) + 3)}
    display = StudyDisplay.from_study(study(many, [1, 2], trials=2), classifier="nb")
    looks = {(line.get_color(), line.get_linestyle()) for line in display.axes_[0].lines}
    assert len(looks) == len(many)
    assert [text.get_text().strip() for text in display.figure_.legends[0].get_texts()] == list(many)


def test_one_trial_and_dollar_signs_can_be_drawn(tmp_path):
    result = study({"costs $x_$ and $": BIF()}, [1, 2], trials=1)
    save_study(result, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("name", "start"), [("p.png", b"\x89PNG"), ("p.svg", b"<?xml"), ("p.pdf", b"%PDF")])
def test_pictures_are_written_without_a_window_system(result, tmp_path, name, start):
    save_study(result, tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(start)
    assert plt.get_fignums() == []


def test_paths_that_cannot_be_written_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"p\.txt: name it .*\.png"):
        require_picture_path(tmp_path / "p.txt")
    with pytest.raises(ValueError, match="does not exist"):
        require_picture_path(tmp_path / "no" / "p.png")
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(ValueError, match="it is a folder"):
        require_picture_path(tmp_path / "folder.png")


def test_without_matplotlib_the_error_has_the_install_command(monkeypatch):
    for name in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError) as missing:
        require_picture_path("p.png")
    assert str(missing.value) == "plots need the report extra: pip install 'probewise[report]'"


# ---- ranking


@pytest.fixture(scope="module")
def table():
    data = make_madelon(100, 30, random_state=0)
    return pd.DataFrame(data.X, columns=data.feature_names), data.y


@pytest.fixture(scope="module")
def daf(table):
    return DAF(5, criterion="linear", stop=MaxProbes(2000), max_probe_size=10, random_state=0).fit(*table)


def test_a_ranking_shows_scores_errors_and_names(daf):
    display = RankingDisplay.from_estimator(daf, top=7)
    best = np.argsort(daf.ranking_)[:7]
    points, _, (bars,) = display.ax_.containers[0]
    scores = (daf.scores_ - daf.scores_.mean())[best]
    np.testing.assert_allclose(points.get_xdata(), scores)
    np.testing.assert_allclose(
        [ends[:, 0] for ends in bars.get_segments()],
        np.column_stack([scores - daf.std_errors_[best], scores + daf.std_errors_[best]]),
    )
    assert list(display.ax_.lines[0].get_xdata()) == [0, 0]  # the average feature
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == list(daf.feature_names_in_[best])
    assert display.ax_.yaxis_inverted()
    assert display.ax_.get_xlabel() == "DAF0, above average ± standard error"
    assert display.figure_ is display.ax_.figure


@pytest.mark.parametrize("selector", [BIF(), CFS(), EFS(), FSDD(), MRMR(), SFFS(3, criterion="linear")], ids=type)
def test_every_ranking_can_be_drawn(selector, table):
    display = RankingDisplay.from_estimator(selector.fit(table[0].to_numpy(), table[1]), top=4)
    best = np.argsort(selector.ranking_, kind="stable")[:4]
    assert display.names == [f"x{column}" for column in best]
    assert display.ax_.get_xlabel() == f"score of {type(selector).__name__}"


def test_names_are_not_read_as_mathematics():
    display = RankingDisplay(["$x_", "y" * 90], np.array([2.0, 1.0]))
    display.plot().figure_.canvas.draw()
    assert len(display.ax_.get_yticklabels()[1].get_text()) == 40


def test_displays_draw_into_given_axes(daf, result):
    figure = Figure()
    axes = figure.subplots(1, 3)
    displays = [
        RankingDisplay.from_estimator(daf, ax=axes[0]),
        SizeCurveDisplay.from_study(result, ax=axes[1]),
        StabilityDisplay.from_study(result, ax=axes[2]),
    ]
    assert all(display.ax_ is ax and display.figure_ is figure for display, ax in zip(displays, axes, strict=True))
    assert all(ax.get_xlabel() and ax.get_ylabel() for ax in axes)
    figure.canvas.draw()
    assert plt.get_fignums() == []


# ---- convergence


def test_the_convergence_of_a_run(daf):
    display = ConvergenceDisplay.from_estimator(daf)
    np.testing.assert_array_equal(display.axes_[0].lines[0].get_ydata(), daf.history_["order_change"])
    np.testing.assert_array_equal(display.axes_[1].lines[0].get_ydata(), daf.history_["relative_change"])


def test_a_short_run_has_no_convergence(table):
    short = DAF(criterion="linear", stop=MaxProbes(800), random_state=0).fit(*table)
    with pytest.raises(ValueError, match="this run of 800 probes had 2: use more probes or a smaller check_every"):
        ConvergenceDisplay.from_estimator(short)


# ---- accuracy by size


def test_the_size_curve_a_selector_is_nested(table):
    X, y = table
    folds = StratifiedKFold(4)
    display = SizeCurveDisplay.from_estimator(BIF(criterion="naive_bayes").fit(X, y), X, y, cv=folds, sizes=[8, 1, 3])
    scores = np.empty((4, 3))
    for fold, (train, test) in enumerate(folds.split(X, y)):
        for place, size in enumerate([1, 3, 8]):
            both = make_pipeline(BIF(size, criterion="naive_bayes"), GaussianNB())
            scores[fold, place] = both.fit(X.iloc[train], y[train]).score(X.iloc[test], y[test])
    line, band = display.ax_.lines[-1], display.ax_.collections[-1]
    np.testing.assert_array_equal(line.get_xdata(), [1, 3, 8])
    np.testing.assert_allclose(line.get_ydata(), scores.mean(axis=0))
    errors = scores.std(axis=0, ddof=1) / 2
    assert band.get_paths()[0].vertices[:, 1].max() == pytest.approx((scores.mean(axis=0) + errors).max())
    size = display.enough_["BIF"]
    assert line.get_label() == f"BIF: {size} {'is' if size == 1 else 'are'} enough"


def test_the_smallest_size_within_one_standard_error_has_a_ring():
    sizes, means = np.array([1, 2, 3, 4]), {"a": np.array([0.5, 0.78, 0.8, 0.7])}
    display = SizeCurveDisplay(sizes, means, {"a": np.array([0.3, 0.3, 0.03, 0.3])}).plot()
    assert display.enough_ == {"a": 2}
    assert display.ax_.collections[0].get_offsets().tolist() == [[2, 0.78]]
    assert SizeCurveDisplay(sizes, means, {"a": np.full(4, np.nan)}).enough_ == {"a": 3}


def test_a_given_curve_is_drawn(table):
    X, y = table
    fitted = BIF(criterion="linear").fit(X, y)
    for nested in (False, True):
        curve = size_curve(fitted, X, y, sizes=[1, 3, 8], cv=3, nested=nested)
        display = SizeCurveDisplay.from_curve(curve, name="mine")
        np.testing.assert_allclose(display.ax_.lines[-1].get_ydata(), curve.mean)
        assert display.enough_ == {"mine": curve.suggested}
        assert display.ax_.get_ylabel() == f"cross-validated accuracy{'' if nested else ', optimistic'}"


def test_the_standard_error_of_a_study_is_corrected_for_shared_samples(result):
    display = SizeCurveDisplay.from_study(result, classifier="1-nn")
    trials = result.accuracy[:, 0, 1]
    factor = 1 / 3 + result.n_test / result.n_train
    np.testing.assert_allclose(display.std_errors["bif"], np.sqrt(factor * trials.var(axis=0, ddof=1)))
    np.testing.assert_allclose(display.means["bif"], trials.mean(axis=0))
    assert set(display.enough_) == {"bif", "sffs"}
    assert display.ax_.get_ylabel() == "accuracy, 1-nn"
    with pytest.raises(ValueError, match="classifier='svm' is not in this study: choose one of nb, 1-nn"):
        SizeCurveDisplay.from_study(result, classifier="svm")


def test_the_selector_and_its_ledger_are_not_changed(table, tmp_path):
    X, y = table
    daf = DAF(2, criterion="linear", stop=MaxProbes(50), random_state=0, ledger=tmp_path / "run").fit(X, y)
    before = daf.scores_.copy()
    SizeCurveDisplay.from_estimator(daf, X, y, sizes=[1, 2], cv=2)
    np.testing.assert_array_equal(daf.scores_, before)
    assert daf.n_features_to_select == 2
    assert len(daf.run_.ledger.values()) == 50


# ---- stability


def test_stability_is_that_of_the_study(result):
    display = StabilityDisplay.from_study(result, stability="nogueira")
    assert [line.get_label() for line in display.ax_.lines] == ["bif", "sffs"]
    np.testing.assert_array_equal(display.ax_.lines[0].get_xdata(), result.sizes)
    np.testing.assert_allclose(
        [line.get_ydata() for line in display.ax_.lines], result.stability()["nogueira"][:2], rtol=1e-12
    )
    assert display.ax_.get_ylabel() == "stability, Nogueira"
    with pytest.raises(ValueError, match="stability='calm' must be 'cw_rel', 'ati'"):
        StabilityDisplay.from_study(result, stability="calm")


def test_stability_of_selections_from_elsewhere():
    masks = np.array([[True, True, False, False], [True, False, True, False]])
    display = StabilityDisplay.from_selections({"mine": {2: masks, 1: [[0], [0]]}}, 4, stability="ati")
    assert display.values == {"mine": {1: 1.0, 2: pytest.approx(1 / 3)}}
    with pytest.raises(ValueError, match="selections is empty"):
        StabilityDisplay.from_selections({}, 4)


def test_one_trial_has_no_stability():
    with pytest.raises(ValueError, match="this study has one: run more trials"):
        StabilityDisplay.from_study(study({"bif": BIF()}, [1, 2], trials=1))


# ---- errors


@pytest.mark.parametrize("display", [RankingDisplay, ConvergenceDisplay])
def test_unfitted_selectors_are_refused(display):
    with pytest.raises(NotFittedError, match="DAF instance is not fitted"):
        display.from_estimator(DAF())


def test_an_unfitted_selector_has_no_size_curve(table):
    with pytest.raises(NotFittedError, match="FSDD instance is not fitted"):
        SizeCurveDisplay.from_estimator(FSDD(), *table)


def test_unsuitable_selectors_are_refused(table):
    fsdd, kbest = FSDD().fit(*table), SelectKBest().fit(*table)
    with pytest.raises(ValueError, match="SelectKBest has no ranking_: give a fitted selector of Probewise"):
        RankingDisplay.from_estimator(kbest)
    with pytest.raises(ValueError, match="FSDD has no history_: give a fitted DAF"):
        ConvergenceDisplay.from_estimator(fsdd)
    with pytest.raises(ValueError, match="GaussianNB has no ranking_ and no scores_"):
        SizeCurveDisplay.from_estimator(GaussianNB().fit(*table), *table)
    for top in (0, 1.5):
        with pytest.raises(ValueError, match=f"top={top} must be a whole number"):
            RankingDisplay.from_estimator(fsdd, top=top)
