"""Liang, Yang, Winstanley 2008: what the paper remarks beside its tables, and what comes of it when it is counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from probewise.filters.cfs import CFS
from probewise.filters.fcbf import FCBF
from probewise.filters.fsdd import FSDD
from probewise.study import corrected_t_test

from ..base import Claim, Place, listed
from .data import METHODS, Bench, classifiers, selectors

Floats = NDArray[np.float64]
Order = NDArray[np.int64]
BY_DEFINITION, SCALES, VALUES = "Section 2.1", "Section 2.1, scales", "Section 3.2"
CLASS_SIZES, EQUAL_SHARES, STOPS = "Section 4, class sizes", "Section 4, shares of classes", "Section 4, where to stop"
LIKENESS, FEW_ROWS = "Section 3.5, likeness of features", "Section 3.5, few instances"
LARGE = ("Mfeat", "Satimage", "Spambase")  # thousands of instances
STOPPING = {"CFS": CFS(), "FCBF": FCBF()}  # methods that say how many features are enough
FEW_VALUES, FIRST, FEW = 10, 10, 200
REPEATS, DRAWS, CONVINCING = 10, 40, 0.05
PLAIN = ("KNN", "NB")


def remarks(bench: Bench, X: Floats, y: NDArray[Any], seed: int) -> dict[Place, float]:
    """Numbers for the remarks, on one data set."""
    name, variances = bench.name, np.sort(X.var(axis=0))[::-1]
    found: dict[Place, float] = {
        (SCALES, name, "share of the widest tenth"): float(
            variances[: -(-len(variances) // 10)].sum() / variances.sum()
        ),
        (VALUES, name, f"features of at most {FEW_VALUES} values"): sum(len(np.unique(c)) <= FEW_VALUES for c in X.T),
    }
    found |= {(BY_DEFINITION, name, what): value for what, value in from_pairs(X, y).items()}
    found |= {(LIKENESS, name, method): value for method, value in likeness(name, X, y, seed).items()}
    found |= {(STOPS, name, what): value for what, value in stops(bench, X, y, seed).items()}
    if name == "Spectrometer":
        counts = np.unique(y, return_counts=True)[1]
        found |= {(CLASS_SIZES, name, f"class {k}"): int(count) for k, count in enumerate(counts, start=1)}
        found |= {(EQUAL_SHARES, name, what): value for what, value in with_equal_shares(bench, X, y, seed).items()}
    if name in LARGE:
        found |= {(FEW_ROWS, name, what): value for what, value in on_few_rows(name, X, y, seed).items()}
    return found


# ---- what is counted


def from_pairs(X: Floats, y: NDArray[Any]) -> dict[str, float]:
    """Largest differences of a feature between equations and definitions 1 to 3, from all pairs of rows and means."""
    fitted = FSDD().fit(X, y)
    between, within = np.full((2, X.shape[1]), np.nan)
    shares = np.unique(y, return_counts=True)[1] / len(y)
    for k in np.flatnonzero(fitted.variances_ > 0):
        z = X[:, k, None] / X[:, k].std()
        classes = [z[y == label] for label in fitted.classes_]
        centres = np.array([c.mean() for c in classes])
        within[k] = sum(share * pdist(c, "sqeuclidean").mean() for share, c in zip(shares, classes, strict=True))
        between[k] = 0.5 * shares @ (centres[:, None] - centres) ** 2 @ shares
    said = {
        "lemma 1 and eq. 4": within - 2 * fitted.within_ / fitted.variances_,
        "eq. 5": between - fitted.between_ / fitted.variances_,
        "eq. 2": between - 2 * within - fitted.scores_,
        "eq. 2 with twice the beta": between - 2 * within - FSDD(beta=4).fit(X, y).scores_,
    }
    return {what: float(np.nanmax(np.abs(apart))) for what, apart in said.items()}


def likeness(name: str, X: Floats, y: NDArray[Any], seed: int) -> dict[str, float]:
    """Mean absolute correlation between the first features of each method, and of all features."""
    varied = np.flatnonzero(X.std(axis=0) > 0)
    size, found = min(FIRST, len(varied) // 2), {"all": mean_correlation(X[:, varied])}
    for method, selector in selectors(name).items():
        draws = range(seed, seed + REPEATS) if method == "ReliefF" else (None,)
        firsts = [first_of(selector if d is None else selector.set_params(random_state=d), X, y, size) for d in draws]
        found[method] = float(np.mean([mean_correlation(X[:, columns]) for columns in firsts]))
    return found


def mean_correlation(X: Floats) -> float:
    return float(np.abs(np.asarray(np.corrcoef(X.T))[np.triu_indices(X.shape[1], 1)]).mean())


def first_of(selector: Any, X: Floats, y: NDArray[Any], size: int) -> Order:
    return np.argsort(clone(selector).set_params(n_features_to_select=size).fit(X, y).ranking_)[:size]


def stops(bench: Bench, X: Floats, y: NDArray[Any], seed: int) -> dict[str, float]:
    """How many features methods with a stop criterion take, how accurate these are, and the best of other numbers.

    One cross-validation, features ranked in its training folds: those taken in their order, then the others.
    """
    found: dict[str, float] = {}
    sizes = [size for size in bench.sizes if size == 1 or not bench.is_figure or size % 5 == 0]
    for method, selector in STOPPING.items():
        taken, right = [], np.zeros((len(PLAIN), len(sizes) + 1))
        for train, test in StratifiedKFold(bench.folds, shuffle=True, random_state=seed).split(X, y):
            fitted = clone(selector).fit(X[train], y[train])
            order, own = np.argsort(fitted.ranking_), int(fitted.support_.sum())
            right += rightly(X, y, train, test, order, [own, *sizes], PLAIN)
            taken.append(own)
        at_stop, *others = 100 * right.mean(axis=0) / len(y)
        best = int(np.argmax(others))
        found |= {f"{method}, features": float(np.mean(taken)), f"{method}, accuracy": at_stop}
        found |= {f"{method}, best number": sizes[best], f"{method}, best accuracy": others[best]}
    return found


def rightly(
    X: Floats, y: NDArray[Any], train: Order, test: Order, order: Order, sizes: Sequence[int], judges: Sequence[str]
) -> Floats:
    """Test rows classified rightly by each classifier with the first features, of each number."""
    found, models = np.zeros((len(judges), len(sizes))), classifiers()
    for row, judge in enumerate(judges):
        model = models[judge].set_params(random_state=0) if judge == "DT" else models[judge]
        for column, size in enumerate(sizes):
            here = X[:, order[:size]]
            found[row, column] = np.sum(clone(model).fit(here[train], y[train]).predict(here[test]) == y[test])
    return found


def with_equal_shares(bench: Bench, X: Floats, y: NDArray[Any], seed: int) -> dict[str, float]:
    """By classifier, points that FSDD gains by the classes' shares over equal shares, and the p-value of that."""
    judges, sizes = tuple(classifiers()), [size for size in bench.sizes if size < X.shape[1]]
    gains = []
    for repetition in range(REPEATS):
        for train, test in StratifiedKFold(bench.folds, shuffle=True, random_state=seed + repetition).split(X, y):
            orders = (np.argsort(FSDD().fit(X[train], y[train]).ranking_), order_by_equal_shares(X[train], y[train]))
            own, equal = (rightly(X, y, train, test, order, sizes, judges).mean(axis=1) for order in orders)
            gains.append(100 * (own - equal) / len(test))
    return _tested(dict(zip(judges, np.transpose(gains), strict=True)), 1 / (bench.folds - 1))


def order_by_equal_shares(X: Floats, y: NDArray[Any], beta: float = 2.0) -> Order:
    """Eq. 2 with 1 / c in the place of every class's share."""
    classes = [X[y == label] for label in np.unique(y)]
    between, within = (
        np.var([c.mean(axis=0) for c in classes], axis=0),
        np.mean([c.var(axis=0, ddof=1) for c in classes], axis=0),
    )
    whole = X.var(axis=0)
    scores = np.divide(between - beta * within, whole, out=np.full(len(whole), -np.inf), where=whole > 0)
    return np.argsort(-scores, kind="stable")


def on_few_rows(name: str, X: Floats, y: NDArray[Any], seed: int) -> dict[str, float]:
    """FSDD's lead over mRMR-MID with ten features selected on all training rows, and on few; what it grows by."""
    leads: dict[str, list[float]] = {"all rows": [], f"{FEW} rows": []}
    for repetition in range(DRAWS):
        random = np.random.RandomState([seed, repetition])
        train, test = next(StratifiedKFold(2, shuffle=True, random_state=random).split(X, y))
        few = next(
            StratifiedKFold(max(2, len(train) // FEW), shuffle=True, random_state=random).split(train, y[train])
        )[1]
        for rows, which in zip((train, train[few]), leads, strict=True):
            orders = [first_of(selectors(name)[method], X[rows], y[rows], FIRST) for method in METHODS[:2]]
            fsdd, mrmr = (rightly(X, y, train, test, order, [FIRST], PLAIN).mean() for order in orders)
            leads[which].append(100 * (fsdd - mrmr) / len(test))
    whole, few_rows = map(np.array, leads.values())
    return _tested({**{which: np.array(values) for which, values in leads.items()}, "growth": few_rows - whole}, 1.0)


def _tested(found: Mapping[str, Floats], test_to_train: float) -> dict[str, float]:
    """Means, and their p-values by the corrected resampled t-test."""
    means = {what: float(values.mean()) for what, values in found.items()}
    return means | {f"{what}, p": corrected_t_test(values, test_to_train)[1] for what, values in found.items()}


# ---- what the paper says of it


def remark_claims(ours: Mapping[Place, float]) -> list[Claim]:
    """Claims about the counted numbers."""
    judged: dict[str, Callable[[dict[str, dict[str, float]]], list[Claim]]] = {
        BY_DEFINITION: _by_definition,
        SCALES: _scales,
        VALUES: _values,
        LIKENESS: _likeness,
        FEW_ROWS: _few_rows,
        CLASS_SIZES: _class_sizes,
        EQUAL_SHARES: _shares,
        STOPS: _stops,
    }
    found: dict[str, dict[str, dict[str, float]]] = {where: {} for where in judged}
    for (where, name, what), value in ours.items():
        if where in judged:
            found[where].setdefault(name, {})[what] = value
    return [claim for where, judge in judged.items() if found[where] for claim in judge(found[where])]


def _by_definition(found: dict[str, dict[str, float]]) -> list[Claim]:
    def furthest(*what: str) -> dict[str, float]:
        return {name: max(values[each] for each in what) for name, values in found.items()}

    proved, stated, doubled = (
        furthest("lemma 1 and eq. 4", "eq. 5"),
        furthest("eq. 2"),
        furthest("eq. 2 with twice the beta"),
    )
    evidence = "largest difference of a feature; all pairs of rows and of class means"
    return [
        Claim(
            "Lemma 1 and eq. 4 and 5: the distances of definitions 1 to 3 are ratios of variances",
            max(proved.values()) < 1e-9,
            listed(proved, ".0e"),
            "section 2.1",
            evidence,
        ),
        Claim(
            "Eq. 2 is what eq. 1 becomes by definitions 1 to 3",
            max(stated.values()) < 1e-9,
            f"beta 2: {listed(stated, '.2g')}; with beta 4 in eq. 2 and 2 in eq. 1: {listed(doubled, '.0e')}",
            "section 2.1, proof",
            evidence,
        ),
    ]


def _scales(found: dict[str, dict[str, float]]) -> list[Claim]:
    share = {name: 100 * values["share of the widest tenth"] for name, values in found.items()}
    text = "Scales differ greatly, and features of large values decide the Euclidean distance (here: a tenth of the "
    text += "features make more than half of its square, on most sets)"
    holds = sum(value > 50 for value in share.values()) > len(share) / 2
    return [Claim(text, holds, f"per cent: {listed(share, '.0f')}", "section 2.1", "variances of all rows")]


def _values(found: dict[str, dict[str, float]]) -> list[Claim]:
    counts = {name: next(iter(values.values())) for name, values in found.items()}
    text = f"All feature values are continuous data (here: no feature has {FEW_VALUES} values or fewer)"
    return [Claim(text, not any(counts.values()), f"features: {listed(counts, 'g')}", "section 3.2", "all rows")]


def _likeness(found: dict[str, dict[str, float]]) -> list[Claim]:
    words = "; ".join(f"{name} {listed(values, '.2f')}" for name, values in found.items())
    there = [name for name in LARGE if name in found]
    text = "ReliefF suffers from features that go together, on Mfeat, Satimage and Spambase (here: its first "
    text += f"{FIRST} are more alike there than FSDD's)"
    holds = all(found[name]["ReliefF"] > found[name]["FSDD"] for name in there)
    evidence = f"mean absolute correlation of the first {FIRST}, of half where there are fewer; ReliefF {REPEATS} times"
    return [Claim(text, holds, words, "section 3.5", evidence)] if there else []


def _few_rows(found: dict[str, dict[str, float]]) -> list[Claim]:
    grows = [_is_above(values, "growth") for values in found.values()]
    text = "With a few hundred instances mutual information is unreliable, and mRMR-MID prefers bad features (here: "
    text += f"FSDD's lead grows if both select on {FEW} rows)"
    words = "FSDD's lead, points: " + "; ".join(f"{name} {_told(values)}" for name, values in found.items())
    evidence = (
        f"{FIRST} features, 1-NN and naive Bayes, {DRAWS} halves of the rows to train on; decided by p < {CONVINCING}"
    )
    return [Claim(text, _all(grows), words, "section 3.5", evidence)]


def _told(values: dict[str, float]) -> str:
    return ", ".join(f"{k} {v:+.2f} (p = {values[f'{k}, p']:.2g})" for k, v in values.items() if f"{k}, p" in values)


def _class_sizes(found: dict[str, dict[str, float]]) -> list[Claim]:
    sizes = [int(value) for value in found["Spectrometer"].values()]
    words = "samples of each class: " + ", ".join(map(str, sizes))
    text = "Spectrometer: some classes have fewer than 10 instances, so that it is tested by two folds"
    return [Claim(text, min(sizes) < 10, words, "section 3.2", "labels; the paper counts them in section 4")]


def _shares(found: dict[str, dict[str, float]]) -> list[Claim]:
    values = found["Spectrometer"]
    text = "Spectrometer: the classes' shares in d_b and d_w make up for their being unbalanced (here: equal shares do "
    words = f"points gained over equal shares: {_told(values)}"
    evidence = f"mean over sizes, {REPEATS} repetitions; decided by p < {CONVINCING}"
    holds = _all([_is_above(values, each) for each in classifiers()])
    return [Claim(text + "worse)", holds, words, "section 4", evidence)]


def _stops(found: dict[str, dict[str, float]]) -> list[Claim]:
    claims = []
    for method in STOPPING:
        behind, words = {}, []
        for name, values in found.items():
            number, at, other, best = (
                values[f"{method}, {what}"] for what in ("features", "accuracy", "best number", "best accuracy")
            )
            behind[name] = best - at
            words.append(f"{name} {number:.0f} features {at:.1f}, best {best:.1f} with {other:.0f}")
        text = f"Methods with a stop criterion do not always stop at the highest accuracy (here: {method}, by a point)"
        evidence = "one cross-validation, 1-NN and naive Bayes; the best of many numbers flatters"
        claims.append(Claim(text, max(behind.values()) > 1, "; ".join(words), "section 4", evidence))
    return claims


def _is_above(values: Mapping[str, float], what: str) -> bool | None:
    """None if it may be chance."""
    return values[what] > 0 if values[f"{what}, p"] < CONVINCING else None


def _all(verdicts: Sequence[bool | None]) -> bool | None:
    return False if False in verdicts else None if None in verdicts else True
