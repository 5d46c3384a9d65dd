"""Outcomes: cells, files, the printed summary, and the articles, whose numbers all come from stored results."""

import csv
import re

import numpy as np
import pytest

from reproductions import PAPERS
from reproductions.judge import Evidence, count, judge, rules
from reproductions.pictures import Line, Panel, Picture, Surface
from reproductions.results import (
    DOCS,
    Cell,
    Outcome,
    article,
    cells,
    folder_of,
    markdown,
    matrix,
    print_outcome,
    published,
    shown,
    stored,
)

with_article = [paper for paper in PAPERS if (folder_of(paper) / "article.md").exists()]


@pytest.mark.parametrize(
    ("paper", "number"), [("daf-2011", 51), ("daf-2013", 11), ("efs-2004", 103), ("fsdd-2008", 616)]
)
def test_published_numbers_have_one_place_each(paper, number):
    with (folder_of(paper) / "published.csv").open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert len(published(paper)) == len(rows) == number


def test_published_numbers_are_those_printed():
    fsdd, efs = published("fsdd-2008"), published("efs-2004")
    wine = [70.23, 85.39, 90.45, 92.14, 94.94, 96.07, 96.07, 96.07, 95.51, 96.07, 96.07, 97.19, 95.51]
    assert [fsdd["Table 3", "KNN FSDD", str(size)] for size in range(1, 14)] == wine
    assert fsdd["Table 6", "SVM mrmrMID", "40"] == 87.03
    assert fsdd["Table 2", "mrmrMID", "Mfeat"] == 1824.2
    assert efs["Table 3", "Leukemia EFS", "RF accuracy"] == 100
    assert efs["Table 3", "Lymphoma DFE", "CART features"] == 83
    assert efs["Table 2", "Corel CFS", "ARF precision"] == 74.02
    assert published("daf-2011")["Table II", "Reuters", "J evaluations"] == 148_000


def test_cells_put_ours_beside_the_published():
    found = cells("daf-2013", {("Section 4", "Reuters", "classes"): 33, ("Ours", "a", "b"): [1.0, 2.0]})
    assert str(found["Section 4", "Reuters", "classes"]) == "33 / 33"
    assert str(found["Section 4", "Reuters", "features"]) == "10,105"
    assert str(found["Ours", "a", "b"]) == "1.5 ± 0.707"
    numbers = {None: "-", 0.00012: "0.00012", 3.14159: "3.14", 31.4159: "31.42", 2.0: "2", 1495.26: "1,495"}
    assert {number: shown(number) for number in numbers} == numbers


def test_tables_have_sizes_in_order():
    header, rows = matrix({("T", "a", "10"): Cell(1.0), ("T", "a", "2"): Cell(None, 2.0)}, "T")
    assert (header, rows) == (["T", "2", "10"], [["a", "2", "1"]])
    assert markdown(header, rows).splitlines()[1:3] == ["| T | 2 | 10 |", "| --- | --- | --- |"]


@pytest.fixture
def outcome():
    evidence = {"finite limit": {"8 features": Evidence(fact=True, text="0.5 standard errors")}}
    lines = [Line("FSDD", [1, 2, 3], [3, 1, 2], [2], [1.5]), Line("mRMR", [1, 2, 3], [1, 2, 3])]
    flat = Panel("a", "x", "y", lines, log_x=True)
    surface = Surface("b", ("probes", [1, 2, 3]), ("d", [1, 10]), ("z", np.ones((3, 2))))
    pictures = [Picture("Figure 1", [flat, surface])]
    found = cells("daf-2013", {("Section 4", "Reuters", "classes"): 33})
    return Outcome("daf-2013", found, judge(rules("daf-2013"), evidence), pictures, {"seed": 0})


def test_an_outcome_is_written_the_same_every_time(outcome, tmp_path):
    pytest.importorskip("matplotlib")
    names = ["results.csv", "claims.csv", "settings.json", "figure-1.svg"]
    assert [path.name for path in outcome.write(tmp_path)] == names
    before = [(tmp_path / name).read_bytes() for name in names]
    outcome.write(tmp_path)
    assert [(tmp_path / name).read_bytes() for name in names] == before
    text = (tmp_path / "claims.csv").read_text()
    assert "finite limit,holds,8 features,holds,0.5 standard errors" in text
    assert "one probe,undecided,500 equal features,undecided," in text
    figure = (tmp_path / "figure-1.svg").read_text()
    assert "<dc:date>" not in figure


def test_the_summary_counts_verdicts_and_shows_five_claims_with_their_evidence(outcome, capsys):
    print_outcome(outcome)
    printed = capsys.readouterr().out
    lines = printed.splitlines()
    assert lines[0] == "daf-2013: 1 of 10 claims hold (does not hold: 0, undecided: 9, not comparable: 0)"
    before, after = printed.split("The other claims:")
    assert len(re.findall(r"^  (?:holds|undecided) ", before, flags=re.MULTILINE)) == 5
    assert len(re.findall(r"^  (?:holds|undecided) ", after, flags=re.MULTILINE)) == 5
    assert "Reuters: undecided (not measured)" in before


@pytest.mark.parametrize("paper", with_article)
def test_the_articles_of_the_docs_site_are_those_of_the_stored_results(paper):
    assert (DOCS / f"{paper}.md").read_text(encoding="utf-8") == article(paper)
    assert f" | {count(stored(paper).claims)} |" in (DOCS.parent / "papers.md").read_text(encoding="utf-8")
    for name in re.findall(r"\]\(([\w-]+\.svg)\)", article(paper)):
        stored_figure = folder_of(paper) / "results" / name.removeprefix(f"{paper}-")
        assert (DOCS / name).read_bytes() == stored_figure.read_bytes()


@pytest.mark.parametrize("paper", with_article)
def test_stored_results_have_every_claim_and_column(paper):
    for claim in stored(paper).claims:
        assert tuple(claim.verdicts) == claim.rule.columns


def test_a_placeholder_without_a_result_is_an_error(monkeypatch, tmp_path):
    from reproductions import results

    (tmp_path / "article.md").write_text("{{no | such | cell}}")
    (tmp_path / "departures.txt").write_text("")
    monkeypatch.setattr(results, "folder_of", lambda paper: tmp_path)
    monkeypatch.setattr(results, "stored", lambda paper: Outcome(paper, {}, [], settings={"unit_seconds": 60}))
    monkeypatch.setattr(results, "rules", lambda paper: [])
    with pytest.raises(ValueError, match=r"is not in results\.csv"):
        article("daf-2013")
