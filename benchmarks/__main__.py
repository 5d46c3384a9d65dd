"""Runs every benchmark, or those named: python -m benchmarks [engine ...]."""

import importlib
import sys

from benchmarks.measure import machine

ALL = ["engine", "criteria", "search", "filters"]

if __name__ == "__main__":
    print(machine())
    for name in sys.argv[1:] or ALL:
        importlib.import_module(f"benchmarks.{name}").main()
