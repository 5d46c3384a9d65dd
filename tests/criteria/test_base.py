"""Labels become numbers as numpy would number them, whatever their type; folds are what they are said to be."""

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold, ShuffleSplit, StratifiedGroupKFold

from probewise import Tournament
from probewise.criteria.base import Folds, Target
from probewise.validation.errors import ParameterError


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64, np.uint64])
@pytest.mark.parametrize("spread", [2, 7, 100])
def test_whole_numbers(dtype, spread):
    rng = np.random.default_rng(spread)
    y = (rng.integers(0, spread, 300) - (spread // 2 if np.issubdtype(dtype, np.signedinteger) else 0)).astype(dtype)
    target = Target.of(y, "classification")
    classes, codes = np.unique(y, return_inverse=True)
    np.testing.assert_array_equal(target.classes, classes)
    np.testing.assert_array_equal(target.values, codes)
    assert target.classes.dtype == dtype


@pytest.mark.parametrize(
    "labels",
    [
        np.array([-128, 127] * 200, dtype=np.int8),
        np.array([2**63 + 5, 2**63 + 7], dtype=np.uint64),
        np.array([-(2**63), 2**63 - 1], dtype=np.int64),
        np.array(["b", "a", "c"]),
        np.array([True, False]),
        np.array([1.0, 2.0, 1.0]),
    ],
    ids=lambda labels: str(labels.dtype),
)
def test_extremes_and_other_types(labels):
    target = Target.of_classes(labels)
    classes, codes = np.unique(labels, return_inverse=True)
    np.testing.assert_array_equal(target.classes, classes)
    np.testing.assert_array_equal(target.values, codes)


def test_a_continuous_target_has_no_classes():
    with pytest.raises(ValueError, match="y is continuous"):
        Target.of_classes(np.array([0.5, 1.25, 3.0]))


@pytest.mark.parametrize("step", [1, -1])
def test_rows_sorted_by_a_quantity_are_told_of(step):
    y = np.sort(np.random.default_rng(0).standard_normal(30))[::step]
    with pytest.warns(UserWarning, match="the rows are sorted by y: none of the 3 folds is trained on numbers like"):
        Folds.of(3, y, is_classification=False)
    for quiet in (np.roll(y, 1), np.ones(30), y[:8]):
        Folds.of(3, quiet, is_classification=False)
    Folds.of("loo", y, is_classification=False)
    Folds.of(3, np.repeat([0, 1], 15), is_classification=True)


@pytest.mark.parametrize("cv", ["loo", 3, ShuffleSplit(3, random_state=0)], ids=str)
def test_groups_that_folds_cut_apart_are_told_of(cv):
    X, y = np.random.default_rng(0).standard_normal((60, 4)), np.arange(60) % 2
    patients = np.arange(60) % 15
    splits = Folds.of(cv, y, is_classification=True).splits
    cut = set().union(*(set(patients[train]) & set(patients[test]) for train, test in splits))
    words = rf"cv splits {len(cut)} groups: .* give cv=StratifiedGroupKFold\(3\)"
    with pytest.warns(UserWarning, match=words) as told:
        Tournament(2, n_probes=50, cv=cv, random_state=0).fit(X, y, groups=patients)
    assert [one.filename for one in told] == [__file__]
    Tournament(2, n_probes=50, cv=StratifiedGroupKFold(3), random_state=0).fit(X, y, groups=patients)
    Tournament(2, n_probes=50, cv=cv, random_state=0).fit(X, y, groups=np.arange(60))


def test_a_tournament_keeps_groups_together_by_itself(recwarn):
    rng = np.random.default_rng(0)
    X, y, patients = rng.standard_normal((60, 4)), np.arange(60) % 2, np.repeat(np.arange(20), 3)
    for target, folds in ((y, StratifiedGroupKFold(3)), (X[:, 0] + rng.standard_normal(60), GroupKFold(3))):
        ours = Tournament(2, n_probes=50, random_state=0).fit(X, target, groups=patients)
        asked = Tournament(2, n_probes=50, cv=folds, random_state=0).fit(X, target, groups=patients)
        np.testing.assert_array_equal(ours.run_.ledger.values(0, 50), asked.run_.ledger.values(0, 50))
        assert ours.run_.settings.cv == asked.run_.settings.cv
    assert Tournament(2, n_probes=50, random_state=0).fit(X, y, groups=np.arange(60)).run_.settings.cv == "loo"
    assert not recwarn
    with pytest.raises(ParameterError, match="groups: all rows are of one group"):
        Tournament(2, n_probes=50, random_state=0).fit(X, y, groups=np.zeros(60))


@pytest.mark.parametrize("cv", [1, 0, -3, True])
def test_fewer_than_two_folds_are_refused(cv):
    with pytest.raises(ParameterError, match=f"cv={cv} must be at least 2"):
        Folds.of(cv, np.arange(20) % 2, is_classification=True)
