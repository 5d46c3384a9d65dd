"""A real Dask cluster for tests and benchmarks: a scheduler and workers, each a process that can be killed."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np

PATIENCE = 120  # seconds, on a machine that has much else to do


class DaskCluster:
    """Its processes lead groups of their own and end with it, whatever happens."""

    def __init__(self, folder, **settings):
        self.folder = Path(folder)
        self.settings = {f"DASK_DISTRIBUTED__{name}": str(value) for name, value in settings.items()}
        self.processes = []
        self.scheduler = None
        self.address = "tcp://127.0.0.1:0"

    def __enter__(self):
        try:
            self.start_scheduler()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *error):
        self.close()

    def start_scheduler(self):
        """A first one, or one in the place of that which was killed, at the same address."""
        self.file = self.folder / f"scheduler-{len(self.processes)}.json"
        port = self.address.rpartition(":")[2]
        options = ["--host", "127.0.0.1", "--port", port, "--no-dashboard", "--scheduler-file", str(self.file)]
        self.scheduler = self._start("scheduler", *options)
        await_(lambda: self.file.exists() and self.file.read_text().endswith("}"), self.scheduler)
        self.address = json.loads(self.file.read_text())["address"]

    def add_worker(self, *, threads=1, address=None, code=None):
        options = ["--nthreads", str(threads), "--no-nanny", "--no-dashboard", "--memory-limit", "0"]
        options += ["--local-directory", str(self.folder)]
        return self._start("worker", address or self.address, *options, code=code)

    def workers(self):
        return [process for process in self.processes[1:] if process is not self.scheduler and process.poll() is None]

    def kill(self, *processes):
        for process in processes:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def client(self, address=None, *, timeout=PATIENCE):
        """It looks for the scheduler that long, at first and again where it is lost."""
        from distributed import Client

        return Client(address or self.address, set_as_default=False, timeout=timeout)

    def close(self):
        self.kill(*self.processes)

    def _start(self, role, *options, code=None):
        here = str(Path(__file__).parent)
        environment = {
            **os.environ,
            **self.settings,
            "PYTHONPATH": here + os.pathsep + os.environ.get("PYTHONPATH", ""),
        }
        with (self.folder / f"{role}-{len(self.processes)}.log").open("w") as log:
            process = subprocess.Popen(
                [sys.executable, *(["-m", "dask"] if code is None else ["-c", code]), role, *options],
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,
            )
        self.processes.append(process)
        return process


def await_(condition, process=None):
    """Wait until the condition holds, as long as the process, if any, is there to make it hold."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        assert process is None or process.poll() is None, "the process ended"
        time.sleep(0.02)


class CountingProxy:
    """Passes connections on to an address, and counts the bytes on their way there and back."""

    def __init__(self, address):
        host, _, port = address.removeprefix("tcp://").rpartition(":")
        self.target = host, int(port)
        self.there = self.back = 0
        self.server = socket.create_server(("127.0.0.1", 0))
        self.address = f"tcp://127.0.0.1:{self.server.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self.server.close()

    def _accept(self):
        with suppress(OSError):
            while True:
                here, _ = self.server.accept()
                beyond = socket.create_connection(self.target)
                for a, b, way in ((here, beyond, "there"), (beyond, here, "back")):
                    threading.Thread(target=self._pass_on, args=(a, b, way), daemon=True).start()

    def _pass_on(self, source, sink, way):
        with suppress(OSError), source:
            while data := source.recv(2**16):
                setattr(self, way, getattr(self, way) + len(data))
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)


# ---- criteria that workers can load


def mean_and_more(X, y):
    """A criterion that takes no kernels: quick to start with on a new worker."""
    return float(X.mean() * y.mean() + X[0].sum())


def fails_on_some(X, y):
    if X.shape[1] == 7:
        raise ZeroDivisionError("seven are too many")
    return np.nan if X.shape[1] == 5 else mean_and_more(X, y)


def takes_its_time(X, y):
    time.sleep(0.01)
    return mean_and_more(X, y)


def leaves_a_trace(folder, X, y):
    """Says which process it was in."""
    (Path(folder) / str(os.getpid())).touch()
    return takes_its_time(X, y)
