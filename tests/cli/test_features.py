"""What ``probewise rank`` can be told about features: groups, costs, categories, what stays, how many."""

import shlex

import numpy as np
import pandas as pd
import polars as pl
import pytest

from probewise import DAF
from probewise.cli import run
from probewise.io import TableError, read_pairs, read_table
from probewise.report import summarize
from probewise.stopping import MaxProbes


@pytest.fixture
def patients(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    ill = np.arange(80) % 2
    frame = pd.DataFrame(
        rng.standard_normal((80, 7)).round(3), columns=["age", "weight", "red", "green", "blue", "a", "b"]
    )
    frame["red"] += 2 * ill
    frame["smokes"] = np.where(rng.random(80) < 0.7, np.where(ill == 1, "yes", "no"), "not asked")
    frame.loc[3, "smokes"] = None
    frame["label"] = np.where(ill == 1, "ill", "well")
    frame.to_csv("patients.csv", index=False)
    pd.DataFrame({"feature": ["red", "b"], "cost": [4, 0.5]}).to_csv("costs.csv", index=False)
    pd.DataFrame({"feature": ["red", "blue", "a"], "group": ["x", "x", "y"]}).to_csv("groups.csv", index=False)
    return frame


def rank(options):
    command = f"rank patients.csv --target label --method daf --probes 400 -q --jobs 1 --out ranking.csv {options}"
    return run(shlex.split(command))


def ranking():
    return pl.read_csv("ranking.csv")


def python(frame, n_features_to_select=None, **options):
    X = frame.drop(columns=["label"])
    if "smokes" in X:
        X["smokes"] = pd.Categorical(X["smokes"])
    fitted = DAF(n_features_to_select, stop=MaxProbes(400), random_state=0, **options)
    return fitted.fit(X, frame["label"].to_numpy())


OPTIONS = {
    "groups": (
        "--feature-groups colour=red,green --feature-groups colour=blue",
        {"feature_groups": [["red", "green", "blue"]]},
    ),
    "groups in a file": ("--feature-groups groups.csv", {"feature_groups": [["red", "blue"]]}),
    "kept": ("--keep-features age,weight --keep-features b", {"keep": ["age", "weight", "b"]}),
    "dropped": ("--drop-features age", {"drop": ["age"]}),
    "costs": ("--costs costs.csv", {"costs": {"red": 4.0, "b": 0.5}}),
    "decoys": ("--auto decoys --fdr 0.2", {"n_features_to_select": "auto", "how_many": "decoys", "fdr": 0.2}),
    "size": ("--auto size", {"n_features_to_select": "auto", "how_many": "size"}),
    "narrow": ("--narrow 0.5", {"narrow": 0.5}),
    "narrow by itself": ("--narrow auto", {"narrow": "auto"}),
}


@pytest.mark.parametrize(("options", "parameters"), OPTIONS.values(), ids=OPTIONS)
def test_the_same_as_in_python(patients, options, parameters, capsys):
    assert rank(f"--categorical smokes {options}") == 0
    fitted, found = python(patients, **parameters), ranking()
    names = fitted.feature_names_in_
    assert found["feature"].to_list() == names[np.argsort(fitted.ranking_, kind="stable")].tolist()
    assert found["rank"].to_list() == sorted(fitted.ranking_)
    if fitted.n_features_to_select == "auto":
        assert set(found.filter(pl.col("kept"))["feature"]) == set(fitted.get_feature_names_out())
        assert "kept" in capsys.readouterr().out
    if "p_value" in found.columns:
        expected = np.sort(fitted.p_values_)
        np.testing.assert_allclose(np.sort(found["p_value"].to_numpy()), expected, rtol=1e-9)


def test_what_is_said_at_the_end(patients, capsys):
    options = "--categorical smokes --feature-groups c=red,green --keep-features age --drop-features b --auto decoys"
    assert run(shlex.split(f"rank patients.csv --target label --probes 400 --jobs 1 {options} --select best.csv")) == 0
    said = capsys.readouterr().err
    for words in (
        "1 group, of 2 features in all, entered and left probes as one",
        "In every probe, at the user's wish: age",
        "In no probe, at the user's wish: b",
        "Categories, level by level: smokes",
        "100 decoys took part",
    ):
        assert words in said
    written = pl.read_csv("best.csv")
    assert written.columns[0] == "age"
    assert {"red", "green", "smokes", "label"} <= set(written.columns)
    assert "b" not in written.columns
    assert written["smokes"].to_list() == [None if value is None else value for value in _texts(patients["smokes"])]


def _texts(column):
    return [None if pd.isna(value) else value for value in column]


def test_select_writes_whole_groups_and_no_more_than_asked(patients):
    assert rank("--ignore smokes --feature-groups c=red,green,blue --select best.csv --n-features 1") == 0
    assert pl.read_csv("best.csv").columns == ["red", "green", "blue", "label"]
    assert rank("--ignore smokes --drop-features age --select all.csv --n-features 7") == 0
    assert "age" not in pl.read_csv("all.csv").columns


def test_select_where_nothing_is_kept(patients, tmp_path, capsys):
    patients[["age", "weight", "a", "b", "label"]].to_csv("patients.csv", index=False)
    assert rank("--auto decoys --fdr 0.0001 --select best.csv") == 0
    assert not (tmp_path / "best.csv").exists()
    assert "no feature is kept, so there is no best.csv" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--feature-groups red", "--feature-groups 'red': write a name and columns, as NAME=col1,col2"),
        (
            "--feature-groups c=red,grn",
            "--feature-groups: there is no feature column 'grn' in the table",
        ),
        ("--feature-groups c=red,blue --feature-groups d=blue", "--feature-groups has column blue in two groups"),
        (
            "--feature-groups c=red,blue --drop-features red",
            "--drop-features names column red and not all others",
        ),
        ("--keep-features Age", "--keep-features: there is no feature column 'Age' in the table: did you mean 'age'?"),
        ("--keep-features age --drop-features age", "--keep-features and --drop-features both name column age"),
        (
            "--drop-features age,weight,red,green,blue,a,b",
            "--keep-features and --drop-features leave none",
        ),
        ("--fdr 0.1", "--fdr needs --auto stands_out or decoys"),
        ("--auto size --fdr 0.1", "--fdr needs --auto stands_out or decoys"),
        ("--auto decoys --fdr 2", "--fdr 2.0 must be a share above 0 and below 1"),
        ("--auto all", "--auto 'all' is not known: choose one of stands_out, decoys, size"),
        ("--auto decoys --narrow 0.5", "--auto decoys needs no --narrow"),
        ("--auto decoys --screen 3", "--auto decoys needs no --screen"),
        ("--narrow 7", "--narrow '7': write the share of features kept after each round, as 0.6, or auto"),
        ("--costs groups.csv", "--costs groups.csv: the cost of 'red' is 'x'; give a number"),
        ("--costs patients.csv", "--costs: there is no feature column"),
        ("--costs nowhere.csv", "there is no file nowhere.csv"),
        ("--feature-groups one.csv", "one.csv must have a header and two columns, feature and group"),
        ("--categorical label", "column 'label' cannot be categorical: it is the target"),
        ("--categorical smoke", "there is no categorical column 'smoke' in the table: did you mean 'smokes'?"),
        ("--method fsdd --keep-features age", "--keep-features: --method fsdd makes no probes; leave it out"),
        ("--method fsdd --auto size", "--auto: --method fsdd makes no probes; leave it out"),
        ("--categorical a --screen 3", "--screen 3 looks at one column at a time"),
    ],
    ids=range(23),
)
def test_errors_name_the_option(patients, options, words, capsys):
    pd.DataFrame({"feature": ["red"]}).to_csv("one.csv", index=False)
    probes = "" if "--method" in options else "--probes 400"
    assert run(shlex.split(f"rank patients.csv --target label --ignore smokes {probes} -q {options}")) == 2
    assert words in capsys.readouterr().err


def test_text_is_refused_where_it_is_not_named(patients, capsys):
    assert rank("") == 2
    assert "1 of 8 columns is not numeric" in capsys.readouterr().err


@pytest.mark.parametrize(
    "options",
    [
        "--feature-groups c=red,blue --keep-features age --drop-features b",
        "--auto decoys --fdr 0.2",
        "--narrow 0.5",
        "--costs costs.csv",
    ],
    ids=["features", "decoys", "narrow", "costs"],
)
def test_the_ledger_knows_the_command(patients, options, capsys):
    assert rank(f"--categorical smokes {options} --ledger run.ledger") == 0
    first = ranking()
    command = summarize("run.ledger")["repeat"]["command"]
    assert run([*shlex.split(command)[1:], "-q", "--jobs", "1", "--out", "ranking.csv"]) == 0
    assert ranking()["rank"].to_list() == first["rank"].to_list()
    assert ranking()["feature"].to_list() == first["feature"].to_list()


def test_a_report_of_the_ledger_and_the_table(patients, capsys):
    assert rank("--categorical smokes --feature-groups c=red,blue --ledger run.ledger --report first.md") == 0
    words = "report run.ledger --data patients.csv --target label --categorical smokes --out second.md -q"
    assert run(shlex.split(words)) == 0
    for name in ("first.md", "second.md"):
        with open(name, encoding="utf-8") as file:
            text = file.read()
        assert "Categories, level by level: smokes" in text
        assert "## How many features" in text
    assert run(shlex.split("report run.ledger --categorical smokes --out third.md")) == 2
    assert "need --data TABLE" in capsys.readouterr().err


# ---- tables with categories


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "arrow"])
def test_categories_of_a_table(patients, ending):
    frame = pl.read_csv("patients.csv")
    if ending in ("csv", "tsv"):
        frame.write_csv(f"table.{ending}", separator="," if ending == "csv" else "\t")
    else:
        kinds = frame.with_columns(pl.col("smokes").cast(pl.Categorical))
        kinds.write_parquet("table.parquet") if ending == "parquet" else kinds.write_ipc("table.arrow")
    table = read_table(f"table.{ending}", target="label", categorical_features=["smokes", "a"])
    assert table.levels[7] == ["no", "not asked", "yes"]
    assert len(table.levels[5]) == patients["a"].nunique()
    assert table.X.shape == (80, 8)
    assert table.X[3, 7] == -1
    seen = table.frame()
    assert seen["smokes"].cast(pl.String).to_list() == _texts(patients["smokes"])
    assert table.take([7, 0]).frame().columns == ["smokes", "age"]
    assert table.take([7, 0]).levels == {0: table.levels[7]}


def test_categories_need_columns_that_are_read(patients, tmp_path):
    np.save(tmp_path / "X.npy", np.zeros((4, 3)))
    np.savez(tmp_path / "X.npz", X=np.arange(12.0).reshape(4, 3), y=np.arange(4) % 2)
    table = read_table(tmp_path / "X.npz", categorical_features=["1"])
    assert table.levels == {1: ["1.0", "10.0", "4.0", "7.0"]}
    with pytest.raises(TableError, match="categorical_features cannot be used with features_in='rows'"):
        read_table("patients.csv", target="label", features_in="rows", categorical_features=["age"])


def test_pairs(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("Group,feature,more\nx,red,1\ny, blue ,2\n")
    assert read_pairs(path, "group") == [("red", "x"), ("blue", "y")]
    path.write_text("gene;pathway\nred;x\n")
    assert read_pairs(path, "group") == [("red", "x")]
