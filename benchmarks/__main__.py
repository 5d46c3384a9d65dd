"""Runs the quick benchmarks, or those named: python -m benchmarks [engine ...] or scale --only load."""

import argparse
import importlib

from benchmarks.measure import machine

ALL = ["engine", "criteria", "few_rows", "search", "filters"]
LONG = ["scale", "device", "faults", "trust", "precision", "discoveries", "unseen", "rows", "tournament", "how_long"]

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure speed and memory.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(ALL)} (the default), {', '.join(LONG)}")
    parts = "of scale: million, growth, load or filter; of device: knn, tall, linear, others, default, rounds, papers, "
    parts += "fsdd; of how_long: cuda; "
    parts += "of trust and tournament: their parts; of discoveries: naive_bayes or knn; of unseen: methods, with commas"
    parser.add_argument("--only", metavar="PART", help=parts)
    parser.add_argument("--jobs", type=int, metavar="N", help="of unseen and tournament: at a time, 2 if not said")
    small = "of scale, trust, discoveries, unseen and tournament: less, to see that it works"
    parser.add_argument("--small", action="store_true", help=small)
    parser.add_argument("--kills", type=int, metavar="N", help="of faults: how many, 50 if not said")
    asked = parser.parse_args()
    options = {name: value for name, value in vars(asked).items() if name != "names" and value}
    print(machine())
    for name in asked.names or ALL:
        importlib.import_module(f"benchmarks.{name}").main(**(options if name in LONG else {}))
