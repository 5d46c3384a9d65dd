"""Tables in and out of the commands: formats, second files, features in rows, smaller tables, one line for a fault."""

import gzip
import io
import re

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from probewise import DAF
from probewise.cli import run
from probewise.datasets import make_madelon
from probewise.io import read_table

MADE = make_madelon(90, 30, random_state=0)
LABELS = np.where(MADE.y == 1, "yes", "no")
SHORT = ["--method", "daf", "--probes", 60, "-q"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One table in several files: whole, without its target, turned, and sparse."""
    folder = tmp_path_factory.mktemp("tables")
    features = pl.from_numpy(MADE.X, schema=MADE.feature_names, orient="row")
    names = pl.Series("sample", [f"S{k:02d}" for k in range(len(MADE.y))])
    whole = features.with_columns(label=pl.Series(LABELS))
    whole.write_csv(folder / "whole.csv")
    whole.write_parquet(folder / "whole.parquet")
    whole.write_ipc(folder / "whole.arrow")
    (folder / "whole.csv.gz").write_bytes(gzip.compress((folder / "whole.csv").read_bytes()))
    np.savez(folder / "whole.npz", X=MADE.X, y=LABELS, feature_names=MADE.feature_names)
    kinds = [f"@attribute {name} numeric" for name in MADE.feature_names]
    head = "\n".join(["@relation t", *kinds, "@attribute label {no,yes}", "@data", ""])
    (folder / "whole.arff").write_text(head + whole.write_csv(include_header=False))
    features.insert_column(0, names).write_csv(folder / "named.csv")
    pl.DataFrame([names, pl.Series("label", LABELS)])[::-1].write_csv(folder / "labels.tsv", separator="\t")
    turned = pl.from_numpy(MADE.X.T, schema=names.to_list(), orient="row")
    turned.insert_column(0, pl.Series("gene", MADE.feature_names)).write_csv(folder / "turned.tsv", separator="\t")
    rare = np.where(np.abs(MADE.X) > np.median(np.abs(MADE.X)), MADE.X, 0).astype(np.float64)
    dump_svmlight_file(rare, MADE.y, str(folder / "sparse.svm"), zero_based=False)
    return folder


def ranked(capsys, *arguments):
    assert run(["rank", *map(str, [*arguments, *SHORT])]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    return printed.out


def refusal(capsys, *arguments):
    assert run([str(argument) for argument in arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert printed.err.startswith("probewise: ")
    return printed.err


def names_in(text):
    return [line.split()[1] for line in text.splitlines() if re.match(r"\s+\d+ ", line)]


@pytest.fixture
def expected(folder, capsys):
    return ranked(capsys, folder / "whole.csv", "--target", "label")


@pytest.mark.parametrize(
    "arguments",
    [
        ["whole.parquet", "--target", "label"],
        ["whole.arrow", "--target", "30"],
        ["whole.csv.gz", "--target", "label"],
        ["whole.arff", "--target", "label"],
        ["whole.npz"],
        ["named.csv", "--id", "sample", "--target-file", "labels.tsv"],
        ["named.csv", "--id", "sample", "--target-file", "labels.tsv", "--target", "label"],
        ["turned.tsv", "--features-in", "rows", "--target-file", "labels.tsv"],
        ["turned.tsv", "--features-in", "rows", "--target-file", "labels.tsv", "--target", "label", "--id", "sample"],
    ],
    ids=" ".join,
)
def test_the_ranking_does_not_depend_on_how_the_table_is_kept(folder, capsys, monkeypatch, expected, arguments):
    monkeypatch.chdir(folder)
    assert ranked(capsys, *arguments) == expected


def test_ids_make_rows_findable_in_any_order(folder, capsys):
    arguments = [folder / "named.csv", "--target-file", folder / "labels.tsv", "--target", "label"]
    in_order = ranked(capsys, *arguments, "--ignore", "sample")
    assert in_order != ranked(capsys, *arguments, "--id", "sample")


def test_what_is_guessed_is_said_in_a_line(folder, capsys, monkeypatch, expected):
    monkeypatch.chdir(folder)
    whole = pl.read_csv("named.csv").with_columns(label=pl.Series(LABELS))
    text = whole.write_csv(separator=";").replace(".", ",")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(text.encode()))))
    assert run(["rank", "-", "--target", "label", *map(str, SHORT[:-1])]) == 0
    printed = capsys.readouterr()
    assert printed.out == expected
    commas, named = printed.err.splitlines()[:2]
    assert commas == "probewise: numbers are read with decimal commas (decimal=','); use decimal='.' if this is wrong"
    assert named.endswith("'sample' has a different text in every row: it is read as id_column='sample'")
    whole.with_columns(other="sample").write_csv("two.csv")
    assert "names the rows (id_column='sample') and ignore the others (ignore=['other'])" in refusal(
        capsys, "rank", "two.csv", "--target", "label"
    )
    turned = refusal(capsys, "rank", "turned.tsv", "--target-file", "labels.tsv")
    assert turned.endswith("the features seem to be in rows (features_in='rows')\n")
    address = "https://example.org/a//b.csv"
    assert f"{address} is a URL: download the file first (curl -L" in refusal(
        capsys, "rank", address, "--target", "label"
    )
    assert address in refusal(capsys, "convert", address, "b.npy")


def test_a_sparse_table_is_told_the_names_of_its_columns(folder, tmp_path, capsys):
    words = [f"word{place}" for place in range(30)]
    (tmp_path / "words.txt").write_text("\n".join(words))
    ledger, page = tmp_path / "run.ledger", tmp_path / "r.md"
    printed = ranked(capsys, folder / "sparse.svm", "--names", tmp_path / "words.txt", "--ledger", ledger)
    assert set(names_in(printed)) <= set(words)
    assert run(["report", str(ledger), "--names", str(tmp_path / "words.txt"), "--out", str(page)]) == 0
    assert names_in(printed)[0] in page.read_text()


def test_a_sparse_table_stays_sparse(folder, capsys, monkeypatch):
    seen = []
    fit = DAF.fit
    monkeypatch.setattr(DAF, "fit", lambda self, X, y: seen.append(X) or fit(self, X, y))
    printed = ranked(capsys, folder / "sparse.svm", "--top", 30)
    assert sp.issparse(seen[0])
    assert sorted(names_in(printed), key=int) == [str(k) for k in range(1, 31)]
    ignored = ranked(capsys, folder / "sparse.svm", "--top", 30, "--ignore", "7")
    assert "7" not in names_in(ignored)
    assert len(names_in(ignored)) == 29


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".parquet", ".arrow", ".feather"])
def test_select_writes_the_best_columns_and_the_target(folder, tmp_path, capsys, ending):
    out = tmp_path / f"small{ending}"
    printed = ranked(capsys, folder / "whole.parquet", "--target", "label", "--select", out, "--n-features", 4)
    small = read_table(out, target="label")
    assert small.feature_names == names_in(printed)[:4]
    assert small.y.tolist() == LABELS.tolist()
    places = [MADE.feature_names.index(name) for name in small.feature_names]
    np.testing.assert_array_equal(small.X.astype(np.float32), MADE.X[:, places])


def test_select_keeps_as_many_as_are_shown_and_says_where(folder, tmp_path, capsys):
    out = tmp_path / "small.csv"
    arguments = [folder / "named.csv", "--id", "sample", "--target-file", folder / "labels.tsv", "--top", 3]
    assert run(["rank", *map(str, [*arguments, "--probes", 60, "--select", out])]) == 0
    printed = capsys.readouterr()
    assert f"the table of the best 3 is in {out}" in printed.err
    assert pl.read_csv(out).columns == ["sample", *names_in(printed.out), "label"]


def test_select_of_a_sparse_table(folder, tmp_path, capsys):
    printed = ranked(capsys, folder / "sparse.svm", "--select", tmp_path / "small.parquet", "--n-features", 2)
    frame = pl.read_parquet(tmp_path / "small.parquet")
    assert frame.columns == [*names_in(printed)[:2], "target"]
    whole = read_table(folder / "sparse.svm").X.toarray()
    np.testing.assert_array_equal(frame.to_series(0).to_numpy(), whole[:, int(frame.columns[0]) - 1])


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--select", "small.json"], "name it .csv, .tsv, .parquet, .arrow or .feather"),
        (["--select", "no-such-folder/small.csv"], "does not exist"),
        (["--select", "whole.csv"], "--select whole.csv would overwrite whole.csv"),
        (["--select", "new.csv", "--out", "new.csv"], "would overwrite new.csv"),
        (["--n-features", "3"], "--n-features needs --select FILE"),
        (["--n-features", "31", "--select", "new.csv"], "--n-features 31 is more than the 30 features"),
        (["--target-file", "labels.tsv", "--out", "labels.tsv"], "would overwrite labels.tsv"),
        (["--target-file", "none.csv"], "there is no file none.csv"),
        (["--features-in", "cells"], "features_in='cells' must be 'columns' or 'rows'"),
        (["--id", "nobody"], "there is no id column 'nobody'"),
        (["--out", "ranking.docx"], "ranking.docx has no format that can be written: name it .csv"),
    ],
)
def test_options_that_do_not_fit(folder, capsys, monkeypatch, options, reason):
    monkeypatch.chdir(folder)
    assert reason in refusal(capsys, "rank", "whole.csv", "--target", "label", *options)
    assert not (folder / "new.csv").exists()


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("d.csv", b"", "d.csv is empty"),
        ("d.csv", b"a,b,label\n1,2,0\n1,2\n", "data row 2 has 2 cells and the header 3"),
        ("d.csv", b"a,a,label\n1,2,0\n1,2,1\n", "columns 0 and 1 (counted from 0) have the same name, 'a'"),
        ("d.csv", b"a,lable\n1,0\n2,1\n", "there is no target column 'label' in the table: did you mean 'lable'?"),
        ("d.csv", b"a,label\n1,\xe9\n", "is not UTF-8 text"),
        ("d.csv", b"a,label\n1,0\n2,NA\n", "first: data row 2"),
        ("d.csv", b"a,my note,label\n1,,0\n2,hi,1\n", "'my note' ('hi' in data row 2)"),
        ("d.csv", b"a,my note,label\n1,,0\n2,hi,1\n", "(ignore=['my note'])"),
        ("d.csv.gz", b"no archive", "cannot be decompressed"),
        ("d.parquet", b"no parquet", "cannot be read as Parquet"),
        ("d.arff", b"no arff", "cannot be read as ARFF"),
        ("d.npz", b"no npz", "cannot be read as NPZ"),
        ("d.svm", b"1 a:b\n", "cannot be read as svmlight"),
        ("d.xls", b"PK", "name it .csv, .tsv, .txt, .arff, .parquet"),
    ],
)
@pytest.mark.parametrize("command", ["rank", "compare"])
def test_bad_files_are_refused_in_one_line(tmp_path, capsys, command, name, content, reason):
    (tmp_path / name).write_bytes(content)
    assert reason in refusal(capsys, command, tmp_path / name, "--target", "label")


def test_compare_reads_the_same_tables(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    quick = ["--methods", "fsdd,all", "--classifiers", "naive_bayes", "--trials", "2", "--sizes", "2"]
    tables = []
    for arguments in (
        ["whole.csv", "--target", "label"],
        ["turned.tsv", "--features-in", "rows", "--target-file", "labels.tsv"],
        ["whole.npz"],
    ):
        assert run(["compare", *arguments, *quick, "--jobs", "1", "-q", "--out", str(tmp_path / "trials.csv")]) == 0
        tables.append(pl.read_csv(tmp_path / "trials.csv").select(pl.exclude("seconds")))
    assert tables[0].equals(tables[1])
    assert tables[0].equals(tables[2])
    assert tables[0].width > 3


def test_a_file_that_no_table_can_be_written_to_is_named_by_both_commands(folder, capsys):
    for command in ("rank", "compare"):
        message = refusal(capsys, command, folder / "whole.csv", "--target", "label", "--out", "table.docx")
        assert "table.docx has no format that can be written: name it .csv, .tsv, .xlsx, .parquet or .json" in message


@pytest.mark.parametrize("method", ["fsdd", "efs", "dfe", "cfs", "fcbf", "mrmr", "jmi", "cmim", "relieff", "bif"])
def test_any_method_ranks_a_table(method, tmp_path, capsys):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    columns = {f"f{i}": rng.standard_normal(60) + (3 * y if i == 4 else 0) for i in range(8)}
    pl.DataFrame(columns | {"label": np.array(["ill", "well"])[y]}).write_csv(tmp_path / "t.csv")
    arguments = ["rank", str(tmp_path / "t.csv"), "--target", "label", "--method", method, "--top", "3"]
    assert run([*arguments, "--out", str(tmp_path / "r.csv"), "--select", str(tmp_path / "s.csv"), "--jobs", "1"]) == 0
    assert "f4" in capsys.readouterr().out.splitlines()[3]
    assert pl.read_csv(tmp_path / "r.csv")["feature"][0] == "f4"
    assert pl.read_csv(tmp_path / "s.csv").columns[0] == "f4"
    assert run([*arguments, "--probes", "100"]) == 2
    assert f"--probes: --method {method} makes no probes" in capsys.readouterr().err


def test_an_unknown_method_is_named(tmp_path, capsys):
    pl.DataFrame({"a": [1.0, 2, 3, 4], "label": [0, 1, 0, 1]}).write_csv(tmp_path / "t.csv")
    assert run(["rank", str(tmp_path / "t.csv"), "--target", "label", "--method", "magic"]) == 2
    assert "--method 'magic' is not known: choose one of tournament, daf, bif, cfs" in capsys.readouterr().err
