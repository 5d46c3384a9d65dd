"""What is said about single features takes time in proportion to what is said; whole numbers beyond a float's."""

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest

from probewise import FSDD
from probewise.checks.parameters import checked_costs, grouped, named_columns
from probewise.io.reading import _found

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
    source = SimpleNamespace(keys=lambda place: kept, names=["id"], path="labels.csv")
    assert _found(source, 0, ids) == [0, 1]
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
