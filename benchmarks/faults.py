"""A run under fire: workers, the scheduler and the driver are killed at random until it is done all the same.

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
DEEDS = {"kill a worker": 12, "kill all workers": 2, "kill the driver": 4, "kill the scheduler": 2, "add a worker": 2}


def daf(n_probes, ledger=None, tell=None):
    """The run: k-NN on Madelon's recipe. ``tell`` is called with the number of probes at every border."""
    from probewise import DAF
    from probewise.stopping import MaxProbes, Rule

    class Told(Rule):
        watch = frozenset()
        max_probes = n_probes

        def __call__(self, state):
            if tell is not None:
                tell(state.n_probes)
            return state.n_probes >= n_probes

        def reason(self, state):
            return MaxProbes(n_probes).reason(state)

    return DAF(criterion="knn", max_probe_size=150, stop=Told(), ledger=ledger, random_state=0)


def data():
    import numpy as np

    from probewise.datasets import make_madelon

    made = make_madelon(n_samples=1000, n_features=500, random_state=0)
    return made.X.astype(np.float32), made.y


def digest(fitted):
    parts = fitted.scores_.tobytes() + fitted.std_errors_.tobytes() + fitted.run_.ledger.values().tobytes()
    return f"{hashlib.sha256(parts).hexdigest()} {fitted.stop_reason_}"


def drive(address, ledger, n_probes):
    """A session of the driver: goes on with what the ledger holds."""
    import joblib
    from distributed import Client

    with Client(address, timeout=120) as client:
        client.wait_for_workers(1, timeout=120)
        with joblib.parallel_config(backend="dask", client=client):
            fitted = daf(n_probes, ledger, tell=lambda n: print(n, flush=True)).fit(*data())
    print("done", digest(fitted), flush=True)


class Driver:
    """A session in a process of its own, and what it has said so far."""

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


class Siege:
    """The cluster, the driver, and what is done to them: each deed when the run has got a little further."""

    def __init__(self, cluster, ledger, *, n_probes, kills, seed):
        self.cluster, self.ledger, self.n_probes, self.kills = cluster, ledger, n_probes, kills
        self.rng = random.Random(seed)
        self.done = Counter()
        self.sessions = self.told = 0

    @property
    def killed(self):
        return sum(count for deed, count in self.done.items() if deed.endswith("killed"))

    def run(self):
        driver = None
        try:
            self._staff()
            driver = self._session()
            while driver.outcome is None:
                if not driver.is_alive():
                    driver.end()
                    if driver.outcome is None:
                        driver = self._after(driver)
                elif self.killed < self.kills and driver.reached > self.n_probes * self.killed / (self.kills + 1):
                    self._do(driver)
                time.sleep(0.02)
            return driver.outcome
        finally:
            if driver is not None:
                driver.end()

    def _session(self):
        self.sessions += 1
        return Driver(self.cluster.address, self.ledger, self.n_probes)

    def _staff(self):
        while len(self.cluster.workers()) < WORKERS:
            self.cluster.add_worker()

    def _do(self, driver):
        time.sleep(self.rng.uniform(0, 0.3))
        deed = self.rng.choices(list(DEEDS), list(DEEDS.values()))[0]
        workers = self.cluster.workers()
        if deed == "add a worker":
            if len(workers) <= WORKERS:
                self.cluster.add_worker()
                self.done["workers added"] += 1
        elif deed == "kill the driver":
            os.killpg(driver.process.pid, signal.SIGKILL)
            driver.process.wait()
            self.done["driver killed"] += 1
        elif deed == "kill the scheduler":
            self.cluster.kill(self.cluster.scheduler)
            self.done["scheduler killed"] += 1
        else:
            victims = workers if deed == "kill all workers" else self.rng.sample(workers, 1)
            self.cluster.kill(*victims)
            self.done["workers killed"] += len(victims)
            self._staff()

    def _after(self, driver):
        """A driver has ended before the run has: killed, or told that its cluster is lost."""
        if self.cluster.scheduler.poll() is not None:
            self.told += "ClusterError: the Dask scheduler" in driver.error
            self.cluster.kill(*self.cluster.workers())
            self.cluster.start_scheduler()
            self._staff()
        elif driver.process.returncode != -signal.SIGKILL:
            raise SystemExit(f"the driver ended by itself: {driver.error}")
        return self._session()


def main(kills=50, n_probes=20_000, seed=0):
    from clusters import DaskCluster

    started = time.perf_counter()
    expected = digest(daf(n_probes).fit(*data()))
    serial = time.perf_counter() - started
    with tempfile.TemporaryDirectory() as folder, DaskCluster(folder) as cluster:
        siege = Siege(cluster, Path(folder) / "run.ledger", n_probes=n_probes, kills=kills, seed=seed)
        started = time.perf_counter()
        found = siege.run()
        seconds = time.perf_counter() - started
    rows = [[what, count] for what, count in sorted(siege.done.items())]
    rows += [["kills in all", siege.killed], ["sessions of the driver", siege.sessions]]
    rows += [["lost clusters told in a sentence", siege.told]]
    rows += [["seconds", f"{seconds:.0f}"], ["seconds of the serial run", f"{serial:.0f}"]]
    rows += [["same bits as the serial run", "yes" if found == expected else "NO"]]
    print_table(f"{n_probes:,} probes of k-NN on a Dask cluster of {WORKERS} workers", ["what", "count"], rows)
    if found != expected:
        raise SystemExit(1)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--drive"]:
        drive(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    else:
        main()
