"""Cut points of one column after another: the best multisplit (exact), top-down, and by description length.

Entropies are sums of c log2 c, kept as whole numbers: sums are exact, so ties are ties in any order of summation.
Between boundary positions i and j (blocks i .. j - 1) ``cum[j, k] - cum[i, k]`` samples are of class k, the last column
counts all; a segment's cost is its number of samples times its class entropy.
"""

import heapq
import math
from functools import cache

import numpy as np

from .jit import njit_cached, njit_helper
from .order import sort_few

FINEST = 1  # boundaries in a cell that can be split no more
INFINITE = np.int64(2**62)


@cache
def entropy_table(n: int) -> tuple[np.ndarray, float]:
    """c log2 c for c = 0 .. n as whole numbers, and how many of them make one bit."""
    scale = 2.0 ** (57 - math.ceil(math.log2(max(2.0, n * math.log2(max(2, n))))))
    terms = np.zeros(n + 1, np.int64)
    _fill_terms(scale, terms)
    return terms, scale


@njit_cached
def _fill_terms(scale, terms):
    """Logarithms are sums over prime factors, so that log a + log b = log a b holds exactly here too."""
    n = len(terms) - 1
    factor = np.zeros(n + 1, np.int64)
    for p in range(2, n + 1):
        if factor[p] == 0:
            for c in range(p, n + 1, p):
                if factor[c] == 0:
                    factor[c] = p
            terms[p] = np.int64(np.rint(math.log2(float(p)) * scale))
        else:
            terms[p] = terms[factor[p]] + terms[p // factor[p]]
    for c in range(n + 1):
        terms[c] *= c


@njit_cached
def optimal(values, order, y, n_classes, table, scale, cuts, n_cuts):
    """The multisplit with the largest balanced gain. Rows of ``values`` are columns of X; ``order`` sorts each."""
    work = _workspace(values.shape[1], n_classes)
    for column in range(values.shape[0]):
        n_blocks = _blocks(values[column], order[column], y, n_classes, work)
        n_cuts[column] = _best_multisplit(n_blocks, n_classes, table, work)
        _write_cuts(work, n_cuts[column], cuts[column])


@njit_cached
def greedy(values, order, y, n_classes, table, scale, cuts, n_cuts):
    """Cut where the information gains most, as long as the balanced gain rises."""
    work = _workspace(values.shape[1], n_classes)
    for column in range(values.shape[0]):
        n_blocks = _blocks(values[column], order[column], y, n_classes, work)
        n_cuts[column] = _top_down(n_blocks, n_classes, table, scale, work)
        _write_cuts(work, n_cuts[column], cuts[column])


@njit_cached
def mdl(values, order, y, n_classes, table, scale, cuts, n_cuts):
    """Cut in two as long as that pays for its own description (Fayyad and Irani)."""
    work = _workspace(values.shape[1], n_classes)
    for column in range(values.shape[0]):
        n_blocks = _blocks(values[column], order[column], y, n_classes, work)
        n_cuts[column] = _by_description_length(n_blocks, n_classes, table, scale, work)
        _write_cuts(work, n_cuts[column], cuts[column])


@njit_cached
def every_value(values, order, y, n_classes, table, scale, cuts, n_cuts):
    """A cut between any two distinct values: what is discrete already stays as it is."""
    for column in range(values.shape[0]):
        found = 0
        for place in range(values.shape[1] - 1):
            low, high = values[column, order[column, place]], values[column, order[column, place + 1]]
            if low < high:
                cuts[column, found] = between(low, high)
                found += 1
        n_cuts[column] = found


@njit_helper
def _workspace(n, n_classes):
    """cum, edges (the cut at each boundary), path, best path, and nine rows of numbers for the search."""
    return (
        np.zeros((n + 1, n_classes + 1), np.int64),
        np.zeros(n + 1),
        np.zeros(n + 1, np.int64),
        np.zeros(n + 1, np.int64),
        np.zeros((9, n + 2), np.int64),
    )


@njit_helper
def _write_cuts(work, n_cuts, out):
    edges, chosen = work[1], work[3]
    for place in range(n_cuts):
        out[place] = edges[chosen[place]]


@njit_helper
def between(low, high):
    middle = low + (high - low) / 2
    return middle if middle < high else low


@njit_helper
def _blocks(values, order, y, n_classes, work):
    """Fill ``cum`` and ``edges``; neighbouring values whose samples all share one class are one block."""
    cum, edges = work[0], work[1]
    n = len(values)
    n_blocks = 0
    pure_before = -1
    start = 0
    while start < n:
        value = values[order[start]]
        stop = start
        pure = y[order[start]]
        while stop < n and values[order[stop]] == value:
            if y[order[stop]] != pure:
                pure = -1
            stop += 1
        if n_blocks == 0 or pure < 0 or pure != pure_before:
            if n_blocks > 0:
                edges[n_blocks] = between(values[order[start - 1]], value)
            for k in range(n_classes + 1):
                cum[n_blocks + 1, k] = cum[n_blocks, k] if n_blocks > 0 else 0
            n_blocks += 1
        for place in range(start, stop):
            cum[n_blocks, y[order[place]]] += 1
        cum[n_blocks, n_classes] += stop - start
        pure_before = pure
        start = stop
    return n_blocks


@njit_helper
def _cost(cum, n_classes, table, i, j):
    upto, before = cum[j], cum[i]
    total = table[np.uint64(upto[n_classes] - before[n_classes])]
    for k in range(np.uint64(n_classes)):
        total -= table[np.uint64(upto[k] - before[k])]
    return total


@njit_helper
def _best_cut(cum, n_classes, table, i, j, first, stop):
    """The boundary first, ..., stop - 1 with the lowest cost of both sides, from i and up to j, and that cost."""
    best, at = INFINITE, -1
    for c in range(first, stop):
        cost = _cost(cum, n_classes, table, i, c) + _cost(cum, n_classes, table, c, j)
        if cost < best:
            best, at = cost, c
    return at, best


@njit_helper
def _top_down(n_blocks, n_classes, table, scale, work):
    cum, chosen, rows = work[0], work[3], work[4]
    is_cut = rows[0]
    for boundary in range(n_blocks + 1):
        is_cut[boundary] = 0
    waiting = [_offer(cum, n_classes, table, 0, n_blocks)]
    n_cuts, information, balanced = 0, np.int64(0), 0.0
    while len(waiting) > 0:
        lost, cut, begin, end = heapq.heappop(waiting)
        wider = float(information - lost) / math.log2(n_cuts + 2.0)
        if cut < 0 or wider <= balanced * (1 + 1e-12):
            break
        information -= lost
        balanced = wider
        is_cut[cut] = 1
        n_cuts += 1
        for i, j in ((begin, cut), (cut, end)):
            if j - i > 1:
                heapq.heappush(waiting, _offer(cum, n_classes, table, i, j))
    found = 0
    for boundary in range(n_blocks):
        if is_cut[boundary]:
            chosen[found] = boundary
            found += 1
    return n_cuts


@njit_helper
def _offer(cum, n_classes, table, i, j):
    """An interval in a queue: the best cut's gain, the largest first, then the cut, and the interval."""
    cut, cost = _best_cut(cum, n_classes, table, i, j, i + 1, j)
    return cost - _cost(cum, n_classes, table, i, j), cut, i, j


@njit_helper
def _by_description_length(n_blocks, n_classes, table, scale, work):
    cum, chosen, rows = work[0], work[3], work[4]
    begin, end = rows[0], rows[1]
    begin[0], end[0] = 0, n_blocks
    waiting = 1
    n_cuts = 0
    while waiting > 0:
        waiting -= 1
        i, j = begin[waiting], end[waiting]
        c, cost = _best_cut(cum, n_classes, table, i, j, i + 1, j)
        if c < 0:
            continue
        whole = _cost(cum, n_classes, table, i, j)
        n = float(cum[j, n_classes] - cum[i, n_classes])
        present = _n_present(cum, n_classes, i, j)
        delta = math.log2(3.0**present - 2.0) if present < 600 else present * math.log2(3.0)
        delta -= _n_present(cum, n_classes, i, j) * (whole / scale / n)
        left = float(cum[c, n_classes] - cum[i, n_classes])
        delta += _n_present(cum, n_classes, i, c) * (_cost(cum, n_classes, table, i, c) / scale / left)
        delta += _n_present(cum, n_classes, c, j) * (_cost(cum, n_classes, table, c, j) / scale / (n - left))
        bits = math.log2(n - 1.0) + delta
        if (whole - cost) / scale > bits + 1e-12 * n:
            chosen[n_cuts] = c
            n_cuts += 1
            begin[waiting], end[waiting] = i, c
            begin[waiting + 1], end[waiting + 1] = c, j
            waiting += 2
    sort_few(chosen[:n_cuts])
    return n_cuts


@njit_helper
def _n_present(cum, n_classes, i, j):
    present = 0
    for k in range(n_classes):
        present += cum[j, k] > cum[i, k]
    return present


@njit_helper
def _best_multisplit(n_blocks, n_classes, table, work):
    """The number of cuts of the multisplit with the largest I / log2 kappa; its boundaries into ``chosen``.

    The best kappa lies on the upper concave hull of the largest information I_kappa by kappa, since log2 kappa is
    concave. A corner of the hull is the best multisplit at a price per cut; between two corners nothing lies above
    either corner's price line, and where the lines' crossing falls short of the best ratio nothing can win.
    """
    cum, path, chosen = work[0], work[2], work[3]
    if n_blocks < 2:
        return 0
    whole = _cost(cum, n_classes, table, 0, n_blocks)
    finest = np.int64(0)
    for t in range(n_blocks):
        finest += _cost(cum, n_classes, table, t, t + 1)
    slack = 1e-12 * whole
    c, cost = _best_cut(cum, n_classes, table, 0, n_blocks, 1, n_blocks)
    chosen[0] = c
    n_cuts = 1
    best = float(whole - cost)
    if n_blocks == 2:
        return 1
    full = float(whole - finest) / math.log2(n_blocks)
    if full > best + slack:
        best = full
        n_cuts = n_blocks - 1
        for t in range(1, n_blocks):
            chosen[t - 1] = t
    # Corners between which something may still win: kappa, information and price of the lower, then of the higher.
    waiting = [(1, 0.0, np.inf, n_blocks, float(whole - finest), 0.0, False)]
    while len(waiting) > 0:
        low, low_gain, low_price, high, high_gain, high_price, by_chord = waiting.pop()
        first, last = _open(low, low_gain, low_price, high, high_gain, high_price, best + slack)
        if first > last:
            continue
        price = (high_gain - low_gain) / (high - low)
        if not by_chord:
            tangent = best / (first * math.log(2.0))
            if last - first > 1e-3:
                tangent = best * (math.log2(last) - math.log2(first)) / (last - first)
            if high_price < tangent < low_price:
                price = tangent
        price = math.floor(price)
        lowest = min(best * math.log2(first) - price * (first - 1.0), best * math.log2(last) - price * (last - 1.0))
        kappa, cost = _priced(n_blocks, n_classes, table, np.int64(price), float(whole) - lowest, work)
        if kappa == 0:
            continue
        gain = float(whole - cost)
        ratio = gain / math.log2(kappa) if kappa > 1 else 0.0
        if ratio > best + slack:
            best = ratio
            n_cuts = kappa - 1
            for t in range(n_cuts):
                chosen[t] = path[t]
        if low < kappa < high:
            waiting.append((low, low_gain, low_price, kappa, gain, price, False))
            waiting.append((kappa, gain, price, high, high_gain, high_price, False))
        elif by_chord:
            continue
        elif kappa <= low:
            waiting.append((low, low_gain, price, high, high_gain, high_price, True))
        else:
            waiting.append((low, low_gain, low_price, high, high_gain, price, True))
    return n_cuts


@njit_helper
def _open(low, low_gain, low_price, high, high_gain, high_price, best):
    """The range of kappa in which both corners' price lines are above the best ratio: first > last where it is none."""
    first, last = max(low + 1.0, 3.0), high - 1.0
    if first > last:
        return first, last
    if low_price < np.inf and low_gain + low_price * (first - low) <= best * math.log2(first):
        shut, open_ = first, last + 1.0
        for _ in range(50):
            middle = (shut + open_) / 2
            if low_gain + low_price * (middle - low) <= best * math.log2(middle):
                shut = middle
            else:
                open_ = middle
        first = shut
    if high_gain - high_price * (high - last) <= best * math.log2(last):
        shut, open_ = last, first - 1.0
        for _ in range(50):
            middle = (shut + open_) / 2
            if middle < 1.0 or high_gain - high_price * (high - middle) > best * math.log2(middle):
                open_ = middle
            else:
                shut = middle
        last = shut
    return first, last


@njit_helper
def _priced(n_blocks, n_classes, table, price, enough, work):
    """The multisplit with the lowest cost + price per cut: (kappa, cost), its boundaries into ``path``.

    Boundaries are looked at in cells. A cell that holds a cut saves at most what the best cut inside it saves, or,
    for twice the price, all; cells through which no solution can be as good as one already known are dropped, the
    others halved, until each holds one boundary. kappa is 0 once the lowest is known to be ``enough`` or more.
    """
    cum, path, rows = work[0], work[2], work[4]
    first, last, inside, weight, cost = rows[0], rows[1], rows[2], rows[3], rows[4]
    before, alive, after, totals = rows[5], rows[6], rows[7], rows[8]
    per_sample = float(price) / max(1.0, float(table[2]) / 2.0)
    size = FINEST
    while size < per_sample / 2.0 and size * 64 < n_blocks:
        size *= 2
    m = 0
    for start in range(1, n_blocks, size):
        m += 1
        first[m], last[m] = start, min(start + size - 1, n_blocks - 1)
    known = INFINITE
    while True:
        for t in range(1, m + 1):
            at, saved = first[t], np.int64(0)
            if last[t] > first[t]:
                at, saved = _best_cut(cum, n_classes, table, first[t], last[t], first[t], last[t] + 1)
            inside[t] = at
            weight[t] = price + min(saved, price)
        total = _forward(cum, n_classes, table, first, last, weight, m, n_blocks, cost, before, alive, totals)
        if float(total) >= enough:
            return 0, total
        n_cuts = _read_path(before, m, path)
        if size == FINEST:
            for t in range(n_cuts):
                path[t] = first[path[t]]
            return n_cuts + 1, total - n_cuts * price
        for t in range(n_cuts):
            path[t] = inside[path[t]]
        known = min(known, _settle(cum, n_classes, table, path, n_cuts, n_blocks, size) + n_cuts * price)
        _backward(cum, n_classes, table, first, last, weight, m, n_blocks, after, alive, totals)
        limit = known + (known >> 40)
        kept = 0
        for t in range(1, m + 1):
            if cost[t] + after[t] - weight[t] <= limit:
                kept += 1
                first[kept], last[kept] = first[t], last[t]
        place = 2 * kept
        for t in range(kept, 0, -1):
            a, e = first[t], last[t]
            middle = (a + e) // 2
            if e > middle:
                first[place], last[place] = middle + 1, e
                place -= 1
            first[place], last[place] = a, middle
            place -= 1
        m = 2 * kept - place
        for t in range(1, m + 1):
            first[t], last[t] = first[t + place], last[t + place]
        size //= 2


@njit_helper
def _forward(cum, n_classes, table, first, last, weight, m, n_blocks, cost, before, alive, totals):
    """cost[t]: the least of everything before and in cell t if it holds a cut. The whole, with its path in before."""
    last[0], cost[0] = 0, 0
    alive[0] = 0
    n_alive = 1
    for t in range(1, m + 2):
        end = first[t] if t <= m else n_blocks
        best, source = INFINITE, 0
        for place in range(n_alive):
            s = alive[place]
            totals[place] = cost[s] + _cost(cum, n_classes, table, last[s], end)
            if totals[place] < best:
                best, source = totals[place], s
        before[t] = source
        if t > m:
            return best
        cost[t] = best + weight[t]
        kept = 0
        for place in range(n_alive):
            if totals[place] <= cost[t]:
                alive[kept] = alive[place]
                kept += 1
        alive[kept] = t
        n_alive = kept + 1
    return best


@njit_helper
def _backward(cum, n_classes, table, first, last, weight, m, n_blocks, after, alive, totals):
    """after[t]: the least of everything in and after cell t if it holds a cut."""
    first[m + 1], after[m + 1] = n_blocks, 0
    alive[0] = m + 1
    n_alive = 1
    for t in range(m, 0, -1):
        best = INFINITE
        for place in range(n_alive):
            s = alive[place]
            totals[place] = after[s] + _cost(cum, n_classes, table, last[t], first[s])
            best = min(best, totals[place])
        after[t] = best + weight[t]
        kept = 0
        for place in range(n_alive):
            if totals[place] <= after[t]:
                alive[kept] = alive[place]
                kept += 1
        alive[kept] = t
        n_alive = kept + 1


@njit_helper
def _read_path(before, m, path):
    count = 0
    t = before[m + 1]
    while t > 0:
        path[count] = t
        count += 1
        t = before[t]
    for place in range(count // 2):
        path[place], path[count - 1 - place] = path[count - 1 - place], path[place]
    return count


@njit_helper
def _settle(cum, n_classes, table, path, n_cuts, n_blocks, reach):
    """Move each cut to its best place within reach between its neighbours; the cost of the result."""
    total = np.int64(0)
    for t in range(n_cuts):
        low = path[t - 1] if t > 0 else 0
        high = path[t + 1] if t + 1 < n_cuts else n_blocks
        first, last = max(low + 1, path[t] - reach), min(high - 1, path[t] + reach)
        path[t], _ = _best_cut(cum, n_classes, table, low, high, first, last + 1)
    for t in range(n_cuts + 1):
        low = path[t - 1] if t > 0 else 0
        high = path[t] if t < n_cuts else n_blocks
        total += _cost(cum, n_classes, table, low, high)
    return total
