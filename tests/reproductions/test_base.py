"""Shared code of the reproductions: published numbers beside ours, units that run once, and the written files."""

import csv
import json
import warnings
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from probewise import plots
from probewise.datasets import OPENML, load
from probewise.study import StudyError
from reproductions import PAPERS, pictures, reproduce, work
from reproductions.base import Cell, Claim, Outcome, cells, departures, published
from reproductions.pictures import Line, Panel, Picture
from reproductions.work import Reproduction

# ---- published numbers


@pytest.mark.parametrize("paper", ["fsdd-2008", "efs-2004"])
def test_published_numbers_have_one_place_each(paper):
    places = [each.place for each in published(paper)]
    assert len(set(places)) == len(places) > 50
    assert {each.unit for each in published(paper)} <= {"%", "s", "count", "bits", "feature"}


def test_cells_put_ours_beside_the_published():
    place, own = ("Table 3", "KNN FSDD", "1"), ("Table 3", "KNN mine", "1")
    found = {(cell.where, cell.row, cell.column): cell for cell in cells("fsdd-2008", {place: 71.0, own: 50.0})}
    assert found[place] == Cell(*place, published=70.23, ours=71.0)
    assert found[place].difference == pytest.approx(0.77)
    assert found[own] == Cell(*own, published=None, ours=50.0)
    assert found[own].difference is None
    assert found["Table 3", "KNN FSDD", "2"].ours is None


# ---- what is kept

FOLDER = Path(__file__).parents[2] / "reproductions"


@pytest.mark.parametrize("paper", PAPERS)
def test_what_is_kept_has_every_published_number_row_and_departure(paper):
    folder = FOLDER / paper.replace("-", "_") / "results"
    with (folder / "results.csv").open(newline="") as lines:
        kept = {(row["where"], row["row"], row["column"]): row["published"] for row in csv.DictReader(lines)}
    assert {each.place: each.value for each in published(paper)}.items() <= {
        place: float(value) for place, value in kept.items() if value
    }.items()
    page = (folder / "claims.md").read_text(encoding="utf-8")
    assert page.split("## Departures\n\n- ")[1].split("\n\n")[0].split("\n- ") == departures(paper)
    with (folder / "claims.csv").open(newline="") as lines:
        rows = [list(row.values()) for row in csv.DictReader(lines)]
    assert all(f"| {' | '.join(row)} |" in page for row in rows)
    assert all(text and where and ours and evidence for text, where, ours, _, evidence in rows)
    assert len({row[0] for row in rows}) == len(rows)


# ---- what is written

WRITTEN = ["results.csv", "results.md", "settings.json", "claims.csv", "claims.md"]


@pytest.fixture
def outcome():
    lines = [Line("ours", [1, 10, 100], [1.0, 2.0, 3.0]), Line("theirs", [10], [2.5], published=True)]
    return Outcome(
        cells=[Cell("Table 1", "a", "10", 70.23, 71.0, "± 0.50"), Cell("Table 1", "b", "9", None, 1 / 3)],
        claims=[Claim("it works", True, "it did"), Claim("it flies", None, "no wings", "section 2", "one jump")],
        departures=["We walked."],
        pictures=[Picture("Figure 9", [Panel("p", "x", "y", lines, log=True)] * 3)],
        settings={"title": "A paper", "trials": 3},
    )


def test_an_outcome_is_written_and_can_be_read(outcome, tmp_path):
    written = outcome.write(tmp_path)
    assert [path.name for path in written.files] == [*WRITTEN, "figure-9.svg"]
    with (tmp_path / "results.csv").open(newline="") as lines:
        first, second = csv.DictReader(lines)
    assert first == {
        "where": "Table 1",
        "row": "a",
        "column": "10",
        "published": "70.23",
        "ours": "71",
        "difference": "0.77",
        "note": "± 0.50",
    }
    assert (second["published"], second["difference"]) == ("", "")
    assert float(second["ours"]) == pytest.approx(1 / 3)
    text = (tmp_path / "results.md").read_text(encoding="utf-8")
    assert "# A paper" in text
    assert "| | 9 | 10 |\n| --- | --- | --- |\n| a |  | 70.23 / 71 ± 0.50 |\n| b | - / 0.333 |  |" in text
    assert "| it flies | section 2 | no wings | cannot be told | one jump |" in text
    page = (tmp_path / "claims.md").read_text(encoding="utf-8")
    assert "| it works |  | it did | holds |  |" in page
    assert "| Table 1 | 1 | 2 | 0.77 |" in page
    assert "- We walked." in page
    assert "- We walked." in text
    assert "![Figure 9](figure-9.svg)" in text
    assert json.loads((tmp_path / "settings.json").read_text())["trials"] == 3


def test_a_figure_has_its_panels_and_no_date(outcome, tmp_path):
    outcome.pictures[0].draw(tmp_path / "a.svg")
    drawn = (tmp_path / "a.svg").read_text()
    assert "<dc:date>" not in drawn
    assert drawn.count('id="axes_') == 3


def test_without_matplotlib_the_tables_are_written_all_the_same(outcome, tmp_path, monkeypatch):
    def missing():
        raise ImportError("drawing needs the report extra")

    monkeypatch.setattr(pictures, "matplotlib_figure", missing)
    with pytest.warns(UserWarning, match="the figures were left out: drawing needs the report extra"):
        written = outcome.write(tmp_path)
    assert [path.name for path in written.files] == WRITTEN
    assert plots.matplotlib_figure is not missing


# ---- units


def squared(unit):
    return unit[1] ** 2 / 3


def refuses(unit):
    raise AssertionError(f"{unit} was done again")


UNITS = [("a", 1), ("b", 2), ("c", 3), ("d", 4)]


def conduct(work, units=UNITS, folder=None, settings=None, **options):
    reproduction = Reproduction(None, None, folder, **options)
    return reproduction.conduct("run", work, units, settings or {}, "squares")


@pytest.mark.slow
def test_units_give_the_same_for_any_number_of_workers(tmp_path):
    one = conduct(squared)
    assert one == {("a", 1): 1 / 3, ("b", 2): 4 / 3, ("c", 3): 3.0, ("d", 4): 16 / 3}
    assert conduct(squared, folder=tmp_path, n_jobs=2) == one


def test_finished_units_are_not_done_again(tmp_path):
    said = []
    first = conduct(squared, UNITS[:2], tmp_path, {"seed": 0})
    again = conduct(refuses, UNITS[:2], tmp_path, {"seed": 0})
    assert again == first
    whole = conduct(squared, UNITS[::-1], tmp_path, {"seed": 0}, progress=said.append)
    assert list(whole) == UNITS[::-1]
    assert whole == conduct(squared)
    assert said[0].startswith("squares: 3 of 4, about")
    assert len(work.kept(tmp_path, "run").read_text().splitlines()) == 5


def test_the_time_units_took_is_kept(tmp_path):
    reproduction = Reproduction(None, None, tmp_path)
    reproduction.conduct("a", squared, UNITS, {}, "units")
    reproduction.conduct("b", squared, UNITS[:1], {}, "units")
    lines = [line for run in (tmp_path / "runs").iterdir() for line in run.read_text().splitlines()[1:]]
    assert work.unit_seconds(tmp_path) == pytest.approx(sum(json.loads(line)["seconds"] for line in lines))
    assert len(lines) == 5
    assert work.unit_seconds(None) == 0
    assert work.kept(None, "a") is None


def test_seconds_add_up_over_calls(tmp_path):
    lines = []
    first = work.Elapsed(tmp_path, lines.append)
    first("a word")
    assert lines == ["a word"]
    file = tmp_path / "runs" / "seconds.txt"
    file.write_text("\n7.5\n12.5\n1")  # killed while it wrote
    again = work.Elapsed(tmp_path)
    assert 12.5 <= again.seconds < 100
    again("another")
    assert 12.5 <= work.Elapsed(tmp_path).before < 100
    assert work.Elapsed(None).seconds < 12.5
    assert work.Elapsed(tmp_path, parts=["Figure 7"]).before == 0
    assert work.unit_seconds(tmp_path) == 0


def test_units_can_be_prepared_here_before_workers_have_them():
    seen = []
    found = Reproduction(None, None).conduct("run", seen.count, UNITS, {}, "squares", before=seen.append)
    assert found == dict.fromkeys(UNITS, 1)
    assert seen == UNITS


def test_what_a_kill_left_of_a_unit_is_done_again(tmp_path):
    whole, run = conduct(squared, folder=tmp_path), work.kept(tmp_path, "run")
    run.write_bytes(run.read_bytes()[:-10])
    assert conduct(squared, folder=tmp_path) == whole


def test_a_run_of_other_settings_is_refused(tmp_path):
    conduct(squared, folder=tmp_path, settings={"seed": 0, "sizes": (1, 2)})
    conduct(refuses, folder=tmp_path, settings={"seed": 0, "sizes": [1, 2]})
    with pytest.raises(StudyError, match="its seed is 0, not 1"):
        conduct(squared, folder=tmp_path, settings={"seed": 1, "sizes": (1, 2)})


# ---- data


def test_data_come_from_the_folder_given_or_that_of_the_environment(tmp_path, monkeypatch):
    X, y = np.arange(6.0).reshape(3, 2), np.array([0, 1, 0])
    np.savez(tmp_path / "tiny.npz", X=X, y=y, train_index=[0, 1], test_index=[2], speaker=[7, 8, 9])
    monkeypatch.delenv("PROBEWISE_DATA", raising=False)
    given = load("tiny", tmp_path)
    np.testing.assert_array_equal(given.X, X)
    assert given.test_index.tolist() == [2]
    assert given.more["speaker"].tolist() == [7, 8, 9]
    with pytest.raises(ValueError, match=r"tiny cannot be loaded, no folder was given: pass the folder"):
        load("tiny")
    monkeypatch.setenv("PROBEWISE_DATA", str(tmp_path))
    assert load("tiny").train_index.tolist() == [0, 1]
    with pytest.raises(ValueError, match=r"wine cannot be loaded, there is no file .*wine\.npz.*\(openml=True\)"):
        load("wine")


def test_sparse_data_stay_sparse(tmp_path):
    X = sp.random(5, 4, 0.5, format="csr", random_state=0)
    np.savez(tmp_path / "words.npz", data=X.data, indices=X.indices, indptr=X.indptr, shape=X.shape, y=np.arange(5))
    given = load("words", tmp_path)
    assert sp.issparse(given.X)
    np.testing.assert_array_equal(given.X.toarray(), X.toarray())
    assert given.train_index is None
    np.savez(tmp_path / "odd.npz", y=np.arange(5))
    with pytest.raises(ValueError, match="contains y: a data set needs X and y"):
        load("odd", tmp_path)


def test_openml_is_asked_only_when_told_and_gives_numeric_columns(tmp_path, monkeypatch):
    asked = []

    def fetch_openml(name, *, version, as_frame):
        from sklearn.utils import Bunch

        asked.append((name, version, as_frame))
        data = np.array([[1.0, 0.0], [2.0, 1.0]]) * len(asked)
        return Bunch(data=data, target=np.array(["x", "y"]), feature_names=["a", "b"], categories={"b": ["p", "q"]})

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch_openml)
    with pytest.raises(ValueError, match="cannot be loaded"):
        load("mfeat", tmp_path)
    assert asked == []
    given = load("mfeat", tmp_path, openml=True)
    assert [name for name, *_ in asked] == list(OPENML["mfeat"])
    assert given.X.tolist() == [[1, 2, 3, 4, 5, 6], [2, 4, 6, 8, 10, 12]]
    assert given.y.tolist() == ["x", "y"]
    with pytest.raises(ValueError, match=r"leukemia\.npz, or set the environment variable PROBEWISE_DATA to it$"):
        load("leukemia", tmp_path, openml=True)


# ---- the way in


def test_what_cannot_be_reproduced_is_said_in_a_sentence(tmp_path):
    with pytest.raises(ValueError, match="paper='daf-1999' is not known: choose one of daf-2011, "):
        reproduce("daf-1999")
    with pytest.raises(ValueError, match="profile='slow' is not known: choose one of quick, full"):
        reproduce("fsdd-2008", profile="slow")
    with pytest.raises(ValueError, match=r"there is no file .*wine\.npz"):
        reproduce("fsdd-2008", data=tmp_path)


@pytest.mark.parametrize("paper", ["efs-2004", "fsdd-2008"])
def test_a_paper_says_what_it_is(paper):
    module = PAPERS[paper]
    assert paper == module.NAME
    assert set(module.PROFILES) == {"quick", "full"}
    assert all(sentence.endswith(".") for sentence in departures(paper))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        json.dumps(asdict(module.PROFILES["full"]))


# ---- parts of a paper


def test_parts_made_again_take_the_place_of_theirs_and_leave_the_rest(outcome, tmp_path):
    outcome.write(tmp_path)
    figure = (tmp_path / "figure-9.svg").read_bytes()
    second = Outcome(
        cells=[Cell("Table 1", "a", "10", 70.23, 72.0), Cell("Table 1", "b", "9"), Cell("Table 2", "c", "1", 5.0, 6.0)],
        claims=[Claim("it flies", False, "still no wings"), Claim("it swims", True, "it did")],
        settings={"profile": "full", "trials": 20},
    )
    both = second.beside(tmp_path, ["Jumps"]).write(tmp_path)
    ours = {(cell.where, cell.row): cell.ours for cell in both.cells}
    assert ours == {("Table 1", "a"): 72.0, ("Table 1", "b"): pytest.approx(1 / 3), ("Table 2", "c"): 6.0}
    assert [(claim.text, claim.verdict) for claim in both.claims] == [
        ("it works", "holds"),
        ("it flies", "does not hold"),
        ("it swims", "holds"),
    ]
    assert json.loads((tmp_path / "settings.json").read_text())["since"] == {"Jumps": {"profile": "full", "trials": 20}}
    assert "Jumps, made since: profile full." in (tmp_path / "claims.md").read_text()
    assert "| it works |  | it did | holds |  |" in (tmp_path / "claims.md").read_text()
    assert "![Figure 9](figure-9.svg)" in (tmp_path / "results.md").read_text()
    assert (tmp_path / "figure-9.svg").read_bytes() == figure


def test_only_parts_that_the_paper_has(tmp_path):
    with pytest.raises(ValueError, match=r"only=\['Figure 1'\]: this paper has no parts to choose from"):
        reproduce("fsdd-2008", only=["Figure 1"], out=tmp_path)
    with pytest.raises(ValueError, match=r"only=\['Figure 1'\]: choose from Reuters, Reuters twice"):
        reproduce("daf-2011", only=["Figure 1"], out=tmp_path)
