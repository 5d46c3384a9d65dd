"""What the nearest rows say of each tested row, for all probes of a block in one call: votes, means, probabilities.

Distances come from inner products, in float32 where that serves, with a bound of their error. Where it leaves open
which rows are the nearest, distances in float64, of the values as they are, decide; of rows equally far away that with
the lower key for this row (see `tie_keys`).

Votes may count by distance: neighbours at squared distances d_1, ..., d_k have the weights softmax(-d / T). T is a
fifth of the mean, over all tested rows, of the squared distance to the fifth neighbour, so that J does not depend on
the scale.
"""

import math

import numpy as np

from .jit import longest, njit_cached, njit_helper
from .order import sort_few
from .products import CHUNK, ROWS, strip_products, strip_width
from .scores import PROBABILITY, ROC_AUC
from .vectors import AHEAD, LANES, fetch, keep_nearest

WIDEST = 3 * LANES  # tests side by side
TYPICAL = 5  # the neighbour whose distance sets the temperature
NEARLY = 2e-4  # of that distance: an error that a vote by distance may have
SAMPLE = 15  # values of a column, whose median is its middle
EXACT = 2.0**24  # whole numbers up to here are exact in float32
E = tuple(1.0 / math.factorial(n) for n in range(14))  # of the exponential function's series
UNKNOWN = -1
FARTHEST = np.iinfo(np.int64).max


def tie_keys(n_rows):
    """A number from 0 to n_rows - 1 for each row: of rows equally far from row i the lowest key[i] ^ key[j] is nearer.

    The keys are places in the order of a hash of the row's number (the last step of MurmurHash3): neither the order of
    rows nor their classes have a say, and every row breaks ties in its own way.
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


@njit_cached
def extents(lines, middles, reach, is_whole):
    """Of each line: the median of a few values, the largest distance from it, and whether all values are whole."""
    n = lines.shape[1]
    some = np.empty(min(n, SAMPLE), lines.dtype)
    for f in range(len(lines)):
        line = lines[f]
        for place in range(len(some)):
            some[place] = line[place * n // len(some)]
        sort_few(some)
        middle = some[len(some) // 2]
        widest, whole = lines.dtype.type(0), True
        for i in range(n):
            widest = max(widest, abs(line[i] - middle))
            whole &= line[i] == np.rint(line[i])
        middles[f], reach[f], is_whole[f] = middle, widest, whole or widest == 0


@njit_cached
def vote_probes(columns, probes, folds, k, truth, precision, predicted):
    """What the neighbours say of each test, into predicted (probes, tests); of how many exact distances decided.

    columns: lines (features, columns), each column a row of X, and what `extents` says of them. probes: indices and
    offsets. folds: fold f tests the columns tests[f]..tests[f + 1] - 1 and trains on train[trains[f]:trains[f + 1]],
    but for the column itself if ``alone``; train has ROWS entries more. truth: targets of columns, keys for ties
    (WIDEST more), which column to train on has a key, how many classes, and the measure. precision: eps and tiny of the
    floats that products are made in.
    """
    lines, middles, reach, is_whole = columns
    indices, offsets = probes
    tests, trains, train, alone = folds
    targets, keys, keepers, n_classes, measure = truth
    kind, first, last = precision.dtype, tests[0], tests[-1]
    stride, most = lines.shape[1] + WIDEST, longest(trains)
    values = np.zeros(longest(offsets) * stride, kind)
    squares, sums = np.zeros(stride, kind), np.zeros(stride, kind)
    products, tops = np.empty((most + ROWS) * WIDEST, kind), np.empty((k + 1) * WIDEST, np.int64)
    found, far, ties = np.empty(k, np.int64), np.empty(k), np.empty(k, np.int64)
    alike, table = np.empty(lines.shape[1], np.int64), np.empty(4 << int(np.log2(lines.shape[1])), np.int64)
    known, seen = np.empty(lines.shape[1]), np.empty(lines.shape[1], np.int64)
    near, apart = np.empty((last - first, k), np.int64), np.empty((last - first, k))
    own, labels, n_exact = targets[first:last], targets.astype(np.int64), 0
    for probe in range(len(predicted)):
        chosen = indices[offsets[probe] : offsets[probe + 1]]
        scale = _scale(reach, is_whole, chosen)
        _load(lines, middles, chosen, scale, stride, values, squares, sums)
        error, least = _error(len(chosen), scale, len(keepers), precision)
        alike[0] = UNKNOWN
        for i in range(stride):
            sums[i] = (kind.type(1) - error) * squares[i]  # so that no distance seems larger than it is
        for fold in range(len(tests) - 1):
            column = tests[fold]
            while column < tests[fold + 1]:
                width = strip_width(tests[fold + 1] - column, values.itemsize)
                some = trains[fold], trains[fold + 1], column, width
                strip_products(values, len(chosen), stride, train, some, products)
                _sort_out(products, train, some, alone, sums, keys, len(keepers) - 1, k, tops)
                stop = min(column + width, tests[fold + 1])
                n_exact += _neighbors(
                    lines, chosen, scale, values, products, train, some, stop, first, alone, squares, sums, error,
                    least, keys, keepers, k, tops, (found, far, ties), (alike, table, known, seen), near, apart,
                )  # fmt: skip
                column += width
        if measure == PROBABILITY:
            _measure(lines, chosen, scale, squares, first, error, least, near, apart)
            _soft_votes(near, apart, targets, own, predicted[probe])
        elif n_classes and measure != ROC_AUC:
            vote(near, labels, predicted[probe])
        else:
            average(near, targets, predicted[probe])  # of two classes: the share of class 1
    return n_exact


@njit_helper
def _scale(reach, is_whole, chosen):
    """The power of two that brings the largest value near 1; 0 stands for 1 where whole numbers are exact already."""
    widest, whole = 0.0, True
    for f in chosen:
        widest = max(widest, np.float64(reach[f]))
        whole &= is_whole[f]
    if whole and 4.0 * len(chosen) * widest * widest <= EXACT:
        return 0.0
    return 2.0 ** -np.float64(math.frexp(widest)[1])


@njit_helper
def _error(n_lines, scale, n_keys, precision):
    """How far off a squared distance is at most: error * (sum of both rows' squares) + least; none if all is exact."""
    unit = 0.5 * np.float64(precision[0])
    terms = min(n_lines, CHUNK) + n_lines // CHUNK + 5
    error = 0.0 if scale == 0.0 else unit * (2 * terms + 20) + 2.0**-50 * n_keys
    return precision.dtype.type(error), precision.dtype.type(0.0 if scale == 0.0 else precision[1] * n_lines)


@njit_helper
def _load(lines, middles, chosen, scale, stride, values, squares, sums):
    """The probe's lines less their middles, scaled, and the sum of squares of every column."""
    n, factor = lines.shape[1], lines.dtype.type(scale if scale > 0.0 else 1.0)
    squares[:] = 0
    for first in range(0, len(chosen), CHUNK):
        sums[:] = 0
        for f in range(first, min(first + CHUNK, len(chosen))):
            if f + AHEAD < len(chosen):
                fetch(lines, chosen[f + AHEAD])
            line, to, middle = lines[chosen[f]], values[f * stride : (f + 1) * stride], middles[chosen[f]]
            for i in range(n):
                value = values.dtype.type((line[i] - middle) * factor)
                to[i] = value
                sums[i] += value * value
        for i in range(n):
            squares[i] += sums[i]


@njit_helper
def _sort_out(products, train, some, alone, lessened, keys, mask, k, tops):
    """The k + 1 rows nearest to each of the tests side by side, by the least that their distances may be."""
    start, stop, column, width = some
    for place in range((k + 1) * width):
        tops[place] = FARTHEST
    if alone:
        for t in range(min(width, stop - column)):
            products[(column + t) * width + t] = -np.inf
    for at in range(stop - start):
        other = train[start + at]
        for t in range(0, width, LANES):
            keep_nearest(
                products, at * width + t, lessened[other], lessened, column + t, keys, keys[other], mask, tops, t,
                width, k + 1,
            )  # fmt: skip


@njit_helper
def _neighbors(
    lines, chosen, scale, values, products, train, some, stop, first, alone, squares, lessened, error, least, keys,
    keepers, k, tops, nearest, copies, near, apart,
):  # fmt: skip
    """The k nearest of each test, and the least that their squared distances may be; how many were left open first."""
    start, end, column, width = some
    (found, far, ties), (alike, table, known, seen) = nearest, copies
    distances, mask, n_open = tops.view(np.float64), len(keepers) - 1, 0
    for row in range(column, stop):
        most, t = 0.0, row - column
        for q in range(k):
            other = keepers[(tops[q * width + t] & mask) ^ keys[row]]
            near[row - first, q] = other
            apart[row - first, q] = distances[q * width + t]
            slack = np.float64(error * (squares[row] + squares[other]) + least)
            most = max(most, distances[q * width + t] + 2.0 * slack)
        if error == 0 or distances[k * width + t] > most or tops[k * width + t] == FARTHEST:
            continue
        n_open += 1
        if alike[0] == UNKNOWN:
            _find_copies(lines, chosen, values, alike, table)
            seen[:] = UNKNOWN
        count = np.int64(0)  # with a plain 0 numba would compile `_keep` twice
        for at in range(end - start):
            other = train[start + at]
            if lessened[row] + lessened[other] - 2 * products[at * width + t] <= most and not (alone and other == row):
                twin = alike[other]
                if seen[twin] != row:
                    known[twin], seen[twin] = _distance(lines, chosen, row, other), row
                count = _keep(found, far, ties, count, other, known[twin], keys[row] ^ keys[other])
        for q in range(k):
            near[row - first, q] = found[q]
            apart[row - first, q] = far[q] * scale * scale - np.float64(error * (squares[row] + squares[found[q]]))
    return n_open


@njit_helper
def _keep(found, far, ties, count, other, distance, tie):
    """Put a row among the nearest, sorted, if it is one of them; of two equally far that of the lower key is nearer."""
    k = len(found)
    if count == k and (distance > far[k - 1] or (distance == far[k - 1] and tie > ties[k - 1])):
        return count
    place = min(count, k - 1)
    while place > 0 and (distance < far[place - 1] or (distance == far[place - 1] and tie < ties[place - 1])):
        found[place], far[place], ties[place] = found[place - 1], far[place - 1], ties[place - 1]
        place -= 1
    found[place], far[place], ties[place] = other, distance, tie
    return min(count + 1, k)


@njit_helper
def _find_copies(lines, chosen, values, alike, table):
    """For each column the first that equals it in the probe: in text most are empty, and equally far from others."""
    n, stride, mask = len(alike), len(alike) + WIDEST, len(table) - 1
    table[:] = UNKNOWN
    for i in range(n):
        code = np.int64(0)
        for f in range(len(chosen)):
            code = code * 1000003 + np.int64(np.float64(values[f * stride + i]) * 2.0**50)
        place = (code ^ (code >> 29)) & mask
        while table[place] != UNKNOWN and not _are_copies(lines, chosen, i, table[place]):
            place = (place + 1) & mask
        if table[place] == UNKNOWN:
            table[place] = i
        alike[i] = table[place]


@njit_helper
def _are_copies(lines, chosen, i, j):
    are = True
    for f in chosen:
        are &= lines[f, i] == lines[f, j]
    return are


@njit_helper
def _distance(lines, chosen, i, j):
    """Squared distance of two rows, of their values as they are."""
    total = 0.0
    for f in chosen:
        off = np.float64(lines[f, i]) - np.float64(lines[f, j])
        total += off * off
    return total


@njit_helper
def _measure(lines, chosen, scale, squares, first, error, least, near, apart):
    """Squared distances of the nearest rows, which are sorted by them; so far apart has the least they may be."""
    n_tests, k = near.shape
    for test in range(n_tests):
        own = squares[first + test]
        for q in range(k):
            apart[test, q] = max(0.0, apart[test, q] + np.float64(error * (own + squares[near[test, q]])))
        _sort(apart, near, test)
        most = NEARLY * apart[test, min(TYPICAL, k) - 1]
        again = False
        for q in range(k):
            if error > 0 and np.float64(2 * error * (own + squares[near[test, q]]) + least) > most:
                apart[test, q] = _distance(lines, chosen, first + test, near[test, q]) * scale * scale
                again = True
        if again:
            _sort(apart, near, test)


@njit_helper
def _sort(apart, near, test):
    for q in range(1, near.shape[1]):
        distance, row, at = apart[test, q], near[test, q], q
        while at > 0 and apart[test, at - 1] > distance:
            apart[test, at] = apart[test, at - 1]
            near[test, at] = near[test, at - 1]
            at -= 1
        apart[test, at] = distance
        near[test, at] = row


@njit_helper
def _soft_votes(near, apart, targets, own, predicted):
    """The share of the votes, weighted by distance, for each row's own class."""
    n_tests, k = near.shape
    temperature = 0.0
    for test in range(n_tests):
        temperature += apart[test, min(TYPICAL, k) - 1]
    temperature = max(temperature / n_tests / 5.0, 1e-300)
    for test in range(n_tests):
        for q in range(k - 1, -1, -1):
            apart[test, q] = (apart[test, 0] - apart[test, q]) / temperature
    _exponentials(apart.reshape(n_tests * k))
    for test in range(n_tests):
        total, right = 0.0, 0.0
        for q in range(k):
            total += apart[test, q]
            right += apart[test, q] if targets[near[test, q]] == own[test] else 0.0
        predicted[test] = right / total


@njit_helper
def _exponentials(numbers):
    """e to the power of each number, which is not above 0, in place: 2^whole times a polynomial of the rest."""
    powers = np.empty(len(numbers), np.int64)
    scales = powers.view(np.float64)
    for i in range(len(numbers)):
        x = max(numbers[i], -700.0)
        whole = np.rint(x * 1.4426950408889634)
        rest = (x - whole * 0.6931471803691238) - whole * 1.9082149292705877e-10
        high = ((rest * E[13] + E[12]) * rest + E[11]) * rest + E[10]
        high = (((high * rest + E[9]) * rest + E[8]) * rest + E[7]) * rest + E[6]
        numbers[i] = (((((high * rest + E[5]) * rest + E[4]) * rest + E[3]) * rest + E[2]) * rest + 1.0) * rest + 1.0
        powers[i] = (np.int64(whole) + 1023) << 52
    for i in range(len(numbers)):
        numbers[i] *= scales[i]


@njit_helper
def vote(near, labels, predicted):
    """The most frequent label of the neighbours; the lowest, if several are."""
    n_tests, k = near.shape
    for test in range(n_tests):
        winner = 0
        for q in range(k):
            label, times = labels[near[test, q]], 0
            for other in range(k):
                times += labels[near[test, other]] == label
            winner = max(winner, (times << 32) - label)
        predicted[test] = -winner & 0xFFFFFFFF


@njit_helper
def average(near, targets, predicted):
    """The mean target of the neighbours."""
    n_tests, k = near.shape
    for test in range(n_tests):
        total = 0.0
        for q in range(k):
            total += targets[near[test, q]]
        predicted[test] = total / k
