"""Vector instructions that loops do not become on their own: sixteen comparisons at once, as the bits of a number."""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

LANES = 16


def _vector_at(context, builder, array, array_type, start):
    """Type of LANES numbers and the address of those from ``start`` on."""
    vector = ir.VectorType(context.get_value_type(array_type.dtype), LANES)
    data = context.make_array(array_type)(context, builder, array).data
    return vector, builder.bitcast(builder.gep(data, [start]), vector.as_pointer())


def _load(context, builder, array, array_type, start):
    _, address = _vector_at(context, builder, array, array_type, start)
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
        undefined = ir.Constant(numbers.type, ir.Undefined)
        first = builder.insert_element(undefined, limit, ir.Constant(ir.IntType(32), 0))
        everywhere = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        bounds = builder.shuffle_vector(first, undefined, everywhere)
        return _bits(builder, builder.fcmp_ordered(">=", numbers, bounds))

    return types.uint64(values, types.int64, values.dtype), generate


@intrinsic
def raise_to(typing_context, peaks, peaks_start, values, start):
    """peaks[peaks_start + b] = max(peaks[peaks_start + b], values[start + b]) for all LANES b."""

    def generate(context, builder, signature, arguments):
        peaks, peaks_start, values, start = arguments
        align = signature.args[0].dtype.bitwidth // 8
        _, address = _vector_at(context, builder, peaks, signature.args[0], peaks_start)
        old, new = builder.load(address, align=align), _load(context, builder, values, signature.args[2], start)
        builder.store(builder.select(builder.fcmp_ordered(">", new, old), new, old), address, align=align)
        return context.get_dummy_value()

    return types.void(peaks, types.int64, values, types.int64), generate


@intrinsic
def lowest_bit(typing_context, bits):
    """The place of the lowest bit that is set; bits must not be 0."""

    def generate(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate
