"""Nested cross-validation: folds rank again, sizes come from other folds, and noise scores like guessing."""

import numpy as np
import pytest

import naive
from probewise import DAF, FSDD, Tournament
from probewise.criteria import Linear
from probewise.criteria.base import Target
from probewise.evaluation import nested_score, size_curve
from probewise.evaluation.nested import HeldOutPredictions, NestedScore, probes_of_a_copy
from probewise.evaluation.permutations import permuted_rows
from probewise.evaluation.sizes import SizeCurve
from probewise.stopping import MaxProbes


def table(n_rows=40, n_features=12, seed=0):
    random = np.random.default_rng(seed)
    y = np.arange(n_rows) % 2
    X = random.standard_normal((n_rows, n_features))
    X[:, :2] += 1.5 * y[:, None]
    return X, y


def test_a_nested_score_ranks_again_in_each_fold():
    X, y = table(60, 60)
    fitted = DAF(criterion=Linear(), stop=MaxProbes(200), random_state=0).fit(X, y)
    score = nested_score(fitted, X, y, repeats=1, shuffled=True)
    nested = size_curve(fitted, X, y, nested=True)
    np.testing.assert_allclose(score.curve.scores, nested.scores)
    expected = []
    for fold in range(5):
        enough = naive.suggested_size(nested.sizes, np.delete(nested.scores, fold, axis=0), nested.scores)
        expected.append(nested.scores[fold, nested.sizes.tolist().index(enough)])
    assert score.scores.tolist() == expected
    assert score.guess == 0.5
    assert score.beats_guessing
    assert score.shuffled < score.mean
    said = f"accuracy {score.mean:.4g} ± {score.std_error:.2g} on held-out rows, guessing 0.5, with a shuffled target"
    assert repr(score).startswith(f"NestedScore: {said}")
    assert score.std_error >= np.std(expected, ddof=1) * np.sqrt(1 / 5 + 1 / 4) - 1e-12


def curve_of(*scores, guess=0.6):
    return SizeCurve(np.array([1, 5]), np.array(scores), "accuracy", "", True, guess, 0.01, 0.25)


def test_where_guessing_does_as_well_no_feature_is_used():
    none = NestedScore(curve_of([0.5, 0.55], [0.4, 0.6], [0.55, 0.5]), 3)
    assert none.sizes.tolist() == [0, 0, 0]
    assert (none.mean, none.std_error, none.beats_guessing) == (0.6, 0.01, False)
    some = NestedScore(curve_of([0.5, 0.9], [0.55, 0.92], [0.4, 0.6]), 3)
    assert some.sizes.tolist() == [5, 5, 5]  # the means of the other two folds are 0.76, 0.75 and 0.91, ± 0.10
    weaker = NestedScore(curve_of([0.5, 0.9], [0.55, 0.92], [0.4, 0.4]), 3)
    assert weaker.sizes.tolist() == [0, 0, 5]  # they are 0.66, 0.65 and 0.91, ± 0.17
    assert weaker.scores.tolist() == [0.6, 0.6, 0.4]
    unknown = NestedScore(curve_of([0.5, 0.55], [0.4, 0.6], [0.55, 0.5], guess=None), 3)
    assert (unknown.sizes > 0).all()


def test_sizes_are_chosen_by_folds_that_test_on_rows_trained_on():
    first, second = [[0.9, 0.5], [0.9, 0.5], [0.9, 0.4]], [[0.5, 0.9], [0.4, 0.9], [0.5, 0.9]]
    assert NestedScore(curve_of(*first, *second), 3).sizes.tolist() == [1, 1, 1, 5, 5, 5]


def test_repeats_are_fixed():
    """The number of folds, and of probes of a copy, follows from the data and the run, never from the clock."""
    X, y = table(20, 5)
    fitted = FSDD().fit(X, y)
    once, usual = nested_score(fitted, X, y, repeats=1), nested_score(fitted, X, y)
    assert (len(once.scores), len(usual.scores)) == (5, 15)
    assert usual.curve.scores[:5].tolist() == once.curve.scores.tolist()
    assert len(nested_score(fitted, X, y, repeats=3, groups=np.arange(20) // 4).scores) == 5  # five groups, one each
    patients = np.arange(20) // 2
    grouped = nested_score(fitted, X, y, repeats=3, groups=patients).curve
    divisions = {tuple(sorted(map(tuple, (test for (_, test), _ in grouped.chosen[at : at + 5])))) for at in (0, 5, 10)}
    assert (len(grouped.scores), len(divisions)) == (15, 3)
    assert all(not {*patients[train]} & {*patients[test]} for (train, test), _ in grouped.chosen)
    daf = DAF(stop=MaxProbes(2000), random_state=0).fit(X, y)
    assert probes_of_a_copy(daf) == 1000
    assert probes_of_a_copy(Tournament(n_probes=300, time_limit=60, random_state=0).fit(X, y)) == 15
    with pytest.raises(ValueError, match="repeats=0 must be"):
        nested_score(fitted, X, y, repeats=0)


def test_rows_that_belong_together_are_shuffled_together():
    """25 patients of four rows alike: told apart by the rows of the same patient, unless these are kept together."""
    random, patients = np.random.default_rng(0), np.arange(100) // 4
    X = random.standard_normal((25, 40))[patients] + random.standard_normal((100, 40)) / 10
    y = (patients % 2)[np.argsort(random.permutation(25))[patients] * 4]
    score = nested_score(FSDD().fit(X, y), X, y, repeats=1, shuffled=True, groups=patients)
    blind = nested_score(FSDD().fit(X, y), X, y, repeats=1)
    assert blind.mean > 0.9 > 0.7 > max(score.mean, score.shuffled)


def test_one_changed_row_of_a_patient_does_not_stop_the_exchange_of_patients():
    random, patients = np.random.default_rng(0), np.repeat(np.arange(30), 3)
    y = (np.arange(30) % 2)[patients]
    X = random.standard_normal((90, 40)) + 2 * y[:, None]
    y[0] = 1 - y[0]
    score = nested_score(FSDD().fit(X, y), X, y, repeats=1, shuffled=True, groups=patients)
    assert score.mean > 0.9 > 0.7 > score.shuffled


def test_permuted_rows_keep_groups_together():
    """Groups of one size are exchanged whole; those of other sizes get the targets of a group of a similar size."""
    groups = np.random.default_rng(1).permutation(np.repeat(np.arange(20), [3] * 12 + list(range(4, 12))))
    sources = np.array([permuted_rows(groups, len(groups), seed) for seed in range(30)])
    for source in sources:
        assert all(len(np.unique(groups[source][groups == group])) == 1 for group in range(20))
        of_equal = source[groups < 12]
        assert sorted(of_equal) == np.flatnonzero(groups < 12).tolist()
    assert (groups[sources] != groups).mean() > 0.8
    assert sorted(permuted_rows(None, 50, 0)) == list(range(50))


def test_guessing_knows_weights():
    X, y = table(20, 5)
    score = size_curve(FSDD().fit(X, y), X, y, sample_weight=np.where(y == 1, 3.0, 1.0))
    assert (score.guess, score.guess_error) == pytest.approx((0.75, np.sqrt(0.75 * 0.25 * 100) / 40))


def test_honest_scores_of_noise_are_near_guessing():
    """A short form of benchmarks/rows.py: classes 7 : 3, of which one who always uses features gets few right."""
    found = []
    for seed in range(8):
        random = np.random.default_rng(seed)
        X, y = random.standard_normal((50, 6)), random.permutation(np.arange(50) < 15)
        found.append(nested_score(FSDD().fit(X, y), X, y, repeats=1))
    off = np.array([score.mean - score.guess for score in found])
    assert off.mean() > -0.03
    assert (np.abs(off) <= 2 * np.array([score.std_error for score in found])).sum() >= 7
    assert sum(score.beats_guessing for score in found) <= 1


@pytest.mark.slow
def test_the_error_of_guessing_counts_groups_and_not_their_rows():
    """Three rows of each of 20 patients are no more than 20 patients; 40 tables of noise, two standard errors."""
    found = []
    for seed in range(40):
        random = np.random.default_rng(seed)
        patient = np.repeat(np.arange(20), 3)
        X, y = random.standard_normal((20, 8))[patient] + 0.1 * random.standard_normal((60, 8)), patient % 2
        found.append(nested_score(FSDD().fit(X, y), X, y, groups=patient))
    assert found[0].curve.guess_error == pytest.approx(np.sqrt(0.25 / 20))
    assert sum(score.beats_guessing for score in found) <= 5


def test_the_error_of_the_auc_is_its_spread_over_samples_and_never_0():
    random = np.random.default_rng(0)
    target = Target.of(np.repeat([0, 1], [60, 20]), "classification")
    draws = [
        HeldOutPredictions(target, 1, target.values, random.standard_normal(80) + target.values).auc for _ in range(400)
    ]
    areas, errors = np.transpose(draws)
    assert abs(areas.mean() - 0.76) < 0.01  # the probability that a normal value exceeds another one by -1
    assert abs(errors.mean() / areas.std() - 1) < 0.15
    for sign, area in ((1, 1.0), (-1, 0.0)):
        found = HeldOutPredictions(target, 1, target.values, sign * target.values.astype(float)).auc
        assert found[0] == area
        assert 0.01 < found[1] < 0.1


def test_the_error_of_the_auc_counts_groups_and_not_their_rows():
    """Nearly equal replicates add no information: three of each patient have the error of one of each patient."""
    random, patients = np.random.default_rng(0), np.repeat(np.arange(80), 3)
    y, decisions = np.repeat([0, 1], [60, 20]), random.standard_normal(80)
    once = HeldOutPredictions(Target.of(y, "classification"), 1, y, decisions + y)
    thrice = HeldOutPredictions(
        Target.of(y[patients], "classification"), 1, y[patients], (decisions + y)[patients], patients
    )
    assert thrice.auc == pytest.approx(once.auc)
