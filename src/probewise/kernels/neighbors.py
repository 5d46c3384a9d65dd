"""Nearest neighbours across folds, from matrix products, and the scores they give.

Closeness of two rows is a.b - |a|^2/2 - |b|^2/2, which is minus half their squared distance: one product
of matrices with two columns more. The larger, the nearer.
"""

import numpy as np

from .jit import inline, kernel

TILE = 64
CHUNK = 32


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
def neighbors_across_folds(left, right, fold_end, order, products, best, rows):
    """The k nearest rows in other folds, of every row.

    Rows are sorted by fold; row i of a fold that ends at fold_end[i] is original row order[i]. Each pair of
    rows is looked at once, for both. best and rows (n, k) receive closeness and original row numbers.
    """
    n_rows = len(order)
    k = best.shape[1]
    best[:] = -np.inf
    rows[:] = n_rows
    kth = np.full(n_rows, -np.inf, best.dtype)
    for tile in range(0, n_rows, TILE):
        after = fold_end[tile]
        if after == n_rows:
            break
        tile_end = min(tile + TILE, n_rows)
        height, width = tile_end - tile, n_rows - after
        closeness = products[: height * width].reshape(height, width)
        np.dot(left[tile:tile_end], right[after:].T, closeness)
        for i in range(tile, tile_end):
            line = closeness[i - tile]
            kth_i = kth[i]
            j = fold_end[i]
            while j < n_rows:
                stop = min(j + CHUNK, n_rows)
                hits = 0
                for candidate in range(j, stop):
                    near = line[candidate - after]
                    hits |= (near >= kth_i) | (near >= kth[candidate])
                if hits:
                    for candidate in range(j, stop):
                        near = line[candidate - after]
                        if near >= kth_i:
                            insert(best, rows, i, near, order[candidate])
                            kth_i = best[i, k - 1]
                        if near >= kth[candidate]:
                            insert(best, rows, candidate, near, order[i])
                            kth[candidate] = best[candidate, k - 1]
                j = stop
            kth[i] = kth_i


@kernel
def neighbors_between(left, right, test, train, products, best, rows):
    """The k nearest of the train rows, of every test row; best and rows (len(test), k) receive them."""
    best[:] = -np.inf
    rows[:] = len(left)
    candidates = right[train]
    for tile in range(0, len(test), TILE):
        tile_end = min(tile + TILE, len(test))
        height = tile_end - tile
        closeness = products[: height * len(train)].reshape(height, len(train))
        np.dot(left[test[tile:tile_end]], candidates.T, closeness)
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
