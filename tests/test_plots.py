"""Pictures show the numbers they are made of, in every format, and say what is missing."""

import subprocess
import sys

import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot as plt
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from probewise import BIF, SFFS
from probewise.datasets import make_madelon
from probewise.plots import COLOURS, StudyDisplay, require_picture_path, save_study
from probewise.study import Study

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def _no_figures_left():
    yield
    plt.close("all")


def study(selectors, sizes, trials=3):
    data = make_madelon(80, 30, random_state=0)
    judges = {"nb": GaussianNB(), "1-nn": KNeighborsClassifier(1)}
    return Study(selectors, judges, trials=trials, sizes=sizes, random_state=0).compare(data.X, data.y)


@pytest.fixture(scope="module")
def result():
    return study({"bif": BIF(), "sffs": SFFS(criterion="linear", floating=False), "all": None}, [1, 2, 5, 11])


def test_lines_are_means_and_shades_deviations(result):
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
    with pytest.raises(ValueError, match="stability='calm' is not known: choose one of cw_rel"):
        StudyDisplay.from_study(result, stability="calm")


def test_sizes_are_spaced_by_ratio_beyond_a_decade(result):
    assert StudyDisplay.from_study(result).axes_[0].get_xscale() == "log"
    assert StudyDisplay.from_study(study({"bif": BIF()}, [2, 5, 20])).axes_[0].get_xscale() == "linear"


def test_every_selector_looks_different():
    many = {f"_{k}": BIF() for k in range(len(COLOURS) + 3)}
    display = StudyDisplay.from_study(study(many, [1, 2], trials=2), classifier="nb")
    looks = {(line.get_color(), line.get_linestyle()) for line in display.axes_[0].lines}
    assert len(looks) == len(many)
    assert [text.get_text().strip() for text in display.figure_.legends[0].get_texts()] == list(many)


def test_one_trial_and_odd_names_can_be_drawn(tmp_path):
    result = study({"costs $x_$ and $": BIF()}, [1, 2], trials=1)
    save_study(result, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("name", "start"), [("p.png", b"\x89PNG"), ("p.svg", b"<?xml"), ("p.pdf", b"%PDF")])
def test_pictures_are_written_without_a_window_system(result, tmp_path, name, start):
    save_study(result, tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(start)
    assert plt.get_fignums() == []


def test_a_picture_that_cannot_be_written_is_refused_at_once(tmp_path):
    with pytest.raises(ValueError, match=r"p\.txt: name it .*\.png"):
        require_picture_path(tmp_path / "p.txt")
    with pytest.raises(ValueError, match="does not exist"):
        require_picture_path(tmp_path / "no" / "p.png")
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(ValueError, match="it is a folder"):
        require_picture_path(tmp_path / "folder.png")


def test_without_matplotlib_there_is_one_sentence():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from probewise.plots import require_picture_path\n"
        "try: require_picture_path('p.png')\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "drawing needs the report extra: pip install 'probewise[report]'\n"
