"""Ledgers: complete after any crash, one owner at a time, and other runs are refused."""

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

from probewise.engine.fingerprints import fingerprint, settings_digest
from probewise.engine.ledger import STOPPED, Failures, Ledger, LedgerError


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
def test_another_run_is_refused_and_unchanged(tmp_path, changed, words):
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
        code = f"from probewise.engine.ledger import Ledger; Ledger({str(path)!r}, {{}})"
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
def test_other_files_are_refused_and_unchanged(tmp_path, content):
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    with pytest.raises(LedgerError, match="not a Probewise ledger"):
        Ledger(path, {})
    assert path.read_bytes() == content


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


def written(path, n_blocks=40):
    """A ledger of many blocks, a few of them with failures, and what is in it."""
    with Ledger(path, SETTINGS, notes={"feature_names": [f"f{i}" for i in range(200)]}) as ledger:
        for block in range(n_blocks):
            failures = Failures((50 * block + 3,), 0.0, "probe 3 (2 features): J is nan") if block % 7 == 0 else None
            ledger.append(np.random.default_rng(block).uniform(size=50), seconds=block / 10, failures=failures)
        live = {ending: path.with_name(path.name + ending).read_bytes() for ending in ("", "-wal")}
        ledger.note(STOPPED, {"n_probes": ledger.n_probes, "reason": "enough"})
        return ledger.values(), ledger.settings, live


SETTINGS = {"seed": 7, "criterion": "KNN(3)", "inclusion": None}


def mutated(content, kind, rng):
    content = bytearray(content)
    place = rng.randrange(len(content))
    if kind == "cut":
        return content[:place]
    if kind == "wiped":
        end = min(len(content), place + rng.choice([1, 8, 512, 4096]))
        content[place:end] = bytes(end - place)
    flips = {"one bit": 1, "bits": 12, "bits of the header": 3}.get(kind, 0)
    for _ in range(flips):
        reach = 4096 if kind == "bits of the header" else len(content)
        content[rng.randrange(reach)] ^= 1 << rng.randrange(8)
    return content


@pytest.mark.parametrize("place", ["file", "log of a killed process"])
@pytest.mark.parametrize("kind", ["cut", "wiped", "one bit", "bits", "bits of the header"])
def test_damage_is_an_error_or_a_true_beginning(tmp_path, kind, place):
    """Any other error, or another number, would be a bug."""
    values, settings, live = written(tmp_path / "whole")
    whole = (tmp_path / "whole").read_bytes()
    rng, outcomes = random.Random(f"{kind} {place}"), set()
    for attempt in range(25):
        path = tmp_path / f"damaged-{attempt}"
        if place == "file":
            path.write_bytes(mutated(whole, kind, rng))
        else:
            path.write_bytes(live[""])
            path.with_name(f"{path.name}-wal").write_bytes(mutated(live["-wal"], kind, rng))
        found, error = opened(path, SETTINGS if attempt % 2 else None)
        outcomes.add("error" if error else "true")
        if error:
            assert error.startswith((f"the ledger {path} ", f"{path} is "))
            assert "\n" not in error
        else:
            assert found.values().tobytes() == values[: found.n_probes].tobytes()
            known = {**SETTINGS, "feature_names": settings["feature_names"]}
            assert not found.n_probes or {name: found.settings[name] for name in known} == known
    assert ("error" in outcomes) == (place == "file")  # a log that ends too early is what any kill leaves


def opened(path, settings):
    try:
        with Ledger(path, settings) as ledger:
            return ledger, None
    except LedgerError as error:
        return None, str(error)


def test_every_byte_of_a_value_is_watched(tmp_path):
    """Each byte of the numbers of one block, found in the file and changed."""
    values, _, _ = written(tmp_path / "whole", 3)
    whole = (tmp_path / "whole").read_bytes()
    where = whole.index(values[50:100].tobytes())
    for byte in range(where, where + 400, 7):
        content = bytearray(whole)
        content[byte] ^= 1
        (tmp_path / "damaged").write_bytes(content)
        with pytest.raises(LedgerError, match="is damaged: the checksum of the block at probe 50 is wrong"):
            Ledger(tmp_path / "damaged")


@pytest.mark.parametrize("sql", ["DELETE FROM settings WHERE name = 'inclusion'", "UPDATE settings SET value = '8'"])
def test_changed_settings_are_noticed(tmp_path, sql):
    written(tmp_path / "run", 1)
    altered(tmp_path / "run", sql)
    with pytest.raises(LedgerError, match="is damaged: the checksum of its settings is wrong"):
        Ledger(tmp_path / "run")


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TRIGGER t AFTER INSERT ON blocks BEGIN DELETE FROM blocks; END",
        "CREATE VIEW v AS SELECT * FROM blocks",
        "ALTER TABLE blocks ADD COLUMN more",
        "DROP TABLE blocks",
    ],
)
def test_tables_of_another_shape_are_refused(tmp_path, sql):
    written(tmp_path / "run", 1)
    altered(tmp_path / "run", sql)
    with pytest.raises(LedgerError, match="is damaged: its tables are not those of a ledger"):
        Ledger(tmp_path / "run")


def test_deeply_nested_settings_are_refused(tmp_path):
    deep = "[" * 100_000
    Ledger(tmp_path / "run", {"seed": 7}).close()
    altered(
        tmp_path / "run",
        f"UPDATE settings SET value = '{deep}' WHERE name = 'seed'",
        f"UPDATE settings SET value = '{settings_digest({'seed': deep})}' WHERE name = 'checksum'",
    )
    with pytest.raises(LedgerError, match="its settings cannot be read"):
        Ledger(tmp_path / "run")


def altered(path, *statements):
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def test_failures_and_the_end_come_back(tmp_path):
    with Ledger(tmp_path / "run", {}) as ledger:
        ledger.append([1.0, 0.0], seconds=0, failures=Failures((1,), 0.0, "probe 1 (3 features): J is nan"))
        ledger.append([2.0], seconds=0)
        ledger.append([0.0], seconds=0, failures=Failures((3,), 0.0, "probe 3 (1 feature): J is inf"))
        ledger.note(STOPPED, {"n_probes": ledger.n_probes, "reason": "enough"})
        assert ledger.failures == Failures((1, 3), 0.0, "probe 1 (3 features): J is nan")
    with Ledger(tmp_path / "run", {}) as again:
        assert again.failures == ledger.failures
        assert again.stop_reason == "enough"
    assert Ledger().failures is None
    assert Ledger().stop_reason is None


def test_values_that_are_not_finite_are_refused(tmp_path):
    with Ledger(tmp_path / "run", {}) as ledger:
        ledger.append([1.0], seconds=0)
        with pytest.raises(LedgerError, match="the block at probe 1 cannot be stored: J and seconds must be finite"):
            ledger.append([np.nan], seconds=0)
    with Ledger(tmp_path / "run", {}) as again:
        assert again.values().tolist() == [1.0]


def test_an_unknown_format_is_refused(tmp_path):
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
from probewise.engine.ledger import Ledger
ledger = Ledger(sys.argv[1], {"seed": 1})
print(ledger.n_probes, flush=True)
while True:
    start = ledger.n_probes
    ledger.append(np.arange(start, start + 1000) / 3, seconds=0)
"""


@pytest.mark.slow
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


def test_a_pickled_ledger_keeps_its_values(tmp_path):
    with Ledger(tmp_path / "run", {"seed": 1}) as ledger:
        ledger.append([1.0, 2.0], seconds=3.0)
        copy = pickle.loads(pickle.dumps(ledger))
    assert copy.values().tolist() == [1.0, 2.0]
    assert copy.settings == {"seed": 1}


def test_fingerprints_distinguish_data():
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


def test_an_empty_file_is_no_ledger_and_can_become_one(tmp_path):
    path = tmp_path / "run.ledger"
    path.touch()
    with pytest.raises(LedgerError, match="is empty: no ledger"):
        Ledger(path)
    assert path.stat().st_size == 0
    with Ledger(path, {"seed": 7}) as ledger:
        ledger.append([0.5], seconds=1.0)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names are of POSIX")
def test_a_pipe_is_no_ledger(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for settings in (None, {"seed": 7}):
        with pytest.raises(LedgerError, match="is not a Probewise ledger"):
            Ledger(tmp_path / "pipe", settings)


def test_a_ledger_that_may_not_be_written_is_read(tmp_path, monkeypatch):
    """Also with the write-ahead log of a killed run; nothing is changed, and its folder may be read-only."""
    path = tmp_path / "run.ledger"
    values, settings, live = written(path)
    killed = tmp_path / "killed"
    killed.mkdir()
    for ending, content in live.items():
        (killed / f"run.ledger{ending}").write_bytes(content)
    for place in (tmp_path, killed):
        before = {file.name: file.read_bytes() for file in place.iterdir() if file.is_file()}
        with monkeypatch.context() as patch:
            patch.setattr(os, "access", lambda path, mode: False)
            with Ledger(place / "run.ledger") as ledger:
                np.testing.assert_array_equal(ledger.values(), values)
                assert ledger.settings["criterion"] == settings["criterion"]
        assert {file.name: file.read_bytes() for file in place.iterdir() if file.is_file()} == before


def test_the_file_alone_holds_the_run_up_to_a_few_seconds_ago(tmp_path, monkeypatch):
    """A copy without SQLite's write-ahead log loses little."""
    path, copy = tmp_path / "run.ledger", tmp_path / "copy.ledger"

    def copied():
        copy.write_bytes(path.read_bytes())
        with Ledger(copy) as found:
            return found.n_probes

    with Ledger(path, {"seed": 7}) as ledger:
        ledger.append([0.5], seconds=1.0)
        assert copied() == 0
        monkeypatch.setattr("probewise.engine.ledger.CHECKPOINT_SECONDS", -1.0)
        ledger.append([0.25], seconds=2.0)
        assert copied() == 2
