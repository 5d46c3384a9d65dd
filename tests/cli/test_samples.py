"""Options of ``probewise rank`` about samples: scores, missing values, sample weights and groups."""

import json
import shlex

import numpy as np
import polars as pl
import pytest
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold

from probewise import BIF, DAF
from probewise.criteria import Linear
from probewise.io import TableError, read_table
from probewise.stopping import MaxProbes

N, D = 90, 8
NAMES = [f"gene {column}" for column in range(D)]
SHORT = ("--method", "daf", "--n-probes", "60", "--n-jobs", "1", "--quiet")


def samples():
    """Features with missing values, two classes of unequal size, weights, and three rows of each patient."""
    rng = np.random.default_rng(0)
    y = (rng.uniform(size=N) < 0.3).astype(int)
    X = rng.standard_normal((N, D))
    X[:, [2, 5]] += 1.5 * y[:, None]
    X[rng.uniform(size=X.shape) < 0.04] = np.nan
    patients = np.array([f"patient {row // 3}" for row in range(N)])
    return X, y, rng.uniform(0.5, 2, N).round(2), patients


@pytest.fixture(scope="module")
def frame():
    X, y, weights, groups = samples()
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
def complete(frame, tmp_path_factory):
    """The table without missing values."""
    path = tmp_path_factory.mktemp("data") / "complete.csv"
    frame.drop("number").fill_null(0.5).write_csv(path)
    return str(path)


@pytest.fixture
def scores(succeed, tmp_path):
    """A function that ranks a table and returns the score of each gene."""

    def scores(*arguments):
        succeed("rank", *arguments, "--out", tmp_path / "ranking.csv")
        by_name = dict(pl.read_csv(tmp_path / "ranking.csv").select("feature", "score").iter_rows())
        return [by_name[name] for name in NAMES]

    return scores


@pytest.mark.parametrize(
    ("options", "parameters", "fit"),
    [
        (["--missing", "median"], {}, []),
        (["--missing", "mean", "--scoring", "roc_auc"], {"scoring": "roc_auc"}, []),
        (["--missing", "median", "--criterion", "linear", "--sample-weight", "weight"], {}, ["sample_weight"]),
        (["--missing", "median", "--groups", "patient"], {"cv": StratifiedGroupKFold(3)}, ["groups"]),
        (
            ["--missing", "mean", "--groups", "9", "--sample-weight", "8", "--cv", "4", "--scoring", "f1_macro"],
            {"cv": StratifiedGroupKFold(4), "scoring": "f1_macro"},
            ["groups", "sample_weight"],
        ),
    ],
    ids=["missing", "scoring", "weights", "groups", "all, by number"],
)
def test_scores_are_the_same_as_in_python(data, scores, options, parameters, fit):
    X, y, weights, groups = samples()
    ignored = [name for name in ("weight", "patient") if name not in options and "9" not in options]
    by_command = scores(data, "--target", "class", *options, *(f"--ignore={name}" for name in ignored), *SHORT)
    missing, criterion = "mean" if "mean" in options else "median", "linear" if "linear" in options else "knn"
    daf = DAF(criterion=criterion, missing=missing, stop=MaxProbes(60), random_state=0, **parameters)
    of_rows = {"sample_weight": weights, "groups": groups}
    daf.fit(X, np.array(["well", "ill"])[y], **{name: of_rows[name] for name in fit})
    np.testing.assert_allclose(by_command, daf.scores_, rtol=1e-12)


def test_groups_stay_together_in_regression(frame, tmp_path, scores):
    X, _, _, groups = samples()
    frame.drop("class", "weight").fill_null(0.5).write_csv(tmp_path / "numbers.csv")
    by_command = scores(tmp_path / "numbers.csv", "--target", "number", "--groups", "patient", *SHORT)
    number = np.nan_to_num(X[:, 2], nan=0.5) ** 2
    daf = DAF(criterion="knn", stop=MaxProbes(60), cv=GroupKFold(3), random_state=0)
    daf.fit(np.nan_to_num(X, nan=0.5), number, groups=groups)
    np.testing.assert_allclose(by_command, daf.scores_, rtol=1e-12)


def test_bif_takes_the_same_options(data, scores):
    options = ["--ignore", "patient", "--missing", "median", "--scoring", "balanced_accuracy", "--criterion", "linear"]
    by_command = scores(data, "--target", "class", "--method", "bif", "--sample-weight", "weight", *options, "-q")
    X, y, weights, _ = samples()
    bif = BIF(criterion=Linear(missing="median"), scoring="balanced_accuracy")
    bif.fit(X, np.array(["well", "ill"])[y], sample_weight=weights)
    np.testing.assert_allclose(by_command, bif.scores_, rtol=1e-12)


@pytest.mark.parametrize("method", [["--criterion", "tree", "--n-probes", "20"], ["--method", "fsdd"]])
def test_methods_that_take_missing_values_get_them(data, succeed, method):
    ignored = ["--ignore", "weight", "--ignore", "patient"]
    assert "gene 2" in succeed("rank", data, "--target", "class", *ignored, *method, "--quiet", "--n-jobs", "1").out


def test_a_run_is_resumed_with_the_same_options_only(data, tmp_path, succeed, refuse):
    command = ["rank", data, "--target", "class", "--missing", "median", "--ledger", tmp_path / "l", *SHORT[:2], "-q"]
    options = ["--sample-weight", "weight", "--groups", "patient", "--scoring", "roc_auc"]
    succeed(*command, *options, "--n-probes", "40")
    succeed(*command, *options, "--n-probes", "80")
    for changed, words in (
        (["--ignore", "weight", *options[2:]], "its sample_weight is"),
        ([*options[:2], "--ignore", "patient", *options[4:]], "its folds is"),
        (options[:4], "its scoring is"),
    ):
        assert words in refuse(*command, *changed, "--n-probes", "90")


def test_a_report_has_the_command_and_the_code_that_repeat_it(data, tmp_path, succeed):
    ledger, report = tmp_path / "run.ledger", tmp_path / "report.json"
    command = ["rank", data, "--target", "class", "--missing", "median", "--sample-weight", "weight"]
    command += ["--groups", "patient", "--scoring", "roc_auc", "--cv", "4", "--n-probes", "40", "--n-jobs", "1", "-q"]
    succeed(*command, "--ledger", ledger, "--report", report)
    summary = json.loads(report.read_text())
    assert summary["repeat"]["command"].startswith("probewise rank")
    assert "from sklearn.model_selection import StratifiedGroupKFold" in summary["repeat"]["code"]
    assert "fit(X, y, groups=groups, sample_weight=sample_weight)" in summary["repeat"]["code"]
    assert summary["run"]["parameters"]["scoring"] == "roc_auc"
    succeed("report", ledger, "--out", tmp_path / "later.json", "--quiet")
    later = json.loads((tmp_path / "later.json").read_text())["repeat"]["command"]
    assert later.startswith(f"probewise {shlex.join(command)}")


def test_missing_values_are_filled_with_a_note_or_refused_with_a_remedy(data, succeed, refuse):
    options = ["rank", data, "--target", "class", "--ignore", "weight", "--ignore", "patient", "--n-probes", "50"]
    filled = succeed(*options)
    assert "missing values in 7 of 8 columns (" in filled.err
    requested = succeed(*options, "--missing", "median")
    assert requested.out == filled.out
    assert "are filled" not in requested.err
    for more in (["--missing", "error"], ["--method", "bif"]):
        assert "values are missing or infinite in 7 of 8 feature columns" in refuse(
            *options[: -2 * ("bif" in more) or None], *more
        )


def test_rows_without_a_target_are_left_out_with_a_note(frame, tmp_path, succeed):
    labels = frame["class"].to_list()
    labels[4] = None
    short = frame.drop("number", "weight", "patient").fill_null(0.5)
    short.with_columns(pl.Series("class", labels)).write_csv(tmp_path / "lost.csv")
    short[[row for row in range(N) if row != 4]].write_csv(tmp_path / "short.csv")
    options = ["--target", "class", *SHORT[:-1]]
    printed = succeed("rank", tmp_path / "lost.csv", *options)
    assert "1 of 90 rows have no target 'class' and are left out" in printed.err
    assert printed.out == succeed("rank", tmp_path / "short.csv", *options).out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--missing", "mode"], "missing='mode' must be 'mean', 'median' or 'error'"),
        (["--method", "bif", "--missing", "mean", "--criterion", "svm"], "--missing mean has no meaning for criterion"),
        (["--scoring", "f3"], "scoring='f3'"),
        (["--scoring", "f1"], "use scoring='f1_macro', or make_scorer(f1_score, pos_label='well')"),
        (["--sample-weight", "wieght"], "column 'wieght' in the table: did you mean 'weight'?"),
        (["--sample-weight", "class"], "column 'class' cannot be both the sample_weight and the target"),
        (
            ["--sample-weight", "weight", "--ignore", "weight"],
            "column 'weight' cannot be both the sample_weight and ignored",
        ),
        (
            ["--sample-weight", "weight", "--groups", "weight"],
            "'weight' cannot be both the sample_weight and the groups",
        ),
        (
            ["--sample-weight", "patient"],
            "sample_weight='patient' has type String: weights must be numbers of at least 0",
        ),
        (["--sample-weight", "weight", "--criterion", "svm"], "sample_weight: SVM"),
        (["--groups", "patient", "--cv", "40"], "cv=40 needs at least as many groups, and there are 30"),
        (["--groups", "patient", "--cv", "loo"], "cv='loo' leaves out single rows, but groups keeps rows together"),
        (["--sample-weight", "weight", "--method", "fsdd"], "--sample-weight: FSDD has no such parameter"),
        (["--scoring", "roc_auc", "--groups", "patient", "--method", "dfe"], "--scoring, --groups: DFE has no such"),
    ],
    ids=" ".join,
)
def test_bad_options_are_refused(complete, refuse, options, message):
    for name in ("weight", "patient"):
        options = options if name in options else [*options, "--ignore", name]
    assert message in refuse("rank", complete, "--target", "class", "--n-jobs", "1", "--quiet", *options)


# ---- weights and groups of a table


@pytest.mark.parametrize("cell", [-1.0, None], ids=["negative", "missing"])
def test_weights_must_be_non_negative_numbers(frame, tmp_path, cell):
    weights = frame["weight"].to_list()
    weights[3] = cell
    frame.drop("number").with_columns(weight=pl.Series(weights)).write_csv(tmp_path / "data.csv")
    message = r"sample_weight='weight' is missing, infinite or negative in 1 of 90 rows \(first: data row 4\)"
    with pytest.raises(TableError, match=message):
        read_table(
            tmp_path / "data.csv", target="class", ignore=["patient"], sample_weight="weight", allow_missing=True
        )


def test_weights_of_zero_and_missing_groups_are_refused(frame, tmp_path):
    frame.drop("number").with_columns(weight=pl.lit(0)).write_csv(tmp_path / "zero.csv")
    with pytest.raises(TableError, match="sample_weight='weight' is 0 in all rows"):
        read_table(
            tmp_path / "zero.csv", target="class", ignore=["patient"], sample_weight="weight", allow_missing=True
        )
    patients = pl.Series([None, *frame["patient"].to_list()[1:]])
    frame.drop("number").with_columns(patient=patients).write_parquet(tmp_path / "lost.parquet")
    with pytest.raises(TableError, match=r"groups='patient' is missing in 1 of 90 rows \(first: data row 1\)"):
        read_table(tmp_path / "lost.parquet", target="class", ignore=["weight"], groups="patient", allow_missing=True)


def test_infinite_values_are_never_missing_values(frame, tmp_path):
    column = frame["gene 3"].to_list()
    column[0] = float("inf")
    frame.drop("number").with_columns(pl.Series("gene 3", column)).write_parquet(tmp_path / "data.parquet")
    with pytest.raises(TableError, match="values are infinite in 1 of 8 feature columns: 'gene 3'"):
        read_table(tmp_path / "data.parquet", target="class", ignore=["weight", "patient"], allow_missing=True)


def test_weights_and_groups_are_rows_if_features_are_in_rows(frame, tmp_path):
    frame.drop("number").transpose(include_header=True, header_name="name").write_csv(tmp_path / "turned.csv")
    table = read_table(
        tmp_path / "turned.csv",
        target="class",
        features_in="rows",
        sample_weight="weight",
        groups="patient",
        allow_missing=True,
    )
    X, _, weights, groups = samples()
    np.testing.assert_array_equal(table.sample_weight, weights)
    assert len(np.unique(table.groups)) == len(np.unique(groups))
    np.testing.assert_array_equal(np.isnan(table.X), np.isnan(X))
    assert table.feature_names == NAMES
