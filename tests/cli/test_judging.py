"""Scores, gaps, weights and groups from the command line: the same as from Python, and one line for what is wrong."""

import json
import shlex

import numpy as np
import polars as pl
import pytest
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold

from probewise import BIF, DAF
from probewise.cli import run
from probewise.criteria import KNN, Linear
from probewise.io import TableError, read_table
from probewise.stopping import MaxProbes

N, D = 90, 8
SHORT = ("--method", "daf", "--probes", "60", "--jobs", "1", "--quiet")


def made():
    """Features with gaps, two classes of unequal size, weights, and three rows of each patient."""
    rng = np.random.default_rng(0)
    y = (rng.uniform(size=N) < 0.3).astype(int)
    X = rng.standard_normal((N, D))
    X[:, [2, 5]] += 1.5 * y[:, None]
    X[rng.uniform(size=X.shape) < 0.04] = np.nan
    patients = np.array([f"patient {row // 3}" for row in range(N)])
    return X, y, rng.uniform(0.5, 2, N).round(2), patients


NAMES = [f"gene {column}" for column in range(D)]


@pytest.fixture(scope="module")
def frame():
    X, y, weights, groups = made()
    columns = {name: pl.Series(X[:, i]).fill_nan(None) for i, name in enumerate(NAMES)}
    columns |= {"weight": weights, "patient": groups}
    return pl.DataFrame(
        {**columns, "number": np.nan_to_num(X[:, 2], nan=0.5) ** 2, "class": np.array(["well", "ill"])[y]}
    )


@pytest.fixture(scope="module")
def data(frame, tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "data.csv"
    frame.drop("number").write_csv(path)
    return str(path)


@pytest.fixture(scope="module")
def whole(frame, tmp_path_factory):
    """The same without gaps."""
    path = tmp_path_factory.mktemp("data") / "whole.csv"
    frame.drop("number").fill_null(0.5).write_csv(path)
    return str(path)


def scores(tmp_path, *arguments):
    out = tmp_path / "ranking.json"
    assert run(["rank", *map(str, arguments), *SHORT, "--out", str(out)]) == 0
    ranking = json.loads(out.read_text())
    rows = ranking if isinstance(ranking, list) else ranking["features"]
    return {row["feature"]: row["score"] for row in rows}


def refusal(capsys, *arguments):
    assert run([str(argument) for argument in arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    return printed.err


@pytest.mark.parametrize(
    ("options", "parameters", "given"),
    [
        (["--missing", "median"], {}, []),
        (["--missing", "mean", "--scoring", "roc_auc"], {"scoring": "roc_auc"}, []),
        (["--missing", "median", "--criterion", "linear", "--weights", "weight"], {}, ["sample_weight"]),
        (["--missing", "median", "--row-groups", "patient"], {"cv": StratifiedGroupKFold(3)}, ["groups"]),
        (
            ["--missing", "mean", "--row-groups", "9", "--weights", "8", "--cv", "4", "--scoring", "f1_macro"],
            {"cv": StratifiedGroupKFold(4), "scoring": "f1_macro"},
            ["groups", "sample_weight"],
        ),
    ],
    ids=["missing", "scoring", "weights", "groups", "all, by number"],
)
def test_the_same_as_from_python(data, tmp_path, options, parameters, given):
    X, y, weights, groups = made()
    left_out = [name for name in ("weight", "patient") if name not in options and "9" not in options]
    ours = scores(tmp_path, data, "--target", "class", *options, *(f"--ignore={name}" for name in left_out))
    criterion = (Linear if "linear" in options else KNN)(missing="mean" if "mean" in options else "median")
    daf = DAF(criterion=criterion, stop=MaxProbes(60), random_state=0, **parameters)
    of_rows = {"sample_weight": weights, "groups": groups}
    daf.fit(X, np.array(["well", "ill"])[y], **{name: of_rows[name] for name in given})
    np.testing.assert_allclose([ours[name] for name in NAMES], daf.scores_, rtol=1e-12)


def test_numbers_keep_groups_together_too(frame, tmp_path):
    X, _, _, groups = made()
    frame.drop("class", "weight").fill_null(0.5).write_csv(tmp_path / "numbers.csv")
    ours = scores(tmp_path, tmp_path / "numbers.csv", "--target", "number", "--row-groups", "patient")
    number = np.nan_to_num(X[:, 2], nan=0.5) ** 2
    daf = DAF(criterion="knn", stop=MaxProbes(60), cv=GroupKFold(3), random_state=0)
    daf.fit(np.nan_to_num(X, nan=0.5), number, groups=groups)
    np.testing.assert_allclose([ours[name] for name in NAMES], daf.scores_, rtol=1e-12)


def test_bif_is_judged_in_the_same_way(data, tmp_path):
    out = tmp_path / "ranking.csv"
    options = ["--weights", "weight", "--ignore", "patient", "--missing", "median", "--scoring", "balanced_accuracy"]
    command = ["rank", data, "--target", "class", "--method", "bif", "--criterion", "linear", *options]
    assert run([*command, "--quiet", "--jobs", "1", "--out", str(out)]) == 0
    X, y, weights, _ = made()
    bif = BIF(criterion=Linear(missing="median"), scoring="balanced_accuracy")
    bif.fit(X, np.array(["well", "ill"])[y], sample_weight=weights)
    ours = dict(pl.read_csv(out).select("feature", "score").iter_rows())
    np.testing.assert_allclose([ours[name] for name in NAMES], bif.scores_, rtol=1e-12)


@pytest.mark.parametrize("method", [["--criterion", "tree"], ["--method", "fsdd"]], ids=["tree", "fsdd"])
def test_what_takes_gaps_gets_them(data, method, capsys):
    limits = ["--probes", "20"] if "tree" in method else []
    command = ["rank", data, "--target", "class", "--ignore", "weight", "--ignore", "patient", *method, *limits]
    assert run([*command, "--quiet", "--jobs", "1"]) == 0
    assert "gene 2" in capsys.readouterr().out


def test_a_run_goes_on_with_the_same_options_only(data, tmp_path, capsys):
    ledger = tmp_path / "run.ledger"
    command = [
        "rank",
        data,
        "--target",
        "class",
        "--missing",
        "median",
        "--jobs",
        "1",
        "--quiet",
        "--ledger",
        ledger,
        "--method",
        "daf",
    ]
    options = ["--weights", "weight", "--row-groups", "patient", "--scoring", "roc_auc"]
    assert run([*map(str, command), *options, "--probes", "40"]) == 0
    assert run([*map(str, command), *options, "--probes", "80", "--resume"]) == 0
    capsys.readouterr()
    for changed, words in (
        (["--ignore", "weight", "--row-groups", "patient", "--scoring", "roc_auc"], "its --weights is"),
        (["--weights", "weight", "--ignore", "patient", "--scoring", "roc_auc"], "its folds is"),
        (["--weights", "weight", "--row-groups", "patient"], "its scoring is"),
    ):
        assert words in refusal(capsys, *command, *changed, "--probes", "90", "--resume")


def test_a_report_says_how_to_repeat_it(data, tmp_path):
    ledger, report = tmp_path / "run.ledger", tmp_path / "report.json"
    command = [
        "rank",
        data,
        "--target",
        "class",
        "--missing",
        "median",
        "--weights",
        "weight",
        "--row-groups",
        "patient",
    ]
    command += ["--scoring", "roc_auc", "--cv", "4", "--probes", "40", "--jobs", "1", "--quiet"]
    assert run([*command, "--ledger", str(ledger), "--report", str(report)]) == 0
    told = json.loads(report.read_text())
    assert told["repeat"]["command"].startswith("probewise rank")
    assert "from sklearn.model_selection import StratifiedGroupKFold" in told["repeat"]["code"]
    assert "fit(X, y, groups=groups, sample_weight=sample_weight)" in told["repeat"]["code"]
    assert told["run"]["settings"]["scoring"] == "roc_auc"
    assert run(["report", str(ledger), "--out", str(tmp_path / "later.json"), "--quiet"]) == 0
    later = json.loads((tmp_path / "later.json").read_text())["repeat"]["command"]
    assert later.startswith(f"probewise {shlex.join(command)}")


def test_features_in_rows(frame, tmp_path):
    """Weights and groups are rows then."""
    turned = frame.drop("number").transpose(include_header=True, header_name="name")
    turned.write_csv(tmp_path / "turned.csv")
    table = read_table(
        tmp_path / "turned.csv",
        target="class",
        features_in="rows",
        sample_weight="weight",
        groups="patient",
        allow_missing=True,
    )
    X, _, weights, groups = made()
    np.testing.assert_array_equal(table.sample_weight, weights)
    assert len(np.unique(table.groups)) == len(np.unique(groups))
    np.testing.assert_array_equal(np.isnan(table.X), np.isnan(X))
    assert table.feature_names == NAMES


def test_columns_beside_a_matrix(tmp_path):
    X, y, weights, groups = made()
    np.savez(tmp_path / "data.npz", X=X, y=y, weight=weights, patient=groups)
    table = read_table(tmp_path / "data.npz", sample_weight="weight", groups="patient", allow_missing=True)
    np.testing.assert_array_equal(table.sample_weight, weights)
    np.testing.assert_array_equal(table.groups, np.unique(groups, return_inverse=True)[1])
    assert table.X.shape == (N, D)


def test_gaps_are_filled_and_that_is_said_or_refused_with_the_remedy(data, capsys):
    options = ["rank", str(data), "--target", "class", "--ignore", "weight", "--ignore", "patient", "--probes", "50"]
    assert run(options) == 0
    filled = capsys.readouterr()
    assert "missing values, in 7 of 8 features, are filled with the median" in filled.err
    assert run([*options, "--missing", "median"]) == 0
    asked = capsys.readouterr()
    assert asked.out == filled.out
    assert "are filled" not in asked.err
    for more in (["--missing", "refuse"], ["--criterion", "svm"]):
        told = refusal(capsys, *options, *more)
        assert "values are missing or infinite in 7 of 8 feature columns" in told
        assert "--missing median" in told


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--missing", "mode"], "--missing 'mode' is not known: choose mean, median or refuse"),
        (["--missing", "mean", "--criterion", "svm"], "--missing mean has no meaning for --criterion svm"),
        (
            ["--scoring", "f3"],
            "--scoring 'f3': KNN measures 'accuracy', 'balanced_accuracy', 'f1_macro'",
        ),
        (["--scoring", "f1"], "--scoring 'f1' is of the class labelled 1, and y has 'ill' and 'well': use --scoring"),
        (["--weights", "wieght"], "no sample_weight column 'wieght' in the table: did you mean 'weight'?"),
        (["--weights", "class"], "column 'class' cannot be both the sample_weight and the target"),
        (["--weights", "weight", "--ignore", "weight"], "column 'weight' cannot be both the sample_weight and ignored"),
        (
            ["--weights", "weight", "--row-groups", "weight"],
            "column 'weight' cannot be both the sample_weight and the groups",
        ),
        (["--weights", "patient"], "sample_weight='patient' has type String: weights must be numbers"),
        (
            ["--weights", "weight", "--criterion", "svm"],
            "--weights: SVM knows no weights; leave them out, or use",
        ),
        (["--row-groups", "patient", "--cv", "40"], "--row-groups patient has 30 groups, and --cv 40 needs as many"),
        (["--weights", "weight", "--method", "fsdd"], "--weights: --method fsdd has no criterion and no folds"),
        (
            ["--scoring", "roc_auc", "--row-groups", "patient", "--method", "dfe"],
            "--scoring, --row-groups: --method dfe has",
        ),
    ],
    ids=" ".join,
)
def test_what_cannot_be_is_refused(whole, capsys, options, words):
    for name in ("weight", "patient"):
        options = options if name in options else [*options, "--ignore", name]
    assert words in refusal(capsys, "rank", whole, "--target", "class", "--jobs", "1", "--quiet", *options)


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        (-1.0, "sample_weight='weight' is missing, infinite or negative in 1 of 90 rows (first: data row 4)"),
        (None, "sample_weight='weight' is missing, infinite or negative in 1 of 90 rows (first: data row 4)"),
    ],
    ids=["negative", "missing"],
)
def test_weights_must_be_weights(frame, tmp_path, cell, words):
    weights = frame["weight"].to_list()
    weights[3] = cell
    frame.drop("number").with_columns(weight=pl.Series(weights)).write_csv(tmp_path / "data.csv")
    with pytest.raises(TableError) as error:
        read_table(
            tmp_path / "data.csv", target="class", ignore=["patient"], sample_weight="weight", allow_missing=True
        )
    assert words in str(error.value)


def test_weights_of_zero_and_lost_groups_are_refused(frame, tmp_path):
    frame.drop("number").with_columns(weight=pl.lit(0)).write_csv(tmp_path / "zero.csv")
    with pytest.raises(TableError, match="sample_weight='weight' is 0 in all rows"):
        read_table(
            tmp_path / "zero.csv", target="class", ignore=["patient"], sample_weight="weight", allow_missing=True
        )
    patients = pl.Series([None, *frame["patient"].to_list()[1:]])
    frame.drop("number").with_columns(patient=patients).write_parquet(tmp_path / "lost.parquet")
    with pytest.raises(TableError, match=r"groups='patient' is missing in 1 of 90 rows \(first: data row 1\)"):
        read_table(tmp_path / "lost.parquet", target="class", ignore=["weight"], groups="patient", allow_missing=True)


def test_infinite_values_are_never_gaps(frame, tmp_path):
    column = frame["gene 3"].to_list()
    column[0] = float("inf")
    frame.drop("number").with_columns(pl.Series("gene 3", column)).write_parquet(tmp_path / "data.parquet")
    with pytest.raises(TableError, match="values are infinite in 1 of 8 feature columns: 'gene 3'"):
        read_table(tmp_path / "data.parquet", target="class", ignore=["weight", "patient"], allow_missing=True)
