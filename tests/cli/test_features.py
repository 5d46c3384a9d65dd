"""Options of ``probewise rank`` about features: groups, features to keep, categories, and how many to select."""

import shlex

import numpy as np
import pandas as pd
import polars as pl
import pytest

from probewise import DAF
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
    pd.DataFrame({"feature": ["red", "blue", "a"], "group": ["x", "x", "y"]}).to_csv("groups.csv", index=False)
    return frame


@pytest.fixture
def rank(succeed, patients):
    """A function that ranks the patients by DAF, writes ranking.csv, and returns the captured output."""
    command = "rank patients.csv --target label --method daf --n-probes 400 --n-jobs 1 --out ranking.csv"
    return lambda options: succeed(*shlex.split(f"{command} {options}"))


def ranking():
    return pl.read_csv("ranking.csv")


def fitted(frame, n_features_to_select=None, **options):
    X = frame.drop(columns=["label"])
    X["smokes"] = pd.Categorical(X["smokes"])
    daf = DAF(n_features_to_select, stop=MaxProbes(400), random_state=0, **options)
    return daf.fit(X, frame["label"].to_numpy())


OPTIONS = {
    "groups": (
        "--feature-groups color=red,green --feature-groups color=blue",
        {"feature_groups": [["red", "green", "blue"]]},
    ),
    "groups in a file": ("--feature-groups groups.csv", {"feature_groups": [["red", "blue"]]}),
    "keep": ("--keep age,weight --keep b", {"keep": ["age", "weight", "b"]}),
    "stands out": ("--n-features-to-select stands_out", {"n_features_to_select": "stands_out"}),
}


@pytest.mark.parametrize(("options", "parameters"), OPTIONS.values(), ids=OPTIONS)
def test_the_ranking_is_the_same_as_in_python(patients, rank, options, parameters):
    printed = rank(f"--categorical-features smokes -q {options}")
    daf, frame = fitted(patients, **parameters), ranking()
    assert frame["feature"].to_list() == daf.feature_names_in_[np.argsort(daf.ranking_, kind="stable")].tolist()
    assert frame["rank"].to_list() == sorted(daf.ranking_)
    np.testing.assert_allclose(np.sort(frame["q_related"].to_numpy()), np.sort(daf.q_values_), rtol=1e-9)
    if daf.n_features_to_select == "stands_out":
        assert set(frame.filter(pl.col("selected"))["feature"]) == set(daf.get_feature_names_out())
        assert "selected" in printed.out


def test_the_summary_mentions_groups_kept_features_and_categories(patients, rank):
    printed = rank("--categorical-features smokes --feature-groups c=red,green --keep age --select best.csv")
    for words in ("1 group with 2 features", "age", "smokes"):
        assert words in printed.err
    written = pl.read_csv("best.csv")
    assert written.columns[0] == "age"
    assert {"red", "green", "smokes", "label"} <= set(written.columns)
    assert written["smokes"].to_list() == texts(patients["smokes"])


def texts(column):
    return [None if pd.isna(value) else value for value in column]


def test_select_writes_whole_groups_and_the_requested_number(rank):
    rank("--ignore smokes --feature-groups c=red,green,blue --select best.csv --n-features-to-select 1 -q")
    assert pl.read_csv("best.csv").columns == ["red", "green", "blue", "label"]


def test_select_writes_the_features_that_stand_out(rank):
    printed = rank("--ignore smokes --n-features-to-select stands_out --select best.csv")
    selected = ranking().filter(pl.col("related"))["feature"].to_list()
    assert "red" in selected
    assert pl.read_csv("best.csv").columns == [*selected, "label"]
    assert f"the table of the best {len(selected)} features is in best.csv" in printed.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--feature-groups red", "--feature-groups 'red': write NAME=col1,col2, or give a table"),
        ("--feature-groups c=red,grn", "feature_groups: there is no feature column 'grn' in the table"),
        ("--feature-groups c=red,blue --feature-groups d=blue", "feature_groups has column blue in two groups"),
        ("--feature-groups one.csv", "one.csv must have a header and two columns, feature and group"),
        ("--feature-groups none.csv", "there is no file none.csv"),
        ("--keep Age", "keep: there is no feature column 'Age' in the table: did you mean 'age'?"),
        ("--categorical-features label", "column 'label' cannot be categorical: it is the target"),
        ("--categorical-features smoke", "there is no categorical column 'smoke' in the table: did you mean 'smokes'?"),
        ("--method fsdd --keep age", "--keep: FSDD has no such parameter; leave it out"),
        ("--method fsdd --feature-groups groups.csv", "--feature-groups: FSDD has no such parameter; leave it out"),
        ("--n-features-to-select many", "n_features_to_select='many' with 7 features: give a number from 1 to 7"),
    ],
    ids=range(11),
)
def test_errors_name_the_parameter(patients, refuse, options, message):
    pd.DataFrame({"feature": ["red"]}).to_csv("one.csv", index=False)
    assert message in refuse(*shlex.split(f"rank patients.csv --target label --ignore smokes -q {options}"))


def test_text_is_refused_unless_it_is_categorical(patients, refuse):
    message = refuse("rank", "patients.csv", "--target", "label")
    assert "1 of 8 columns" in message
    assert "'smokes'" in message


def test_the_ledger_stores_the_command(rank, succeed):
    rank("--categorical-features smokes --feature-groups c=red,blue --keep age --ledger run.ledger")
    first = ranking()
    command = summarize("run.ledger")["repeat"]["command"]
    succeed(*shlex.split(command)[1:])
    assert ranking()["rank"].to_list() == first["rank"].to_list()
    assert ranking()["feature"].to_list() == first["feature"].to_list()


def test_a_report_of_the_ledger_and_the_table(rank, succeed, tmp_path):
    rank("--categorical-features smokes --feature-groups c=red,blue --ledger run.ledger --report first.md")
    options = "--data patients.csv --target label --categorical-features smokes --out second.md -q"
    succeed("report", "run.ledger", *options.split())
    for name in ("first.md", "second.md"):
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert "smokes" in text
        assert "## How many features" in text


# ---- tables with categories


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_categories_of_a_table(patients, ending):
    frame = pl.read_csv("patients.csv")
    frame.write_csv("table.csv")
    frame.with_columns(pl.col("smokes").cast(pl.Categorical)).write_parquet("table.parquet")
    table = read_table(f"table.{ending}", target="label", categorical_features=["smokes", "a"])
    assert table.levels[7] == ["no", "not asked", "yes"]
    assert len(table.levels[5]) == patients["a"].nunique()
    assert table.X.shape == (80, 8)
    assert table.X[3, 7] == -1
    assert table.frame()["smokes"].cast(pl.String).to_list() == texts(patients["smokes"])
    assert table.take([7, 0]).frame().columns == ["smokes", "age"]
    assert table.take([7, 0]).levels == {0: table.levels[7]}


def test_categories_need_features_in_columns(patients, tmp_path):
    np.savez(tmp_path / "X.npz", X=np.arange(12.0).reshape(4, 3), y=np.arange(4) % 2)
    table = read_table(tmp_path / "X.npz", categorical_features=["1"])
    assert table.levels == {1: ["1.0", "10.0", "4.0", "7.0"]}
    with pytest.raises(TableError, match="features_in='rows'"):
        read_table("patients.csv", target="label", features_in="rows", categorical_features=["age"])


def test_a_table_of_two_columns(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("Group,feature,more\nx,red,1\ny, blue ,2\n")
    assert read_pairs(path, "group") == [("red", "x"), ("blue", "y")]
    path.write_text("gene;pathway\nred;x\n")
    assert read_pairs(path, "group") == [("red", "x")]
