"""The experiments of the four papers on small tables: every part runs, and an interrupted run continues."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris, load_wine

from probewise.datasets import Dataset, make_madelon
from reproductions import experiment, reproduce
from reproductions.daf_2011 import experiment as daf_2011
from reproductions.daf_2011.data import SETUPS, informative, prepared, ranked
from reproductions.daf_2011.svm import PAPERS_PROBES, SquaredHingeSVM
from reproductions.daf_2013 import experiment as daf_2013
from reproductions.efs_2004 import experiment as efs_2004
from reproductions.fsdd_2008 import experiment as fsdd_2008
from reproductions.judge import rules


def verdicts(outcome):
    return {claim.rule.id: dict(claim.verdicts) for claim in outcome.claims}


@pytest.fixture
def folder(tmp_path):
    made = make_madelon(240, 30, random_state=0)
    np.savez(tmp_path / "madelon.npz", X=made.X, y=made.y)
    for name, (X, y) in (("iris", load_iris(return_X_y=True)), ("wine", load_wine(return_X_y=True))):
        np.savez(tmp_path / f"{name}.npz", X=X, y=y)
    rng = np.random.default_rng(0)
    y = np.arange(72) % 3 == 0
    X = rng.normal(size=(72, 60)) + y[:, None] * (np.arange(60) < 5)
    np.savez(tmp_path / "leukemia.npz", X=X, y=y * 1, train_index=np.arange(38), test_index=np.arange(38, 72))
    np.savez(tmp_path / "msrcv1.npz", X=rng.normal(size=(60, 30)) + 2 * np.eye(60, 30), y=np.arange(60) % 3)
    return tmp_path


@pytest.mark.parametrize("paper", ["daf-2011", "daf-2013", "efs-2004", "fsdd-2008"])
def test_a_paper_says_what_it_is(paper):
    module = experiment(paper)
    assert paper == module.NAME
    assert set(module.PROFILES) == {"quick", "full"}
    assert len(module.TITLE) > 30


def test_the_full_profiles_are_those_of_the_rules():
    full = daf_2011.PROFILES["full"]
    assert full.probes == daf_2011.OF_PAPER
    assert (full.svm_splits, PAPERS_PROBES) == (5, 148_000)
    for rule in rules("daf-2011"):
        assert all(set(sizes) <= set(full.sizes[name]) for name, sizes in rule.sizes.items())
    benches = {bench.name: bench.sizes for bench in fsdd_2008.BENCHES}
    for rule in rules("fsdd-2008"):
        assert all(set(sizes) <= set(benches[name.split(",")[0]]) for name, sizes in rule.sizes.items())
    repeats, classes = efs_2004.PROFILES["full"].images, {"MSRC-v1": 7, "COIL-20": 20, "Mfeat": 10}
    assert all(repeats[name] * number >= 20 for name, number in classes.items())
    assert 83 in efs_2004.PROFILES["full"].sizes


# ---- DAF


SMALL_2011 = daf_2011.Settings(
    5, {"Madelon": 200}, sizes={"Madelon": (2, 5, 10, 15, 20, 30)}, counts=(50, 200), taus=(2, 10), remark_splits=1
)


@pytest.fixture
def small_daf_2011(monkeypatch):
    monkeypatch.setitem(daf_2011.PROFILES, "full", SMALL_2011)
    monkeypatch.setitem(daf_2011.N_FEATURES, "Madelon", 30)


@pytest.mark.slow
def test_daf_2011_runs_and_continues(folder, small_daf_2011, monkeypatch):
    whole = reproduce("daf-2011", data=folder, out=folder / "whole", full=True)
    files = sorted(path.name for path in (folder / "whole" / "runs").iterdir())
    assert files == ["agreement.jsonl", "figure-6.jsonl", "figure-7.jsonl", "madelon.jsonl"]
    cell = whole.cells["Figure 4a, accuracy of 3-NN, Madelon", "DAF0", "10"]
    assert 40 < cell.ours < 100
    assert verdicts(whole)["better than BIF, classifier of J"]["Madelon"] == "not comparable"  # too few probes
    assert verdicts(whole)["better than BIF, classifier of J"]["Reuters"] == "undecided"  # not run

    calls, original = [], daf_2011.Experiment.compare

    def dies(self, split):
        calls.append(split)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(self, split)

    monkeypatch.setattr(daf_2011.Experiment, "compare", dies)
    with pytest.raises(KeyboardInterrupt):
        reproduce("daf-2011", data=folder, out=folder / "ended", full=True)
    again = reproduce("daf-2011", data=folder, out=folder / "ended", full=True)
    assert calls == [0, 1, 2, 2, 3, 4]
    assert {place: str(cell) for place, cell in again.cells.items()} == {
        place: str(cell) for place, cell in whole.cells.items()
    }


def test_quick_runs_of_daf_leave_claims_undecided(folder, monkeypatch):
    quick = daf_2011.Settings(5, {"Madelon": 60}, sizes=SMALL_2011.sizes)
    monkeypatch.setitem(daf_2011.PROFILES, "quick", quick)
    monkeypatch.setitem(daf_2011.N_FEATURES, "Madelon", 30)
    found = verdicts(reproduce("daf-2011", data=folder, out=folder / "quick"))
    assert found["better than BIF, classifier of J"]["Madelon"] == "undecided"


def test_stability_is_compared_by_jackknife():
    found = {k: {"subsets": {"DAF0": {"2": [0, 1]}, "BIF": {"2": [k, k + 10]}}} for k in range(6)}
    values = daf_2011.steadier("Spambase", found, "DAF0", "BIF", [2])
    assert len(values) == 6
    assert values.mean() > 0.9


def test_informative_columns_are_found_without_labels():
    made = make_madelon(2000, 60, random_state=1)
    found = informative(Dataset("madelon", made.X, made.y))
    assert set(found) <= set(made.informative.tolist())
    assert len(found) >= 18


def test_spambase_is_scaled_and_madelon_has_its_training_rows():
    X, y = np.array([[0.0, 5.0], [10.0, 7.0]]), np.array([0, 1])
    assert prepared(Dataset("spambase", X, y))[0].tolist() == [[0.0, 0.0], [1.0, 1.0]]
    assert prepared(Dataset("madelon", X, y, np.array([1]), np.array([0])))[1].tolist() == [1]
    assert [setup.figure for setup in SETUPS.values()] == [2, 3, 4, 5]


@pytest.mark.slow
@pytest.mark.parametrize("criterion", [SETUPS["Reuters"].criterion, SquaredHingeSVM()])
def test_the_topics_of_reuters_are_classes(criterion):
    """33 whole numbers with 9 rows of some would be read as a quantity, with a warning."""
    y = np.repeat(np.arange(33), 9)
    X = sp.csr_matrix(np.random.default_rng(0).poisson(0.5, (len(y), 6)), dtype=np.float64)
    with warnings.catch_warnings(action="error"):
        run = ranked(criterion, X, y, 20, 0, tau=3)
    assert run.ledger.n_probes == 20


@pytest.mark.slow
def test_daf_2013_watches_a_run(folder, monkeypatch):
    settings = daf_2013.Settings(5, 1_200, {"Madelon": (5, 20)}, (200, 400, 800, 1_200))
    monkeypatch.setitem(daf_2013.PROFILES, "full", settings)
    outcome = reproduce("daf-2013", data=folder, out=folder / "out", full=True)
    found = verdicts(outcome)
    assert found["finite limit"] == {"8 features": "holds"}
    assert found["one probe"] == {"500 equal features": "does not hold"}
    assert found["C need not go to zero"] == {"500 equal features": "does not hold"}
    assert outcome.cells["Where rules stop on Madelon", "relative C2 < 0.01", "splits stopped"].ours == 0
    assert outcome.cells["C and C2 on Madelon", "800 probes", "relative C2"].ours == pytest.approx(1)
    names = sorted(path.name for path in (folder / "out").iterdir())
    assert names == ["c-and-c2.svg", "claims.csv", "figure-2.svg", "results.csv", "runs", "settings.json"]


def test_the_limit_of_a_game_is_the_mean_over_all_subsets(monkeypatch):
    monkeypatch.setattr(daf_2013, "N_LIMIT", 2)
    limit = daf_2013.in_the_limit({(0,): 1.0, (1,): 2.0, (0, 1): 4.0})
    np.testing.assert_allclose(limit, [(1 * 0.25 + 4 * 0.5) / 0.75 - 2, (2 * 0.25 + 4 * 0.5) / 0.75 - 1])


# ---- EFS


def test_parts_of_a_forest_are_the_smaller_forests():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 5)), np.arange(80) % 2
    X[:, 0] += y
    train, test = np.arange(40), np.arange(40, 80)
    found = efs_2004.right(X, y, train, test, (3, 10), 0)
    models = [efs_2004.model_of("CART", 1, 0), efs_2004.model_of("RF", 3, 0), efs_2004.model_of("RF", 10, 0)]
    assert found == [int(np.sum(model.fit(X[train], y[train]).predict(X[test]) == y[test])) for model in models]


def test_numbers_are_chosen_by_the_best_of_the_smallest(monkeypatch):
    settings = efs_2004.Settings({}, 0, (1, 5, 9), (2, 4), {}, folds=2)
    monkeypatch.setattr(efs_2004, "right", lambda X, y, train, test, trees, seed: [X.shape[1] == 5, 1, X.shape[1] >= 5])
    rng = np.random.default_rng(0)
    chosen = efs_2004.choose(rng.normal(size=(20, 12)), np.arange(20) % 2, settings, 0)
    assert chosen["EFS"] == {"RF": (5, 2), "CART": (5, 1)}


def test_found_rows_are_counted_from_the_stored_precision():
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(120) % 3)
    X = rng.normal(size=(120, 4)) + np.eye(3, 4)[y]
    record = efs_2004.search(X, y, None, 0, ("Full Space", "ARF", 0))
    shares = efs_2004.shares_found({("Full Space", "ARF", 0): record}, "Full Space", 1, 120, 3)
    assert shares.shape == (3, 12)
    np.testing.assert_allclose(shares * 35 / 100, np.rint(shares * 35 / 100), atol=1e-9)
    np.testing.assert_allclose(shares[:, [0, 6]], [[0, 100]] * 3)  # 105 rows in 6 rounds of 20
    assert (np.diff(shares) >= 0).all()


@pytest.mark.slow
def test_efs_2004_runs_on_genes_and_images(folder, monkeypatch):
    monkeypatch.setattr(efs_2004, "THRESHOLD", ("top", 30))
    monkeypatch.setattr(efs_2004, "FIGURE_SIZES", (1, 50))
    settings = efs_2004.Settings({"Leukemia": 5}, 1, (2, 10), (3, 5), {"MSRC-v1": 1}, queries=2, folds=2)
    monkeypatch.setitem(efs_2004.PROFILES, "full", settings)
    outcome = reproduce("efs-2004", data=folder, out=folder / "out", full=True)
    found = verdicts(outcome)
    assert set(found["what is proved"].values()) == {"holds"}
    assert found["threshold of table 1"]["Leukemia"] == "does not hold"
    assert found["feedback, EFS is best"]["MSRC-v1 ARF"] == "not comparable"
    assert 0 <= outcome.cells["Table 2", "MSRC-v1 EFS", "ARF relative precision"].ours <= 100
    assert outcome.cells["Table 3", "Leukemia EFS", "RF accuracy"].published == 100
    assert (folder / "out" / "figure-3.svg").exists()


# ---- FSDD


def test_a_fold_is_the_literal_loop():
    X, y = load_iris(return_X_y=True)
    bench = next(bench for bench in fsdd_2008.BENCHES if bench.name == "Iris")
    found = [fsdd_2008.fold_accuracy(bench, X, y, 0, (0, fold)) for fold in range(3)]
    assert [each["n_test"] for each in found] == [15, 15, 15]
    assert 0.8 < np.mean([each["FSDD"]["SVM"][1] for each in found]) <= 1
    assert found[0] != fsdd_2008.fold_accuracy(bench, X, y, 0, (1, 0))


def test_levels_of_mrmr_are_taken_literally():
    """A column of which most rows share a value has levels at mean and deviation, too."""
    rng = np.random.default_rng(0)
    X = np.where(rng.random((200, 6)) < 0.8, 0.0, rng.normal(3, 1, (200, 6)))
    y = (X[:, 2] > X[:, 2].mean() + X[:, 2].std()).astype(int)
    fitted = fsdd_2008.LiteralMRMR(3, levels="sigma").fit(X, y)
    assert np.argsort(fitted.ranking_)[0] == 2
    two = fsdd_2008.LiteralMRMR(3, levels="mean").fit(X, (X[:, 4] > X[:, 4].mean()).astype(int))
    assert np.argsort(two.ranking_)[0] == 4


@pytest.mark.slow
def test_fsdd_2008_on_iris(folder, monkeypatch):
    monkeypatch.setitem(fsdd_2008.PROFILES, "quick", fsdd_2008.Settings(1, 1, ("Iris", "Wine")))
    outcome = reproduce("fsdd-2008", data=folder, out=folder / "out")
    found = verdicts(outcome)
    assert found["beta"]["Iris"] == found["invariant"]["Iris"] == found["optimal subset"]["Iris"] == "holds"
    assert found["eq. 2"]["Iris"] == "does not hold"
    assert found["beats mRMR-MID"]["Mfeat"] == "undecided"
    assert outcome.cells["Section 4", "Iris, beta 50", "1"].ours == 3
    assert abs(outcome.cells["Table 7", "NB FSDD", "2"].ours - 96) < 4


def test_eq_2_is_that_of_the_definitions_with_twice_the_beta():
    X, y = load_wine(return_X_y=True)
    by_pairs = [fsdd_2008.by_definitions(column, y, 2.0) for column in X.T]
    np.testing.assert_allclose(by_pairs, fsdd_2008.FSDD(beta=4).fit(X, y).scores_)
