"""Nearest neighbours across folds, from matrix products, and the scores they give.

Closeness of two rows is a.b - |a|^2/2 - |b|^2/2, which is minus half their squared distance: one product
of matrices with two columns more. The larger, the nearer. Rows are sorted by fold, so that each pair of rows in
different folds is looked at once, for both.
"""

import numpy as np

from .jit import inline, kernel
from .lanes import LANES, lowest_bit, not_below, raise_to

TILE = 384
GROUPS = 8


@kernel
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


@inline
def insert(best, rows, owner, closeness, row):
    """Put a candidate among the owner's k best, if it is one; of two equally near the lower row wins."""
    k = best.shape[1]
    place = k
    while place > 0 and (
        closeness > best[owner, place - 1] or (closeness == best[owner, place - 1] and row < rows[owner, place - 1])
    ):
        place -= 1
    if place < k:
        for later in range(k - 1, place, -1):
            best[owner, later] = best[owner, later - 1]
            rows[owner, later] = rows[owner, later - 1]
        best[owner, place] = closeness
        rows[owner, place] = row


@kernel
def tile_end(start, fold_end):
    """Where the tile of rows that starts here ends: at the end of its fold, or later where folds are small."""
    end = min(start + TILE, len(fold_end))
    return min(end, fold_end[start]) if fold_end[start] - start >= TILE // 8 else end


@kernel
def pairs_across_folds(fold_end):
    """How many closeness values all tiles hold together."""
    start, total = 0, 0
    while start < len(fold_end) and fold_end[start] < len(fold_end):
        end = tile_end(start, fold_end)
        total += (end - start) * (len(fold_end) - fold_end[start])
        start = end
    return total


@kernel
def neighbors_across_folds(left, right, fold_end, order, products, peaks, kth, best, rows):
    """The k nearest rows in other folds, of every row.

    Row i of a fold that ends at fold_end[i] is original row order[i]. best and rows (n, k) receive closeness and
    original row numbers; products (TILE * n), peaks (GROUPS + k + 1, n + LANES) and kth (n + LANES) are work space.
    """
    _forget(best, rows, kth, len(order))
    start = 0
    while start < len(order) and fold_end[start] < len(order):
        end = tile_end(start, fold_end)
        after = fold_end[start]
        closeness = products[: (end - start) * (len(order) - after)].reshape(end - start, len(order) - after)
        np.dot(left[start:end], right[after:].T, closeness)
        _look_through(closeness, start, after, fold_end, order, peaks, kth, best, rows)
        start = end


@kernel
def closeness_across_folds(left, right, fold_end, base):
    """All closeness values, tile after tile, into base."""
    start, position = 0, 0
    while start < len(fold_end) and fold_end[start] < len(fold_end):
        end = tile_end(start, fold_end)
        after = fold_end[start]
        size = (end - start) * (len(fold_end) - after)
        tile = base[position : position + size].reshape(end - start, len(fold_end) - after)
        np.dot(left[start:end], right[after:].T, tile)
        position += size
        start = end


@kernel
def neighbors_with_one_more(base, extra, fold_end, order, products, peaks, kth, best, rows):
    """As `neighbors_across_folds`, for the features that base is of and one more, whose values are extra."""
    _forget(best, rows, kth, len(order))
    half = base.dtype.type(-0.5)
    start, position = 0, 0
    while start < len(order) and fold_end[start] < len(order):
        end = tile_end(start, fold_end)
        after = fold_end[start]
        width = len(order) - after
        closeness = products[: (end - start) * width].reshape(end - start, width)
        for i in range(start, end):
            for j in range(width):
                apart = extra[i] - extra[after + j]
                closeness[i - start, j] = base[position + j] + half * apart * apart
            position += width
        _look_through(closeness, start, after, fold_end, order, peaks, kth, best, rows)
        start = end


@inline
def _forget(best, rows, kth, n_rows):
    best[:] = -np.inf
    rows[:] = n_rows
    kth[:] = -np.inf


@kernel
def _look_through(closeness, start, after, fold_end, order, peaks, kth, best, rows):
    """Take every pair of the tile into account for both of its rows; kth[i] bounds the k-th nearest of i from below."""
    n_rows, k = len(order), best.shape[1]
    if k <= GROUPS:
        _bound(closeness, start, after, fold_end, peaks, kth, k)
    for i in range(start, start + len(closeness)):
        line = closeness[i - start]
        limit = kth[i]
        j = fold_end[i]
        while j + LANES <= n_rows:
            hits = not_below(line, j - after, kth, j, limit)
            while hits:
                other = j + lowest_bit(hits)
                hits &= hits - np.uint64(1)
                limit = _meet(line[other - after], i, other, limit, order, kth, best, rows)
            j += LANES
        for other in range(j, n_rows):
            limit = _meet(line[other - after], i, other, limit, order, kth, best, rows)
        kth[i] = limit


@inline
def _meet(near, i, other, limit, order, kth, best, rows):
    """Offer each of the two rows to the other; the new bound of i."""
    k = best.shape[1]
    if near >= limit:
        insert(best, rows, i, near, order[other])
        limit = max(limit, best[i, k - 1])
    if near >= kth[other]:
        insert(best, rows, other, near, order[i])
        kth[other] = max(kth[other], best[other, k - 1])
    return limit


@kernel
def _bound(closeness, start, after, fold_end, peaks, kth, k):
    """Raise kth by what the tile shows at a glance, so that few pairs need a second look.

    Split a row's candidates into groups: the k-th largest of the groups' maxima is a lower bound of its k-th
    nearest. For the tile's columns the groups are runs of rows; for its rows they are the lanes.
    """
    height, width = closeness.shape
    run = (height + GROUPS - 1) // GROUPS
    lanes = peaks[GROUPS + k]
    for group in range(GROUPS):
        peak = peaks[group]
        peak[:width] = -np.inf
        for i in range(group * run, min(height, (group + 1) * run)):
            line = closeness[i]
            lanes[: 2 * LANES] = -np.inf
            j = fold_end[start + i] - after
            while j + 2 * LANES <= width:
                raise_to(peak, j, line, j)
                raise_to(peak, j + LANES, line, j + LANES)
                raise_to(lanes, 0, line, j)
                raise_to(lanes, LANES, line, j + LANES)
                j += 2 * LANES
            for rest in range(j, width):
                peak[rest] = max(peak[rest], line[rest])
            kth[start + i] = max(kth[start + i], _kth_largest(lanes[: 2 * LANES], k))
    tops = peaks[GROUPS : GROUPS + k]
    tops[:, :width] = -np.inf
    for group in range(GROUPS):
        for place in range(k):
            for j in range(width):
                value, top = peaks[group, j], tops[place, j]
                tops[place, j] = value if value > top else top
                peaks[group, j] = top if value > top else value
    for j in range(width):
        kth[after + j] = max(kth[after + j], tops[k - 1, j])


@inline
def _kth_largest(values, k):
    """The k-th largest of a few values, which are sorted on the way."""
    for place in range(k):
        for other in range(place + 1, len(values)):
            if values[other] > values[place]:
                values[place], values[other] = values[other], values[place]
    return values[k - 1]


@kernel
def neighbors_between(left, right, test, train, products, best, rows):
    """The k nearest of the train rows, of every test row; best and rows (len(test), k) receive them."""
    best[:] = -np.inf
    rows[:] = len(left)
    candidates = right[train]
    for tile in range(0, len(test), TILE):
        height = min(TILE, len(test) - tile)
        closeness = products[: height * len(train)].reshape(height, len(train))
        np.dot(left[test[tile : tile + height]], candidates.T, closeness)
        for i in range(height):
            for j in range(len(train)):
                if closeness[i, j] >= best[tile + i, -1]:
                    insert(best, rows, tile + i, closeness[i, j], train[j])


@kernel
def vote_accuracy(rows, labels, truth, n_classes):
    """Share of rows whose most frequent neighbour label (the lowest, if several) is the true one."""
    counts = np.zeros(n_classes, np.int64)
    right = 0
    for row in range(len(rows)):
        for neighbor in rows[row]:
            counts[labels[neighbor]] += 1
        winner = 0
        for neighbor in rows[row]:
            label = labels[neighbor]
            if counts[label] > counts[winner] or (counts[label] == counts[winner] and label < winner):
                winner = label
        right += winner == truth[row]
        for neighbor in rows[row]:
            counts[labels[neighbor]] = 0
    return right / len(rows)


@kernel
def mean_r2(rows, targets, truth):
    """R^2 of the mean target of the neighbours."""
    mean = truth.mean()
    unexplained = 0.0
    spread = 0.0
    for row in range(len(rows)):
        predicted = 0.0
        for neighbor in rows[row]:
            predicted += targets[neighbor]
        predicted /= rows.shape[1]
        unexplained += (truth[row] - predicted) ** 2
        spread += (truth[row] - mean) ** 2
    if spread == 0.0:
        return 1.0 if unexplained == 0.0 else 0.0
    return 1.0 - unexplained / spread
