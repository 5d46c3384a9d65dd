"""Cross-validation folds: scikit-learn's splits, with warnings and errors where they make no sense."""

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold, ShuffleSplit, StratifiedGroupKFold

from probewise import Tournament
from probewise.criteria.base import Folds
from probewise.validation.errors import ParameterError


@pytest.mark.parametrize("step", [1, -1])
def test_rows_sorted_by_y_cause_a_warning(step):
    y = np.sort(np.random.default_rng(0).standard_normal(30))[::step]
    with pytest.warns(UserWarning, match="the rows are sorted by y: none of the 3 folds is trained on numbers like"):
        Folds.of(3, y, is_classification=False)
    for quiet in (np.roll(y, 1), np.ones(30), y[:8]):
        Folds.of(3, quiet, is_classification=False)
    Folds.of("loo", y, is_classification=False)
    Folds.of(3, np.repeat([0, 1], 15), is_classification=True)


@pytest.mark.parametrize("cv", ["loo", 3, ShuffleSplit(3, random_state=0)], ids=str)
def test_split_groups_cause_a_warning(cv):
    X, y = np.random.default_rng(0).standard_normal((60, 4)), np.arange(60) % 2
    patients = np.arange(60) % 15
    splits = Folds.of(cv, y, is_classification=True).splits
    split = set().union(*(set(patients[train]) & set(patients[test]) for train, test in splits))
    message = rf"cv splits {len(split)} groups: .* give cv=StratifiedGroupKFold\(3\)"
    with pytest.warns(UserWarning, match=message) as caught:
        Tournament(2, n_probes=50, cv=cv, random_state=0).fit(X, y, groups=patients)
    assert [warning.filename for warning in caught] == [__file__]
    Tournament(2, n_probes=50, cv=StratifiedGroupKFold(3), random_state=0).fit(X, y, groups=patients)
    Tournament(2, n_probes=50, cv=cv, random_state=0).fit(X, y, groups=np.arange(60))


def test_a_tournament_keeps_groups_together(recwarn):
    rng = np.random.default_rng(0)
    X, y, patients = rng.standard_normal((60, 4)), np.arange(60) % 2, np.repeat(np.arange(20), 3)
    for target, folds in ((y, StratifiedGroupKFold(3)), (X[:, 0] + rng.standard_normal(60), GroupKFold(3))):
        ours = Tournament(2, n_probes=50, random_state=0).fit(X, target, groups=patients)
        explicit = Tournament(2, n_probes=50, cv=folds, random_state=0).fit(X, target, groups=patients)
        np.testing.assert_array_equal(ours.run_.ledger.values(0, 50), explicit.run_.ledger.values(0, 50))
        assert ours.run_.settings.cv == explicit.run_.settings.cv
    assert Tournament(2, n_probes=50, random_state=0).fit(X, y, groups=np.arange(60)).run_.settings.cv == "loo"
    assert not recwarn
    with pytest.raises(ParameterError, match="groups: all rows are of one group"):
        Tournament(2, n_probes=50, random_state=0).fit(X, y, groups=np.zeros(60))


@pytest.mark.parametrize("cv", [1, 0, -3, True])
def test_fewer_than_two_folds_are_refused(cv):
    with pytest.raises(ParameterError, match=f"cv={cv} must be at least 2"):
        Folds.of(cv, np.arange(20) % 2, is_classification=True)
