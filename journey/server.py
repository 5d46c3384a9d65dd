"""Journey of a server user: a queued command is killed, interrupted and resumed, and gives the same result."""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from probewise.datasets import make_madelon

data = make_madelon(300, 100, random_state=0)
lines = [",".join([*data.feature_names, "label"])]
lines += [",".join([*map(str, row), str(label)]) for row, label in zip(data.X, data.y, strict=True)]
Path("table.csv").write_text("\n".join(lines))
# A process in the background ignores SIGINT, and its children inherit that: restore the default.
signal.signal(signal.SIGINT, signal.default_int_handler)
PROBEWISE = str(Path(sys.executable).with_name("probewise"))


def command(ledger, n_probes):
    options = ["--target", "label", "--method", "daf", "--n-probes", str(n_probes), "--n-jobs", "2", "--out", "-"]
    return [PROBEWISE, "rank", "table.csv", *options, "--ledger", ledger]


def end_after_some_blocks(sign):
    """Start the command, send the signal after some blocks are stored, and return exit code, output and log."""
    journal, log = Path("run.ledger-wal"), Path("log.txt")
    with log.open("w") as file:
        run = subprocess.Popen(command("run.ledger", 10**9), stdout=subprocess.PIPE, stderr=file, encoding="utf-8")
        sizes, deadline = set(), time.monotonic() + 150
        while len(sizes) < 4:
            assert run.poll() is None, log.read_text()
            assert time.monotonic() < deadline, "no block was stored"
            sizes |= {journal.stat().st_size} if journal.exists() else set()
            time.sleep(0.02)
        run.send_signal(sign)
        return run.wait(), run.communicate()[0], log.read_text()


code, printed, _ = end_after_some_blocks(signal.SIGKILL)
assert code == -signal.SIGKILL
assert printed == ""
code, printed, log = end_after_some_blocks(signal.SIGINT)
assert code == 3, (code, log)
assert printed.startswith("feature,rank,score"), printed[:100]
assert re.search(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d DAF: [\d,]+ probes", log, re.MULTILINE), log
n_done = int(re.search(r"interrupted after ([\d,]+) probes", log)[1].replace(",", ""))
n_probes = n_done + 500
resumed, whole = (
    subprocess.run(command(ledger, n_probes), capture_output=True, encoding="utf-8")
    for ledger in ("run.ledger", "whole.ledger")
)
assert (resumed.returncode, whole.returncode) == (0, 0), (resumed.stderr, whole.stderr)
assert resumed.stdout == whole.stdout
print(f"killed, interrupted and resumed up to {n_probes:,} probes: the ranking equals that of one uninterrupted run")
