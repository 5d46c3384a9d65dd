"""Time of a default ranking by rows and columns, and the accuracy of the time estimate.

python -m benchmarks how_long              two classes, float32, ten informative columns; one worker
python -m benchmarks how_long --only cuda  the same on a GPU; the second run of each is measured (the first compiles)

Writes the stored results and the plot of docs/how-long.md. The estimate is the total time that the live display shows
after a tenth of the probes, divided by the true time.
"""

import json
import time
from pathlib import Path
from unittest.mock import patch

import numpy as np

from benchmarks.measure import print_table
from probewise import Tournament

ROWS, COLUMNS = (50, 100, 300, 1_000, 10_000, 100_000), (1_000, 10_000, 100_000, 1_000_000)
MOST_CELLS = 10**8  # 400 MB
STORED = Path(__file__).with_name("how_long.json")
PLOT = Path(__file__).parents[1] / "docs" / "pictures" / "how-long.svg"


def main(only=None, small=False, **_):
    device = only or "cpu"
    rows, columns = (ROWS[:2], COLUMNS[:1]) if small else (ROWS, COLUMNS)
    ranked(100, 1_000, device)  # compiles
    ranked(300, 1_000, device)
    seconds, estimates, lines = {}, [], []
    for n_rows in rows:
        line = [f"{n_rows:,}"]
        for n_columns in columns:
            if n_rows * n_columns > MOST_CELLS:
                line.append("")
                continue
            if device != "cpu":
                ranked(n_rows, n_columns, device)
            took, estimate, n_probes = ranked(n_rows, n_columns, device)
            seconds[f"{n_rows} x {n_columns}"] = round(took, 3)
            estimates.append(estimate)
            line.append(f"{took:.1f}")
            print(f"{n_rows:,} x {n_columns:,}: {took:.2f} s, {n_probes:,} probes, estimate {estimate:.2f}", flush=True)
        lines.append(line)
    print_table(f"Seconds of a default Tournament, {device}", ["rows", *(f"{n:,} columns" for n in columns)], lines)
    print(f"estimated / true time after a tenth of the probes: {min(estimates):.2f} to {max(estimates):.2f}")
    if not small:
        results = json.loads(STORED.read_text()) if STORED.exists() else {}
        results[device] = seconds
        STORED.write_text(json.dumps(results, indent=1) + "\n")
        draw(results)


def ranked(n_rows, n_columns, device):
    """Seconds of a fit, estimated / true time after a tenth of the probes, and the number of probes."""
    random = np.random.default_rng(0)
    X = random.standard_normal((n_rows, n_columns), dtype=np.float32)
    y = np.arange(n_rows) % 2
    X[:, :10] += np.float32(0.7) * y[:, None].astype(np.float32)
    displayed = []
    started = time.perf_counter()

    def record(progress_state, _):
        displayed.append(progress_state)
        return ""

    with patch("probewise.progress.one_line", record), patch("probewise.progress.REFRESH_SECONDS", 0.0):
        fitted = Tournament(device=device, random_state=0, verbose=bool).fit(X, y)
    seconds = time.perf_counter() - started
    early = next(progress for progress in displayed if progress.share >= 0.1)
    return seconds, (early.state.seconds + early.seconds_left) / displayed[-1].state.seconds, fitted.n_probes_


def draw(results):
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7.6, 3.6), layout="constrained")
    for number, n_columns in enumerate(COLUMNS):
        for device, seconds in results.items():
            known = [(n, seconds[f"{n} x {n_columns}"]) for n in ROWS if f"{n} x {n_columns}" in seconds]
            label = f"{n_columns:,} columns" + ("" if device == "cpu" else ", GPU")
            style = {"ls": "-", "marker": "o"} if device == "cpu" else {"ls": ":", "marker": "s", "markersize": 4}
            axes.loglog(*zip(*known, strict=True), color=f"C{number}", label=label, **style)
    axes.set(xlabel="rows", ylabel="seconds")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))
    figure.savefig(PLOT, metadata={"Date": None})
