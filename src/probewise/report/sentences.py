"""Sentences of a report: the verdict, notes on the run, and numbers and names as they appear in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from ..engine.run import Run
from ..validation.contents import REPLICATES, TIME_ORDER
from .ranking_table import typeset_cell

N_LEADERS = 3  # features named in the verdict
N_LEAKING = 3  # features named in the warning about target leakage
N_LISTED = 8  # numbers and names listed in a note
N_PAIRS = 2  # pairs named in the verdict
SETTLED = 0.9  # share of the top that two halves of a run have in common
IMBALANCED = 0.75  # share of the samples in the largest class
MEASURES = {"roc_auc": "AUC"}  # names of scores in sentences
CONVINCING = 2  # standard errors above guessing
RARE_CLASSES = "Accuracy says little about rare classes: see the recall of each class"


# ---- numbers and names


def percent(share: float) -> str:
    return f"{100 * share:.0f}%"


def number(value: float | None, decimals: int = 3) -> str:
    return typeset_cell("", value, decimals)


def count(amount: int, noun: str) -> str:
    return f"{amount:,} {noun}{'' if amount == 1 else 's'}"


def one_line(name: str, longest: int = 60) -> str:
    """The name on one line, truncated."""
    name = " ".join(name.split()) or "(blank)"
    return name if len(name) <= longest else f"{name[: longest - 1]}…"


def listed(items: Sequence[str]) -> str:
    """The items as "a, b and c"."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


def _named(names: Sequence[str]) -> str:
    return listed([one_line(name) for name in names])


# ---- the verdict


def verdict(summary: dict[str, Any]) -> list[str]:
    """Warnings, which features matter, how many are enough, and which ones leak the target; one paragraph each.

    All sentences follow from `predicts` and the numbers of related and needed features, so that none contradicts
    another.
    """
    leaking = summary["leakage"]
    warning = [f"Possible target leakage: {leakage_sentence(leaking)}, then rank again."] if leaking else []
    notes = [f"Check the data first: {note}." for note in summary["warnings"]]
    how_many = _how_many_features(summary)
    if summary["nested_score"] is not None:
        how_many = with_assumption(how_many, summary["warnings"])
    return [*notes, _which_features(summary), how_many, *warning]


def predicts(summary: dict[str, Any]) -> bool:
    """Whether some number of features predicts better than guessing, as far as that is known.

    With a rare class, accuracy can hardly beat guessing, and the area under the ROC curve decides.
    """
    if (adjustment := summary["adjustment"]) is not None and adjustment["adds"] is not None:
        return bool(adjustment["adds"])
    if (found := _rare_class_predictions(summary)) is not None:
        return bool(found["auc"] - CONVINCING * found["auc_error"] > 0.5)
    return (summary["nested_score"] or summary["sizes"] or {}).get("beats_guessing") is not False


def _rare_class_predictions(summary: dict[str, Any]) -> dict[str, Any] | None:
    """Held-out predictions where one of two classes is rare and accuracy is the score; else None."""
    found, score = summary["predictions"], summary["nested_score"]
    if found is None or score is None or score["measure"] != "accuracy":
        return None
    return found if found.get("is_imbalanced") and found["auc"] is not None else None


def inference_sentence(
    n_related: int, n_needed: int, fdr: float, target: str = "the target", *, n_clusters: int = 0
) -> str:
    """The numbers of features that are related to the target and that are needed, without the last full stop.

    ``n_clusters`` is the number of needed features that represent a cluster of similar features.
    """
    related = f"related to {target} at a false discovery rate of {percent(fdr)}"
    if not n_related and not n_needed:
        return f"No feature is {related}"
    first = f"{count(n_related, 'feature')} {'is' if n_related == 1 else 'are'} {related}"
    if not n_needed:
        return f"{first}. None is shown to be needed given the others"
    needed = f"{first}. {n_needed:,} {'is' if n_needed == 1 else 'are'} needed given the others"
    if not n_clusters:
        return needed
    which = f"{n_clusters:,} of these" if n_clusters < n_needed else "it" if n_needed == 1 else "all of these"
    return f"{needed}; {which} can be exchanged for a neighbor"


def pair_sentence(pair: dict[str, Any]) -> str:
    """The finding about a pair of features, without the full stop."""
    names = _named([pair["first"], pair["second"]])
    return f"{names} matter only together" if pair["only_together"] else f"{names} act together"


def inference_words(summary: dict[str, Any]) -> str:
    """`inference_sentence` for the tests of a summary, with what it assumes; "" without tests."""
    tests, target = summary["inference"], one_line(summary["header"]["target"] or "the target")
    if tests is None:
        return ""
    if summary["adjustment"] is not None:
        target += f" beyond {_covariates(summary['adjustment'])}"
    n_clusters = len(tests["clusters"])
    words = inference_sentence(tests["n_related"], tests["n_needed"], tests["fdr"], target, n_clusters=n_clusters)
    return with_assumption(words, summary["warnings"])


def with_assumption(sentence: str, warnings: Sequence[str]) -> str:
    """The sentence; where a warning says that samples depend on each other, it names independence as its assumption."""
    if not any(sign in warning for warning in warnings for sign in (REPLICATES, TIME_ORDER)):
        return sentence
    return f"Assuming independent samples, {sentence[0].lower()}{sentence[1:]}"


def _covariates(adjustment: dict[str, Any]) -> str:
    """Names of the covariates, or how many there are."""
    names = adjustment["names"]
    return _named(names) if len(names) <= N_LEADERS else f"the {len(names)} covariates"


def adjustment_sentence(summary: dict[str, Any]) -> str:
    """The scores of covariates, features and both, and whether the features add to the covariates."""
    found = summary["adjustment"]
    if found["scores"] is None:
        return "Whether features add to the covariates on held-out samples was not measured."
    scores = {name: f"{number(mean, 2)} ± {number(error, 2)}" for name, (mean, error) in found["scores"].items()}
    measure = MEASURES.get(found["measure"], found["measure"])
    covariates = _covariates(found)
    verb = "add" if found["adds"] else "do not convincingly add"
    return (
        f"On held-out samples, {measure} is {scores['covariates']} with {covariates} alone, {scores['features']} with "
        f"features alone, and {scores['both']} with both: the features {verb} to {covariates} (difference "
        f"{scores['gain']})."
    )


def survival_sentence(found: dict[str, Any]) -> str:
    """The hazard ratio of the two halves by predicted risk."""
    if found["hazard_ratio"] is None:
        return "One of the two halves by predicted risk has no event, so their hazard ratio is not known."
    ratio, low, high = (number(value, 2) for value in found["hazard_ratio"])
    return (
        f"On held-out samples, the hazard of the half with the higher predicted risk is {ratio} times ({low} to "
        f"{high}) that of the other half."
    )


def cluster_notes(tests: dict[str, Any]) -> list[str]:
    """A sentence for each cluster of similar features of which one is needed, up to eight of them."""
    notes = []
    for names in tests["clusters"][:N_LISTED]:
        others = [one_line(name) for name in names[1 : N_LEADERS + 1]]
        others += [f"{len(names) - N_LEADERS - 1:,} more"] if len(names) > N_LEADERS + 1 else []
        first = f"One of {len(names):,} similar features is needed: {one_line(names[0])} represents it"
        notes.append(f"{first}; {'the other is' if len(names) == 2 else 'others are'} {listed(others)}")
    return notes


def leakage_sentence(names: Sequence[str]) -> str:
    """A warning about features that determine the target, without the full stop."""
    more = [f"{len(names) - N_LEAKING:,} more"] if len(names) > N_LEAKING else []
    leaking = listed([*(one_line(name) for name in names[:N_LEAKING]), *more])
    verb = "determines" if len(names) == 1 else "each determine"
    return f"{leaking} {verb} the target exactly. Remove features that encode the target or were recorded after it"


def _which_features(summary: dict[str, Any]) -> str:
    ranking = summary["ranking"]
    features, scores = ranking["columns"]["feature"], ranking["columns"]["score"]
    first = [name for name, score in zip(features, scores, strict=True) if score is not None] or features
    leaders = f"{_named(first[:N_LEADERS])} {'ranks' if len(first) == 1 else 'rank'} first"
    target, tests = one_line(summary["header"]["target"] or "the target"), summary["inference"]
    if tests is not None:
        sentence = inference_words(summary)
        named = [] if summary["interactions"] is None else summary["interactions"]["pairs"][:N_PAIRS]
        pairs = "".join(f" {pair_sentence(pair)}." for pair in named)
        for kind in ("needed", "related"):
            names = [name for name, yes in zip(features, ranking["columns"][kind], strict=True) if yes]
            if names:
                best = f"The {kind} feature{'' if len(names) == 1 else 's'} with the best rank"
                best += f" {'is' if len(names) == 1 else 'are'} {_named(names[:N_LEADERS])}"
                return f"{sentence}. {best}.{pairs}{_how_settled(summary)}"
        if summary["adjustment"] is not None and tests["n_unadjusted"] and not summary["adjustment"]["adds"]:
            covariates, before = _covariates(summary["adjustment"]), count(tests["n_unadjusted"], "feature")
            verb = "is" if tests["n_unadjusted"] == 1 else "are"
            return f"{sentence}: nothing remains beyond {covariates}. Without adjustment {before} {verb} related."
        is_measured = summary["nested_score"] is not None or (summary["sizes"] or {}).get("nested")
        if is_measured and predicts(summary):
            than = "guessing" if summary["adjustment"] is None else f"{_covariates(summary['adjustment'])} alone"
            return f"{sentence}, but together features predict better than {than}. {leaders}.{pairs}"
        if pairs:
            return f"{sentence} on its own.{pairs}"
        return f"{sentence}. {leaders}, but something always does: do not read meaning into it."
    return f"Of {summary['data']['features']:,} features, {leaders} for predicting {target}.{_how_settled(summary)}"


def _how_settled(summary: dict[str, Any]) -> str:
    if (found := summary["selection"]) is not None:
        return f" {selection_sentence(found)}."
    checks = summary["convergence"]
    if checks is None:
        return ""
    share, top = checks["overlap"][-1], checks["top"]
    halves = f" Two halves of the probes agree on {percent(share)} of their top {top}"
    return f"{halves}, so more probes would {'hardly' if share >= SETTLED else 'still'} change the ranking."


def selection_sentence(found: dict[str, Any]) -> str:
    """How many features two halves of the samples have in common, without the full stop."""
    chance = number(found["shared_by_chance"], 1)
    shared = f"{number(found['shared'], 1)} of their top {found['top']} features in common ({chance} by chance)"
    return f"Two random halves of the samples have {shared}"


def _how_many_features(summary: dict[str, Any]) -> str:
    sizes, score, omitted = summary["sizes"], summary["nested_score"], summary["omitted"]
    if summary["adjustment"] is not None:
        return adjustment_sentence(summary)
    if sizes is None:
        return f"How many features are enough is not known: {omitted['sizes']}."
    if score is None and sizes["nested"] and sizes["guess"] is not None:
        score = {**sizes, "score": sizes["score"][sizes["size"].index(sizes["suggested"])], "std_error": None}
    n_enough, which = count(sizes["suggested"], "feature"), _suggested_features(sizes)
    if score is None:
        verb = "scores" if sizes["suggested"] == 1 else "score"
        return (
            f"{n_enough} {verb} about as well as more features do.{which} "
            f"The score on held-out samples was not measured: {omitted['nested_score']}."
        )
    tests, target = summary["inference"], one_line(summary["header"]["target"] or "the target")
    found, words = _rare_class_predictions(summary), f"{_score_in_words(score)}{_comparison_in_words(score)}"
    if found is not None:
        words = (
            f"AUC = {number(found['auc'], 2)} ± {number(found['auc_error'], 2)} on held-out samples (0.50 when "
            f"guessing); accuracy says little, because {percent(found['base_rate'])} of the samples are of one class"
        )
    if not predicts(summary):
        hint = (
            f" {RARE_CLASSES}."
            if found is None and score["measure"] == "accuracy" and (score["guess"] or 0) >= IMBALANCED
            else ""
        )
        if tests is not None and tests["n_related"]:
            return (
                f"Although features are related to {target}, no number of them predicts it convincingly better than "
                f"guessing, which may take more samples: {words}.{hint}"
            )
        return f"No number of features predicts convincingly better than guessing: {words}.{hint}"
    if found is not None:
        return f"{n_enough} {'is' if sizes['suggested'] == 1 else 'are'} enough: {words}.{which}"
    verb = "is" if sizes["suggested"] == 1 else "are"
    how = "with features chosen inside each fold"
    units, error, features = "", summary["predictions"], "it" if sizes["suggested"] == 1 else "them"
    if error and "rmse" in error:
        units = (
            f" Predictions with {features} have a root mean squared error of {error['rmse']:.3g} in the units of "
            f"{target} (R² = {number(error['r2'], 2)})."
        )
    if summary["survival"] is not None:
        units = f" {survival_sentence(summary['survival'])}"
    return f"{n_enough} {verb} enough: {_score_in_words(score)}, {how}{_comparison_in_words(score)}.{which}{units}"


def _suggested_features(sizes: dict[str, Any]) -> str:
    """The suggested features, where some of them have near copies, which rank near them and were left out."""
    features = sizes["features"]
    if not any(each["n_copies"] for each in features):
        return ""
    names = [one_line(each["feature"]) + standing_for(each) for each in features[:N_LEADERS]]
    n_all = max(sizes["suggested"], len(features))  # the list is truncated
    more = f", and {n_all - N_LEADERS:,} more" if n_all > N_LEADERS else ""
    shown = ", ".join(names) + more if more else listed(names)
    return f" Without near copies of better features {'it is' if len(features) == 1 else 'they are'} {shown}."


def standing_for(feature: dict[str, Any]) -> str:
    """The band or the near copies of a feature, in parentheses; "" if there are none."""
    if feature["band"]:
        return f" (of {one_line(feature['band'])})"
    n_copies = feature["n_copies"]
    return f" (with {n_copies:,} near {'copy' if n_copies == 1 else 'copies'})" if n_copies else ""


def _score_in_words(score: dict[str, Any]) -> str:
    """The score and its standard error, with one more decimal where the error would be rounded to 0."""
    value, error, measure = score["score"], score["std_error"], MEASURES.get(score["measure"], score["measure"])
    more = int(error is not None and error < 0.005)
    if measure == "accuracy":
        numbers = " ± ".join(f"{100 * part:.{more}f}%" for part in (value, error) if part is not None)
        return f"{numbers} accuracy on held-out samples"
    numbers = " ± ".join(number(part, 2 + more) for part in (value, error) if part is not None)
    return f"cross-validated {measure} = {numbers}"


def _comparison_in_words(score: dict[str, Any]) -> str:
    """The scores of guessing and of the same procedure with a shuffled target, in parentheses."""
    measure, shuffled = MEASURES.get(score["measure"], score["measure"]), score.get("shuffled")
    is_accuracy = measure == "accuracy"
    comparisons = []
    if is_accuracy and score["guess"] is not None:
        comparisons.append(f"{percent(score['guess'])} when always guessing the most frequent class")
    if measure in ("concordance", "AUC"):
        comparisons.append("0.50 when guessing")
    if shuffled is not None:
        value = percent(shuffled) if is_accuracy else number(shuffled, 2)
        comparisons.append(f"{value} when the target is shuffled")
    return f" ({', '.join(comparisons)})" if comparisons else ""


# ---- notes on the run


def notes_on_run(run: Run, names: Sequence[str]) -> list[str]:
    """Sentences on groups of features, kept and categorical features, scales and rounds, without full stops."""
    settings, sizes = run.settings, run.units.members.sizes
    n_groups, n_grouped = int((sizes > 1).sum()), int(sizes[sizes > 1].sum())
    notes = []
    if n_groups:
        notes.append(f"{count(n_groups, 'group')} with {n_grouped:,} features in total entered the probes as one unit")
    notes += _listing("In every probe, as requested", run.units.kept, names)
    if settings.categorical is not None:
        notes += _listing("Categorical", settings.categorical, names)
    if settings.uninformative is not None:
        notes += _listing("Constant or empty columns, which rank last", settings.uninformative, names)
    if settings.missing is not None:
        notes.append(f"Missing values were filled with the {settings.missing} of their column")
    if settings.uneven is not None:
        low, high = settings.uneven
        notes.append(
            f"The features have very different scales (standard deviations from {low:.3g} to {high:.3g}), and the "
            "criterion uses distances, which large values dominate: consider scale='standard'"
        )
    if settings.rows_used is not None:
        notes.append(f"Scored on a sample of {settings.rows_used:,} of {settings.shape[0]:,} rows")
    if run.in_rounds:
        n_active = _abridged([len(part.active) for part in run.plan.rounds])
        ends = _abridged([part.start for part in run.plan.rounds[1:]])
        many = f"Rounds with {n_active} features; features were dropped after {ends} probes"
        notes.append(many if ends else f"One round with {n_active} features: no feature has been dropped yet")
    return notes


def _abridged(numbers: list[int]) -> str:
    """The numbers, separated by commas; the first three and the last if there are many."""
    texts = [f"{number:,}" for number in numbers]
    return ", ".join(texts if len(texts) <= N_LISTED else [*texts[:3], "…", texts[-1]])


def _listing(title: str, columns: NDArray[Any], names: Sequence[str]) -> list[str]:
    if not len(columns):
        return []
    shown = ", ".join(names[column] for column in columns[:N_LISTED].tolist())
    more = f" and {len(columns) - N_LISTED:,} more" if len(columns) > N_LISTED else ""
    return [f"{title}: {shown}{more}"]
