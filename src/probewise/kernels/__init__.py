"""Kernels: the arithmetic, as small functions over arrays, independent of estimators, folds and ledgers.

CPU kernels are compiled by numba, which only this package imports, and release the GIL (`jit`). GPU kernels are in
`device`: torch, which also runs on the CPU, and Triton where one kernel replaces several steps.
"""
