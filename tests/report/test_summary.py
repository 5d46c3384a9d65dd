"""The summary of a run, checked against naive twins, games with known values, and scikit-learn."""

import json
import shutil

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

import probewise
from probewise import BIF, DAF, FSDD, SFFS, Tournament
from probewise.cli.console import print_comparison
from probewise.criteria import KNN, NAMES, Average, Linear, NaiveBayes, Scorer, in_prose
from probewise.datasets import make_madelon
from probewise.engine.ledger import Ledger
from probewise.evaluation import size_curve
from probewise.report import render_html, render_json, render_markdown, summarize, to_frame
from probewise.report.study import _on_accuracy, _on_pairs, sentences_on_study
from probewise.stopping import MaxProbes, Settled
from probewise.study import Study, StudyError

SELECTORS = [name for name in probewise.__all__ if name != "prepare" and not name.endswith("Classifier")]


def game(J, n_features, n_probes, **options):
    """A DAF run in which J is a given function of the set of features."""
    identity = np.arange(n_features) + 0.1 * np.arange(3)[:, None]
    daf = DAF(criterion=lambda X, y: J(set(X[0].astype(int))), stop=MaxProbes(n_probes), random_state=0, **options)
    return daf.fit(identity)


# ---- any selector


@pytest.mark.parametrize("name", SELECTORS)
def test_every_selector_can_be_summarized(name, madelon):
    X, y = madelon[0][:, :20], madelon[1]
    limits = {"DAF": {"stop": MaxProbes(500)}, "Tournament": {"n_probes": 500}}
    options = {"random_state": 0, **limits.get(name, {})}
    known = getattr(probewise, name)().get_params()
    selector = getattr(probewise, name)(**{key: value for key, value in options.items() if key in known})
    if "n_features_to_select" in known:
        selector.set_params(n_features_to_select=4)
    summary = summarize(selector.fit(X, y), X, y, source="a table", target="label")
    assert json.loads(render_json(summary)) == summary
    columns = summary["ranking"]["columns"]
    assert columns["feature"][0] == X.columns[np.argmin(selector.ranking_)]
    assert columns["rank"] == sorted(selector.ranking_.tolist())
    assert set(columns) == set(summary["ranking"]["labels"])
    assert len(summary["verdict"]) == 2
    assert all(sentence.endswith(".") for sentence in summary["verdict"])
    assert summary["sizes"]["suggested"] in summary["sizes"]["size"]
    assert summary["sizes"]["nested"] == (name not in ("BIF", "SFFS")) == (summary["nested_score"] is not None)
    assert summary["header"]["description"]
    assert f"from probewise import {name}" in summary["repeat"]["code"]
    assert render_markdown(summary).startswith("# Which features of a table predict label?")


def test_sections_without_data_are_omitted(saved_run):
    summary = summarize(saved_run[0])
    assert summary["sizes"] is summary["univariate"] is summary["redundancy"] is None
    omitted = {"data", "sizes", "nested_score", "univariate", "redundancy", "values", "predictions", "selection"}
    assert set(summary["omitted"]) == omitted
    assert "the data were not given" in summary["verdict"][1]
    assert summary["data"] == {"rows": None, "features": 40}
    assert summary["interactions"] is not None


def test_the_code_gives_the_same_ranking(saved_run, madelon):
    X, y = madelon
    names = {"X": X, "y": y}
    exec(summarize(saved_run[0])["repeat"]["code"], names)
    assert names["daf"].scores_.tobytes() == saved_run[0].scores_.tobytes()


def test_the_code_imports_what_it_names(madelon):
    X, y = madelon
    bif = BIF(criterion=KNeighborsClassifier(5)).fit(X, y)
    names = {"X": X, "y": y}
    exec(summarize(bif)["repeat"]["code"], names)
    assert names["bif"].ranking_.tolist() == bif.ranking_.tolist()
    assert summarize(BIF(criterion=lambda X, y: 0.0).fit(X, y))["repeat"]["code"] is None


# ---- a ledger


def test_a_ledger_and_its_selector_give_the_same_report(saved_run, madelon):
    daf, path = saved_run
    X, y = madelon
    ours, theirs = summarize(daf, X, y), summarize(path, X, y)
    del ours["ranking"]["columns"]["selected_in"], ours["ranking"]["labels"]["selected_in"]  # needs a selector
    for part in ("data", "convergence", "univariate", "redundancy", "interactions", "ranking"):
        assert ours[part] == theirs[part], part
    together = ", but together features predict better than guessing"  # only a selector can be run again to see this
    first = ours["verdict"][0].replace(together, "").partition(" rank first")[0].partition(" Two ")[0]
    assert first == theirs["verdict"][0].partition(" rank first")[0].partition(" Two ")[0]
    assert "not measured: the method has to be run again" in theirs["verdict"][1]
    assert theirs["run"]["seed"] == 3
    assert theirs["repeat"]["command"] is None  # it was not started by the command line


@pytest.mark.parametrize("coefficient", ["daf1", "daf2", "regression"])
def test_a_ledger_replays_other_coefficients(saved_run, coefficient):
    scores = np.sort(saved_run[0].run_.coefficient(coefficient)[0])[::-1]
    summary = summarize(saved_run[1], coefficient=coefficient)
    assert summary["ranking"]["columns"]["score"] == scores.tolist()
    assert summary["header"]["score"] == coefficient.upper()


def test_other_data_are_refused(saved_run, study, madelon):
    X, y = madelon
    for path in (saved_run[1], study[1]):
        with pytest.raises(ValueError, match="100 samples and 40 features, the data of the run 150 samples"):
            summarize(path, X[:100], y[:100])
        with pytest.raises(ValueError, match="X differs from the data of the run"):
            summarize(path, X[::-1], y)
        with pytest.raises(ValueError, match="y differs from the data of the run"):
            summarize(path, X, y[::-1])
    with pytest.raises(ValueError, match="feature names should match"):
        summarize(saved_run[0], X[:, :39], y)


def test_files_without_a_run_are_refused(tmp_path):
    with pytest.raises(ValueError, match="there is no run at"):
        summarize(tmp_path / "nothing")
    (tmp_path / "text").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="is not a Probewise ledger"):
        summarize(tmp_path / "text")
    Ledger(tmp_path / "empty", {"seed": 0, "shape": [3, 2]}).close()
    with pytest.raises(ValueError, match="has no probes yet"):
        summarize(tmp_path / "empty")
    with pytest.raises(ValueError, match="cannot be reported"):
        summarize(42)
    with pytest.raises(ValueError, match="coefficient='daf9' must be one of daf0"):
        summarize(tmp_path / "empty", coefficient="daf9")


# ---- from the probes


def test_convergence_is_the_history(saved_run):
    daf, _ = saved_run
    looks, history = summarize(daf)["convergence"], daf.history_
    assert looks["probes"] == history["probes"].tolist() == [400, 800, 1200, 1600]
    for name in ("order_change", "value_change", "relative_change"):
        np.testing.assert_array_equal(np.array(looks[name], dtype=float), history[name])
    assert looks["top"] == 10  # a quarter of 40: two halves share ten of the top 20 by chance
    assert all(0 <= share <= 1 for share in looks["overlap"])


def test_convergence_uses_the_top_of_the_stopping_rule_and_few_checks(madelon):
    daf = DAF(stop=Settled(3, 1.0) | MaxProbes(900), check_every=2, random_state=0).fit(*madelon)
    looks = summarize(daf)["convergence"]
    assert looks["top"] == 3
    assert len(looks["probes"]) <= 200
    one = DAF(stop=MaxProbes(500), random_state=0).fit(*madelon)
    assert "two checks are needed" in summarize(one)["omitted"]["convergence"]


def test_the_ranking_has_rank_intervals(saved_run):
    daf, path = saved_run
    ranking = summarize(daf)["ranking"]
    columns, certainty, order = ranking["columns"], daf.run_.certainty(), np.argsort(daf.ranking_)
    between = np.transpose([columns["rank_low"], columns["rank_high"]])
    np.testing.assert_array_equal(between, certainty.rank_intervals()[order])
    np.testing.assert_allclose(columns["in_top"], certainty.in_top(10)[order], atol=1e-12)
    assert ranking["labels"]["in_top"] == "probability of top 10"
    assert summarize(path)["ranking"]["columns"]["in_top"] == columns["in_top"]
    assert "in_top" not in summarize(FSDD().fit(np.eye(4), [0, 1, 0, 1]))["ranking"]["columns"]


def test_without_a_target_significance_is_not_known():
    summary = summarize(game(lambda S: float(np.sqrt(len(S))), 12, 3000))
    assert summary["inference"] is None
    assert "related" not in summary["verdict"][0]
    assert summary["omitted"]["inference"].startswith("features can only be tested against one column")


@pytest.mark.slow
def test_the_verdict_on_noise():
    random = np.random.default_rng(0)
    X, y = random.standard_normal((60, 200)), np.arange(60) % 2
    for selector in (DAF(stop=MaxProbes(400), random_state=0), Tournament(n_probes=400, random_state=0)):
        which, how_many = summarize(selector.fit(X, y), X, y)["verdict"]
        assert which.startswith("No feature is related to the target at a false discovery rate of 10%.")
        assert how_many.startswith("No number of features predicts convincingly better than guessing")


def pairs_table(n_rows=250):
    """0 and 1 act only together, 2 alone, 3 is nearly a copy of 2; the other columns are noise."""
    random = np.random.default_rng(0)
    X = random.standard_normal((n_rows, 30))
    y = X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * random.standard_normal(n_rows) > 0
    X[:, 3] = X[:, 2] + 0.05 * random.standard_normal(n_rows)
    return X, y


def test_related_needed_features_and_pairs_are_in_every_format():
    X, y = pairs_table()
    tournament = Tournament(n_probes=600, random_state=0).fit(X, y)
    summary = summarize(tournament, X, y, target="state")
    columns, part = summary["ranking"]["columns"], summary["interactions"]
    named = dict(zip(columns["feature"], columns["needed"], strict=True))
    assert named["x0"]
    assert named["x1"]
    assert named["x2"] or named["x3"]
    assert part["pairs"][0]["only_together"]
    assert {part["pairs"][0][key] for key in ("first", "second")} == {"x0", "x1"}
    assert part["pairs"][0]["q_value"] == tournament.interactions().q_values[0]
    cluster = dict(zip(columns["feature"], columns["cluster"], strict=True))
    assert cluster["x2"] == cluster["x3"] in ("x2", "x3")
    assert cluster["x0"] is None
    verdict = summary["verdict"][0]
    assert "related to state at a false discovery rate of 10%" in verdict
    assert "needed given the others; 1 of these can be exchanged for a neighbor." in verdict
    assert "x0 and x1 matter only together." in verdict
    for page in (render_html(summary), render_markdown(summary), render_json(summary)):
        assert "x0 and x1 matter only together" in page
        assert "One of 2 similar features is needed" in page or page.startswith("{")
    halves = summary["selection"]
    assert f"Two random halves of the samples have {halves['shared']:.1f} of their top 7 features in common" in verdict
    assert columns["selected_in"][0] == 1
    for name in ("rank_low", "rank_high", "in_top"):  # they would only describe the last round
        assert name not in columns
        assert name not in to_frame(tournament, "polars")


def test_the_report_has_three_parts():
    X, y = pairs_table(100)
    summary = summarize(Tournament(n_probes=300, random_state=0).fit(X, y), X, y)
    titles = ["Which features predict best?", "Which features are related or needed?", "How well do they predict?"]
    for page, mark in ((render_html(summary), ">{}</h2>"), (render_markdown(summary), "\n## {}\n")):
        places = [page.index(mark.format(title)) for title in titles]
        assert places == sorted(places)
    assert summary["inference"]["explanation"].count(". ") == 2  # the two questions in three sentences
    assert summary["inference"]["explanation"] in render_markdown(summary)


@pytest.mark.slow
def test_pairs_of_noise_are_not_named():
    random = np.random.default_rng(3)
    X, y = random.standard_normal((100, 60)), np.arange(100) % 2
    summary = summarize(Tournament(n_probes=300, random_state=0).fit(X, y), X, y)
    assert summary["interactions"]["pairs"] == []
    for page in (render_html(summary), render_markdown(summary)):
        assert "No pair is named at a false discovery rate of 10%" in page
    without = summarize(Tournament(n_probes=300, random_state=0).fit(X, y), X, y, inference=False)
    assert without["omitted"]["interactions"] == "the tests of features were switched off"
    assert "Which features are related or needed?" not in render_html(without)


def test_pairs_of_categories_and_groups_are_pairs_of_features():
    random = np.random.default_rng(0)
    X = random.standard_normal((300, 12))
    X[:, 4] = random.integers(0, 3, 300)
    y = np.where(X[:, 4] == 1, X[:, 7], -X[:, 7]) > 0
    options = {"n_probes": 300, "random_state": 0}
    tournament = Tournament(categorical_features=[4], feature_groups=[[7, 8]], **options).fit(X, y)
    assert tournament.interactions().pairs[0].tolist() == [4, 7]


# ---- from the data


def test_score_by_size_is_cross_validated_accuracy(madelon):
    X, y = madelon
    bif = BIF(criterion=KNN(3)).fit(X, y)
    sizes = summarize(bif, X, y)["sizes"]
    order = np.argsort(bif.ranking_, kind="stable")
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    for place, size in enumerate(sizes["size"]):
        columns = X.to_numpy()[:, order[:size]]
        scores = cross_val_score(KNeighborsClassifier(3), columns, y, cv=folds)
        np.testing.assert_allclose(sizes["score"][place], scores.mean(), atol=1e-12)
        np.testing.assert_allclose(sizes["std_error"][place], scores.std(ddof=1) / np.sqrt(5), atol=1e-12)
    best = int(np.argmax(sizes["score"]))
    limit = sizes["score"][best] - sizes["std_error"][best]
    good = [size for size, score in zip(sizes["size"], sizes["score"], strict=True) if score >= limit]
    assert sizes["suggested"] == min(good)
    assert sizes["guess"] == max(np.mean(y == label) for label in np.unique(y))


def test_a_filter_is_refitted_in_each_fold():
    random = np.random.default_rng(1)
    X, y = random.standard_normal((60, 3000)), np.arange(60) % 2
    honest, seen = summarize(FSDD().fit(X, y), X, y), summarize(BIF(criterion="naive_bayes").fit(X, y), X, y)
    assert max(honest["sizes"]["score"]) < 0.65 < 0.8 < max(seen["sizes"]["score"])
    assert honest["verdict"][1].startswith("No number of features predicts convincingly better than guessing")
    assert "The score on held-out samples was not measured: it takes as long as five fits" in seen["verdict"][1]


def test_the_size_curve_the_run_is_shown(madelon):
    X, y = madelon
    bif = BIF(criterion="linear").fit(X, y)
    bif.size_curve_ = size_curve(bif, X, y, sizes=[1, 5], cv=3, nested=True)
    sizes = summarize(bif, X, y)["sizes"]
    assert (sizes["size"], sizes["folds"], sizes["nested"]) == ([1, 5], 3, True)
    assert sizes["beats_guessing"] == bif.size_curve_.beats_guessing
    assert summarize(bif)["sizes"] == sizes | {"features": []}  # near copies need the data


@pytest.mark.slow
def test_a_numeric_target():
    random = np.random.default_rng(1)
    X = random.standard_normal((120, 12))
    y = X[:, 2] + 0.5 * X[:, 5] + 0.01 * random.standard_normal(120)
    summary = summarize(DAF(stop=MaxProbes(800), random_state=0).fit(X, y), X, y)
    assert summary["data"]["task"] == "regression"
    assert summary["sizes"]["measure"] == "R²"
    assert set(summary["univariate"]["methods"]) == {"bif"}
    assert "enough: cross-validated R² = 0.94" in summary["verdict"][1]
    whole = np.round(10 * y).astype(int)
    few = X[:, :6]
    by_knn = DAF(criterion=KNeighborsRegressor(3), stop=MaxProbes(50), random_state=0).fit(few, whole)
    assert summarize(by_knn, few, whole)["data"]["task"] == "regression"


def test_the_data_are_described():
    X = np.array([[1.0, 2.0, np.nan, 0.0], [1.0, 3.0, 1.0, 0.0], [1.0, 4.0, np.nan, 5.0], [1.0, 1.0, 2.0, 6.0]])
    y = np.array(["b", "a", "a", "b"])
    summary = summarize(FSDD().fit(X, y), X, y)
    data = summary["data"]
    assert data["classes"] == [{"label": "a", "rows": 2}, {"label": "b", "rows": 2}]
    assert (data["missing_cells"], data["missing_columns"], data["missing_names"]) == (2, 1, ["x2"])
    assert (data["constant_columns"], data["constant_names"]) == (1, ["x0"])
    assert summary["omitted"]["univariate"] == "values are missing"
    sparse = summarize(FSDD().fit(sp.csr_matrix(np.nan_to_num(X)), y), sp.csr_matrix(np.nan_to_num(X)), y)
    assert sparse["data"]["sparse"]
    assert sparse["data"]["constant_names"] == ["x0"]


def test_a_class_with_one_sample_cannot_be_tested():
    X, y = np.random.default_rng(0).standard_normal((20, 5)), np.array([0] * 19 + [1])
    assert "single row" in summarize(FSDD().fit(X, y), X, y)["omitted"]["sizes"]


def test_redundancy():
    random = np.random.default_rng(0)
    X, y = random.standard_normal((80, 5)), np.arange(80) % 2
    X[:, 0] += 3 * y
    X[:, 3], X[:, 4] = -2 * X[:, 0] + 0.01 * X[:, 1], 7.0
    part = summarize(FSDD().fit(X, y), X, y)["redundancy"]
    assert [{pair["first"], pair["second"]} for pair in part["close_pairs"]] == [{"x0", "x3"}]
    place = [int(name[1:]) for name in part["features"]]
    varying = [k for k in range(5) if place[k] != 4]
    expected = np.abs(np.corrcoef(X.T[[place[k] for k in varying]]))
    np.testing.assert_allclose(np.array(part["correlation"], dtype=float)[np.ix_(varying, varying)], expected)
    assert part["correlation"][place.index(4)] == [None] * 5
    gaps = X.copy()
    gaps[:10, 1] = np.nan
    part = summarize(FSDD().fit(gaps, y), gaps, y)["redundancy"]
    first, second = part["features"].index("x0"), part["features"].index("x1")
    expected = abs(np.corrcoef(X[10:, 0], X[10:, 1])[0, 1])
    np.testing.assert_allclose(part["correlation"][first][second], expected)


@pytest.mark.slow
def test_features_that_univariate_rankings_miss():
    random = np.random.default_rng(0)
    X = random.standard_normal((400, 100)).astype(np.float32)
    y = ((X[:, 30] > 0) ^ (X[:, 60] > 0)).astype(int)
    X[:, :25] += 0.1 * y[:, None]
    daf = DAF(stop=MaxProbes(3000), max_probe_size=20, random_state=0).fit(X, y)
    part = summarize(daf, X, y)["univariate"]
    columns = summarize(daf, X, y)["ranking"]["columns"]
    assert set(columns["feature"][:2]) == {"x30", "x60"}
    bif, fsdd = BIF(criterion=KNN()).fit(X, y), FSDD().fit(X, y)
    assert columns["bif"][:2] == [int(bif.ranking_[int(name[1:])]) for name in columns["feature"][:2]]
    is_missed = (daf.ranking_ <= 20) & (np.minimum(bif.ranking_, fsdd.ranking_) > 60)
    assert sorted(part["missed"]) == sorted(f"x{column}" for column in np.flatnonzero(is_missed))
    assert is_missed[[30, 60]].any()


def test_features_that_only_univariate_rankings_have():
    random, y = np.random.default_rng(0), np.arange(120) % 2
    X = random.standard_normal((120, 40))
    X[:, :5] += [[3.0, 2.5, 2.0, 1.5, 1.0]] * y[:, None]
    daf = DAF(criterion=KNN(), stop=MaxProbes(200), random_state=0).fit(X, y)
    alone = [BIF(criterion=KNN()).fit(X, y).ranking_, FSDD().fit(X, y).ranking_]
    daf.ranking_ = 41 - alone[1]  # the opposite of the univariate ranking
    part = summarize(daf, X, y)["univariate"]
    is_univariate_only = (np.max(alone, axis=0) <= 10) & (daf.ranking_ > 30)
    assert sorted(part["univariate_only"]) == sorted(f"x{column}" for column in np.flatnonzero(is_univariate_only))
    assert 0 < len(part["univariate_only"]) < 10
    is_missed = (np.min(alone, axis=0) > 30) & (daf.ranking_ <= 10)
    assert sorted(part["missed"]) == sorted(f"x{column}" for column in np.flatnonzero(is_missed))
    assert f"The reverse: {', '.join(part['univariate_only'])}." in render_markdown(summarize(daf, X, y))


def test_a_path_gives_the_subsets(madelon):
    X, y = madelon
    sffs = SFFS(3, criterion="linear").fit(X, y)
    assert summarize(sffs, X, y)["sizes"]["size"] == sorted(sffs.path_)


def test_names_for_sparse_data():
    X, y = sp.csr_matrix(np.eye(6)), np.array([0, 0, 0, 1, 1, 1])
    summary = summarize(FSDD().fit(X, y), feature_names=list("abcdef"))
    assert sorted(summary["ranking"]["columns"]["feature"]) == list("abcdef")
    with pytest.raises(ValueError, match="2 names for 6 features"):
        summarize(FSDD().fit(X, y), feature_names=["a", "b"])


# ---- a study


def test_a_study_from_its_file_and_from_its_result(study, madelon, tmp_path):
    result, path = study
    X, y = madelon
    ours, theirs = summarize(result, X, y), summarize(path, X, y)
    for part in ("study", "ranking", "verdict", "data", "redundancy"):
        assert ours[part] == theirs[part], part
    best = theirs["study"]["best"]
    assert best in ("bif", "fsdd")
    assert f"{best} selected the best features in 3 random splits: 3-nn with" in theirs["verdict"][0]
    assert "from split to split" in theirs["verdict"][1]
    np.testing.assert_allclose(theirs["study"]["accuracy"], result.accuracy.mean(axis=0))
    held = np.zeros(40)
    for size in (2, 8):
        for subset in result.subsets(best, size):
            held[subset] += 1 / 6
    np.testing.assert_allclose(theirs["ranking"]["columns"]["score"], np.sort(held)[::-1])
    broken = shutil.copy(path, tmp_path / "broken.jsonl")
    with open(broken, "ab") as file:
        file.write(b'{"trial": 3, "sel')
    assert summarize(broken)["study"]["trials"] == 3
    with open(broken, "ab") as file:
        file.write(b"\n")
    with pytest.raises(StudyError, match="is damaged"):
        summarize(broken)


def test_every_table_of_a_study_has_a_sentence(study, capsys):
    result, _ = study
    sentences = sentences_on_study(result)
    means = dict(zip(result.selectors, result.accuracy.mean(axis=(0, 2, 3)), strict=True))
    best = max(means, key=means.get)
    significant = result.verdict()["p_holm"] < 0.05
    highest = f"{best} has the highest mean over sizes, {means[best]:.3f}"
    assert sentences["accuracy"][0].startswith(highest)
    assert ("no difference is significant" in sentences["accuracy"][0]) == (not significant.any())
    assert sentences["pairs"].startswith(f"{significant.sum()} of 3" if significant.any() else "No difference")
    print_comparison(result)
    printed, summary = capsys.readouterr().out, summarize(result)
    for sentence in (*sentences["accuracy"], sentences["stability"]["cw_rel"], sentences["pairs"]):
        assert sentence in printed
        assert sentence in render_html(summary)
    for sentence in (*sentences["accuracy"], sentences["stability"]["nogueira"], sentences["pairs"]):
        assert sentence.replace("_", r"\_") in render_markdown(summary)


def test_differences_in_words():
    means = np.array([0.9, 0.8, 0.7])
    sentence = _on_accuracy(("a", "b", "c"), means, [("a", "c"), ("b", "c")])
    assert sentence == "a has the highest mean over sizes, 0.900; it is significantly better than c."
    assert _on_accuracy(("a", "b", "c"), means, [("b", "c")]).endswith(", but its lead may be chance.")
    assert _on_pairs(3, 1, 5) == "1 of 3 differences is significant."
    assert _on_pairs(3, 0, 1) == "A single split cannot show whether a difference is significant."


def test_the_stability_sentence_is_about_methods_that_select(study, madelon):
    result, _ = study
    assert not any(sentence.startswith("all ") for sentence in sentences_on_study(result)["stability"].values())
    only_fsdd = {"fsdd": FSDD(), "all": None}
    options = {"trials": 2, "sizes": [2, 40], "random_state": 0}  # 40 are all features: Nogueira's measure is NaN
    result = Study(only_fsdd, {"3-nn": KNeighborsClassifier(3)}, **options).compare(*madelon)
    expected = result.stability()["nogueira"][0, 0]
    sentence = f"fsdd has the most stable selection, {expected:.3f} on average over sizes."
    assert sentences_on_study(result)["stability"]["nogueira"] == sentence


def test_criteria_in_prose():
    assert in_prose(KNN()) == "3 nearest neighbors"
    assert in_prose(KNN(1)) == "the nearest neighbor"
    assert in_prose(KNN(5, missing="median")) == "5 nearest neighbors, with missing values filled with the median"
    both = in_prose(Average([KNN(missing="mean"), Linear(missing="mean")]))
    assert both == "the mean of 3 nearest neighbors and a ridge model, with missing values filled with the mean"
    assert in_prose(Average([KNN(), NaiveBayes()])) == "the mean of 3 nearest neighbors and naive Bayes"
    assert in_prose(Scorer(KNeighborsClassifier(7))) == Scorer(KNeighborsClassifier(7)).describe()
    assert all("(" not in in_prose(kind()) for kind in NAMES.values())


def test_the_report_names_constant_columns_and_says_how_missing_values_were_filled():
    random = np.random.default_rng(0)
    X, y = random.standard_normal((60, 6)), np.arange(60) % 2
    X[:, 3], X[:, 4], X[5, 0] = 2.0, np.nan, np.nan
    with pytest.warns(UserWarning, match="missing values"):
        tournament = Tournament(n_probes=50, random_state=0).fit(X, y)
    notes = summarize(tournament, X, y, inference=False)["features"]["notes"]
    assert "Constant or empty columns, which rank last: x3, x4" in notes
    assert "Missing values were filled with the median of their column" in notes
    plain = Tournament(n_probes=50, random_state=0).fit(X[:, [1, 2, 5]], y)
    assert not {"Constant", "Missing"} & {
        note.split()[0] for note in summarize(plain, inference=False)["features"]["notes"]
    }


def test_the_average_feature_is_at_zero(saved_run):
    daf, _ = saved_run
    columns = summarize(daf)["ranking"]["columns"]
    np.testing.assert_allclose(columns["above_average"], np.sort(daf.scores_)[::-1] - daf.scores_.mean(), atol=1e-12)
    for text in (render_html(summarize(daf)), render_markdown(summarize(daf)), daf._repr_html_()):
        assert "above average" in text
    assert "above_average" not in summarize(FSDD().fit(np.eye(4), [0, 1, 0, 1]))["ranking"]["columns"]


def test_a_study_of_one_trial(study):
    result, _ = study
    one = type(result)(**{**vars_of(result), "records": result.records[:1]})
    summary = summarize(one)
    assert json.loads(render_json(summary)) == summary
    assert "at least two splits are needed" in summary["verdict"][1]


def vars_of(result):
    return {name: getattr(result, name) for name in type(result).__dataclass_fields__}


def test_a_study_without_finished_trials_is_refused(study, tmp_path):
    header = study[1].read_bytes().splitlines()[0]
    (tmp_path / "new.jsonl").write_bytes(header + b"\n")
    with pytest.raises(StudyError, match="has no finished trials yet"):
        summarize(tmp_path / "new.jsonl")


@pytest.mark.slow
def test_madelon_stands_out():
    """Hardly more than a tenth of the features that stand out are noise."""
    data = make_madelon(400, 60, random_state=0)
    summary = summarize(DAF(stop=MaxProbes(3000), random_state=0).fit(data.X, data.y), data.X, data.y)
    columns = summary["ranking"]["columns"]
    standing_out = [int(name[1:]) for name, yes in zip(columns["feature"], columns["related"], strict=True) if yes]
    assert len(standing_out) >= 8
    # A tenth of the named features may be false, plus two standard errors.
    n_false, n_named = len(set(standing_out) - set(data.informative.tolist())), len(standing_out)
    assert n_false <= 0.1 * n_named + 2 * np.sqrt(0.09 * n_named)


def test_a_hint_for_rare_classes():
    """If one class is large, guessing is hard to beat by accuracy, and the verdict gives the AUC."""
    random = np.random.default_rng(2)
    X, y = random.standard_normal((60, 8)), np.repeat(["common", "rare"], [50, 10])
    hint = "accuracy says little, because 83% of the samples are of one class"
    assert hint in summarize(FSDD().fit(X, y), X, y)["verdict"][1]
    even = np.repeat(["a", "b"], 30)
    assert hint not in summarize(FSDD().fit(X, even), X, even)["verdict"][1]


def test_equal_weights_of_classes_are_reported():
    X = np.random.default_rng(2).standard_normal((60, 8))
    for n_rare, is_said in ((5, True), (30, False)):
        tournament = Tournament(n_probes=40, random_state=0).fit(X, np.arange(60) < n_rare)
        assert ("All classes have the same weight" in str(summarize(tournament)["features"]["notes"])) == is_said


def test_notes_on_many_rounds_are_short():
    random = np.random.default_rng(3)
    tournament = Tournament(n_probes=600, random_state=0).fit(random.standard_normal((30, 500)), np.arange(30) % 2)
    features = summarize(tournament)["features"]
    sizes = [part["features"] for part in features["rounds"]]
    assert len(sizes) > 8
    (note,) = features["notes"]
    assert note.startswith(f"Rounds with 500, {sizes[1]}, {sizes[2]}, …, {sizes[-1]} features; features were dropped ")
