"""Nearest neighbors on a GPU: candidates from products in half precision, confirmed by exact distances.

The kernel `candidates` computes products and searches among them at once, so the table of distances is never written.
Each slot of a tile holds the few nearest rows that it has seen; a distance and the number of its tile share 32 bits.
The kernel compares lower bounds of squared distances. Let p be the rounded values of a row, e the rounding errors of a
row, and d any number in (0, 1). Exact squared distances are at least (1 - d) L and at most (1 + d) U, where

    L, U = |p_a - p_b|^2 -+ 2/d (|e_a|^2 + |e_b|^2), minus and plus the rounding of sums.

Subsets of few features use squared differences of the original values instead: their neighbors are so near that the
rounding of products would hide the distances.

`accept_certain` takes the k nearest candidates if their bounds prove that no other row is nearer. For all other
queries, and if distances are needed, `rank_candidates` computes exact distances of the candidates. Queries that are
still undecided get exact distances to all rows.
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
from .neighbors import MANY_ROWS, TILE_ROWS, Rows

SPARE = 3  # candidates beyond the k nearest; with fewer, more queries need exact distances to all rows
SQUARES_OPTIONS = {"BLOCK": 1024, "DEPTH": 8, "num_warps": 4}  # rows and features that a program reads at a time
ROWS_RANKED, ROWS_ACCEPTED = 32, 64  # pairs of subset and query, and queries, per program
FEW = 8  # differences are squared one by one for subsets of fewer features
ROUNDING = 2.0**-17  # error of float32 sums of products, as a share of both squares, for up to 512 features
HALF_RANGE = 2.0**-16  # a column with a smaller share of the largest range would lose digits in half precision
HALF_MAX = 2.0**12  # the largest value after scaling
EXACT_BYTES = 2**28
# CUDA's limit on the second dimension of a grid is 65,535. A multiple of 16 keeps parts of a tensor aligned, without
# which Triton compiles again.
MOST_IN_GRID = 65_520
# The features of a subset are read in two pieces whose sizes are powers of two: (first, second), for up to their sum.
PIECES = ((32, 0), (64, 0), (64, 32), (128, 0), (128, 32), (128, 64), (256, 0))
# Modes of the search: every row is a group of its own; the rows of each tile are of one group; any groups.
SINGLE_ROWS, ONE_GROUP, ANY_GROUPS = 0, 1, 2
_compiling = threading.Lock()


class Program(NamedTuple):
    """A Triton kernel with its grid, arguments and compile options."""

    kernel: Any
    grid: tuple[int, ...]
    arguments: tuple[Any, ...]
    options: dict[str, Any]

    @property
    def key(self) -> tuple[Any, ...]:
        return self.kernel.__name__, *self.options.values()

    def run(self) -> None:
        self.kernel[self.grid](*self.arguments, **self.options)


class QuickNeighbors:
    """Rows rounded for products, and the tiles in which their neighbors are searched."""

    def __init__(self, rows: Rows, groups: NDArray[np.int64], queries: NDArray[np.int64], k: int, soft: bool) -> None:
        """Prepare the search for k neighbors, with squared distances if ``soft``.

        ``groups`` has the group of each row, -1 for padding; ``queries`` are the rows to test.
        """
        self.rows, self.width, self.device, self.k, self.soft = rows, rows.XT.shape[1], rows.XT.device, k, soft
        # With few rows, tiles are smaller, so that fewer slots are compared at the end.
        self.tile_columns = 64 if self.width > MANY_ROWS else 32
        self.compiled: set[tuple[Any, ...]] = set()
        is_row = torch.from_numpy(groups >= 0).to(self.device)
        last_row = int(np.flatnonzero(groups >= 0)[-1])
        self.n_queries, self.n_tiles = len(queries), last_row // self.tile_columns + 1
        query_of = np.full(self.width, -1, np.int32)
        query_of[queries] = np.arange(len(queries))
        self.query_of = torch.from_numpy(query_of).to(self.device)
        self.query_rows = torch.from_numpy(queries.astype(np.int32)).to(self.device)
        self.n_row_tiles = int(queries[-1]) // TILE_ROWS + 1
        self.mask, self.zero_feature = triton.next_power_of_2(self.n_tiles) - 1, len(rows.XT) - 1
        self._set_mode(groups)
        self.groups = torch.from_numpy(groups.astype(np.int32)).to(self.device)
        self._send_products(is_row)

    def _set_mode(self, groups: NDArray[np.int64]) -> None:
        """Choose the mode; if each tile has one group, ``skip`` has the column tiles of that group: (first, number)."""
        columns, padded_groups = self.tile_columns, np.full(self.n_row_tiles * TILE_ROWS, -1)
        padded_groups[: len(groups)] = groups[: len(padded_groups)]
        tiles = padded_groups.reshape(self.n_row_tiles, -1)
        group_of_tile, skip = tiles.max(axis=1), np.zeros((self.n_row_tiles, 2), np.int32)
        row_groups = groups[groups >= 0]
        mode = ONE_GROUP if ((tiles == group_of_tile[:, None]) | (tiles < 0)).all() else ANY_GROUPS
        for tile, group in enumerate(group_of_tile.tolist() if mode is ONE_GROUP else ()):
            inside = np.flatnonzero(groups == group)
            first, last = inside[0] // columns, inside[-1] // columns + 1
            others = groups[first * columns : last * columns]
            mode = mode if ((others == group) | (others < 0)).all() else ANY_GROUPS
            skip[tile] = first, last - first
        if mode is ANY_GROUPS:
            skip[:] = 0
            mode = SINGLE_ROWS if len(np.unique(row_groups)) == len(row_groups) else ANY_GROUPS
        self.mode, self.skip = mode, torch.from_numpy(skip).to(self.device)

    def _send_products(self, is_row: Tensor) -> None:
        """Round XT, minus its means and times a power of two, to 11 bits; the errors widen the bounds."""
        XT, n_rows = self.rows.XT, int(is_row.sum())
        self.centers = torch.zeros(len(XT), dtype=torch.float64, device=self.device)
        ranges = torch.zeros_like(self.centers)
        step = max(1, 2**24 // self.width)
        for start in range(0, len(XT), step):
            chunk = slice(start, start + step)
            part, first = XT[chunk].double(), XT[chunk, 0].double()
            self.centers[chunk] = first + torch.where(is_row, part - first[:, None], 0.0).sum(dim=1) / n_rows
            ranges[chunk] = torch.where(is_row, part - self.centers[chunk, None], 0.0).abs().amax(dim=1)
        nonzero = ranges[ranges > 0]
        max_range = float(nonzero.max()) if len(nonzero) else 1.0
        self.scale = float(2.0 ** np.clip(np.floor(np.log2(HALF_MAX / max_range)), -60, 60))
        self.are_halves = not len(nonzero) or float(nonzero.min()) * self.scale >= HALF_RANGE * HALF_MAX
        dtype = torch.float16 if self.are_halves else torch.float32
        self.products = torch.zeros(XT.shape, dtype=dtype, device=self.device)
        self.errors = torch.zeros(XT.shape, dtype=torch.bfloat16, device=self.device)
        for start in range(0, len(XT), step):
            chunk = slice(start, start + step)
            centered = torch.where(is_row, XT[chunk].double() - self.centers[chunk, None], 0.0) * self.scale
            rounded = centered.to(dtype)
            if not self.are_halves:  # round to the digits that the matrix units use of float32
                rounded = ((rounded.view(torch.int32) + 0x1000) & -0x2000).view(torch.float32)
            self.products[chunk], self.errors[chunk] = rounded, ((centered - rounded).abs() * (1 + 2.0**-7)).bfloat16()

    def nearest(
        self, features: Tensor, starts: Tensor, sizes: NDArray[np.int64], chosen: NDArray[np.int64]
    ) -> tuple[Tensor, Tensor]:
        """The k nearest rows of other groups (chosen, queries, k); if ``soft``, sorted, with squared distances."""
        subsets = features, starts, send_array(chosen.astype(np.int32), self.device)
        search = SubsetSearch(self, subsets, sizes[chosen])
        self._compile(search.programs())
        search.run()
        return search.near, search.near_distances if self.soft else search.near_distances.expand(search.near.shape)

    def _compile(self, programs: list[Program]) -> None:
        """Compile all new programs in parallel: a search has one program for each range of subset sizes."""
        with _compiling:
            new = [program for program in programs if program.key not in self.compiled]
            if len(new) > 1 and isinstance(kernels.candidates, triton.JITFunction):
                with ThreadPoolExecutor(len(new)) as pool:
                    list(pool.map(self._compile_one, new))
            self.compiled |= {program.key for program in new}

    def _compile_one(self, program: Program) -> None:
        with torch.cuda.device(self.device):
            program.kernel.warmup(*program.arguments, grid=(1, 1), **program.options)


class SubsetSearch:
    """A search for the neighbors of all queries in some subsets: its programs and the tensors that they write."""

    def __init__(self, quick: QuickNeighbors, subsets: tuple[Tensor, ...], sizes: NDArray[np.int64]) -> None:
        self.quick, self.subsets, self.sizes, self.k, self.soft = quick, subsets, sizes, quick.k, quick.soft
        k, soft = quick.k, quick.soft
        shape, device = (len(sizes), quick.n_queries), quick.device
        # Number of candidates, and the size of their table.
        self.constants = {"E": k + SPARE, "C": triton.next_power_of_2(k + SPARE)}
        self.near = torch.empty((*shape, k), dtype=torch.int32, device=device)
        self.near_distances = torch.empty((*shape, k) if soft else (1,), dtype=torch.float64, device=device)
        self.is_undecided = torch.empty(shape, dtype=torch.bool, device=device)
        self.candidates = torch.empty((*shape, self.constants["C"]), dtype=torch.int32, device=device)
        self.lower_bounds = torch.empty((*shape, self.constants["C"]), dtype=torch.float32, device=device)
        self.rest_bounds = torch.empty(shape, dtype=torch.float32, device=device)
        self.reduced_squares = torch.empty((len(sizes), quick.width), dtype=torch.float32, device=device)
        self.slacks = torch.empty_like(self.reduced_squares)
        self.by_size = list(self._by_size())
        self.bounding_programs = [self._squares(), *self._candidates(), *([] if soft else [self._accept()])]

    def programs(self) -> list[Program]:
        """All programs that the search may need."""
        one = torch.zeros(1, dtype=torch.int64, device=self.quick.device)
        return [*self.bounding_programs, self._rank_candidates(one, 1), *self._search_all_rows(one)]

    def run(self) -> None:
        for program in self.bounding_programs:
            program.run()
        pairs = self.is_undecided.new_empty(1, dtype=torch.int64) if self.soft else self._undecided_pairs()
        n_pairs = self.is_undecided.numel() if self.soft else len(pairs)
        if n_pairs:
            self._rank_candidates(pairs, n_pairs).run()
            undecided = self._undecided_pairs()
            step = min(MOST_IN_GRID, max(1, EXACT_BYTES // (8 * self.quick.width)))
            for chunk in torch.split(undecided, step) if len(undecided) else ():
                for program in self._search_all_rows(chunk):
                    program.run()

    def _undecided_pairs(self) -> Tensor:
        """Numbers of the pairs of subset and query without known neighbors."""
        return torch.nonzero(self.is_undecided.view(-1))[:, 0]

    def _squares(self) -> Program:
        quick = self.quick
        rounding = ROUNDING * max(1.0, self.sizes.max(initial=1) / 512) + 3 * quick.mask * 2.0**-23
        arguments = (
            quick.products, quick.errors, *self.subsets, quick.groups, self.reduced_squares, self.slacks,
            quick.zero_feature, quick.width, rounding,
        )  # fmt: skip
        grid = len(self.sizes), -(-quick.width // SQUARES_OPTIONS["BLOCK"])
        return Program(kernels.squares, grid, arguments, {"FEW": FEW, **SQUARES_OPTIONS})

    def _candidates(self) -> list[Program]:
        """One program for each range of subset sizes."""
        quick, programs = self.quick, []
        for order, first, second in self.by_size:
            arguments = (
                quick.rows.XT if first < 0 else quick.products, *self.subsets, order, self.reduced_squares,
                quick.groups, quick.skip, quick.query_of, self.candidates, self.lower_bounds, self.rest_bounds,
                quick.zero_feature, quick.n_queries, quick.width, quick.n_tiles, quick.mask, quick.scale,
            )  # fmt: skip
            options = {
                **self.constants, "D": 3 if self.k <= 4 else 4, "FIRST": first, "SECOND": second, "MODE": quick.mode,
                "ROWS": TILE_ROWS, "COLUMNS": quick.tile_columns, "num_warps": 4, "num_stages": 3,
            }  # fmt: skip
            programs.append(Program(kernels.candidates, (quick.n_row_tiles, len(order)), arguments, options))
        return programs

    def _by_size(self) -> Iterator[tuple[Tensor, int, int]]:
        """(subsets, first piece, second piece); first piece 0: features are read in a loop; -1: few features."""
        steps = np.array([sum(pieces) for pieces in PIECES])
        number = np.where(self.sizes < FEW, -1, np.searchsorted(steps, self.sizes))
        for index in np.unique(number).tolist():
            pieces = (-1, 0) if index < 0 else PIECES[index] if index < len(PIECES) else (0, 0)
            yield send_array(np.flatnonzero(number == index).astype(np.int32), self.quick.device), *pieces

    def _accept(self) -> Program:
        quick = self.quick
        arguments = (
            quick.query_rows, self.slacks, self.candidates, self.lower_bounds, self.rest_bounds, self.near,
            self.is_undecided, quick.n_queries, quick.width,
        )  # fmt: skip
        grid, options = (-(-quick.n_queries // ROWS_ACCEPTED), len(self.sizes)), {"K": self.k, **self.constants}
        return Program(kernels.accept_certain, grid, arguments, {**options, "ROWS": ROWS_ACCEPTED})

    def _rank_candidates(self, pairs: Tensor, n_pairs: int) -> Program:
        """Rank the candidates of the given pairs (of all pairs if ``soft``) by exact distances."""
        quick = self.quick
        arguments = (
            quick.rows.XT, *self.subsets, pairs, quick.query_rows, quick.rows.keys, self.candidates,
            self.lower_bounds, self.rest_bounds, self.near, self.near_distances, self.is_undecided, n_pairs,
            quick.n_queries, quick.width, quick.scale**2,
        )  # fmt: skip
        options = {"SOFT": self.soft, "enable_fp_fusion": False, "ROWS": ROWS_RANKED, "num_warps": 1}
        grid = (-(-n_pairs // ROWS_RANKED),)
        return Program(kernels.rank_candidates, grid, arguments, {"K": self.k, **self.constants, **options})

    def _search_all_rows(self, pairs: Tensor) -> list[Program]:
        """Find the neighbors of the given pairs by exact distances to all rows."""
        quick = self.quick
        queries, positions = quick.query_rows[pairs % quick.n_queries], (pairs // quick.n_queries).int()
        distances = torch.empty((len(pairs), quick.width), dtype=torch.float64, device=quick.device)
        from_rows = quick.rows.XT, *self.subsets, positions, queries, distances, quick.width
        from_distances = (
            distances, quick.groups, quick.rows.keys, queries, pairs, self.near, self.near_distances, quick.width,
        )  # fmt: skip
        exact_options = {"BLOCK": ALIGN, "enable_fp_fusion": False}
        select_options = {"K": self.k, "SOFT": self.soft, "BLOCK": 1024}
        return [
            Program(kernels.exact_distances, (quick.width // ALIGN, len(pairs)), from_rows, exact_options),
            Program(kernels.select_nearest, (len(pairs),), from_distances, select_options),
        ]
