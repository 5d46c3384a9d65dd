"""The articles: every number has a stored source."""

import re

import pytest

from reproductions import PAPERS, experiment
from reproductions.judge import rules
from reproductions.results import folder_of, published, stored

OTHER = {"daf-2011": {0.01}, "daf-2013": {2011}, "efs-2004": {2004}, "fsdd-2008": set()}  # a grid; years of papers
PARTS = r"(?:sections?|figures?|tables?|eq\.|algorithm|lemmas?|theorems?|proposition|report)"
PLACES = PARTS + r" [\dIVX.]+(?: (?:and|to) [\d.]+)?"
NAMES = r"\d+-NN|C4\.5|COIL-20|MSRC-v1|[A-Za-z]+\d|\d+ November \d{4}|1/36"


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
