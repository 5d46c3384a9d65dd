"""Nearest neighbours across folds, from matrix products, and the scores they give.

Closeness of two rows is a.b - |a|^2/2 - |b|^2/2, which is minus half their squared distance: one product
of matrices with two columns more. The larger, the nearer. Rows are sorted by fold, so that each pair of rows in
different folds is looked at once, for both.
"""

import numpy as np

from .jit import inline, kernel
from .lanes import LANES, lowest_bit, not_below, not_below_one, raise_along

TILE = 512
PANEL = 4096
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
def neighbors_across_folds(left, right, fold_end, order, k, products, work):
    """Of every row the k nearest in other folds: their original numbers are the first k of its line in work's rows.

    Row i of a fold that ends at fold_end[i] is original row order[i]. products (TILE * n) and work are room to work in.
    """
    _forget(work)
    start = 0
    while start < len(order) and fold_end[start] < len(order):
        end = tile_end(start, fold_end)
        for first in range(fold_end[start], len(order), PANEL):
            last = min(first + PANEL, len(order))
            closeness = products[: (end - start) * (last - first)].reshape(end - start, last - first)
            np.dot(left[start:end], right[first:last].T, closeness)
            _look_through(closeness, start, first, fold_end, order, k, work)
        start = end
    _keep_nearest(k, work)


@kernel
def closeness_across_folds(left, right, fold_end, base):
    """All closeness values, tile after tile, into base."""
    start, position = 0, 0
    while start < len(fold_end) and fold_end[start] < len(fold_end):
        end = tile_end(start, fold_end)
        for first in range(fold_end[start], len(fold_end), PANEL):
            last = min(first + PANEL, len(fold_end))
            size = (end - start) * (last - first)
            np.dot(left[start:end], right[first:last].T, base[position : position + size].reshape(end - start, -1))
            position += size
        start = end


@kernel
def neighbors_with_one_more(base, extra, fold_end, order, k, products, work):
    """As `neighbors_across_folds`, for the features that base is of and one more, whose values are extra."""
    _forget(work)
    half = base.dtype.type(-0.5)
    start, position = 0, 0
    while start < len(order) and fold_end[start] < len(order):
        end = tile_end(start, fold_end)
        for first in range(fold_end[start], len(order), PANEL):
            last = min(first + PANEL, len(order))
            closeness = products[: (end - start) * (last - first)].reshape(end - start, last - first)
            for i in range(start, end):
                line = base[position : position + last - first]
                _add_apart(line, extra[i], extra[first:last], half, closeness[i - start])
                position += last - first
            _look_through(closeness, start, first, fold_end, order, k, work)
        start = end
    _keep_nearest(k, work)


@inline
def _add_apart(base, own, others, half, out):
    for j in range(len(out)):
        apart = own - others[j]
        out[j] = base[j] + half * apart * apart


@kernel
def _forget(work):
    _, kth, _, _, counts = work
    kth[:] = -np.inf
    counts[:] = 0


@kernel
def _look_through(closeness, start, first, fold_end, order, k, work):
    """Offer the rows of every pair of the tile to each other; kth[i] bounds the k-th nearest of i from below."""
    peaks, kth, _, _, _ = work
    last = first + closeness.shape[1]
    if k <= GROUPS:
        _bound(closeness, start, first, fold_end, peaks, kth, k)
    for i in range(start, start + len(closeness)):
        line = closeness[i - start]
        j = max(fold_end[i], first)
        while j + LANES <= last:
            mine = not_below_one(line, j - first, kth[i])
            theirs = not_below(line, j - first, kth, j)
            while mine:
                other = j + lowest_bit(mine)
                mine &= mine - np.uint64(1)
                _offer(i, line[other - first], order[other], k, work)
            while theirs:
                other = j + lowest_bit(theirs)
                theirs &= theirs - np.uint64(1)
                _offer(other, line[other - first], order[i], k, work)
            j += LANES
        for other in range(j, last):
            if line[other - first] >= kth[i]:
                _offer(i, line[other - first], order[other], k, work)
            if line[other - first] >= kth[other]:
                _offer(other, line[other - first], order[i], k, work)


@inline
def _offer(i, near, row, k, work):
    """Put a row on the list of i; a full list is thinned to the k nearest."""
    _, kth, values, rows, counts = work
    count = counts[i]
    values[i, count] = near
    rows[i, count] = row
    counts[i] = count + 1
    if count + 1 == values.shape[1]:
        _thin(values[i], rows[i], count + 1, k)
        counts[i] = k
        for place in range(k):
            near = min(near, values[i, place])
        kth[i] = max(kth[i], near)


@kernel
def _thin(values, rows, count, k):
    """Leave the k nearest in the first places; of two equally near the lower row stays."""
    while count > k:
        worst = 0
        for place in range(1, count):
            if values[place] < values[worst] or (values[place] == values[worst] and rows[place] > rows[worst]):
                worst = place
        count -= 1
        values[worst] = values[count]
        rows[worst] = rows[count]


@kernel
def _keep_nearest(k, work):
    _, _, values, rows, counts = work
    for i in range(len(counts)):
        _thin(values[i], rows[i], counts[i], k)


@kernel
def _bound(closeness, start, first, fold_end, peaks, kth, k):
    """Raise kth by what the tile shows at a glance, so that few pairs need a second look.

    Split a row's candidates into groups: the k-th largest of the groups' maxima is a lower bound of its k-th
    nearest. For the tile's columns the groups are runs of rows; for its rows they are the lanes.
    """
    height, width = closeness.shape
    run = (height + GROUPS - 1) // GROUPS
    by_run, by_lane, tops, lanes = peaks[:GROUPS], peaks[GROUPS : -k - 1], peaks[-k - 1 : -1], peaks[-1]
    for group in range(GROUPS):
        peak = by_run[group]
        peak[:width] = -np.inf
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


@kernel
def _raise_to_kth(groups, tops, width, kth, k):
    """kth[j] = max(kth[j], the k-th largest of groups[:, j]), for all columns side by side."""
    for place in range(k):
        tops[place, :width] = -np.inf
    for group in range(len(groups)):
        for place in range(k):
            _swap_larger_up(tops[place], groups[group], width)
    top = tops[k - 1]
    for j in range(width):
        kth[j] = top[j] if top[j] > kth[j] else kth[j]


@kernel
def _swap_larger_up(top, value, width):
    """Of each pair the larger goes into top, the smaller into value."""
    for j in range(width):
        old, new = top[j], value[j]
        top[j] = new if new > old else old
        value[j] = old if new > old else new


@kernel
def neighbors_between(left, right, test, train, k, products, work):
    """As `neighbors_across_folds`, for the i-th test row among the train rows."""
    _forget(work)
    _, kth, _, _, _ = work
    candidates = right[train]
    for tile in range(0, len(test), TILE):
        height = min(TILE, len(test) - tile)
        closeness = products[: height * len(train)].reshape(height, len(train))
        np.dot(left[test[tile : tile + height]], candidates.T, closeness)
        for i in range(height):
            for j in range(len(train)):
                if closeness[i, j] >= kth[tile + i]:
                    _offer(tile + i, closeness[i, j], train[j], k, work)
    _keep_nearest(k, work)


@kernel
def batch_scores(
    matrix,
    centers,
    indices,
    offsets,
    order,
    fold_end,
    borders,
    k,
    targets,
    n_classes,
    left,
    right,
    products,
    work,
    scores,
):
    """Scores of a batch of probes on dense data: gather, multiply, look for neighbours, let them vote."""
    rows = work[3][:, :k]
    n_rows = len(order)
    for probe in range(len(offsets) - 1):
        subset = indices[offsets[probe] : offsets[probe + 1]]
        width = len(subset) + 2
        a = left[: n_rows * width].reshape(n_rows, width)
        b = right[: n_rows * width].reshape(n_rows, width)
        _take_sides(matrix, order, subset, centers, a, b)
        neighbors_across_folds(a, b, fold_end, order, k, products, work)
        scores[probe] = mean_fold_score(rows, order, borders, targets, n_classes)


@kernel
def _take_sides(matrix, rows, subset, centers, left, right):
    """The two sides of the product, [a, -|a|^2/2, 1] and [a, 1, -|a|^2/2], of the subset's centred columns."""
    d = len(subset)
    own_centers = centers[subset]
    for i in range(len(rows)):
        line = matrix[rows[i]]
        square = left.dtype.type(0)
        for k in range(d):
            value = left.dtype.type(line[subset[k]]) - own_centers[k]
            square += value * value
            left[i, k] = value
            right[i, k] = value
        half = square * left.dtype.type(-0.5)
        left[i, d] = half
        left[i, d + 1] = 1
        right[i, d] = 1
        right[i, d + 1] = half


@kernel
def mean_fold_score(rows, order, borders, targets, n_classes):
    """Mean over folds of the accuracy of the neighbours' vote, or, if there are no classes, of R^2 of their mean."""
    total = 0.0
    for fold in range(len(borders) - 1):
        near = rows[borders[fold] : borders[fold + 1]]
        test = order[borders[fold] : borders[fold + 1]]
        if n_classes:
            total += vote_accuracy(near, test, targets, n_classes)
        else:
            total += mean_r2(near, test, targets)
    return total / (len(borders) - 1)


@kernel
def vote_accuracy(rows, test, targets, n_classes):
    """Share of test rows whose most frequent neighbour label (the lowest, if several) is their own."""
    counts = np.zeros(n_classes, np.int64)
    right = 0
    for row in range(len(test)):
        winner = 0
        for neighbor in rows[row]:
            counts[int(targets[neighbor])] += 1
        for neighbor in rows[row]:
            label = int(targets[neighbor])
            if counts[label] > counts[winner] or (counts[label] == counts[winner] and label < winner):
                winner = label
        right += winner == targets[test[row]]
        for neighbor in rows[row]:
            counts[int(targets[neighbor])] = 0
    return right / len(test)


@kernel
def mean_r2(rows, test, targets):
    """R^2 of the mean target of the neighbours."""
    mean = targets[test].mean()
    unexplained = 0.0
    spread = 0.0
    for row in range(len(test)):
        predicted = 0.0
        for neighbor in rows[row]:
            predicted += targets[neighbor]
        predicted /= rows.shape[1]
        unexplained += (targets[test[row]] - predicted) ** 2
        spread += (targets[test[row]] - mean) ** 2
    if spread == 0.0:
        return 1.0 if unexplained == 0.0 else 0.0
    return 1.0 - unexplained / spread
