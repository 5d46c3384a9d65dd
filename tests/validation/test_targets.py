"""Targets and folds: whole numbers as classes or quantities, folds that cannot be trained on, scores without spread."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.model_selection import KFold, LeaveOneGroupOut

from probewise import DAF, Tournament
from probewise.criteria import KNN
from probewise.criteria.base import Target, is_whole_quantity, note_on_task
from probewise.stopping import MaxProbes

RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("y", "is_quantity"),
    [
        (load_diabetes().target, True),  # 214 distinct values
        (RANDOM.integers(20, 80, 1000), True),  # ages in years
        (RANDOM.integers(20, 80, 1000).astype(float), True),
        (RANDOM.poisson(9, 80), True),  # more than a tenth of the rows
        (RANDOM.integers(0, 2, 15), False),
        (RANDOM.integers(1, 5, 20), False),  # few rows, four classes
        (np.repeat(np.arange(9), [15, 9, 8, 7, 6, 6, 5, 2, 2]), False),  # nine classes in 60 rows
        (np.repeat(np.arange(1, 27), 60), False),  # letters, 60 rows of each
        (np.repeat(np.arange(40), 5), False),  # faces, 5 rows of each of 40 persons
        (np.repeat(np.arange(14), [*13 * [8], 3]), False),  # 14 tumor types
        (np.repeat(np.arange(2, 42), 5), True),
        (RANDOM.integers(3, 10, 500), False),  # grades
        (RANDOM.permutation(400).astype(str), False),  # text is never a quantity
    ],
)
def test_whole_numbers_as_a_quantity(y, is_quantity):
    assert is_whole_quantity(y) == is_quantity
    assert Target.of(y).is_classification == (not is_quantity)
    assert Target.of(y, "classification").is_classification
    assert Target.of_classes(y).is_classification


def test_borderline_targets_are_named():
    letters, counts = np.repeat(np.arange(26), 60), RANDOM.poisson(9, 80)
    assert "26 distinct whole numbers and is read as classes" in note_on_task(letters, is_classification=True)
    note = note_on_task(counts, is_classification=False)
    assert "is read as a quantity" in note
    assert "task" in note
    for clear in (np.arange(200), np.arange(200) % 3, letters.astype(str), counts + 0.5):
        assert note_on_task(clear, is_classification=True) is None
    X = RANDOM.standard_normal((80, 5))
    for selector in (Tournament(n_probes=50), DAF(stop=MaxProbes(50))):
        with pytest.warns(UserWarning, match="is read as a quantity"):
            assert selector.fit(X, counts).run_.settings.scoring is None
    DAF(criterion=KNN(task="regression"), stop=MaxProbes(50)).fit(X, counts)  # the task is known


def test_diabetes_is_regression():
    """scikit-learn's diabetes has whole numbers; body mass index and s5 are the best known predictors."""
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    tournament = Tournament(2, n_probes=300, random_state=0).fit(X, y)
    assert set(tournament.get_feature_names_out()) == {"bmi", "s5"}


def test_a_score_of_numbers_means_regression():
    X, y = RANDOM.standard_normal((60, 5)), RANDOM.integers(0, 8, 60)
    assert Tournament(n_probes=50, scoring="r2").fit(X, y).criterion_.task == "regression"


@pytest.mark.parametrize("selector", [Tournament(n_probes=50), DAF(stop=MaxProbes(50), cv=LeaveOneGroupOut())])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_groups_that_are_the_classes_are_refused(selector, n_classes):
    X, y = RANDOM.standard_normal((60, 5)), np.arange(60) % n_classes
    with pytest.raises(ValueError, match=r"groups: (fold 0 is trained on rows of a single class|no fold is trained)"):
        selector.fit(X, y, groups=y)


def test_folds_of_sorted_rows_are_refused():
    X, y = RANDOM.standard_normal((60, 5)), np.repeat([0, 1], 30)
    with pytest.raises(ValueError, match=r"cv: fold 0 is trained on rows of a single class \(1\)"):
        DAF(cv=KFold(2), stop=MaxProbes(50)).fit(X, y)
    with pytest.raises(ValueError, match=r"cv: fold 0 is trained on rows of a single value of y"):
        DAF(cv=KFold(2), criterion=KNN(task="regression"), stop=MaxProbes(50)).fit(X, y)


def test_tied_scores_are_named():
    X, y = RANDOM.standard_normal((60, 30)), np.arange(60) % 2
    with pytest.warns(UserWarning, match="J is 0.5 for all probes: the scores are tied"):
        DAF(criterion=lambda X, y: 0.5, stop=MaxProbes(50), check_every=50).fit(X, y)


def test_scores_without_spread_are_named():
    """With 4% positives both models hardly ever predict them, and balanced accuracy is 0.5 for nearly all probes."""
    X, y = RANDOM.standard_normal((1000, 30)), np.arange(1000) < 40
    X[:40, 3] += 1.5
    tournament = Tournament(n_probes=100, cv=3, scoring="balanced_accuracy", random_state=0)
    with pytest.warns(UserWarning, match=r"J hardly varies between probes \(from 0.49"):
        tournament.fit(X, y)
    with warnings.catch_warnings(action="error"):
        tournament.set_params(scoring="roc_auc").fit(X, y)
        tournament.set_params(scoring="balanced_accuracy").fit(X, np.arange(1000) % 2)
