"""Triton kernels of `neighbors_quick`: lower bounds of squared distances, the search among them, exact distances.

Constants: K neighbors, E candidates (K and a few more), C room for them (a power of two), D candidates that each slot
of a tile holds. The MODE says which rows are compared: see `neighbors_quick`.
"""

import triton
import triton.language as tl

DELTA = tl.constexpr(2.0**-12)
FAR = tl.constexpr(1e38)


@triton.jit
def squares(
    products, errors, features, starts, chosen, groups, reduced_squares, slacks, zero_feature, width, rounding,
    BLOCK: tl.constexpr, DEPTH: tl.constexpr, FEW: tl.constexpr,
):  # fmt: skip
    """Write the squared length of each row minus its slack (the bound of the error), and the slack.

    Both are 0 for subsets of few features, whose distances come from differences.
    """
    position = tl.program_id(0).to(tl.int64)
    subset = tl.load(chosen + position)
    rows = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = rows < width
    start = tl.load(starts + subset)
    size = (tl.load(starts + subset + 1) - start).to(tl.int32)
    total = tl.zeros([BLOCK], tl.float32)
    error_total = tl.zeros([BLOCK], tl.float32)
    depth = tl.arange(0, DEPTH)
    for k in range(0, tl.where(size < FEW, 0, size), DEPTH):
        feature = tl.load(features + start + k + depth, mask=k + depth < size, other=zero_feature).to(tl.int64)
        address = feature[:, None] * width + rows[None, :]
        values = tl.load(products + address, mask=inside[None, :], other=0.0).to(tl.float32)
        error = tl.load(errors + address, mask=inside[None, :], other=0.0).to(tl.float32)
        total += tl.sum(values * values, axis=0)
        error_total += tl.sum(error * error, axis=0)
    slack = rounding * total + (2.0001 / DELTA) * error_total
    is_row = tl.load(groups + rows, mask=inside, other=-1) >= 0
    tl.store(reduced_squares + position * width + rows, tl.where(is_row, total - slack, FAR), mask=inside)
    tl.store(slacks + position * width + rows, slack, mask=inside)


@triton.jit
def _push(first, second, third, fourth, value, D: tl.constexpr):
    """Insert a value into the smallest values so far of each slot, in ascending order."""
    rest = tl.maximum(first, value)
    first = tl.minimum(first, value)
    rest_2 = tl.maximum(second, rest)
    second = tl.minimum(second, rest)
    if D == 4:
        fourth = tl.minimum(fourth, tl.maximum(third, rest_2))
    third = tl.minimum(third, rest_2)
    return first, second, third, fourth


@triton.jit
def _drop(first, second, third, fourth, hit_1, hit_2, hit_3, hit_4, D: tl.constexpr):
    """Remove the values that are hit; the following values move up."""
    hit_2 = hit_1 | hit_2
    hit_3 = hit_2 | hit_3
    first = tl.where(hit_1, second, first)
    second = tl.where(hit_2, third, second)
    if D == 4:
        third = tl.where(hit_3, fourth, third)
        fourth = tl.where(hit_3 | hit_4, FAR, fourth)
    else:
        third = tl.where(hit_3, FAR, third)
    return first, second, third, fourth


@triton.jit
def _bound(value):
    """A bound, with 0 restored where the number of a tile made it a tiny number."""
    return tl.where(tl.abs(value) < 1e-37, 0.0, value)


@triton.jit
def _tile(
    products, features, start, size, row_values, row_values_2, feature_row, feature_row_2, rows, columns,
    zero_feature, width, FIRST: tl.constexpr, SECOND: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Dot products of the rows and columns of a tile."""
    if FIRST > 0:
        dots = tl.dot(row_values, tl.load(feature_row + columns[None, :]))
        if SECOND > 0:
            dots = tl.dot(row_values_2, tl.load(feature_row_2 + columns[None, :]), dots)
        return dots
    dots = tl.zeros([ROWS, COLUMNS], tl.float32)
    for k in range(0, size, 64):
        depth = k + tl.arange(0, 64)
        feature = tl.load(features + start + depth, mask=depth < size, other=zero_feature).to(tl.int64)
        piece = tl.load(products + feature[None, :] * width + rows[:, None])
        dots = tl.dot(piece, tl.load(products + feature[:, None] * width + columns[None, :]), dots)
    return dots


@triton.jit
def _few(
    XT, features, start, size, rows, columns, groups, width, scale, MODE: tl.constexpr, ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):  # fmt: skip
    """Squared distances between the rows and columns of a tile, from differences of the original values."""
    squared = tl.zeros([ROWS, COLUMNS], XT.dtype.element_ty)
    for k in range(size):
        feature_row = XT + tl.load(features + start + k).to(tl.int64) * width
        difference = (tl.load(feature_row + rows)[:, None] - tl.load(feature_row + columns)[None, :]) * scale
        squared += difference * difference
    others = tl.load(groups + columns)[None, :]
    is_other = others >= 0
    if MODE == 2:
        is_other = is_other & (others != tl.load(groups + rows)[:, None])
    return tl.where(is_other, squared.to(tl.float32), FAR)


@triton.jit
def candidates(
    products, features, starts, chosen, order, reduced_squares, groups, skip, query_of, candidates, lower_bounds,
    rest_bounds, zero_feature, n_queries, width, n_tiles, mask, scale, E: tl.constexpr, C: tl.constexpr,
    D: tl.constexpr, FIRST: tl.constexpr, SECOND: tl.constexpr, MODE: tl.constexpr, ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):  # fmt: skip
    """Write the E nearest rows of each row of a tile by lower bounds, and the least bound of all other rows."""
    tile = tl.program_id(0)
    position = tl.load(order + tl.program_id(1)).to(tl.int64)
    subset = tl.load(chosen + position).to(tl.int64)
    start = tl.load(starts + subset)
    size = (tl.load(starts + subset + 1) - start).to(tl.int32)
    rows = tile * ROWS + tl.arange(0, ROWS)
    local = tl.arange(0, COLUMNS)
    skip_first = tl.load(skip + 2 * tile)
    skipped = tl.load(skip + 2 * tile + 1)

    row_values, row_values_2, feature_row, feature_row_2 = 0, 0, products, products
    if FIRST > 0:
        depth = tl.arange(0, FIRST)
        feature = tl.load(features + start + depth, mask=depth < size, other=zero_feature).to(tl.int64)
        row_values = tl.load(products + feature[None, :] * width + rows[:, None])
        feature_row = products + feature[:, None] * width
        if SECOND > 0:
            depth_2 = FIRST + tl.arange(0, SECOND)
            feature_2 = tl.load(features + start + depth_2, mask=depth_2 < size, other=zero_feature).to(tl.int64)
            row_values_2 = tl.load(products + feature_2[None, :] * width + rows[:, None])
            feature_row_2 = products + feature_2[:, None] * width

    first = tl.full([ROWS, COLUMNS], FAR, tl.float32)
    second = first
    third = first
    fourth = first
    subset_squares = reduced_squares + position * width
    columns = tl.where(skip_first > 0, 0, skipped) * COLUMNS + local
    next_square = tl.load(subset_squares + columns)
    for step in range(n_tiles - skipped):
        next_columns = tl.where(step + 1 < skip_first, step + 1, step + 1 + skipped) * COLUMNS
        next_columns = tl.minimum(next_columns, width - COLUMNS) + local
        other_square = next_square
        next_square = tl.load(subset_squares + next_columns)  # loaded while this tile is searched
        if FIRST < 0:
            bounds = _few(products, features, start, size, rows, columns, groups, width, scale, MODE, ROWS, COLUMNS)
        else:
            dots = _tile(
                products, features, start, size, row_values, row_values_2, feature_row, feature_row_2, rows, columns,
                zero_feature, width, FIRST, SECOND, ROWS, COLUMNS,
            )  # fmt: skip
            bounds = other_square[None, :] - 2.0 * dots
            if MODE == 2:
                is_other = tl.load(groups + rows)[:, None] != tl.load(groups + columns)[None, :]
                bounds = tl.where(is_other, bounds, FAR)
        bits = (bounds.to(tl.int32, bitcast=True) & ~mask) | step
        first, second, third, fourth = _push(first, second, third, fourth, bits.to(tl.float32, bitcast=True), D)
        columns = next_columns

    rest_bound = tl.min(fourth if D == 4 else third, axis=1)
    row_square = tl.load(reduced_squares + position * width + rows)
    query = tl.load(query_of + rows)
    is_query = query >= 0
    out = position * n_queries + query
    if MODE == 0:
        is_own_column = local[None, :] == (rows % COLUMNS)[:, None]
        tile_of = (rows // COLUMNS)[:, None]
        hit_1 = is_own_column & ((first.to(tl.int32, bitcast=True) & mask) == tile_of)
        hit_2 = is_own_column & ((second.to(tl.int32, bitcast=True) & mask) == tile_of)
        hit_3 = is_own_column & ((third.to(tl.int32, bitcast=True) & mask) == tile_of)
        hit_4 = is_own_column & ((fourth.to(tl.int32, bitcast=True) & mask) == tile_of)
        first, second, third, fourth = _drop(first, second, third, fourth, hit_1, hit_2, hit_3, hit_4, D)
    no_hits = tl.zeros([ROWS, COLUMNS], tl.int1)
    least = tl.full([ROWS], FAR, tl.float32)
    for candidate in range(E):
        least, column = tl.min(first, axis=1, return_indices=True)
        step_of = least.to(tl.int32, bitcast=True) & mask
        base_of = tl.where(step_of < skip_first, step_of, step_of + skipped) * COLUMNS
        is_candidate = least < 0.5 * FAR
        tl.store(candidates + out * C + candidate, tl.where(is_candidate, base_of + column, 0), mask=is_query)
        bound = tl.where(is_candidate, _bound(least + row_square), FAR)
        tl.store(lower_bounds + out * C + candidate, bound, mask=is_query)
        hit = local[None, :] == column[:, None]
        first, second, third, fourth = _drop(first, second, third, fourth, hit, no_hits, no_hits, no_hits, D)
    tl.store(rest_bounds + out, _bound(tl.minimum(rest_bound, least) + row_square), mask=is_query)


@triton.jit
def accept_certain(
    query_rows, slacks, candidates, lower_bounds, rest_bounds, near, is_undecided, n_queries, width, K: tl.constexpr,
    E: tl.constexpr, C: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Write the first K candidates, and whether bounds prove that no other row is nearer."""
    position = tl.program_id(1).to(tl.int64)
    query = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    is_query = query < n_queries
    number = tl.arange(0, C)
    pair = position * n_queries + query
    address = pair[:, None] * C + number[None, :]
    is_known = is_query[:, None] & (number < E)[None, :]
    other = tl.load(candidates + address, mask=is_known, other=0)
    least = tl.load(lower_bounds + address, mask=is_known, other=FAR)
    query_row = tl.load(query_rows + query, mask=is_query, other=0)
    slack = tl.load(slacks + position * width + other, mask=(number < K)[None, :], other=0.0)
    slack += tl.load(slacks + position * width + query_row)[:, None]
    upper_bound = tl.max(tl.where((number < K)[None, :], (1.0 + DELTA) * (least + 2.0 * slack), 0.0), axis=1)
    next_bound = tl.min(tl.where((number >= K)[None, :], least, FAR), axis=1)
    rest_bound = tl.load(rest_bounds + pair, mask=is_query, other=FAR)
    is_certain = upper_bound < (1.0 - DELTA) * tl.minimum(next_bound, rest_bound)
    tl.store(near + pair[:, None] * K + number[None, :], other, mask=is_query[:, None] & (number < K)[None, :])
    tl.store(is_undecided + pair, is_certain == 0, mask=is_query)


@triton.jit(do_not_specialize=["n_pairs"])
def rank_candidates(
    XT, features, starts, chosen, pairs, query_rows, keys, candidates, lower_bounds, rest_bounds, near,
    near_distances, is_undecided, n_pairs, n_queries, width, square_scale, K: tl.constexpr, E: tl.constexpr,
    C: tl.constexpr, SOFT: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Write the K nearest candidates by exact distances, for the given pairs of subset and query (all if ``SOFT``)."""
    pair = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    is_pair = pair < n_pairs
    if not SOFT:
        pair = tl.load(pairs + pair, mask=is_pair, other=0)
    pair = tl.where(is_pair, pair, 0)
    subset = tl.load(chosen + pair // n_queries).to(tl.int64)
    start = tl.load(starts + subset)
    size = (tl.load(starts + subset + 1) - start).to(tl.int32)
    query_row = tl.load(query_rows + pair % n_queries)
    number = tl.arange(0, C)
    address = pair[:, None] * C + number[None, :]
    is_known = is_pair[:, None] & (number < E)[None, :]
    is_candidate = tl.load(lower_bounds + address, mask=is_known, other=FAR) < 0.5 * FAR
    other = tl.load(candidates + address, mask=is_known & is_candidate, other=0)
    total = tl.zeros([ROWS, C], tl.float64)
    for k in tl.range(tl.max(size, axis=0), loop_unroll_factor=4):
        inside = is_pair & (k < size)
        feature_row = XT + tl.load(features + start + k, mask=inside, other=0).to(tl.int64) * width
        query_value = tl.load(feature_row + query_row, mask=inside, other=0.0).to(tl.float64)[:, None]
        values = tl.load(feature_row[:, None] + other, mask=inside[:, None] & is_candidate, other=0.0)
        difference = query_value - values.to(tl.float64)
        total += difference * difference
    total = tl.where(is_candidate, total, float("inf"))
    key = ((tl.load(keys + query_row)[:, None] ^ tl.load(keys + other)) << 32) | other.to(tl.int64)
    last = tl.zeros([ROWS], tl.float64)
    for q in range(K):
        last = tl.min(total, axis=1)
        nearest_key = tl.min(tl.where(total == last[:, None], key, 0x7FFFFFFFFFFFFFFF), axis=1)
        tl.store(near + pair * K + q, (nearest_key & 0xFFFFFFFF).to(tl.int32), mask=is_pair)
        if SOFT:
            tl.store(near_distances + pair * K + q, last, mask=is_pair)
        total = tl.where((total == last[:, None]) & (key == nearest_key[:, None]), float("inf"), total)
    bound = (1.0 - DELTA) * tl.load(rest_bounds + pair).to(tl.float64)
    tl.store(is_undecided + pair, last * square_scale >= bound, mask=is_pair)


@triton.jit
def exact_distances(XT, features, starts, chosen, positions, queries, distances, width, BLOCK: tl.constexpr):
    """Write the exact squared distances from queries to all rows."""
    pair = tl.program_id(1).to(tl.int64)
    subset = tl.load(chosen + tl.load(positions + pair)).to(tl.int64)
    query = tl.load(queries + pair)
    start = tl.load(starts + subset)
    size = (tl.load(starts + subset + 1) - start).to(tl.int32)
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float64)
    for k in range(size):
        feature_row = XT + tl.load(features + start + k).to(tl.int64) * width
        difference = tl.load(feature_row + query).to(tl.float64) - tl.load(feature_row + rows).to(tl.float64)
        total += difference * difference
    tl.store(distances + pair * width + rows, total)


@triton.jit
def select_nearest(
    distances, groups, keys, queries, pairs, near, near_distances, width, K: tl.constexpr, SOFT: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Write the K nearest rows of other groups by exact distances and keys: the next nearest row, K times."""
    pair = tl.program_id(0).to(tl.int64)
    query = tl.load(queries + pair)
    query_group, query_key = tl.load(groups + query), tl.load(keys + query)
    out = tl.load(pairs + pair) * K
    last, last_key = tl.zeros([], tl.float64) - 1.0, tl.zeros([], tl.int64) - 1
    for q in range(K):
        best = tl.zeros([], tl.float64) + float("inf")
        best_key = tl.zeros([], tl.int64) + 0x7FFFFFFFFFFFFFFF
        for base in range(0, width, BLOCK):
            rows = base + tl.arange(0, BLOCK)
            inside = rows < width
            group = tl.load(groups + rows, mask=inside, other=-1)
            distance = tl.load(distances + pair * width + rows, mask=inside, other=float("inf"))
            key = ((tl.load(keys + rows, mask=inside, other=0) ^ query_key) << 32) | rows.to(tl.int64)
            is_next = (distance > last) | ((distance == last) & (key > last_key))
            distance = tl.where(is_next & (group >= 0) & (group != query_group), distance, float("inf"))
            least = tl.min(distance, axis=0)
            least_key = tl.min(tl.where(distance == least, key, 0x7FFFFFFFFFFFFFFF), axis=0)
            is_less = (least < best) | ((least == best) & (least_key < best_key))
            best = tl.where(is_less, least, best)
            best_key = tl.where(is_less, least_key, best_key)
        tl.store(near + out + q, (best_key & 0xFFFFFFFF).to(tl.int32))
        if SOFT:
            tl.store(near_distances + out + q, best)
        last = best
        last_key = best_key
