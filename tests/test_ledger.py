"""The run on disk: whole after any crash, one owner at a time, and never another run's."""

import os
import pickle
import random
import signal
import sqlite3
import subprocess
import sys
import time

import numpy as np
import pytest
import scipy.sparse as sp

from probewise.ledger import Ledger, LedgerError, fingerprint, peek


def test_values_and_times_come_back(tmp_path):
    path = tmp_path / "run.ledger"
    with Ledger(path, {"seed": 7}, notes={"feature_names": ["a", "b"]}) as ledger:
        ledger.append([0.5, 0.25], seconds=1.0)
        ledger.append([0.125], seconds=2.5)
    with Ledger(path, {"seed": 7}) as again:
        assert again.values().tolist() == [0.5, 0.25, 0.125]
        assert again.values(1, 2).tolist() == [0.25]
        assert again.seconds == 2.5
        assert [again.seconds_at(n) for n in (0, 1, 2, 3)] == [1.0, 1.0, 1.0, 2.5]
        assert again.settings == {"seed": 7, "feature_names": ["a", "b"]}
    assert peek(path, "seed") == 7
    assert peek(tmp_path / "none", "seed") is None


def test_every_bit_of_a_value_is_kept(tmp_path):
    values = np.random.default_rng(0).standard_normal(1000) * 10.0 ** np.arange(-500, 500, 1).clip(-300, 300)
    with Ledger(tmp_path / "run", {}) as ledger:
        ledger.append(values, seconds=0)
    with Ledger(tmp_path / "run", {}) as again:
        assert again.values().tobytes() == values.tobytes()


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"seed": 8}, "its seed is 7, not 8"),
        ({"criterion": "KNN(5)"}, 'its criterion is "KNN\\(3\\)", not "KNN\\(5\\)"'),
    ],
)
def test_another_run_is_refused_and_unharmed(tmp_path, changed, words):
    path = tmp_path / "run"
    settings = {"seed": 7, "criterion": "KNN(3)"}
    with Ledger(path, settings) as ledger:
        ledger.append([1.0], seconds=0)
    with pytest.raises(LedgerError, match=words):
        Ledger(path, settings | changed)
    with Ledger(path, settings) as again:
        assert again.n_probes == 1


def test_a_second_owner_is_refused_at_once(tmp_path):
    path = tmp_path / "run"
    with Ledger(path, {}) as ledger:
        ledger.append([1.0], seconds=0)
        started = time.monotonic()
        code = f"from probewise.ledger import Ledger; Ledger({str(path)!r}, {{}})"
        other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert other.returncode == 1
        assert "is in use by another process" in other.stderr.splitlines()[-1]
        assert time.monotonic() - started < 30
        with pytest.raises(LedgerError, match="in use"):
            Ledger(path, {})
        ledger.append([2.0], seconds=0)
    with Ledger(path, {}) as again:
        assert again.values().tolist() == [1.0, 2.0]


@pytest.mark.parametrize("content", [b"a,b\n1,2\n" * 200, b"x"])
def test_what_is_not_a_ledger_is_refused_and_unharmed(tmp_path, content):
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    with pytest.raises(LedgerError, match="not a Probewise ledger"):
        Ledger(path, {})
    assert path.read_bytes() == content


def test_another_database_is_refused(tmp_path):
    path = tmp_path / "other.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE mine (a)")
    connection.commit()
    connection.close()
    with pytest.raises(LedgerError, match="not a Probewise ledger"):
        Ledger(path, {})


def test_a_missing_folder_and_a_missing_ledger(tmp_path):
    with pytest.raises(LedgerError, match="does not exist"):
        Ledger(tmp_path / "no" / "run", {})
    with pytest.raises(LedgerError, match="there is no ledger"):
        Ledger(tmp_path / "run")


def test_a_damaged_ledger_says_so(tmp_path):
    path = tmp_path / "run"
    with Ledger(path, {}) as ledger:
        ledger.append([1.0], seconds=0)
        ledger.append([2.0], seconds=0)
    connection = sqlite3.connect(path)
    connection.execute("DELETE FROM blocks WHERE start = 0")
    connection.commit()
    connection.close()
    with pytest.raises(LedgerError, match="damaged"):
        Ledger(path, {})


def test_a_format_of_the_future_is_refused(tmp_path):
    path = tmp_path / "run"
    Ledger(path, {}).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(LedgerError, match="format 99"):
        Ledger(path, {})


WRITER = """
import sys
import numpy as np
from probewise.ledger import Ledger
ledger = Ledger(sys.argv[1], {"seed": 1})
print(ledger.n_probes, flush=True)
while True:
    start = ledger.n_probes
    ledger.append(np.arange(start, start + 1000) / 3, seconds=0)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="kill -9 is of POSIX")
def test_kill_9_in_the_middle_of_writing(tmp_path):
    path = tmp_path / "run"
    rng = random.Random(0)
    before = 0
    for _ in range(4):
        with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE) as process:
            found = int(process.stdout.readline())
            assert found >= before
            assert found % 1000 == 0
            time.sleep(rng.uniform(0.01, 0.3))
            os.kill(process.pid, signal.SIGKILL)
        before = found
    with Ledger(path, {"seed": 1}) as ledger:
        assert ledger.n_probes > 0
        assert ledger.values().tolist() == (np.arange(ledger.n_probes) / 3).tolist()


def test_a_pickled_ledger_keeps_what_it_knows(tmp_path):
    with Ledger(tmp_path / "run", {"seed": 1}) as ledger:
        ledger.append([1.0, 2.0], seconds=3.0)
        copy = pickle.loads(pickle.dumps(ledger))
    assert copy.values().tolist() == [1.0, 2.0]
    assert copy.settings == {"seed": 1}


def test_fingerprints_tell_data_apart():
    X = np.random.default_rng(0).standard_normal((50, 7))
    same = fingerprint(X)
    assert same == fingerprint(np.asfortranarray(X)) == fingerprint(X.copy())
    changed = X.copy()
    changed[3, 3] += 1e-12
    others = [changed, X.astype(np.float32), X.T, X[:, ::-1], sp.csr_matrix(X)]
    assert len({same, *map(fingerprint, others)}) == 6
    assert fingerprint(sp.csr_matrix(X)) == fingerprint(sp.csc_matrix(X))
    assert fingerprint(np.array(["a", "b"])) != fingerprint(np.array(["a", "c"]))
    assert fingerprint(np.array(["a", "b"], dtype=object)) == fingerprint(np.array(["a", "b"], dtype=object))
