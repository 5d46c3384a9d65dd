"""Untrusted files: no code in them is run, their claims are verified, and damage is an error of one line."""

import gzip
import io
import json
import pickle
import random
import signal
import sqlite3
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp

from probewise.cli import run
from probewise.engine.ledger import Ledger
from probewise.io import input_files, read_table
from probewise.io import table as tables
from table_files import refusal

pytest.importorskip("resource", reason="the fuzzer measures memory as POSIX does")
import fuzz_readers

CORPUS = sorted(path for path in fuzz_readers.CORPUS.iterdir() if path.suffix not in ("", ".md"))
HUGE = 10**12


def error_line(capfd, *arguments):
    """The one line that a failing command prints."""
    code = run([str(argument) for argument in arguments])
    printed = capfd.readouterr()
    assert (code, printed.out, printed.err.count("\n")) == (2, "", 1), printed.err
    assert "Traceback" not in printed.err
    return printed.err


# ---- files found by fuzzing


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name)
def test_files_that_were_once_read_wrongly(path, tmp_path):
    copy = tmp_path / path.name  # reports are written next to the run, and SQLite may write to a file that it reads
    copy.write_bytes(path.read_bytes())
    assert fuzz_readers.read(copy) in ("a table", "refused")


@pytest.mark.parametrize(
    "ending",
    ["csv", "tsv", "txt", "gct", "csv.gz", "csv.bz2", "csv.xz", "csv.zst", "arff", "libsvm", "npz", "npy", "arrow"],
)
def test_a_short_fuzzing_run_finds_nothing(ending, tmp_path):
    """The fuzzer with a few files, always the same ones; ``python tests/fuzz_readers.py`` runs longer."""
    draw, seeds = random.Random(0), fuzz_readers.seeds_of(ending)
    path = tmp_path / f"input.{ending}"
    outcomes = set()
    for data in (*seeds, *(fuzz_readers.damaged(draw.choice(seeds), seeds, draw) for _ in range(60))):
        path.write_bytes(data)
        outcomes.add(fuzz_readers.read(path))
    assert outcomes == {"a table", "refused"}


@pytest.mark.slow
def test_a_known_abort_of_polars_runs_no_code_and_does_not_hang():
    path = fuzz_readers.CORPUS / "known" / "abort-of-polars.parquet"
    command = [sys.executable, "-m", "probewise", "rank", str(path), "--target", "label"]
    done = subprocess.run(command, capture_output=True, timeout=120, check=False)
    assert done.returncode in (2, -signal.SIGABRT)


# ---- no code is run


class Payload:
    """Creates a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def with_payload(path):
    array = np.empty((2, 2), dtype=object)
    array[0, 0] = Payload(path)
    return array


@pytest.mark.parametrize("name", ["X", "y", "feature_names", "class_names", "data", "whatever"])
def test_a_pickle_in_an_npz_file_is_not_loaded(tmp_path, name):
    arrays = {"X": np.eye(2), "y": np.array([0, 1]), name: with_payload(tmp_path / "pwned")}
    np.savez(tmp_path / "t.npz", **arrays)
    assert "t.npz cannot be read as NPZ: Object arrays cannot be loaded" in refusal(tmp_path / "t.npz")
    assert not (tmp_path / "pwned").exists()


def test_a_pickle_in_an_npy_file_is_not_loaded(tmp_path):
    np.save(tmp_path / "t.npy", with_payload(tmp_path / "pwned"))
    assert "t.npy contains an array of shape (2, 2) and type object" in refusal(tmp_path / "t.npy", target="0")
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize("ending", [".npy", ".npz", ".csv", ".parquet", ".arrow", ".arff", ".libsvm", ".ledger"])
def test_a_pickle_by_any_other_name_is_not_loaded(tmp_path, capfd, ending):
    path = tmp_path / f"t{ending}"
    path.write_bytes(pickle.dumps(Payload(tmp_path / "pwned")))
    if ending == ".ledger":
        assert "is not a Probewise ledger" in error_line(capfd, "report", path, "--out", tmp_path / "r.md")
    else:
        refusal(path, target="label")
    assert not (tmp_path / "pwned").exists()


def test_a_relational_arff_attribute_is_refused(tmp_path):
    path = tmp_path / "t.arff"
    path.write_text("@relation r\n@attribute a relational\n@attribute label {x}\n@data\n1,x\n")
    assert "cannot be read as ARFF" in refusal(path, target="label")


# ---- claims are verified


def npz_of(members):
    """An NPZ file of these members, whatever their headers claim."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(f"{name}.npy", content)
    return packed.getvalue()


def npy_of(shape, dtype="<f8", content=b"", order=False):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": dtype, "fortran_order": order, "shape": shape})
    return file.getvalue() + content


Y = npy_of((2,), "<i8", bytes(16))


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ({"X": npy_of((HUGE, 4), content=bytes(64)), "y": Y}, "X.npy claims 32,000,000,000,128 bytes and has 192"),
        ({"X": npy_of((2, 2), content=bytes(31)), "y": Y}, "X.npy claims 160 bytes and has 159"),
        ({"X": npy_of((2, 2), content=bytes(33)), "y": Y}, "X.npy claims 160 bytes and has 161"),
        ({"X": npy_of((0, HUGE))}, "claims 1,000,000,000,000 columns, more than the limit of 10,000,000"),
        ({"X": npy_of((HUGE, 0)), "y": Y}, "y in"),
        ({"X": npy_of((2**40, 2**40)), "y": Y}, "X.npy claims"),
        ({"X": npy_of((-2, 2)), "y": Y}, "cannot be read as NPZ"),
        ({"X": b"no array", "y": Y}, "cannot be read as NPZ"),
        ({"X": npy_of((2, 2), "|O"), "y": Y}, "Object arrays cannot be loaded when allow_pickle=False"),
        ({"X": npy_of((2, 2), "|S8", bytes(32)), "y": Y}, "has type |S8: X must be numeric"),
        ({"X": npy_of((2,), "<f8", bytes(16)), "y": Y}, "contains X of shape (2,): it needs a matrix X"),
        ({"y": Y}, "contains y: it needs a matrix X"),
        ({}, "contains nothing: it needs a matrix X"),
    ],
)
def test_an_npz_file_with_false_claims(tmp_path, members, reason):
    path = tmp_path / "t.npz"
    path.write_bytes(npz_of(members))
    assert reason in refusal(path)


def test_a_file_that_does_not_fit_into_memory_is_not_decompressed(tmp_path, monkeypatch):
    path = tmp_path / "t.npz"
    path.write_bytes(
        npz_of({"X": npy_of((2**10, 2**10), content=bytes(2**23)), "y": npy_of((2**10,), "<i8", bytes(2**13))})
    )
    assert path.stat().st_size < 2**14  # zeros compress well
    monkeypatch.setattr(tables.os, "sysconf", {"SC_PHYS_PAGES": 1000, "SC_PAGE_SIZE": 4096}.__getitem__)
    assert "GiB of memory, and 0.0 GiB are available: is it damaged?" in refusal(path)


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_a_small_file_that_claims_many_rows_is_not_decompressed(tmp_path, monkeypatch, ending):
    path, ones = tmp_path / f"t.{ending}", pl.repeat(1, 10**6, dtype=pl.Int64, eager=True)
    frame = pl.DataFrame({"a": ones, "b": ones, "y": ones})
    frame.write_parquet(path) if ending == "parquet" else frame.write_ipc(path, compression="zstd")
    assert path.stat().st_size < 2**15
    monkeypatch.setattr(tables, "available_memory", lambda: 2**23)
    assert "needs 0.0 GiB of memory" in refusal(path, target="y")
    monkeypatch.setattr(
        tables, "available_memory", lambda: 36 * 10**6
    )  # enough for the frame of 24 MB, not for the matrix as well
    assert "of memory, twice while it is read, and" in refusal(path, target="y")
    assert tables.available_memory() == 36 * 10**6
    monkeypatch.undo()
    assert 2**20 < tables.available_memory() < 2**50
    assert read_table(path, target="y").X.shape == (10**6, 2)


SPARSE = sp.csr_matrix(np.eye(3))
PARTS = {"data": SPARSE.data, "indices": SPARSE.indices, "indptr": SPARSE.indptr, "shape": np.array(SPARSE.shape)}


@pytest.mark.parametrize(
    ("part", "value", "reason"),
    [
        ("shape", np.array([3, HUGE]), "claims 1,000,000,000,000 columns, more than the limit of 10,000,000"),
        ("shape", np.array([HUGE, 3]), "cannot be read as NPZ"),
        ("shape", np.array([-3, 3]), "cannot be read as NPZ"),
        ("shape", np.array([3]), "cannot be read as NPZ"),
        ("indices", np.array([0, 1, 10**6]), "cannot be read as NPZ"),
        ("indices", np.array([0, 1, -1]), "cannot be read as NPZ"),
        ("indptr", np.array([0, 1, 2, 10**6]), "cannot be read as NPZ"),
        ("indptr", np.array([0, 2, 1, 3]), "cannot be read as NPZ"),
        ("indptr", np.array([5, 6, 7, 8]), "cannot be read as NPZ"),
        ("format", np.array(b"coo"), "a sparse matrix in the format coo, not csr or csc"),
        ("format", np.array(b"\xff\xfe"), "cannot be read as NPZ"),
    ],
)
def test_a_sparse_npz_file_with_false_claims(tmp_path, part, value, reason):
    np.savez(tmp_path / "t.npz", y=np.arange(3), **{**PARTS, part: value})
    assert reason in refusal(tmp_path / "t.npz")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (f"1 {HUGE}:1", "cannot be read as svmlight"),
        ("1 2000000000:1", "claims 2,000,000,001 columns, more than the limit of 10,000,000"),
        (f"1 {'9' * 5000}:1", "cannot be read as svmlight"),
        ("1 -5:1", "cannot be read as svmlight"),
        ("1 3:1 2:1", "cannot be read as svmlight"),
        ("1e400 1:1", "the target 'target' is missing or infinite in 1 of 2 rows"),
        ("nan 1:1", "the target 'target' is missing or infinite in 1 of 2 rows"),
        ("1 1:nan", "values are missing or infinite in 1 of 1 feature columns"),
    ],
)
def test_an_svmlight_file_with_false_claims(tmp_path, line, reason):
    path = tmp_path / "t.libsvm"
    path.write_text(f"{line}\n2 1:2\n")
    assert reason in refusal(path)


def test_labels_that_are_equal_as_floats_stay_different(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,label\n1,18446744073709551614\n2,18446744073709551615\n")
    assert len(set(read_table(path, target="label").y.tolist())) == 2
    np.savez(tmp_path / "t.npz", X=np.eye(2), y=np.array([2**64 - 2, 2**64 - 1], dtype=np.uint64))
    assert len(set(read_table(tmp_path / "t.npz").y.tolist())) == 2


def test_a_line_that_does_not_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(input_files, "MAX_LINE_LENGTH", 1000)
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(bytes(10**6)))
    assert path.stat().st_size < 2000
    assert "t.csv.gz has a line of more than 1,000 characters: is it a text table?" in refusal(path, target="label")


def test_stack_traces_of_polars_are_not_shown(capfd):
    for name in ("panic-of-polars.parquet", "panic-of-polars.arrow"):
        assert "cannot be read as" in error_line(capfd, "rank", fuzz_readers.CORPUS / name, "--target", "label")


# ---- stored runs


@pytest.fixture(scope="module")
def stored():
    return {"ledger": fuzz_readers.a_run("rank"), "run": fuzz_readers.a_run("compare")}


def reported(capfd, path):
    return error_line(capfd, "report", path, "--out", path.parent / "r.md")


@pytest.mark.parametrize("size", [0, 1, 15, 16, 17, 99, 100, 512, 1024, 4096, 4097, 8192, 8200])
def test_a_ledger_that_was_cut_off(tmp_path, capfd, stored, size):
    path = tmp_path / "cut.ledger"
    path.write_bytes(stored["ledger"][:size])
    assert "cut.ledger" in reported(capfd, path)


@pytest.mark.parametrize("start", range(0, 16384, 1365))
def test_a_ledger_with_changed_bytes(tmp_path, stored, start):
    path = tmp_path / "changed.ledger"
    content = bytearray(stored["ledger"])
    content[start : start + 64] = bytes(value ^ 0xA5 for value in content[start : start + 64])
    path.write_bytes(content)
    assert fuzz_readers.read(path) in ("refused", "a table")


def test_another_database_is_not_a_ledger(tmp_path, capfd):
    path = tmp_path / "other.ledger"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE settings (name TEXT, value TEXT)")
    database.close()
    before = path.read_bytes()
    assert "other.ledger is a database, but not a Probewise ledger: choose another file" in reported(capfd, path)
    assert path.read_bytes() == before


SETTINGS = {"shape": [24, 3], "seed": 0, "max_probe_size": 3, "inclusion": None, "criterion": "KNN()"}
SETTINGS |= {"block_size": 20, "check_every": 400}


@pytest.mark.parametrize(
    "change",
    [
        {"shape": [24, HUGE]},
        {"shape": [24, -3]},
        {"shape": [24, 0]},
        {"shape": [24, "3"]},
        {"shape": [24]},
        {"shape": "24 x 3"},
        {"shape": {"rows": 24}},
        {"seed": -1},
        {"seed": 2**64},
        {"seed": "zero"},
        {"max_probe_size": -5},
        {"max_probe_size": HUGE},
        {"max_probe_size": "all"},
        {"inclusion": 7},
        {"inclusion": "half"},
        {"block_size": -1},
        {"check_every": HUGE},
        {"feature_names": ["a"]},
        {"feature_names": [1, 2, 3]},
        {"feature_names": 3},
        {"inclusion": 1e-9},
        {"shape": [24, 10**7 + 1]},
        {"categorical": 5},
        {"categorical": [[0]]},
        {"scoring": ["accuracy"]},
        {"cv": {"folds": 3}},
        {"data": 5},
        {"units": "x"},
        {"tournament": [40, 20, 10]},
        {"block_size": 10**7, "max_probe_size": 10**7},
    ],
    ids=json.dumps,
)
def test_a_ledger_with_impossible_settings(tmp_path, capfd, change):
    path = tmp_path / "lie.ledger"
    with Ledger(path, {**SETTINGS, **change}) as ledger:
        ledger.append(np.linspace(0, 1, 40), seconds=1.0)
    assert "lie.ledger is damaged: its settings are impossible" in reported(capfd, path)


def test_a_ledger_with_possible_settings(tmp_path):
    path = tmp_path / "true.ledger"
    with Ledger(path, SETTINGS) as ledger:
        ledger.append(np.linspace(0, 1, 40), seconds=1.0)
    assert run(["report", str(path), "--out", str(tmp_path / "r.md"), "--quiet"]) == 0


def deep(n):
    return json.loads("[" * n + "]" * n)


@pytest.mark.parametrize(
    ("line", "change"),
    [
        (0, {"settings": None}),
        (0, {"settings": {}}),
        (0, {"settings": {"shape": [24, HUGE]}}),
        (0, {"settings": {"sizes": []}}),
        (0, {"settings": {"sizes": ["one"]}}),
        (0, {"settings": {"selectors": "fsdd"}}),
        (0, {"settings": {"classifiers": {}}}),
        (0, {"settings": {"test_size": "half"}}),
        (0, {"notes": {"feature_names": ["a"]}}),
        (0, {"notes": 3}),
        (1, {"trial": "first"}),
        (1, {"trial": -1}),
        (1, {"selectors": []}),
        (1, {"selectors": {"fsdd": None}}),
        (1, {"selectors": {"fsdd": {"seconds": "long"}}}),
        (1, {"selectors": {"fsdd": {"probes": -1}}}),
        (1, {"selectors": {"fsdd": {"subsets": [[0], [0, HUGE]]}}}),
        (1, {"selectors": {"fsdd": {"subsets": [[0]]}}}),
        (1, {"selectors": {"fsdd": {"subsets": "ab"}}}),
        (1, {"selectors": {"fsdd": {"accuracy": {"knn": [0.5]}}}}),
        (1, {"selectors": {"fsdd": {"accuracy": {"knn": [0.5, float("nan")]}}}}),
        (1, {"selectors": {"fsdd": {"accuracy": 0.5}}}),
        (1, {"selectors": {"fsdd": {"seconds": deep(50)}}}),
    ],
    ids=lambda value: json.dumps(value)[:80],
)
def test_a_study_with_impossible_settings_or_results(tmp_path, capfd, stored, line, change):
    lines = [json.loads(text) for text in stored["run"].splitlines()]
    merge(lines[line], change)
    path = tmp_path / "lie.run"
    path.write_text("".join(f"{json.dumps(each)}\n" for each in lines))
    assert "lie.run is damaged" in reported(capfd, path)


def merge(into, change):
    for name, value in change.items():
        if isinstance(value, dict) and value and isinstance(into.get(name), dict):
            merge(into[name], value)
        else:
            into[name] = value


def test_a_study_of_nested_brackets(tmp_path, capfd, stored):
    path = tmp_path / "deep.run"
    path.write_bytes(stored["run"].splitlines()[0] + b"\n" + b"[" * 10**5 + b"\n")
    assert "deep.run is damaged" in reported(capfd, path)
    options = ["--methods", "fsdd,all", "--trials", "2", "--sizes", "1,2", "--ledger", path]
    table = tmp_path / "t.csv"
    pl.DataFrame({"a": [1, 2] * 12, "b": [3, 1] * 12, "label": ["x", "y"] * 12}).write_csv(table)
    assert "deep.run is damaged in line 2" in error_line(capfd, "compare", table, "--target", "label", *options)


# ---- crafted ledgers with valid checksums


@pytest.mark.parametrize("stopped", ["x", 5, {"n_probes": 40, "reason": 5}], ids=str)
def test_an_invalid_reason_to_stop(tmp_path, capfd, stopped):
    path = tmp_path / "lie.ledger"
    with Ledger(path, SETTINGS) as ledger:
        ledger.append(np.linspace(0, 1, 40), seconds=1.0)
    path.write_bytes(fuzz_readers.with_settings(path.read_bytes(), {"stopped": json.dumps(stopped)}))
    assert "lie.ledger is damaged: its stop reason cannot be read" in reported(capfd, path)


@pytest.mark.exhaustive
def test_crafted_ledgers_are_reported_or_refused(tmp_path):
    draw, seeds, path = random.Random(3), fuzz_readers.seeds_of("ledger"), tmp_path / "crafted.ledger"
    for _ in range(300):
        path.write_bytes(fuzz_readers.crafted(draw.choice(seeds), draw))
        assert fuzz_readers.read(path) in ("a table", "refused")
