"""Golden files: a ledger of the current format and the table that ``probewise rank`` prints.

``python tests/test_goldens.py`` writes both files again, after a change that is meant.
"""

import contextlib
import io
import re
import shutil
from pathlib import Path

import numpy as np

from probewise import Tournament
from probewise.cli import run
from probewise.criteria import KNN

HERE = Path(__file__).parent / "goldens"
LEDGER, TABLE = HERE / "tournament.ledger", HERE / "rank.txt"
COMMAND = ["rank", "table.csv", "--target", "label", "--method", "daf", "--n-probes", "300", "--top", "6"]


def data():
    """Whole numbers, so that every machine has the same bits."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = rng.integers(-50, 50, (60, 40)).astype(float)
    X[:, [3, 8, 15]] += 40 * y[:, None]
    return X, y


def tournament(ledger=None):
    options = {"feature_groups": [[0, 1], [8, 9]], "keep": [20], "scale": None, "random_state": 7}
    return Tournament(6, n_probes=400, criterion=KNN(3), ledger=ledger, **options).fit(*data())


def printed():
    """The output of the command, without the times."""
    X, y = data()
    header = ",".join([*(f"f{column:02d}" for column in range(40)), "label"])
    lines = [
        ",".join([*(f"{value:g}" for value in row), "yes" if label else "no"]) for row, label in zip(X, y, strict=True)
    ]
    Path("table.csv").write_text("\n".join([header, *lines]) + "\n")
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        assert run(COMMAND) == 0
    said = [line for line in err.getvalue().splitlines() if line.startswith("probewise: ")]
    text = "\n".join(line.rstrip() for line in [*out.getvalue().splitlines(), *said]) + "\n"
    return re.sub(r"\d[\d,.]* (per second|s)\b", r"# \1", text)


def test_a_kept_run_is_read_and_is_the_same_as_a_new_one(tmp_path):
    kept, fresh = tournament(shutil.copy(LEDGER, tmp_path / "run.ledger")), tournament()
    assert kept.n_probes_ == 400
    assert kept.run_.ledger.seconds != fresh.run_.ledger.seconds  # read, not run again
    assert kept.run_.ledger.values().tobytes() == fresh.run_.ledger.values().tobytes()
    assert kept.ranking_.tolist() == fresh.ranking_.tolist()


def test_the_table_in_the_terminal(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert printed() == TABLE.read_text(encoding="utf-8")


if __name__ == "__main__":
    LEDGER.unlink(missing_ok=True)
    tournament(LEDGER)
    TABLE.write_text(printed(), encoding="utf-8", newline="\n")
    Path("table.csv").unlink()
