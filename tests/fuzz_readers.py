"""Fuzzer of all readers: thousands of damaged files, each of which must give a valid table or an error of one line.

    python tests/fuzz_readers.py --seconds 300
    python tests/fuzz_readers.py --seconds 60 --formats npz,ledger --seed 7

A worker damages valid files and reads them. An unexpected exception, a crash, and a file that takes more than ten
seconds or a gigabyte to read are findings: their files are stored in ``tests/corpus``, and
``tests/io/test_hostile_files.py`` reads them. The exit code is the number of findings.
"""

from __future__ import annotations

import argparse
import bz2
import contextlib
import faulthandler
import gzip
import hashlib
import io
import json
import lzma
import os
import random
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import scipy.sparse as sp

from probewise.io import TableError, read_table

CORPUS = Path(__file__).parent / "corpus"
LEDGERS = Path(__file__).parent / "goldens"
MAX_SECONDS = 10  # of CPU time per file; the wall clock of a busy machine may show six times as much
MAX_BYTES = 2**30  # per file
KNOWN = ("memory allocation of",)  # polars aborts if a damaged Parquet page claims more memory than there is
WORDS = (
    *("nan", "inf", "-inf", "1e400", "-0", "0x10", "1_000", "NULL", "?", '"', "'", "\\", ",", ";", "\t", "\r", "\n"),
    *("{", "}", "@data", "@attribute", "@relation", "%", ":", "#", "\x00", "\ufeff", "true", "99999999999999999999"),
    *("1000000000000:1", "-1:1", "1:nan", "qid:3", "label", "a"),
)
NUMBERS = (0, 1, 127, 128, 255, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1)
VALUES = (0.0, 0.5, 1.0, -1.0, 1e300, 1e-300, float("nan"), float("inf"))
ODD_VALUES = (
    *(None, True, False, 0, 1, -1, 3, 10**9, 2**53, 2**64, 10**30, 0.0, 0.5, 1e-9, 1.0, -0.5, 1e308),
    *(float("nan"), float("inf"), "", "x", "\ud800", "<script>", "AAAAAA==", [], [0], [1, 2, 3], [[]], {}, {"a": 1}),
)
SETTINGS = (
    *("seed", "shape", "max_probe_size", "inclusion", "criterion", "scoring"),
    *("units", "unit_members", "unit_sizes", "unit_always"),
    *("tournament", "protected", "protected_units", "categorical", "command", "version", "cv"),
    *("feature_names", "block_size", "check_every", "stopped", "data", "target", "folds", "sample_weight"),
    *("scale", "uneven", "rows_used"),
)
OPTIONS = (
    {"target": "label"},
    {"target": "label"},
    {},
    {"target": "0"},
    {"target": "label", "ignore": ["a"]},
    {"target": "label", "id_column": "a"},
    {"target": "label", "features_in": "rows"},
)
# For formats that declare a target, and for those that have neither a target nor names.
OPTIONS_WITHOUT_TARGET = ({}, {}, {"target": "0"}, {"target": "0", "ignore": ["1"]})
OPTIONS_OF_NPY = ({"target": "0"}, {"target": "0", "ignore": ["1"]}, {})


class InvalidResult(Exception):
    """The reader returned an invalid table, or an error of several lines."""


# ---- valid files


def frame():
    return pl.DataFrame(
        {"a": [1, 2, 3, 4], "b": [0.5, -1.5, 2.5, 1e9], "c": [0, 1, 0, 2], "label": ["x", "y", "x", "y"]}
    )


def as_text(separator=","):
    return frame().write_csv(separator=separator).encode()


def zstd(data):
    compressed = pa.BufferOutputStream()
    with pa.CompressedOutputStream(compressed, "zstd") as stream:
        stream.write(data)
    return compressed.getvalue().to_pybytes()


SERIES = b"""!Series_title\t"A study"
!Sample_title\t"u"\t"v"
!Sample_characteristics_ch1\t"label: x"\t"label: y"
!series_matrix_table_begin
"ID_REF"\t"S1"\t"S2"
"a"\t1.5\t2
"b"\t3\t4
!series_matrix_table_end
"""
GCT = b"#1.2\n2\t2\nName\tDescription\tS1\tS2\na\tfirst\t1.5\t2\nlabel\tsecond\t3\t4\n"
NEWER_GCT = b"#1.3\n2\t2\t1\t1\nid\tsymbol\tS1\tS2\nlabel\tna\tx\ty\na\tTP53\t1.5\t2\nb\tBRCA1\t3\t4\n"
ARFF = b"""% a comment
@relation r
@attribute a numeric
@attribute 'b b' real
@attribute label {x, 'y z', w}
@data
1, 2.5, x
2, ?, 'y z'
3, -1e3, w
"""
SVMLIGHT = b"# comment\n1 1:0.5 3:2\n-1 2:1e3\n1 1:1 2:2 3:3 # row\n"


def npz(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def binary(write: str, **options):
    file = io.BytesIO()
    getattr(frame(), write)(file, **options)
    return file.getvalue()


def a_run(command):
    """The ledger of a small run of the command."""
    from probewise.cli import run

    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        table, ledger = Path(folder) / "t.csv", Path(folder) / "ledger"
        rows = np.random.default_rng(0).standard_normal((24, 3))
        pl.DataFrame({"a": rows[:, 0], "b": rows[:, 1], "c": rows[:, 2], "label": ["x", "y"] * 12}).write_csv(table)
        if command == "rank":
            options = ["--ledger", str(ledger), "--n-probes", "40"]
        else:
            options = ["--ledger", str(ledger), "--methods", "fsdd,all", "--trials", "2", "--sizes", "1,2"]
        assert run([command, str(table), "--target", "label", "--n-jobs", "1", "-q", *options]) == 0
        return ledger.read_bytes()


def seeds_of(ending: str) -> list[bytes]:
    """Valid files of a format."""
    return seeds()[ending]()


def seeds() -> dict[str, Callable[[], list[bytes]]]:
    X, y = np.arange(12.0).reshape(4, 3), np.array([0, 1, 0, 1])
    csr = sp.csr_matrix(X)
    parts = {"data": csr.data, "indices": csr.indices, "indptr": csr.indptr, "shape": csr.shape, "format": b"csr"}
    quoted = b'"a","b ""c""",label\n1,2,"x, y"\n3,4,"z\nw"\n'
    return {
        "csv": lambda: [as_text(), quoted, b"\xef\xbb\xbf" + as_text(), "é,label\n1,ü\n2,ö\n".encode("utf-16")],
        "tsv": lambda: [as_text("\t"), as_text("\t").replace(b"a\t", b"", 1)],
        "csv.gz": lambda: [gzip.compress(as_text(), mtime=0)],
        "csv.zst": lambda: [zstd(as_text())],
        "csv.bz2": lambda: [bz2.compress(as_text())],
        "csv.xz": lambda: [lzma.compress(as_text())],
        "txt": lambda: [as_text(";").replace(b".", b","), SERIES],
        "gct": lambda: [GCT, NEWER_GCT],
        "arff": lambda: [ARFF, ARFF.replace(b"?", b"4")],
        "libsvm": lambda: [SVMLIGHT],
        "npz": lambda: [npz(X=X, y=y, feature_names=np.array(["a", "b", "c"])), npz(y=y, **parts)],
        "npy": lambda: [npy(X), npy(np.asfortranarray(X.astype(np.float32)))],
        "parquet": lambda: [binary("write_parquet"), binary("write_parquet", compression="uncompressed")],
        "arrow": lambda: [binary("write_ipc"), binary("write_ipc_stream"), binary("write_ipc", compression="zstd")],
        "ledger": lambda: [a_run("rank"), *(path.read_bytes() for path in sorted(LEDGERS.glob("*.ledger")))],
        "run": lambda: [a_run("compare")],
    }


# ---- damage


def damaged(data: bytes, others: list[bytes], draw: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(draw.choice((1, 1, 1, 2, 4, 16))):
        draw.choice(DAMAGE)(out, others, draw)
    return bytes(out[: 2**20])


def crafted(data: bytes, draw: random.Random) -> bytes:
    """A malicious ledger: changed settings and blocks, with valid checksums."""
    settings = settings_of(data)
    changed = {
        name: json.dumps(_changed(json.loads(settings.get(name, "null")), draw))
        for name in draw.sample(sorted({*settings, *SETTINGS}), draw.choice((1, 1, 2, 4)))
    }
    removed = {draw.choice(sorted(settings))} if draw.random() < 0.3 else set()
    return with_settings(data, changed, removed, None if draw.random() < 0.7 else _block(draw))


def settings_of(data: bytes) -> dict[str, str]:
    with _as_database(data) as (connection, _):
        return dict(connection.execute("SELECT name, value FROM settings WHERE name != 'checksum'"))


def with_settings(data: bytes, changed: dict[str, str], removed=frozenset(), block=None) -> bytes:
    """The ledger with these settings, as JSON, and possibly another block; all checksums are valid."""
    from probewise.engine.fingerprints import block_checksum, settings_digest
    from probewise.engine.ledger import FORMAT

    rows = {name: value for name, value in {**settings_of(data), **changed}.items() if name not in removed}
    with _as_database(data) as (connection, path):
        connection.execute("DELETE FROM settings")
        connection.executemany(
            "INSERT INTO settings VALUES (?, ?)", [*rows.items(), ("checksum", settings_digest(rows))]
        )
        if block is not None and connection.execute("PRAGMA user_version").fetchone() == (FORMAT,):
            connection.execute("DELETE FROM blocks WHERE start = ?", block[:1])
            row = (*block, max(0, block_checksum(*block)))
            connection.execute("INSERT INTO blocks VALUES (?, ?, ?, ?, ?)", row)
        connection.close()
        return path.read_bytes()


@contextlib.contextmanager
def _as_database(data: bytes):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger"
        path.write_bytes(data)
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
            yield connection, path


def _block(draw: random.Random) -> tuple:
    values = np.array([draw.choice(VALUES) for _ in range(draw.choice((1, 20, 40)))], "<f8").tobytes()
    failures = json.dumps(_changed({"probes": [0], "error_score": 0.0, "first": "x"}, draw))
    return draw.choice((0, 20)), draw.choice((0.0, 1e300, -1.0)), values, draw.choice((None, failures))


def _changed(value, draw):
    """Another JSON value: of another type, far off, or changed in one part."""
    if isinstance(value, list) and value and draw.random() < 0.6:
        index = draw.randrange(len(value))
        return [*value[:index], _changed(value[index], draw), *value[index + draw.choice((0, 1)) :]]
    if isinstance(value, dict) and value and draw.random() < 0.6:
        name = draw.choice(sorted(value))
        return {**value, name: _changed(value[name], draw)}
    if isinstance(value, int | float) and not isinstance(value, bool) and draw.random() < 0.5:
        return draw.choice((value + 1, -value, value * 10**6, value / 3, float(value)))
    if isinstance(value, str) and value and draw.random() < 0.5:
        return draw.choice((value[:-1], value * 100, value.upper(), "AAAA", "AAAAAAEAAAACAAAA"))
    return draw.choice(ODD_VALUES)


def _position(out, draw):
    return draw.randrange(len(out) + 1)


def flip(out, others, draw):
    if out:
        out[draw.randrange(len(out))] ^= 1 << draw.randrange(8)


def put_byte(out, others, draw):
    if out:
        out[draw.randrange(len(out))] = draw.choice((0, 255, 10, 44, 34, draw.randrange(256)))


def put_number(out, others, draw):
    size = draw.choice((2, 4, 8))
    number = (draw.choice(NUMBERS) % 256**size).to_bytes(size, draw.choice(("little", "big")))
    position = _position(out, draw)
    out[position : position + draw.choice((0, size))] = number


def put_word(out, others, draw):
    out[(position := _position(out, draw)) : position] = draw.choice(WORDS).encode()


def drop(out, others, draw):
    position = _position(out, draw)
    del out[position : position + draw.choice((1, 2, 4, 16, 64))]


def cut_off(out, others, draw):
    del out[_position(out, draw) :]


def repeat(out, others, draw):
    position = _position(out, draw)
    out[position:position] = out[position : position + draw.randrange(1, 64)] * draw.choice((1, 2, 100))


def splice(out, others, draw):
    other = draw.choice(others)
    position = _position(out, draw)
    out[position:] = other[draw.randrange(len(other) + 1) :]


DAMAGE: list[Callable] = [flip, put_byte, put_number, put_word, drop, cut_off, repeat, splice]


# ---- reading


def read(path: Path) -> str:
    """The outcome of reading a file: "a table" or "refused"; anything else is an exception."""
    if path.name.endswith((".ledger", ".run")):
        return _reported(path)
    choices = OPTIONS_WITHOUT_TARGET if path.name.endswith((".npz", ".libsvm")) else OPTIONS
    choices = OPTIONS_OF_NPY if path.name.endswith(".npy") else choices
    options = choices[int(hashlib.sha256(path.read_bytes()).hexdigest(), 16) % len(choices)]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            table = read_table(path, **options)
    except TableError as error:
        if len(str(error).splitlines()) != 1:
            raise InvalidResult(f"an error of {len(str(error).splitlines())} lines") from error
        return "refused"
    _require_valid(table)
    return "a table"


def _require_valid(table):
    X = table.X
    if X.ndim != 2 or X.shape != (len(table.y), len(table.feature_names)) or 0 in X.shape or X.dtype.kind not in "iuf":
        raise InvalidResult(f"X of shape {X.shape} and type {X.dtype} with {len(table.y)} labels")
    values = X.data if sp.issparse(X) else np.asarray(X)
    if not np.isfinite(values).all():
        raise InvalidResult("a table with NaN or infinity")
    if len(set(table.feature_names)) < len(table.feature_names):
        raise InvalidResult("a table with a repeated name")


def _reported(path: Path) -> str:
    """The outcome of the command ``report``: it is written, or refused in one line."""
    from probewise.cli import run

    out, printed = path.parent / "out.md", io.StringIO()
    with contextlib.redirect_stderr(printed), contextlib.redirect_stdout(printed):
        code = run(["report", str(path), "--out", str(out), "--quiet"])
    lines = printed.getvalue().splitlines()
    if code not in (0, 2) or (code == 2 and len(lines) != 1):
        raise InvalidResult(f"exit code {code} with {len(lines)} lines: {lines[:2]}")
    return "a table" if code == 0 else "refused"


# ---- the worker: damages and reads files until its time is over, or it crashes


def work(ending: str, seed: int, seconds: float, folder: Path) -> None:
    faulthandler.enable()
    draw, valid = random.Random(seed), seeds_of(ending)
    path, count, end = folder / f"input.{ending}", Counter(), time.monotonic() + seconds
    for data in valid:
        path.write_bytes(data)
        read(path)
    limit_memory()
    while time.monotonic() < end:
        data = draw.choice(valid)
        is_crafted = ending == "ledger" and draw.random() < 0.8  # checksums detect nearly all other damage
        path.write_bytes(crafted(data, draw) if is_crafted else damaged(data, valid, draw))
        before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
        try:
            count[read(path)] += 1
        except BaseException as error:  # a panic of polars is not an Exception
            if isinstance(error, KeyboardInterrupt):
                raise
            print(json.dumps({"finding": name_of(error), "trace": traceback.format_exc()[-1500:]}), flush=True)
            shutil.copy(path, folder / f"{name_of(error)}.{ending}")
        if (grown := resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 > MAX_BYTES:
            print(json.dumps({"finding": "memory", "trace": f"{grown / 2**20:.1f} GiB"}), flush=True)
            shutil.copy(path, folder / f"memory.{ending}")
        if (taken := time.process_time() - start) > MAX_SECONDS:
            print(json.dumps({"finding": "slow", "trace": f"{taken:.0f} s"}), flush=True)
            shutil.copy(path, folder / f"slow.{ending}")
        (folder / "alive").touch()
    print(json.dumps({"counts": dict(count)}), flush=True)


def limit_memory() -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() if os.name == "posix" else 0
    resource.setrlimit(resource.RLIMIT_AS, (used + 4 * MAX_BYTES, resource.RLIM_INFINITY))


def name_of(error: BaseException) -> str:
    """Name of a finding: the type of the error and the function that raised it."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "probewise" in frame.filename]
    where = f"{Path(frames[-1].filename).stem}-{frames[-1].name}" if frames else "elsewhere"
    return f"{type(error).__name__}-{where}"


# ---- the parent: watches workers, and stores the files of their findings


def fuzz(ending: str, seconds: float, seed: int, corpus: Path) -> Counter:
    """Findings and outcomes of one format; the file of each finding is stored once."""
    counts: Counter = Counter()
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0.5:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            lines, reason = _watched(ending, seed, left, folder)
            for line in lines:
                if "finding" in line and not counts[line["finding"]]:
                    print(f"{ending}: {line['finding']}\n{line['trace']}", flush=True)
                counts[line.get("finding", "")] += "finding" in line
                counts.update(line.get("counts", {}))
            if reason.startswith("known"):
                counts["known"] += 1
            elif reason:
                counts[reason] += 1
                print(f"{ending}: {reason}", flush=True)
                shutil.copy(folder / f"input.{ending}", folder / f"{reason.split()[0]}.{ending}")
            for file in folder.glob(f"*.{ending}"):
                if not file.name.startswith("input."):
                    _store(file, ending, corpus)
        seed += 1
    return +counts


def _watched(ending: str, seed: int, seconds: float, folder: Path) -> tuple[list[dict], str]:
    """The lines that a worker prints, and the reason of its end, if that is a crash or a hang."""
    options = [sys.executable, __file__, "--worker", ending, str(seed), str(seconds), str(folder)]
    output, errors = folder / "stdout", folder / "stderr"
    with output.open("w") as out, errors.open("w") as err:
        worker = subprocess.Popen(options, stdout=out, stderr=err)
    alive, start, reason = folder / "alive", time.time(), ""
    while worker.poll() is None:
        time.sleep(0.2)
        last = alive.stat().st_mtime if alive.exists() else start + 60
        if time.time() - last > 6 * MAX_SECONDS:
            worker.kill()
            reason = f"hang of more than {6 * MAX_SECONDS} s"
    if not reason and worker.returncode:
        printed = errors.read_text(errors="replace")
        known = next((known for known in KNOWN if known in printed), "")
        reason = f"known crash: {known}" if known else f"crash with code {worker.returncode}: {printed[:300]}"
    return [json.loads(line) for line in output.read_text().splitlines() if line.startswith("{")], reason


def _store(file: Path, ending: str, corpus: Path) -> None:
    corpus.mkdir(exist_ok=True)
    stored = corpus / f"{file.name.removesuffix(f'.{ending}')}.{ending}"
    if not stored.exists() or file.stat().st_size < stored.stat().st_size:
        shutil.copy(file, stored)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60, help="total time, shared by the formats")
    parser.add_argument("--formats", default="", help="separated by commas; default: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--corpus", type=Path, default=CORPUS, help="folder for the files of findings")
    parser.add_argument("--worker", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        ending, seed, seconds, folder = arguments.worker
        work(ending, int(seed), float(seconds), Path(folder))
        return 0
    endings = [ending for ending in arguments.formats.split(",") if ending] or list(seeds())
    n_findings = 0
    for ending in endings:
        counts = fuzz(ending, arguments.seconds / len(endings), arguments.seed, arguments.corpus)
        tables, refused, known = (counts.pop(name, 0) for name in ("a table", "refused", "known"))
        n_findings += len(counts)
        print(
            f"{ending}: {tables:,} read, {refused:,} refused, {len(counts)} findings, {known} known crashes", flush=True
        )
    return n_findings


if __name__ == "__main__":
    sys.exit(main())
