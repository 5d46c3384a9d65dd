"""The verdict of a report: two sentences for somebody who reads nothing else, from the dict of the summary."""

from __future__ import annotations

from typing import Any

from ..probing.run import CHANCE
from .words import count, listed, percent, quoted

SETTLED = 0.9  # of the top that two halves of a run share
STABLE, FAIRLY_STABLE = 0.75, 0.4  # Nogueira's measure; the limits of Fleiss for agreement
CERTIFIED = "certified: "


def verdict(summary: dict[str, Any]) -> list[str]:
    """Which features matter and how many are enough; of a study, which method is best and how stable it is."""
    study = summary["study"]
    return [_which(summary), _how_many(summary)] if study is None else [_which_method(study), _how_stable(study)]


def _which(summary: dict[str, Any]) -> str:
    ranking = summary["ranking"]
    features, scores = ranking["columns"]["feature"], ranking["columns"]["score"]
    scored = [name for name, score in zip(features, scores, strict=True) if score is not None]
    names = listed([quoted(name) for name in (scored or features)[:3]])
    target, n_features = summary["asked"]["target"], summary["data"]["features"]
    screen = summary["screen"]
    probed = f" ({screen['passed']:,} of them probed, after a screen by {screen['method']})" if screen else ""
    n_standing_out = ranking["standing_out"]
    if n_standing_out is None:
        return f"Of {n_features:,} features, {names} rank first for what they tell about {target or 'the target'}."
    if not n_standing_out:
        return (
            f"None of the {n_features:,} features{probed} stands out beyond chance; {names} rank first, "
            "and more probes may tell whether they matter."
        )
    stand = "stands" if n_standing_out == 1 else "stand"
    aim = f"predict {quoted(target)}" if target else "predict the target"
    found = f"{n_standing_out:,} clearly {stand} out in helping to {aim}, led by {names}"
    return f"Of {n_features:,} features{probed}, {found}{_how_settled(summary)}."


def _how_settled(summary: dict[str, Any]) -> str:
    for reason in (summary["run"]["stop_reason"] or "").split("; "):
        if reason.startswith(CERTIFIED):
            return f"; {reason.removeprefix(CERTIFIED)}"
    looks = summary["convergence"]
    if looks is None:
        return ""
    share, top = looks["overlap"][-1], looks["top"]
    halves = f"two independent halves of the run share {percent(share)} of their top {top}"
    return f"; {halves}, so the top of the ranking is {'settled' if share >= SETTLED else 'not settled yet'}"


def _how_many(summary: dict[str, Any]) -> str:
    sizes = summary["sizes"]
    if sizes is None:
        return f"How many of them are enough cannot be said here: {summary['gaps']['sizes']}."
    size, scores = sizes["suggested"], sizes["checked"] or sizes["score"]
    if sizes["beats_guessing"] is False:
        best = _score_in_words(sizes, sizes["score"][sizes["size"].index(sizes["best"])])
        return f"No number of features predicts convincingly better than guessing: at best {best}."
    optimistic = not sizes["honest"] and sizes["checked"] is None
    caution = ", somewhat optimistic since the ranking has seen all rows" if optimistic else ""
    reached = f"{_score_in_words(sizes, scores[sizes['size'].index(size)])}{caution}"
    if summary["ranking"]["standing_out"] == 0:
        return f"With the first {count(size, 'feature')} {reached}."
    are, them = ("are", "them") if size > 1 else ("is", "it")
    return f"{count(size, 'feature')} {are} enough: with {them} {reached}."


def _score_in_words(sizes: dict[str, Any], score: float) -> str:
    guess = sizes["guess"]
    if sizes["measure"] == "accuracy" and guess is not None:
        guessing = f"{percent(guess)} by always guessing the most frequent class"
        return f"{percent(score)} of rows are predicted correctly, against {guessing}"
    if sizes["measure"] == "R²":
        return f"{percent(score)} of the target's variation is explained"
    return f"the score ({sizes['measure']}) is {score:.3g}"


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
    best, pairs = study["best"], study["pairs"]
    beaten = set()
    for first, second, difference, p in zip(
        pairs["first"], pairs["second"], pairs["difference"], pairs["p_holm"], strict=True
    ):
        if best in (first, second) and p is not None and p < CHANCE and (difference > 0) == (first == best):
            beaten.add(second if first == best else first)
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
