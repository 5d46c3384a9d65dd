"""Speed of the engine (drawing probes, tally, ledger, looks) with a criterion that costs nothing.

Lower bound: a probe of mean size 100 (tau = 200) reads 100 tally rows of 24 bytes and needs 101 random words.
"""

import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measure import in_fresh_process, print_table, resident_mib

CASES = [(10_000, 400), (10_000, 50), (1_000_000, 400)]


def free_criterion(subsets):
    return (subsets.indices[subsets.offsets[:-1]] % 97) / 97.0


def run(n_features, n_probes, block_size, ledger_path, stop=None):
    from probewise.engine.ledger import Ledger
    from probewise.engine.loop import run_probes
    from probewise.engine.probes import ProbePlan
    from probewise.stopping import MaxProbes

    plan = ProbePlan(n_features, max_size=200, seed=1)
    with Ledger(ledger_path, {"seed": 1}) as ledger:
        rule = MaxProbes(n_probes) if stop is None else stop | MaxProbes(n_probes)
        return run_probes(plan, free_criterion, stop=rule, ledger=ledger, block_size=block_size)


def throughput(n_features, n_probes, block_size, stop=None):
    with tempfile.TemporaryDirectory() as folder:
        run(n_features, 2000, block_size, Path(folder) / "warm", stop)
        started = time.perf_counter()
        run(n_features, n_probes, block_size, Path(folder) / "run", stop)
        return n_probes / (time.perf_counter() - started)


def memory_growth(n_features, first, second):
    """Growth of memory in bytes per further probe."""
    with tempfile.TemporaryDirectory() as folder:
        run(n_features, 4000, 400, Path(folder) / "warm")
        result = run(n_features, first, 400, Path(folder) / "a")
        before = resident_mib()
        result = run(n_features, second, 400, Path(folder) / "b")
        assert result.tally.n_probes == second
        return (resident_mib() - before) * 2**20 / (second - first)


def main():
    from probewise.stopping import RelativeChange, Settled

    rules = {
        "MaxProbes": None,
        "Settled": Settled(20, 0.9999),
        "RelativeChange": RelativeChange(1e-9),
    }
    rows = []
    for n_features, block_size in CASES:
        for name, stop in rules.items():
            n_probes = 400_000 if n_features < 10**6 else 100_000
            speed = throughput(n_features, n_probes, block_size, stop)
            rows.append([f"{n_features:,}", block_size, name, f"{speed:,.0f}"])
    print_table(
        "Engine, free criterion, tau = 200, ledger on disk, a look every 400 probes, one core",
        ["features", "block", "rule", "probes/s"],
        rows,
    )
    code = "from benchmarks.engine import memory_growth; print(memory_growth(10_000, 400_000, 2_400_000))"
    print(f"\nMemory per further probe: {float(in_fresh_process(code)):.1f} bytes (8 of them in the ledger)")


if __name__ == "__main__":
    sys.exit(main())
