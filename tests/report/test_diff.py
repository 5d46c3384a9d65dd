"""Two runs side by side, against what their selectors say; and the command."""

import json

import numpy as np
import pytest
from scipy.stats import spearmanr

from probewise import DAF
from probewise.cli import run
from probewise.report.diff import compare_runs
from probewise.stopping import MaxProbes


@pytest.fixture(scope="module")
def other(madelon, tmp_path_factory):
    path = tmp_path_factory.mktemp("other") / "other.ledger"
    X, y = madelon
    return DAF(criterion="linear", stop=MaxProbes(800), ledger=path, random_state=3).fit(X[:, ::-1], y), path


def test_two_runs_of_one_table(kept, other):
    one, another = kept[0], other[0]
    found = compare_runs(kept[1], other[1], top=7)
    differ = {each["name"]: (each["first"], each["second"]) for each in found["settings"]}
    assert differ["criterion"] == (one.criterion_.describe(), another.criterion_.describe())
    assert "seed" not in differ
    assert differ["data"][0] != differ["data"][1]
    assert found["features"] == 40
    reversed_ranks = another.ranking_[::-1]
    assert found["rank_correlation"] == pytest.approx(spearmanr(one.ranking_, reversed_ranks).statistic)
    for each in found["tops"]:
        tops = [set(np.flatnonzero(ranks <= each["size"])) for ranks in (one.ranking_, reversed_ranks)]
        assert each["shared"] == len(tops[0] & tops[1])
        assert each["by_chance"] == each["size"] ** 2 / 40
    assert [each["size"] for each in found["tops"]] == [5, 10, 20]
    assert found["J"][1]["mean"] == another.ledger_.values().mean()
    assert found["same_results"] == 0
    assert len(found["top"]) == 7
    best = {each["feature"]: (each["first"], each["second"]) for each in found["top"]}
    first = str(one.feature_names_in_[np.argmin(one.ranking_)])
    assert best[first] == (1, reversed_ranks[np.argmin(one.ranking_)])


def test_a_run_and_itself(kept):
    found = compare_runs(kept[1], kept[1])
    assert found["settings"] == []
    assert found["rank_correlation"] == pytest.approx(1)
    assert found["same_results"] == 1600
    assert all(each["shared"] == each["size"] for each in found["tops"])


def test_the_command(kept, other, study, tmp_path, capsys):
    out = tmp_path / "diff.json"
    assert run(["diff", str(kept[1]), str(other[1]), "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert json.loads(out.read_text()) == compare_runs(kept[1], other[1])
    for words in ("settings that differ", "rank, run.ledger", "rank, other.ledger", "40 features in both", "by chance"):
        assert words in printed
    assert run(["diff", str(kept[1]), str(kept[1])]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("The settings are the same.")
    assert "rank correlation (Spearman) 1.000. The first 1,600 probes have the same J." in printed
    assert run(["diff", str(kept[1]), str(study[1])]) == 2
    assert "holds no ledger: give files of rank --ledger" in capsys.readouterr().err
    assert run(["diff", str(kept[1]), str(other[1]), "--out", str(kept[1])]) == 2
    assert run(["diff", str(kept[1]), str(tmp_path / "none")]) == 2
    assert "there is no run at" in capsys.readouterr().err


def test_different_tables_are_refused(kept, tmp_path):
    X = np.random.default_rng(0).standard_normal((20, 4))
    DAF(stop=MaxProbes(50), ledger=tmp_path / "x.ledger", random_state=0).fit(X, np.arange(20) % 2)
    with pytest.raises(ValueError, match="no feature in common"):
        compare_runs(kept[1], tmp_path / "x.ledger")
