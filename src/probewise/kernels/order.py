"""Insertion sort for the few numbers that a kernel sorts: numba's own sort takes seconds to compile."""

from .jit import njit_helper


@njit_helper
def sort_few(numbers):
    """Sort ``numbers`` in place, in ascending order."""
    for count in range(1, len(numbers)):
        value, slot = numbers[count], count
        while slot > 0 and numbers[slot - 1] > value:
            numbers[slot] = numbers[slot - 1]
            slot -= 1
        numbers[slot] = value
