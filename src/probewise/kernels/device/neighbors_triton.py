"""Kernels of `neighbors_quick`: lower bounds of distances and the search among them, and exact distances.

The rows searched come in bundles, of which the least bound counts: for each distance there is one comparison then, not
five. In the table searched, the rows of a bundle are so far apart that they come to one thread.
"""

import triton
import triton.language as tl

DELTA = tl.constexpr(2.0**-12)
FAR = tl.constexpr(1e38)


@triton.jit
def _seat(rows, BUNDLE: tl.constexpr, COLUMNS: tl.constexpr):
    """The column of the table searched that has a row."""
    if BUNDLE == 1:
        return rows
    return rows // COLUMNS * COLUMNS + rows % BUNDLE * (COLUMNS // BUNDLE) + rows % COLUMNS // BUNDLE


@triton.jit
def _row(seats, BUNDLE: tl.constexpr, COLUMNS: tl.constexpr):
    """The row that a column of the table searched has."""
    return _seat(seats, COLUMNS // BUNDLE, COLUMNS) if BUNDLE > 1 else seats


@triton.jit
def squares(
    products, errors, features, starts, chosen, groups, square, slacks, zero_line, width, rounding,
    BUNDLE: tl.constexpr, COLUMNS: tl.constexpr, BLOCK: tl.constexpr, DEEP: tl.constexpr, FEW: tl.constexpr,
):  # fmt: skip
    """Of each row, what of its squared length bounds leave, and how much they take off; 0 for few features."""
    place = tl.program_id(0).to(tl.int64)
    subset = tl.load(chosen + place)
    rows = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = rows < width
    start = tl.load(starts + subset)
    size = (tl.load(starts + subset + 1) - start).to(tl.int32)
    total = tl.zeros([BLOCK], tl.float32)
    missed = tl.zeros([BLOCK], tl.float32)
    deep = tl.arange(0, DEEP)
    for k in range(0, tl.where(size < FEW, 0, size), DEEP):
        feature = tl.load(features + start + k + deep, mask=k + deep < size, other=zero_line).to(tl.int64)
        at = feature[:, None] * width + rows[None, :]
        values = tl.load(products + at, mask=inside[None, :], other=0.0).to(tl.float32)
        error = tl.load(errors + at, mask=inside[None, :], other=0.0).to(tl.float32)
        total += tl.sum(values * values, axis=0)
        missed += tl.sum(error * error, axis=0)
    slack = rounding * total + (2.0001 / DELTA) * missed
    is_row = tl.load(groups + rows, mask=inside, other=-1) >= 0
    seats = _seat(rows, BUNDLE, COLUMNS)
    tl.store(square + place * width + seats, tl.where(is_row, total - slack, FAR), mask=inside)
    tl.store(slacks + place * width + rows, slack, mask=inside)


@triton.jit
def _push(first, second, third, fourth, value, D: tl.constexpr):
    """Into the nearest so far, place by place."""
    rest = tl.maximum(first, value)
    first = tl.minimum(first, value)
    more = tl.maximum(second, rest)
    second = tl.minimum(second, rest)
    if D == 4:
        fourth = tl.minimum(fourth, tl.maximum(third, more))
    third = tl.minimum(third, more)
    return first, second, third, fourth


@triton.jit
def _drop(first, second, third, fourth, hit_1, hit_2, hit_3, hit_4, D: tl.constexpr):
    """Take those hit out, and let what follows them move up."""
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
    """Without what the number of a tile makes of 0."""
    return tl.where(tl.abs(value) < 1e-37, 0.0, value)


@triton.jit
def _tile(
    products, searched, features, start, size, own, own_2, line, line_2, rows, columns, zero_line, width,
    FIRST: tl.constexpr, SECOND: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Products of a tile of rows and columns."""
    if FIRST > 0:
        found = tl.dot(own, tl.load(line + columns[None, :]))
        if SECOND > 0:
            found = tl.dot(own_2, tl.load(line_2 + columns[None, :]), found)
        return found
    found = tl.zeros([ROWS, COLUMNS], tl.float32)
    for k in range(0, size, 64):
        deep = k + tl.arange(0, 64)
        feature = tl.load(features + start + deep, mask=deep < size, other=zero_line).to(tl.int64)
        some = tl.load(products + feature[None, :] * width + rows[:, None])
        found = tl.dot(some, tl.load(searched + feature[:, None] * width + columns[None, :]), found)
    return found


@triton.jit
def _few(
    lines, features, start, size, rows, first_column, groups, width, scale, MODE: tl.constexpr, BUNDLE: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Of a tile of rows and bundles, the least squared distances, from differences of values as they are."""
    PLACES: tl.constexpr = COLUMNS // BUNDLE
    least = tl.full([ROWS, PLACES], FAR, tl.float32)
    for member in range(BUNDLE):
        columns = first_column + tl.arange(0, PLACES) * BUNDLE + member
        far = tl.zeros([ROWS, PLACES], lines.dtype.element_ty)
        for k in range(size):
            line = lines + tl.load(features + start + k).to(tl.int64) * width
            off = (tl.load(line + rows)[:, None] - tl.load(line + columns)[None, :]) * scale
            far += off * off
        others = tl.load(groups + columns)[None, :]
        is_other = others >= 0
        if MODE == 2 or (MODE == 0 and BUNDLE > 1):
            is_other = is_other & (others != tl.load(groups + rows)[:, None])
        least = tl.minimum(least, tl.where(is_other, far.to(tl.float32), FAR))
    return least


@triton.jit
def candidates(
    products, searched, features, starts, chosen, order, square, groups, skip, query_of, candidates, low, hidden,
    zero_line, n_queries, width, n_tiles, mask, scale, E: tl.constexpr, C: tl.constexpr, D: tl.constexpr,
    BUNDLE: tl.constexpr, FIRST: tl.constexpr, SECOND: tl.constexpr, MODE: tl.constexpr, ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):  # fmt: skip
    """The E bundles nearest to each row of a tile by lower bounds, and the least that the bounds of others may be."""
    tile = tl.program_id(0)
    place = tl.load(order + tl.program_id(1)).to(tl.int64)
    subset = tl.load(chosen + place).to(tl.int64)
    start = tl.load(starts + subset)
    size = (tl.load(starts + subset + 1) - start).to(tl.int32)
    rows = tile * ROWS + tl.arange(0, ROWS)
    local = tl.arange(0, COLUMNS)
    skip_first = tl.load(skip + 2 * tile)
    skipped = tl.load(skip + 2 * tile + 1)

    own, own_2, line, line_2 = 0, 0, products, products
    if FIRST > 0:
        deep = tl.arange(0, FIRST)
        feature = tl.load(features + start + deep, mask=deep < size, other=zero_line).to(tl.int64)
        own = tl.load(products + feature[None, :] * width + rows[:, None])
        line = searched + feature[:, None] * width
        if SECOND > 0:
            deep_2 = FIRST + tl.arange(0, SECOND)
            feature_2 = tl.load(features + start + deep_2, mask=deep_2 < size, other=zero_line).to(tl.int64)
            own_2 = tl.load(products + feature_2[None, :] * width + rows[:, None])
            line_2 = searched + feature_2[:, None] * width

    PLACES: tl.constexpr = COLUMNS // BUNDLE
    first = tl.full([ROWS, PLACES], FAR, tl.float32)
    second = first
    third = first
    fourth = first
    squares = square + place * width
    here = tl.where(skip_first > 0, 0, skipped) * COLUMNS + local
    next_square = tl.load(squares + here)
    for step in range(n_tiles - skipped):
        after = tl.where(step + 1 < skip_first, step + 1, step + 1 + skipped) * COLUMNS
        after = tl.minimum(after, width - COLUMNS) + local
        other_square = next_square
        next_square = tl.load(squares + after)  # on its way while this tile is searched
        if FIRST < 0:
            first_column = tl.where(step < skip_first, step, step + skipped) * COLUMNS
            apart = _few(
                products, features, start, size, rows, first_column, groups, width, scale, MODE, BUNDLE, ROWS, COLUMNS
            )
        else:
            found = _tile(
                products, searched, features, start, size, own, own_2, line, line_2, rows, here, zero_line, width,
                FIRST, SECOND, ROWS, COLUMNS,
            )  # fmt: skip
            apart = other_square[None, :] - 2.0 * found
            if MODE == 2 or (MODE == 0 and BUNDLE > 1):
                others = tl.load(groups + _row(here, BUNDLE, COLUMNS))
                apart = tl.where(tl.load(groups + rows)[:, None] != others[None, :], apart, FAR)
            if BUNDLE > 1:
                apart = tl.min(tl.reshape(apart, [ROWS, BUNDLE, PLACES]), axis=1)
        bits = (apart.to(tl.int32, bitcast=True) & ~mask) | step
        first, second, third, fourth = _push(first, second, third, fourth, bits.to(tl.float32, bitcast=True), D)
        here = after

    unseen = tl.min(fourth if D == 4 else third, axis=1)
    own_square = tl.load(square + place * width + _seat(rows, BUNDLE, COLUMNS))
    query = tl.load(query_of + rows)
    is_query = query >= 0
    out = place * n_queries + query
    places = tl.arange(0, PLACES)
    if MODE == 0 and BUNDLE == 1:
        at = local[None, :] == (rows % COLUMNS)[:, None]
        tile_of = (rows // COLUMNS)[:, None]
        hit_1 = at & ((first.to(tl.int32, bitcast=True) & mask) == tile_of)
        hit_2 = at & ((second.to(tl.int32, bitcast=True) & mask) == tile_of)
        hit_3 = at & ((third.to(tl.int32, bitcast=True) & mask) == tile_of)
        hit_4 = at & ((fourth.to(tl.int32, bitcast=True) & mask) == tile_of)
        first, second, third, fourth = _drop(first, second, third, fourth, hit_1, hit_2, hit_3, hit_4, D)
    no = tl.zeros([ROWS, PLACES], tl.int1)
    least = tl.full([ROWS], FAR, tl.float32)
    for candidate in range(E):
        least, column = tl.min(first, axis=1, return_indices=True)
        step_of = least.to(tl.int32, bitcast=True) & mask
        base_of = tl.where(step_of < skip_first, step_of, step_of + skipped) * PLACES
        is_found = least < 0.5 * FAR
        tl.store(candidates + out * C + candidate, tl.where(is_found, base_of + column, 0), mask=is_query)
        tl.store(low + out * C + candidate, tl.where(is_found, _bound(least + own_square), FAR), mask=is_query)
        hit = places[None, :] == column[:, None]
        first, second, third, fourth = _drop(first, second, third, fourth, hit, no, no, no, D)
    tl.store(hidden + out, _bound(tl.minimum(unseen, least) + own_square), mask=is_query)


@triton.jit
def part(
    query_rows, slacks, candidates, low, hidden, near, is_open, n_queries, width, K: tl.constexpr, E: tl.constexpr,
    C: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """The first k candidates, where bounds part them from all other rows."""
    place = tl.program_id(1).to(tl.int64)
    query = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    is_query = query < n_queries
    number = tl.arange(0, C)
    flat = place * n_queries + query
    at = flat[:, None] * C + number[None, :]
    is_known = is_query[:, None] & (number < E)[None, :]
    other = tl.load(candidates + at, mask=is_known, other=0)
    least = tl.load(low + at, mask=is_known, other=FAR)
    own = tl.load(query_rows + query, mask=is_query, other=0)
    slack = tl.load(slacks + place * width + other, mask=(number < K)[None, :], other=0.0)
    slack += tl.load(slacks + place * width + own)[:, None]
    most = tl.max(tl.where((number < K)[None, :], (1.0 + DELTA) * (least + 2.0 * slack), 0.0), axis=1)
    after = tl.min(tl.where((number >= K)[None, :], least, FAR), axis=1)
    unseen = tl.load(hidden + flat, mask=is_query, other=FAR)
    is_sure = most < (1.0 - DELTA) * tl.minimum(after, unseen)
    tl.store(near + flat[:, None] * K + number[None, :], other, mask=is_query[:, None] & (number < K)[None, :])
    tl.store(is_open + flat, is_sure == 0, mask=is_query)


@triton.jit
def part_bundles(
    table, features, starts, chosen, order, query_rows, groups, slacks, candidates, low, hidden, near, is_open,
    n_queries, width, scale, K: tl.constexpr, E: tl.constexpr, C: tl.constexpr, BUNDLE: tl.constexpr,
    N: tl.constexpr, SCALED: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """The k nearest rows of the k nearest bundles, where bounds part them from all other rows."""
    place = tl.load(order + tl.program_id(1)).to(tl.int64)
    query = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    is_query = query < n_queries
    subset = tl.load(chosen + place).to(tl.int64)
    start = tl.load(starts + subset)
    size = (tl.load(starts + subset + 1) - start).to(tl.int32)
    own = tl.load(query_rows + query, mask=is_query, other=0)
    flat = place * n_queries + query
    number = tl.arange(0, N)
    at = flat[:, None] * C + number[None, :]
    is_there = is_query[:, None] & (number < K)[None, :]
    is_there = is_there & (tl.load(low + at, mask=is_there, other=FAR) < 0.5 * FAR)
    bundle = tl.load(candidates + at, mask=is_there, other=0)
    other = bundle[:, :, None] * BUNDLE + tl.arange(0, BUNDLE)[None, None, :]
    group = tl.load(groups + other)
    is_other = is_there[:, :, None] & (group >= 0) & (group != tl.load(groups + own)[:, None, None])
    kind: tl.constexpr = table.dtype.element_ty if SCALED else tl.float32
    total = tl.zeros([ROWS, N, BUNDLE], kind)
    for k in range(size):
        line = table + tl.load(features + start + k).to(tl.int64) * width
        off = tl.load(line + own)[:, None, None].to(kind) - tl.load(line + other).to(kind)
        if SCALED:
            off = off * scale
        total += off * off
    slack = tl.load(slacks + place * width + own)[:, None, None] + tl.load(slacks + place * width + other)
    bound = tl.where(is_other, total.to(tl.float32) - slack, FAR)
    most = tl.reshape((bound + 2.0 * slack) * (1.0 + DELTA), [ROWS, N * BUNDLE])
    bound = tl.reshape(bound, [ROWS, N * BUNDLE])
    others = tl.reshape(other, [ROWS, N * BUNDLE])
    places = tl.arange(0, N * BUNDLE)
    farthest = tl.zeros([ROWS], tl.float32)
    for q in range(K):
        _, column = tl.min(bound, axis=1, return_indices=True)
        hit = places[None, :] == column[:, None]
        farthest = tl.maximum(farthest, tl.sum(tl.where(hit, most, 0.0), axis=1))
        tl.store(near + flat * K + q, tl.sum(tl.where(hit, others, 0), axis=1), mask=is_query)
        bound = tl.where(hit, FAR, bound)
    after = tl.min(bound, axis=1)
    after = tl.minimum(after, tl.load(low + flat * C + K, mask=is_query & (K < E), other=FAR))
    after = tl.minimum(after, tl.load(hidden + flat, mask=is_query, other=FAR))
    is_sure = farthest < (1.0 - DELTA) * after
    tl.store(is_open + flat, is_sure == 0, mask=is_query)


@triton.jit(do_not_specialize=["n_pairs"])
def settle(
    raw, features, starts, chosen, pairs, query_rows, groups, keys, candidates, low, hidden, near, apart, is_open,
    n_pairs, n_queries, width, square_scale, K: tl.constexpr, E: tl.constexpr, C: tl.constexpr, BUNDLE: tl.constexpr,
    SOFT: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """The k nearest candidates of some pairs of subset and query, or if ``SOFT`` of all, by exact distances."""
    flat = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    is_pair = flat < n_pairs
    if not SOFT:
        flat = tl.load(pairs + flat, mask=is_pair, other=0)
    flat = tl.where(is_pair, flat, 0)
    subset = tl.load(chosen + flat // n_queries).to(tl.int64)
    start = tl.load(starts + subset)
    size = (tl.load(starts + subset + 1) - start).to(tl.int32)
    own = tl.load(query_rows + flat % n_queries)
    number = tl.arange(0, C * BUNDLE)
    at = flat[:, None] * C + (number // BUNDLE)[None, :]
    is_known = is_pair[:, None] & (number < E * BUNDLE)[None, :]
    is_there = tl.load(low + at, mask=is_known, other=FAR) < 0.5 * FAR
    other = tl.load(candidates + at, mask=is_known & is_there, other=0) * BUNDLE + (number % BUNDLE)[None, :]
    if BUNDLE > 1:
        group = tl.load(groups + other)
        is_there = is_there & (group >= 0) & (group != tl.load(groups + own)[:, None])
    total = tl.zeros([ROWS, C * BUNDLE], tl.float64)
    for k in tl.range(tl.max(size, axis=0), loop_unroll_factor=4):
        inside = is_pair & (k < size)
        line = raw + tl.load(features + start + k, mask=inside, other=0).to(tl.int64) * width
        off = tl.load(line + own, mask=inside, other=0.0).to(tl.float64)[:, None]
        off = off - tl.load(line[:, None] + other, mask=inside[:, None] & is_there, other=0.0).to(tl.float64)
        total += off * off
    total = tl.where(is_there, total, float("inf"))
    key = ((tl.load(keys + own)[:, None] ^ tl.load(keys + other)) << 32) | other.to(tl.int64)
    last = tl.zeros([ROWS], tl.float64)
    for q in range(K):
        last = tl.min(total, axis=1)
        own_key = tl.min(tl.where(total == last[:, None], key, 0x7FFFFFFFFFFFFFFF), axis=1)
        tl.store(near + flat * K + q, (own_key & 0xFFFFFFFF).to(tl.int32), mask=is_pair)
        if SOFT:
            tl.store(apart + flat * K + q, last, mask=is_pair)
        total = tl.where((total == last[:, None]) & (key == own_key[:, None]), float("inf"), total)
    bound = (1.0 - DELTA) * tl.load(hidden + flat).to(tl.float64)
    tl.store(is_open + flat, last * square_scale >= bound, mask=is_pair)


@triton.jit
def distances(raw, features, starts, chosen, places, queries, distances, width, BLOCK: tl.constexpr):
    """Exact squared distances of some rows to all others."""
    pair = tl.program_id(1).to(tl.int64)
    subset = tl.load(chosen + tl.load(places + pair)).to(tl.int64)
    query = tl.load(queries + pair)
    start = tl.load(starts + subset)
    size = (tl.load(starts + subset + 1) - start).to(tl.int32)
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float64)
    for k in range(size):
        line = raw + tl.load(features + start + k).to(tl.int64) * width
        off = tl.load(line + query).to(tl.float64) - tl.load(line + rows).to(tl.float64)
        total += off * off
    tl.store(distances + pair * width + rows, total)


@triton.jit
def pick(
    distances, groups, keys, queries, places, near, apart, width, K: tl.constexpr, SOFT: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """The k nearest of other groups by exact distances and keys: the next nearest, k times."""
    pair = tl.program_id(0).to(tl.int64)
    query = tl.load(queries + pair)
    own_group, own_key = tl.load(groups + query), tl.load(keys + query)
    out = tl.load(places + pair) * K
    last, last_key = tl.zeros([], tl.float64) - 1.0, tl.zeros([], tl.int64) - 1
    for q in range(K):
        best = tl.zeros([], tl.float64) + float("inf")
        best_key = tl.zeros([], tl.int64) + 0x7FFFFFFFFFFFFFFF
        for base in range(0, width, BLOCK):
            rows = base + tl.arange(0, BLOCK)
            inside = rows < width
            group = tl.load(groups + rows, mask=inside, other=-1)
            far = tl.load(distances + pair * width + rows, mask=inside, other=float("inf"))
            key = ((tl.load(keys + rows, mask=inside, other=0) ^ own_key) << 32) | rows.to(tl.int64)
            is_next = (far > last) | ((far == last) & (key > last_key))
            far = tl.where(is_next & (group >= 0) & (group != own_group), far, float("inf"))
            least = tl.min(far, axis=0)
            least_key = tl.min(tl.where(far == least, key, 0x7FFFFFFFFFFFFFFF), axis=0)
            is_less = (least < best) | ((least == best) & (least_key < best_key))
            best = tl.where(is_less, least, best)
            best_key = tl.where(is_less, least_key, best_key)
        tl.store(near + out + q, (best_key & 0xFFFFFFFF).to(tl.int32))
        if SOFT:
            tl.store(apart + out + q, best)
        last = best
        last_key = best_key
