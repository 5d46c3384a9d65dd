"""Damaged files by the thousand for everything that reads files: only a clear refusal, or a sound table, is right.

    python tests/fuzz_readers.py --seconds 300
    python tests/fuzz_readers.py --seconds 60 --formats npz,ledger --seed 7
    python tests/fuzz_readers.py --guided --formats csv --seconds 60    (needs atheris; looks for new paths in our code)

A worker damages files that are whole and reads them. An exception that is no refusal, a crash, a read of more than ten
seconds or of more than a gigabyte is a finding: its file is cut down and kept in ``tests/corpus``, where
``test_hostile_files.py`` reads it ever after. The exit code is the number of findings.
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
import re
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
SECONDS_A_FILE = 10  # of work; the wall clock of a busy machine may show six times as much
KNOWN = ("memory allocation of",)  # polars ends the process where a damaged Parquet page claims more than there is
BYTES_A_FILE = 2**30
CUTS = 200
WORDS = (
    *(
        "nan",
        "inf",
        "-inf",
        "1e400",
        "-0",
        "0x10",
        "1_000",
        "NULL",
        "?",
        '"',
        "'",
        "\\",
        ",",
        ";",
        "\t",
        "\r",
        "\n",
        "\r\n",
    ),
    *("{", "}", "@data", "@attribute", "@relation", "%", ":", "#", "\x00", "\ufeff", "true", "99999999999999999999"),
    *("1000000000000:1", "-1:1", "1:nan", "qid:3", "label", "a"),
)
NUMBERS = (0, 1, 127, 128, 255, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1)
VALUES = (0.0, 0.5, 1.0, -1.0, 1e300, 1e-300, float("nan"), float("inf"))
ODD = (
    *(None, True, False, 0, 1, -1, 3, 10**9, 2**53, 2**64, 10**30, 0.0, 0.5, 1e-9, 1.0, -0.5, 1e308),
    *(float("nan"), float("inf"), "", "x", "\ud800", "<script>", "AAAAAA==", [], [0], [1, 2, 3], [[]], {}, {"a": 1}),
)
SETTINGS = (
    *("seed", "shape", "max_probe_size", "inclusion", "criterion", "scoring"),
    *("units", "unit_members", "unit_sizes", "unit_always", "unit_dropped"),
    *("tournament", "protected", "protected_units", "categorical", "command", "version", "cv"),
    *("feature_names", "block_size", "check_every", "stopped", "data", "target", "folds", "sample_weight"),
    *("row_groups", "row_shares", "row_unit", "rows", "univariate_p_values"),
)
ASKED = (
    {"target": "label"},
    {"target": "label"},
    {},
    {"target": "0"},
    {"target": "label", "ignore": ["a"]},
    {"target": "label", "id_column": "a"},
    {"target": "label", "features_in": "rows"},
)

BROUGHT = ({}, {}, {"target": "0"}, {"target": "0", "ignore": ["1"]})


class Unsound(Exception):
    """A table that was read, but not as it must be."""


# ---- whole files to damage


def frame():
    return pl.DataFrame(
        {"a": [1, 2, 3, 4], "b": [0.5, -1.5, 2.5, 1e9], "c": [0, 1, 0, 2], "label": ["x", "y", "x", "y"]}
    )


def as_text(separator=","):
    return frame().write_csv(separator=separator).encode()


def zstandard(data):
    packed = pa.BufferOutputStream()
    with pa.CompressedOutputStream(packed, "zstd") as stream:
        stream.write(data)
    return packed.getvalue().to_pybytes()


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
SPARSE_ARFF = (
    b"@relation r\n@attribute a numeric\n@attribute b numeric\n@attribute label {x,y}\n@data\n{0 1, 2 y}\n{1 3.5}\n"
)
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
    """The file that a small run of the command keeps."""
    from probewise.cli import run

    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        table, kept = Path(folder) / "t.csv", Path(folder) / "kept"
        rows = np.random.default_rng(0).standard_normal((24, 3))
        pl.DataFrame({"a": rows[:, 0], "b": rows[:, 1], "c": rows[:, 2], "label": ["x", "y"] * 12}).write_csv(table)
        if command == "rank":
            options = ["--ledger", str(kept), "--n-probes", "40"]
        else:
            options = ["--ledger", str(kept), "--methods", "fsdd,all", "--trials", "2", "--sizes", "1,2"]
        assert run([command, str(table), "--target", "label", "--n-jobs", "1", "-q", *options]) == 0
        return kept.read_bytes()


def seeds_of(ending: str) -> list[bytes]:
    """Whole files of a format."""
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
        "csv.zst": lambda: [zstandard(as_text())],
        "csv.bz2": lambda: [bz2.compress(as_text())],
        "csv.xz": lambda: [lzma.compress(as_text())],
        "txt": lambda: [as_text(";").replace(b".", b","), SERIES],
        "gct": lambda: [GCT, NEWER_GCT],
        "arff": lambda: [ARFF, SPARSE_ARFF],
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
    """A ledger as someone writes it who wants harm: other settings and blocks, with checksums that are right."""
    settings = settings_of(data)
    changed = {
        name: json.dumps(_odd(json.loads(settings.get(name, "null")), draw))
        for name in draw.sample(sorted({*settings, *SETTINGS}), draw.choice((1, 1, 2, 4)))
    }
    gone = {draw.choice(sorted(settings))} if draw.random() < 0.3 else set()
    return with_settings(data, changed, gone, None if draw.random() < 0.7 else _block(draw))


def settings_of(data: bytes) -> dict[str, str]:
    with _as_database(data) as (connection, _):
        return dict(connection.execute("SELECT name, value FROM settings WHERE name != 'checksum'"))


def with_settings(data: bytes, changed: dict[str, str], gone=frozenset(), block=None) -> bytes:
    """The ledger with other settings, as JSON, and perhaps another block; all checksums are right."""
    from probewise.engine.fingerprints import block_checksum, settings_digest
    from probewise.engine.ledger import FORMAT, INSERT_BLOCK

    rows = {name: value for name, value in {**settings_of(data), **changed}.items() if name not in gone}
    with _as_database(data) as (connection, path):
        connection.execute("DELETE FROM settings")
        connection.executemany(
            "INSERT INTO settings VALUES (?, ?)", [*rows.items(), ("checksum", settings_digest(rows))]
        )
        if block is not None and connection.execute("PRAGMA user_version").fetchone() == (FORMAT,):
            connection.execute("DELETE FROM blocks WHERE start = ?", block[:1])
            connection.execute(INSERT_BLOCK, (*block, max(0, block_checksum(*block))))
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
    failures = json.dumps(_odd({"probes": [0], "error_score": 0.0, "first": "x"}, draw))
    rows = draw.choice((None, None, b"", b"ab" * 40, b"abc"))
    return draw.choice((0, 20)), draw.choice((0.0, 1e300, -1.0)), values, draw.choice((None, failures)), rows


def _odd(value, draw):
    """Another JSON value: of another kind, far off, or the same but for a part."""
    if isinstance(value, list) and value and draw.random() < 0.6:
        place = draw.randrange(len(value))
        return [*value[:place], _odd(value[place], draw), *value[place + draw.choice((0, 1)) :]]
    if isinstance(value, dict) and value and draw.random() < 0.6:
        name = draw.choice(sorted(value))
        return {**value, name: _odd(value[name], draw)}
    if isinstance(value, int | float) and not isinstance(value, bool) and draw.random() < 0.5:
        return draw.choice((value + 1, -value, value * 10**6, value / 3, float(value)))
    if isinstance(value, str) and value and draw.random() < 0.5:
        return draw.choice((value[:-1], value * 100, value.upper(), "AAAA", "AAAAAAEAAAACAAAA"))
    return draw.choice(ODD)


def _place(out, draw):
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
    place = _place(out, draw)
    out[place : place + draw.choice((0, size))] = number


def put_word(out, others, draw):
    out[(place := _place(out, draw)) : place] = draw.choice(WORDS).encode()


def drop(out, others, draw):
    place = _place(out, draw)
    del out[place : place + draw.choice((1, 2, 4, 16, 64))]


def cut_off(out, others, draw):
    del out[_place(out, draw) :]


def repeat(out, others, draw):
    place = _place(out, draw)
    out[place:place] = out[place : place + draw.randrange(1, 64)] * draw.choice((1, 2, 100))


def splice(out, others, draw):
    other = draw.choice(others)
    place = _place(out, draw)
    out[place:] = other[draw.randrange(len(other) + 1) :]


DAMAGE: list[Callable] = [flip, put_byte, put_number, put_word, drop, cut_off, repeat, splice]


# ---- reading


def read(path: Path) -> str:
    """What became of a file: "a table" or "refused"; raises where it is neither."""
    if path.name.endswith((".ledger", ".run")):
        return _reported(path)
    choices = BROUGHT if path.name.endswith((".npz", ".npy", ".libsvm")) else ASKED
    options = choices[int(hashlib.sha256(path.read_bytes()).hexdigest(), 16) % len(choices)]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            table = read_table(path, **options)
    except TableError as error:
        if len(str(error).splitlines()) != 1:
            raise Unsound(f"a refusal of {len(str(error).splitlines())} lines") from error
        return "refused"
    _require_sound(table)
    return "a table"


def _require_sound(table):
    X = table.X
    if X.ndim != 2 or X.shape != (len(table.y), len(table.feature_names)) or 0 in X.shape or X.dtype.kind not in "iuf":
        raise Unsound(f"X of shape {X.shape} and type {X.dtype} with {len(table.y)} labels")
    values = X.data if sp.issparse(X) else np.asarray(X)
    if not np.isfinite(values).all():
        raise Unsound("a table with NaN or infinity")
    if len(set(table.feature_names)) < len(table.feature_names):
        raise Unsound("a table with a name twice")


def _reported(path: Path) -> str:
    """A report of a kept run, by the command itself: written, or refused in one line."""
    from probewise.cli import run

    out, said = path.parent / "out.md", io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
        code = run(["report", str(path), "--out", str(out), "--quiet"])
    lines = said.getvalue().splitlines()
    if code not in (0, 2) or (code == 2 and len(lines) != 1):
        raise Unsound(f"exit code {code} with {len(lines)} lines: {lines[:2]}")
    return "a table" if code == 0 else "refused"


# ---- the worker: damages and reads until it is told to stop, or falls


def work(ending: str, seed: int, seconds: float, folder: Path) -> None:
    faulthandler.enable()
    draw, whole = random.Random(seed), seeds_of(ending)
    path, count, end = folder / f"input.{ending}", Counter(), time.monotonic() + seconds
    for data in whole:
        path.write_bytes(data)
        read(path)
    limit_memory()
    while time.monotonic() < end:
        data = draw.choice(whole)
        by_hand = ending == "ledger" and draw.random() < 0.8  # else checksums tell of nearly all damage
        path.write_bytes(crafted(data, draw) if by_hand else damaged(data, whole, draw))
        before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
        try:
            count[read(path)] += 1
        except BaseException as error:  # a panic of polars is no Exception
            if isinstance(error, KeyboardInterrupt):
                raise
            print(json.dumps({"found": named(error), "trace": traceback.format_exc()[-1500:]}), flush=True)
            shutil.copy(path, folder / f"{named(error)}.{ending}")
        if (grown := resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 > BYTES_A_FILE:
            print(json.dumps({"found": "memory", "trace": f"{grown / 2**20:.1f} GiB"}), flush=True)
            shutil.copy(path, folder / f"memory.{ending}")
        if (taken := time.process_time() - start) > SECONDS_A_FILE:
            print(json.dumps({"found": "slow", "trace": f"{taken:.0f} s"}), flush=True)
            shutil.copy(path, folder / f"slow.{ending}")
        (folder / "alive").touch()
    print(json.dumps({"counts": dict(count)}), flush=True)


def limit_memory() -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() if os.name == "posix" else 0
    resource.setrlimit(resource.RLIMIT_AS, (used + 4 * BYTES_A_FILE, resource.RLIM_INFINITY))


def named(error: BaseException) -> str:
    """One name for all findings that come from the same place."""
    places = [frame for frame in traceback.extract_tb(error.__traceback__) if "probewise" in frame.filename]
    place = f"{Path(places[-1].filename).stem}-{places[-1].name}" if places else "elsewhere"
    return f"{type(error).__name__}-{place}"


def guided(ending: str, seconds: float, folder: Path) -> None:
    """The same by atheris, which keeps what reaches new lines of our code."""
    import atheris

    path, whole = folder / f"input.{ending}", seeds_of(ending)
    start = folder / "seeds"
    start.mkdir()
    for number, data in enumerate(whole):
        (start / str(number)).write_bytes(data)

    def one(data):
        path.write_bytes(data)
        try:
            read(path)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            if not (folder / f"{named(error)}.{ending}").exists():
                print(json.dumps({"found": named(error), "trace": traceback.format_exc()[-1500:]}), flush=True)
                shutil.copy(path, folder / f"{named(error)}.{ending}")
        (folder / "alive").touch()

    for name in [name for name in sys.modules if name.startswith("probewise.io")]:
        ours = [thing for thing in vars(sys.modules[name]).values() if getattr(thing, "__module__", None) == name]
        methods = [method for kind in ours if isinstance(kind, type) for method in vars(kind).values()]
        for function in (*ours, *methods):
            if hasattr(function, "__code__"):
                atheris.instrument_func(function)
    limits = [
        f"-max_total_time={int(seconds)}",
        "-max_len=4096",
        "-verbosity=0",
        "-print_final_stats=1",
        f"-timeout={SECONDS_A_FILE}",
    ]
    atheris.Setup([sys.argv[0], *limits, str(start)], one)
    atheris.Fuzz()


# ---- the parent: watches workers, keeps what they fell over


def hunt(ending: str, seconds: float, seed: int, keep: Path, *, by_guide: bool) -> Counter:
    """Findings of one format, each kept once."""
    found: Counter = Counter()
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0.5:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            lines, reason = _watched(ending, seed, left, folder, by_guide)
            for line in lines:
                if "found" in line and not found[line["found"]]:
                    print(f"{ending}: {line['found']}\n{line['trace']}", flush=True)
                found[line.get("found", "")] += "found" in line
                found.update(line.get("counts", {}))
            if reason.startswith("known"):
                found["known"] += 1
            elif reason:
                found[reason] += 1
                print(f"{ending}: {reason}", flush=True)
                shutil.copy(folder / f"input.{ending}", folder / f"{reason.split()[0]}.{ending}")
            for file in folder.glob(f"*.{ending}"):
                if not file.name.startswith("input."):
                    _keep(file, ending, keep)
        seed += 1
    return +found


def _watched(ending: str, seed: int, seconds: float, folder: Path, by_guide: bool) -> tuple[list[dict], str]:
    """What a worker says until it ends, and what ended it if that was not the time."""
    options = [sys.executable, __file__, "--worker", ending, str(seed), str(seconds), str(folder)]
    said, told = folder / "said", folder / "told"
    with said.open("w") as out, told.open("w") as err:
        worker = subprocess.Popen([*options, *(["--guided"] if by_guide else [])], stdout=out, stderr=err)
    alive, start, reason = folder / "alive", time.time(), ""
    while worker.poll() is None:
        time.sleep(0.2)
        last = alive.stat().st_mtime if alive.exists() else start + 60
        if time.time() - last > 6 * SECONDS_A_FILE:
            worker.kill()
            reason = f"hang of more than {6 * SECONDS_A_FILE} s"
    if not reason and worker.returncode and not by_guide:
        words = told.read_text(errors="replace")
        known = next((known for known in KNOWN if known in words), "")
        reason = (
            f"known end of the process: {known}" if known else f"crash with code {worker.returncode}: {words[:300]}"
        )
    runs = re.search(r"number_of_executed_units: (\d+)", told.read_text(errors="replace"))
    lines = [json.loads(line) for line in said.read_text().splitlines() if line.startswith("{")]
    return [*lines, {"counts": {"guided": int(runs[1])}}] if runs else lines, reason


def _keep(file: Path, ending: str, keep: Path) -> None:
    keep.mkdir(exist_ok=True)
    kept = keep / f"{file.name.removesuffix(f'.{ending}')}.{ending}"
    if not kept.exists() or file.stat().st_size < kept.stat().st_size:
        shutil.copy(file, kept)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60, help="in all, shared by the formats")
    parser.add_argument("--formats", default="", help="with commas; default: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, default=CORPUS, help="where the files of findings go")
    parser.add_argument("--guided", action="store_true", help="by atheris")
    parser.add_argument("--worker", nargs=4, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.worker:
        ending, seed, seconds, folder = asked.worker
        if asked.guided:
            guided(ending, float(seconds), Path(folder))
        else:
            work(ending, int(seed), float(seconds), Path(folder))
        return 0
    endings = [ending for ending in asked.formats.split(",") if ending] or list(seeds())
    findings = 0
    for ending in endings:
        found = hunt(ending, asked.seconds / len(endings), asked.seed, asked.keep, by_guide=asked.guided)
        tables, refused, known = (found.pop(name, 0) for name in ("a table", "refused", "known"))
        by_guide = found.pop("guided", 0)
        findings += len(found)
        told = f", {known} known ends of the process" if known else ""
        counts = f"{by_guide:,} files" if by_guide else f"{tables:,} read, {refused:,} refused"
        print(f"{ending}: {counts}, {len(found)} findings{told}", flush=True)
    return findings


if __name__ == "__main__":
    sys.exit(main())
