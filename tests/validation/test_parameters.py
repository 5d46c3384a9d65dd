"""Parameters of the estimators: bad values are named, and lists of columns are resolved in linear time."""

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

from probewise import CFS, DAF, DFE, EFS, FCBF, FSDD, JMI, MRMR, AdaptiveRandomForestClassifier, ReliefF, Tournament
from probewise.datasets import make_madelon
from probewise.discretize import Discretizer
from probewise.io.second_file import rows_by_id
from probewise.validation.parameters import grouped, named_columns

COUNTS = Counter()


class Name(str):
    """A name that counts how often it is compared."""

    def __eq__(self, other):
        COUNTS["comparisons"] += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


@pytest.fixture
def names():
    COUNTS.clear()
    return np.array([Name(f"x{column}") for column in range(500)], dtype=object)


def test_columns_and_groups_are_looked_up_by_name_in_one_pass(names):
    texts = [f"x{column}" for column in range(500)]
    assert named_columns(texts, "keep", names, 500).tolist() == list(range(500))
    assert [group.tolist() for group in grouped([[text] for text in texts], names, 500)] == [[c] for c in range(500)]
    assert COUNTS["comparisons"] < 20 * 500


def test_a_name_of_two_columns_means_the_first():
    assert named_columns(["a"], "keep", np.array(["b", "a", "a"]), 3).tolist() == [1]


class Ids(list):
    def __iter__(self):
        COUNTS["reads"] += 1
        return super().__iter__()


def test_labels_by_id_read_the_ids_only_a_few_times():
    COUNTS.clear()
    ids, keys = Ids(["a", "b"]), ["a", "b", *["unknown"] * 300]
    source = SimpleNamespace(texts=lambda index: keys, names=["id"], path="labels.csv")
    assert rows_by_id(source, 0, ids) == [0, 1]
    assert COUNTS["reads"] < 10


@pytest.mark.parametrize("value", ["some", [3], {}, np.nan, 0.37, object()], ids=lambda value: type(value).__name__)
@pytest.mark.parametrize(
    ("estimator", "name"),
    [
        *((DAF, name) for name in ("max_probe_size", "check_every", "n_jobs", "random_state")),
        *((Tournament, name) for name in ("n_jobs", "random_state")),
        *((kind, "discretization") for kind in (EFS, DFE, CFS, FCBF)),
        *((kind, "levels") for kind in (MRMR, JMI)),
        (Discretizer, "method"),
        (FSDD, "n_jobs"),
        (AdaptiveRandomForestClassifier, "random_state"),
    ],
    ids=lambda part: getattr(part, "__name__", part),
)
def test_a_bad_value_is_named_with_its_parameter(estimator, name, value):
    with pytest.raises(ValueError) as raised:
        estimator(**{name: value}).fit(np.eye(12, 4), np.arange(12) % 2)
    assert f"{name}={value!r}" in str(raised.value)


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        (DAF(inclusion="half"), "inclusion='half' must be a share above 0 and below 1 or None"),
        (DAF(check_every=None), "check_every=None must be a whole number"),
        (DAF(ledger=7), "ledger=7 must be the path of a file"),
        (DAF(n_jobs=0), "n_jobs=0 must be a whole number of workers, -1 for all cores"),
        (DAF(random_state=-1), "random_state=-1 cannot be used: Seed must be between 0 and"),
        (
            DAF(random_state=np.random.default_rng(0)),
            r"random_state=Generator\(PCG64\).*; give a whole number, or None",
        ),
        (ReliefF(n_samples=3, random_state="x"), "random_state='x' cannot be used"),
        (Tournament(time_limit="1h"), "time_limit='1h' must be a number above 0 or None"),
    ],
    ids=range(8),
)
def test_the_error_for_a_bad_value_has_a_remedy(selector, message):
    with pytest.raises(ValueError, match=message):
        selector.fit(np.eye(12, 4), np.arange(12) % 2)


def test_a_generator_cannot_seed_a_data_set():
    with pytest.raises(ValueError, match=r"random_state=Generator.*give a whole number"):
        make_madelon(30, 30, random_state=np.random.default_rng(0))
