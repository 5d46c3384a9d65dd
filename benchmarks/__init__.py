"""Benchmarks: speed, memory and accuracy of Probewise and of other tools."""
