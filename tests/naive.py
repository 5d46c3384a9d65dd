"""A slow, literal twin of every method, straight from the papers' equations. Read this to know what is meant."""

from decimal import Context, Decimal, localcontext
from fractions import Fraction
from itertools import combinations, pairwise, permutations, product
from statistics import NormalDist

import numpy as np
from scipy.optimize import minimize


def with_and_without(subsets, values, n_features):
    """J of the probes that hold a feature, and of those that do not, feature by feature."""
    probes = [(set(subset), value) for subset, value in zip(subsets, values, strict=True)]
    for f in range(n_features):
        yield [value for held, value in probes if f in held], [value for held, value in probes if f not in held]


def daf0(subsets, values, n_features):
    """2011, eq. 5-7."""
    scores = np.full(n_features, np.nan)
    for f, (inside, outside) in enumerate(with_and_without(subsets, values, n_features)):
        if inside and outside:
            scores[f] = np.mean(inside) - np.mean(outside)
    return scores


def daf1(subsets, values, n_features):
    """2011, eq. 8-10."""
    scores = np.full(n_features, np.nan)
    for f, (inside, outside) in enumerate(with_and_without(subsets, values, n_features)):
        if inside and outside:
            spread = len(inside) * np.std(inside) + len(outside) * np.std(outside)
            scores[f] = (np.mean(inside) - np.mean(outside)) * len(values) / spread
    return scores


def size_deviation(subsets, values, size, min_probes):
    """2011, eq. 11-12, with neighbouring sizes pooled until there are enough probes."""
    sizes = [len(subset) for subset in subsets]
    for reach in range(max(sizes) + 1):
        pool = [v for v, d in zip(values, sizes, strict=True) if abs(d - size) <= reach]
        if len(pool) >= min_probes and np.std(pool) > 0:
            return np.std(pool)
    return np.std(values)


def daf2(subsets, values, n_features, min_probes=30):
    """2011, eq. 13-15, eq. 14 over the probes without f."""
    deviations = {d: size_deviation(subsets, values, d, min_probes) for d in {len(subset) for subset in subsets}}
    scaled = [value / deviations[len(subset)] for subset, value in zip(subsets, values, strict=True)]
    return daf0(subsets, scaled, n_features)


def centered(subsets, values, least=20):
    """J less its mean at the probe's size; sizes share a mean by twenties of probes, counted from the smallest size."""
    counts = {d: sum(len(subset) == d for subset in subsets) for d in {len(subset) for subset in subsets}}
    group = {d: sum(counts[other] for other in counts if other < d) // least for d in counts}
    means = {
        each: np.mean([v for subset, v in zip(subsets, values, strict=True) if group[len(subset)] == each])
        for each in group.values()
    }
    return [value - means[group[len(subset)]] for subset, value in zip(subsets, values, strict=True)]


def daf0_centered(subsets, values, n_features):
    """DAF0 of J less its mean at the probe's size."""
    return daf0(subsets, centered(subsets, values), n_features)


def daf2_centered(subsets, values, n_features, min_probes=30):
    """DAF2 of the same; sigma(d) is that of J, which centring at each size leaves as it is."""
    deviations = {d: size_deviation(subsets, values, d, min_probes) for d in {len(subset) for subset in subsets}}
    pairs = zip(subsets, centered(subsets, values), strict=True)
    return daf0(subsets, [value / deviations[len(subset)] for subset, value in pairs], n_features)


def regression(subsets, adjusted, n_features, penalty):
    """Ridge of J, less its mean at the probe's size, on which features are in, each column less its share by size."""
    matrix = np.array(
        [[float(f in held) - len(held) / n_features for f in range(n_features)] for held in map(set, subsets)]
    )
    unit = (matrix**2).sum(axis=0).mean() or 1.0
    return np.linalg.solve(matrix.T @ matrix + penalty * unit * np.eye(n_features), matrix.T @ adjusted)


def welch(subsets, values, n_features):
    """Welch's standard error of DAF0, with the population variances of eq. 8 and 9."""
    errors = np.full(n_features, np.nan)
    for f, (inside, outside) in enumerate(with_and_without(subsets, values, n_features)):
        if inside and outside:
            errors[f] = np.sqrt(np.var(inside) / len(inside) + np.var(outside) / len(outside))
    return errors


def jackknife(subsets, values, n_features, block_size, groups, coefficient=daf0):
    """The standard error from the coefficient without each group of blocks in turn; block b is in b mod groups."""
    group = [number // block_size % groups for number in range(len(values))]
    without = []
    for left_out in range(groups):
        kept = [number for number in range(len(values)) if group[number] != left_out]
        without.append(
            coefficient([subsets[number] for number in kept], [values[number] for number in kept], n_features)
        )
    return np.sqrt((groups - 1) * np.var(without, axis=0))


def coverage(subsets, n_features):
    """2011, eq. 16."""
    counts = [sum(f in set(subset) for subset in subsets) for f in range(n_features)]
    return min(min(count, len(subsets) - count) for count in counts)


def order(scores):
    """Features by descending score, ties to the lower index, those without a score last."""
    return sorted(
        range(len(scores)), key=lambda f: (np.isnan(scores[f]), -scores[f] if scores[f] == scores[f] else 0, f)
    )


def order_change(before, after):
    """C of the 2013 paper, definition 1, over features with a coefficient both times."""
    place_before = {f: place for place, f in enumerate(order(before))}
    place_after = {f: place for place, f in enumerate(order(after))}
    known = [f for f in range(len(before)) if not np.isnan(before[f]) and not np.isnan(after[f])]
    return np.mean([abs(place_before[f] - place_after[f]) for f in known]) if known else np.nan


def value_change(before, after):
    """C2 of the 2013 paper, definition 2, and how many features were left out."""
    known = [f for f in range(len(before)) if not np.isnan(before[f]) and not np.isnan(after[f])]
    change = np.mean([abs(before[f] - after[f]) for f in known]) if known else np.nan
    return change, len(before) - len(known)


def tie_keys(n_rows):
    """Position of each row in the order of a 32-bit hash of its number: the last step of MurmurHash3."""

    def mixed(number):
        number ^= number >> 16
        number = number * 0x85EBCA6B % 2**32
        number ^= number >> 13
        number = number * 0xC2B2AE35 % 2**32
        return number ^ (number >> 16)

    place = {row: key for key, row in enumerate(sorted(range(n_rows), key=mixed))}
    return [place[row] for row in range(n_rows)]


def knn_score(X, y, splits, n_neighbors, classification):
    """k-NN by looking at every pair; keys decide among equal distances, the lower class wins among equal votes."""
    keys = tie_keys(len(X))
    X = np.asarray(X.todense() if hasattr(X, "todense") else X, dtype=np.float64)
    scores = []
    for train, test in splits:
        predicted = []
        for row in test:
            apart = [(float(np.sum((X[row] - X[other]) ** 2)), keys[row] ^ keys[other], other) for other in train]
            nearest = [y[other] for _, _, other in sorted(apart)[:n_neighbors]]
            if classification:
                labels, counts = np.unique(nearest, return_counts=True)
                predicted.append(labels[np.argmax(counts)])
            else:
                predicted.append(np.mean(nearest))
        if classification:
            scores.append(np.mean(np.asarray(predicted) == y[test]))
        else:
            scores.append(1 - np.sum((y[test] - predicted) ** 2) / np.sum((y[test] - np.mean(y[test])) ** 2))
    return np.mean(scores)


def left_out(splits, weights=None):
    """(row, training rows, share in the mean) of every test."""
    tests = [(row, train, 1.0 if weights is None else weights[row]) for train, rows in splits for row in rows]
    total = sum(weight for _, _, weight in tests)
    return [(row, train, weight / total) for row, train, weight in tests]


def soft_knn(X, y, splits, n_neighbors, weights=None):
    """Mean over tests, by weight, of the votes for the row's own class."""
    votes = soft_votes(X, y, splits, n_neighbors)
    return sum(share * vote for (_, _, share), vote in zip(left_out(splits, weights), votes, strict=True))


def soft_votes(X, y, splits, n_neighbors):
    """Weights of neighbours of the row's own class: softmax(-d^2 / T), T a fifth of the mean d^2 of the fifth."""
    X = np.asarray(X.todense() if hasattr(X, "todense") else X, dtype=np.float64)
    tests, near, keys = left_out(splits), [], np.array(tie_keys(len(X)))
    for row, train, _ in tests:
        squares = np.sum((X[row] - X[train]) ** 2, axis=1)
        ordered = sorted(zip(squares.tolist(), keys[row] ^ keys[train], train, strict=True))
        near.append([(square, other) for square, _, other in ordered[:n_neighbors]])
    temperature = max(np.mean([neighbors[min(5, n_neighbors) - 1][0] for neighbors in near]) / 5, 1e-300)
    said = []
    for (row, _, _), neighbors in zip(tests, near, strict=True):
        votes = np.exp([-(square - neighbors[0][0]) / temperature for square, _ in neighbors])
        own = [y[other] == y[row] for _, other in neighbors]
        said.append(votes[own].sum() / votes.sum())
    return said


def ridge_decision(X, targets, row, train, alpha, weights=None):
    """Prediction of a row by ridge regression with a free intercept, fitted to the training rows."""
    weights = np.ones(len(X)) if weights is None else np.asarray(weights, float)
    share = weights[train] / weights[train].sum()
    means, level = share @ X[train], share @ targets[train]
    apart = X[train] - means
    gram = apart.T @ (weights[train, None] * apart) + alpha * np.eye(X.shape[1])
    return level + (X[row] - means) @ np.linalg.solve(gram, apart.T @ (weights[train] * (targets[train] - level)))


def exact_ridge_decisions(X, targets, train, test, alpha, weights=None):
    """`ridge_decision` of all test rows, (rows, targets), in 60 decimal digits, from products of rows or columns."""
    with localcontext(Context(prec=60)):
        exact = np.vectorize(lambda number: Decimal(float(number)), otypes=[object])
        X, targets, alpha = exact(X), exact(targets), Decimal(alpha)
        weights = exact(np.ones(len(X)) if weights is None else weights)[train]
        means, level = weights @ X[train] / weights.sum(), weights @ targets[train] / weights.sum()
        roots = np.array([weight.sqrt() for weight in weights])[:, None]
        apart, sides = roots * (X[train] - means), roots * (targets[train] - level)
        if X.shape[1] > len(train):
            solved = apart.T @ _solved(apart @ apart.T, alpha, sides)
        else:
            solved = _solved(apart.T @ apart, alpha, apart.T @ sides)
        return (level + (X[test] - means) @ solved).astype(float)


def _solved(matrix, alpha, sides):
    """(matrix + alpha I)^-1 sides, by elimination: what is below the diagonal, then what is above it."""
    n = len(matrix)
    table = np.hstack([matrix + alpha * np.eye(n, dtype=int), sides])
    for i in range(n):
        table[i, i:] = table[i, i:] / table[i, i]
        table[i + 1 :, i:] -= table[i + 1 :, [i]] * table[i, i:]
    for i in reversed(range(n)):
        table[:i, n:] -= table[:i, [i]] * table[i, n:]
    return table[:, n:]


def soft_linear(X, y, splits, alpha, weights=None):
    """Mean of softmax(2 decisions) for the row's own class, among classes with training rows; decisions are of +-1."""
    X, classes, total = np.asarray(X, float), np.unique(y), 0.0
    for row, train, share in left_out(splits, weights):
        counted = train if weights is None else train[np.asarray(weights)[train] > 0]
        known = [c for c in classes if (y[counted] == c).any()]
        decisions = [ridge_decision(X, np.where(y == c, 1.0, -1.0), row, train, alpha, weights) for c in known]
        odds = np.exp(2 * (np.array(decisions) - max(decisions)))
        total += share * sum(odds[known.index(c)] for c in known if c == y[row]) / odds.sum()
    return total


def bayes_posteriors(X, y, row, train, smoothing, weights=None):
    """{class: probability} of a row by Gaussian naive Bayes; a column with nothing to divide by is left out."""
    weights = np.ones(len(X)) if weights is None else np.asarray(weights, float)
    counted = train[weights[train] > 0]
    pooled = X[train].var(axis=0)
    moments = {}
    for c in np.unique(y[counted]):
        own = counted[y[counted] == c]
        share = weights[own] / weights[own].sum()
        mean = share @ X[own]
        moments[c] = weights[own].sum() / weights[counted].sum(), mean, share @ (X[own] - mean) ** 2
    epsilon = smoothing * pooled.max()
    says = (pooled > 0) & (np.min([variance for _, _, variance in moments.values()], axis=0) + epsilon > 0)
    logs = {}
    for c, (prior, mean, variance) in moments.items():
        v, off = (variance + epsilon)[says], (X[row] - mean)[says]
        logs[c] = np.log(prior) - 0.5 * np.sum(np.log(v) + off**2 / v)
    highest = max(logs.values())
    total = sum(np.exp(value - highest) for value in logs.values())
    return {c: np.exp(value - highest) / total for c, value in logs.items()}


def soft_bayes(X, y, splits, smoothing=1e-9, weights=None):
    """Mean posterior of the row's own class."""
    return sum(
        share * bayes_posteriors(X, y, row, train, smoothing, weights).get(y[row], 0.0)
        for row, train, share in left_out(splits, weights)
    )


def philox_words(seed, probe):
    """The 32-bit words of a probe: Philox4x32-10 at counters (j, low, high, 0), key (low seed, high seed)."""
    j = 0
    while True:
        counter = [j, probe % 2**32, probe >> 32, 0]
        key = [seed % 2**32, seed >> 32]
        for _ in range(10):
            first, second = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
            counter = [
                (second >> 32) ^ counter[1] ^ key[0],
                second % 2**32,
                (first >> 32) ^ counter[3] ^ key[1],
                first % 2**32,
            ]
            key = [(key[0] + 0x9E3779B9) % 2**32, (key[1] + 0xBB67AE85) % 2**32]
        yield from counter
        j += 1


def below(bound, words):
    """An unbiased integer in [0, bound) from 32-bit words."""
    while True:
        product = next(words) * bound
        if product % 2**32 >= 2**32 % bound:
            return product >> 32


def uniform_probe(seed, probe, n_features, max_size):
    """2011, section III: a uniform size up to tau, then that many distinct features, here by Floyd's sampling."""
    words = philox_words(seed, probe)
    size = 1 + below(min(n_features, max_size), words)
    chosen = []
    for last in range(n_features - size, n_features):
        feature = below(last + 1, words)
        chosen.append(feature if feature not in chosen else last)
    return chosen


def bernoulli_probe(seed, probe, n_features, inclusion):
    """2011, eq. 4: gaps between the features that are in, from 64-bit words against the chances of long gaps."""
    words = philox_words(seed, probe)
    passed_over = round((1 - Fraction(inclusion)) * 2**64)
    tail = [passed_over]
    while len(tail) < 1024:
        tail.append(tail[-1] * passed_over // 2**64)

    def gap():
        passed = 0
        while True:
            word = next(words) * 2**32 + next(words)
            here = sum(word < chance for chance in tail)
            passed += here
            if here < len(tail):
                return passed

    chosen = []
    while not chosen:
        feature = gap()
        while feature < n_features:
            chosen.append(feature)
            feature += 1 + gap()
    return chosen


def to_12_digits(score):
    return lambda subset: float(f"{score(subset):.12g}")


def floating_search(score, n_features, size, floating=True):
    """Pudil et al. 1994: add the best; then drop as long as that beats the best known of its size.

    "strict": and the larger subset, and never the feature just added. J is rounded to 12 digits.
    """
    best, current, score = {}, [], to_12_digits(score)
    while len(current) < size:
        before = current
        current = max(([*current, f] for f in range(n_features) if f not in current), key=lambda s: score(sorted(s)))
        if len(current) not in best or score(sorted(current)) > best[len(current)][0]:
            best[len(current)] = score(sorted(current)), sorted(current)
        while floating and len(current) > 2:
            kept = [f for f in current if f not in before] if floating == "strict" else []
            leaving = [f for f in sorted(current) if f not in kept]
            fewer = max(([g for g in sorted(current) if g != f] for f in leaving), key=score)
            if score(fewer) <= best[len(fewer)][0]:
                break
            if floating == "strict" and score(fewer) <= score(sorted(current)):
                break
            current = fewer
            best[len(current)] = score(current), current
    return best


def backward_search(score, n_features, size, floating=True):
    """The mirror image: drop the least missed; then add back as long as that beats the best known of its size."""
    score = to_12_digits(score)
    best, current = {n_features: (score(list(range(n_features))), list(range(n_features)))}, list(range(n_features))
    while len(current) > size:
        current = max(([g for g in current if g != f] for f in current), key=score)
        if len(current) not in best or score(current) > best[len(current)][0]:
            best[len(current)] = score(current), current
        while floating and 2 < len(current) < n_features - 1:
            more = max((sorted([*current, f]) for f in range(n_features) if f not in current), key=score)
            if score(more) <= best[len(more)][0]:
                break
            current = more
            best[len(current)] = score(current), current
    return best


def entropy(codes):
    """Shannon's, in bits; ``codes`` any hashable values."""
    counts = np.array([list(codes).count(value) for value in set(codes)])
    return float(-np.sum(counts / len(codes) * np.log2(counts / len(codes))))


def mutual_information(a, b):
    """2004, eq. 2."""
    return entropy(a) + entropy(b) - entropy(list(zip(a, b, strict=True)))


def symmetrical_uncertainty(a, b):
    """2004, eq. 3; nothing to share is 0."""
    both = entropy(a) + entropy(b)
    return 2 * mutual_information(a, b) / both if both else 0.0


def balanced_gain(codes, y):
    """2004, eq. 5; one interval is 0."""
    kappa = len(set(codes))
    return mutual_information(y, codes) / np.log2(kappa) if kappa > 1 else 0.0


def extended_balanced_gain(a, b):
    """2004, eq. 6, over the non-empty joint cells."""
    kappa = len(set(zip(a, b, strict=True)))
    return mutual_information(a, b) / np.log2(kappa) if kappa > 1 else 0.0


def possible_cuts(x, y):
    """2004, sec. 3.1: the means of adjacent distinct values whose samples do not all share one class."""
    values = sorted(set(x))
    cuts = []
    for low, high in pairwise(values):
        classes = {label for value, label in zip(x, y, strict=True) if value in (low, high)}
        if len(classes) > 1:
            cuts.append((low + high) / 2)
    return cuts


def interval_codes(x, cuts):
    return [sum(cut < value for cut in cuts) for value in x]


def optimal_cuts(x, y):
    """The multisplit with the largest balanced gain, of every possible one; the first with the fewest cuts."""
    possible = possible_cuts(x, y)
    best, chosen = 0.0, ()
    for size in range(1, len(possible) + 1):
        for cuts in combinations(possible, size):
            gain = balanced_gain(interval_codes(x, cuts), y)
            if gain > best + 1e-12:
                best, chosen = gain, cuts
    return list(chosen)


def greedy_cuts(x, y):
    """Top-down: the cut that raises the information most, as long as the balanced gain rises."""
    possible, cuts = possible_cuts(x, y), []
    while len(cuts) < len(possible):
        open_ = [cut for cut in possible if cut not in cuts]
        gains = [mutual_information(y, interval_codes(x, sorted([*cuts, cut]))) for cut in open_]
        cut = open_[first_best(gains)]
        wider = sorted([*cuts, cut])
        if balanced_gain(interval_codes(x, wider), y) <= balanced_gain(interval_codes(x, cuts), y) + 1e-12:
            break
        cuts = wider
    return cuts


def mdl_cuts(x, y):
    """Fayyad and Irani 1993: the best binary cut, kept if it pays for its description, then each side alone."""
    possible = possible_cuts(x, y)
    if not possible:
        return []
    gains = [mutual_information(y, interval_codes(x, [cut])) for cut in possible]
    cut = possible[first_best(gains)]
    sides = [[label for value, label in zip(x, y, strict=True) if (value > cut) == side] for side in (False, True)]
    k = len(set(y))
    delta = np.log2(3.0**k - 2) - (k * entropy(y) - sum(len(set(side)) * entropy(side) for side in sides))
    if max(gains) <= (np.log2(len(y) - 1) + delta) / len(y) + 1e-12:
        return []
    left, right = ([(v, c) for v, c in zip(x, y, strict=True) if (v > cut) == side] for side in (False, True))
    return [*mdl_cuts(*zip(*left, strict=True)), cut, *mdl_cuts(*zip(*right, strict=True))]


def first_best(values):
    """The first of the largest, where what differs by rounding only counts as equal."""
    return next(i for i, value in enumerate(values) if value >= max(values) - 1e-10)


def levels(x, method):
    """The level of each value without a look at classes, by exact fractions: which borders are below it, and more."""
    n_levels = {"mean": 2, "sigma": 3}.get(method, method)
    if len(set(x)) <= max(3, n_levels):
        return list(x)
    exact = [Fraction(value) for value in x]
    mean, low, high = sum(exact) / len(x), min(exact), max(exact)
    variance = sum((value - mean) ** 2 for value in exact) / len(x)

    def level(value):
        if method == "mean":
            return value > mean
        if method == "sigma":
            beyond = (value - mean) ** 2 > variance or ((value - mean) ** 2 == variance and value in (low, high))
            return beyond * (1 if value > mean else -1)
        return sum(value > low + (high - low) * k / method for k in range(1, method))

    common = next((value for value in exact if 2 * exact.count(value) > len(x)), None)
    return [(level(value), common is None or (value > common) - (value < common)) for value in exact]


def efs(codes, y, size, threshold, normalize="all"):
    """2004, Algorithm 1 on columns of codes: (selected, in order, with importances), (discarded with importances)."""
    features = range(len(codes))
    gain = [balanced_gain(codes[f], y) for f in features]
    if isinstance(threshold, tuple):
        threshold = sorted(gain, reverse=True)[threshold[1] - 1]
    importance = dict(enumerate(gain))
    discarded = {f: importance.pop(f) for f in features if gain[f] < threshold - 1e-12}
    pairs = combinations(features if normalize == "all" else sorted(importance), 2)
    largest = max((extended_balanced_gain(codes[f], codes[g]) for f, g in pairs), default=0.0)
    divisor = largest if normalize and largest > 0 else 1.0
    correlation = dict.fromkeys(importance, 0.0)
    selected = []
    while importance and len(selected) < size:
        open_ = sorted(importance)
        best = open_[first_best([importance[f] for f in open_])]
        selected.append((best, importance.pop(best)))
        for f in list(importance):
            correlation[f] = max(correlation[f], extended_balanced_gain(codes[f], codes[best]) / divisor)
            importance[f] = gain[f] * (1 - correlation[f])
            if importance[f] < threshold - 1e-12:
                discarded[f] = importance.pop(f)
    return selected, discarded


def cfs_merit(codes, y, subset):
    """2004, eq. 4, with symmetrical uncertainty."""
    k = len(subset)
    if k == 0:
        return 0.0
    r_cf = np.mean([symmetrical_uncertainty(codes[f], y) for f in subset])
    pairs = list(combinations(subset, 2))
    r_ff = np.mean([symmetrical_uncertainty(codes[f], codes[g]) for f, g in pairs]) if pairs else 0.0
    return k * r_cf / np.sqrt(k + k * (k - 1) * r_ff)


def cfs_hill_climbing(codes, y):
    """Add the feature that raises the merit most, until none does."""
    subset = []
    while len(subset) < len(codes):
        open_ = [f for f in range(len(codes)) if f not in subset]
        merits = [cfs_merit(codes, y, [*subset, f]) for f in open_]
        if max(merits) <= cfs_merit(codes, y, subset) + 1e-10:
            break
        subset.append(open_[first_best(merits)])
    return subset


def cfs_add_or_remove(codes, y, full):
    """2004, section 2.2: from no or all features, add or remove the one that raises the merit most, until none does."""
    subset = list(range(len(codes))) if full else []
    while True:
        others = [[g for g in subset if g != f] if f in subset else [*subset, f] for f in range(len(codes))]
        merits = [cfs_merit(codes, y, other) for other in others]
        if max(merits) <= cfs_merit(codes, y, subset) + 1e-10:
            return subset
        subset = others[first_best(merits)]


def cfs_best_first(codes, y, stale_limit=5):
    """Hall 1998: expand the best subset not yet expanded; stop after five expansions running that gain nothing."""
    waiting, seen, best, best_merit, stale = [((), 0.0)], {frozenset()}, (), 0.0, 0
    while waiting and stale < stale_limit:
        subset, _ = waiting.pop(first_best([merit for _, merit in waiting]))
        gained = False
        for f in range(len(codes)):
            child = (*subset, f)
            if f in subset or frozenset(child) in seen:
                continue
            seen.add(frozenset(child))
            merit = cfs_merit(codes, y, child)
            waiting.append((child, merit))
            if merit > best_merit + 1e-10:
                best, best_merit, gained = child, merit, True
        stale = 0 if gained else stale + 1
    return list(best)


def fcbf(codes, y, threshold=0.0):
    """Yu, Liu 2003, figure 2: by uncertainty about the class; one taken removes those more like it than the class."""
    worth = [round(symmetrical_uncertainty(f, y), 12) for f in codes]
    waiting = sorted((f for f in range(len(codes)) if worth[f] > threshold), key=lambda f: -worth[f])
    taken = []
    while waiting:
        taken.append(waiting.pop(0))
        waiting = [g for g in waiting if round(symmetrical_uncertainty(codes[g], codes[taken[-1]]), 12) < worth[g]]
    return taken


def conditional_information(a, c, given):
    """I(a; c | given)."""
    joint = [list(zip(*columns, strict=True)) for columns in ((a, given), (c, given), (a, c, given))]
    return entropy(joint[0]) + entropy(joint[1]) - entropy(joint[2]) - entropy(list(given))


def greedy_information(codes, y, size, method):
    """mRMR (difference and quotient), JMI and CMIM: the largest value of each, step by step, from I(f; C)."""
    relevance = [mutual_information(column, y) for column in codes]
    selected, values = [], []

    def value(f):
        if not selected:
            return relevance[f]
        if method in ("mid", "miq"):
            redundancy = np.mean([mutual_information(codes[f], codes[s]) for s in selected])
            return relevance[f] - redundancy if method == "mid" else round(relevance[f], 12) / max(redundancy, 1e-12)
        if method == "jmi":
            return np.mean([mutual_information(list(zip(codes[f], codes[s], strict=True)), y) for s in selected])
        return min(relevance[f], *(conditional_information(codes[f], y, codes[s]) for s in selected))

    while len(selected) < size:
        open_ = [f for f in range(len(codes)) if f not in selected]
        now = [value(f) for f in open_]
        best = first_best(now)
        selected.append(open_[best])
        values.append(now[best])
    return selected, values


def pairs_mean(measure, subsets):
    """The mean of a measure of two sets over all pairs of subsets."""
    sets = [set(subset) for subset in subsets]
    return np.mean([measure(sets[i], sets[j]) for i in range(len(sets)) for j in range(i)])


def cross_mean(measure, first, second):
    """The mean of a measure of two sets over all pairs of a subset of one selector and one of the other."""
    return np.mean([measure(set(a), set(b)) for a in first for b in second])


def tanimoto(a, b):
    return len(a & b) / len(a | b) if a | b else 1.0


def ati(subsets, n_features):
    """Somol and Novovičová 2010: the average Tanimoto index."""
    return pairs_mean(tanimoto, subsets)


def anhi(subsets, n_features):
    """Somol and Novovičová 2010: the average normalised Hamming index."""
    return pairs_mean(lambda a, b: 1 - len(a ^ b) / n_features, subsets)


def iati(first, second, n_features):
    """Somol and Novovičová 2010: ATI between two selectors."""
    return cross_mean(tanimoto, first, second)


def ianhi(first, second, n_features):
    """Somol and Novovičová 2010: ANHI between two selectors."""
    return cross_mean(lambda a, b: 1 - len(a ^ b) / n_features, first, second)


def frequencies(subsets, n_features):
    return [sum(f in set(subset) for subset in subsets) / len(subsets) for f in range(n_features)]


def icw(first, second, n_features):
    """Somol and Novovičová 2010: weighted consistency between two selectors."""
    shares = list(zip(frequencies(first, n_features), frequencies(second, n_features), strict=True))
    weight = sum(max(p, q) for p, q in shares)
    return 1 - sum(max(p, q) / weight * abs(p - q) for p, q in shares) if weight else np.nan


def consistency(counts, n):
    """Somol and Novovičová 2010: CW of the numbers of subsets, of n, that hold each feature."""
    total = sum(counts)
    return sum(Fraction(count, total) * Fraction(count - 1, n - 1) for count in counts)


def cw_rel(subsets, n_features):
    """Somol and Novovičová 2010: CW between the least and the largest that as many features in n subsets can give."""
    n = len(subsets)
    counts = [sum(f in set(subset) for subset in subsets) for f in range(n_features)]
    total = sum(counts)
    if total == 0:
        return np.nan
    evenly = [total // n_features + (f < total % n_features) for f in range(n_features)]
    heaped = [n] * (total // n) + [total % n]
    least, largest = consistency(evenly, n), consistency(heaped, n)
    value = consistency(counts, n)
    return float((value - least) / (largest - least)) if least < largest else float(value)


def kuncheva(subsets, n_features):
    """Kuncheva 2007, definitions 1 and 2."""
    k = len(set(subsets[0]))
    if k in (0, n_features):
        return np.nan
    return pairs_mean(lambda a, b: (len(a & b) * n_features - k**2) / (k * (n_features - k)), subsets)


def nogueira(subsets, n_features):
    """Nogueira et al. 2018, definition 4: unbiased variances of selection over those of random selection."""
    n, d = len(subsets), n_features
    mean_size = np.mean([len(set(subset)) for subset in subsets])
    if mean_size in (0, d):
        return np.nan
    variances = [n / (n - 1) * p * (1 - p) for p in frequencies(subsets, d)]
    return 1 - np.mean(variances) / (mean_size / d * (1 - mean_size / d))


def nogueira_variance(subsets, n_features):
    """Nogueira et al. 2018, corollary 9: how much each subset moves the estimate."""
    n, d = len(subsets), n_features
    p, stability = frequencies(subsets, d), nogueira(subsets, d)
    mean_size = np.mean([len(set(subset)) for subset in subsets])
    phi = []
    for subset in subsets:
        k = len(set(subset))
        overlap = sum(p[f] for f in set(subset)) / d - k * mean_size / d**2
        size = 2 * k * mean_size / d**2 - k / d - mean_size / d + 1
        phi.append((overlap + stability / 2 * size) / (mean_size / d * (1 - mean_size / d)))
    return 4 / n**2 * sum((value - np.mean(phi)) ** 2 for value in phi)


def relevance_feedback(X, y, score, initial, query, rounds, returned):
    """EFS 2004, sec. 5.1: train, return the top rows that are not labeled, let the user label them, and repeat.

    Gives the precision of every round.
    """
    labeled, precisions = sorted(initial), []
    for _ in range(rounds + 1):
        scores = score(X[labeled], [y[row] == query for row in labeled], X)
        ranked = sorted(range(len(X)), key=lambda row: (-scores[row], row))
        unseen = [row for row in ranked if row not in labeled][:returned]
        precisions.append(sum(y[row] == query for row in unseen) / len(unseen) if unseen else np.nan)
        labeled = sorted(set(labeled) | set(unseen))
    return precisions


def fsdd(X, y, beta=2.0):
    """2008, eq. 2, in exact fractions; NaN cells are left out, a class of one value adds 0 to the within part."""
    X = np.asarray(X.todense() if hasattr(X, "todense") else X)
    scores = np.full(X.shape[1], np.nan)
    for k in range(X.shape[1]):
        rows = [(Fraction(float(x)), label) for x, label in zip(X[:, k], y, strict=True) if x == x]
        classes = [[value for value, label in rows if label == one] for one in sorted({label for _, label in rows})]
        n = len(rows)
        if len(classes) < 2:
            continue
        mean = sum(value for value, _ in rows) / n
        variance = sum((value - mean) ** 2 for value, _ in rows) / n
        if variance == 0:
            continue
        means = [sum(values) / len(values) for values in classes]
        center = sum(Fraction(len(values), n) * m for values, m in zip(classes, means, strict=True))
        between = sum(Fraction(len(values), n) * (m - center) ** 2 for values, m in zip(classes, means, strict=True))
        inside = [
            sum((value - m) ** 2 for value in values) / (len(values) - 1) if len(values) > 1 else Fraction(0)
            for values, m in zip(classes, means, strict=True)
        ]
        within = sum(Fraction(len(values), n) * v for values, v in zip(classes, inside, strict=True))
        scores[k] = float((between - Fraction(beta) * within) / variance)
    return scores


def fsdd_overlap(X, y, beta=2.0):
    """2008, eq. 2 as a sum over pairs of classes (eq. 5), each pair's width weighted by how much the two overlap.

    Overlap is the Bhattacharyya coefficient of two normal distributions of the classes' means and mean variance.
    """
    X = np.asarray(X.todense() if hasattr(X, "todense") else X, dtype=np.float64)
    scores = np.full(X.shape[1], np.nan)
    for k in range(X.shape[1]):
        known = [(x, label) for x, label in zip(X[:, k].tolist(), y, strict=True) if x == x]
        classes = [[x for x, label in known if label == one] for one in sorted({label for _, label in known})]
        variance = np.var([x for x, _ in known]) if known else 0.0
        if len(classes) < 2 or variance == 0:
            continue
        for i, j in product(range(len(classes)), repeat=2):
            share = len(classes[i]) * len(classes[j]) / len(known) ** 2
            (m, v), (w, u) = ((np.mean(c), np.var(c, ddof=1) if len(c) > 1 else 0.0) for c in (classes[i], classes[j]))
            width = (v + u) / 2
            overlap = np.exp(-((m - w) ** 2) / (8 * width)) if width else float(m == w)
            term = share / 2 * ((m - w) ** 2 - beta * overlap * (v + u)) / variance
            scores[k] = term if np.isnan(scores[k]) else scores[k] + term
    return scores


def relief_diffs(X, row, discrete):
    """diff of every row and feature to one row: Robnik-Sikonja and Kononenko 2003, eq. 2 and 3.

    X may hold fractions: then so do the diffs, and their sums are exact.
    """
    ranges = X.max(axis=0) - X.min(axis=0)
    return np.where(discrete, X[row] != X, abs(X - X[row]) / np.where(ranges == 0, 1, ranges))


def relief_nearest(diffs, candidates, n_neighbors):
    """The k nearest candidates; the lower row wins among equal distances."""
    distances = diffs.sum(axis=1)
    return sorted(candidates, key=lambda other: (distances[other], other))[:n_neighbors]


def relieff(X, y, n_neighbors, rows, discrete):
    """Robnik-Sikonja and Kononenko 2003, figure 2."""
    share = {label: np.mean(y == label) for label in np.unique(y)}
    weights = np.zeros(X.shape[1])
    for row in rows:
        diffs = relief_diffs(X, row, discrete)
        for label in share:
            same_label = [other for other in range(len(X)) if y[other] == label and other != row]
            nearest = relief_nearest(diffs, same_label, n_neighbors)
            if nearest:
                mean = diffs[nearest].sum(axis=0).astype(float) / len(nearest)
                weights += (-1 if label == y[row] else share[label] / (1 - share[y[row]])) * mean / len(rows)
    return weights


def rrelieff(X, y, n_neighbors, rows, discrete):
    """Robnik-Sikonja and Kononenko 2003, figure 3, with d(i, j) = 1/k."""
    n_dc, n_da, n_dcda = 0.0, np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for row in rows:
        diffs = relief_diffs(X, row, discrete)
        nearest = relief_nearest(diffs, [other for other in range(len(X)) if other != row], n_neighbors)
        for other in nearest:
            apart = abs(y[row] - y[other]) / (max(y) - min(y))
            n_dc += apart / len(nearest)
            n_da += diffs[other].astype(float) / len(nearest)
            n_dcda += apart * diffs[other].astype(float) / len(nearest)
    first = n_dcda / n_dc if n_dc else 0
    return first - ((n_da - n_dcda) / (len(rows) - n_dc) if len(rows) > n_dc else 0)


def discoveries(p, q):
    """Benjamini and Hochberg (1995): the most there can be so that the largest p is at most q k / m."""
    best = 0
    for k in range(1, len(p) + 1):
        if sorted(p)[k - 1] <= q * k / len(p):
            best = k
    return [bool(best) and value <= sorted(p)[best - 1] for value in p]


def linear_weights(X, targets, sample_weight):
    """Root of the sum of squares over targets of the weights of each column in a ridge regression with an intercept;
    the penalty is the mean variance of the columns."""
    centered = X - np.average(X, axis=0, weights=sample_weight)
    penalty = np.mean([np.average(column**2, weights=sample_weight) for column in centered.T])
    W = np.diag(sample_weight)
    matrix = centered.T @ W @ centered + penalty * np.eye(X.shape[1])
    weights = [np.linalg.solve(matrix, centered.T @ W @ (t - np.average(t, weights=sample_weight))) for t in targets.T]
    return np.sqrt(sum(w**2 for w in weights))


def copies_of_columns(X):
    """Columns whose squared correlation with an earlier column is 1."""
    r = [[np.corrcoef(X[:, j], X[:, k])[0, 1] ** 2 for k in range(j)] for j in range(X.shape[1])]
    return [j for j in range(X.shape[1]) if max(r[j], default=0) > 1 - 1e-9]


def forward_order(score, features, n_rows):
    """Features one by one: the first, in the given order, whose error 1 - J is at most 1 + 2 / rows times the least."""
    chosen, rest = [], list(features)
    while rest:
        errors = [1 - score([*chosen, feature]) for feature in rest]
        chosen.append(rest.pop([error <= min(errors) * (1 + 2 / n_rows) for error in errors].index(True)))
    return chosen


def linear_skill(X, targets, sample_weight):
    """1 - error / error without columns, each row predicted by a ridge regression on the others; see `linear_weights`.
    The penalty is that of all rows."""
    centered = X - np.average(X, axis=0, weights=sample_weight)
    penalty = np.mean([np.average(column**2, weights=sample_weight) for column in centered.T])
    predicted = []
    for row in range(len(X)):
        others = np.arange(len(X)) != row
        w, T = sample_weight[others], targets[others]
        mean, mean_target = np.average(X[others], axis=0, weights=w), np.average(T, axis=0, weights=w)
        A = (X[others] - mean) * np.sqrt(w)[:, None]
        matrix = A.T @ A + penalty * np.eye(X.shape[1])
        slopes = np.linalg.solve(matrix, A.T @ ((T - mean_target) * np.sqrt(w)[:, None]))
        predicted.append(mean_target + (X[row] - mean) @ slopes)
    wrong = np.argmax(predicted, axis=1) != np.argmax(targets, axis=1)
    total = np.average(targets, axis=0, weights=sample_weight)
    return max(0.0, 1 - np.average(wrong, weights=sample_weight) / (1 - total.max()))


def standardized(values):
    return (values - np.mean(values)) / np.std(values)


def tournament_rounds(plan, values, schedule, linear_weights, share, ridge=10.0, like_size=20):
    """The features of each round of a `Tournament`, by dense matrices: J less the mean of probes of like size in its
    round, regressed on which features are in, centered over those of the round. The coefficient and the weight in a
    linear model of the features of the round are standardized and added; the best go on."""
    sizes = [len(part.active) for part in plan.rounds]
    rounds = [plan.rounds[0].active.tolist()]
    rows, targets = [], []
    for number in range(len(sizes)):
        active = np.array(rounds[number])
        start, stop = ([0, *schedule.ends, len(values)][number + k] for k in (0, 1))
        probes = [plan.probe(i) for i in range(start, stop)]
        counts = np.array([len(probe) for probe in probes])
        block = np.zeros((len(probes), plan.n_features))
        for row, probe in zip(block, probes, strict=True):
            row[active] = -len(probe) / len(active)
            row[probe] += 1
        group = np.array([(counts < count).sum() // like_size for count in counts])
        j = np.array(values[start:stop])
        rows.append(block)
        targets.append(j - np.array([j[group == each].mean() for each in group]))
        if number == len(sizes) - 1:
            break
        X, z = np.vstack(rows), np.concatenate(targets)
        w = np.linalg.solve(X.T @ X + ridge * np.eye(plan.n_features), X.T @ z)[active]
        total = standardized(w) + share * standardized(linear_weights(active))
        order = sorted(range(len(active)), key=lambda k: -total[k])
        if sizes[number + 1] > schedule.protected_above:
            order.sort(key=lambda k: active[k] not in schedule.protected)
        order.sort(key=lambda k: active[k] not in schedule.paired)
        order.sort(key=lambda k: active[k] in schedule.copies)
        best = order[: sizes[number + 1]]
        rounds.append(sorted(active[best].tolist()))
    return rounds


def suggested_size(sizes, scores, all_scores=None):
    """The smallest size within one standard error, over all folds, of the best mean."""
    means, everything = scores.mean(axis=0), scores if all_scores is None else all_scores
    best = int(np.argmax(means))
    limit = means[best] - everything[:, best].std(ddof=1) / np.sqrt(len(everything))
    return next(int(size) for size, mean in zip(sizes, means, strict=True) if mean >= limit)


def representatives(columns, ranking):
    """The columns, best first, that are no near copies of a better one: 1 - |r| is above a tenth of its median."""

    def similarity(one, other):
        return abs(np.corrcoef(columns[one], columns[other])[0, 1])

    order = sorted(range(len(ranking)), key=lambda column: ranking[column])
    pairs = [(one, other) for one in order for other in order if one < other]
    limit = min(1 - 0.1 * np.median([1 - similarity(one, other) for one, other in pairs]), 0.9999)
    chosen = []
    for column in order:
        if all(similarity(column, other) < limit for other in chosen):
            chosen.append(column)
    return chosen


def direction(x, y):
    """Class with the highest mean of a feature, class with the lowest, and Hedges' g with its interval.

    L. V. Hedges, I. Olkin, *Statistical methods for meta-analysis*, 1985: g = (1 - 3 / (4 m - 1)) (a - b) / s with
    m = n + k - 2 degrees of freedom, and the variance (n + k) / (n k) + g^2 / (2 m).
    """
    groups = {}
    for value, label in zip(x, y, strict=True):
        if not np.isnan(value):
            groups.setdefault(label, []).append(value)
    high = max(sorted(groups), key=lambda label: np.mean(groups[label]))
    low = min(sorted(groups), key=lambda label: np.mean(groups[label]))
    one, other = groups[high], groups[low]
    n, k = len(one), len(other)
    freedom = n + k - 2
    inside = sum((v - np.mean(one)) ** 2 for v in one) + sum((v - np.mean(other)) ** 2 for v in other)
    g = (1 - 3 / (4 * freedom - 1)) * (np.mean(one) - np.mean(other)) / np.sqrt(inside / freedom)
    error = np.sqrt((n + k) / (n * k) + g**2 / (2 * freedom))
    return high, low, g, g - 1.959963984540054 * error, g + 1.959963984540054 * error


# ---- inference


def association_p_values(X, y, weights=None):
    """Share of all permutations of (y, weight) whose statistic is at least the observed one, for each column."""
    n_rows = len(y)
    weights = np.ones(n_rows) if weights is None else weights

    def normal(ranks):
        scores = np.array([NormalDist().inv_cdf((rank + 0.5) / n_rows) for rank in ranks])
        return (scores - scores.mean()) / scores.std()

    line = normal(np.arange(n_rows))
    functions = [line, line**2, line > 0.8, line < -0.8]
    functions = [(f - np.mean(f)) / (np.std(f) or 1.0) for f in functions]
    classes = np.unique(y)
    if len(classes) == n_rows:
        targets, shares = [normal(np.argsort(np.argsort(y)))], [1.0]
    else:
        targets = [(y == label).astype(float) for label in classes]
        shares = [1 - np.mean(y == label) for label in classes]
        if len(classes) == 2:
            targets, shares = targets[1:], [1.0]
    targets = [weights * (t - np.average(t, weights=weights)) for t in targets]

    def statistic(ranks, order):
        squares = []
        for function in functions:
            values = function[ranks]
            total = 0.0
            for target, share in zip(targets, shares, strict=True):
                error = np.sqrt((values**2).sum() * (target**2).sum() / (n_rows - 1))
                total += share * (values @ target[order] / error) ** 2 if error > 1e-9 else 0.0
            squares.append(total)
        return max(squares[0], max(squares[1:]) - 5.0)

    out = []
    for column in X.T:
        ranks = np.argsort(np.argsort(column))
        observed = statistic(ranks, np.arange(n_rows))
        null = [statistic(ranks, np.array(order)) for order in permutations(range(n_rows))]
        out.append(np.mean(np.array(null) >= observed - 1e-9))
    return np.array(out)


def inclusion_probabilities(gram, products, n_rows, log_prior, log_size, slab):
    """Probability of each atom in the posterior of a linear model, by adding up all models."""
    n_atoms, n_targets = products.shape
    totals, inside = 0.0, np.zeros(n_atoms)
    for code in range(2**n_atoms):
        members = [j for j in range(n_atoms) if code >> j & 1]
        if len(members) > len(log_size):
            continue
        value = sum(log_size[: len(members)]) + sum(log_prior[j] for j in members)
        system = gram[np.ix_(members, members)] + np.eye(len(members)) / slab
        value -= n_targets / 2 * (np.linalg.slogdet(system)[1] + len(members) * np.log(slab)) if members else 0.0
        for target in range(n_targets):
            b = products[members, target]
            value -= n_rows / 2 * np.log(n_rows - (b @ np.linalg.solve(system, b) if members else 0.0))
        weight = np.exp(value + n_rows / 2 * n_targets * np.log(n_rows))
        totals += weight
        inside[members] += weight
    return inside / totals


def inclusion_probabilities_for_classes(atoms, signs, log_prior, log_size, slab):
    """Probabilities for two classes; the likelihood is the probability that normal variables have these signs."""
    from scipy.stats import multivariate_normal

    n_rows, n_atoms = atoms.shape
    totals, inside = 0.0, np.zeros(n_atoms)
    for code in range(2**n_atoms):
        members = [j for j in range(n_atoms) if code >> j & 1]
        if len(members) > len(log_size):
            continue
        covariance = np.eye(n_rows) + slab * atoms[:, members] @ atoms[:, members].T + 1e4  # a vague intercept
        covariance = signs[:, None] * covariance * signs
        likelihood = multivariate_normal(np.zeros(n_rows), covariance, seed=0).cdf(np.zeros(n_rows))
        weight = likelihood * np.exp(sum(log_size[: len(members)]) + sum(log_prior[j] for j in members))
        totals += weight
        inside[members] += weight
    return inside / totals


def forward_selection(values, target, cost, most):
    """Greedy least squares with a price of 1.8 log(atoms) for a term: every step fits all candidates from scratch."""
    n_rows, n_atoms = values.shape

    def left_by(atoms):
        if not atoms:
            return float(target @ target)
        fit = values[:, atoms] @ np.linalg.lstsq(values[:, atoms], target, rcond=None)[0]
        return float(((target - fit) ** 2).sum())

    chosen, best, n_best = [], n_rows * np.log(left_by([]) / n_rows), 0
    while len(chosen) < most and len(chosen) - n_best < 4:
        left = left_by(chosen)
        gains = [
            -np.inf if atom in chosen else left - left_by([*chosen, atom]) - cost[atom] * left / n_rows
            for atom in range(n_atoms)
        ]
        if max(gains) <= 0:
            break
        chosen.append(int(np.argmax(gains)))
        price = len(chosen) * 1.8 * np.log(n_atoms) + cost[chosen].sum()
        value = n_rows * np.log(left_by(chosen) / n_rows) + price
        if value < best:
            best, n_best = value, len(chosen)
    return chosen[:n_best]


def strongest_pair(columns, targets):
    """The two columns whose product, without the columns and their squares, is most correlated with the target."""
    best, strongest = -1.0, None
    for one, two in combinations(range(columns.shape[1]), 2):
        a, b = columns[:, one], columns[:, two]
        others = np.column_stack([np.ones_like(a), a, b, a**2, b**2])
        product = a * b - others @ np.linalg.lstsq(others, a * b, rcond=None)[0]
        correlation = abs(np.corrcoef(product, targets[0])[0, 1])
        if correlation > best:
            best, strongest = correlation, (one, two)
    return strongest


def c45(X, y, confidence=0.25, min_leaf=2):
    """Quinlan 1993 for numbers: a leaf's label, or (feature, threshold, left, right); the literal recursion."""
    from scipy.optimize import brentq
    from scipy.stats import binom

    labels = sorted(set(y))

    def entropy(rows):
        shares = [sum(y[row] == label for row in rows) / len(rows) for label in labels]
        return -sum(share * np.log2(share) for share in shares if share > 0)

    def majority(rows):
        return max(labels, key=lambda label: (sum(y[row] == label for row in rows), -labels.index(label)))

    def pessimistic(rows):
        errors = sum(y[row] != majority(rows) for row in rows)
        if errors == len(rows):
            return float(len(rows))
        return len(rows) * brentq(lambda rate: binom.cdf(errors, len(rows), rate) - confidence, 1e-12, 1 - 1e-12)

    def best_split(rows, feature):
        values = sorted({X[row][feature] for row in rows})
        least, found, n_thresholds = max(min_leaf, min(25, int(0.1 * len(rows) / len(labels)))), None, 0
        for low, high in pairwise(values):
            left = [row for row in rows if X[row][feature] <= low]
            right = [row for row in rows if X[row][feature] > low]
            if min(len(left), len(right)) < least:
                continue
            n_thresholds += 1
            share = len(left) / len(rows)
            gain = entropy(rows) - share * entropy(left) - (1 - share) * entropy(right)
            if found is None or gain > found[0] + 1e-12:
                found = gain, share, (low + high) / 2, left, right
        if found is None:
            return None
        gain = found[0] - np.log2(n_thresholds) / len(rows)
        share = found[1]
        return gain, gain / (-share * np.log2(share) - (1 - share) * np.log2(1 - share)), *found[2:]

    def grown(rows):
        """The subtree and its pessimistic errors after pruning."""
        leaf = majority(rows), (pessimistic(rows) if confidence < 1 else np.inf)
        splits = {feature: best_split(rows, feature) for feature in range(len(X[0]))}
        useful = {feature: split for feature, split in splits.items() if split is not None and split[0] > 0}
        if len(rows) < 2 * min_leaf or len({y[row] for row in rows}) == 1 or not useful:
            return leaf
        mean = sum(split[0] for split in useful.values()) / len(useful)
        allowed = [feature for feature, split in useful.items() if split[0] >= mean - 1e-9]
        feature = max(allowed, key=lambda each: (useful[each][1], -each))
        _, _, threshold, left, right = useful[feature]
        children = grown(left), grown(right)
        errors = children[0][1] + children[1][1]
        if confidence < 1 and leaf[1] <= errors + 0.1:
            return leaf
        return (feature, float(threshold), children[0][0], children[1][0]), errors

    return grown(list(range(len(X))))[0]


def c45_predict(tree, row):
    while isinstance(tree, tuple):
        feature, threshold, left, right = tree
        tree = left if row[feature] <= threshold else right
    return tree


# ---- survival


def martingale_residuals(event, time):
    """Events minus the sum over earlier times of events divided by the number of rows at risk."""
    residuals = []
    for happened, end in zip(event, time, strict=True):
        expected = 0.0
        for moment in sorted({t for t in time if t <= end}):
            n_events = sum(1 for e, t in zip(event, time, strict=True) if e and t == moment)
            expected += n_events / sum(1 for t in time if t >= moment)
        residuals.append(float(happened) - expected)
    return np.array(residuals)


def concordance(event, time, risk):
    """Share of the pairs whose order of events is known that the risk puts in the same order."""
    agreeing = total = 0.0
    for i in range(len(time)):
        for j in range(len(time)):
            if event[i] and (time[i] < time[j] or (time[i] == time[j] and not event[j])):
                total += 1
                agreeing += 1.0 if risk[i] > risk[j] else 0.5 if risk[i] == risk[j] else 0.0
    return agreeing / total if total else 0.5


def cox_log_likelihood(beta, X, event, time, penalty):
    """Breslow's partial log likelihood minus half the penalty on squared coefficients."""
    line = X @ beta
    value = -0.5 * penalty * float(beta @ beta)
    for i in range(len(time)):
        if event[i]:
            value += line[i] - np.log(sum(np.exp(line[j]) for j in range(len(time)) if time[j] >= time[i]))
    return value


def adjusted_martingale_residuals(event, time, covariates):
    """Events minus those expected by a Cox model with covariates and Breslow's hazard."""
    start = np.zeros(covariates.shape[1])
    beta = minimize(lambda beta: -cox_log_likelihood(beta, covariates, event, time, 0.0), start, tol=1e-12).x
    risk = np.exp(covariates @ beta)
    residuals = []
    for i in range(len(time)):
        hazard = 0.0
        for moment in sorted({t for t, e in zip(time, event, strict=True) if e and t <= time[i]}):
            n_events = sum(1 for e, t in zip(event, time, strict=True) if e and t == moment)
            hazard += n_events / risk[time >= moment].sum()
        residuals.append(float(event[i]) - hazard * risk[i])
    return np.array(residuals)
