"""Nearest neighbours on a GPU: candidates by products in half precision, settled by exact distances.

`candidates` fuses products and search: the table of distances is never written. Each place of a tile keeps the few
nearest rows that came along in it; a distance and the number of its tile share 32 bits. What it compares are lower
bounds of squared distances. With p the values as products have them, e how far a row is from its own p, and any d in
(0, 1), exact squared distances are at least (1 - d) L and at most (1 + d) U, where

    L, U = |p_a - p_b|^2 -+ 2/d (|e_a|^2 + |e_b|^2), less and plus the rounding of sums.

Of few features squared differences of values as they are take their place: neighbours are near there, beside what
products round off.

Where rows are many and neighbours few, rows are searched in bundles, of which the least bound counts: then there is one
comparison for each distance, not five. The k nearest rows are in the k nearest bundles, whose rows are looked at again.

`part` takes the k nearest where these bounds part them from all others. Else, and where distances are asked for,
`settle` finds the exact distances of the candidates. What is open still is left to exact distances to all rows.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import torch
import triton
from numpy.typing import NDArray
from torch import Tensor

from . import neighbors_triton as kernels
from .columns import ALIGN, send_array
from .neighbors import MANY_ROWS, Rows

MOST_BUNDLED = 3  # neighbours: of more, too many would share the few places that bundles leave
SPARE = 3  # candidates beyond the k nearest: with fewer, more is left to exact distances to all rows
SQUARES = {"BLOCK": 1024, "DEEP": 8, "num_warps": 4}  # rows and features that a program reads at a time
SETTLED = ({"ROWS": 32, "num_warps": 1}, {"ROWS": 4, "num_warps": 1})  # pairs of subset and query; with bundles
PARTED = {"ROWS": 32, "num_warps": 1}  # queries
ROUNDING = 2.0**-17  # of sums in float32 of products, as a share of both squares, for up to 512 features
HALF_RANGE = 2.0**-16  # of the largest column's reach: below, half precision would lose digits of a column
HALF_TOP = 2.0**12
EXACT_BYTES = 2**28
# A subset's features are read in two pieces, each a power of two long: (first, second) for sizes up to their sum.
PIECES = ((32, 0), (64, 0), (64, 32), (128, 0), (128, 32), (128, 64), (256, 0))
ALONE, PURE, MIXED = 0, 1, 2  # each row is a group; every tile is of one; any
_compiling = threading.Lock()


class Tile(NamedTuple):
    """Rows and columns of a tile of distances, and the rows of a bundle, of which the nearest counts.

    ``few``: of fewer features, differences are squared one by one.
    """

    rows: int
    columns: int
    bundle: int
    few: int
    warps: int = 4
    stages: int = 3


FEW_ROWS, SINGLE, BUNDLED = Tile(64, 32, 1, 8), Tile(64, 64, 1, 8), Tile(128, 64, 8, 4)


class Program(NamedTuple):
    """A kernel, how many of it, what they are given, and how they are made."""

    kernel: Any
    grid: tuple[int, ...]
    given: tuple[Any, ...]
    how: dict[str, Any]

    @property
    def key(self) -> tuple[Any, ...]:
        return self.kernel.__name__, *self.how.values()

    def run(self) -> None:
        self.kernel[self.grid](*self.given, **self.how)


class Quick:
    """Rows as products want them, and how they are sought."""

    def __init__(self, rows: Rows, groups: NDArray[np.int64], queries: NDArray[np.int64], k: int, soft: bool) -> None:
        """``groups`` are those of the lines' rows, -1 for what fills up; ``queries`` the rows to be tested.

        Of k neighbours, with squared distances if ``soft``.
        """
        self.rows, self.width, self.device, self.k, self.soft = rows, rows.lines.shape[1], rows.lines.device, k, soft
        is_bundled = self.width > MANY_ROWS and k <= MOST_BUNDLED and not soft
        self.tile = BUNDLED if is_bundled else SINGLE if self.width > MANY_ROWS else FEW_ROWS
        self.made: set[tuple[Any, ...]] = set()
        is_row = torch.from_numpy(groups >= 0).to(self.device)
        last_row = int(np.flatnonzero(groups >= 0)[-1])
        self.n_queries, self.n_tiles = len(queries), last_row // self.tile.columns + 1
        query_of = np.full(self.width, -1, np.int32)
        query_of[queries] = np.arange(len(queries))
        self.query_of = torch.from_numpy(query_of).to(self.device)
        self.query_rows = torch.from_numpy(queries.astype(np.int32)).to(self.device)
        self.n_row_tiles = int(queries[-1]) // self.tile.rows + 1
        self.mask, self.zero_line = triton.next_power_of_2(self.n_tiles) - 1, len(rows.lines) - 1
        self._set_mode(groups, query_of)
        self.groups = torch.from_numpy(groups.astype(np.int32)).to(self.device)
        self._send_products(is_row)

    def _set_mode(self, groups: NDArray[np.int64], query_of: NDArray[np.int32]) -> None:
        """Whether no tile is of two groups; then which column tiles are of the own one: (first, how many)."""
        columns, room = self.tile.columns, np.full(self.n_row_tiles * self.tile.rows, -1)
        room[: len(groups)] = groups[: len(room)]
        tiles = room.reshape(self.n_row_tiles, -1)
        own, skip = tiles.max(axis=1), np.zeros((self.n_row_tiles, 2), np.int32)
        known = groups[groups >= 0]
        mode = PURE if ((tiles == own[:, None]) | (tiles < 0)).all() else MIXED
        for tile, group in enumerate(own.tolist() if mode is PURE else ()):
            inside = np.flatnonzero(groups == group)
            first, last = inside[0] // columns, inside[-1] // columns + 1
            others = groups[first * columns : last * columns]
            mode = mode if ((others == group) | (others < 0)).all() else MIXED
            skip[tile] = first, last - first
        if mode is MIXED:
            skip[:] = 0
            mode = ALONE if len(np.unique(known)) == len(known) else MIXED
        self.mode, self.skip = mode, torch.from_numpy(skip).to(self.device)

    def _send_products(self, is_row: Tensor) -> None:
        """The lines less their means, times a power of two, rounded to 11 bits; the rounding is what bounds count."""
        lines, n_rows = self.rows.lines, int(is_row.sum())
        self.centers = torch.zeros(len(lines), dtype=torch.float64, device=self.device)
        reach = torch.zeros_like(self.centers)
        step = max(1, 2**24 // self.width)
        for start in range(0, len(lines), step):
            some = slice(start, start + step)
            part, first = lines[some].double(), lines[some, 0].double()
            self.centers[some] = first + torch.where(is_row, part - first[:, None], 0.0).sum(dim=1) / n_rows
            reach[some] = torch.where(is_row, part - self.centers[some, None], 0.0).abs().amax(dim=1)
        used = reach[reach > 0]
        most = float(used.max()) if len(used) else 1.0
        self.scale = float(2.0 ** np.clip(np.floor(np.log2(HALF_TOP / most)), -60, 60))
        self.are_halves = not len(used) or float(used.min()) * self.scale >= HALF_RANGE * HALF_TOP
        dtype = torch.float16 if self.are_halves else torch.float32
        self.products = torch.zeros(lines.shape, dtype=dtype, device=self.device)
        self.errors = torch.zeros(lines.shape, dtype=torch.bfloat16, device=self.device)
        for start in range(0, len(lines), step):
            some = slice(start, start + step)
            away = torch.where(is_row, lines[some].double() - self.centers[some, None], 0.0) * self.scale
            kept = away.to(dtype)
            if not self.are_halves:  # what the matrix units keep of float32
                kept = ((kept.view(torch.int32) + 0x1000) & -0x2000).view(torch.float32)
            self.products[some], self.errors[some] = kept, ((away - kept).abs() * (1 + 2.0**-7)).bfloat16()
        tiles = self.products.view(len(lines), -1, self.tile.columns // self.tile.bundle, self.tile.bundle)
        self.searched = tiles.transpose(2, 3).reshape(lines.shape)  # the rows of a bundle apart; no copy without

    def nearest(
        self, features: Tensor, starts: Tensor, sizes: NDArray[np.int64], chosen: NDArray[np.int64]
    ) -> tuple[Tensor, Tensor]:
        """The k nearest rows of other groups (chosen, queries, k), and if ``soft`` squared distances, ascending."""
        asked = features, starts, send_array(chosen.astype(np.int32), self.device)
        search = Search(self, asked, sizes[chosen])
        self._compile(search.programs())
        search.run()
        return search.near, search.apart if self.soft else search.apart.expand(search.near.shape)

    def _compile(self, programs: list[Program]) -> None:
        """All that are new at once: a search is a program of its own for each range of sizes."""
        with _compiling:
            new = [program for program in programs if program.key not in self.made]
            if len(new) > 1 and isinstance(kernels.candidates, triton.JITFunction):
                with ThreadPoolExecutor(len(new)) as pool:
                    list(pool.map(self._compile_one, new))
            self.made |= {program.key for program in new}

    def _compile_one(self, program: Program) -> None:
        with torch.cuda.device(self.device):
            program.kernel.warmup(*program.given, grid=(1, 1), **program.how)


class Search:
    """The neighbours of all queries in some subsets, as programs to be made and run, and what these write."""

    def __init__(self, quick: Quick, asked: tuple[Tensor, ...], sizes: NDArray[np.int64]) -> None:
        self.quick, self.asked, self.sizes, self.k, self.soft = quick, asked, sizes, quick.k, quick.soft
        k, soft = quick.k, quick.soft
        shape, options = (len(sizes), quick.n_queries), {"device": quick.device}
        self.found = {"E": k + SPARE, "C": triton.next_power_of_2(k + SPARE)}  # candidates, and room for them
        self.near = torch.empty((*shape, k), dtype=torch.int32, **options)
        self.apart = torch.empty((*shape, k) if soft else (1,), dtype=torch.float64, **options)
        self.is_open = torch.empty(shape, dtype=torch.bool, **options)
        self.candidates = torch.empty((*shape, self.found["C"]), dtype=torch.int32, **options)
        self.low = torch.empty((*shape, self.found["C"]), dtype=torch.float32, **options)
        self.hidden = torch.empty(shape, dtype=torch.float32, **options)
        self.square = torch.empty((len(sizes), quick.width), dtype=torch.float32, **options)
        self.slacks = torch.empty_like(self.square)
        self.by_size = list(self._by_size())
        self.bounded = [self._squares(), *self._candidates(), *([] if soft else self._part())]

    def programs(self) -> list[Program]:
        """All that may be needed."""
        one = torch.zeros(1, dtype=torch.int64, device=self.quick.device)
        return [*self.bounded, self._settle(one, 1), *self._settle_open(one)]

    def run(self) -> None:
        for program in self.bounded:
            program.run()
        pairs = self.is_open.new_empty(1, dtype=torch.int64) if self.soft else self._open_pairs()
        n_pairs = self.is_open.numel() if self.soft else len(pairs)
        if n_pairs:
            self._settle(pairs, n_pairs).run()
            still_open, step = self._open_pairs(), max(1, EXACT_BYTES // (8 * self.quick.width))
            for some in torch.split(still_open, step) if len(still_open) else ():
                for program in self._settle_open(some):
                    program.run()

    def _open_pairs(self) -> Tensor:
        """Of subset and query, by number."""
        return torch.nonzero(self.is_open.view(-1))[:, 0]

    def _squares(self) -> Program:
        quick = self.quick
        rounding = ROUNDING * max(1.0, self.sizes.max(initial=1) / 512) + 3 * quick.mask * 2.0**-23
        given = (
            quick.products, quick.errors, *self.asked, quick.groups, self.square, self.slacks, quick.zero_line,
            quick.width, rounding,
        )  # fmt: skip
        grid = len(self.sizes), -(-quick.width // SQUARES["BLOCK"])
        how = {"BUNDLE": quick.tile.bundle, "COLUMNS": quick.tile.columns, "FEW": quick.tile.few, **SQUARES}
        return Program(kernels.squares, grid, given, how)

    def _candidates(self) -> list[Program]:
        """One for each range of sizes."""
        quick, tile, programs = self.quick, self.quick.tile, []
        for order, first, second in self.by_size:
            given = (
                quick.rows.lines if first < 0 else quick.products, quick.searched, *self.asked, order, self.square,
                quick.groups, quick.skip, quick.query_of, self.candidates, self.low, self.hidden, quick.zero_line,
                quick.n_queries, quick.width, quick.n_tiles, quick.mask, quick.scale,
            )  # fmt: skip
            how = {
                **self.found, "D": 3 if self.k <= 4 and tile.bundle == 1 else 4, "BUNDLE": tile.bundle, "FIRST": first,
                "SECOND": second, "MODE": quick.mode, "ROWS": tile.rows, "COLUMNS": tile.columns,
                "num_warps": tile.warps, "num_stages": tile.stages,
            }  # fmt: skip
            programs.append(Program(kernels.candidates, (quick.n_row_tiles, len(order)), given, how))
        return programs

    def _by_size(self) -> Iterator[tuple[Tensor, int, int]]:
        """(which, first piece, second piece); pieces of 0 for those that are read in a loop, -1 for few features."""
        steps = np.array([sum(pieces) for pieces in PIECES])
        number = np.where(self.sizes < self.quick.tile.few, -1, np.searchsorted(steps, self.sizes))
        for own in np.unique(number).tolist():
            pieces = (-1, 0) if own < 0 else PIECES[own] if own < len(PIECES) else (0, 0)
            yield send_array(np.flatnonzero(number == own).astype(np.int32), self.quick.device), *pieces

    def _part(self) -> list[Program]:
        quick = self.quick
        if quick.tile.bundle > 1:
            return [self._part_bundles(order, first < 0) for order, first, _ in self.by_size]
        given = (
            quick.query_rows, self.slacks, self.candidates, self.low, self.hidden, self.near, self.is_open,
            quick.n_queries, quick.width,
        )  # fmt: skip
        grid = -(-quick.n_queries // 64), len(self.sizes)
        return [Program(kernels.part, grid, given, {"K": self.k, **self.found, "ROWS": 64})]

    def _part_bundles(self, order: Tensor, are_few: bool) -> Program:
        """From the bounds of all rows of the nearest bundles; of few features by values as they are."""
        quick = self.quick
        given = (
            quick.rows.lines if are_few else quick.products, *self.asked, order, quick.query_rows, quick.groups,
            self.slacks, self.candidates, self.low, self.hidden, self.near, self.is_open, quick.n_queries, quick.width,
            quick.scale,
        )  # fmt: skip
        how = {"BUNDLE": quick.tile.bundle, "N": triton.next_power_of_2(self.k), "SCALED": are_few, **PARTED}
        grid = -(-quick.n_queries // PARTED["ROWS"]), len(order)
        return Program(kernels.part_bundles, grid, given, {"K": self.k, **self.found, **how})

    def _settle(self, pairs: Tensor, n_pairs: int) -> Program:
        """Of some pairs, or if ``soft`` of all, among their candidates."""
        quick = self.quick
        given = (
            quick.rows.lines, *self.asked, pairs, quick.query_rows, quick.groups, quick.rows.keys, self.candidates,
            self.low, self.hidden, self.near, self.apart, self.is_open, n_pairs, quick.n_queries, quick.width,
            quick.scale**2,
        )  # fmt: skip
        settled = SETTLED[quick.tile.bundle > 1]
        how = {"BUNDLE": quick.tile.bundle, "SOFT": self.soft, "enable_fp_fusion": False, **settled}
        return Program(kernels.settle, (-(-n_pairs // settled["ROWS"]),), given, {"K": self.k, **self.found, **how})

    def _settle_open(self, pairs: Tensor) -> list[Program]:
        """Of some pairs, by exact distances to all rows."""
        quick = self.quick
        queries, subsets = quick.query_rows[pairs % quick.n_queries], (pairs // quick.n_queries).int()
        distances = torch.empty((len(pairs), quick.width), dtype=torch.float64, device=quick.device)
        found = quick.rows.lines, *self.asked, subsets, queries, distances, quick.width
        picked = distances, quick.groups, quick.rows.keys, queries, pairs, self.near, self.apart, quick.width
        exact = {"BLOCK": ALIGN, "enable_fp_fusion": False}
        return [
            Program(kernels.distances, (quick.width // ALIGN, len(pairs)), found, exact),
            Program(kernels.pick, (len(pairs),), picked, {"K": self.k, "SOFT": self.soft, "BLOCK": 1024}),
        ]
