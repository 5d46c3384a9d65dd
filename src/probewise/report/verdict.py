"""The verdict of a report: two sentences for somebody who reads nothing else, from the dict of the summary."""

from __future__ import annotations

from typing import Any

from .leakage import giveaway_sentence
from .study import beyond_chance
from .words import count, listed, percent, quoted

SETTLED = 0.9  # of the top that two halves of a run share
STABLE, FAIRLY_STABLE = 0.75, 0.4  # Nogueira's measure; the limits of Fleiss for agreement
SHOWN = 3  # leaders named, of those that stand out
ONE_SIDED = 0.75  # of the rows in one class
RARE = "Accuracy says little about rare classes: scoring by balanced_accuracy asks as much of them as of the others"
CERTIFIED = "certified: "


def verdict(summary: dict[str, Any]) -> list[str]:
    """Which features matter and how many are enough; of a study, which method is best and how stable it is.

    Features that give the target away have a sentence more.
    """
    study, telling = summary["study"], summary["giveaways"]
    if study is not None:
        return [_which_method(study), _how_stable(study)]
    beware = [f"Beware: {giveaway_sentence(telling)} and rank again."] if telling else []
    return [_which(summary), _how_many(summary), *beware]


def predicts(summary: dict[str, Any]) -> bool:
    """Whether some number of features predicts better than guessing, as far as that is known."""
    return (summary["honest"] or summary["sizes"] or {}).get("beats_guessing") is not False


def _which(summary: dict[str, Any]) -> str:
    ranking = summary["ranking"]
    features, scores = ranking["columns"]["feature"], ranking["columns"]["score"]
    scored = [name for name, score in zip(features, scores, strict=True) if score is not None] or features
    target, n_features = summary["asked"]["target"], summary["data"]["features"]
    n_standing_out = ranking["standing_out"]
    if n_standing_out is None:
        names = _named(scored[:SHOWN])
        luck = "; whether that is more than luck is not known" if summary["run"]["probes"] else ""
        return (
            f"Of {n_features:,} features, {names} rank first for what they tell about {target or 'the target'}{luck}."
        )
    rate = f"at a false-discovery rate of {ranking['rate']:g}"
    if not n_standing_out:
        together = " one by one" if (summary["honest"] or {}).get("beats_guessing") else ""
        return (
            f"Nothing here beats luck{together}: none of the {n_features:,} features stands out, {rate}. "
            f"{_named(scored[:SHOWN])} rank first, as something always does."
        )
    stands_out = ranking["columns"]["stands_out"]
    leaders = [name for name, stands in zip(features, stands_out, strict=True) if stands][:SHOWN]
    stand = "stands" if n_standing_out == 1 else "stand"
    aim = f"predict {quoted(target)}" if target else "predict the target"
    found = f"{n_standing_out:,} {stand} out in helping to {aim}, beyond luck and on other rows as well ({rate})"
    return f"Of {n_features:,} features, {found}, led by {_named(leaders)}{_how_settled(summary)}."


def _named(names: list[str]) -> str:
    return listed([quoted(name) for name in names])


def _how_settled(summary: dict[str, Any]) -> str:
    for reason in (summary["run"]["stop_reason"] or "").split("; "):
        if reason.startswith(CERTIFIED):
            return f"; {reason.removeprefix(CERTIFIED)}"
    looks = summary["convergence"]
    if looks is None or (summary["features"] or {}).get("rounds"):  # the last round is of few features
        return ""
    share, top = looks["overlap"][-1], looks["top"]
    halves = f"two halves of the probes share {percent(share)} of their top {top}"
    return f"; {halves}, so more probes would {'hardly' if share >= SETTLED else 'still'} change it"


def _how_many(summary: dict[str, Any]) -> str:
    sizes, honest = summary["sizes"], summary["honest"]
    if sizes is None:
        return f"How many of them are enough cannot be said here: {summary['gaps']['sizes']}."
    if honest is None and sizes["honest"] and sizes["guess"] is not None:
        honest = {**sizes, "score": sizes["score"][sizes["size"].index(sizes["suggested"])], "std_error": None}
    if honest is None:
        enough = f"{count(sizes['suggested'], 'feature')} score about as well as more do"
        return f"{enough}; how well on rows not seen was not measured: {summary['gaps']['honest']}."
    reached = _score_in_words(honest)
    if honest["beats_guessing"] is False:
        hidden = f". {RARE}" if honest["measure"] == "accuracy" and (honest["guess"] or 0) >= ONE_SIDED else ""
        return (
            f"No number of features predicts convincingly better than guessing: on rows kept apart {reached}{hidden}."
        )
    are = "is" if sizes["suggested"] == 1 else "are"
    how = "with features ranked and chosen on other rows"
    return f"{count(sizes['suggested'], 'feature')} {are} enough: {how}, {reached}."


def _score_in_words(honest: dict[str, Any]) -> str:
    """What is reached, and what the same gives on shuffled targets, if that was tried."""
    score, guess, error, measure = (honest[name] for name in ("score", "guess", "std_error", "measure"))
    shuffled, is_share = honest.get("shuffled"), measure in ("accuracy", "R²")
    about = "" if error is None else f" ± {100 * error:.0f}" if is_share else f" ± {error:.2g}"
    words = f"the score ({measure}) is {score:.3g}{about}"
    if measure == "accuracy" and guess is not None:
        guessing = f"{percent(guess)} by always guessing the most frequent class"
        words = f"{percent(score)}{about} of rows are predicted correctly, against {guessing}"
    if measure == "R²":
        words = f"{percent(score)}{about} of the target's variation is explained"
    if shuffled is None:
        return words
    return f"{words} (on shuffled targets the same gives {percent(shuffled) if is_share else f'{shuffled:.3g}'})"


def _which_method(study: dict[str, Any]) -> str:
    best, classifier = study["best"], study["classifier"]
    place = study["selectors"].index(best), study["classifiers"].index(classifier)
    accuracy = study["accuracy"][place[0]][place[1]][study["sizes"].index(study["suggested"])]
    splits, features = count(study["trials"], "random split"), count(study["suggested"], "feature")
    return (
        f"Over {splits} {best} selected best: with {features} {classifier} predicted {percent(accuracy)} of unseen "
        f"rows correctly{_lead(study)}."
    )


def _lead(study: dict[str, Any]) -> str:
    """Which methods the best is ahead of, by the test of the pair with any classifier."""
    best = study["best"]
    beaten = {worse for better, worse in beyond_chance(study["pairs"]) if better == best}
    ahead = [name for name in study["selectors"] if name in beaten]
    rest = [name for name in study["selectors"] if name not in (best, *beaten)]
    words = f", clearly ahead of {listed(ahead)}" if ahead else ""
    return words + (f"{';' if ahead else ', but'} its lead over {listed(rest)} may be chance" if rest else "")


def _how_stable(study: dict[str, Any]) -> str:
    place, size = study["selectors"].index(study["best"]), study["sizes"].index(study["suggested"])
    stability = study["stability"]["nogueira"][place][size]
    if stability is None:
        return "How stable its choice of features is cannot be said: that takes two splits or more."
    word = "stable" if stability >= STABLE else "fairly stable" if stability >= FAIRLY_STABLE else "not stable"
    return (
        f"Its choice of features is {word} from split to split "
        f"(Nogueira's measure is {stability:.2f}; 1 is the same choice each time, 0 is chance)."
    )
