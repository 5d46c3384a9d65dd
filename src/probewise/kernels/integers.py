"""Squared distances of rows of small whole numbers, two multiplications in the room of one float's.

Processors with AVX512-VNNI add products of 16-bit integers in pairs: twice the speed of float32, and exact.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from .jit import njit_helper
from .vectors import address_in, has_feature, plus, repeated

BLOCK = 32  # columns at a time: two vectors
ROWS = 4  # rows at a time: what keeps all sums in registers


AVAILABLE = has_feature("avx512vnni")

INT = ir.IntType(32)
INTS = ir.VectorType(INT, 16)
FLOATS = ir.VectorType(ir.FloatType(), 16)


def _block_distances(n_rows):
    @intrinsic
    def block_distances(typing_context, pairs, row, width, packed, place, squares, column, out, out_place, stride):
        """out = minus the squared distances of n_rows rows and BLOCK columns."""

        def generate(context, builder, signature, arguments):
            pairs, row, width, packed, place, squares, column, out, out_place, stride = arguments

            def address(array, number, index, kind):
                return address_in(context, builder, array, signature.args[number], index, kind)

            zeros = ir.Constant(INTS, [ir.Constant(INT, 0)] * 16)
            add_pairs = cgutils.get_or_insert_function(
                builder.module, ir.FunctionType(INTS, [INTS] * 3), "llvm.x86.avx512.vpdpwssd.512"
            )
            starts = [builder.mul(plus(builder, row, r), width) for r in range(n_rows)]
            sums = [[cgutils.alloca_once_value(builder, zeros) for _ in range(2)] for _ in range(n_rows)]
            with cgutils.for_range(builder, width) as loop:
                at = builder.add(place, builder.mul(loop.index, ir.Constant(place.type, BLOCK)))
                theirs = [
                    builder.load(address(packed, 3, plus(builder, at, 16 * half), INTS), align=4) for half in range(2)
                ]
                for start, own_sums in zip(starts, sums, strict=True):
                    own = repeated(
                        builder, builder.load(address(pairs, 0, builder.add(start, loop.index), INT), align=4), INTS
                    )
                    for total, other in zip(own_sums, theirs, strict=True):
                        builder.store(builder.call(add_pairs, [builder.load(total), own, other]), total)
            for r, own_sums in enumerate(sums):
                own = repeated(builder, builder.load(address(squares, 5, plus(builder, row, r), INT), align=4), INTS)
                for half, total in enumerate(own_sums):
                    other = builder.load(address(squares, 5, plus(builder, column, 16 * half), INTS), align=4)
                    product = builder.load(total)
                    distance = builder.sub(builder.sub(builder.add(product, product), own), other)
                    to = plus(
                        builder, builder.add(out_place, builder.mul(stride, ir.Constant(stride.type, r))), 16 * half
                    )
                    builder.store(builder.sitofp(distance, FLOATS), address(out, 7, to, FLOATS), align=4)
            return context.get_dummy_value()

        number = types.int64
        signature = types.void(
            pairs, number, number, packed, number, squares, number, out, number, number
        )  # fmt: skip
        return signature, generate

    return block_distances


_four_rows = _block_distances(ROWS)
_one_row = _block_distances(1)


@njit_helper
def minus_distances(pairs, packed, squares, width, start, end, first, last, out):
    """Minus the squared distances of rows start..end - 1 and first..last - 1, line by line, into out.

    first must be a multiple of BLOCK; a line holds last - first values, rounded up to a multiple of BLOCK.
    """
    stride = (last - first + BLOCK - 1) // BLOCK * BLOCK
    for column in range(first, first + stride, BLOCK):
        row = start
        while row + ROWS <= end:
            place = (row - start) * stride + column - first
            _four_rows(pairs, row, width, packed, column * width, squares, column, out, place, stride)
            row += ROWS
        while row < end:
            place = (row - start) * stride + column - first
            _one_row(pairs, row, width, packed, column * width, squares, column, out, place, stride)
            row += 1


def largest_integer(n_features):
    """The largest q for which squared distances of n_features whole numbers from -q to q fit into 32 bits."""
    return np.minimum(np.floor(np.sqrt((2**31 - 1) / (4 * n_features))), 32767)


@njit_helper
def round_to_integers(values, centers, scale, integers, squares):
    """integers (n, even) = (values - centers) * scale, rounded, a last odd column 0; squares (n): of rows, summed."""
    for i in range(len(values)):
        line, out = values[i], integers[i]
        out[-1] = 0
        for k in range(len(line)):
            out[k] = np.int16(np.rint((line[k] - centers[k]) * scale))
        total = 0
        for k in range(len(line)):
            total += np.int32(out[k]) * np.int32(out[k])
        squares[i] = total


@njit_helper
def pack(pairs, n_rows, width, packed):
    """packed = the pairs of BLOCK rows at a time, pair after pair, as `minus_distances` reads them."""
    for row in range(n_rows):
        place = row // BLOCK * BLOCK * width + row % BLOCK
        for pair in range(width):
            packed[place + pair * BLOCK] = pairs[row * width + pair]
