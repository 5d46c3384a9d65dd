"""Makes the goldens: what version 0.1.0 gave, bit by bit, before its modules moved.

Run once, with the code of version 0.1.0: ``python tests/goldens/make.py``. A ledger golden is never made anew: a
ledger that somebody has must be read and gone on with by every later version, and this is how we know. The script
therefore leaves alone what is there already. Where a change of a ranking or a text is meant, take that one file away
and run the script again.
"""

import json
import os
import shutil
import sqlite3
import sys
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from goldens import cases  # noqa: E402
from probewise.datasets import make_madelon  # noqa: E402

OLD_SETTINGS = ("seed", "shape", "max_probe_size", "inclusion", "criterion", "scoring", "data", "target", "folds")
OLD_NOTES = ("feature_names", "version", "block_size")
SCREEN = ("screen", "screened", "screen_passed", "screen_rest")


def make_data() -> None:
    small, wide = make_madelon(60, 24, random_state=1), make_madelon(200, 80, random_state=1)
    weights = np.random.default_rng(5).integers(1, 5, len(small.y)) / 2
    np.savez_compressed(HERE / "data.npz", X=small.X, y=small.y, weights=weights, wide_X=wide.X, wide_y=wide.y)


def make_run(name: str) -> None:
    kept = cases.RUNS[name]
    path = HERE / f"{name}.ledger"
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "run.ledger"
        first = cases.observed(*kept.fit(ledger=made))
        if kept.first_format:
            made = as_first_format(made, Path(folder) / "first.ledger")
        assert [part.name for part in Path(folder).glob("*-wal")] == []  # the file is whole by itself
        if path.exists():
            shutil.copy(path, made)
        else:
            shutil.copy(made, path)
        summaries = kept.summaries(shutil.copy(path, Path(folder) / "told.ledger"))
        later = cases.observed(*kept.fit(kept.later, ledger=made))
    write(f"{name}.json", {"fit": first, "later": later, "summary": summaries})


def as_first_format(path: Path, to: Path) -> Path:
    """A ledger as the first format had it: no checksums, and no words for what came later."""
    source, target = sqlite3.connect(path), sqlite3.connect(to)
    target.execute("PRAGMA application_id = 0x50726F62")
    target.execute("PRAGMA user_version = 1")
    target.execute("CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
    target.execute("CREATE TABLE blocks (start INTEGER PRIMARY KEY, seconds REAL NOT NULL, j BLOB NOT NULL)")
    for name, value in source.execute("SELECT name, value FROM settings").fetchall():
        if name in (*OLD_SETTINGS, *OLD_NOTES) or (name in SCREEN and value != "null"):
            target.execute("INSERT INTO settings VALUES (?, ?)", (name, value))
    for block in source.execute("SELECT start, seconds, j FROM blocks ORDER BY start").fetchall():
        target.execute("INSERT INTO blocks VALUES (?, ?, ?)", block)
    target.commit()
    source.close()
    target.close()
    return to


def make_commands() -> None:
    with tempfile.TemporaryDirectory() as folder:
        before = Path.cwd()
        os.chdir(folder)
        try:
            cases.put_table()
            for name in cases.COMMANDS:
                put(f"command-{name}.txt", cases.printed(name))
                for file in cases.WRITTEN.get(name, ()):
                    found = cases.written(file)
                    put(f"command-{file}", found) if isinstance(found, str) else write(f"command-{file}", found)
        finally:
            os.chdir(before)


def write(name: str, value: object) -> None:
    put(name, json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n")


def put(name: str, text: str) -> None:
    if not (HERE / name).exists():
        (HERE / name).write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    if not (HERE / "data.npz").exists():
        make_data()
    for name in cases.RUNS:
        make_run(name)
    write("rankings.json", {name: cases.ranked(name) for name in cases.RANKINGS})
    make_commands()
