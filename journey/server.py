"""One command for a queue, given again and again: killed, it goes on and gives the same bits; its log; Ctrl-C."""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from probewise.datasets import make_madelon

made = make_madelon(300, 100, random_state=0)
lines = [",".join([*made.feature_names, "label"])]
lines += [",".join([*map(str, row), str(label)]) for row, label in zip(made.X, made.y, strict=True)]
Path("table.csv").write_text("\n".join(lines))
signal.signal(signal.SIGINT, signal.default_int_handler)  # heard by children, also where this runs in the background
PROBEWISE = str(Path(sys.executable).with_name("probewise"))


def command(ledger, probes=20_000):
    options = ["--target", "label", "--method", "DAF", "--n-probes", str(probes), "--n-jobs", "2", "--out", "-"]
    return [PROBEWISE, "rank", "table.csv", *options, "--ledger", ledger, "--resume"]


def ended_after_blocks(sign):
    """The command, ended by this signal when it has kept some blocks; its exit code, and what it printed."""
    kept, log = Path("run.ledger-wal"), Path("log.txt")
    with log.open("w") as file:
        run = subprocess.Popen(command("run.ledger", 10**9), stdout=subprocess.PIPE, stderr=file, encoding="utf-8")
        seen, end = set(), time.monotonic() + 150
        while len(seen) < 4:
            assert run.poll() is None, log.read_text()
            assert time.monotonic() < end, "no block was kept"
            seen |= {kept.stat().st_size} if kept.exists() else set()
            time.sleep(0.02)
        run.send_signal(sign)
        return run.wait(), run.communicate()[0], log.read_text()


code, printed, _ = ended_after_blocks(signal.SIGKILL)
assert code == -signal.SIGKILL
assert printed == ""
code, printed, log = ended_after_blocks(signal.SIGINT)
assert code == 3, (code, log)
assert printed.startswith("feature,rank,score"), printed[:100]
assert re.search(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d DAF: [\d,]+ probes", log, re.MULTILINE), log
done = int(re.search(r"interrupted after ([\d,]+) probes", log)[1].replace(",", ""))
probes = done + 500
resumed, whole = (
    subprocess.run(command(ledger, probes), capture_output=True, encoding="utf-8")
    for ledger in ("run.ledger", "whole.ledger")
)
assert (resumed.returncode, whole.returncode) == (0, 0), (resumed.stderr, whole.stderr)
assert resumed.stdout == whole.stdout
assert "there is no run in whole.ledger yet: starting a new one" in whole.stderr
print(f"killed, interrupted and gone on to {probes:,} probes: the same ranking as of one run")
