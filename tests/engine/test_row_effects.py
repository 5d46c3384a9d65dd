"""Effects on groups of rows equal their naive twins, and their standard errors cover."""

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone

import naive
from probewise import DAF, Tournament
from probewise.criteria import KNN
from probewise.engine.ledger import Ledger, LedgerError, packed_rows, unpacked_rows
from probewise.engine.row_effects import RowEffects, group_effects
from probewise.engine.run import Run
from probewise.engine.settings import RowGroups
from probewise.stopping import MaxProbes


def table(n_rows=40, n_features=12, seed=0):
    random = np.random.default_rng(seed)
    y = np.arange(n_rows) % 2
    X = random.standard_normal((n_rows, n_features))
    X[:, :2] += 1.5 * y[:, None]
    return X, y


@pytest.fixture(scope="module")
def fitted():
    X, y = table()
    return DAF(criterion=KNN(3), stop=MaxProbes(300), max_probe_size=6, random_state=0).fit(X, y)


# ---- groups of rows


def test_groups_are_alike_and_keep_rows_together():
    y = np.repeat([0, 1, 2], [100, 60, 40])
    groups = RowGroups.of(np.full(200, 1 / 200), y)
    assert groups.group_of.max() == 63
    counts = np.array([np.bincount(groups.group_of[y == label], minlength=64) for label in range(3)])
    assert (np.ptp(counts, axis=1) <= 1).all()
    np.testing.assert_allclose(groups.shares.sum(), 1)
    patients = np.arange(200) // 4
    together = RowGroups.of(np.full(200, 1 / 200), y, together=patients)
    assert len(np.unique(together.group_of)) == 50
    assert all(len(np.unique(together.group_of[patients == patient])) == 1 for patient in range(50))
    some = RowGroups.of(np.where(np.arange(200) < 150, 1 / 150, 0.0), y)
    assert (some.group_of[150:] == -1).all()
    assert RowGroups.of(np.full(4, 0.25), y[:4]) is None


def test_rows_are_kept_to_16_bits():
    rows = np.array([[0.0, 1.0, 0.3333], [-2.5, -7.0, 0.9]])
    np.testing.assert_allclose(unpacked_rows(packed_rows(rows)), np.maximum(rows, -3), atol=4 / 65535)


# ---- effects


def test_effects_and_errors_equal_their_twin(fitted):
    run = fitted.run_
    probes = [set(fitted.run_.feature_plan.probe(i).tolist()) for i in range(fitted.n_probes_)]
    effects, row_errors = naive.row_effects(probes, run.ledger.rows(), run.settings.row_shares, 12)
    np.testing.assert_allclose(run.row_effects.row_errors, row_errors, rtol=1e-9)
    np.testing.assert_allclose(run.row_effects.effects, effects, atol=1e-4)  # of rows kept to 16 bits
    by_group = group_effects(run.plan, run.ledger, np.array([0, 3]), run.ledger.n_probes)
    np.testing.assert_allclose(by_group @ run.settings.row_shares, effects[[0, 3]], atol=1e-9)


def test_j_is_the_mean_over_groups(fitted):
    run = fitted.run_
    np.testing.assert_allclose(run.ledger.rows() @ run.settings.row_shares, run.ledger.values(), atol=1e-4)


def test_errors_about_rows_are_wider(fitted):
    assert (fitted.run_.std_errors() > fitted.run_.std_errors(over="probes")).all()
    assert fitted.std_errors_.tolist() == fitted.run_.std_errors().tolist()
    rows, probes = fitted.run_.certainty(), fitted.run_.certainty(over="probes")
    assert (np.diff(rows.intervals()) > np.diff(probes.intervals())).all()
    with pytest.raises(ValueError, match="over='patients' must be 'rows' or 'probes'"):
        fitted.run_.certainty(over="patients")


def test_luck_is_as_wide_as_most_features_show():
    random, t = np.random.default_rng(0), stats.t(30)
    for n_features, width in ((400, 2.0), (400, 0.5), (20, 2.0)):
        effects = np.append(width * random.standard_normal(n_features - 1), 12.0)
        found = RowEffects(effects, np.full(n_features, 1 / 1.2), np.zeros(n_features), 31)
        ratio = effects - effects.mean()
        low, high = np.quantile(ratio, [0.25, 0.75])
        spread = (high - low) / (2 * stats.norm.ppf(0.75)) if (n_features, width) == (400, 2.0) else 1.0
        np.testing.assert_allclose(found.p_values, t.sf(ratio / spread), rtol=1e-3)


def test_a_ledger_keeps_rows_and_a_leaner_one_does_not(fitted, tmp_path):
    X, y = table()
    options = {"criterion": KNN(3), "max_probe_size": 6, "random_state": 0}
    for stop in (130, 300):  # inside a block, then on
        kept = DAF(stop=MaxProbes(stop), ledger=tmp_path / "run", **options).fit(X, y)
    assert kept.run_.ledger.rows().tobytes() == fitted.run_.ledger.rows().tobytes()
    with Ledger(tmp_path / "run") as ledger:
        read = Run.read(ledger)
    assert read.p_values().tolist() == pytest.approx(kept.p_values_.tolist(), rel=1e-6)
    assert read.std_errors().tolist() == kept.run_.std_errors().tolist()
    lean = DAF(stop=MaxProbes(300), row_effects=False, ledger=tmp_path / "lean", **options).fit(X, y)
    assert lean.scores_.tobytes() == kept.scores_.tobytes()
    assert (tmp_path / "lean").stat().st_size < (tmp_path / "run").stat().st_size
    assert not hasattr(lean, "p_values_")
    assert lean.std_errors_.tolist() == lean.run_.std_errors(over="probes").tolist()
    with pytest.raises(LedgerError, match="its row_groups is null, not 40"):
        DAF(stop=MaxProbes(350), ledger=tmp_path / "lean", **options).fit(X, y)


def test_any_number_of_workers_gives_the_same_rows(fitted):
    X, y = table()
    two = DAF(criterion=KNN(3), stop=MaxProbes(300), max_probe_size=6, random_state=0, n_jobs=2).fit(X, y)
    assert two.run_.ledger.rows().tobytes() == fitted.run_.ledger.rows().tobytes()
    assert two.p_values_.tobytes() == fitted.p_values_.tobytes()


def test_a_criterion_that_gives_j_only_has_no_such_errors():
    X, y = table()
    only_j = DAF(criterion=lambda X, y: float(X[:, 0].sum()), stop=MaxProbes(50), random_state=0).fit(X, y)
    assert only_j.run_.row_effects is None
    assert only_j.p_values_.shape == (12,)  # what features tell alone is known nevertheless


def test_squared_errors_have_a_unit():
    X, y = table()
    target = 1e6 * (X[:, 0] + y)
    options = {"criterion": KNN(3, task="regression"), "stop": MaxProbes(100), "random_state": 0}
    errors = [
        DAF(scoring=name, **options).fit(X, target).run_.std_errors() for name in ("neg_mean_squared_error", "r2")
    ]
    assert np.isfinite(errors[0]).all()
    assert np.median(errors[0]) > 1e9 * np.median(errors[1])


def test_what_is_clear_is_expected_to_be_stable():
    X, y = table(60, 40)
    clear = DAF(criterion=KNN(3), stop=MaxProbes(600), max_probe_size=6, random_state=0).fit(X, y)
    noise = clone(clear).fit(X, np.random.default_rng(5).permutation(y))
    assert clear.run_.expected_stability(2) > 0.8 > 0.5 > noise.run_.expected_stability(2)
    with pytest.raises(ValueError, match="top=40 must be a whole number from 1 to 39"):
        clear.run_.expected_stability(40)


# ---- which rows


def test_a_subgroup_shows_in_the_rows_that_features_help():
    """Half of class 1 is told by the first feature, the other half by the second."""
    random, y = np.random.default_rng(0), np.repeat(["a", "b"], 24)
    X = random.standard_normal((48, 12))
    X[24:36, 0] += 4
    X[36:, 1] += 4
    daf = DAF(criterion=KNN(3), stop=MaxProbes(600), max_probe_size=4, random_state=0).fit(X, y)
    found = daf.run_.which_rows(2, labels=y)
    assert set(found.names) == {"x0", "x1"}
    assert found.blocks == [("a", 0, 24), ("b", 24, 48)]
    rows = np.concatenate(found.rows)
    assert sorted(rows.tolist()) == list(range(48))
    by_row = group_effects(daf.run_.plan, daf.run_.ledger, np.array([0, 1]), daf.n_probes_)
    columns = [int(name[1]) for name in found.names]
    np.testing.assert_allclose(found.effects, by_row[columns][:, rows])  # each row is a group here
    first, second = (found.effects[found.names.index(name)] for name in ("x0", "x1"))
    assert first[(rows >= 24) & (rows < 36)].mean() > first[rows >= 36].mean() + 0.1
    assert second[rows >= 36].mean() > second[(rows >= 24) & (rows < 36)].mean() + 0.1
    halves = rows[24:] < 36  # inside a class, rows that the same features help are side by side
    assert halves[:12].mean() > 0.8 > 0.2 > halves[12:].mean() or halves[:12].mean() < 0.2 < 0.8 < halves[12:].mean()


def test_groups_of_several_classes_have_none():
    X, y = table(150, 6)
    found = DAF(criterion=KNN(3), stop=MaxProbes(100), random_state=0).fit(X, y).run_.which_rows(3, labels=y)
    assert found.effects.shape == (3, 64)
    assert found.blocks == []
    assert set(found.classes) == {None}
    assert sorted(np.concatenate(found.rows).tolist()) == list(range(150))
    with pytest.raises(ValueError, match="top=0 must be a whole number of at least 1"):
        DAF(stop=MaxProbes(10), random_state=0).fit(X, y).run_.which_rows(0)
    with pytest.raises(AttributeError, match="which_rows is not known: this run stored nothing about rows"):
        DAF(stop=MaxProbes(10), row_effects=False).fit(X, y).run_.which_rows()


def test_a_feature_that_early_probes_missed_is_sure_of_something():
    """In a wide table a short first round misses some of those that come out on top: their ranks are not unknown."""
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    X = rng.standard_normal((40, 1500))
    X[:, :30] += 1.5 * y[:, None]
    found = Tournament(10, n_probes=200, random_state=0).fit(X, y)
    missed = ~np.isfinite(found.run_.row_effects.row_errors)
    on_top = found.ranking_ <= 10
    assert (missed & on_top).any()
    assert np.isfinite(found.std_errors_[on_top]).all()
    assert found.run_.certainty().rank_intervals(0.95)[on_top, 1].max() < 100


@pytest.mark.exhaustive
def test_intervals_about_rows_cover():
    """A short form of benchmarks/rows.py: tables drawn again from one law."""
    found = []
    for seed in range(40):
        random = np.random.default_rng(seed)
        X, y = random.standard_normal((60, 12)), random.permutation(np.arange(60) % 2)
        X[:, :4] += y[:, None]
        daf = DAF(criterion=KNN(3), stop=MaxProbes(300), max_probe_size=6, random_state=seed).fit(X, y)
        found.append(daf.run_.row_effects)
    effects = np.array([each.effects - each.effects.mean() for each in found])
    inside = np.abs(effects - effects.mean(axis=0)) < 1.96 * np.array([each.std_errors for each in found])
    assert 0.9 < inside[:, :4].mean() < 0.995
    assert inside[:, 4:].mean() > 0.93
