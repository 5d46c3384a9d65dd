"""``python -m reproductions`` end to end: printed tables, written files, continued runs, one line for an error."""

import csv
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from sklearn.datasets import load_iris

from probewise.datasets import make_madelon
from reproductions import PAPERS, printing
from reproductions.__main__ import run
from reproductions.base import Cell, Outcome
from reproductions.daf_2011 import experiment as daf_2011
from reproductions.fsdd_2008 import experiment as fsdd_2008
from reproductions.fsdd_2008.experiment import Settings


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of data with Iris in it, and a quick profile that asks for no more."""
    X, y = load_iris(return_X_y=True)
    np.savez(tmp_path / "iris.npz", X=X, y=y)
    monkeypatch.setitem(fsdd_2008.PROFILES, "quick", Settings(1, 1, 10, ("Iris",), readings=False))
    monkeypatch.delenv("PROBEWISE_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def reproduced(capsys, *arguments):
    assert run([*map(str, arguments)]) == 0
    return capsys.readouterr()


def refusal(capsys, *arguments):
    assert run([*map(str, arguments)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    return printed.err


@pytest.mark.slow
def test_tables_are_printed_and_files_written(capsys, folder):
    printed = reproduced(capsys, "fsdd-2008", "--data", folder, "--out", folder / "results", "--n-jobs", 1, "--seed", 2)
    assert "Table 7" in printed.out
    assert "3 / 3   4 / 4   1 / 1   2 / 2" in printed.out
    assert "Iris: the order of features is 3, 4, 1, 2 for every beta from 0.1 to 100: holds" in printed.out
    assert "results: results.csv, results.md, settings.json" in printed.err.splitlines()[-1]
    settings = json.loads((folder / "results" / "settings.json").read_text())
    assert (settings["paper"], settings["profile"], settings["seed"]) == ("fsdd-2008", "quick", 2)
    assert settings["versions"]["numpy"] == np.__version__
    before = (folder / "results" / "results.csv").read_bytes()

    again = reproduced(capsys, "fsdd-2008", "--data", folder, "--out", folder / "results", "--seed", 2, "--quiet")
    assert again.out == printed.out
    assert again.err == ""
    assert (folder / "results" / "results.csv").read_bytes() == before
    error = refusal(capsys, "fsdd-2008", "--data", folder, "--out", folder / "results", "--seed", 3)
    assert "its seed is 2, not 3" in error


def test_the_folder_may_come_from_the_environment_and_results_have_a_place(capsys, folder, monkeypatch):
    def counted(reproduction):
        return Outcome([Cell("Table 1", "Iris", "attributes", 4.0, reproduction.data("iris").X.shape[1])])

    monkeypatch.setenv("PROBEWISE_DATA", str(folder))
    monkeypatch.setattr(fsdd_2008, "run", counted)
    assert "4 / 4" in reproduced(capsys, "fsdd-2008", "--full", "--n-jobs", 1).out
    assert (folder / "fsdd-2008-full" / "results.md").exists()
    assert json.loads((folder / "fsdd-2008-full" / "settings.json").read_text())["profile"] == "full"


SMALL = """
from reproductions.daf_2011 import experiment as daf_2011
from reproductions.daf_2011.experiment import Effort, Settings

parts = {"Madelon": Effort(200, (2, 5))}
daf_2011.PROFILES["full"] = Settings(2, parts, figure_6=(50, 200), taus=(2, 10), tau_probes=100, tau_trials=1)
"""
ROOT = Path(__file__).parents[2]
RUN = "import sys; from reproductions.__main__ import run; sys.exit(run(sys.argv[1:]))"


@pytest.mark.slow
def test_a_killed_run_goes_on_and_gives_the_same_tables(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(daf_2011, "PROFILES", dict(daf_2011.PROFILES))
    exec(SMALL)
    made = make_madelon(240, 30, random_state=0)
    np.savez(tmp_path / "madelon.npz", X=made.X, y=made.y)

    def asked(out):
        return ["daf-2011", "--full", "--data", str(tmp_path), "--out", str(tmp_path / out), "--n-jobs", "1"]

    def killed_when(out, file, n_lines):
        command = [sys.executable, "-c", SMALL + RUN, *asked(out)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=ROOT)
        path = tmp_path / out / "runs" / file
        while process.poll() is None:
            if path.exists() and path.read_bytes().count(b"\n") >= n_lines:
                process.kill()
            time.sleep(0.002)
        assert process.returncode == -signal.SIGKILL
        return path.read_bytes()

    reproduced(capsys, *asked("whole"))
    before = killed_when("ended", "madelon.jsonl", 2)  # a heading and a split
    later = killed_when("ended", "figure-6.jsonl", 1)
    reproduced(capsys, *asked("ended"))
    assert (tmp_path / "ended" / "runs" / "madelon.jsonl").read_bytes().startswith(before[: before.rfind(b"\n")])
    assert (tmp_path / "ended" / "runs" / "figure-6.jsonl").read_bytes().startswith(later[: later.rfind(b"\n")])
    clock = {"time limit", "BIF takes at most", "SFFS takes more than"}

    def numbers(out):
        with (tmp_path / out / "results.csv").open(newline="") as lines:
            return [line for line in csv.DictReader(lines) if line["column"] not in clock]

    assert numbers("ended") == numbers("whole")
    assert len(numbers("whole")) > 50


def test_faults_are_one_line(capsys, folder):
    assert "paper='fsdd-2009' is not known: choose one of daf-2011" in refusal(capsys, "fsdd-2009")
    assert "profile='slow' is not known: choose one of quick, full" in refusal(
        capsys, "fsdd-2008", "--profile", "slow", "--data", folder
    )
    for data in (folder, folder / "iris.npz", folder / "missing"):
        error = refusal(capsys, "efs-2004", "--data", data)
        assert "leukemia.npz: pass the folder that contains leukemia.npz, or set" in error
    (folder / "iris.npz").unlink()
    assert "or fetch it (openml=True)" in refusal(capsys, "fsdd-2008")


def test_columns_that_do_not_fit_the_terminal_are_printed_below(capsys, monkeypatch):
    monkeypatch.setattr(printing, "console", lambda: Console(width=64, force_terminal=True, no_color=True))
    cells = [Cell("Table 1", "KNN FSDD", str(k), 70.0 + k / 7, 71.0, "± 1.00") for k in range(1, 9)]
    printing.print_outcome(Outcome(cells))
    printed = capsys.readouterr().out
    assert printed.count("KNN FSDD") == 4
    assert all(f"{70 + k / 7:.2f} / 71 ± 1.00" in printed for k in range(1, 7))


def test_the_help_names_the_papers(capsys):
    with pytest.raises(SystemExit) as ended:
        run(["--help"])
    assert ended.value.code == 0
    printed = capsys.readouterr().out
    assert all(paper in printed for paper in PAPERS)
