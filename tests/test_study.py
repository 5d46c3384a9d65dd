"""Studies: equal to a naive loop, resumable after a kill, the same for any number of workers, and without leakage."""

import json
import math
import signal
import subprocess
import sys
import textwrap
import time
import warnings
from itertools import combinations

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy import stats
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import RFE, SelectFromModel, SelectKBest, SelectorMixin
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from probewise import BIF, DAF, SFFS
from probewise.criteria import Function
from probewise.datasets import make_madelon
from probewise.stability import cw_rel, nogueira
from probewise.stopping import MaxProbes
from probewise.study import CLASSIFIERS, Study, StudyError, TrialLedger, Trials, corrected_t_test, holm, select


@pytest.fixture(scope="module")
def data():
    made = make_madelon(90, 24, random_state=0)
    return made.X, made.y


def methods():
    return {"daf": DAF(stop=MaxProbes(100)), "bif": BIF(), "all": None}


def two_classifiers():
    return {"nb": GaussianNB(), "3-nn": make_pipeline(StandardScaler(), KNeighborsClassifier(3))}


def small(**options):
    """A study of about a second."""
    options = {"trials": 4, "sizes": [1, 4, 9], "random_state": 5, **options}
    return Study(options.pop("selectors", methods()), options.pop("classifiers", two_classifiers()), **options)


def same(first, second):
    """Equal except for the times."""
    one, two = first.table(), second.table()
    assert list(one) == list(two)
    for name in one:
        if name != "seconds":
            np.testing.assert_array_equal(one[name], two[name])
    for selector in first.selectors:
        for size in first.sizes:
            for a, b in zip(first.subsets(selector, size), second.subsets(selector, size), strict=True):
                np.testing.assert_array_equal(a, b)


class ByRule(SelectorMixin, BaseEstimator):
    """A selector of the columns that a function of (X, y) returns."""

    def __init__(self, rule=None):
        self.rule = rule

    def fit(self, X, y):
        self.mask_ = np.zeros(X.shape[1], dtype=bool)
        self.mask_[self.rule(X, y)] = True
        return self

    def _get_support_mask(self):
        return self.mask_


# ---- the protocol


def test_a_study_equals_the_naive_loop(data):
    X, y = data
    result = small().compare(X, y)
    selected = {}
    for trial in range(4):
        split_seed, selector_seed, _ = np.random.SeedSequence([5, trial]).generate_state(3).tolist()
        train, test = train_test_split(np.arange(90), test_size=0.5, stratify=y, random_state=split_seed)
        fitted = {
            "daf": DAF(stop=MaxProbes(100), random_state=selector_seed).fit(X[train], y[train]),
            "bif": BIF().fit(X[train], y[train]),
        }
        for k, size in enumerate([1, 4, 9]):
            for s, name in enumerate(["daf", "bif", "all"]):
                columns = np.arange(24) if name == "all" else np.flatnonzero(fitted[name].ranking_ <= size)
                selected.setdefault((name, size), []).append(columns)
                np.testing.assert_array_equal(result.subsets(name, size)[trial], columns)
                for c, classifier in enumerate(two_classifiers().values()):
                    classifier.fit(X[train][:, columns], y[train])
                    assert result.accuracy[trial, s, c, k] == classifier.score(X[test][:, columns], y[test])
    np.testing.assert_array_equal(result.probes, [[100, 0, 0]] * 4)
    for measure, literal in LITERAL.items():
        expected = [[literal(selected[name, size], 24) for size in (1, 4, 9)] for name in ("daf", "bif", "all")]
        np.testing.assert_allclose(result.stability()[measure], expected)


def mean_over_pairs(similarity):
    def measure(subsets, n_features):
        pairs = list(combinations([set(subset.tolist()) for subset in subsets], 2))
        return sum(similarity(a, b, n_features) for a, b in pairs) / len(pairs)

    return measure


LITERAL = {
    "ati": mean_over_pairs(lambda a, b, n: len(a & b) / len(a | b)),
    "anhi": mean_over_pairs(lambda a, b, n: 1 - len(a ^ b) / n),
    "cw_rel": cw_rel,
    "nogueira": nogueira,
}


def test_the_tidy_table_and_its_summary(data):
    result = small().compare(*data)
    frame = pd.DataFrame(result.table())
    assert frame.columns.tolist() == [
        "trial",
        "selector",
        "classifier",
        "size",
        "n_selected",
        "accuracy",
        "seconds",
        "probes",
    ]
    assert len(frame) == 4 * 3 * 2 * 3
    assert not frame.duplicated(["trial", "selector", "classifier", "size"]).any()
    summary = pd.DataFrame(result.summary()).set_index(["selector", "classifier", "size"])
    groups = frame.groupby(["selector", "classifier", "size"])
    for name, statistic in {"accuracy": groups.accuracy.mean(), "std": groups.accuracy.std()}.items():
        pd.testing.assert_series_equal(summary[name].sort_index(), statistic.sort_index(), check_names=False)
    np.testing.assert_allclose(summary.seconds.sort_index(), groups.seconds.mean().sort_index())
    assert summary.loc[("all", "nb", 4), "n_selected"] == 24
    assert summary.loc[("bif", "nb", 4), "n_selected"] == 4
    assert summary.loc[("bif", "nb", 4), "ati"] == result.stability()["ati"][1, 1]
    assert (frame.seconds[frame.selector != "all"] > 0).all()
    assert "trials=4" in repr(result)


def test_equal_subsets_are_tested_once(data):
    class Counting(GaussianNB):
        calls = 0

        def fit(self, X, y):
            Counting.calls += 1
            return super().fit(X, y)

    small(selectors={"all": None}, classifiers={"nb": Counting()}, trials=3).compare(*data)
    assert Counting.calls == 3


def test_default_sizes_grow_by_ratio_to_100_or_all(data):
    sizes = Study({"all": None}, {"nb": GaussianNB()}, trials=1, random_state=0).compare(*data).sizes
    assert (sizes[0], sizes[-1]) == (1, 24)
    random = np.random.default_rng(0)
    X, y = random.standard_normal((20, 150)), np.arange(20) % 2
    sizes = Study({"all": None}, {"nb": GaussianNB()}, trials=1, random_state=0).compare(X, y).sizes
    assert sizes.tolist() == [1, 2, 3, 5, 7, 10, 15, 22, 32, 46, 68, 100]


def test_frames_and_sparse_data_give_what_arrays_give(data):
    X, y = data
    plain = small(trials=2).compare(X, y)
    frame = pd.DataFrame(X, columns=[f"gene {k}" for k in range(24)])
    framed = small(trials=2).compare(frame, pd.Series(np.where(y == 1, "well", "ill")))
    same(plain, framed)
    assert framed.feature_names[3] == "gene 3"
    assert plain.feature_names is None
    linear = {"selectors": {"bif": BIF(criterion="linear")}, "classifiers": {"tree": DecisionTreeClassifier()}}
    counts = np.abs(X).round()
    same(small(**linear).compare(counts, y), small(**linear).compare(sp.csc_matrix(counts), y))


def test_the_data_are_not_changed(data):
    def spoil(X, y):
        X[:], y[:] = 0, 0
        return [0]

    X, y = data[0].copy(), data[1].copy()
    spoiled = small(selectors={"spoils": ByRule(spoil), "bif": BIF()}).compare(X, y)
    np.testing.assert_array_equal(X, data[0])
    np.testing.assert_array_equal(y, data[1])
    clean = small(selectors={"bif": BIF()}).compare(X, y)
    np.testing.assert_array_equal(spoiled.accuracy[:, 1], clean.accuracy[:, 0])


# ---- workers, seeds


@pytest.mark.slow
def test_the_table_is_the_same_for_any_number_of_workers(data):
    everything = {name: make() for name, make in CLASSIFIERS.items()}
    everything["forest"].set_params(n_estimators=5)
    one = small(classifiers=everything, n_jobs=1).compare(*data)
    same(one, small(classifiers=everything, n_jobs=2).compare(*data))
    same(one, small(classifiers=everything, n_jobs=1).compare(*data))


def test_random_states_follow_the_trial_wherever_they_are(data):
    forest = {"forest": make_pipeline(StandardScaler(), RandomForestClassifier(4))}
    fixed = {"forest": make_pipeline(StandardScaler(), RandomForestClassifier(4, random_state=1))}
    first = small(classifiers=forest).compare(*data)
    same(first, small(classifiers=fixed).compare(*data))
    other = small(classifiers=forest, random_state=6).compare(*data)
    assert (first.accuracy != other.accuracy).any()
    assert any((a != b).any() for a, b in combinations(first.accuracy, 2))


def test_a_trial_does_not_depend_on_the_other_selectors_or_trials(data):
    whole = small().compare(*data)
    fewer = small(selectors={"bif": BIF()}, trials=2).compare(*data)
    np.testing.assert_array_equal(fewer.accuracy[:, 0], whole.accuracy[:2, 1])


def test_without_a_random_state_every_study_has_its_own_seed(data):
    results = [small(random_state=None).compare(*data).accuracy for _ in range(2)]
    assert (results[0] != results[1]).any()
    same(*(small(random_state=np.random.RandomState(3)).compare(*data) for _ in range(2)))


# ---- no leakage from the test samples


def everything_reachable(array):
    """The array, and whatever larger one it may be a view of."""
    while getattr(array, "base", None) is not None and isinstance(array.base, np.ndarray):
        array = array.base
    return array


def test_a_selector_cannot_reach_the_rows_it_is_tested_on(data):
    seen = []

    def look(X, y):
        seen.append((everything_reachable(X), everything_reachable(y)))
        return [0]

    X, y = data
    X = np.column_stack([np.arange(90), X]).astype(float)
    for order in ("C", "F"):
        seen.clear()
        study = small(selectors={"looks": ByRule(look)})
        study.compare(np.asarray(X, order=order), y)
        trials = Trials({}, {}, np.array([1]), 0.5, 5)
        for trial, (rows, labels) in enumerate(seen):
            train, test = trials.split(y, trial)
            ids = rows.ravel()[np.isin(rows.ravel(), np.arange(90))] if rows.ndim == 1 else rows[:, 0]
            assert set(ids.tolist()) == set(train.tolist())
            assert set(ids.tolist()).isdisjoint(test.tolist())
            assert len(labels) == 45


def agrees_best(X, y):
    """The column whose sign agrees most with the labels, in all rows within reach."""
    X, y = everything_reachable(X), everything_reachable(y)
    return [int(np.argmax(((X > 0) == y[:, None]).mean(axis=0)))]


def test_a_selector_cannot_profit_from_the_test_samples():
    y = np.arange(200) % 2
    random = np.random.default_rng(0)
    train, test = Trials({}, {}, np.array([1]), 0.75, 5).split(y, 0)
    signs = 2.0 * y - 1
    X = random.standard_normal((200, 5))
    X[test, 0] = signs[test]  # the answer, visible only in the test samples
    X[train, 0] = -signs[train]
    X[train, 1] = np.where(random.uniform(size=50) < 0.8, signs[train], -signs[train])
    assert agrees_best(X, y) == [0]
    result = small(selectors={"cheats": ByRule(agrees_best)}, trials=1, test_size=0.75, sizes=[1]).compare(X, y)
    assert result.subsets("cheats", 1)[0].tolist() == [1]
    assert (result.accuracy < 0.9).all()


def test_selectors_keep_no_state_between_trials(data):
    class Remembers(ByRule):
        def __init__(self, memory=None):
            self.memory = memory

        def fit(self, X, y):
            known = len(self.memory)
            self.memory.extend(X[:, 0].tolist())
            self.rule = lambda X, y: [min(known, 5)]
            return super().fit(X, y)

    memory = []
    result = small(selectors={"remembers": Remembers(memory)}).compare(*data)
    assert memory == []
    assert [subset.tolist() for subset in result.subsets("remembers", 1)] == [[0]] * 4


# ---- selectors of all kinds


def test_floating_search_gives_the_best_subset_of_each_size(data):
    X, y = data
    sffs = SFFS(6, criterion="linear").fit(X, y)
    chosen = select(SFFS(criterion="linear"), X, y, [2, 4, 6])
    assert [tuple(subset.tolist()) for subset in chosen] == [sffs.path_[size][1] for size in (2, 4, 6)]
    backward = SFFS(20, criterion="linear", direction="backward").fit(X, y)
    chosen = select(SFFS(criterion="linear", direction="backward"), X, y, [20, 22])
    assert [tuple(subset.tolist()) for subset in chosen] == [backward.path_[size][1] for size in (20, 22)]


def test_a_stopped_search_gives_its_largest_subset(data):
    X, y = data
    with pytest.warns(ConvergenceWarning, match="this is the best subset so far"):
        chosen = select(SFFS(criterion="linear", floating=False, stop=MaxProbes(60)), X, y, [1, 2, 9, 20])
    assert [len(subset) for subset in chosen[:2]] == [1, 2]
    assert len(chosen[2]) == len(chosen[3]) < 9


@pytest.mark.parametrize(
    "selector", [RFE(RidgeClassifier()), SelectKBest()], ids=lambda selector: type(selector).__name__
)
def test_other_selectors_are_refitted_for_each_size(data, selector):
    X, y = data
    name = "k" if hasattr(selector, "k") else "n_features_to_select"
    for size, subset in zip([1, 3, 8], select(clone(selector), X, y, [1, 3, 8]), strict=True):
        alone = clone(selector).set_params(**{name: size}).fit(X, y)
        assert subset.tolist() == alone.get_support(indices=True).tolist()


def test_a_selector_that_chooses_its_size_gives_its_best_features(data):
    X, y = data

    class Ranks(ByRule):
        def fit(self, X, y):
            super().fit(X, y)
            self.ranking_ = np.arange(X.shape[1], 0, -1)
            return self

    chosen = select(Ranks(lambda X, y: [2, 3, 5, 7, 11]), X, y, [1, 3, 5, 20])
    assert [subset.tolist() for subset in chosen] == [[11], [5, 7, 11], [2, 3, 5, 7, 11], [2, 3, 5, 7, 11]]
    own = SelectFromModel(LogisticRegression(max_iter=1000))
    chosen = select(clone(own), X, y, [1, 20])
    assert chosen[0].tolist() == chosen[1].tolist() == own.fit(X, y).get_support(indices=True).tolist()


def test_without_selected_features_the_most_frequent_class_is_guessed(data):
    X, y = data[0], np.arange(90) % 3 > 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # scikit-learn: no features were selected
        result = small(selectors={"nothing": ByRule(lambda X, y: [])}).compare(X, y)
    np.testing.assert_allclose(result.accuracy, 2 / 3)
    assert (result.table()["n_selected"] == 0).all()


# ---- tests of pairs


def result_with(accuracy, *, n_train=30, n_test=60):
    """A result with these accuracies (trials, selectors, one classifier, sizes)."""
    from probewise.study import StudyResult

    names = tuple("abcd"[: accuracy.shape[1]])
    records = tuple(
        {
            "trial": trial,
            "selectors": {
                name: {"subsets": None, "seconds": 0.0, "probes": 0, "accuracy": {"nb": values.tolist()}}
                for name, values in zip(names, of_trial, strict=True)
            },
        }
        for trial, of_trial in enumerate(accuracy)
    )
    sizes = np.arange(1, accuracy.shape[2] + 1)
    return StudyResult(names, ("nb",), sizes, 9, n_train, n_test, records)


def test_the_verdict_is_the_corrected_resampled_t_test():
    accuracy = np.random.default_rng(0).uniform(0.5, 1, (7, 3, 4))
    for size in (None, 3):
        verdict = result_with(accuracy).verdict(size)
        assert verdict["classifier"].tolist() == ["nb"] * 3
        pairs = list(zip(verdict["first"], verdict["second"], strict=True))
        assert pairs == [("a", "b"), ("a", "c"), ("b", "c")]
        for row, (i, j) in enumerate([(0, 1), (0, 2), (1, 2)]):
            values = accuracy.mean(axis=2) if size is None else accuracy[:, :, 2]
            d = values[:, i] - values[:, j]
            t = d.mean() / math.sqrt((1 / 7 + 60 / 30) * sum((d - d.mean()) ** 2) / 6)
            assert verdict["difference"][row] == pytest.approx(d.mean())
            assert verdict["t"][row] == pytest.approx(t)
            assert verdict["p_value"][row] == pytest.approx(2 * stats.t.sf(abs(t), 6))
        low, middle, high = sorted(verdict["p_value"])
        steps = [min(1, 3 * low), min(1, max(3 * low, 2 * middle)), min(1, max(3 * low, 2 * middle, high))]
        assert sorted(verdict["p_holm"]) == pytest.approx(steps)


def test_each_classifier_is_adjusted_on_its_own(data):
    result = small(selectors={"bif": BIF(), "one": ByRule(lambda X, y: [3]), "all": None}).compare(*data)
    verdict = result.verdict()
    for name in result.classifiers:
        here = verdict["classifier"] == name
        assert here.sum() == 3
        np.testing.assert_array_equal(verdict["p_holm"][here], holm(verdict["p_value"][here][:, None]).ravel())
    one = small(selectors={"bif": BIF()}, trials=2).compare(*data).verdict()
    assert [len(column) for column in one.values()] == [0] * 7


def test_the_correction_increases_the_p_value():
    d = np.random.default_rng(1).normal(0.02, 0.03, 20)
    assert corrected_t_test(d, 0.0)[1] == pytest.approx(stats.ttest_1samp(d, 0).pvalue)
    assert corrected_t_test(d, 1.0)[1] > corrected_t_test(d, 0.5)[1] > corrected_t_test(d, 0.0)[1]


def test_the_verdict_on_equal_constant_and_single_trials():
    equal = np.full((5, 2, 3), 0.7)
    assert result_with(equal).verdict()["p_value"].tolist() == [1.0]
    assert result_with(equal).verdict()["t"].tolist() == [0.0]
    better = equal.copy()
    better[:, 0] += 0.1
    verdict = result_with(better).verdict()
    assert (verdict["t"][0], verdict["p_value"][0]) == (np.inf, 0.0)
    alone = result_with(equal[:1])
    assert np.isnan(alone.verdict()["p_value"][0])
    assert np.isnan(alone.summary()["std"]).all()
    assert np.isnan(alone.summary()["cw_rel"]).all()


def test_unknown_sizes_and_selectors_are_refused():
    result = result_with(np.full((2, 2, 3), 0.7))
    with pytest.raises(ValueError, match="size=7 is not in this study: choose one of 1, 2, 3"):
        result.verdict(7)
    with pytest.raises(ValueError, match="selector='z' is not in this study: choose one of a, b"):
        result.subsets("z", 1)


# ---- the ledger


def lines(path):
    return path.read_bytes().splitlines(keepends=True)


class Counting(ByRule):
    """A selector of the first two columns that counts its fits."""

    n_fits = 0

    def fit(self, X, y):
        Counting.n_fits += 1
        self.rule = lambda X, y: [0, 1]
        return super().fit(X, y)


def test_a_study_is_continued_and_extended(data, tmp_path):
    ledger = tmp_path / "study.jsonl"
    selectors = {"bif": BIF(), "counts": Counting()}
    results = []
    for trials, n_fits, n_lines in ((2, 2, 3), (5, 3, 6), (5, 0, 6), (3, 0, 6)):
        Counting.n_fits = 0
        results.append(small(selectors=selectors, trials=trials, ledger=ledger).compare(*data))
        assert (Counting.n_fits, len(lines(ledger))) == (n_fits, n_lines)
    _, longer, again, shorter = results
    np.testing.assert_array_equal(longer.seconds, again.seconds)
    same(longer, small(selectors=selectors, trials=5).compare(*data))
    assert shorter.trials.tolist() == [0, 1, 2]


def test_a_ledger_without_a_random_state_keeps_its_seed(data, tmp_path):
    ledger = tmp_path / "study.jsonl"
    small(random_state=None, trials=2, ledger=ledger).compare(*data)
    longer = small(random_state=None, trials=3, ledger=ledger).compare(*data)
    seed = json.loads(lines(ledger)[0])["settings"]["seed"]
    same(longer, small(random_state=seed, trials=3).compare(*data))


def test_an_incomplete_last_line_is_repeated(data, tmp_path):
    whole = small(selectors={"bif": BIF(), "all": None}, trials=3, ledger=tmp_path / "whole").compare(*data)
    content = (tmp_path / "whole").read_bytes()
    starts = np.cumsum([0] + [len(line) for line in lines(tmp_path / "whole")])
    for cut in sorted({0, 1, 15, 40, starts[1] - 1, starts[2] + 1, starts[2] + 90, starts[3] - 1, starts[4] - 1}):
        ledger = tmp_path / f"cut{cut}"
        ledger.write_bytes(content[:cut])
        same(whole, small(selectors={"bif": BIF(), "all": None}, trials=3, ledger=ledger).compare(*data))
        assert [json.loads(line).get("trial") for line in lines(ledger)] == [None, 0, 1, 2]


SCRIPT = """
import json, sys, time
from sklearn.naive_bayes import GaussianNB
from probewise import BIF, DAF
from probewise.datasets import make_madelon
from probewise.stopping import MaxProbes
from probewise.study import Study

class Slow(BIF):
    def fit(self, X, y=None):
        time.sleep(float(sys.argv[2]))
        return super().fit(X, y)

made = make_madelon(90, 24, random_state=0)
selectors = {"slow": Slow(), "daf": DAF(stop=MaxProbes(100))}
study = Study(selectors, {"nb": GaussianNB()}, trials=6, sizes=[1, 5], random_state=1, ledger=sys.argv[1])
table = study.compare(made.X, made.y).table()
del table["seconds"]
print(json.dumps({name: column.tolist() for name, column in table.items()}))
"""


def script(ledger, pause):
    return [sys.executable, "-c", textwrap.dedent(SCRIPT), str(ledger), str(pause)]


@pytest.mark.slow
def test_a_killed_study_continues_to_the_same_table(data, tmp_path):
    ledger = tmp_path / "study.jsonl"
    with subprocess.Popen(script(ledger, 0.3)) as process:
        end = time.monotonic() + 60
        while not ledger.exists() or ledger.read_bytes().count(b"\n") < 3:
            assert process.poll() is None
            assert time.monotonic() < end, "no trial was finished"
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    saved = ledger.read_bytes()
    assert 3 <= saved.count(b"\n") < 7
    resumed = subprocess.run(script(ledger, 0), capture_output=True, text=True, check=True, timeout=120)
    assert ledger.read_bytes().startswith(saved[: saved.rfind(b"\n") + 1])
    selectors = {"slow": BIF(), "daf": DAF(stop=MaxProbes(100))}
    unbroken = Study(selectors, {"nb": GaussianNB()}, trials=6, sizes=[1, 5], random_state=1).compare(*data).table()
    del unbroken["seconds"]
    assert json.loads(resumed.stdout) == {name: column.tolist() for name, column in unbroken.items()}


def test_the_ledger_of_another_study_is_refused(data, tmp_path):
    X, y = data
    ledger = tmp_path / "study.jsonl"
    small(ledger=ledger, trials=1).compare(X, y)
    before = ledger.read_bytes()
    other = X.copy()
    other[3, 3] += 1
    cases = [
        ((other, y), {}, "its data is"),
        ((X[:, :20], y), {}, r"its shape is \[90, 24\], not \[90, 20\]"),
        ((X, 1 - y), {}, "its target is"),
        ((X, y), {"random_state": 6}, "its seed is 5, not 6"),
        ((X, y), {"sizes": [1, 2]}, r"its sizes is \[1, 4, 9\], not \[1, 2\]"),
        ((X, y), {"test_size": 0.3}, "its test_size is 0.5, not 0.3"),
        (
            (X, y),
            {"selectors": methods() | {"daf": DAF(stop=MaxProbes(200))}},
            r"its selectors\['daf'\].stop is \"MaxProbes\(n_probes=100\)\", not",
        ),
        ((X, y), {"selectors": {"bif": BIF()}}, "its selectors is"),
        ((X, y), {"classifiers": two_classifiers() | {"nb": GaussianNB(var_smoothing=0.1)}}, "var_smoothing is"),
        (
            (X, y),
            {"classifiers": two_classifiers() | {"3-nn": make_pipeline(StandardScaler(), KNeighborsClassifier(5))}},
            r"n_neighbors is \"3\", not \"5\"",
        ),
    ]
    for arguments, options, reason in cases:
        with pytest.raises(StudyError, match=f"holds another study: .*{reason}"):
            small(ledger=ledger, **options).compare(*arguments)
    assert ledger.read_bytes() == before
    with joblib.parallel_config(backend="threading"):
        same(small(ledger=ledger, n_jobs=2, verbose=0).compare(X, y), small().compare(X, y))


def test_the_same_function_is_the_same_selector_in_another_process(data):
    described = Trials({"f": ByRule(agrees_best)}, {}, np.array([1]), 0.5, 0).settings(*data)
    assert described["selectors['f'].rule"] == "agrees_best"
    assert "0x" not in json.dumps(described)


@pytest.mark.parametrize("content", [b"not a study\n", b"x", b"\x89PNG\r\n\x1a\n" * 9])
def test_other_files_are_refused_and_not_changed(data, tmp_path, content):
    ledger = tmp_path / "file"
    ledger.write_bytes(content)
    with pytest.raises(StudyError, match="is not the ledger of a Probewise study: choose another file"):
        small(ledger=ledger).compare(*data)
    assert ledger.read_bytes() == content


def test_damage_before_the_last_line_is_an_error(data, tmp_path):
    ledger = tmp_path / "file"
    small(ledger=ledger, trials=2).compare(*data)
    header, first, second = lines(ledger)
    ledger.write_bytes(header + first[:50] + b"\n" + second)
    with pytest.raises(StudyError, match="is damaged in line 2"):
        small(ledger=ledger).compare(*data)
    ledger.write_bytes(header.replace(b'"probewise study": 1', b'"probewise study": 99') + first)
    with pytest.raises(StudyError, match="has study format 99; this version reads format 1"):
        small(ledger=ledger).compare(*data)


def test_a_ledger_in_use_or_without_a_folder_is_refused(data, tmp_path):
    ledger = tmp_path / "file"
    small(ledger=ledger, trials=1).compare(*data)
    with TrialLedger(ledger), pytest.raises(StudyError, match="is in use by another process"):
        small(ledger=ledger).compare(*data)
    small(ledger=ledger, trials=2).compare(*data)
    with pytest.raises(StudyError, match=r"the folder .* does not exist"):
        small(ledger=tmp_path / "no" / "file").compare(*data)


# ---- Ctrl-C


class Interrupted(Counting):
    """A selector that is interrupted after a number of fits."""

    limit = 0

    def fit(self, X, y):
        if Counting.n_fits >= Interrupted.limit:
            raise KeyboardInterrupt
        return super().fit(X, y)


def interrupted_after(n_fits, **options):
    Counting.n_fits, Interrupted.limit = 0, n_fits
    return small(selectors={"interrupted": Interrupted()}, **options)


def test_ctrl_c_gives_the_finished_trials_and_the_study_can_continue(data, tmp_path):
    ledger = tmp_path / "file"
    with pytest.warns(ConvergenceWarning, match="interrupted after 2 of 4 trials: these are the results so far"):
        result = interrupted_after(2, ledger=ledger).compare(*data)
    assert result.trials.tolist() == [0, 1]
    assert len(lines(ledger)) == 3
    same(interrupted_after(2, ledger=ledger).compare(*data), interrupted_after(9).compare(*data))
    with pytest.raises(KeyboardInterrupt):  # there is no finished trial
        interrupted_after(0).compare(*data)


def test_an_interrupted_selection_is_not_a_finished_trial(data, tmp_path):
    calls = []

    def j(X, y):
        calls.append(1)
        if len(calls) == 150:
            raise KeyboardInterrupt
        return float(X[:, 0].mean())

    ledger = tmp_path / "file"
    selectors = {"daf": DAF(criterion=Function(j, name="counts its calls"), stop=MaxProbes(100))}
    with pytest.warns(ConvergenceWarning, match="interrupted after 1 of 4 trials"):
        result = small(selectors=selectors, ledger=ledger).compare(*data)
    assert result.probes.tolist() == [[100]]
    assert len(lines(ledger)) == 2
    assert small(selectors=selectors, ledger=ledger).compare(*data).probes.tolist() == [[100]] * 4


# ---- warnings, errors, progress


@pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_warnings_of_workers_are_shown_with_a_name(data, n_jobs):
    hasty = {"hasty": LogisticRegression(max_iter=1)}
    with pytest.warns(ConvergenceWarning, match="^bif: ") as caught:
        small(selectors={"bif": BIF()}, classifiers=hasty, n_jobs=n_jobs, trials=2).compare(*data)
    assert len(caught) == 2


@pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_errors_name_the_selector_and_the_trial(data, n_jobs):
    with pytest.raises(ValueError, match=r"daf, trial [01]: coefficient='daf9' must be 'daf0'"):
        small(selectors={"daf": DAF(coefficient="daf9")}, n_jobs=n_jobs, trials=2).compare(*data)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"selectors": [BIF()]}, r"selectors=.* must be a dict of at least one name: selector"),
        ({"selectors": {}}, "selectors={} must be a dict"),
        ({"selectors": {"scaler": StandardScaler()}}, r"selectors\['scaler'\].* is not a selector"),
        ({"selectors": {"daf": DAF(ledger="file")}}, r"selectors\['daf'\] has a ledger"),
        ({"classifiers": {"scaler": StandardScaler()}}, r"classifiers\['scaler'\].* is not a classifier"),
        ({"trials": 0}, "trials=0 must be a whole number of at least 1"),
        ({"sizes": [0, 3]}, r"sizes=\[0, 3\] must be whole numbers from 1 to the number of features, 24"),
        ({"sizes": [25]}, r"sizes=\[25\] must be"),
        ({"sizes": []}, r"sizes=\[\] must be"),
        ({"sizes": [1.5]}, r"sizes=\[1.5\] must be"),
        ({"test_size": 1.5}, "test_size"),
        ({"random_state": -1}, "Seed must be between 0 and"),
        ({"n_jobs": 0}, "n_jobs"),
    ],
)
def test_bad_parameters_are_refused_before_a_file_is_written(data, tmp_path, options, reason):
    with pytest.raises(ValueError, match=reason):
        small(ledger=tmp_path / "file", **options).compare(*data)
    assert not (tmp_path / "file").exists()


@pytest.mark.parametrize(
    ("y", "reason"),
    [
        (np.linspace(0, 1.5, 90), "y is continuous: a study compares accuracy"),
        (np.zeros(90), "y has only one class, 0.0"),
        (np.array(["rare"] + ["a", "b"] * 44 + ["a"]), "class rare of y has a single sample"),
        (np.zeros(80), "inconsistent numbers of samples"),
    ],
)
def test_bad_targets_are_refused(data, y, reason):
    with pytest.raises(ValueError, match=reason):
        small().compare(data[0], y)


def test_progress(data, capsys):
    small(trials=2, verbose=1).compare(*data)
    assert "study: 1 of 2 trials" in capsys.readouterr().err
    small(trials=2).compare(*data)
    assert capsys.readouterr().err == ""
