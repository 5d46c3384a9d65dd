"""Nearest neighbours across folds of many rows, from distances of rounded values, and the scores they give.

Closeness of two rows is minus their squared distance, from products of 16-bit integers, which are twice as fast as
those of floats: they find candidates, with a margin for the rounding, among which exact distances decide. Of rows
equally far away the lower key for this row is the nearer (`votes.tie_keys`).

Rows are sorted by fold, so that each pair of rows in different folds is looked at once, for both; the fold of row i
ends at fold_end[i].
"""

import numpy as np

from . import integers
from .integers import BLOCK, minus_distances, pack, round_to_integers
from .jit import njit_cached, njit_helper, njit_inline
from .scores import ROC_AUC
from .vectors import LANES, lowest_bit, not_below, not_below_one, raise_along
from .votes import average, vote

TILE = 512  # rows, and
PANEL = 1024  # others, whose closeness stays in the cache
GROUPS = 8  # of candidates whose maxima bound the k-th largest: serves k up to 8
INTEGERS_AVAILABLE = integers.AVAILABLE


def room_to_work(n_rows, k, dtype):
    """Arrays the search writes in.

    peaks: maxima of groups of candidates. kth (n): a lower bound of each row's k-th largest closeness. limits (n): what
    a candidate must reach. near, rows (n, room), counts (n): each row's candidates, as closeness and row. far (room):
    what they are compared by. found (m, 2): pairs of a row and a candidate that is not yet on its list.
    """
    room = max(24, 2 * k)
    return (
        np.empty((GROUPS + LANES + k + 1, n_rows + LANES), dtype),
        np.empty(n_rows + LANES, dtype),
        np.empty(n_rows + LANES, dtype),
        np.empty((n_rows, room), dtype),
        np.empty((n_rows, room), np.int64),
        np.empty(n_rows, np.int64),
        np.empty(room),
        np.empty((4 * max(n_rows, 4096), 2), np.int32),
    )


@njit_cached
def tile_end(start, fold_end):
    """Where the tile of rows that starts here ends: at the end of its fold, or later where folds are small."""
    end = min(start + TILE, len(fold_end))
    return min(end, fold_end[start]) if fold_end[start] - start >= TILE // 8 else end


@njit_cached
def vote_by_integers(
    values, centers, scale, slack, fold_end, keys, k, truth, predicted, wholes, packed, squares, products, work
):
    """What neighbours in dense columns say, by products of 16-bit integers; targets are in fold order."""
    n_rows, d = values.shape
    width = (d + 1) // 2
    halves = wholes[: n_rows * 2 * width]
    round_to_integers(values, centers, scale, halves.reshape(n_rows, 2 * width), squares)
    pairs = halves.view(np.int32)
    pack(pairs, n_rows, width, packed)
    _neighbors_by_integers(values, slack, pairs, packed, squares, width, fold_end, keys, k, products, work)
    vote_of_neighbors(work[4], k, truth, predicted)


@njit_cached
def add_norms(left, right):
    """Complete left = [a, -|a|^2/2, 1] and right = [a, 1, -|a|^2/2] from left's first columns."""
    n_rows, width = left.shape
    for row in range(n_rows):
        square = left.dtype.type(0)
        for column in range(width - 2):
            value = left[row, column]
            square += value * value
            right[row, column] = value
        half = square * left.dtype.type(-0.5)
        left[row, width - 2] = half
        left[row, width - 1] = 1
        right[row, width - 2] = 1
        right[row, width - 1] = half


@njit_helper
def _neighbors_by_integers(values, slack, pairs, packed, squares, width, fold_end, keys, k, products, work):
    """The same from distances of rounded values, which are off by at most slack / 2, and exact values to decide."""
    _reset(work)
    start = 0
    while start < len(keys) and fold_end[start] < len(keys):
        end = tile_end(start, fold_end)
        for first in range(fold_end[start] // BLOCK * BLOCK, len(keys), PANEL):
            last = min(first + PANEL, len(keys))
            stride = (last - first + BLOCK - 1) // BLOCK * BLOCK
            minus_distances(pairs, packed, squares, width, start, end, first, last, products)
            closeness = products[: (end - start) * stride].reshape(end - start, stride)
            _search_tile(closeness, start, first, last, fold_end, keys, k, values, slack, work)
        start = end
    _decide(keys, k, values, slack, work)


@njit_cached
def pairs_across_folds(fold_end):
    """How many closeness values all tiles hold together."""
    start, total = 0, 0
    while start < len(fold_end) and fold_end[start] < len(fold_end):
        end = tile_end(start, fold_end)
        total += (end - start) * (len(fold_end) - fold_end[start])
        start = end
    return total


@njit_cached
def distances_across_folds(left, right, fold_end, products, base):
    """Minus the squared distances of all pairs, tile after tile, into base."""
    start, position = 0, 0
    while start < len(fold_end) and fold_end[start] < len(fold_end):
        end = tile_end(start, fold_end)
        for first in range(fold_end[start], len(fold_end), PANEL):
            last = min(first + PANEL, len(fold_end))
            closeness = products[: (end - start) * (last - first)].reshape(end - start, last - first)
            np.dot(left[start:end], right[first:last].T, closeness)
            for line in closeness:
                for j in range(len(line)):
                    base[position + j] = 2.0 * line[j]
                position += len(line)
        start = end


@njit_cached
def neighbors_with_one_more(base, extra, exact, slack, fold_end, keys, k, products, work):
    """The k nearest of every row in other folds, first in its line of work's rows.

    base is of rounded features, extra of one more. Exact values of all of them, and how much two distances may be off
    by rounding, decide.
    """
    _reset(work)
    start, position = 0, 0
    while start < len(keys) and fold_end[start] < len(keys):
        end = tile_end(start, fold_end)
        for first in range(fold_end[start], len(keys), PANEL):
            last = min(first + PANEL, len(keys))
            closeness = products[: (end - start) * (last - first)].reshape(end - start, last - first)
            for i in range(start, end):
                _add_apart(base[position : position + last - first], extra[i], extra[first:last], closeness[i - start])
                position += last - first
            _search_tile(closeness, start, first, last, fold_end, keys, k, exact, slack, work)
        start = end
    _decide(keys, k, exact, slack, work)


@njit_inline
def _add_apart(base, own, others, out):
    for j in range(len(out)):
        apart = own - others[j]
        out[j] = base[j] - apart * apart


@njit_helper
def _reset(work):
    _, kth, limits, _, _, counts, _, _ = work
    for i in range(len(counts)):
        kth[i] = limits[i] = -np.inf
        counts[i] = 0


@njit_helper
def _search_tile(closeness, start, first, last, fold_end, keys, k, exact, slack, work):
    """Put the rows of every pair of the tile on each other's list, if they reach its limit."""
    peaks, kth, limits, _, _, _, _, found = work
    _bound(closeness, start, first, last, fold_end, peaks, kth, k)
    _set_limits(kth, slack, limits, start, start + len(closeness))
    _set_limits(kth, slack, limits, first, last)
    count = 0
    for i in range(start, start + len(closeness)):
        if count + 2 * (last - first) > len(found):
            _add_candidates(found, count, closeness, start, first, keys, k, exact, slack, work)
            count = 0
        count = _find_candidates(closeness[i - start], i, first, last, fold_end[i], limits, found, count)
    _add_candidates(found, count, closeness, start, first, keys, k, exact, slack, work)


@njit_helper
def _find_candidates(line, i, first, last, begin, limits, found, count):
    """Note, from ``count`` on, which rows reach the limit of i, and whose limits i reaches, as owner and candidate."""
    j = max(begin, first)
    limit = limits[i]
    while j + LANES <= last:
        mine = not_below_one(line, j - first, limit)
        theirs = not_below(line, j - first, limits, j)
        while mine:
            found[count, 0] = i
            found[count, 1] = j + lowest_bit(mine)
            mine &= mine - np.uint64(1)
            count += 1
        while theirs:
            found[count, 0] = j + lowest_bit(theirs)
            found[count, 1] = i
            theirs &= theirs - np.uint64(1)
            count += 1
        j += LANES
    for other in range(j, last):
        if line[other - first] >= limit:
            found[count, 0] = i
            found[count, 1] = other
            count += 1
        if line[other - first] >= limits[other]:
            found[count, 0] = other
            found[count, 1] = i
            count += 1
    return count


@njit_helper
def _add_candidates(found, n_found, closeness, start, first, keys, k, exact, slack, work):
    """Put the candidates noted on their owners' lists."""
    _, _, limits, values, rows, counts, _, _ = work
    for number in range(n_found):
        owner, other = found[number]
        tile_row, tile_column = (owner, other) if owner < other else (other, owner)
        near = closeness[tile_row - start, tile_column - first]
        if near >= limits[owner]:
            count = counts[owner]
            values[owner, count] = near
            rows[owner, count] = other
            counts[owner] = count + 1
            if count + 1 == values.shape[1]:
                _prune(owner, keys, k, exact, slack, work)


@njit_helper
def _set_limits(kth, slack, limits, start, end):
    """What a candidate must reach so that, rounding apart, it may be among the k nearest."""
    for i in range(start, end):
        limits[i] = kth[i] if slack == 0.0 else _limit(kth[i], slack)


@njit_inline
def _limit(kth, slack):
    """kth is minus a squared distance in float32: allow for its rounding too."""
    far = np.sqrt(-np.float64(kth)) * (1.0 + 1e-6) + slack
    return -np.float32(far * far * (1.0 + 1e-6))


@njit_helper
def _prune(i, keys, k, exact, slack, work):
    """Drop from the list of i what cannot be among its k nearest; if that is too little, let exact distances decide."""
    _, kth, limits, values, rows, counts, far, _ = work
    kth[i] = max(kth[i], _kth_largest(values[i], counts[i], k, far))
    if slack == 0.0:
        limits[i] = kth[i]
    else:
        limits[i] = _limit(kth[i], slack)
        _drop_below(i, limits[i], values, rows, counts)
    if slack == 0.0 or counts[i] > values.shape[1] // 2:
        _keep_nearest(i, keys, k, exact, slack, values[i], rows[i], counts, far)


@njit_inline
def _drop_below(i, limit, values, rows, counts):
    kept = 0
    for place in range(counts[i]):
        if values[i, place] >= limit:
            values[i, kept] = values[i, place]
            rows[i, kept] = rows[i, place]
            kept += 1
    counts[i] = kept


@njit_helper
def _keep_nearest(i, keys, k, exact, slack, values, rows, counts, far):
    """Leave the k nearest; of two equally near that of the lower key stays."""
    count = counts[i]
    if slack == 0.0:
        for place in range(count):
            far[place] = -values[place]
    else:
        _set_distances(exact, i, rows, count, far)
    while count > k:
        worst = 0
        for place in range(1, count):
            if far[place] > far[worst] or (
                far[place] == far[worst] and keys[i] ^ keys[rows[place]] > keys[i] ^ keys[rows[worst]]
            ):
                worst = place
        count -= 1
        far[worst] = far[count]
        values[worst] = values[count]
        rows[worst] = rows[count]
    counts[i] = count


@njit_helper
def _set_distances(exact, i, rows, count, far):
    """Squared distances of row i to some others, each summed feature by feature: the bits of `votes` and of devices.

    Four sums go on side by side, so that none waits for its last addition.
    """
    own, place = exact[i], 0
    while place < count:
        a, b = exact[rows[place]], exact[rows[min(place + 1, count - 1)]]
        c, d = exact[rows[min(place + 2, count - 1)]], exact[rows[min(place + 3, count - 1)]]
        to_a = to_b = to_c = to_d = 0.0
        for k in range(len(own)):
            to_a += (own[k] - a[k]) ** 2
            to_b += (own[k] - b[k]) ** 2
            to_c += (own[k] - c[k]) ** 2
            to_d += (own[k] - d[k]) ** 2
        for number, total in enumerate((to_a, to_b, to_c, to_d)):
            if place + number < count:
                far[place + number] = total
        place += 4


@njit_helper
def _decide(keys, k, exact, slack, work):
    """Shorten every list to the k nearest."""
    _, _, _, values, rows, counts, far, _ = work
    for i in range(len(counts)):
        if counts[i] > k:
            limit = _kth_largest(values[i], counts[i], k, far)
            _drop_below(i, limit if slack == 0.0 else _limit(limit, slack), values, rows, counts)
            if counts[i] > k:
                _keep_nearest(i, keys, k, exact, slack, values[i], rows[i], counts, far)


@njit_helper
def _kth_largest(values, count, k, far):
    """The k-th largest of the first ``count`` values; for the usual k without leaving the registers."""
    if k == 3:
        first = second = third = -np.inf
        for candidate in range(count):
            value = np.float64(values[candidate])
            lower = min(first, value)
            first = max(first, value)
            value = min(second, lower)
            second = max(second, lower)
            third = max(third, value)
        return third
    for place in range(k):
        far[place] = -np.inf
    for candidate in range(count):
        value = np.float64(values[candidate])
        for place in range(k):
            lower = min(far[place], value)
            far[place] = max(far[place], value)
            value = lower
    return far[k - 1]


@njit_helper
def _bound(closeness, start, first, last, fold_end, peaks, kth, k):
    """Raise kth by what the tile shows at a glance, so that few pairs need a second look.

    Split a row's candidates into groups: the k-th largest of the groups' maxima is a lower bound of its k-th
    largest closeness. For the tile's columns the groups are runs of rows; for its rows they are the vector lanes.
    """
    height, width = len(closeness), last - first
    run = (height + GROUPS - 1) // GROUPS
    by_run, by_lane, tops, lanes = peaks[:GROUPS], peaks[GROUPS : -k - 1], peaks[-k - 1 : -1], peaks[-1]
    for group in range(GROUPS):
        peak = by_run[group]
        for j in range(width):
            peak[j] = -np.inf
        for i in range(group * run, min(height, (group + 1) * run)):
            line = closeness[i]
            begin = max(fold_end[start + i] - first, 0)
            end = width - max(width - begin, 0) % LANES
            raise_along(peak, line, begin, end, lanes)
            for rest in range(end, width):
                peak[rest] = max(peak[rest], line[rest])
            for lane in range(LANES):
                by_lane[lane, i] = lanes[lane]
    _raise_to_kth(by_run, tops, width, kth[first:], k)
    _raise_to_kth(by_lane, tops, height, kth[start:], k)


@njit_helper
def _raise_to_kth(groups, tops, width, kth, k):
    """kth[j] = max(kth[j], the k-th largest of groups[:, j]), for all columns side by side."""
    for place in range(k):
        for j in range(width):
            tops[place, j] = -np.inf
    for group in range(len(groups)):
        for place in range(k):
            _swap_larger_up(tops[place], groups[group], width)
    top = tops[k - 1]
    for j in range(width):
        kth[j] = top[j] if top[j] > kth[j] else kth[j]


@njit_helper
def _swap_larger_up(top, value, width):
    """Of each pair the larger goes into top, the smaller into value."""
    for j in range(width):
        old, new = top[j], value[j]
        top[j] = new if new > old else old
        value[j] = old if new > old else new


@njit_cached
def vote_of_neighbors(rows, k, truth, predicted):
    """What the neighbours say of each row, in fold order."""
    targets, n_classes, measure = truth
    near = rows[:, :k]
    if n_classes and measure != ROC_AUC:
        vote(near, targets.astype(np.int64), predicted)
    else:
        average(near, targets, predicted)  # of two classes: the share of class 1
