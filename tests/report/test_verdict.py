"""The verdict over a table of combinations: no sentence contradicts another, and the facts decide."""

from itertools import product

import pytest

from probewise.report.sentences import predicts, verdict

SCORE = {"measure": "accuracy", "score": 0.83, "std_error": 0.05, "guess": 0.75, "shuffled": None}
SIZES = {"size": [1, 4], "score": [0.8, 0.83], "suggested": 4, "nested": True, "guess": 0.75, "measure": "accuracy"} | {
    "features": []
}
RARE = {"is_imbalanced": True, "auc_error": 0.03, "base_rate": 0.95}
PREDICTIONS = {"none": None, "no rare class": {"is_imbalanced": False, "auc": 0.9}, "AUC 0.9": RARE | {"auc": 0.9}}
PREDICTIONS |= {"AUC 0.52": RARE | {"auc": 0.52}, "numbers": {"rmse": 1.5, "r2": 0.9, "model": "a model"}}


def summary(related, needed, beats, predictions, leakage, notes):
    columns = {"feature": ["a", "b", "c"], "score": [3.0, 2.0, None]}
    columns |= {"related": [k < (related or 0) for k in range(3)], "needed": [k < (needed or 0) for k in range(3)]}
    tests = None if related is None else {"n_related": related, "n_needed": needed, "fdr": 0.1, "clusters": []}
    return {
        "ranking": {"columns": columns},
        "header": {"target": "state"},
        "data": {"features": 3},
        "inference": tests,
        "nested_score": None if beats is None else SCORE | {"beats_guessing": beats},
        "sizes": SIZES | {"beats_guessing": beats, "nested": beats is not None},
        "predictions": PREDICTIONS[predictions],
        "adjustment": None,
        "survival": None,
        "convergence": None,
        "interactions": None,
        "selection": None,
        "run": {"stop_reason": None},
        "omitted": {"nested_score": "the data were not given"},
        "leakage": leakage,
        "warnings": notes,
    }


@pytest.mark.parametrize(("related", "needed"), [(None, 0), (0, 0), (2, 0), (2, 1)])
@pytest.mark.parametrize("beats", [None, True, False])
@pytest.mark.parametrize("predictions", sorted(PREDICTIONS))
def test_no_sentence_contradicts_another(related, needed, beats, predictions):
    for leakage, notes in product(([], ["c"]), ([], ["40% of the rows are nearly equal to another row"])):
        facts = summary(related, needed, beats, predictions, leakage, notes)
        paragraphs = verdict(facts)
        text = " ".join(paragraphs)
        assert all(paragraph.endswith(".") for paragraph in paragraphs)
        assert ("enough" in text) == (predicts(facts) and beats is not None)
        assert ("better than guessing:" in text or "guessing, which may" in text) == (not predicts(facts))
        if "AUC" in predictions and beats is not None:
            assert predicts(facts) == (predictions == "AUC 0.9")
            assert "AUC = 0." in text
        elif beats is not None:
            assert predicts(facts) == beats
            assert "83% ± 5% accuracy" in text
            of_numbers = "Predictions with them have a root mean squared error of 1.5 in the units of state (R² ="
            assert (of_numbers in text) == (beats and predictions == "numbers")
        if related:
            assert "o feature is" not in text
            assert ("lthough features are related" in text) == (not predicts(facts))
        if related == 0:
            assert ("but together features predict better" in text) == (beats is not None and predicts(facts))
            assert ("do not read meaning into it" in text) == (beats is None or not predicts(facts))
        assert text.startswith("Check the data first: 40% of the rows") == bool(notes)
        of_counts, of_sizes = bool(notes) and related is not None, bool(notes) and beats is not None
        assert text.count("Assuming independent samples, ") == of_counts + of_sizes
        assert ("Possible target leakage: c" in text) == bool(leakage)


def test_pairs_clusters_and_stability_are_in_the_verdict():
    facts = summary(2, 1, True, "none", [], [])
    facts["inference"]["clusters"] = [["a", "d"]]
    facts["interactions"] = {"pairs": [{"first": "b", "second": "c", "only_together": False}]}
    facts["selection"] = {"top": 20, "shared": 6.4, "shared_by_chance": 0.4}
    assert verdict(facts)[0] == (
        "2 features are related to state at a false discovery rate of 10%. 1 is needed given the others; it can be "
        "exchanged for a neighbor. The needed feature with the best rank is a. b and c act together. Two random halves "
        "of the samples have 6.4 of their top 20 features in common (0.4 by chance)."
    )
    facts = summary(0, 0, False, "none", [], [])
    facts["interactions"] = {"pairs": [{"first": "b", "second": "c", "only_together": True}]}
    assert verdict(facts)[0].endswith("10% on its own. b and c matter only together.")


@pytest.mark.parametrize("adds", [None, True, False])
@pytest.mark.parametrize(("related", "unadjusted"), [(0, 0), (0, 3), (2, 3)])
def test_the_verdict_is_about_what_remains_beyond_covariates(adds, related, unadjusted):
    facts = summary(related, 0, adds, "none", [], [])
    scores = None if adds is None else dict.fromkeys(("covariates", "features", "both", "gain"), (0.7, 0.02))
    facts["inference"]["n_unadjusted"] = unadjusted
    facts["adjustment"] = {"names": ["age", "batch"], "scores": scores, "adds": adds, "measure": "R²"}
    text = " ".join(verdict(facts))
    assert "related to state beyond age and batch" in text
    assert ("nothing remains beyond age and batch. Without adjustment 3 features are related" in text) == (
        related == 0 and unadjusted == 3 and not adds
    )
    assert ("features predict better than age and batch alone" in text) == (bool(adds) and not related)
    assert ("the features add to age and batch" in text) == (adds is True)
    assert ("do not convincingly add to age and batch" in text) == (adds is False)
    assert "guessing" not in text


@pytest.mark.parametrize(
    ("measure", "error", "words"),
    [
        ("accuracy", 0.05, "83% ± 5% accuracy"),
        ("accuracy", 0.004, "83.0% ± 0.4% accuracy"),
        ("R²", 0.05, "R² = 0.83 ± 0.05"),
        ("R²", 0.004, "R² = 0.830 ± 0.004"),
    ],
)
def test_an_error_is_never_rounded_to_0(measure, error, words):
    facts = summary(2, 1, True, "none", [], [])
    facts["nested_score"] |= {"measure": measure, "std_error": error}
    assert words in " ".join(verdict(facts))


def test_features_that_are_not_listed_are_counted():
    facts = summary(2, 1, True, "none", [], [])
    listed = [{"feature": f"g{k}", "n_copies": 1, "band": None} for k in range(20)]
    facts["sizes"] |= {"features": listed, "suggested": 74, "size": [1, 74]}
    assert "and 71 more." in " ".join(verdict(facts))
