"""A slow, literal twin of every method, straight from the papers' equations. Read this to know what is meant."""

from fractions import Fraction

import numpy as np


def daf0(subsets, values, n_features):
    """2011, eq. 5-7."""
    scores = np.full(n_features, np.nan)
    for f in range(n_features):
        inside = [value for subset, value in zip(subsets, values, strict=True) if f in set(subset)]
        outside = [value for subset, value in zip(subsets, values, strict=True) if f not in set(subset)]
        if inside and outside:
            scores[f] = np.mean(inside) - np.mean(outside)
    return scores


def daf1(subsets, values, n_features):
    """2011, eq. 8-10."""
    scores = np.full(n_features, np.nan)
    for f in range(n_features):
        inside = [value for subset, value in zip(subsets, values, strict=True) if f in set(subset)]
        outside = [value for subset, value in zip(subsets, values, strict=True) if f not in set(subset)]
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


def welch(subsets, values, n_features):
    """Welch's standard error of DAF0, with the population variances of eq. 8 and 9."""
    errors = np.full(n_features, np.nan)
    for f in range(n_features):
        inside = [value for subset, value in zip(subsets, values, strict=True) if f in set(subset)]
        outside = [value for subset, value in zip(subsets, values, strict=True) if f not in set(subset)]
        if inside and outside:
            errors[f] = np.sqrt(np.var(inside) / len(inside) + np.var(outside) / len(outside))
    return errors


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


def knn_score(X, y, splits, n_neighbors, classification):
    """k-NN by looking at every pair; the lower row wins among equal distances, the lower class among equal votes."""
    X = np.asarray(X.todense() if hasattr(X, "todense") else X, dtype=np.float64)
    scores = []
    for train, test in splits:
        predicted = []
        for row in test:
            distances = [(float(np.sum((X[row] - X[other]) ** 2)), other) for other in train]
            nearest = [y[other] for _, other in sorted(distances)[:n_neighbors]]
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


def floating_search(score, n_features, size, floating=True):
    """Pudil et al. 1994: add the best; then drop as long as that beats the best known of its size.

    "strict": and the larger subset, and never the feature just added.
    """
    best, current = {}, []
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
