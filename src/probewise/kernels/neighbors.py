"""k nearest neighbors of every tested row in one feature subset: a search by bounds, settled by exact distances.

Squared distances come from inner products, with a bound of their rounding error, and are compared as lower bounds.
Where that leaves open which rows are the k nearest, exact distances decide: differences of the values in float64,
squared and summed feature by feature. Among rows at equal distance the one with the lower key is nearer (`tie_keys`).

X is stored by feature: column j of XT (features, columns) is a row of X. A fold tests the columns
tests[f]..tests[f + 1] - 1 and trains on train[trains[f]:trains[f + 1]]. If ``is_loo``, a test is not its own neighbor.
If ``in_pairs``, each row is tested once, against all other folds, and each pair of rows is compared once for both.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from .jit import njit_helper
from .products import CHUNK, ROWS, strip_width, tile_products
from .vectors import LANES, keep_nearest, lowest_bit, nearer

WIDEST = 3 * LANES  # columns of a strip: tests that are compared side by side
PAIR_ROWS, PAIR_COLUMNS = 480, 240  # of a tile, whose products stay in the cache
PAIR_SAMPLE = 96  # rows that give the first fold its limits
GROUPS = 8  # groups of rows whose minima give the columns of a tile their limits; more than k
FEWEST_IN_PAIRS = 8  # features: with fewer, neighbors are so near that rounding leaves many open
EXACT = 2.0**24  # whole numbers up to this are exact in float32
MOST_EXPONENT = (126, 1022)  # of a scale that is finite in float32 and in float64: values may be subnormal
FARTHEST = np.iinfo(np.int64).max


def tie_keys(n_rows):
    """A key from 0 to n_rows - 1 for each row: of rows equally far from row i, the lowest key[i] ^ key[j] is nearer.

    The keys are ranks of a hash of the row number (the last step of MurmurHash3), so that ties depend neither on the
    order of rows nor on their classes, and every row breaks them differently.
    """
    code = np.arange(n_rows, dtype=np.uint32)
    code ^= code >> np.uint32(16)
    code *= np.uint32(0x85EBCA6B)
    code ^= code >> np.uint32(13)
    code *= np.uint32(0xC2B2AE35)
    code ^= code >> np.uint32(16)
    keys = np.empty(n_rows, np.int64)
    keys[np.argsort(code)] = np.arange(n_rows)
    return keys


class Subset(NamedTuple):
    """A feature subset: its values, centered and scaled, and the error bound of squared distances from their products.

    A squared distance is off by at most error * (sum of both rows' squares) + least. ``lowered`` are the squares times
    1 - error, from which lower bounds of distances come.
    """

    XT: Any
    features: Any
    scale: Any
    values: Any
    squares: Any
    lowered: Any
    error: Any
    least: Any


class Workspace(NamedTuple):
    """Arrays of the search: products of a strip, and per column the k + 1 nearest rows and the limit to be one.

    Row, distance and tie are the nearest rows so far of a test that exact distances settle.
    """

    products: Any
    tops: Any
    limits: Any
    peaks: Any
    most: Any
    row: Any
    distance: Any
    tie: Any


@njit_helper
def workspace(n_columns, n_train, k, kind):
    stride = n_columns + WIDEST
    return Workspace(
        np.empty(max((n_train + ROWS) * WIDEST, (PAIR_ROWS + ROWS) * PAIR_COLUMNS), kind),
        np.empty((k + 1) * stride, np.int64),
        np.empty(stride, kind),
        np.empty((GROUPS + k + 1, PAIR_COLUMNS), kind),
        np.empty(n_columns),
        np.zeros(k, np.int64),  # rows that exist, even if distances are NaN
        np.empty(k),
        np.empty(k, np.int64),
    )


@njit_helper
def load_subset(columns, features, precision, n_keys, values, squares, lowered):
    """The values of a subset, less the features' centers and times a power of two, with squares and error bound."""
    XT, centers, reach, is_whole = columns
    scale = _scale(reach, is_whole, features, MOST_EXPONENT[0 if XT.itemsize == 4 else 1])
    n, stride, factor = XT.shape[1], len(squares), XT.dtype.type(scale if scale > 0.0 else 1.0)
    squares[:] = 0
    for first in range(0, len(features), CHUNK):
        lowered[:] = 0
        for f in range(first, min(first + CHUNK, len(features))):
            line, to, center = XT[features[f]], values[f * stride : (f + 1) * stride], centers[features[f]]
            for i in range(n):
                value = values.dtype.type((line[i] - center) * factor)
                to[i] = value
                lowered[i] += value * value
        for i in range(n):
            squares[i] += lowered[i]
    error, least = _error(len(features), scale, n_keys, precision)
    for i in range(n):
        lowered[i] = (precision.dtype.type(1) - error) * squares[i]
    lowered[n:] = np.inf
    return Subset(XT, features, scale, values, squares, lowered, error, least)


@njit_helper
def _scale(reach, is_whole, features, most_exponent):
    """The power of two that brings the largest value near 1; 0 stands for 1 where whole numbers are exact already."""
    widest, whole = 0.0, True
    for f in features:
        widest = max(widest, np.float64(reach[f]))
        whole &= is_whole[f]
    if whole and 4.0 * len(features) * widest * widest <= EXACT:
        return 0.0
    return 2.0 ** np.float64(min(-math.frexp(widest)[1], most_exponent))


@njit_helper
def _error(n_features, scale, n_keys, precision):
    """Relative and absolute error bound of a squared distance; 0 where whole numbers are exact."""
    unit = 0.5 * np.float64(precision[0])
    terms = min(n_features, CHUNK) + n_features // CHUNK + 5
    error = 0.0 if scale == 0.0 else unit * (2 * terms + 20) + 2.0**-50 * n_keys
    return precision.dtype.type(error), precision.dtype.type(0.0 if scale == 0.0 else precision[1] * n_features)


@njit_helper
def find_neighbors(subset, folds, keys, keepers, k, work, near, apart):
    """Find the k nearest rows of each test, with lower bounds of squared distances; return how many tests stayed open.

    near and apart are (tests, k). keepers[key] is the column that has a key.
    """
    tests, trains, train, is_loo, in_pairs = folds
    in_pairs = in_pairs and len(subset.features) >= FEWEST_IN_PAIRS
    one = np.int64(1)  # a plain 1 would make numba compile `_accept` twice
    mask, n_open = len(keepers) - 1, 0
    work.most[:] = 0.0
    if in_pairs:
        _compare_pairs(subset, tests, keys, mask, k, work)
        _accept(subset, tests[0], tests[-1], tests[0], (k + 1, one), keys, keepers, k, work, near, apart)
    for fold in range(len(tests) - 1):
        column = tests[fold]
        while column < tests[fold + 1]:
            width = LANES if in_pairs else strip_width(tests[fold + 1] - column, subset.values.itemsize)
            strip, stop = (trains[fold], trains[fold + 1], column, width), min(column + width, tests[fold + 1])
            if _any_open(work.most, column, stop):
                _compare_strip(subset, train, strip, is_loo, keys, mask, k, work)
                _accept(subset, column, stop, tests[0], (one, width), keys, keepers, k, work, near, apart)
                if _any_open(work.most, column, stop):
                    n_open += _settle(subset, stop, tests[0], train, strip, is_loo, keys, k, work, near, apart)
            column += width
    return n_open


@njit_helper
def _any_open(most, start, stop):
    largest = -1.0
    for row in range(start, stop):
        largest = max(largest, most[row])
    return largest >= 0.0


@njit_helper
def _compare_strip(subset, train, strip, is_loo, keys, mask, k, work):
    """The k + 1 rows nearest to each column of a strip, by lower bounds of distances."""
    start, stop, column, width = strip
    products, tops, lowered = work.products, work.tops, subset.lowered
    for place in range((k + 1) * width):
        tops[place] = FARTHEST
    tile_products(subset.values, len(subset.features), len(lowered), train, strip, products)
    if is_loo:
        for t in range(min(width, stop - column)):
            products[(column + t) * width + t] = -np.inf
    for at in range(stop - start):
        other = train[start + at]
        for t in range(0, width, LANES):
            keep_nearest(
                products, at * width + t, lowered[other], lowered, column + t, keys, keys[other], mask, tops, t, width,
                k + 1,
            )  # fmt: skip


@njit_helper
def _compare_pairs(subset, tests, keys, mask, k, work):
    """The k + 1 rows of other folds nearest to each row, by lower bounds: each pair of rows is looked at once."""
    n, stride, lowered = tests[-1], len(subset.squares), subset.lowered
    rows, number = np.arange(n + ROWS), np.empty(1)
    rows[n:] = 0
    work.tops[:] = FARTHEST
    work.limits[:n] = np.inf
    work.limits[n:] = -np.inf
    for column in range(0, tests[1], PAIR_COLUMNS):  # the later folds get their first limits as columns
        width = min(PAIR_COLUMNS, -(column - tests[1]) // LANES * LANES + LANES)
        strip = tests[1], min(tests[1] + PAIR_SAMPLE, tests[2]), column, width
        tile_products(subset.values, len(subset.features), stride, rows, strip, work.products)
        _tighten(lowered, strip, k, work.products, work.limits, work.peaks)
    work.limits[tests[1] : n] = np.inf
    for fold in range(len(tests) - 2):
        for start in range(tests[fold], tests[fold + 1], PAIR_ROWS):
            stop = min(start + PAIR_ROWS, tests[fold + 1])
            for column in range(tests[fold + 1], n, PAIR_COLUMNS):
                width = min(PAIR_COLUMNS, -(column - n) // LANES * LANES + LANES)
                strip = start, stop, column, width
                tile_products(subset.values, len(subset.features), stride, rows, strip, work.products)
                _tighten(lowered, strip, k, work.products, work.limits, work.peaks)
                _insert_pairs(lowered, strip, keys, mask, k, work.products, work.tops, work.limits, number)


@njit_helper
def _tighten(lowered, strip, k, products, limits, peaks):
    """Lower the limits of a tile's columns: of the minima of GROUPS groups of its rows, the (k + 1)-th smallest."""
    start, stop, column, width = strip
    two, run, theirs = products.dtype.type(2), (stop - start + GROUPS - 1) // GROUPS, lowered[column : column + width]
    for g in range(GROUPS):
        peak = peaks[g, :width]
        for j in range(width):
            peak[j] = np.inf
        for row in range(start + g * run, min(stop, start + (g + 1) * run)):
            own, line = lowered[row], products[(row - start) * width : (row - start + 1) * width]
            for j in range(width):
                value = own + theirs[j] - two * line[j]
                peak[j] = value if value < peak[j] else peak[j]
    _lower_to_kth(peaks[:GROUPS], peaks[GROUPS:], width, limits[column:], k + 1)


@njit_helper
def _lower_to_kth(groups, tops, width, limits, k):
    """limits[j] = min(limits[j], the k-th smallest of groups[:, j]), for all columns side by side."""
    for q in range(k):
        top = tops[q]
        for j in range(width):
            top[j] = np.inf
    for g in range(len(groups)):
        for q in range(k):
            top, value = tops[q], groups[g]
            for j in range(width):
                old, new = top[j], value[j]
                top[j] = new if new < old else old
                value[j] = old if new < old else new
    top = tops[k - 1]
    for j in range(width):
        limits[j] = top[j] if top[j] < limits[j] else limits[j]


@njit_helper
def _insert_pairs(lowered, strip, keys, mask, k, products, tops, limits, number):
    """Put the rows of every pair of a tile on each other's list, if their distance is not above its limit."""
    start, stop, column, width = strip
    bits = number.view(np.int64)
    for row in range(start, stop):
        for t in range(0, width, LANES):
            place = (row - start) * width + t
            near = nearer(products, place, lowered[row], lowered, column + t, limits, limits[row])
            while near:
                b = lowest_bit(near)
                near &= near - 1
                other = column + t + b % LANES
                owner = other if b < LANES else row
                product = products[place + b % LANES]
                number[0] = lowered[row] + lowered[other] - (product + product)
                value, at = (bits[0] & ~mask) | (keys[row] ^ keys[other]), owner * (k + 1)
                for q in range(at, at + k + 1):  # without branches, which would mostly be predicted wrongly
                    old = tops[q]
                    tops[q] = min(old, value)
                    value = max(old, value)
                bits[0] = tops[at + k] | mask
                limit = products.dtype.type(number[0])
                limits[owner] = limit if limit < limits[owner] else limits[owner]


@njit_helper
def _accept(subset, start, stop, first, steps, keys, keepers, k, work, near, apart):
    """Write the k nearest rows of tests start..stop - 1; most[test] is -1 if they are certain, else a limit of bounds.

    steps: from one test's list in tops to the next, and from one entry to the next.
    """
    tops, mask, squares = work.tops, len(keepers) - 1, subset.squares
    distances = tops.view(np.float64)
    for row in range(start, stop):
        most = 0.0
        for q in range(k):
            place = (row - start) * steps[0] + q * steps[1]
            other = keepers[(tops[place] & mask) ^ keys[row]]
            near[row - first, q], apart[row - first, q] = other, distances[place]
            slack = np.float64(subset.error * (squares[row] + squares[other]) + subset.least)
            most = max(most, distances[place] + 2.0 * slack)
        last = (row - start) * steps[0] + k * steps[1]
        is_certain = subset.error == 0 or distances[last] > most or tops[last] == FARTHEST
        work.most[row] = -1.0 if is_certain else most


@njit_helper
def _settle(subset, end, first, train, strip, is_loo, keys, k, work, near, apart):
    """Find the k nearest rows of the open tests of a strip by exact distances; return the number of open tests."""
    start, stop, column, width = strip
    lowered, n_open = subset.lowered, 0
    for row in range(column, end):
        most, count = work.most[row], np.int64(0)  # a plain 0 would make numba compile `_keep` twice
        if most < 0.0:
            continue
        n_open += 1
        for at in range(stop - start):
            other = train[start + at]
            bound = lowered[row] + lowered[other] - 2 * work.products[at * width + row - column]
            if bound <= most and not (is_loo and other == row):
                count = _keep(work, count, other, exact_distance(subset, row, other), keys[row] ^ keys[other])
        for q in range(k):
            slack = np.float64(subset.error * (subset.squares[row] + subset.squares[work.row[q]]))
            near[row - first, q] = work.row[q]
            apart[row - first, q] = work.distance[q] * subset.scale * subset.scale - slack
    return n_open


@njit_helper
def _keep(work, count, other, distance, tie):
    """Insert a row into the sorted list of the nearest, if it is one of them; return the length of the list."""
    k, rows, far, ties = len(work.row), work.row, work.distance, work.tie
    if count == k and (distance > far[k - 1] or (distance == far[k - 1] and tie > ties[k - 1])):
        return count
    place = min(count, k - 1)
    while place > 0 and (distance < far[place - 1] or (distance == far[place - 1] and tie < ties[place - 1])):
        rows[place], far[place], ties[place] = rows[place - 1], far[place - 1], ties[place - 1]
        place -= 1
    rows[place], far[place], ties[place] = other, distance, tie
    return min(count + 1, k)


@njit_helper
def exact_distance(subset, i, j):
    """Squared distance of two rows, of their values as they are."""
    total = 0.0
    for f in subset.features:
        off = np.float64(subset.XT[f, i]) - np.float64(subset.XT[f, j])
        total += off * off
    return total
