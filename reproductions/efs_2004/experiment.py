"""Wu, Zhang 2004: EFS against DFE, CFS and all features, on genes and in relevance feedback on images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from probewise.filters.efs import EFS

from ..base import Claim, Outcome, Place, averaged, cells
from ..pictures import Picture
from ..work import Reproduction
from .claims import apart_claims, figure_claims, gene_claims, search_claims, seen_or_not, thresholds
from .feedback import (
    IMAGES,
    comparable_claims,
    feedback,
    feedback_claims,
    figure_3,
    figure_3_claims,
    figure_3_picture,
    precision_by_round,
    table_2,
)
from .genes import (
    NAME,
    SEEN,
    by_search,
    figure_2,
    figure_cells,
    genes,
    picture,
    scaled_apart,
    table_1,
    table_3,
)
from .proofs import proofs
from .remarks import by_number, data_claims, measure_claims, measured, number_cells, number_claims, of_data

TITLE = "Feature selection for classifying high-dimensional numerical data"


@dataclass(frozen=True)
class Settings:
    """How much is done."""

    repeats: Mapping[str, int]  # trials of each gene set: repetitions of the official split, or random splits
    folds: int  # of the cross-validation that chooses the number of features, from sizes, and of trees
    sizes: tuple[int, ...]
    trees: tuple[int, ...]
    figure_points: int  # numbers of genes in figure 2
    figure_repeats: int  # forests for each
    feedback_repeats: int  # times that initial rows are drawn
    queries: Mapping[str, int | None]  # classes searched for in each set and repetition, None for all
    images: tuple[str, ...] = tuple(IMAGES)
    forests: tuple[int, ...] = (1, 5, 10, 20, 40, 60, 90, 120)  # trees of figure 3, on the first set of images
    forest_repeats: int = 1
    numbers: tuple[int, ...] = ()  # of features in feedback, for EFS and DFE
    number_repeats: int = 1


PROFILES = {
    "quick": Settings(
        repeats={
            "Leukemia": 3,
            "Lymphoma": 6,
            "Leukemia, random splits": 4,
            f"Leukemia{SEEN}": 3,
            f"Lymphoma{SEEN}": 3,
        },
        folds=5,
        sizes=(1, 2, 3, 5, 10, 20, 30, 50, 80),
        trees=(10, 20, 30, 40),
        figure_points=12,
        figure_repeats=3,
        feedback_repeats=1,
        queries={"MSRC-v1": 3, "COIL-20": 2, "Mfeat": 2},
    ),
    "full": Settings(
        repeats={
            "Leukemia": 20,
            "Lymphoma": 30,
            "Leukemia, random splits": 20,
            f"Leukemia{SEEN}": 10,
            f"Lymphoma{SEEN}": 10,
        },
        folds=5,
        sizes=(1, 2, 3, 5, 10, 15, 20, 30, 50),
        trees=(8, 11, 14, 20, 30, 40),
        figure_points=16,
        figure_repeats=6,
        feedback_repeats=10,
        queries={"MSRC-v1": 2, "COIL-20": 1, "Mfeat": 1},
        forest_repeats=3,
        numbers=(5, 10, 20, 40, 80, 160),
        number_repeats=10,
    ),
}


def run(reproduction: Reproduction) -> Outcome:
    """The paper's tables and figures 2 and 3."""
    settings = reproduction.settings
    trials = {name: genes(name, reproduction) for name in settings.repeats}
    found = {name: feedback(name, reproduction) for name in settings.images}
    shown = [name for name in ("Leukemia", "Lymphoma") if name in settings.repeats and settings.figure_repeats]
    figures = {name: figure_2(name, reproduction) for name in shown}
    first = settings.images[0]
    forests = figure_3(first, reproduction)
    tables: dict[Place, Sequence[float]] = {("Table 1", "threshold", "Corel"): [EFS().threshold]}
    for name, each in trials.items():
        tables |= table_1(name, each) | table_3(name, each)
    for name, queries in found.items():
        tables |= table_2(name, queries)
    for name, curves in figures.items():
        tables |= figure_cells(name, curves)
    tables |= {("Figure 3", first, name): values for name, values in forests.items()}
    tables |= scaled_apart(reproduction) | by_search(reproduction)
    numbers = {name: by_number(name, reproduction) for name in settings.images if settings.numbers}
    for name, values in numbers.items():
        tables |= number_cells(name, values)
    counts = of_data(reproduction)
    tables |= {place: [value] for place, value in counts.items()}
    ours, notes = averaged(tables, lambda place: place[2].split()[-1] in ("accuracy", "precision"))
    claims: list[Claim] = [
        *data_claims(counts),
        *proofs(reproduction),
        *measure_claims(measured(reproduction)),
        *(claim for name, each in trials.items() for claim in gene_claims(name, each)),
        *seen_or_not(trials),
        *thresholds(trials),
        *apart_claims(tables),
        *search_claims(tables),
        *(claim for name, curves in figures.items() for claim in figure_claims(name, curves)),
        *(claim for name, queries in found.items() for claim in feedback_claims(name, queries)),
        *(claim for name, queries in found.items() for claim in comparable_claims(name, queries)),
        *(claim for name, values in numbers.items() for claim in number_claims(name, values)),
        *figure_3_claims(first, forests),
    ]
    panels = [panel for name, queries in found.items() for panel in precision_by_round(name, queries)]
    pictures = [*([picture(figures)] if figures else []), figure_3_picture(first, forests), Picture("Feedback", panels)]
    return Outcome(cells=cells(NAME, ours, notes), claims=claims, pictures=pictures)
