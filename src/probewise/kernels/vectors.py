"""Vector instructions that numba does not generate from loops, written in LLVM's intermediate representation.

`nearer` and `keep_nearest` make up the inner loop of the k-NN search, which compares 16 test rows at a time. The same
loop in plain numba makes `KNN` 1.3 to 3.9 times slower on 50 to 2,000 rows, and 3.4 to 3.8 times at the defaults of
`Tournament` on 100 or 200 rows (KNN(10), leave-one-out, probability, probes of up to 100 features).
"""

import llvmlite.binding
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils, config

from .jit import intrinsic_like

LANES = 16


def has_feature(name: str) -> bool:
    """Whether the processor that numba compiles for has these instructions; the user may name another processor."""
    named: str | None = getattr(config, "CPU_FEATURES", None)
    if named is not None:
        return f"+{name}" in named.split(",")
    try:
        return bool(llvmlite.binding.get_host_cpu_features().get(name, False))
    except RuntimeError:  # the features of this processor are unknown
        return False


def address_in(context, builder, array, array_type, index, kind):
    """Address of an array's entry as a pointer to ``kind``, a number or a vector."""
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), kind.as_pointer())


def plus(builder, index, number):
    return builder.add(index, ir.Constant(index.type, number))


def repeated(builder, number, vector):
    """A vector with the same number in every lane."""
    undefined, index = ir.Constant(vector, ir.Undefined), ir.IntType(32)
    first = builder.insert_element(undefined, number, ir.Constant(index, 0))
    zeros = ir.Constant(ir.VectorType(index, vector.count), [0] * vector.count)
    return builder.shuffle_vector(first, undefined, zeros)


def _vector_at(context, builder, array, array_type, start):
    vector = ir.VectorType(context.get_value_type(array_type.dtype), LANES)
    return address_in(context, builder, array, array_type, start, vector)


def _load(context, builder, array, array_type, start):
    address = _vector_at(context, builder, array, array_type, start)
    return builder.load(address, align=array_type.dtype.bitwidth // 8)


def _distances(context, builder, signature, arguments):
    """The LANES squared distances of `nearer` and `keep_nearest`, from their first five arguments."""
    products, place, own, squares, column = arguments[:5]
    product = _load(context, builder, products, signature.args[0], place)
    others = _load(context, builder, squares, signature.args[3], column)
    both = builder.fadd(repeated(builder, own, product.type), others)
    return builder.fsub(both, builder.fadd(product, product))


def _plain_distances(products, place, own, squares, column):
    return own + squares[column : column + LANES] - 2 * products[place : place + LANES]


def _plain_nearer(products, place, own, squares, column, limits, own_limit):
    distances = _plain_distances(products, place, own, squares, column)
    bits = [*~(distances > limits[column : column + LANES]), *~(distances > own_limit)]
    return sum(1 << b for b, is_near in enumerate(bits) if is_near)


def _plain_keep_nearest(products, place, own, squares, column, keys, own_key, mask, tops, start, step, count):
    distances = _plain_distances(products, place, own, squares, column).astype(np.float64)
    new = (distances.view(np.int64) & ~mask) | (keys[column : column + LANES] ^ own_key)
    for k in range(count):
        top = tops[start + k * step : start + k * step + LANES]
        top[:], new = np.minimum(top, new), np.maximum(top, new)


@intrinsic_like(_plain_nearer)
def nearer(typing_context, products, place, own, squares, column, limits, own_limit):
    """Bits that say which of LANES squared distances are not above a limit; a limit of NaN excludes nothing.

    Distance b is own + squares[column + b] - 2 products[place + b]. Bit b compares it with limits[column + b], bit
    LANES + b with own_limit.
    """

    def generate(context, builder, signature, arguments):
        distances = _distances(context, builder, signature, arguments)
        theirs = _load(context, builder, arguments[5], signature.args[5], arguments[4])
        masks = []
        for limit in (theirs, repeated(builder, arguments[6], distances.type)):
            is_near = builder.fcmp_unordered("<=", distances, limit)
            masks.append(builder.zext(builder.bitcast(is_near, ir.IntType(LANES)), ir.IntType(64)))
        return builder.or_(masks[0], builder.shl(masks[1], ir.Constant(ir.IntType(64), LANES)))

    number = types.int64
    return types.int64(products, number, products.dtype, squares, number, limits, products.dtype), generate


@intrinsic_like(_plain_keep_nearest)
def keep_nearest(typing_context, products, place, own, squares, column, keys, own_key, mask, tops, start, step, count):
    """Insert LANES squared distances, those of `nearer`, each into an ascending list of its own.

    List b is tops[start + b], tops[start + b + step], ..., ``count`` of them. Entries are the bits of float64 numbers,
    which sort as the numbers do from 0 on, with keys[column + b] ^ own_key in the lowest bits (mask).
    """

    def generate(context, builder, signature, arguments):
        column, keys, own_key, mask, tops, start, step, count = arguments[4:]
        double, integers = ir.VectorType(ir.DoubleType(), LANES), ir.VectorType(ir.IntType(64), LANES)
        distances = _distances(context, builder, signature, arguments)
        bits = builder.bitcast(distances if distances.type == double else builder.fpext(distances, double), integers)
        keys = _load(context, builder, keys, signature.args[5], column)
        key = builder.xor(keys, repeated(builder, own_key, integers))
        new = builder.or_(builder.and_(bits, repeated(builder, builder.not_(mask), integers)), key)
        last = builder.add(start, builder.mul(builder.sub(count, ir.Constant(count.type, 1)), step))
        worst = _load(context, builder, tops, signature.args[8], last)
        is_near = builder.bitcast(builder.icmp_signed("<", new, worst), ir.IntType(LANES))
        value = cgutils.alloca_once(builder, integers)
        with builder.if_then(builder.icmp_unsigned("!=", is_near, ir.Constant(is_near.type, 0))):
            builder.store(new, value)
            with cgutils.for_range(builder, count) as loop:
                index = builder.add(start, builder.mul(loop.index, step))
                top = _vector_at(context, builder, tops, signature.args[8], index)
                old, rest = builder.load(top, align=8), builder.load(value)
                is_less = builder.icmp_signed("<", rest, old)
                builder.store(builder.select(is_less, rest, old), top, align=8)
                builder.store(builder.select(is_less, old, rest), value)
        return context.get_dummy_value()

    number = types.int64
    signature = types.void(
        products, number, products.dtype, squares, number, keys, number, number, tops, number, number, number
    )
    return signature, generate


@intrinsic_like(lambda bits: (bits & -bits).bit_length() - 1)
def lowest_bit(typing_context, bits):
    """Position of the lowest bit that is set; at least one must be."""

    def generate(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), generate


@intrinsic_like(lambda word: int(word).bit_count())
def popcount(typing_context, word):
    """Number of bits that are set in a 64-bit word."""

    def generate(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate
