"""The arithmetic: small functions over arrays, compiled by numba, that release the GIL.

This package is the only place that imports numba. A kernel takes arrays and returns arrays; it knows
nothing of estimators, probes on disk or stopping rules.
"""
