"""Vector instructions that numba does not make of loops on its own, written in LLVM's intermediate language."""

import llvmlite.binding
from llvmlite import ir
from numba import types
from numba.core import cgutils, config
from numba.extending import intrinsic

LANES = 16
CACHE_LINE = 64  # bytes
AHEAD = 8  # lines to fetch before they are needed


def has_feature(name: str) -> bool:
    """Whether the processor that numba compiles for, which the user may name, has such instructions."""
    named: str | None = getattr(config, "CPU_FEATURES", None)
    if named is not None:
        return f"+{name}" in named.split(",")
    try:
        return bool(llvmlite.binding.get_host_cpu_features().get(name, False))
    except RuntimeError:  # the processor cannot be asked
        return False


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
def keep_nearest(typing_context, products, place, own, squares, at, keys, own_key, mask, tops, start, step, count):
    """Put LANES squared distances, own + squares - 2 products, each into its own ascending list of ``count``.

    The lists hold float64 as bits, whose order is that of numbers from 0 on, with keys ^ own_key in the lowest bits:
    number q of a list is tops[start + q * step].
    """

    def generate(context, builder, signature, arguments):
        products, place, own, squares, at, keys, own_key, mask, tops, start, step, count = arguments
        integer, double = ir.IntType(64), ir.VectorType(ir.DoubleType(), LANES)
        integers = ir.VectorType(integer, LANES)
        product = _load(context, builder, products, signature.args[0], place)
        both = builder.fadd(
            repeated(builder, own, product.type), _load(context, builder, squares, signature.args[3], at)
        )
        apart = builder.fsub(both, builder.fadd(product, product))
        if apart.type != double:
            apart = builder.fpext(apart, double)
        key = builder.xor(_load(context, builder, keys, signature.args[5], at), repeated(builder, own_key, integers))
        new = builder.or_(
            builder.and_(builder.bitcast(apart, integers), repeated(builder, builder.not_(mask), integers)), key
        )
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


@intrinsic
def fetch(typing_context, lines, line):
    """Have a line of an array on its way while something else is computed: memory is far away."""

    def generate(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        stride = cgutils.unpack_tuple(builder, array.strides)[0]
        byte, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
        ahead = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        start = builder.gep(builder.bitcast(array.data, byte), [builder.mul(arguments[1], stride)])
        step = ir.Constant(stride.type, CACHE_LINE)
        with cgutils.for_range_slice(builder, ir.Constant(stride.type, 0), stride, step, inc=True) as (offset, _):
            builder.call(ahead, [builder.gep(start, [offset]), *(ir.Constant(flag, number) for number in (0, 2, 1))])
        return context.get_dummy_value()

    return types.void(lines, types.int64), generate
