"""Command line of the benchmarks: python -m benchmarks [NAME ...] [--only PART]; default: the quick ones."""

import argparse
import importlib

from benchmarks.measure import machine

QUICK = ["engine", "criteria", "few_rows", "search", "filters"]
LONG = ["scale", "device", "discover", "faults", "trust", "precision", "unseen", "tournament", "published", "how_long"]

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure speed and memory.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(QUICK)} (the default), {', '.join(LONG)}")
    parts = (
        "for scale: million, growth, load or filter; for device: knn, tall, linear, others, default, rounds, "
        "papers, equal, sparse, agree, memory or pairs; "
    )
    parts += "for how_long: cuda; for discover, trust, precision and tournament: one of their parts; "
    parts += "for unseen: methods, separated by commas, or lassonet"
    parser.add_argument("--only", metavar="PART", help=parts)
    parser.add_argument(
        "--jobs", type=int, metavar="N", help="for discover, unseen and tournament: parallel jobs (default: 2)"
    )
    small = "a short run, to see that the benchmark works (for the long benchmarks)"
    parser.add_argument("--small", action="store_true", help=small)
    parser.add_argument("--tables", type=int, metavar="N", help="for discover: tables of each kind (default: 100)")
    parser.add_argument("--kills", type=int, metavar="N", help="for faults: how many processes to kill (default: 50)")
    arguments = parser.parse_args()
    options = {name: value for name, value in vars(arguments).items() if name != "names" and value}
    print(machine())
    for name in arguments.names or QUICK:
        importlib.import_module(f"benchmarks.{name}").main(**(options if name in LONG else {}))
