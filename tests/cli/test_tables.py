"""Tables of the commands: formats, target files, features in rows, standard input, and tables of selected features."""

import io
import re

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from probewise import DAF
from probewise.datasets import make_madelon
from probewise.io import read_table

MADE = make_madelon(90, 30, random_state=0)
LABELS = np.where(MADE.y == 1, "yes", "no")
SHORT = ["--method", "daf", "--n-probes", 60, "-q"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One table in several files: whole, without its target, turned, and sparse."""
    folder = tmp_path_factory.mktemp("tables")
    features = pl.from_numpy(MADE.X, schema=MADE.feature_names, orient="row")
    names = pl.Series("sample", [f"S{k:02d}" for k in range(len(MADE.y))])
    whole = features.with_columns(label=pl.Series(LABELS))
    whole.write_csv(folder / "whole.csv")
    whole.write_parquet(folder / "whole.parquet")
    np.savez(folder / "whole.npz", X=MADE.X, y=LABELS, feature_names=MADE.feature_names)
    features.insert_column(0, names).write_csv(folder / "named.csv")
    pl.DataFrame([names, pl.Series("label", LABELS)])[::-1].write_csv(folder / "labels.tsv", separator="\t")
    turned = pl.from_numpy(MADE.X.T, schema=names.to_list(), orient="row")
    turned.insert_column(0, pl.Series("gene", MADE.feature_names)).write_csv(folder / "turned.tsv", separator="\t")
    rare = np.where(np.abs(MADE.X) > np.median(np.abs(MADE.X)), MADE.X, 0).astype(np.float64)
    dump_svmlight_file(rare, MADE.y, str(folder / "sparse.svm"), zero_based=False)
    return folder


@pytest.fixture
def rank(succeed):
    """A function that ranks a table quietly and returns the printed ranking."""

    def rank(*arguments):
        printed = succeed("rank", *arguments, *SHORT)
        assert printed.err == ""
        return printed.out

    return rank


def names_in(text):
    return [line.split()[1] for line in text.splitlines() if re.match(r"\s+\d+ ", line)]


@pytest.fixture
def expected(folder, rank):
    return rank(folder / "whole.csv", "--target", "label")


@pytest.mark.parametrize(
    "arguments",
    [
        ["whole.parquet", "--target", "30"],
        ["whole.npz"],
        ["named.csv", "--id-column", "sample", "--target-file", "labels.tsv"],
        ["turned.tsv", "--features-in", "rows", "--target-file", "labels.tsv"],
        ["turned.tsv", "--features-in", "rows", "--target-file", "labels.tsv", "--target", "label"],
    ],
    ids=" ".join,
)
def test_the_ranking_does_not_depend_on_the_format(folder, rank, monkeypatch, expected, arguments):
    monkeypatch.chdir(folder)
    assert rank(*arguments) == expected


def test_rows_of_a_target_file_are_matched_by_id(folder, rank):
    arguments = [folder / "named.csv", "--target-file", folder / "labels.tsv", "--target", "label"]
    in_order = rank(*arguments, "--ignore", "sample")
    assert in_order != rank(*arguments, "--id-column", "sample")


def test_every_guess_is_printed(folder, succeed, refuse, monkeypatch, expected):
    monkeypatch.chdir(folder)
    whole = pl.read_csv("named.csv").with_columns(label=pl.Series(LABELS))
    text = whole.write_csv(separator=";").replace(".", ",")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(text.encode()))))
    printed = succeed("rank", "-", "--target", "label", *SHORT[:-1])
    assert printed.out == expected
    commas, named = printed.err.splitlines()[:2]
    assert "decimal" in commas
    assert "'sample'" in named
    whole.with_columns(other="sample").write_csv("two.csv")
    two = refuse("rank", "two.csv", "--target", "label")
    assert "id_column='sample'" in two
    assert "ignore=['other']" in two
    turned = refuse("rank", "turned.tsv", "--target-file", "labels.tsv")
    assert "features_in='rows'" in turned


def test_names_of_the_columns_of_a_sparse_table(folder, tmp_path, rank, succeed):
    words = [f"word{column}" for column in range(30)]
    (tmp_path / "words.txt").write_text("\n".join(words))
    ledger, page = tmp_path / "run.ledger", tmp_path / "r.md"
    options = ["--feature-names", tmp_path / "words.txt"]
    names = names_in(rank(folder / "sparse.svm", *options, "--ledger", ledger))
    assert set(names) <= set(words)
    succeed("report", ledger, "--data", folder / "sparse.svm", *options, "--out", page)
    assert names[0] in page.read_text()


def test_a_sparse_table_stays_sparse(folder, rank, monkeypatch):
    seen = []
    fit = DAF.fit
    monkeypatch.setattr(DAF, "fit", lambda self, X, y: seen.append(X) or fit(self, X, y))
    printed = rank(folder / "sparse.svm", "--top", 30)
    assert sp.issparse(seen[0])
    assert sorted(names_in(printed), key=int) == [str(k) for k in range(1, 31)]
    ignored = rank(folder / "sparse.svm", "--top", 30, "--ignore", "7")
    assert "7" not in names_in(ignored)
    assert len(names_in(ignored)) == 29


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_select_writes_the_best_columns_and_the_target(folder, tmp_path, rank, ending):
    out = tmp_path / f"small{ending}"
    printed = rank(folder / "whole.parquet", "--target", "label", "--select", out, "--n-features-to-select", 4)
    small = read_table(out, target="label")
    assert small.feature_names == names_in(printed)[:4]
    assert small.y.tolist() == LABELS.tolist()
    columns = [MADE.feature_names.index(name) for name in small.feature_names]
    np.testing.assert_array_equal(small.X.astype(np.float32), MADE.X[:, columns])


def test_select_writes_the_shown_features_by_default(folder, tmp_path, succeed):
    out = tmp_path / "small.csv"
    arguments = [folder / "named.csv", "--id-column", "sample", "--target-file", folder / "labels.tsv", "--top", 3]
    printed = succeed("rank", *arguments, "--n-probes", 60, "--select", out)
    assert f"the table of the best 3 features is in {out}" in printed.err
    assert pl.read_csv(out).columns == ["sample", *names_in(printed.out), "label"]


def test_select_of_a_sparse_table(folder, tmp_path, rank):
    printed = rank(folder / "sparse.svm", "--select", tmp_path / "small.parquet", "--n-features-to-select", 2)
    frame = pl.read_parquet(tmp_path / "small.parquet")
    assert frame.columns == [*names_in(printed)[:2], "target"]
    whole = read_table(folder / "sparse.svm").X.toarray()
    np.testing.assert_array_equal(frame.to_series(0).to_numpy(), whole[:, int(frame.columns[0]) - 1])


def test_compare_reads_the_same_tables(folder, tmp_path, succeed, monkeypatch):
    monkeypatch.chdir(folder)
    quick = ["--methods", "fsdd,all", "--classifiers", "naive_bayes", "--trials", "2", "--sizes", "2", "--n-jobs", "1"]
    tables = []
    for arguments in (
        ["whole.csv", "--target", "label"],
        ["turned.tsv", "--features-in", "rows", "--target-file", "labels.tsv"],
        ["whole.npz"],
    ):
        succeed("compare", *arguments, *quick, "-q", "--out", tmp_path / "trials.csv")
        tables.append(pl.read_csv(tmp_path / "trials.csv").select(pl.exclude("seconds")))
    assert tables[0].equals(tables[1])
    assert tables[0].equals(tables[2])
    assert tables[0].width > 3


@pytest.mark.parametrize("method", ["fsdd", "efs", "dfe", "cfs", "fcbf", "mrmr", "jmi", "cmim", "relieff", "bif"])
def test_any_method_ranks_a_table(method, tmp_path, succeed, refuse):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    columns = {f"f{i}": rng.standard_normal(60) + (3 * y if i == 4 else 0) for i in range(8)}
    pl.DataFrame(columns | {"label": np.array(["ill", "well"])[y]}).write_csv(tmp_path / "t.csv")
    arguments = ["rank", tmp_path / "t.csv", "--target", "label", "--method", method, "--top", "3", "--n-jobs", "1"]
    printed = succeed(*arguments, "--out", tmp_path / "r.csv", "--select", tmp_path / "s.csv")
    assert "f4" in printed.out.splitlines()[3]
    assert pl.read_csv(tmp_path / "r.csv")["feature"][0] == "f4"
    assert pl.read_csv(tmp_path / "s.csv").columns[0] == "f4"
    assert "--n-probes: " in refuse(*arguments, "--n-probes", "100")
