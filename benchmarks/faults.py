"""Fault test: workers, the scheduler and the main process (driver) of a run are killed at random until it is done.

python -m benchmarks faults [--kills 50]
"""

import hashlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from benchmarks.measure import print_table

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
WORKERS = 3
EVENTS = {"kill a worker": 12, "kill all workers": 2, "kill the driver": 4, "kill the scheduler": 2, "add a worker": 2}


def daf(n_probes, ledger=None, on_block=None):
    """The run: k-NN on the Madelon recipe. ``on_block`` is called with the number of probes after every block."""
    from probewise import DAF
    from probewise.stopping import MaxProbes, Rule

    class Reporting(Rule):
        watch = frozenset()
        max_probes = n_probes

        def __call__(self, state):
            if on_block is not None:
                on_block(state.n_probes)
            return state.n_probes >= n_probes

        def reason(self, state):
            return MaxProbes(n_probes).reason(state)

    return DAF(criterion="knn", max_probe_size=150, stop=Reporting(), ledger=ledger, random_state=0)


def data():
    import numpy as np

    from probewise.datasets import make_madelon

    made = make_madelon(n_samples=1000, n_features=500, random_state=0)
    return made.X.astype(np.float32), made.y


def digest(fitted):
    parts = fitted.scores_.tobytes() + fitted.std_errors_.tobytes() + fitted.run_.ledger.values().tobytes()
    return f"{hashlib.sha256(parts).hexdigest()} {fitted.stop_reason_}"


def drive(address, ledger, n_probes):
    """A session of the driver, which resumes the run in the ledger."""
    import joblib
    from distributed import Client

    with Client(address, timeout=120) as client:
        client.wait_for_workers(1, timeout=120)
        with joblib.parallel_config(backend="dask", client=client):
            fitted = daf(n_probes, ledger, on_block=lambda n: print(n, flush=True)).fit(*data())
    print("done", digest(fitted), flush=True)


class Driver:
    """A session in its own process, and its output so far."""

    def __init__(self, address, ledger, n_probes):
        command = [sys.executable, "-m", "benchmarks.faults", "--drive", address, str(ledger), str(n_probes)]
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        self.reached, self.outcome, self.error = 0, None, ""
        self.listeners = [threading.Thread(target=self._listen), threading.Thread(target=self._listen_to_errors)]
        for listener in self.listeners:
            listener.start()

    def _listen(self):
        for line in self.process.stdout:
            if line.startswith("done "):
                self.outcome = line.removeprefix("done ").strip()
            else:
                self.reached = int(line)

    def _listen_to_errors(self):
        for line in self.process.stderr:
            if "Error: " in line:
                self.error = line.strip()

    def is_alive(self):
        return self.process.poll() is None

    def end(self):
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for listener in self.listeners:
            listener.join()
        self.process.stdout.close()
        self.process.stderr.close()


class FaultInjector:
    """The cluster, the driver, and the events that happen to them whenever the run has made some progress."""

    def __init__(self, cluster, ledger, *, n_probes, kills, seed):
        self.cluster, self.ledger, self.n_probes, self.kills = cluster, ledger, n_probes, kills
        self.rng = random.Random(seed)
        self.done = Counter()
        self.sessions = self.reported = 0

    @property
    def killed(self):
        return sum(count for event, count in self.done.items() if event.endswith("killed"))

    def run(self):
        driver = None
        try:
            self._fill_up()
            driver = self._session()
            while driver.outcome is None:
                if not driver.is_alive():
                    driver.end()
                    if driver.outcome is None:
                        driver = self._restart(driver)
                elif self.killed < self.kills and driver.reached > self.n_probes * self.killed / (self.kills + 1):
                    self._inject(driver)
                time.sleep(0.02)
            return driver.outcome
        finally:
            if driver is not None:
                driver.end()

    def _session(self):
        self.sessions += 1
        return Driver(self.cluster.address, self.ledger, self.n_probes)

    def _fill_up(self):
        while len(self.cluster.workers()) < WORKERS:
            self.cluster.add_worker()

    def _inject(self, driver):
        time.sleep(self.rng.uniform(0, 0.3))
        event = self.rng.choices(list(EVENTS), list(EVENTS.values()))[0]
        workers = self.cluster.workers()
        if event == "add a worker":
            if len(workers) <= WORKERS:
                self.cluster.add_worker()
                self.done["workers added"] += 1
        elif event == "kill the driver":
            os.killpg(driver.process.pid, signal.SIGKILL)
            driver.process.wait()
            self.done["driver killed"] += 1
        elif event == "kill the scheduler":
            self.cluster.kill(self.cluster.scheduler)
            self.done["scheduler killed"] += 1
        else:
            victims = workers if event == "kill all workers" else self.rng.sample(workers, 1)
            self.cluster.kill(*victims)
            self.done["workers killed"] += len(victims)
            self._fill_up()

    def _restart(self, driver):
        """Start a new session after the driver was killed or has lost its cluster."""
        if self.cluster.scheduler.poll() is not None:
            self.reported += "ClusterError: the Dask scheduler" in driver.error
            self.cluster.kill(*self.cluster.workers())
            self.cluster.start_scheduler()
            self._fill_up()
        elif driver.process.returncode != -signal.SIGKILL:
            raise SystemExit(f"the driver ended by itself: {driver.error}")
        return self._session()


def main(kills=50, n_probes=20_000, seed=0):
    from clusters import DaskCluster

    started = time.perf_counter()
    expected = digest(daf(n_probes).fit(*data()))
    serial = time.perf_counter() - started
    with tempfile.TemporaryDirectory() as folder, DaskCluster(folder) as cluster:
        faults = FaultInjector(cluster, Path(folder) / "run.ledger", n_probes=n_probes, kills=kills, seed=seed)
        started = time.perf_counter()
        outcome = faults.run()
        seconds = time.perf_counter() - started
    rows = [[event, count] for event, count in sorted(faults.done.items())]
    rows += [["kills in total", faults.killed], ["sessions of the driver", faults.sessions]]
    rows += [["lost clusters reported in one sentence", faults.reported]]
    rows += [["seconds", f"{seconds:.0f}"], ["seconds of the serial run", f"{serial:.0f}"]]
    rows += [["same bits as the serial run", "yes" if outcome == expected else "NO"]]
    print_table(f"{n_probes:,} probes of k-NN on a Dask cluster of {WORKERS} workers", ["event", "count"], rows)
    if outcome != expected:
        raise SystemExit(1)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--drive"]:
        drive(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    else:
        main()
