"""Liang, Yang, Winstanley 2008: the published numbers as printed, the protocol literally, small runs end to end."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine
from sklearn.model_selection import StratifiedKFold

from probewise.datasets import Dataset
from probewise.filters.fsdd import FSDD
from reproductions.base import published
from reproductions.fsdd_2008 import experiment as fsdd_2008
from reproductions.fsdd_2008.claims import by_overlap, fewer_features, less_penalty, proved, with_pruning
from reproductions.fsdd_2008.data import OVERLAP, PRUNED
from reproductions.fsdd_2008.experiment import (
    BENCHES,
    NAME,
    PROFILES,
    Folds,
    Settings,
    claims,
    classifiers,
    selectors,
    table_of,
)
from reproductions.fsdd_2008.properties import BY_BETA, INVARIANT, OPTIMAL, best_subsets, properties
from reproductions.fsdd_2008.readings import PrunedTree
from reproductions.fsdd_2008.remarks import (
    BY_DEFINITION,
    CLASS_SIZES,
    EQUAL_SHARES,
    FEW_ROWS,
    LIKENESS,
    STOPS,
    VALUES,
    from_pairs,
    on_few_rows,
    order_by_equal_shares,
    remark_claims,
    remarks,
    with_equal_shares,
)
from reproductions.work import Reproduction

WINE = [70.23, 85.39, 90.45, 92.14, 94.94, 96.07, 96.07, 96.07, 95.51, 96.07, 96.07, 97.19, 95.51]


def at_hand(name):
    makers = {"iris": load_iris, "wine": load_wine}
    return Dataset(name, *makers[name](return_X_y=True))


def test_published_numbers_are_those_printed():
    known = {each.place: each.value for each in published(NAME)}
    assert [known["Table 3", "KNN FSDD", str(size)] for size in range(1, 14)] == WINE
    assert known["Table 2", "mrmrMID", "Mfeat"] == 1824.2
    assert known["Table 4", "SVM ReliefF", "10"] == 74.85
    assert known["Table 5", "DT mrmrMID", "40"] == 83.47
    assert known["Table 6", "NB FSDD", "1"] == 75.44
    assert known["Table 7", "SVM ReliefF", "4"] == 95.33
    assert known["Table 1", "Spectrometer", "instances"] == 509
    assert known["Figure 1", "KNN ReliefF", "10"] == 61.85
    counts = {where: sum(place[0] == where for place in known) for where in {place[0] for place in known}}
    assert [counts[f"Table {k}"] for k in range(1, 8)] == [24, 12, 156, 120, 108, 108, 48]


def test_every_published_accuracy_is_one_we_compute():
    full = PROFILES["full"]
    ours = {
        (bench.where, f"{classifier} {method}", str(size))
        for bench in BENCHES
        for classifier in classifiers()
        for method in fsdd_2008.METHODS
        for size in full.sizes(bench)
    }
    assert {each.place for each in published(NAME) if each.unit == "%"} <= ours


def test_folds_part_the_rows_and_repetitions_differ():
    y = at_hand("wine").y
    folds = Folds({}, {}, np.array([1]), 0.5, seed=3, n_folds=10)
    parts = [folds.split(y, trial)[1] for trial in range(20)]
    for repetition in (parts[:10], parts[10:]):
        np.testing.assert_array_equal(np.sort(np.concatenate(repetition)), np.arange(178))
    assert any(set(a) != set(b) for a, b in zip(parts[:10], parts[10:], strict=True))
    train, test = folds.split(y, 4)
    assert set(train).isdisjoint(test)


@pytest.mark.slow
def test_it_is_the_literal_loop():
    data = at_hand("iris")
    X, y = table_of("Iris", data)
    settings = Settings(2, 1, 10, ("Iris",), pruned_repeats=0)
    found = fsdd_2008.accuracies(BENCHES[4], X, y, Reproduction(settings, at_hand, seed=7))
    for repetition in range(2):
        seed = int(np.random.SeedSequence([7, repetition]).generate_state(3)[0])
        right = 0
        for train, test in StratifiedKFold(10, shuffle=True, random_state=seed).split(X, y):
            columns = np.sort(np.argsort(FSDD().fit(X[train], y[train]).ranking_)[:2])
            model = classifiers()["SVM"].fit(X[train][:, columns], y[train])
            right += np.sum(model.predict(X[test][:, columns]) == y[test])
        assert found["Table 7", "SVM FSDD", "2"][repetition] == pytest.approx(100 * right / 150)


def test_the_methods_are_those_of_section_3():
    assert selectors("Mfeat")["mrmrMID"].levels == "mean"
    assert selectors("Wine")["mrmrMID"].levels == "sigma"
    relieff = selectors("Wine")["ReliefF"]
    assert (relieff.n_samples, relieff.n_neighbors) == (10, 10)
    svm = classifiers()["SVM"][-1]
    assert (svm.kernel, svm.C, svm.gamma) == ("rbf", 1.0, "auto")


@pytest.mark.slow
def test_a_small_run_end_to_end_goes_on_where_it_was(tmp_path):
    settings = Settings(1, 1, 10, ("Iris",))
    said = []
    whole = fsdd_2008.run(Reproduction(settings, at_hand, tmp_path, n_jobs=2, seed=1, progress=said.append))
    assert said[-1].startswith("Iris, aside: 1 of 1")
    run = tmp_path / "runs" / "iris.jsonl"
    run.write_text("".join(run.read_text().splitlines(keepends=True)[:6]))
    again = fsdd_2008.run(Reproduction(settings, at_hand, tmp_path, n_jobs=1, seed=1))
    assert again.cells == whole.cells
    assert again.claims == whole.claims

    cells = {(cell.where, cell.row, cell.column): cell for cell in whole.cells}
    assert len({cells["Table 7", f"SVM {method}", "4"].ours for method in fsdd_2008.METHODS}) == 1
    assert cells["Table 1", "Iris", "instances"].difference == 0
    assert cells["Table 4", "KNN FSDD", "1"].ours is None
    verdicts = {claim.text: claim.holds for claim in whole.claims}
    assert verdicts["Iris: the order of features is 3, 4, 1, 2 for every beta from 0.1 to 100"] is True
    assert whole.pictures == []


def test_the_row_of_wine_with_one_neighbour_comes_out():
    X, y = table_of("Wine", at_hand("wine"))
    trials = Folds({"FSDD": FSDD()}, {"KNN": classifiers()["KNN"]}, np.arange(1, 14), 0.5, seed=0, n_folds=10)
    folds = {trial: fsdd_2008.fold_record(trials, X, y, trial) for trial in range(30)}
    row = [np.mean([fsdd_2008.pooled(folds, k, 10, "FSDD", "KNN", place) for k in range(3)]) for place in range(13)]
    assert np.abs(np.array(row) - WINE).max() < 3
    assert np.abs(np.array(row) - WINE).mean() < 1


def test_seconds_are_measured_for_every_method():
    X, y = table_of("Wine", at_hand("wine"))
    found = fsdd_2008.seconds("Mfeat", np.tile(X, 4), y)
    assert [place[1] for place in found] == ["Features required", *fsdd_2008.METHODS]
    assert all(value > 0 for value in found.values())


def test_claims_follow_the_numbers():
    known = {each.place: each.value for each in published(NAME) if not each.where.startswith("Figure")}
    by_text = {claim.text: claim for claim in claims(known)}
    assert all(claim.holds for text, claim in by_text.items() if text.startswith("Wine"))
    assert by_text["Wine: FSDD's row with 1-NN comes out within 2 points of the published one"].ours.endswith("+0.00")
    worse = known | {("Table 3", "NB mrmrMID", "8"): 99.0, ("Section 4", "Iris, beta 5", "1"): 4.0}
    by_text = {claim.text: claim for claim in claims(worse)}
    assert not by_text["Wine, NB: FSDD is ahead of mRMR-MID at every size to 8"].holds
    assert by_text["Wine, KNN: FSDD is ahead of mRMR-MID at every size to 8"].holds
    assert "beta 5: (4, 4, 1, 2)" in next(claim.ours for text, claim in by_text.items() if "order" in text)


def test_every_claim_of_the_paper_has_a_row():
    sizes = {bench: PROFILES["quick"].sizes(bench) for bench in BENCHES}
    ours = {each.place: each.value for each in published(NAME)}
    ours |= {
        (bench.where, f"{c} {m}", str(size)): 60.0 + (m == "FSDD") + size / 1000
        for bench in BENCHES
        if bench.is_figure
        for c in classifiers()
        for m in fsdd_2008.METHODS
        for size in sizes[bench]
    }
    by_text = {claim.text: claim for claim in claims(ours)}
    assert by_text["Mfeat: FSDD is ahead of ReliefF at every number of features with 1-NN, the tree and the SVM"].holds
    assert by_text["Iris: ReliefF is ahead of mRMR-MID"].holds
    assert "Vowel: ReliefF is ahead of mRMR-MID with more than 3 features" in by_text
    of_all = [text for text in by_text if "hundreds" in text or "other five" in text or "unbalanced" in text]
    assert len(of_all) == 3
    assert by_text[
        "mRMR-MID does better on the three sets with thousands of instances than on those with hundreds"
    ].holds
    assert all(claim.where and claim.evidence for claim in by_text.values())


def test_overlap_and_pruning_are_judged_by_their_rows():
    ours = {each.place: each.value for each in published(NAME) if each.where in ("Table 1", "Table 7")}
    iris = [bench for bench in BENCHES if bench.name == "Iris"]
    assert by_overlap(ours, iris) == with_pruning(ours, iris) == []
    better = {
        (w, f"{c} {OVERLAP}", k): v + 1 for (w, r, k), v in ours.items() for c in classifiers() if r == f"{c} FSDD"
    }
    assert by_overlap(ours | better, iris)[0].holds
    assert "KNN +1.00 (Iris +1.00)" in by_overlap(ours | better, iris)[0].ours
    nearer = {(w, r.replace("DT", PRUNED), k): v for (w, r, k), v in ours.items() if r.startswith("DT")}
    further = {place: value + 1 for place, value in ours.items()}
    assert with_pruning(further | ours | nearer, iris)[0].ours.endswith("Iris 0.00, 0.00")
    assert with_pruning(further | nearer, iris)[0].holds


def test_what_is_proved_is_counted():
    X, y = load_iris(return_X_y=True)
    found = properties("Iris", X, y)
    assert {place[0] for place in found} == {OPTIMAL, INVARIANT, BY_BETA}
    assert all(claim.holds for claim in proved(found))
    assert len(proved(found)) == 3
    assert best_subsets(X, y) == dict.fromkeys(range(1, 5), 0.0)
    worse = found | {(OPTIMAL, "Iris", "2"): 0.1, (INVARIANT, "Iris", "to [0, 1]"): 0.1, (BY_BETA, "Iris", "5"): 0.5}
    assert not any(claim.holds for claim in proved(worse))


def test_eq_2_is_that_of_the_definitions_with_twice_the_beta():
    found = from_pairs(*load_iris(return_X_y=True))
    assert found.pop("eq. 2") > 1
    assert max(found.values()) < 1e-12


def test_equal_shares_are_the_classes_own_where_these_are_equal():
    X, y = load_iris(return_X_y=True)
    np.testing.assert_array_equal(order_by_equal_shares(X, y), np.argsort(FSDD().fit(X, y).ranking_))
    rare = np.concatenate([np.arange(3), np.arange(50, 150)])
    scores = FSDD(beta=0).fit(X[rare], y[rare])
    means = np.array([X[rare][y[rare] == k].mean(axis=0) for k in range(3)])
    assert order_by_equal_shares(X[rare], y[rare], beta=0)[0] == np.argmax(means.var(axis=0) / scores.variances_)


def test_remarks_are_counted_and_judged():
    X, y = load_iris(return_X_y=True)
    found = remarks(next(bench for bench in BENCHES if bench.name == "Iris"), X, y, 0)
    assert found[VALUES, "Iris", "features of at most 10 values"] == 0
    assert 1 < found[STOPS, "Iris", "FCBF, features"] <= 2
    assert found[STOPS, "Iris", "CFS, best accuracy"] >= found[STOPS, "Iris", "CFS, accuracy"]
    correlation = abs(np.corrcoef(X[:, 2], X[:, 3])[0, 1])
    assert found[LIKENESS, "Iris", "FSDD"] == pytest.approx(correlation)
    by_text = {claim.text.split(" (here")[0]: claim for claim in remark_claims(found)}
    assert by_text["All feature values are continuous data"].holds
    assert by_text["Lemma 1 and eq. 4 and 5: the distances of definitions 1 to 3 are ratios of variances"].holds
    assert by_text["Eq. 2 is what eq. 1 becomes by definitions 1 to 3"].holds is False
    assert all(claim.where and claim.evidence for claim in by_text.values())
    assert not remark_claims({(BY_DEFINITION, "Iris", what): 0.1 for what in from_pairs(X, y)})[0].holds


def test_verdicts_on_shares_and_few_rows_need_a_small_p_value():
    Bench = type(BENCHES[0])
    X, y = load_wine(return_X_y=True)
    shares = with_equal_shares(Bench("Wine", "wine", "Table 3", 2, (1, 13)), X, y, 0)
    assert set(shares) == {each + word for each in classifiers() for word in ("", ", p")}

    def judged(where, name, values):
        return remark_claims({(where, name, what): value for what, value in values.items()})[0].holds

    gains = dict.fromkeys(classifiers(), 1.0)
    for p_value, holds in ((0.2, None), (0.01, True)):
        sure = {f"{each}, p": p_value for each in classifiers()}
        assert judged(EQUAL_SHARES, "Spectrometer", gains | sure) is holds
    assert judged(EQUAL_SHARES, "Spectrometer", gains | sure | {"NB": -2.0}) is False
    few = on_few_rows("Wine", X, y, 0)
    assert few["growth"] == pytest.approx(few["200 rows"] - few["all rows"])
    assert judged(FEW_ROWS, "Mfeat", few | {"growth": 3.0, "growth, p": 0.01}) is True
    assert judged(CLASS_SIZES, "Spectrometer", {"class 1": 12, "class 2": 90}) is False


def test_fewer_features_and_less_penalty_are_judged_by_rows_that_are_there():
    ours = {each.place: each.value for each in published(NAME)}
    tables = [bench for bench in BENCHES if not bench.is_figure]
    (claim,) = fewer_features(ours, tables)
    assert claim.holds
    assert [name for name in ("Wine", "Vowel", "Iris", "Spectrometer") if name in claim.ours] == [
        "Wine",
        "Vowel",
        "Iris",
    ]
    assert fewer_features(ours, tables[2:4]) == less_penalty(ours) == []
    assert not less_penalty({(BY_BETA, "Iris", "0.1"): 0.99, (BY_BETA, "Iris", "5"): 0.5})[0].holds
    assert less_penalty({(BY_BETA, "Iris", "0.1"): 0.5})[0].holds


def test_the_pruned_tree_is_one_of_the_path():
    X, y = load_wine(return_X_y=True)
    noisy = np.where(np.random.default_rng(0).random(len(y)) < 0.3, (y + 1) % 3, y)
    tree = PrunedTree(random_state=0).fit(X, noisy)
    whole = tree._tree(0.0).fit(X, noisy)
    assert 1 < tree.tree_.tree_.node_count < whole.tree_.node_count
    assert set(tree.predict(X)) <= {0, 1, 2}
    assert PrunedTree(random_state=0).fit(X, noisy).alpha_ == tree.alpha_


def test_a_figure_has_a_panel_for_each_classifier_and_the_published_points():
    bench = next(bench for bench in BENCHES if bench.name == "Mfeat")
    ours = {
        ("Figure 1", f"{c} {m}", str(s)): 50.0 + s for c in classifiers() for m in fsdd_2008.METHODS for s in (10, 1)
    }
    picture = fsdd_2008.picture(bench, ours)
    assert [panel.title for panel in picture.panels] == ["Mfeat, KNN", "Mfeat, NB", "Mfeat, DT", "Mfeat, SVM"]
    first = picture.panels[0].lines
    assert [line.name for line in first][:4] == [*fsdd_2008.METHODS, OVERLAP]
    assert [line.name for line in first if line.published] == [f"{m}, published" for m in fsdd_2008.METHODS]
    assert (first[0].x, first[0].y) == ([1, 10], [51, 60])
    assert not any(line.published for line in picture.panels[1].lines)


@pytest.mark.shared_data
def test_the_data_are_those_of_table_1(real_data):
    shapes = {each.place[1:]: each.value for each in published(NAME) if each.where == "Table 1"}
    for bench in BENCHES:
        arrays = real_data(bench.file)
        X, y = table_of(bench.name, Dataset(bench.file, arrays["X"], arrays["y"]))
        assert len(y) == shapes[bench.name, "instances"]
        assert len(np.unique(y)) == shapes[bench.name, "classes"]
        assert X.shape[1] - shapes[bench.name, "attributes"] == (bench.name == "Spectrometer")
