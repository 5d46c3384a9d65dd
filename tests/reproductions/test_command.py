"""``python -m reproductions`` end to end: the summary, written files, data and articles, one line for an error."""

import json

import numpy as np
import pytest
from sklearn.datasets import load_iris

from reproductions import PAPERS, data
from reproductions.__main__ import run
from reproductions.fsdd_2008 import experiment as fsdd_2008


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the data set Iris, and a quick profile that needs no other."""
    X, y = load_iris(return_X_y=True)
    np.savez(tmp_path / "iris.npz", X=X, y=y)
    monkeypatch.setitem(fsdd_2008.PROFILES, "quick", fsdd_2008.Settings(1, 1, ("Iris",)))
    monkeypatch.delenv("PROBEWISE_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refusal(capsys, *arguments):
    assert run([*map(str, arguments)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    return printed.err


@pytest.mark.slow
def test_a_quick_run_prints_the_count_and_writes_files(capsys, folder, monkeypatch):
    assert run(["fsdd-2008", "--data", str(folder), "--quiet"]) == 0
    printed = capsys.readouterr()
    assert "fsdd-2008: 0 of 10 claims hold (does not hold: 1, undecided: 8, not comparable: 1)" in printed.out
    assert "This is a quick run. 5 of 48 columns are decided; all agree with the stored full run." in printed.out
    settings = json.loads((folder / "fsdd-2008-quick" / "settings.json").read_text())
    assert (settings["paper"], settings["full"], settings["seed"]) == ("fsdd-2008", False, 0)
    assert settings["versions"]["numpy"] == np.__version__
    monkeypatch.setenv("PROBEWISE_DATA", str(folder))
    assert run(["fsdd-2008", "-q"]) == 0
    assert capsys.readouterr().out == printed.out
    assert "its seed is 0, not 3" in refusal(capsys, "fsdd-2008", "--seed", "3", "-q")


@pytest.mark.parametrize("paper", PAPERS)
def test_progress_is_shown_before_the_data_are_read(paper, tmp_path, monkeypatch):
    from reproductions import experiment, reproduce

    lines = []
    monkeypatch.setattr(experiment(paper), "run", lambda work: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        reproduce(paper, data=tmp_path, out=tmp_path / "out", progress=lines.append)
    assert lines == [f"{paper}: reading the data"]


def test_faults_are_one_line(capsys, folder):
    assert "paper='fsdd-2009' is not known: choose one of daf-2011" in refusal(capsys, "fsdd-2009")
    assert "'paper' is not a task" in refusal(capsys, "paper", "fsdd-2008")
    assert "give the folder for the data sets" in refusal(capsys, "data", "fsdd-2008")
    error = refusal(capsys, "efs-2004", "--data", folder, "-q")
    assert error == (
        "leukemia.npz is missing: name its folder with --data, or build it with "
        "python -m reproductions data efs-2004 --data FOLDER\n"
    )


def test_data_are_verified_with_a_line_for_each_set(capsys, tmp_path, monkeypatch):
    def offline(*arguments, **options):
        raise OSError("no network")

    monkeypatch.setattr(data, "urlopen", offline)
    monkeypatch.setattr("sklearn.datasets.fetch_openml", offline)
    assert run(["data", "daf-2013", "--data", str(tmp_path)]) == 2
    printed = capsys.readouterr()
    assert printed.out.startswith("reuters: https://www.daviddlewis.com/")
    assert printed.err == "2 of 2 data sets are missing: reuters, madelon\n"


def test_the_help_names_the_papers(capsys):
    with pytest.raises(SystemExit) as ended:
        run(["--help"])
    assert ended.value.code == 0
    printed = capsys.readouterr().out
    assert all(paper in printed for paper in PAPERS)
