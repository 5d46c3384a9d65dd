"""Vector instructions that numba does not make of loops on its own, written in LLVM's intermediate language."""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 16


def address_in(context, builder, array, array_type, index, kind):
    """Where an array holds, from ``index`` on, what is of a kind: a number or a vector."""
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), kind.as_pointer())


def plus(builder, index, number):
    return builder.add(index, ir.Constant(index.type, number))


def repeated(builder, number, vector):
    """A vector of one and the same number."""
    unset, index = ir.Constant(vector, ir.Undefined), ir.IntType(32)
    first = builder.insert_element(unset, number, ir.Constant(index, 0))
    zeros = ir.Constant(ir.VectorType(index, vector.count), [0] * vector.count)
    return builder.shuffle_vector(first, unset, zeros)


def _vector_at(context, builder, array, array_type, start):
    vector = ir.VectorType(context.get_value_type(array_type.dtype), LANES)
    return address_in(context, builder, array, array_type, start, vector)


def _load(context, builder, array, array_type, start):
    address = _vector_at(context, builder, array, array_type, start)
    return builder.load(address, align=array_type.dtype.bitwidth // 8)


def _bits(builder, flags):
    return builder.zext(builder.bitcast(flags, ir.IntType(LANES)), ir.IntType(64))


@intrinsic
def not_below(typing_context, values, start, limits, limits_start):
    """Bit b is set where values[start + b] >= limits[limits_start + b]."""

    def generate(context, builder, signature, arguments):
        values, start, limits, limits_start = arguments
        numbers = _load(context, builder, values, signature.args[0], start)
        bounds = _load(context, builder, limits, signature.args[2], limits_start)
        return _bits(builder, builder.fcmp_ordered(">=", numbers, bounds))

    return types.uint64(values, types.int64, limits, types.int64), generate


@intrinsic
def not_below_one(typing_context, values, start, limit):
    """Bit b is set where values[start + b] >= limit."""

    def generate(context, builder, signature, arguments):
        values, start, limit = arguments
        numbers = _load(context, builder, values, signature.args[0], start)
        return _bits(builder, builder.fcmp_ordered(">=", numbers, repeated(builder, limit, numbers.type)))

    return types.uint64(values, types.int64, values.dtype), generate


@intrinsic
def raise_along(typing_context, peaks, values, start, stop, lanes):
    """peaks[j] = max(peaks[j], values[j]) for j in start..stop - 1, a multiple of LANES of them.

    lanes[b] becomes the largest of the values b, b + LANES, b + 2 LANES, ... places after start.
    """

    def generate(context, builder, signature, arguments):
        peaks, values, start, stop, lanes = arguments
        number = context.get_value_type(signature.args[1].dtype)
        align = signature.args[1].dtype.bitwidth // 8
        lowest = ir.Constant(ir.VectorType(number, LANES), [ir.Constant(number, float("-inf"))] * LANES)
        largest = cgutils.alloca_once_value(builder, lowest)
        step = ir.Constant(start.type, LANES)
        with cgutils.for_range_slice(builder, start, stop, step, inc=True) as (index, _):
            address = _vector_at(context, builder, peaks, signature.args[0], index)
            new = _load(context, builder, values, signature.args[1], index)
            for place in (address, largest):
                old = builder.load(place, align=align)
                builder.store(builder.select(builder.fcmp_ordered(">", new, old), new, old), place, align=align)
        address = _vector_at(context, builder, lanes, signature.args[4], ir.Constant(start.type, 0))
        builder.store(builder.load(largest, align=align), address, align=align)
        return context.get_dummy_value()

    return types.void(peaks, values, types.int64, types.int64, lanes), generate


@intrinsic
def lowest_bit(typing_context, bits):
    """The place of the lowest bit that is set; bits must not be 0."""

    def generate(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


@intrinsic
def popcount(typing_context, word):
    """How many bits of a 64-bit word are set."""

    def generate(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate
