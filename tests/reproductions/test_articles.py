"""The articles: every number, and every result that is stated in words, has a stored source."""

import json
import re

import numpy as np
import pytest

from reproductions import PAPERS, experiment
from reproductions.judge import FAILS, HOLDS, UNDECIDED, rules
from reproductions.results import folder_of, published, stored

OTHER = {"daf-2011": {0.01}, "daf-2013": {2011}, "efs-2004": {2004}, "fsdd-2008": set()}  # a grid; years of papers
PARTS = r"(?:sections?|figures?|tables?|eq\.|algorithm|lemmas?|theorems?|proposition|report)"
PLACES = PARTS + r" [\dIVX.]+(?: (?:and|to) [\d.]+)?"
NAMES = r"\d+-NN|C4\.5|COIL-20|MSRC-v1|[A-Za-z]+\d|\d+ November( \d{4})?|1/36"


def numbers_in(value):
    """All numbers in nested settings, rules and texts."""
    if isinstance(value, str):
        yield from (float(text.replace(",", "")) for text in re.findall(r"\d+(?:,\d{3})*(?:\.\d+)?", value))
    elif isinstance(value, dict):
        yield from numbers_in([*value, *value.values()])
    elif isinstance(value, list | tuple | set | frozenset):
        for each in value:
            yield from numbers_in(each)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield float(value)


@pytest.mark.parametrize("paper", PAPERS)
def test_every_number_in_an_article_has_a_source(paper):
    """It is filled in from the results, or is one of the paper, of the results, of a rule or of the settings."""
    outcome, module = stored(paper), experiment(paper)
    constants = [*numbers_in([value for name, value in vars(module).items() if name.isupper()])]
    known = {*published(paper).values(), *OTHER[paper], *(cell.ours for cell in outcome.cells.values())}
    known.update(numbers_in([vars(rule) for rule in rules(paper)]), numbers_in(outcome.settings), constants)
    for file in ("article.md", "departures.txt"):
        text = (folder_of(paper) / file).read_text(encoding="utf-8").split("## Summary")[-1]
        prose = re.sub(r"\{\{.*?\}\}|```.*?```|`[^`]*`|\]\(.*?\)", "", text, flags=re.DOTALL)
        prose = re.sub(f"{PLACES}|{NAMES}", "", prose, flags=re.IGNORECASE)
        assert sorted(set(numbers_in(prose)) - known) == [], file


class Stored:
    """Data with which the sentences of an article are checked."""

    def __init__(self, paper):
        self.outcome, self.folder = stored(paper), folder_of(paper)
        self.claims = {claim.rule.id: claim for claim in self.outcome.claims}

    def ours(self, *place):
        return self.outcome.cells[place].ours

    def verdicts(self, claim, verdict):
        """Columns of a claim with a verdict."""
        return {column for column, each in self.claims[claim].verdicts.items() if each == verdict}

    def means(self, claim):
        """Mean of each column."""
        return {column: float(text.split()[0]) for column, text in self.claims[claim].shown.items()}

    def table(self, where):
        return {place[1:]: cell.ours for place, cell in self.outcome.cells.items() if place[0] == where}

    def results(self, name):
        lines = (self.folder / "results" / "runs" / f"{name}.jsonl").read_text().splitlines()[1:]
        return [json.loads(line)["result"] for line in lines]


CONSIDERABLY = ("better than BIF, classifier of J", "better than BIF, other classifier")
REUTERS = "Figure 2, CW_rel, Reuters"
SENTENCES = [
    (
        "daf-2011",
        "DAF has a higher mean accuracy than BIF on every data set, with both classifiers",
        lambda s: min(min(s.means(claim).values()) for claim in CONSIDERABLY) > 0,
    ),
    (
        "daf-2011",
        "significant only on Madelon with 3-NN and on Reuters with 1-NN",
        lambda s: [s.verdicts(claim, HOLDS) for claim in CONSIDERABLY] == [{"Madelon"}, {"Reuters"}],
    ),
    (
        "daf-2011",
        "DAF0 is ahead in every split",
        lambda s: all(
            np.mean(np.subtract(each["accuracy"]["DAF0"], each["accuracy"]["BIF"])[2:6]) > 0
            for each in s.results("svm-as-j")
        ),
    ),
    (
        "daf-2011",
        "the test cannot confirm that the lead exceeds one point",
        lambda s: s.claims["better than BIF, SVM as J"].verdict == UNDECIDED,
    ),
    (
        "daf-2011",
        "In that split both methods are some points lower",
        lambda s: all(
            [each["C"] for each in found] == [0.01, 0.1, 0.1, 0.1, 0.1]
            and found[0]["accuracy"][method][size] + 0.02 < found[1]["accuracy"][method][size]
            for method in ("DAF0", "BIF")
            for size in (3, 4, 5, 6)  # 100 to 1,000 words
            for found in [sorted(s.results("svm-as-j"), key=lambda each: (each["C"], each["accuracy"][method][size]))]
        ),
    ),
    (
        "daf-2011",
        "it is largest on Madelon",
        lambda s: all(max(means, key=means.get) == "Madelon" for means in map(s.means, CONSIDERABLY)),
    ),
    (
        "daf-2011",
        "the lead on Gisette is significantly smaller than the lead on Madelon",
        lambda s: "Gisette - Madelon" in s.verdicts("especially in high dimension", FAILS),
    ),
    ("daf-2011", "the test leaves this undecided", lambda s: s.claims["twice the time"].verdict == UNDECIDED),
    (
        "daf-2011",
        "SFFS up to 50 features of Madelon takes less than two minutes per split here",
        lambda s: s.means("times")["SFFS, Madelon"] < 120,
    ),
    (
        "daf-2011",
        "DAF is less stable than BIF on Reuters",
        lambda s: all(s.ours(REUTERS, "DAF0", size) < s.ours(REUTERS, "BIF", size) for size in ("50", "200", "500")),
    ),
    (
        "daf-2011",
        "change the first 500 words nearly as much as other rows and other probes together",
        lambda s: s.ours(REUTERS, "DAF0, other probes of the same rows", "500") - s.ours(REUTERS, "DAF0", "500") < 0.05,
    ),
    (
        "daf-2011",
        "Among the first 50 words two sets of probes agree",
        lambda s: s.ours(REUTERS, "DAF0, other probes of the same rows", "50") > 0.95,
    ),
    ("daf-2011", "DAF is far more stable than BIF", lambda s: s.claims["more stable on Madelon"].verdict == HOLDS),
    ("daf-2013", "the corrected test cannot confirm this", lambda s: s.claims["quick, then slow"].verdict == UNDECIDED),
    (
        "daf-2013",
        "Two claims about convergence hold: C2 falls much faster than C, and the order of the features never stops",
        lambda s: s.claims["C2 converges, C hardly"].verdict == s.claims["the order never rests"].verdict == HOLDS,
    ),
    (
        "daf-2013",
        "Four claims about accuracy are undecided",
        lambda s: sum(claim.verdict == UNDECIDED for claim in s.claims.values()) == 4,
    ),
    ("daf-2013", "every coefficient changes", lambda s: s.claims["one probe"].verdict == FAILS),
    (
        "efs-2004",
        "far below the published ones of 19 to 42 points; on Leukemia the difference is significant",
        lambda s: s.verdicts("size of the gain", FAILS) == {"Leukemia RF", "Leukemia CART"},
    ),
    (
        "efs-2004",
        "do not show which one is better",
        lambda s: s.claims["EFS beats DFE"].verdict == s.claims["DFE beats CFS"].verdict == UNDECIDED,
    ),
    (
        "efs-2004",
        "more than twice the published ones",
        lambda s: all(
            cell.ours > 2 * cell.published
            for place, cell in s.outcome.cells.items()
            if place[:2] == ("Table 1", "threshold") and cell.ours
        ),
    ),
    (
        "efs-2004",
        "the adaptive forest is far ahead of a single tree on all three image sets",
        lambda s: min(s.means("feedback, ARF beats CART").values()) > 20,
    ),
    (
        "efs-2004",
        "20 features of EFS do about as well as all features",
        lambda s: all(abs(mean) < 3 for set, mean in s.means("feedback, EFS is best").items() if "ARF" in set),
    ),
    (
        "efs-2004",
        "5 rounds of 20 rows find nearly all on MSRC-v1 and COIL-20",
        lambda s: min(v for (_, name), v in s.table("Found after 5 rounds (%)").items() if name != "Mfeat") > 90,
    ),
    (
        "efs-2004",
        "On Mfeat they find about half, which is nearly all that 5 rounds can return",
        lambda s: (
            min(v for (_, name), v in s.table("Found after 5 rounds (%)").items() if name == "Mfeat")
            > 0.9 * 100 * 100 / s.ours("Images", "Mfeat", "rows of a class to find")
        ),
    ),
    (
        "efs-2004",
        "of Leukemia without an error; it is the only one",
        lambda s: s.ours("Section 5.4", "Leukemia", "genes without an error in training") == 1,
    ),
    ("efs-2004", "No search selects 22 and 23 genes", lambda s: s.claims["genes of CFS"].verdict == FAILS),
    (
        "efs-2004",
        "takes hundredths of a second today, which is less than any selection takes",
        lambda s: all(
            s.ours("Table 3", f"{name} Full Space", "RF seconds")
            < min(0.1, *(s.ours("Table 3", f"{name} {method}", "RF seconds") for method in ("EFS", "DFE", "CFS")))
            for name in ("Leukemia", "Lymphoma")
        ),
    ),
    (
        "fsdd-2008",
        "is below one and a half points except for naive Bayes on Spectrometer",
        lambda s: (
            {
                place
                for place, distance in s.table("Distance from the published rows").items()
                if place[0].endswith("FSDD") and "Mfeat" not in place[0] and place[1] != "DT" and distance >= 1.5
            }
            == {("Spectrometer FSDD", "NB")}
        ),
    ),
    (
        "fsdd-2008",
        "for ReliefF it is at most {{Distance from the published rows | Spectrometer ReliefF | KNN}} points",
        lambda s: (
            max(
                distance
                for (row, model), distance in s.table("Distance from the published rows").items()
                if row.endswith("ReliefF") and "Mfeat" not in row and model != "DT"
            )
            == s.ours("Distance from the published rows", "Spectrometer ReliefF", "KNN")
        ),
    ),
    (
        "fsdd-2008",
        "FSDD has a higher mean accuracy than ReliefF on all sets where the paper says so",
        lambda s: min(s.means("beats ReliefF").values()) > 0,
    ),
    (
        "fsdd-2008",
        "on Mfeat and Spambase, where the lead is largest, this is significant",
        lambda s: (
            {"Mfeat", "Spambase"}
            == s.verdicts("beats ReliefF", HOLDS)
            == set(sorted(s.means("beats ReliefF"), key=s.means("beats ReliefF").get)[-2:])
        ),
    ),
    (
        "fsdd-2008",
        "it holds on Spambase only, and on Satimage and Spectrometer mRMR-MID is significantly ahead",
        lambda s: (
            (s.verdicts("beats mRMR-MID", HOLDS), s.verdicts("beats mRMR-MID", FAILS))
            == ({"Spambase"}, {"Satimage", "Spectrometer"})
        ),
    ),
    (
        "fsdd-2008",
        "mRMR-MID is as good as FSDD or better on most sets",
        lambda s: sum(mean < 0.2 for mean in s.means("beats mRMR-MID").values()) > 4,
    ),
    (
        "fsdd-2008",
        "equivalent to ReliefF within two points where the paper calls them comparable",
        lambda s: s.claims["comparable to ReliefF"].verdict == HOLDS,
    ),
    (
        "fsdd-2008",
        "most on Vowel and Wine",
        lambda s: set(sorted(by_tree(s), key=by_tree(s).get)[-2:]) == {"Vowel FSDD", "Wine FSDD"},
    ),
]


def by_tree(s):
    rows = s.table("Distance from the published rows")
    return {row: distance for (row, model), distance in rows.items() if row.endswith("FSDD") and model == "DT"}


@pytest.mark.parametrize(("paper", "sentence", "holds"), SENTENCES, ids=[sentence for _, sentence, _ in SENTENCES])
def test_a_result_in_words_is_that_of_the_stored_results(paper, sentence, holds):
    text = " ".join((folder_of(paper) / "article.md").read_text(encoding="utf-8").split())
    assert sentence in text
    assert holds(Stored(paper))
