"""A screen before the probes: what passes, what comes behind, and that the laws hold."""

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.feature_selection import RFE, SelectFromModel, SelectKBest, VarianceThreshold, f_classif
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.utils.estimator_checks import parametrize_with_checks

from probewise import BIF, CFS, DAF, DFE, FSDD, MRMR, ReliefF
from probewise.cli import run
from probewise.criteria import KNN, Separability
from probewise.engine.ledger import Ledger, LedgerError
from probewise.engine.settings import Record
from probewise.engine.units import unit_table
from probewise.report import render_markdown, summarize
from probewise.stopping import MaxProbes, MinCoverage, Settled
from probewise.validation.stores import Stored
from sampling import examples

WITHOUT_PROBES = [FSDD(), DFE(), MRMR(5), ReliefF(), BIF(criterion="linear"), SelectKBest(f_classif)]


def table(n=90, d=60, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    X = rng.standard_normal((n, d))
    X[:, [2, 7]] += 2.0 * y[:, None]
    return X, y


def daf(screen=None, **options):
    options.setdefault("stop", MaxProbes(300))
    options.setdefault("random_state", 0)
    options.setdefault("max_probe_size", 8)
    return DAF(screen=screen, **options)


def order_of(ranking):
    return np.argsort(ranking, kind="stable")


def expected_to_fail(_):
    kinds = ("dense", "sparse")
    return {f"check_sample_weight_equivalence_on_{kind}_data": "a screen knows no weights" for kind in kinds}


@parametrize_with_checks(
    [DAF(screen=0.5, stop=MaxProbes(200), random_state=0)], expected_failed_checks=expected_to_fail
)
def test_sklearn_checks(estimator, check):
    check(estimator)


# ---- which features pass


@pytest.mark.parametrize(("screen", "n_passed"), [(1, 1), (20, 20), (np.int64(20), 20), (0.5, 30), (0.001, 1)])
def test_a_number_or_a_share_of_the_best_by_fsdd(screen, n_passed):
    X, y = table()
    fitted = daf(screen).fit(X, y)
    np.testing.assert_array_equal(fitted.passed_, FSDD().fit(X, y).ranking_ <= n_passed)
    assert fitted.screen_.passed.tolist() == np.flatnonzero(fitted.passed_).tolist()
    assert (fitted.tally_.counts > 0).tolist() == fitted.passed_.tolist()
    assert fitted.screen_.sentence == f"60 features were screened by FSDD to {n_passed} before probing"


@pytest.mark.parametrize("judge", WITHOUT_PROBES, ids=lambda judge: type(judge).__name__)
@pytest.mark.parametrize("n_passed", [10, 0.2])
def test_a_pair_of_any_method_and_a_number(judge, n_passed):
    X, y = table()
    fitted = daf((judge, n_passed)).fit(X, y)
    alone = clone(judge).fit(X, y)
    best = order_of(alone.ranking_) if hasattr(alone, "ranking_") else order_of(-alone.scores_)
    count = 10 if n_passed == 10 else 12
    np.testing.assert_array_equal(np.flatnonzero(fitted.passed_), np.sort(best[:count]))
    np.testing.assert_array_equal(order_of(fitted.ranking_)[count:], best[count:])
    assert not hasattr(judge, "ranking_")  # the user's own is left alone


def test_a_method_lets_pass_what_it_selects():
    X, y = table()
    for judge, n_passed in [(FSDD(11), 11), (FSDD(), 30), (SelectKBest(f_classif, k=4), 4), (CFS(), None)]:
        fitted = daf(judge).fit(X, y)
        np.testing.assert_array_equal(fitted.passed_, clone(judge).fit(X, y).get_support())
        assert n_passed is None or fitted.passed_.sum() == n_passed
    selected = RFE(LogisticRegression(), n_features_to_select=9, step=10)
    fitted = daf(selected).fit(X, y)
    np.testing.assert_array_equal(fitted.passed_, clone(selected).fit(X, y).support_)


@pytest.mark.parametrize("screen", [None, 60, 1000, 1.0, FSDD(1.0)])
def test_where_everything_passes_it_is_the_run_without_a_screen(screen):
    X, y = table()
    fitted = daf(screen).fit(X, y)
    assert fitted.screen_ is None
    assert fitted.passed_.all()
    assert fitted.scores_.tobytes() == daf(None).fit(X, y).scores_.tobytes()


def test_numbers_are_screened_in_five_groups():
    X, _ = table(200)
    y = X[:, 4] + 0.6 * X[:, 9] + 0.05 * X[:, 0]
    fitted = daf(20).fit(X, y)
    assert fitted.passed_[[4, 9]].all()
    groups = np.searchsorted(np.quantile(y, [0.2, 0.4, 0.6, 0.8]), y)
    np.testing.assert_array_equal(fitted.passed_, FSDD(20).fit(X, groups).support_)
    counts = np.random.default_rng(0).permutation(np.where(np.arange(200) < 180, 0, 1 + np.arange(200)))
    regressed = daf(20, criterion=KNN(task="regression")).fit(X, counts)
    np.testing.assert_array_equal(regressed.passed_, FSDD(20).fit(X, np.digitize(counts, [1])).support_)
    by_estimator = daf(20, criterion=Ridge(), stop=MaxProbes(5)).fit(X, counts)
    np.testing.assert_array_equal(by_estimator.passed_, regressed.passed_)


def test_without_a_target():
    X, _ = table()
    clusters = Separability("clusters")
    with pytest.raises(ValueError, match="screen=20 ranks features by what they tell about y, and there is no y"):
        daf(20, criterion=clusters).fit(X)
    assert daf((BIF(criterion=clusters), 20), criterion=clusters).fit(X).passed_.sum() == 20


@pytest.mark.parametrize(
    "screen", [0, -1, 1.5, 0.0, float("nan"), True, "fsdd", FSDD, (FSDD(),), (FSDD(), 0), (10, FSDD()), [FSDD(), 10]]
)
def test_what_cannot_be_meant_is_refused(screen):
    with pytest.raises(ValueError, match=r"screen=.*: give how many features pass"):
        daf(screen).fit(*table())


def test_methods_that_cannot_screen_are_refused():
    X, y = table()
    for judge in (SelectFromModel(LogisticRegression()), VarianceThreshold()):
        with pytest.raises(ValueError, match="gives features neither a ranking nor scores"):
            daf((judge, 10)).fit(X, y)
    with pytest.raises(ValueError, match="y has only one value"):
        daf(10, criterion=KNN(task="regression")).fit(X, np.ones(90))
    with pytest.raises(ValueError, match="y is continuous"):
        daf((FSDD(), 10)).fit(X, X[:, 0] + 0.5)


# ---- the run is the one on the columns that passed


@pytest.mark.parametrize("criterion", ["knn", "linear", "naive_bayes"])
@pytest.mark.parametrize("make", [np.asarray, np.asfortranarray, sp.csr_matrix], ids=["C", "F", "sparse"])
@pytest.mark.parametrize("n_passed", [7, 20], ids=["copied", "in place"])
def test_twin_on_the_columns_that_passed(criterion, make, n_passed):
    X, y = table()
    X = np.rint(4 * X).clip(0)
    fitted = daf(n_passed, criterion=criterion).fit(make(X), y)
    bound = unit_table(make(X), fitted.units_, screening=fitted.screen_)
    assert (bound.matrix.shape[1] == 7) == (n_passed == 7)
    twin = daf(None, criterion=criterion).fit(make(X[:, fitted.passed_]), y)
    assert fitted.ledger_.values().tobytes() == twin.ledger_.values().tobytes()
    for name in ("daf0", "daf1", "daf2"):
        assert fitted.coefficients(name)[fitted.passed_].tobytes() == twin.coefficients(name).tobytes()
    assert fitted.std_errors_[fitted.passed_].tobytes() == twin.std_errors_.tobytes()
    assert fitted.ranking_[fitted.passed_].tolist() == twin.ranking_.tolist()
    for name, values in twin.history_.items():
        if name != "seconds":
            np.testing.assert_array_equal(fitted.history_[name], values)
    for i in (0, 7, 299):
        assert fitted.plan_.probe(i).tolist() == fitted.screen_.passed[twin.plan_.probe(i)].tolist()


@pytest.mark.parametrize("n_passed", [7, 20], ids=["few", "many"])
def test_tables_on_disk(tmp_path, n_passed):
    X, y = table()
    np.save(tmp_path / "X.npy", np.asfortranarray(X))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    expected = daf(n_passed).fit(X, y)
    for data in (mapped, Stored(mapped)):
        fitted = daf(n_passed).fit(data, y)
        assert fitted.ranking_.tolist() == expected.ranking_.tolist()
        assert fitted.scores_.tobytes() == expected.scores_.tobytes()


def test_what_a_criterion_is_bound_to():
    X, y = table()
    few, many = (daf(n, stop=MaxProbes(50)).fit(X, y) for n in (7, 8))

    def bound(fitted, X):
        return unit_table(X, fitted.units_, screening=fitted.screen_)

    for make in (np.asarray, np.asfortranarray):
        seen = bound(few, make(X))
        np.testing.assert_array_equal(seen.matrix, X[:, few.passed_])
        assert seen.columns.indices.tolist() == list(range(7))
        assert seen.matrix.flags.f_contiguous
        seen = bound(many, make(X))
        assert np.shares_memory(seen.matrix, X) or make is np.asfortranarray
        assert seen.columns.indices.tolist() == many.screen_.passed.tolist()
    huge = np.broadcast_to(np.float32(0), (2**29, 60))
    assert bound(few, huge).matrix is huge


def test_twin_to_rounding_where_a_criterion_sums_over_all_columns():
    X, y = table()
    fitted = daf(20, criterion="separability").fit(X, y)
    twin = daf(None, criterion="separability").fit(X[:, fitted.passed_], y)
    np.testing.assert_allclose(fitted.ledger_.values(), twin.ledger_.values(), rtol=1e-10)


@given(
    n_features=st.integers(2, 40),
    n_passed=st.integers(1, 40),
    judge=st.sampled_from([FSDD(), DFE(), ReliefF()]),
    n_probes=st.integers(1, 60),
    seed=st.integers(0, 2**32 - 1),
    inclusion=st.sampled_from([None, 0.3]),
)
@examples(40)
def test_any_screen(n_features, n_passed, judge, n_probes, seed, inclusion):
    X, y = np.random.default_rng(seed).integers(0, 4, (18, n_features)).astype(float), np.arange(18) % 2
    options = {"stop": MaxProbes(n_probes), "random_state": seed, "inclusion": inclusion}
    fitted = daf((judge, n_passed), **options).fit(X, y)
    n_passed = min(n_passed, n_features)
    best = order_of(clone(judge).fit(X, y).ranking_)
    assert sorted(fitted.ranking_) == list(range(1, n_features + 1))
    assert set(np.flatnonzero(fitted.passed_)) == set(best[:n_passed])
    assert (fitted.ranking_[fitted.passed_] <= n_passed).all()
    assert order_of(fitted.ranking_)[n_passed:].tolist() == best[n_passed:].tolist()
    assert np.isnan(fitted.scores_[~fitted.passed_]).all()
    twin = daf(None, **options).fit(X[:, fitted.passed_], y)
    assert fitted.scores_[fitted.passed_].tobytes() == twin.scores_.tobytes()
    for asked in (1, n_passed, n_features):
        fitted.n_features_to_select = asked
        assert fitted.support_.sum() == asked
        assert fitted.transform(X).shape == (18, asked)


@pytest.mark.parametrize("stop", [MinCoverage(20), Settled(2)], ids=["MinCoverage", "Settled"])
def test_rules_see_the_features_that_passed(stop):
    X, y = table()
    fitted = daf(15, stop=stop | MaxProbes(4000)).fit(X, y)
    twin = daf(None, stop=stop | MaxProbes(4000)).fit(X[:, fitted.passed_], y)
    assert fitted.n_probes_ == twin.n_probes_ < 4000
    assert fitted.stop_reason_ == twin.stop_reason_


# ---- the laws


BY_BIF = BIF(criterion="linear"), 15


@pytest.mark.parametrize(
    ("screen", "backend"),
    [
        (15, "threading"),
        (BY_BIF, "threading"),
        pytest.param(15, "loky", marks=pytest.mark.exhaustive),
        pytest.param(BY_BIF, "loky", marks=pytest.mark.slow),
    ],
    ids=["FSDD-threading", "BIF-threading", "FSDD-loky", "BIF-loky"],
)
def test_any_number_and_kind_of_workers(screen, backend):
    X, y = table()
    one = daf(screen).fit(X, y)
    for n_jobs in (2, 3) if backend == "threading" else (2,):
        with joblib.parallel_config(backend=backend, n_jobs=n_jobs):
            two = daf(screen).fit(X, y)
        assert one.scores_.tobytes() == two.scores_.tobytes()
        assert one.ranking_.tobytes() == two.ranking_.tobytes()


def test_a_run_goes_on_from_its_ledger(tmp_path):
    X, y = table()
    whole = daf(15).fit(X, y)
    for screen in (15, (FSDD(n_jobs=2), 15), 0.25):  # the same screen, in other words
        path = tmp_path / f"{type(screen).__name__}.ledger"
        daf(15, stop=MaxProbes(130), ledger=path).fit(X, y)
        resumed = daf(screen, ledger=path, n_jobs=2, random_state=None).fit(X, y)
        assert resumed.scores_.tobytes() == whole.scores_.tobytes()
        assert resumed.ranking_.tobytes() == whole.ranking_.tobytes()


@pytest.mark.parametrize("other", [None, 16, (DFE(), 15), (FSDD(beta=1.0), 15)], ids=str)
def test_a_ledger_of_another_screen_is_refused(tmp_path, other):
    X, y = table()
    daf(15, stop=MaxProbes(50), ledger=tmp_path / "run").fit(X, y)
    with pytest.raises(LedgerError, match='its screen is "15 of 60 by FSDD'):
        daf(other, ledger=tmp_path / "run").fit(X, y)
    daf(None, stop=MaxProbes(50), ledger=tmp_path / "plain").fit(X, y)
    with pytest.raises(LedgerError, match="its screen is null, not"):
        daf(15, ledger=tmp_path / "plain").fit(X, y)


# ---- what is told


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "run.ledger"
    return daf(15, stop=MaxProbes(1600), ledger=path).fit(*table()), path


def test_the_report_states_the_screen(kept):
    fitted, _ = kept
    summary = summarize(fitted, *table())
    sentence = "60 features were screened by FSDD to 15 before probing"
    assert summary["asked"]["way"].startswith(sentence)
    assert summary["screen"]["passed"] == 15
    assert "Of 60 features (15 of them probed, after a screen by FSDD), " in summary["verdict"][0]
    assert sentence in render_markdown(summary)
    columns = summary["ranking"]["columns"]
    assert columns["rank"] == list(range(1, 61))
    assert columns["feature"] == [f"x{column}" for column in order_of(fitted.ranking_)]
    assert [count > 0 for count in columns["probed"]] == [True] * 15 + [False] * 45
    assert columns["score"][15:] == [None] * 45
    assert set(summary["interactions"]["features"][:15]) == {f"x{column}" for column in np.flatnonzero(fitted.passed_)}
    assert summarize(daf(None).fit(*table()))["screen"] is None


def test_a_ledger_says_what_its_selector_says(kept):
    fitted, path = kept
    ours, theirs = summarize(fitted, *table()), summarize(path, *table())
    for part in ("asked", "screen", "convergence", "interactions", "ranking"):
        assert ours[part] == theirs[part], part


@pytest.mark.parametrize("screen", [15, FSDD(15), (FSDD(), 15)], ids=["number", "selector", "pair"])
def test_the_code_gives_the_same_ranking(screen):
    X, y = table()
    fitted, names = daf(screen).fit(X, y), {"X": X, "y": y}
    exec(summarize(fitted)["repeat"]["code"], names)
    assert names["daf"].ranking_.tolist() == fitted.ranking_.tolist()


def test_a_ledger_of_another_method_tells_its_ranking_but_no_command(tmp_path):
    X, y = table()
    fitted = daf((DFE(), 15), ledger=tmp_path / "run").fit(X, y)
    summary = summarize(tmp_path / "run")
    assert summary["ranking"]["columns"]["feature"] == [f"x{column}" for column in order_of(fitted.ranking_)]
    assert summary["repeat"]["command"] is None
    assert summary["screen"]["method"] == "DFE"


@pytest.mark.parametrize("value", [None, 7, "?", "AAAA", "AAAAAAAAAAA=", ""])
@pytest.mark.parametrize("name", ["screen_passed", "screen_rest"])
def test_a_damaged_screen_in_a_ledger(kept, name, value):
    written, screening = kept[0].ledger_.settings, kept[0].screen_
    again = Record.read(Ledger(settings=written)).screening
    assert again.passed.tolist() == screening.passed.tolist()
    assert again.rest.tolist() == screening.rest.tolist()
    assert again.sentence == screening.sentence
    for damaged in (written | {name: value}, {key: kept for key, kept in written.items() if key != name}):
        with pytest.raises(LedgerError, match="is damaged: it says what no run can be"):
            Record.read(Ledger(settings=damaged))


def test_progress_names_columns():
    X, y = table()
    lines = []
    daf(15, stop=MaxProbes(300), verbose=lines.append).fit(X, y)
    top = lines[-1].partition("top: ")[2].split(", ")
    assert set(top) & {"2", "7"}


def test_on_the_command_line(tmp_path, capsys):
    X, y = table()
    lines = [",".join([*(f"g{i}" for i in range(60)), "class"])]
    lines += [",".join([*map(str, row), "abc"[label]]) for row, label in zip(X, y, strict=True)]
    data = tmp_path / "data.csv"
    data.write_text("\n".join(lines))
    out = tmp_path / "ranking.csv"
    given = ["rank", str(data), "--target", "class", "--probes", "300", "--max-probe-size", "8", "--out", str(out)]
    assert run([*given, "--screen", "15"]) == 0
    assert "60 features were screened by FSDD to 15 before probing. 300 probes" in capsys.readouterr().err
    ranked = [line.split(",")[0] for line in out.read_text().splitlines()[1:]]
    assert ranked == [f"g{column}" for column in order_of(daf(15).fit(X, y).ranking_)]
    assert run([*given, "--screen", "0.25", "-q"]) == 0
    for wrong, words in [("0", "--screen 0: give how many"), ("few", "--screen 'few' is no number")]:
        assert run([*given, "--screen", wrong]) == 2
        assert words in capsys.readouterr().err
    assert run(["rank", str(data), "--target", "class", "--method", "fsdd", "--screen", "15"]) == 2
    assert "--screen: --method fsdd makes no probes" in capsys.readouterr().err


def test_the_ledger_keeps_which_passed(kept):
    fitted, path = kept
    with Ledger(path) as ledger:
        assert ledger.settings["screen"].startswith("15 of 60 by FSDD(")
        assert len(ledger.settings["screen_passed"]) + len(ledger.settings["screen_rest"]) < 6 * 60
    assert fitted.ledger_.settings["screened"]
