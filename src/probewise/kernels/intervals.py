"""Cut points of numeric columns: the best multisplit (exact), top-down splitting, and minimum description length.

Entropies are sums of c log2 c, kept as whole numbers: sums are exact, so ties do not depend on the order of summation.
The sorted values of a column form blocks. ``cum[j, k] - cum[i, k]`` samples of class k lie between boundaries i and j
(in blocks i .. j - 1); the last column of ``cum`` counts all classes. The cost of such a segment is its number of
samples times its class entropy.
"""

import heapq
import math
from collections import namedtuple
from functools import cache

import numpy as np

from .jit import njit_cached, njit_helper, sort_few

FINEST = 1  # boundaries in a cell that cannot be split any more
INFINITE = np.int64(2**62)

# Counts of a column and the cut at each boundary; boundaries of a multisplit and of the best one; nine rows for cells.
Workspace = namedtuple("Workspace", "cum edges path chosen cells")


@cache
def entropy_table(n: int) -> tuple[np.ndarray, float]:
    """c log2 c for c = 0 .. n as whole numbers, and the whole number that stands for one bit."""
    scale = 2.0 ** (57 - math.ceil(math.log2(max(2.0, n * math.log2(max(2, n))))))
    terms = np.zeros(n + 1, np.int64)
    _fill_terms(scale, terms)
    return terms, scale


@njit_cached
def _fill_terms(scale, terms):
    """Logarithms are sums over prime factors, so that log a + log b = log a b holds exactly."""
    n = len(terms) - 1
    for p in range(2, n + 1):
        if terms[p] == 0:  # p is prime
            logarithm, power = np.int64(np.rint(math.log2(float(p)) * scale)), p
            while power <= n:
                for c in range(power, n + 1, power):
                    terms[c] += logarithm
                power *= p
    for c in range(n + 1):
        terms[c] *= c


@njit_cached
def optimal(values, order, y, n_classes, table, scale, cuts, n_cuts):
    """The multisplit with the largest balanced gain, for columns of X (rows of ``values``) sorted by ``order``."""
    work = _workspace(values.shape[1], n_classes)
    for column in range(values.shape[0]):
        n_blocks = _blocks(values[column], order[column], y, n_classes, work)
        n_cuts[column] = _best_multisplit(n_blocks, n_classes, table, work)
        _write_cuts(work, n_cuts[column], cuts[column])


@njit_cached
def greedy(values, order, y, n_classes, table, scale, cuts, n_cuts):
    """Cut where the information gain is largest, as long as the balanced gain rises."""
    work = _workspace(values.shape[1], n_classes)
    for column in range(values.shape[0]):
        n_blocks = _blocks(values[column], order[column], y, n_classes, work)
        n_cuts[column] = _top_down(n_blocks, n_classes, table, work)
        _write_cuts(work, n_cuts[column], cuts[column])


@njit_cached
def mdl(values, order, y, n_classes, table, scale, cuts, n_cuts):
    """Cut in two as long as the gain exceeds the description length of the cut (Fayyad and Irani)."""
    work = _workspace(values.shape[1], n_classes)
    for column in range(values.shape[0]):
        n_blocks = _blocks(values[column], order[column], y, n_classes, work)
        n_cuts[column] = _by_description_length(n_blocks, n_classes, table, scale, work)
        _write_cuts(work, n_cuts[column], cuts[column])


@njit_cached
def every_value(values, order, y, n_classes, table, scale, cuts, n_cuts):
    """Cut between any two distinct values, for columns that are discrete already."""
    for column in range(values.shape[0]):
        count = 0
        for position in range(values.shape[1] - 1):
            low, high = values[column, order[column, position]], values[column, order[column, position + 1]]
            if low < high:
                cuts[column, count] = between(low, high)
                count += 1
        n_cuts[column] = count


@njit_helper
def _workspace(n, n_classes):
    path, chosen = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    cum, cells = np.zeros((n + 1, n_classes + 1), np.int64), np.zeros((9, n + 2), np.int64)
    return Workspace(cum, np.zeros(n + 1), path, chosen, cells)


@njit_helper
def _write_cuts(work, n_cuts, out):
    for number in range(n_cuts):
        out[number] = work.edges[work.chosen[number]]


@njit_helper
def between(low, high):
    """A number x with low <= x < high, halfway if possible."""
    middle = low + (high - low) / 2
    return middle if middle < high else low


@njit_helper
def _blocks(values, order, y, n_classes, work):
    """Fill ``cum`` and ``edges``; adjacent values whose samples all share one class form one block."""
    cum, edges = work.cum, work.edges
    n = len(values)
    n_blocks = 0
    class_before = -1  # of a pure block; -1 after a mixed one
    start = 0
    while start < n:
        value = values[order[start]]
        stop = start
        block_class = y[order[start]]
        while stop < n and values[order[stop]] == value:
            if y[order[stop]] != block_class:
                block_class = -1
            stop += 1
        if n_blocks == 0 or block_class < 0 or block_class != class_before:
            if n_blocks > 0:
                edges[n_blocks] = between(values[order[start - 1]], value)
            for k in range(n_classes + 1):
                cum[n_blocks + 1, k] = cum[n_blocks, k] if n_blocks > 0 else 0
            n_blocks += 1
        for position in range(start, stop):
            cum[n_blocks, y[order[position]]] += 1
        cum[n_blocks, n_classes] += stop - start
        class_before = block_class
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
    """The boundary among first .. stop - 1 that cuts segment i, j at the lowest cost of both sides, and that cost."""
    best, at = INFINITE, -1
    for c in range(first, stop):
        cost = _cost(cum, n_classes, table, i, c) + _cost(cum, n_classes, table, c, j)
        if cost < best:
            best, at = cost, c
    return at, best


@njit_helper
def _top_down(n_blocks, n_classes, table, work):
    cum, chosen, is_cut = work.cum, work.chosen, work.cells[0]
    is_cut[: n_blocks + 1] = 0
    queue = [_split(cum, n_classes, table, 0, n_blocks)]
    n_cuts, information, balanced = 0, np.int64(0), 0.0
    while len(queue) > 0:
        minus_gain, cut, begin, end = heapq.heappop(queue)
        wider = float(information - minus_gain) / math.log2(n_cuts + 2.0)
        if cut < 0 or wider <= balanced * (1 + 1e-12):
            break
        information -= minus_gain
        balanced = wider
        is_cut[cut] = 1
        n_cuts += 1
        for i, j in ((begin, cut), (cut, end)):
            if j - i > 1:
                heapq.heappush(queue, _split(cum, n_classes, table, i, j))
    count = 0
    for boundary in range(n_blocks):
        if is_cut[boundary]:
            chosen[count] = boundary
            count += 1
    return n_cuts


@njit_helper
def _split(cum, n_classes, table, i, j):
    """Queue item for segment i, j: minus the gain of its best cut, the cut, and the segment."""
    cut, cost = _best_cut(cum, n_classes, table, i, j, i + 1, j)
    return cost - _cost(cum, n_classes, table, i, j), cut, i, j


@njit_helper
def _by_description_length(n_blocks, n_classes, table, scale, work):
    cum, chosen, begin, end = work.cum, work.chosen, work.cells[0], work.cells[1]
    begin[0], end[0] = 0, n_blocks
    n_open, n_cuts = 1, 0
    while n_open > 0:
        n_open -= 1
        i, j = begin[n_open], end[n_open]
        c, cost = _best_cut(cum, n_classes, table, i, j, i + 1, j)
        if c < 0:
            continue
        whole = _cost(cum, n_classes, table, i, j)
        n = float(cum[j, n_classes] - cum[i, n_classes])
        present = _n_present(cum, n_classes, i, j)
        delta = math.log2(3.0**present - 2.0) if present < 600 else present * math.log2(3.0)
        delta -= present * (whole / scale / n)
        left = float(cum[c, n_classes] - cum[i, n_classes])
        delta += _n_present(cum, n_classes, i, c) * (_cost(cum, n_classes, table, i, c) / scale / left)
        delta += _n_present(cum, n_classes, c, j) * (_cost(cum, n_classes, table, c, j) / scale / (n - left))
        bits = math.log2(n - 1.0) + delta
        if (whole - cost) / scale > bits + 1e-12 * n:
            chosen[n_cuts] = c
            n_cuts += 1
            begin[n_open], end[n_open] = i, c
            begin[n_open + 1], end[n_open + 1] = c, j
            n_open += 2
    sort_few(chosen[:n_cuts])
    return n_cuts


@njit_helper
def _n_present(cum, n_classes, i, j):
    """Number of classes between boundaries i and j."""
    present = 0
    for k in range(n_classes):
        present += cum[j, k] > cum[i, k]
    return present


@njit_helper
def _best_multisplit(n_blocks, n_classes, table, work):
    """Number of cuts of the multisplit with the largest I / log2 kappa; its boundaries are written to ``chosen``.

    The best kappa lies on the upper concave hull of the largest information I_kappa by kappa, since log2 kappa is
    concave. A corner of the hull is the best multisplit at a price per cut. Between two corners nothing lies above
    either corner's price line, and where both lines fall short of the best ratio nothing can win.
    """
    cum, path, chosen = work.cum, work.path, work.chosen
    if n_blocks < 2:
        return 0
    start = np.int64(0)  # a plain 0 would make numba compile `_cost` twice
    whole = _cost(cum, n_classes, table, start, n_blocks)
    finest = np.int64(0)
    for t in range(n_blocks):
        finest += _cost(cum, n_classes, table, t, t + 1)
    slack = 1e-12 * whole
    c, cost = _best_cut(cum, n_classes, table, start, n_blocks, start + 1, n_blocks)
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
    # Pairs of corners between which a multisplit may still win: kappa, information and price of the lower corner and of
    # the higher one, and whether the next price to try is the slope of the chord between them.
    queue = [(1, 0.0, np.inf, n_blocks, float(whole - finest), 0.0, False)]
    while len(queue) > 0:
        low, low_gain, low_price, high, high_gain, high_price, by_chord = queue.pop()
        first, last = _open_range(low, low_gain, low_price, high, high_gain, high_price, best + slack)
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
            queue.append((low, low_gain, low_price, kappa, gain, price, False))
            queue.append((kappa, gain, price, high, high_gain, high_price, False))
        elif by_chord:
            continue
        elif kappa <= low:
            queue.append((low, low_gain, price, high, high_gain, high_price, True))
        else:
            queue.append((low, low_gain, low_price, high, high_gain, price, True))
    return n_cuts


@njit_helper
def _open_range(low, low_gain, low_price, high, high_gain, high_price, best):
    """The range of kappa in which both corners' price lines are above the best ratio; first > last if it is empty."""
    first, last = max(low + 1.0, 3.0), high - 1.0
    if first <= last and low_price < np.inf:
        first = _last_below(low, low_gain, low_price, best, first, last + 1.0)
    if first <= last:
        last = _last_below(high, high_gain, high_price, best, last, first - 1.0)
    return first, last


@njit_helper
def _last_below(corner, gain, price, best, start, end):
    """How far from ``start`` toward ``end`` the price line through a corner stays at or below best * log2 kappa."""
    if gain + price * (start - corner) > best * math.log2(start):
        return start
    below, above = start, end
    for _ in range(50):
        middle = (below + above) / 2
        if gain + price * (middle - corner) <= best * math.log2(middle):
            below = middle
        else:
            above = middle
    return below


@njit_helper
def _priced(n_blocks, n_classes, table, price, enough, work):
    """The multisplit with the lowest cost + price per cut: (kappa, cost); its boundaries are written to ``path``.

    The search starts with cells of several boundaries, which makes it 7 times as fast on 1,000 rows. A cell that holds
    a cut saves at most what the best cut inside it saves, or, for twice the price, everything. Cells through which no
    multisplit can be as good as a known one are dropped and the others halved, until each holds one boundary. kappa is
    0 as soon as the lowest cost is known to be ``enough`` or more.
    """
    cum, path, cells = work.cum, work.path, work.cells
    first, last, inside, weight, cost = cells[0], cells[1], cells[2], cells[3], cells[4]
    before, after, alive, totals = cells[5], cells[6], cells[7], cells[8]
    per_sample = float(price) / max(1.0, float(table[2]) / 2.0)
    size = FINEST
    while size < per_sample / 2.0 and size * 64 < n_blocks:
        size *= 2
    m = np.int64(0)  # a plain 0 would make numba compile the functions below twice
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
        for t in range(n_cuts):
            path[t] = inside[path[t]]
        if size == FINEST:
            return n_cuts + 1, total - n_cuts * price
        known = min(known, _path_cost(cum, n_classes, table, path, n_cuts, n_blocks) + n_cuts * price)
        _backward(cum, n_classes, table, first, last, weight, m, n_blocks, after, alive, totals)
        limit = known + (known >> 40)
        kept = 0
        for t in range(1, m + 1):
            if cost[t] + after[t] - weight[t] <= limit:
                kept += 1
                first[kept], last[kept] = first[t], last[t]
        m = _halve_cells(first, last, kept)
        size //= 2


@njit_helper
def _halve_cells(first, last, n_cells):
    """Split cells 1 .. n_cells in two, from the last one down because in place; returns their number."""
    to = 2 * n_cells
    for t in range(n_cells, 0, -1):
        begin, end = first[t], last[t]
        middle = (begin + end) // 2
        if end > middle:
            first[to], last[to] = middle + 1, end
            to -= 1
        first[to], last[to] = begin, middle
        to -= 1
    for t in range(1, 2 * n_cells - to + 1):
        first[t], last[t] = first[t + to], last[t + to]
    return 2 * n_cells - to


@njit_helper
def _forward(cum, n_classes, table, first, last, weight, m, n_blocks, cost, before, alive, totals):
    """cost[t] is the least cost before and in cell t if it holds a cut; returns the cost of the best path."""
    last[0], cost[0], alive[0] = 0, 0, 0
    n_alive = 1
    for t in range(1, m + 2):
        end = first[t] if t <= m else n_blocks
        best, source = INFINITE, 0
        for position in range(n_alive):
            s = alive[position]
            totals[position] = cost[s] + _cost(cum, n_classes, table, last[s], end)
            if totals[position] < best:
                best, source = totals[position], s
        before[t] = source
        if t > m:
            return best
        cost[t] = best + weight[t]
        kept = 0
        for position in range(n_alive):
            if totals[position] <= cost[t]:
                alive[kept] = alive[position]
                kept += 1
        alive[kept] = t
        n_alive = kept + 1
    return best


@njit_helper
def _backward(cum, n_classes, table, first, last, weight, m, n_blocks, after, alive, totals):
    """after[t] is the least cost in and after cell t if it holds a cut."""
    first[m + 1], after[m + 1], alive[0] = n_blocks, 0, m + 1
    n_alive = 1
    for t in range(m, 0, -1):
        best = INFINITE
        for position in range(n_alive):
            s = alive[position]
            totals[position] = after[s] + _cost(cum, n_classes, table, last[t], first[s])
            best = min(best, totals[position])
        after[t] = best + weight[t]
        kept = 0
        for position in range(n_alive):
            if totals[position] <= after[t]:
                alive[kept] = alive[position]
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
    for position in range(count // 2):
        path[position], path[count - 1 - position] = path[count - 1 - position], path[position]
    return count


@njit_helper
def _path_cost(cum, n_classes, table, path, n_cuts, n_blocks):
    total, low = np.int64(0), np.int64(0)
    for t in range(n_cuts):
        total += _cost(cum, n_classes, table, low, path[t])
        low = path[t]
    return total + _cost(cum, n_classes, table, low, n_blocks)
