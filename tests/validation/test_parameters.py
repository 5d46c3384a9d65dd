"""Parameters that cannot be meant are named; what is said about single features takes time in proportion to it."""

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest

from probewise import (
    CFS,
    DAF,
    DFE,
    EFS,
    FCBF,
    FSDD,
    JMI,
    MRMR,
    AdaptiveRandomForestClassifier,
    ReliefF,
    Tournament,
)
from probewise.datasets import make_madelon
from probewise.discretize import Discretizer
from probewise.io.reading import _rows_by_id
from probewise.validation.parameters import checked_costs, grouped, named_columns

WORK = Counter()


class Name(str):
    """Counts how often names are compared."""

    def __eq__(self, other):
        WORK["compared"] += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


@pytest.fixture
def names():
    WORK.clear()
    return np.array([Name(f"x{column}") for column in range(500)], dtype=object)


def test_columns_groups_and_costs_by_name_are_found_in_one_pass(names):
    texts = [f"x{column}" for column in range(500)]
    assert named_columns(texts, "keep", names, 500).tolist() == list(range(500))
    assert [group.tolist() for group in grouped([[text] for text in texts], names, 500)] == [[c] for c in range(500)]
    assert checked_costs({text: column + 1.0 for column, text in enumerate(texts)}, names, 500)[7] == 8.0
    assert WORK["compared"] < 20 * 500


def test_of_two_columns_of_one_name_the_first_is_meant():
    assert named_columns(["a"], "keep", np.array(["b", "a", "a"]), 3).tolist() == [1]


class Ids(list):
    def __iter__(self):
        WORK["read"] += 1
        return super().__iter__()


def test_labels_by_id_read_the_ids_a_few_times():
    """Ids that stand in the second file many times and are of no row here were each looked for among all ids."""
    WORK.clear()
    ids, kept = Ids(["a", "b"]), ["a", "b", *["unknown"] * 300]
    source = SimpleNamespace(texts=lambda index: kept, names=["id"], path="labels.csv")
    assert _rows_by_id(source, 0, ids) == [0, 1]
    assert WORK["read"] < 10


FAR = 2**60 + np.arange(40)  # as floats all are equal


@pytest.mark.parametrize(
    "X",
    [
        np.stack([np.arange(40), FAR], axis=1),
        pd.DataFrame({"a": np.arange(40) / 7, "t": FAR}),
        pl.DataFrame({"a": np.arange(40) / 7, "t": FAR}),
    ],
    ids=["array", "pandas", "polars"],
)
def test_whole_numbers_that_floats_cannot_tell_apart_are_told_of(X):
    with pytest.warns(UserWarning, match=r"column '(1|t)' of X holds whole numbers beyond 2\*\*53.*smallest value"):
        FSDD().fit(X, np.arange(40) % 2)


@pytest.mark.parametrize("far", [2**60 + 10**12 * np.arange(40), np.full(40, 2**60), 2**52 + np.arange(40)])
def test_times_in_nanoseconds_are_fine(far):
    FSDD().fit(np.stack([np.arange(40), far], axis=1), np.arange(40) % 2)


@pytest.mark.parametrize("value", ["some", [3], {}, np.nan, 0.37, object()], ids=lambda value: type(value).__name__)
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *((DAF, name) for name in ("max_probe_size", "check_every", "block_size", "n_jobs", "random_state")),
        *((Tournament, name) for name in ("n_jobs", "random_state")),
        *((kind, "discretization") for kind in (EFS, DFE, CFS, FCBF)),
        *((kind, "levels") for kind in (MRMR, JMI)),
        (Discretizer, "method"),
        (FSDD, "n_jobs"),
        (AdaptiveRandomForestClassifier, "random_state"),
    ],
    ids=lambda part: getattr(part, "__name__", part),
)
def test_what_is_no_number_is_refused_by_name(kind, name, value):
    with pytest.raises(ValueError) as told:
        kind(**{name: value}).fit(np.eye(12, 4), np.arange(12) % 2)
    assert f"{name}={value!r}" in str(told.value)


@pytest.mark.parametrize(
    ("selector", "words"),
    [
        (DAF(inclusion="half"), "inclusion='half' must be a probability"),
        (DAF(check_every=None), "check_every=None must be a whole number"),
        (DAF(ledger=7), "ledger=7 must be the path of a file"),
        (DAF(n_jobs=0), "n_jobs=0 must be a whole number of workers, -1 for all cores"),
        (DAF(random_state=-1), "random_state=-1 cannot be used: Seed must be between 0 and"),
        (
            DAF(random_state=np.random.default_rng(0)),
            r"random_state=Generator\(PCG64\).*; give a whole number, or None",
        ),
        (ReliefF(n_samples=3, random_state="x"), "random_state='x' cannot be used"),
        (Tournament(time_limit="1h"), "time_limit='1h' must be above 0 seconds"),
    ],
    ids=range(8),
)
def test_parameters_are_named_with_a_remedy(selector, words):
    with pytest.raises(ValueError, match=words):
        selector.fit(np.eye(12, 4), np.arange(12) % 2)


def test_a_generator_is_no_seed_of_data():
    with pytest.raises(ValueError, match=r"random_state=Generator.*give a whole number"):
        make_madelon(30, 30, random_state=np.random.default_rng(0))
