"""Comparison of two runs, checked against their selectors, and the command ``diff``."""

import json

import numpy as np
import pytest
from scipy.stats import spearmanr

from probewise import DAF, Tournament
from probewise.cli import run
from probewise.report.diff import compare_runs
from probewise.stopping import MaxProbes


@pytest.fixture(scope="module")
def other(madelon, tmp_path_factory):
    path = tmp_path_factory.mktemp("other") / "other.ledger"
    X, y = madelon
    return DAF(criterion="linear", stop=MaxProbes(800), ledger=path, random_state=3).fit(X[:, ::-1], y), path


def test_two_runs_of_one_table(saved_run, other):
    one, another = saved_run[0], other[0]
    result = compare_runs(saved_run[1], other[1], top=7)
    differ = {part["name"]: (part["first"], part["second"]) for part in result["settings"]}
    assert differ["criterion"] == (one.criterion_.describe(), another.criterion_.describe())
    assert "seed" not in differ
    assert differ["data"][0] != differ["data"][1]
    assert result["features"] == 40
    reversed_ranks = another.ranking_[::-1]
    assert result["rank_correlation"] == pytest.approx(spearmanr(one.ranking_, reversed_ranks).statistic)
    for part in result["tops"]:
        tops = [set(np.flatnonzero(ranks <= part["size"])) for ranks in (one.ranking_, reversed_ranks)]
        assert part["shared"] == len(tops[0] & tops[1])
        assert part["by_chance"] == part["size"] ** 2 / 40
    assert [part["size"] for part in result["tops"]] == [5, 10, 20]
    assert result["J"][1]["mean"] == another.run_.ledger.values().mean()
    assert result["same_results"] == 0
    assert len(result["top"]) == 7
    best = {part["feature"]: (part["first"], part["second"]) for part in result["top"]}
    first = str(one.feature_names_in_[np.argmin(one.ranking_)])
    assert best[first] == (1, reversed_ranks[np.argmin(one.ranking_)])


def test_a_run_and_itself(saved_run):
    result = compare_runs(saved_run[1], saved_run[1])
    assert result["settings"] == []
    assert result["rank_correlation"] == pytest.approx(1)
    assert result["same_results"] == 1600
    assert all(part["shared"] == part["size"] for part in result["tops"])


def test_the_command(saved_run, other, study, tmp_path, capsys):
    out = tmp_path / "diff.json"
    assert run(["diff", str(saved_run[1]), str(other[1]), "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert json.loads(out.read_text()) == compare_runs(saved_run[1], other[1])
    for words in ("settings that differ", "rank, run.ledger", "rank, other.ledger", "40 features in both", "by chance"):
        assert words in printed
    assert run(["diff", str(saved_run[1]), str(saved_run[1])]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("The settings are the same.")
    assert "rank correlation (Spearman) 1.000. The first 1,600 probes have the same J." in printed
    assert run(["diff", str(saved_run[1]), str(study[1])]) == 2
    assert "is not the ledger of a run: give files of DAF or Tournament" in capsys.readouterr().err
    assert run(["diff", str(saved_run[1]), str(other[1]), "--out", str(saved_run[1])]) == 2
    assert run(["diff", str(saved_run[1]), str(tmp_path / "none")]) == 2
    assert "there is no run at" in capsys.readouterr().err


def test_different_tables_are_refused(saved_run, tmp_path):
    X = np.random.default_rng(0).standard_normal((20, 4))
    DAF(stop=MaxProbes(50), ledger=tmp_path / "x.ledger", random_state=0).fit(X, np.arange(20) % 2)
    with pytest.raises(ValueError, match="no feature names in common"):
        compare_runs(saved_run[1], tmp_path / "x.ledger")


def test_lines_are_short(tmp_path, capsys):
    """Tournaments store packed arrays, such as the protected features, which nobody can read."""
    random = np.random.default_rng(0)
    X, y = random.standard_normal((250, 2000)), np.arange(250) % 2
    for seed in (0, 1):
        X[0, 0] = seed
        Tournament(n_probes=100, random_state=seed, ledger=tmp_path / f"{seed}.ledger").fit(X, y)
    assert run(["diff", str(tmp_path / "0.ledger"), str(tmp_path / "1.ledger")]) == 0
    printed = capsys.readouterr().out
    assert "seed" in printed
    assert max(map(len, printed.splitlines())) <= 200
    assert "==" not in printed
    assert all(
        len(str(part["first"])) <= 61 for part in compare_runs(tmp_path / "0.ledger", tmp_path / "1.ledger")["settings"]
    )
