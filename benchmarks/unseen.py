"""Accuracy, R^2 or concordance of the best 5, 10, 20 and 50 features of each method on held-out rows.

For each data set (.npz files in the folder PROBEWISE_DATA) and each stratified half: columns are standardized by the
half, a method ranks the features on it, and a linear SVM, 1-NN and a random forest, trained on the same rows with the
best d features, are scored on the other half; for a numeric target ridge, 5-NN and a forest, each R^2 at least -0.5;
for survival times a Cox model with a ridge penalty, by the concordance index. Methods for numbers get the martingale
residuals of survival times.
Results are stored in benchmarks/unseen.jsonl and not computed again. `--only lassonet` repeats the comparison published
for LassoNet with our methods instead.
"""

import contextlib
import io
import json
import os
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed

from benchmarks.measure import print_table
from probewise.evaluation.survival import Cox, concordance
from probewise.validation.survival import Survival

SIZES = (5, 10, 20, 50)
SETS = ("colon", "leukemia", "lymphoma", "prostate_ge", "tox_171", "arcene", "khan", "gravier", "warpar10p")
TALLER = ("isolet", "pcmac", "madelon")  # 780 to 1,300 rows to rank on: RFE takes minutes per half
NUMBERS = (
    *("riboflavin", "wheat", "gasoline", "nirsoil", "cookie", "liver_toxicity", "permeability", "pac", "eyedata"),
    "meatspec",
)
SURVIVAL = ("vdv", "nki70", "tcga_ovarian")
HALVES, SURVIVAL_HALVES = 3, 5
SEEDS = 3  # for random methods: with one seed the mean over sets varies by half a point
RANDOM_METHODS = ("Tournament", "DAF", "random forest importance", "Boruta")
# Lemhadri et al. 2021, table 2: accuracy (%) of LassoNet, HSIC lasso and the Fisher score, and of all features.
PUBLISHED = {"isolet": (89.1, 88.8, 81.8, 95.1), "coil20": (99.3, 99.3, 99.6, 99.6)}
FOLDER = Path(os.environ.get("PROBEWISE_DATA", Path(__file__).parents[2] / "shared" / "data"))
STORED = Path(__file__).with_suffix(".jsonl")


def ours(make):
    return lambda X, y, half: np.argsort(make(half).fit(X, y).ranking_, kind="stable")


def by_scores(scores):
    return np.argsort(-np.nan_to_num(scores, nan=-np.inf), kind="stable")


def f_test(X, y, half):
    from sklearn.feature_selection import f_classif

    return by_scores(f_classif(X, y)[0])


def rfe(X, y, half):
    """Recursive elimination: a tenth of the features at a time down to 200, then one by one."""
    from sklearn.feature_selection import RFE
    from sklearn.svm import LinearSVC

    few = np.arange(X.shape[1])
    if len(few) > 200:
        few = np.flatnonzero(RFE(LinearSVC(dual="auto"), n_features_to_select=200, step=0.1).fit(X, y).support_)
    ranking = RFE(LinearSVC(dual="auto"), n_features_to_select=1).fit(X[:, few], y).ranking_
    return few[np.argsort(ranking, kind="stable")]


def forest(X, y, half):
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    kind = RandomForestRegressor if is_numeric(y) else RandomForestClassifier
    return by_scores(kind(500, random_state=half).fit(X, y).feature_importances_)


def lightgbm(X, y, half):
    from lightgbm import LGBMClassifier, LGBMRegressor

    kind = LGBMRegressor if is_numeric(y) else LGBMClassifier
    model = kind(min_child_samples=5, random_state=half, importance_type="gain", verbose=-1, n_jobs=1)
    return by_scores(model.fit(X, y).feature_importances_.astype(float))


def is_numeric(y):
    return y.dtype.kind == "f"


def targets_of(y):
    """The number, or 1 and -1 for each class; one column for two classes."""
    return (
        [y - y.mean()]
        if is_numeric(y)
        else [np.where(y == c, 1.0, -1.0) for c in range(int(y.max() == 1), y.max() + 1)]
    )


def correlation(X, y, half):
    return by_scores(np.abs((X - X.mean(axis=0)).T @ (y - y.mean())) / (X.std(axis=0) + 1e-12))


def by_entry(X, y, fits):
    """Rank by how many models of a path, weak penalties last, contain a feature in any target; ties by |weight|."""
    n_entered = np.zeros(X.shape[1])
    for target in targets_of(y):
        paths = np.abs([np.ravel(weights) for weights in fits(np.asarray(X, np.float64, order="F"), target)])
        n_entered = np.maximum(n_entered, (paths > 0).sum(axis=0) + 0.5 * paths[-1] / (paths[-1].max() + 1e-9))
    return by_scores(n_entered)


def elastic_net(X, y, half):
    from sklearn.linear_model import enet_path

    return by_entry(X, y, lambda X, t: enet_path(X, t - t.mean(), l1_ratio=0.5, alphas=30, max_iter=2000)[1].T)


def mcp(X, y, half):
    """Minimax concave penalty, least squares."""
    from skglm import MCPRegression

    def fits(X, target):
        largest = np.abs(X.T @ (target - target.mean())).max() / len(target)
        for alpha in largest * np.logspace(-0.05, -1.5, 12):
            yield MCPRegression(alpha, max_iter=20).fit(X, target).coef_

    return by_entry(X, y, lambda X, target: list(fits(X, target)))


def abess(X, y, half):
    """Best subsets of 5, 10, 20 and 50 features, least squares; it refuses constant columns."""
    from abess import LinearRegression

    varied = np.flatnonzero(X.std(axis=0) > 0)
    fits = lambda X, t: [LinearRegression(support_size=k).fit(X, t).coef_ for k in SIZES]  # noqa: E731
    return varied[by_entry(X[:, varied], y, fits)]


def hsic_lasso(X, y, half):
    from pyHSICLasso import HSICLasso

    model = HSICLasso()
    with contextlib.redirect_stdout(io.StringIO()):
        model.input(np.asarray(X, np.float64), y.astype(float))
        (model.regression if is_numeric(y) else model.classification)(50, B=0, n_jobs=1)
    first = np.array(model.get_index())
    return np.r_[first, np.setdiff1d(np.arange(X.shape[1]), first)]


def stability_paths(X, y, half):
    """IPSS: expected false positives of each feature, for two classes or numbers."""
    from ipss import ipss

    expected = np.full(X.shape[1], np.inf)
    for target in targets_of(y):
        with contextlib.redirect_stdout(io.StringIO()):
            scores = ipss(np.asarray(X, np.float64), target)["efp_scores"]
        found = np.array(list(scores), dtype=int)
        expected[found] = np.minimum(expected[found], list(scores.values()))
    return np.lexsort((correlation(X, y, half).argsort(), expected))


def coxnet(X, y, half):
    """Path of Cox models with an elastic net penalty."""
    from sksurv.linear_model import CoxnetSurvivalAnalysis

    varied = np.flatnonzero(X.std(axis=0) > 0)
    path = CoxnetSurvivalAnalysis(l1_ratio=0.5, n_alphas=30, alpha_min_ratio=0.05).fit(X[:, varied], y).coef_
    entered = (path != 0).sum(axis=1) + 0.5 * np.abs(path[:, -1]) / (np.abs(path[:, -1]).max() + 1e-9)
    return varied[by_scores(entered)]


def vip(X, y, half):
    """Variable importance in projection of partial least squares; the number of components is cross-validated."""
    from sklearn.cross_decomposition import PLSRegression
    from sklearn.model_selection import cross_val_score

    sizes = range(1, min(10, len(y) // 3) + 1)
    model = PLSRegression(max(sizes, key=lambda k: cross_val_score(PLSRegression(k), X, y, cv=5).mean())).fit(X, y)
    explained = (model.x_scores_**2).sum(axis=0) * (model.y_loadings_**2).sum(axis=0)
    return by_scores((model.x_weights_ / np.linalg.norm(model.x_weights_, axis=0)) ** 2 @ explained)


def l1_path(X, y, half):
    """Rank features by how early they enter along a path of L1 penalties."""
    from sklearn.linear_model import LogisticRegression

    n_entered = np.zeros(X.shape[1])
    for C in np.logspace(-2, 1.5, 12):
        solver = {"solver": "liblinear"} if y.max() == 1 else {"solver": "saga", "max_iter": 60}
        weights = np.abs(LogisticRegression(penalty="l1", C=C, **solver).fit(X, y).coef_).max(axis=0)
        n_entered += weights > 0
    return by_scores(n_entered + 1e-3 * weights / (weights.max() + 1e-9))


def boruta(X, y, half):
    """Rank by how often a feature is more important to a forest than all shuffled copies, then by importance."""
    from sklearn.ensemble import RandomForestClassifier

    rng, n_features = np.random.default_rng(half), X.shape[1]
    wins, importance = np.zeros(n_features), np.zeros(n_features)
    for turn in range(20):
        both = np.hstack([X, rng.permuted(X, axis=0)])
        model = RandomForestClassifier(100, max_depth=5, random_state=1000 * half + turn).fit(both, y)
        wins += model.feature_importances_[:n_features] > model.feature_importances_[n_features:].max()
        importance += model.feature_importances_[:n_features]
    return by_scores(wins + importance / (importance.max() + 1e-9) / 2)


def mrmrs(X, y, half):
    import mrmrs
    import polars

    frame = polars.DataFrame(X, schema=[str(column) for column in range(X.shape[1])])
    selected = mrmrs.mrmr(frame, polars.Series("target", y), 50, "classification")
    return np.array([int(feature.name) for feature in selected])


def fast_select(X, y, half):
    from fast_select import ReliefF

    return by_scores(ReliefF(n_features_to_select=10, n_neighbors=10, backend="cpu").fit(X, y).feature_importances_)


def methods():
    from probewise import BIF, CMIM, DAF, DFE, EFS, FCBF, FSDD, JMI, MRMR, ReliefF, Tournament
    from probewise.stopping import MaxProbes

    return {
        "Tournament": ours(lambda half: Tournament(random_state=half)),
        "EFS": ours(lambda half: EFS(50)),
        "EFS with greedy cut points": ours(lambda half: EFS(50, discretization="greedy")),
        "MRMR": ours(lambda half: MRMR(50)),
        "JMI": ours(lambda half: JMI(50)),
        "CMIM": ours(lambda half: CMIM(50)),
        "FCBF": ours(lambda half: FCBF()),
        "FSDD": ours(lambda half: FSDD()),
        "FSDD with overlap": ours(lambda half: FSDD(overlap=True)),
        "ReliefF": ours(lambda half: ReliefF()),
        "DFE": ours(lambda half: DFE()),
        "BIF": ours(lambda half: BIF()),
        "DAF": ours(lambda half: DAF(stop=MaxProbes(12_000), random_state=half)),
        "RFE with a linear SVM": rfe,
        "LightGBM gain": lightgbm,
        "random forest importance": forest,
        "L1 path": l1_path,
        "Boruta": boruta,
        "mrmrs MRMR": mrmrs,
        "fast-select ReliefF": fast_select,
        "F test": f_test,
        **PEERS,
    }


PEERS = {
    "elastic net": elastic_net,
    "MCP (skglm)": mcp,
    "abess": abess,
    "HSIC lasso": hsic_lasso,
    "IPSS": stability_paths,
    "correlation": correlation,
    "univariate Cox": correlation,  # the covariance with martingale residuals is the score test
    "variance": None,
    "Coxnet": coxnet,
    "PLS-VIP": vip,
}
# IPSS takes minutes on ten classes; the others are for numbers or survival times.
NOT_FOR_CLASSES = ("correlation", "PLS-VIP", "IPSS", "univariate Cox", "variance", "Coxnet")
FOR_SURVIVAL = (
    *("Tournament", "univariate Cox", "variance", "Coxnet", "elastic net", "random forest importance"),
    "LightGBM gain",
)
FOR_NUMBERS = (
    *("Tournament", "ReliefF", "random forest importance", "LightGBM gain", "elastic net", "MCP (skglm)", "abess"),
    *("HSIC lasso", "IPSS", "correlation", "PLS-VIP"),
)


def load(name):
    with np.load(FOLDER / f"{name}.npz", allow_pickle=False) as arrays:
        if "time" in arrays:
            y = Survival(arrays["event"].astype(bool), arrays["time"]).array
            return arrays["X"].astype(np.float32), y
        y = arrays["y"] if is_numeric(arrays["y"]) else np.unique(arrays["y"], return_inverse=True)[1]
        if "indptr" in arrays.files:
            parts = arrays["data"].astype(np.float32), arrays["indices"], arrays["indptr"]
            return sp.csr_matrix(parts, shape=tuple(arrays["shape"])), y
        return arrays["X"].astype(np.float32), y


def scored(name, method, half, seed=0, rank=None, table=None):
    """Seconds to rank by a method or a function, and the mean accuracy of the three classifiers at each size."""
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
    from sklearn.linear_model import RidgeCV
    from sklearn.model_selection import train_test_split
    from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
    from sklearn.preprocessing import MaxAbsScaler, StandardScaler
    from sklearn.svm import LinearSVC

    warnings.filterwarnings("ignore")
    X, y = load(name) if table is None else table
    is_survival = y.dtype.names is not None
    strata = y["event"] if is_survival else None if is_numeric(y) else y
    training, held_out = train_test_split(np.arange(len(y)), test_size=0.5, stratify=strata, random_state=100 + half)
    scaler = (MaxAbsScaler() if sp.issparse(X) else StandardScaler()).fit(X[training])
    train, test = (scaler.transform(X[rows]).astype(np.float32) for rows in (training, held_out))
    started = time.perf_counter()
    target = y[training]
    if is_survival and method not in ("Tournament", "Coxnet"):
        target = Survival.of(target).residuals()
    rank = rank or methods()[method]
    order = by_scores(scaler.var_) if method == "variance" else rank(train, target, 1000 * seed + half)
    result = {"set": name, "method": method, "half": half, "seed": seed, "seconds": time.perf_counter() - started}
    for size in SIZES:
        first = order[:size]
        if is_survival:
            model = Cox.fit(train[:, first].astype(float), Survival.of(y[training]))
            result[str(size)] = concordance(Survival.of(y[held_out]), model.risk(test[:, first].astype(float)))
            continue
        models = LinearSVC(dual="auto"), KNeighborsClassifier(1), RandomForestClassifier(100, random_state=0)
        if is_numeric(y):
            forest = RandomForestRegressor(100, random_state=0)
            models = RidgeCV(np.logspace(-2, 3, 11)), KNeighborsRegressor(5), forest
        scores = [each.fit(train[:, first], y[training]).score(test[:, first], y[held_out]) for each in models]
        result[str(size)] = float(np.mean(np.maximum(scores, -0.5)))
    return result


def kind_of(name):
    return "numbers" if name in NUMBERS else "survival" if name in SURVIVAL else "classes"


def present(sets):
    """The data sets that exist in the folder; exits if there are none."""
    if not any((FOLDER / f"{name}.npz").exists() for name in SETS):
        raise SystemExit(f"no data set in {FOLDER}: set PROBEWISE_DATA to the folder of .npz files")
    return [name for name in sets if (FOLDER / f"{name}.npz").exists()]


def lassonet(names, n_splits, jobs):
    """Accuracy of 50 extra trees on the best 50 features: 70% of the rows to rank and train, 20% to test."""
    for name in present(PUBLISHED):
        X, y = load(name)
        results = Parallel(n_jobs=jobs)(delayed(trees)(X, y, names, split) for split in range(n_splits))
        rows = [
            (method, f"{values.mean():.1f} ± {values.std(ddof=1) / np.sqrt(n_splits):.1f}")
            for method, values in zip([*names, "all features"], 100 * np.array(results).T, strict=True)
        ]
        published = zip(("LassoNet", "HSIC lasso", "Fisher score", "all features"), PUBLISHED[name], strict=True)
        rows += [(f"{method}, published", f"{value:.1f}") for method, value in published]
        print_table(f"{name}, {X.shape[0]} x {X.shape[1]}, {n_splits} splits", ["method", "accuracy (%)"], rows)


def trees(X, y, names, split):
    from sklearn.ensemble import ExtraTreesClassifier
    from sklearn.model_selection import train_test_split

    rest, test = train_test_split(np.arange(len(y)), test_size=0.2, stratify=y, random_state=split)
    train = train_test_split(rest, test_size=1 / 8, stratify=y[rest], random_state=split)[0]
    columns = [methods()[name](X[train], y[train], split)[:50] for name in names] + [np.arange(X.shape[1])]
    model = ExtraTreesClassifier(50, random_state=split)
    return [model.fit(X[np.ix_(train, few)], y[train]).score(X[np.ix_(test, few)], y[test]) for few in columns]


def main(only=None, small=False, jobs=2, **_):
    if only == "lassonet":
        lassonet(("Tournament", "FCBF", "random forest importance", "F test"), 2 if small else 3, jobs)
        return
    names = only.split(",") if only else [name for name in methods() if name not in NOT_FOR_CLASSES]
    halves = range(2 if small else HALVES)
    for sets, n_seeds in ((SETS[:3], 1),) if small else ((SETS, SEEDS), (TALLER, 1)):
        measure(present(sets), names, halves, n_seeds, small, jobs)
    names = [name for name in FOR_SURVIVAL if not only or name in only.split(",")]
    measure(present(SURVIVAL), names, range(2 if small else SURVIVAL_HALVES), 1 if small else SEEDS, small, jobs)
    names = [name for name in FOR_NUMBERS if not only or name in only.split(",")]
    measure(present(NUMBERS[:2] if small else NUMBERS), names, halves, 1 if small else SEEDS, small, jobs)


def seeds_of(method, n_seeds):
    return range(n_seeds if method in RANDOM_METHODS else 1)


def measure(sets, names, halves, n_seeds, small, jobs):
    """Compute the results that are not stored yet, and print the tables."""
    stored = {}
    if STORED.exists() and not small:
        for line in STORED.read_text().splitlines():
            result = json.loads(line)
            stored[result["set"], result["method"], result["half"], result.get("seed", 0)] = result
    todo = [(s, m, h, k) for s in sets for m in names for h in halves for k in seeds_of(m, n_seeds)]
    todo = [cell for cell in todo if cell not in stored]
    for result in Parallel(n_jobs=jobs, return_as="generator")(delayed(scored)(*cell) for cell in todo):
        stored[result["set"], result["method"], result["half"], result["seed"]] = result
        if not small:
            with STORED.open("a") as file:
                file.write(json.dumps(result) + "\n")
    show(stored, sets, names, halves, n_seeds)


def show(stored, sets, names, halves, n_seeds):
    """Print means over sets, the largest deficit to the best method, and differences to the first method."""
    cells = {(m, s, h): [stored[s, m, h, k] for k in seeds_of(m, n_seeds)] for m in names for s in sets for h in halves}
    accuracy = np.array(
        [
            [[[np.mean([result[str(d)] for result in cells[m, s, h]]) for d in SIZES] for h in halves] for s in sets]
            for m in names
        ]
    ).mean(axis=2)
    at_20 = 100 * accuracy[:, :, SIZES.index(20)]
    behind, difference = (at_20 - at_20.max(axis=0)).min(axis=1), at_20 - at_20[0]
    error = difference.std(axis=1, ddof=1) / np.sqrt(len(sets)) if len(sets) > 1 else np.full(len(names), np.nan)
    seconds = [
        np.mean([min(result["seconds"] for result in cells[m, s, h]) for s in sets for h in halves]) for m in names
    ]
    rows = [
        [
            names[k],
            *(f"{100 * value:.1f}" for value in accuracy[k].mean(axis=0)),
            f"{behind[k]:.1f}",
            f"{difference[k].mean():+.1f} ± {error[k]:.1f}",
            f"{seconds[k]:.2f}",
        ]
        for k in np.argsort(-at_20.mean(axis=1))
    ]
    header = ["method", *(f"{d}" for d in SIZES), "largest deficit", "difference at 20", "seconds"]
    measure = {"numbers": "R^2 x 100", "survival": "Concordance (%)"}.get(kind_of(sets[0]), "Accuracy (%)")
    title = f"{measure} on held-out rows by number of features: {len(sets)} data sets, {len(halves)} halves each"
    print_table(title, header, rows)
    by_set = [[s, *(f"{value:.1f}" for value in at_20[:, k])] for k, s in enumerate(sets)]
    print_table("The same with 20 features, by data set", ["data set", *names], by_set)
