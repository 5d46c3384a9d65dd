"""Random permutations of the values of rows, within bins of groups and within groups, and scores of ranks.

The random words of draw ``i`` come from SplitMix64 started at a hash of (seed, i), so any worker can make any draw.
"""

import numpy as np

from .draw import MASK32, SHIFT32
from .jit import njit_cached, njit_helper

GAMMA = np.uint64(0x9E3779B97F4A7C15)
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)


@njit_helper
def mixed(state):
    """SplitMix64's output function."""
    state = (state ^ (state >> np.uint64(30))) * MIX_1
    state = (state ^ (state >> np.uint64(27))) * MIX_2
    return state ^ (state >> np.uint64(31))


@njit_helper
def shuffle(order, start, stop, state):
    """Fisher-Yates shuffle of order[start:stop]; returns the next state of the random numbers."""
    for last in range(stop - 1, start, -1):
        state += GAMMA
        other = start + np.int64(((mixed(state) & MASK32) * np.uint64(last - start + 1)) >> SHIFT32)
        order[last], order[other] = order[other], order[last]
    return state


@njit_cached
def permuted(means, deviations, group_starts, bin_starts, carries, rows, seed, first, out):
    """Fill out[draw, target, row] with permuted values.

    The value of a row is the mean of its group plus its deviation. Means are exchanged between the groups of a bin;
    deviations go with them where ``carries`` is true for the bin (its groups have one size), and are shuffled within
    each group. ``rows`` are the row numbers, sorted by group, and groups are sorted by bin.
    """
    n_draws, n_targets, n_rows = out.shape
    n_groups = len(group_starts) - 1
    groups, positions = np.empty(n_groups, np.int64), np.empty(n_rows, np.int64)
    has_deviations = n_groups < n_rows
    for draw in range(n_draws):
        state = mixed(np.uint64(seed) * GAMMA + mixed(np.uint64(first + draw) * MIX_2))
        for group in range(n_groups):
            groups[group] = group
        for k in range(len(bin_starts) - 1):
            state = shuffle(groups, bin_starts[k], bin_starts[k + 1], state)
        if not has_deviations:
            for target in range(n_targets):
                for group in range(n_groups):
                    out[draw, target, rows[group]] = means[target, groups[group]]
            continue
        for position in range(n_rows):
            positions[position] = position
        for k in range(len(bin_starts) - 1):
            for group in range(bin_starts[k], bin_starts[k + 1]):
                origin = groups[group] if carries[k] else group
                start, stop = group_starts[origin], group_starts[origin + 1]
                state = shuffle(positions, start, stop, state)
                for target in range(n_targets):
                    for place in range(stop - start):
                        out[draw, target, rows[group_starts[group] + place]] = (
                            means[target, groups[group]] + deviations[target, positions[start + place]]
                        )


@njit_cached
def scores_of_ranks(columns, order, basis, out, tied):
    """Fill out[column, function, row] with functions of the ranks of a column, and ``tied`` with its tie pattern.

    ``order`` sorts each column, with missing values last. ``basis[function, k]`` is the value at rank k of n. Equal
    values get the mean over their ranks, missing values 0, and each function is centered over the known values.
    ``tied`` is the number of rows in the largest group of equal or missing values (1: no ties).
    """
    n_columns, n_rows = columns.shape
    n_functions = len(basis)
    for column in range(n_columns):
        n_known = n_rows
        while n_known > 0 and np.isnan(columns[column, order[column, n_known - 1]]):
            n_known -= 1
        largest = max(1, n_rows - n_known)
        for function in range(n_functions):
            total, start = 0.0, 0
            while start < n_known:
                stop, value = start + 1, columns[column, order[column, start]]
                while stop < n_known and columns[column, order[column, stop]] == value:
                    stop += 1
                largest = max(largest, stop - start)
                mean = 0.0
                for rank in range(start, stop):
                    mean += basis[function, ((2 * rank + 1) * n_rows) // (2 * n_known)]
                total += mean
                mean /= stop - start
                for rank in range(start, stop):
                    out[column, function, order[column, rank]] = mean
                start = stop
            center = total / max(n_known, 1)
            for rank in range(n_known):
                out[column, function, order[column, rank]] -= center
            for rank in range(n_known, n_rows):
                out[column, function, order[column, rank]] = 0.0
        tied[column] = largest
