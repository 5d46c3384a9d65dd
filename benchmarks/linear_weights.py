"""Other ways to use the weights of a linear model in Tournament, and more tables to compare them on.

`changed` patches the classes that `Tournament` uses; `python -m benchmarks tournament --only weights` measures them.
"""

from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cached_property
from unittest.mock import patch

import numpy as np

from benchmarks import unseen

# The weights of the default are those of a ridge model, times the squared skill s of the model.
DEFAULT = {"model": "ridge", "classes": "norm", "c": 1.0, "power": 2, "rounds": "all", "penalty": 1.0}
VARIANTS = {
    "default": {},
    "no weights": {"c": 0.0},
    "1.5 s^2": {"c": 1.5},
    "2.5 s^2": {"c": 2.5},
    "s": {"power": 1},
    "0.5 on every table": {"c": 0.5, "power": 0},
    "s^2, not in the last order": {"rounds": "early"},
    "1.5 s^2, not in the last order": {"c": 1.5, "rounds": "early"},
    "s^2, only in the last order": {"rounds": "last"},
    "1.5 s^2, ten times the penalty": {"c": 1.5, "penalty": 10.0},
    "SVM, s^2": {"model": "svm"},
    "SVM, 1.5 s^2": {"model": "svm", "c": 1.5},
    "logistic, 1.5 s^2": {"model": "logistic", "c": 1.5},
    "leave-one-out margin, s^2": {"model": "margin"},
    "leave-one-out margin, 1.5 s^2": {"model": "margin", "c": 1.5},
    "largest class, 1.5 s^2": {"classes": "max", "c": 1.5},
    "classes standardized, 1.5 s^2": {"classes": "standardized", "c": 1.5},
    "s^2 / reliability of the coefficients": {"by_reliability": True},
    "s^2, and 0.5 s^2 root of F": {"alone": 0.5},
    "s^2, and s^2 root of F": {"alone": 1.0},
    "criterion: 3 to 1 for the better model": {"lean": 0.75},
    "criterion: the better model": {"lean": 1.0},
    "criterion: k-NN, linear, naive Bayes": {"bayes": True},
    "length of a round by features^0.35": {"by_features": 0.35},
    "length of a round by features^0.5": {"by_features": 0.5},
    "length of a round by features^0.5, 1.5 s^2": {"by_features": 0.5, "c": 1.5},
    "sparse: k-NN and linear": {"sparse": True},
    "probes up to 300": {"probe_size": 300},
}
ONLY_SPARSE = ("sparse: k-NN and linear", "probes up to 300")
MORE = ("lymphoma9", "msrcv1", "riboflavin2", "liver_toxicity2", "wheat2", "permeability2", "eyedata2", "nirsoil3")
MORE += ("vdv2", "coil20few")
TALL = ("isolet", "pcmac", "madelon", "coil20", "gisette", "reuters4", "mfeat")
TALL_VARIANTS = ("default", "no weights", "1.5 s^2", "2.5 s^2", "SVM, 1.5 s^2", "s^2 / reliability of the coefficients")
TALL_VARIANTS += ("classes standardized, 1.5 s^2",)


def load(name):
    """A table of `unseen`, or one made from a file: other labels, fewer rows, or a number cut at its quantiles."""

    def arrays(file):
        return np.load(unseen.FOLDER / f"{file}.npz", allow_pickle=False)

    if name == "lymphoma9":
        a = arrays("lymphoma")
        large = np.isin(a["y_multi"], np.flatnonzero(np.bincount(a["y_multi"]) >= 6))
        return a["X"][large].astype(np.float32), np.unique(a["y_multi"][large], return_inverse=True)[1]
    if name == "vdv2":
        return arrays("vdv")["X"].astype(np.float32), arrays("vdv")["event"].astype(int)
    if name == "gisette":
        return unseen.load("gisette_valid")
    if name == "coil20few":
        X, y = unseen.load("coil20")
        rows = np.concatenate([np.flatnonzero(y == label)[::7][:10] for label in np.unique(y)])
        return X[rows], y[rows]
    if name == "reuters4":
        a, (X, y) = arrays("reuters"), unseen.load("reuters")
        rows = np.isin(a["class_names"][a["y"]], ["crude", "grain", "money-fx", "ship"])
        X, y = X[rows], y[rows]
        return X[:, np.asarray((X > 0).sum(axis=0)).ravel() > 2], np.unique(y, return_inverse=True)[1]
    if name in MORE and name[-1] in "23":
        X, y = unseen.load(name[:-1])
        n_classes = int(name[-1])
        return X, np.searchsorted(np.quantile(y, np.arange(1, n_classes) / n_classes), y)
    return unseen.load(name)


@contextmanager
def changed(variant):
    """Patches under which a `Tournament` is fitted as the variant says."""
    from probewise import tournament
    from probewise.criteria import Average, Linear, NaiveBayes
    from probewise.engine import schedule

    v = {**DEFAULT, **VARIANTS[variant]}
    plain_model, plain_criterion, plain_sum = (
        tournament.linear_model,
        tournament.default_criterion,
        schedule.with_weights,
    )

    def model_of(data):
        model = plain_model(data) if v["c"] else None
        return (
            None
            if model is None
            else model_class(v)(model.X, model.columns, model.targets, model.row_weights, model.groups)
        )

    def criterion(n_rows, is_sparse=False, **options):
        if is_sparse and not v.get("sparse"):
            return Linear(**options)
        parts = plain_criterion(n_rows, **options).parts
        if v.get("bayes"):
            return Average((*parts, NaiveBayes()))
        return leaning(v["lean"])(parts) if "lean" in v else Average(parts)

    def combined(fitted, active, ledger, number, used):
        coefficients, errors = fitted.coefficients[active], fitted.std_errors[active]
        if not used:
            return coefficients
        total = plain_sum(coefficients, ledger, number)
        if not v.get("by_reliability"):
            return total
        known = ~np.isnan(coefficients)
        noise = np.mean(errors[known] ** 2) / max(coefficients[known].var(), 1e-300)
        return coefficients + (total - coefficients) / np.clip(1 - noise, 0.1, 1.0)

    def call(self, plan, ledger, n_probes):
        """`Schedule.__call__` with ``combined``."""
        if not isinstance(plan, schedule.TournamentPlan):
            return plan
        self._note_weights(plan, ledger)
        n_rounds = len(plan.rounds)
        if n_probes not in self.ends[n_rounds - 1 : n_rounds]:
            return plan
        so_far = ledger if n_probes == ledger.n_probes else ledger.until(n_probes)
        active, design = plan.rounds[-1].active, self._design(plan, so_far)
        fitted = schedule.Regression.of_design(design, schedule.RIDGE / design.unit, schedule.TOLERANCE)
        scores = combined(fitted, active, so_far, n_rounds - 1, v["rounds"] != "last")
        n_kept = schedule.sizes_of_rounds(plan.n_features, len(self.ends))[n_rounds]
        places = schedule.positions(scores)
        if n_kept > self.protected_above:
            places[np.isin(active, self.protected)] -= len(active)
        plan = plan.with_round(n_probes, active[places <= np.partition(places, n_kept - 1)[n_kept - 1]])
        self._note_weights(plan, ledger)
        return plan

    def fit(self, plan, ledger):
        """`Schedule.fit` with ``combined``."""
        design = self._design(plan, ledger)
        fitted = schedule.Regression.of_design(design, schedule.RIDGE / design.unit, schedule.TOLERANCE)
        coefficients = fitted.coefficients.copy()
        for number, part in enumerate(plan.rounds):
            coefficients[part.active] = combined(fitted, part.active, ledger, number, v["rounds"] != "early")
        return replace(fitted, coefficients=coefficients)

    def of_budget(n_units, n_probes, block_size):
        """Rounds whose lengths follow a power of their number of features, at least 0.3 of equal lengths."""
        n_blocks = n_probes // block_size
        n_rounds = min(len(schedule.sizes_of_rounds(n_units)) - 1, max(0, n_blocks // 2 - 1))
        lengths = np.array(schedule.sizes_of_rounds(n_units, n_rounds), float) ** v["by_features"]
        shares = np.maximum(lengths / lengths.sum(), 0.3 / (n_rounds + 1))
        ends = np.floor(np.cumsum(shares / shares.sum())[:-1] * n_blocks).astype(int)
        ends = np.maximum(ends, np.arange(1, n_rounds + 1))
        return schedule.Schedule(n_probes, tuple((block_size * ends).tolist()))

    with ExitStack() as stack:
        if "by_features" in v:
            stack.enter_context(patch.object(schedule.Schedule, "of_budget", staticmethod(of_budget)))
        for target, name, value in (
            (tournament, "linear_model", model_of),
            (tournament, "default_criterion", criterion),
            (tournament, "MAX_PROBE_SIZE", v.get("probe_size", tournament.MAX_PROBE_SIZE)),
            (schedule.Schedule, "__call__", call),
            (schedule.Schedule, "fit", fit),
        ):
            stack.enter_context(patch.object(target, name, value))
        yield


def model_class(v):
    from probewise.engine import schedule

    class Model(schedule.LinearModel):
        def __call__(self, active):
            chosen = self.columns.only(np.isin(np.arange(len(self.columns)), active))
            with schedule.one_blas_thread():
                weights = np.maximum.reduceat(column_weights(self, chosen.indices, v), chosen.offsets[:-1])
            total = v["c"] * self.skill ** v["power"] * standardized(weights)
            if v.get("alone"):
                alone = np.maximum.reduceat(self.roots_of_F[chosen.indices], chosen.offsets[:-1])
                total = total + v["alone"] * self.skill**2 * standardized(alone)
            return total

        @cached_property
        def skill(self):
            return float(np.sqrt(schedule.LinearModel.share.func(self)))

        @cached_property
        def roots_of_F(self):
            """The root of the F statistic of each column, up to a factor."""
            out, r = [], self.row_weights
            for part in self._centered(np.arange(self.X.shape[1])):
                total = r @ part**2
                between = sum((r * target @ part) ** 2 / (r @ target) for target in self.targets.T)
                out.append(np.sqrt(between / np.maximum(total - between, 1e-9 * total.max())))
            return np.concatenate(out)

    return Model


def standardized(values):
    return (values - values.mean()) / (values.std() or 1.0)


def column_weights(model, columns, v):
    """A number for each column that is large for columns that the linear model needs."""
    matrix, products = model._system(columns)
    penalties = v["penalty"] * (matrix[:-1, :-1] - products).diagonal()
    matrix[:-1, :-1] = products + np.diag(penalties)
    targets = model.targets if model.targets.shape[1] > 2 else model.targets[:, 1:]
    solve = {"svm": squared_hinge, "logistic": logistic}.get(v["model"], ridge)
    dual = np.array([solve(matrix, products, penalties, target) for target in targets.T]).T
    if v["model"] == "margin":
        return np.concatenate(list(margins(model, columns, matrix, dual)))
    weights = np.concatenate([np.abs(part.T @ dual) for part in model._centered(columns)])
    if v["classes"] == "max":
        return (weights / (weights.std(axis=0) + 1e-300)).max(axis=1)
    if v["classes"] == "standardized":
        return np.linalg.norm(weights / (np.sqrt((weights**2).mean(axis=0)) + 1e-300), axis=1)
    return np.linalg.norm(weights, axis=1)


def ridge(matrix, products, penalties, target):
    return np.linalg.solve(matrix, np.r_[target, 0])[:-1]


def squared_hinge(matrix, products, penalties, target):
    """Newton steps: ridge regression on the rows inside the margin, until these stay the same."""
    sign, inside, dual = 2 * target - 1, np.ones(len(target), bool), np.zeros(len(target))
    for _ in range(12):
        rows = np.r_[np.flatnonzero(inside), len(target)]
        solution = np.linalg.solve(matrix[np.ix_(rows, rows)], np.r_[sign[inside], 0])
        dual = np.zeros(len(target))
        dual[inside] = solution[:-1]
        now_inside = sign * (products @ dual + solution[-1]) < 1
        if (now_inside == inside).all() or not now_inside.any():
            break
        inside = now_inside
    return dual


def logistic(matrix, products, penalties, target):
    """Eight Newton steps of logistic regression."""
    matrix, values, solution = matrix.copy(), np.zeros(len(target)), None
    for _ in range(8):
        p = 1 / (1 + np.exp(-values))
        variance = np.maximum(p * (1 - p), 1e-4)
        matrix[:-1, :-1] = products + np.diag(penalties / variance / 4)
        solution = np.linalg.solve(matrix, np.r_[values + (target - p) / variance, 0])
        values = products @ solution[:-1] + solution[-1]
    return solution[:-1]


def margins(model, columns, matrix, dual):
    """Signed root of the increase of the leave-one-out squared error when a column is left out of the ridge model."""
    inverse = np.linalg.inv(matrix)[:-1, :-1]
    diagonal = inverse.diagonal().copy()
    before = model.row_weights @ ((dual / diagonal[:, None]) ** 2).sum(axis=1)
    for part in model._centered(columns):
        V, dots = inverse @ part, part.T @ dual
        rest = 1 - np.minimum((part * V).sum(axis=0), 1 - 1e-9)
        changed_diagonal = diagonal[:, None] + V**2 / rest
        errors = [(dual[:, [k]] + V * (dots[:, k] / rest)) / changed_diagonal for k in range(dual.shape[1])]
        increase = sum(model.row_weights @ error**2 for error in errors) - before
        yield np.sign(increase) * np.sqrt(np.abs(increase))


def leaning(share):
    """An average that gives ``share`` to the criterion with the larger mean J on 100 random subsets."""
    from probewise.criteria import Average
    from probewise.criteria.average import BoundAverage
    from probewise.engine.probes import Subsets

    class Leaning(Average):
        def bind(self, X, y, cv=3, **options):
            bound = super().bind(X, y, cv, **options)
            rng, n = np.random.default_rng(0), X.shape[1]
            sizes = rng.integers(1, max(2, min(100, int(0.3 * n))), 100)
            subsets = Subsets.of([np.sort(rng.choice(n, size, replace=False)) for size in sizes])
            shares = np.full(2, 1 - share)
            shares[np.argmax([part(subsets).mean() for part in bound.parts])] = share
            return BoundLeaning(bound.parts, bound.folds, shares)

    class BoundLeaning(BoundAverage):
        def __init__(self, parts, folds, shares):
            super().__init__(parts, folds)
            object.__setattr__(self, "shares", shares)

        def __call__(self, subsets):
            return sum(part(subsets) * share for part, share in zip(self.parts, self.shares, strict=True) if share)

    return Leaning


def score(variant, name, half, seed):
    """Accuracy of a variant, as in `unseen`; tables of up to 450 training rows have a third of the usual budget."""
    from probewise import Tournament

    def rank(X, y, random_state):
        n_probes = int(np.clip(12_000 * 150 // len(y), 2_000, 12_000))
        if len(y) <= 450:
            n_probes = max(2_000, n_probes // 3)
        with changed(variant):
            tournament = Tournament(random_state=random_state, n_probes=n_probes, n_jobs=1).fit(X, y)
        return np.argsort(tournament.ranking_, kind="stable")

    return unseen.scored(name, None, half, seed, rank=rank, table=load(name))


def cells(small=False, halves=unseen.HALVES, seeds=2):
    """Variant, table, half and seed of each result."""
    unseen.present(unseen.SETS)
    for seed in range(1 if small else seeds):
        for half in range(1 if small else halves):
            for name in unseen.SETS[:1] if small else (*unseen.SETS, *MORE):
                yield from ((variant, name, half, seed) for variant in VARIANTS if variant not in ONLY_SPARSE)
            if small or seed or half == 2:
                continue
            for name in TALL:
                is_sparse = name in ("pcmac", "reuters4")
                yield from (
                    (variant, name, half, seed)
                    for variant in VARIANTS
                    if variant in TALL_VARIANTS or (is_sparse and variant in ONLY_SPARSE)
                )
