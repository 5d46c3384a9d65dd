"""Results in Python: data frames, small tables at the prompt, and a report inline in a notebook."""

from html import unescape
from importlib.util import find_spec

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

import probewise
from probewise import FSDD
from probewise.evaluation import size_curve
from probewise.report import show_report, to_frame, write_report
from probewise.stopping import MaxProbes

SELECTORS = [name for name in probewise.__all__ if name != "prepare" and not name.endswith("Classifier")]


@pytest.mark.parametrize("name", SELECTORS)
def test_every_selector_has_a_frame(name, madelon):
    X, y = madelon
    selector = getattr(probewise, name)()
    limits = {"DAF": {"stop": MaxProbes(100)}, "Tournament": {"n_probes": 100}}
    options = {"n_features_to_select": 4, "random_state": 0, **limits.get(name, {})}
    selector.set_params(**{key: value for key, value in options.items() if key in selector.get_params()})
    frame = to_frame(selector.fit(X[:, :10], y), "polars")
    assert isinstance(frame, pl.DataFrame)
    order = np.argsort(selector.ranking_, kind="stable")
    assert frame["feature"].to_list() == [X.columns[column] for column in order]
    assert frame["rank"].to_list() == selector.ranking_[order].tolist()
    np.testing.assert_array_equal(frame["score"], selector.scores_[order])
    assert frame["selected"].to_list() == selector.support_[order].tolist()
    assert {"probed", "above_average"} <= set(frame.columns) or not hasattr(selector, "run_")


def test_the_frame_has_rank_intervals(saved_run):
    frame = to_frame(saved_run[0], "pandas")
    assert isinstance(frame, pd.DataFrame)
    certainty = saved_run[0].run_.certainty().table(top=10)
    for name in ("rank_low", "rank_high", "in_top"):
        np.testing.assert_allclose(frame[name], certainty[name])
    assert frame["above_average"].mean() == pytest.approx(0)


def test_frames_follow_set_output_and_the_installed_libraries(madelon, monkeypatch):
    X, y = madelon
    numbers = X.to_numpy()
    assert isinstance(to_frame(FSDD().fit(X, y).set_output(transform="pandas")), pd.DataFrame)
    assert isinstance(to_frame(FSDD().set_output(transform="polars").fit(numbers, y)), pl.DataFrame)
    plain = FSDD().fit(numbers, y)
    assert to_frame(plain, "polars")["feature"][0].startswith("x")
    monkeypatch.setattr(probewise.report, "find_spec", lambda name: find_spec(name) if name == "polars" else None)
    assert isinstance(to_frame(plain), pl.DataFrame)
    with pytest.raises(ImportError, match="needs pandas: pip install pandas"):
        to_frame(plain, "pandas")
    with pytest.raises(ValueError, match="backend='arrow' must be 'pandas', 'polars' or None"):
        to_frame(plain, "arrow")


# ---- at the prompt


def test_results_print_as_small_tables(saved_run, madelon):
    daf, _ = saved_run
    lines = repr(daf.run_.certainty()).splitlines()
    assert lines[0].startswith("Certainty of 40 coefficients")
    assert lines[1].split()[:3] == ["feature", "rank", "coefficient"]
    assert lines[-1] == "and 30 more"
    curve = size_curve(FSDD().fit(*madelon), *madelon, sizes=[1, 2, 5], nested=True)
    lines = repr(curve).splitlines()
    assert lines[0] == "SizeCurve: accuracy by number of features, ranked again in each fold"
    assert [line.split()[0] for line in lines[1:]] == ["features", "1", "2", "5"]
    assert sum(line.endswith("suggested") for line in lines) == 1
    assert all(len(line) < 200 for text in (repr(daf.run_.certainty()), repr(curve)) for line in text.splitlines())


# ---- inline


def test_a_notebook_shows_the_report_inline(saved_run, madelon):
    page = show_report(saved_run[0], *madelon)
    shown = page._repr_html_()
    assert shown.startswith("<iframe ")
    assert unescape(shown.split('srcdoc="')[1].split('"')[0]) == page.html
    assert page.html.startswith("<!DOCTYPE html>")
    assert "write_report(selector, 'report.html', X, y) writes a file" in repr(page)
    assert show_report(saved_run[0]).html.startswith("<!DOCTYPE html>")


@pytest.mark.parametrize("kind", ["frame", "array"])
def test_an_error_for_data_in_place_of_a_path(saved_run, madelon, kind):
    X, y = madelon
    data = X if kind == "frame" else X.to_numpy()
    with pytest.raises(
        TypeError, match=r"path is of type \w+: give a file name, write_report\(selector, 'report.html'\)"
    ):
        write_report(saved_run[0], data, y)


@pytest.mark.skipif(
    not all(map(find_spec, ("nbclient", "ipykernel", "nbformat"))),
    reason="a real kernel needs nbclient and ipykernel: pip install nbclient ipykernel",
)
def test_in_a_real_kernel():
    import nbformat
    from nbclient import NotebookClient

    code = [
        "import probewise.datasets, probewise.report, probewise.stopping",
        "data = probewise.datasets.make_madelon(60, 20, random_state=0)",
        "daf = probewise.DAF(stop=probewise.stopping.MaxProbes(400), random_state=0, verbose=1).fit(data.X, data.y)",
        "probewise.report.show_report(daf, data.X, data.y)",
        "daf.interactions()",
    ]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in code])
    NotebookClient(book, timeout=120, kernel_name="python3").execute()
    fitted, page, pairs = (cell["outputs"] for cell in book.cells[2:])
    assert "DAF: 400 probes" in fitted[-1]["data"]["text/plain"]
    assert page[0]["data"]["text/html"].startswith("<iframe ")
    assert pairs[0]["data"]["text/plain"].startswith("Pairs(")


def test_a_report_of_a_sparse_matrix_names_words(tmp_path):
    X = sp.csr_matrix(np.random.default_rng(0).poisson(0.5, (30, 6)).astype(float))
    fsdd = FSDD(2).fit(X, np.arange(30) % 2)
    words = np.array(["ape", "bee", "cat", "dog", "eel", "fox"])
    page = write_report(fsdd, tmp_path / "r.md", X, np.arange(30) % 2, feature_names=words)
    assert words[np.argmin(fsdd.ranking_)] in page.read_text()
    assert words[np.argmin(fsdd.ranking_)] in show_report(fsdd, feature_names=words)._repr_html_()
    with pytest.raises(ValueError, match="feature_names has 2 names for 6 features"):
        write_report(fsdd, tmp_path / "r.md", feature_names=["a", "b"])
