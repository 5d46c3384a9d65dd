"""`read_table`: columns by name and role, ids, a target in a second file, features in rows, rows without a target."""

import io
import re
import sys

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp

from probewise.io import read_table
from table_files import refusal

HEADER = "a,b,label\n"


def refused(path, **options):
    return refusal(path, **{"target": "label", **options})


# ---- columns


def test_a_column_index_is_used_if_no_column_has_that_name(write):
    path = write("a,1,label\n1,2,3\n")
    assert read_table(path, target="2").target == "label"
    assert read_table(path, target="1").target == "1"
    assert read_table(path, target="label", ignore=["0"]).feature_names == ["1"]


def test_ignored_columns_may_hold_anything(write):
    path = write("id,a,note,label\nx,1,,0\ny,2,hello,1\n")
    assert read_table(path, target="label", ignore=["id", "note"]).feature_names == ["a"]


@pytest.mark.parametrize("n_rows", [1, 2, 3])
def test_the_frame_has_names_and_shares_memory_with_the_matrix(write, n_rows):
    table = read_table(write(HEADER + "1,0.5,yes\n" * n_rows), target="label")
    matrix = table.frame().to_numpy()
    np.testing.assert_array_equal(matrix, table.X)
    assert np.shares_memory(matrix, table.X)


@pytest.mark.parametrize(
    ("header", "ignore", "reason"),
    [
        ("a,b,a,label", (), "columns 0 and 2 (counted from 0) have the same name, 'a': rename one"),
        ("a,b,label,label", (), "column 3 has the same name as the target, 'label'"),
        ("a,b,a,label", ["b"], "columns 0 and 2"),
    ],
)
def test_repeated_names_are_refused(write, header, ignore, reason):
    assert reason in refused(write(f"{header}\n1,2,3,0\n4,5,6,1\n"), ignore=ignore)


def test_a_repeated_name_is_resolved_by_ignoring_a_column_by_its_index(write):
    table = read_table(write("a,b,a,label\n1,2,3,0\n4,5,6,1\n"), target="label", ignore=["2"])
    assert table.feature_names == ["a", "b"]
    assert table.X.tolist() == [[1, 2], [4, 5]]


def test_a_saved_row_index_is_not_a_feature(write):
    path = write(",a,label\n0,1,0\n1,2,1\n")
    assert "ignore=['0']" in refused(path)
    assert read_table(path, target="label", ignore=["0"]).feature_names == ["a"]


def test_no_rows_and_no_features(write):
    assert "no rows" in refused(write("a,label\n"))
    assert "no columns besides the target" in refused(write("label\n1\n2\n"))


@pytest.mark.parametrize(("name", "similar"), [("lable", "'label'"), ("LABEL", "'label'"), ("aa", "'a'")])
def test_an_unknown_target_suggests_similar_names(write, name, similar):
    message = refused(write(HEADER + "1,2,0\n"), target=name)
    assert f"no target column {name!r}" in message
    assert f"did you mean {similar}" in message


@pytest.mark.parametrize("name", ["zzz", "3", "-1", "²"])
def test_an_unknown_target_without_similar_names_lists_the_columns(write, name):
    assert "its columns are 'a', 'b', 'label'" in refused(write(HEADER + "1,2,0\n"), target=name)


@pytest.mark.parametrize(
    ("names", "shown"),
    [("ab", "'a', 'b'"), ("abcde", "'a', 'b', 'c', 'd', 'e'"), ("abcdefgh", "'a', 'b', 'c', 2 more, 'f', 'g', 'h'")],
)
def test_the_first_and_last_columns_are_listed_without_a_target(write, names, shown):
    path = write(f"{','.join(names)}\n{','.join('1' * len(names))}\n")
    assert refused(path, target=None).endswith(f"has {shown}")


def test_ignoring_an_unknown_column_or_the_target(write):
    path = write(HEADER + "1,2,0\n")
    assert "no ignored column 'c'" in refused(path, ignore=["c"])
    assert "both the target and ignored" in refused(path, ignore=["label"])


def test_without_polars_one_sentence_says_what_to_install(write, monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ImportError, match=r"reading tables needs the cli extra: pip install 'probewise\[cli\]'"):
        read_table(write(HEADER), target="label")


# ---- files


def test_a_missing_file_suggests_similar_names(tmp_path):
    for name in ("genes.csv", "genes.tsv", "other.txt"):
        (tmp_path / name).touch()
    assert refused(tmp_path / "no.csv") == f"there is no file {tmp_path / 'no.csv'}"
    path = tmp_path / "gens.csv"
    assert refused(path) == f"there is no file {path}: did you mean 'genes.csv', 'genes.tsv'?"
    path = tmp_path / "nowhere" / "genes.csv"
    assert refused(path) == f"there is no file {path}"
    (tmp_path / "d.csv").mkdir()
    assert "is a folder" in refused(tmp_path / "d.csv")


@pytest.mark.parametrize("name", ["data.xls", "data", "data.gz", "data.parquet.gz"])
def test_unknown_format(write, name):
    message = refused(write("a,label\n1,2\n", name))
    assert "name it .csv, .tsv, .txt, .arff, .parquet, .arrow, .feather, .ipc, .libsvm" in message
    assert ".npy, .h5ad, .gct or .xlsx (text files may also end in .gz, .bz2, .xz or .zst)" in message


@pytest.mark.parametrize("url", ["https://example.org/a//b.csv?v=1&w=2", "ftp://example.org/b.csv"])
def test_a_url_is_refused_with_the_download_command(url):
    message = refused(url)
    assert message.startswith(f"{url} is a URL: download the file first (curl -L -o b.csv ")
    assert message.count(url) == 2
    assert refused("s3://bucket/b.csv") == "s3://bucket/b.csv is a URL: download the file first"


# ---- guesses, and their notes

WITH_IDS = "sample,g1,g2,label\nS1,8.13,7.5,ill\nS2,7.25,-1,well\nS3,9.5,0.125,ill\n"


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".arrow"])
def test_text_that_differs_in_every_row_is_read_as_ids(write, tmp_path, ending):
    path = write(WITH_IDS)
    if ending != ".csv":
        path = tmp_path / f"t{ending}"
        frame = pl.read_csv(io.StringIO(WITH_IDS))
        frame.write_parquet(path) if ending == ".parquet" else frame.write_ipc(path)
    table = read_table(path, target="label")
    assert table.X.tolist() == [[8.13, 7.5], [7.25, -1], [9.5, 0.125]]
    assert (table.ids.tolist(), table.id_column) == (["S1", "S2", "S3"], "sample")
    assert table.notes == ("column 'sample' has a different text in every row: it is read as id_column='sample'",)
    assert read_table(path, target="label", id_column="sample").notes == ()


def test_two_possible_id_columns_are_refused(write):
    path = write("a,b,g,label\nu,x,1,0\nv,y,2,1\nw,z,3,0\n")
    message = refused(path)
    expected = "'a', 'b' have a different text in every row: choose the one that names the rows (id_column='a')"
    assert expected in message
    assert message.endswith("ignore the others (ignore=['b'])")
    assert read_table(path, target="label", id_column="b", ignore=["a"]).X.tolist() == [[1], [2], [3]]


@pytest.mark.parametrize(
    "column", ["u,v,u", "u,,w", "u,v,3", "1,2,x"], ids=["repeated", "missing", "a number", "a typo"]
)
def test_other_text_is_not_read_as_ids(write, column):
    cells = zip(column.split(","), (1, 2, 3), (0, 1, 0), strict=True)
    path = write("a,g,label\n" + "".join(f"{a},{g},{label}\n" for a, g, label in cells))
    assert "1 of 2 columns is not numeric: 'a'" in refused(path)


def test_categories_and_the_only_column_are_not_read_as_ids(write):
    table = read_table(write("a,g,label\nu,1,0\nv,2,1\n"), target="label", categorical_features=["a"])
    assert (table.feature_names, table.ids, table.notes) == (["a", "g"], None, ())
    assert "'a' ('u' in data row 1)" in refused(write("a,label\nu,0\nv,1\n"))


def test_classes_that_differ_in_case_or_blanks_are_noted(write):
    table = read_table(write("a,label\n1,Tumor\n2,normal\n3,tumor\n4,normal \n"), target="label")
    (note,) = table.notes
    assert note.startswith("the classes 'Tumor', 'tumor' differ only in case or blanks and are read as 2 classes")
    assert sorted(set(table.y)) == ["Tumor", "normal", "tumor"]
    assert read_table(write("a,label\n1,u\n2,v\n"), target="label").notes == ()


@pytest.mark.parametrize("first", [0, 1, 1001])
def test_columns_that_count_the_rows_are_noted(write, first):
    lines = ["number,value,reading,label"]
    lines += [f"{first + row},{row % 5},{2 * row},{'uv'[row % 2]}" for row in range(12)]
    (note,) = read_table(write("\n".join(lines)), target="label").notes
    assert note == "'number' counts the rows: use ignore=['number'] if these are row numbers"
    assert read_table(write("\n".join(lines)), target="label", ignore=["number"]).notes == ()
    assert read_table(write("\n".join(lines[:8])), target="label").notes == ()


# ---- the target in a second file


def test_a_second_file_in_the_same_order(write):
    data, labels = write("a,b\n1,2\n3,4\n"), write("label\nyes\nno\n", "labels.csv")
    table = read_table(data, target_file=labels)
    assert (table.X.tolist(), table.y.tolist(), table.target) == ([[1, 2], [3, 4]], ["yes", "no"], "label")
    both = write("age,label\n70,yes\n60,no\n", "both.tsv")
    assert read_table(data, target="age", target_file=both).y.tolist() == [70, 60]
    assert "choose the target column of" in refused(data, target=None, target_file=both)


def test_a_second_file_matched_by_ids(write):
    data = write("id,a\n01,1\n02,2\n03,3\n")
    labels = write("id,label\n03,w\n01,u\n02,v\n04,x\n", "labels.csv")
    table = read_table(data, target_file=labels, id_column="id")
    assert (table.y.tolist(), table.feature_names, table.ids.tolist()) == (["u", "v", "w"], ["a"], ["01", "02", "03"])
    other = write("sample\tlabel\n02\tv\n03\tw\n01\tu\n", "other.tsv")
    assert read_table(data, target="label", target_file=other, id_column="id").y.tolist() == ["u", "v", "w"]
    integers = write("id,label\n3,w\n1,u\n2,v\n", "integers.csv")
    pl.DataFrame({"id": [1.0, 2.0, 3.0], "a": [1, 2, 3]}).write_parquet(data.with_suffix(".parquet"))
    by_number = read_table(data.with_suffix(".parquet"), target_file=integers, id_column="id")
    assert by_number.y.tolist() == ["u", "v", "w"]


def test_a_second_file_matched_by_guessed_ids(write):
    path = write("sample,g1\nS1,1\nS2,2\nS3,3\n")
    reordered = write("who,label\nS3,c\nS1,a\nS2,b\n", "labels.csv")
    assert read_table(path, target="label", target_file=reordered).y.tolist() == ["a", "b", "c"]
    other = write("label\nx\ny\nz\n", "plain.csv")
    assert read_table(path, target_file=other).y.tolist() == ["x", "y", "z"]


@pytest.mark.parametrize(
    ("labels", "options", "reason"),
    [
        ("label\nu\n", {}, "labels.csv has 1 rows and the table 2: does it lack a header?"),
        ("label\nu\nv\nw\n", {}, "has 3 rows and the table 2: name a column of ids (id_column=...)"),
        ("id,label\n1,u\n3,v\n", {"id_column": "id"}, "1 of 2 ids are not in column 'id' of "),
        ("id,label\n1,u\n1,v\n2,v\n", {"id_column": "id"}, "the id '1' is in rows 1 and 2 of "),
        ("label\nu\nv\n", {"id_column": "id"}, "needs ids in it, too"),
        ("id,label\n1,u\n2,\n", {"id_column": "id"}, "first: data row 2"),
        ("a\nu\nv\n", {}, "column 1 has the same name as the target, 'a'"),
        ("label\nu\nv\n", {"target": "lable"}, "did you mean 'label'?"),
    ],
)
def test_second_files_that_do_not_match(write, labels, options, reason):
    data, second = write("id,a\n1,5\n2,6\n"), write(labels, "labels.csv")
    assert reason in refused(data, **{"target": None, "target_file": second, **options})


def test_a_file_in_place_of_a_column_is_recognized(write):
    labels = write("label\nu\n", "labels.csv")
    assert f"this is a file: use target_file={str(labels)!r}" in refused(write("a\n1\n"), target=str(labels))


# ---- features in rows

EXPRESSION = "gene\tS1\tS2\tS3\nBRCA1\t1.5\t2\t3\nTP53\t4\t5\t6.5\n"


def test_features_in_rows_with_the_target_in_a_second_file(write, tmp_path):
    data = write(EXPRESSION, "d.tsv")
    for labels in ("label\nu\nv\nw\n", "sample,label\nS3,w\nS1,u\nS2,v\nS9,x\n"):
        table = read_table(data, target_file=write(labels, "l.csv"), features_in="rows")
        assert table.X.tolist() == [[1.5, 4], [2, 5], [3, 6.5]]
        assert (table.y.tolist(), table.feature_names) == (["u", "v", "w"], ["BRCA1", "TP53"])
        assert (table.ids.tolist(), table.id_column) == (["S1", "S2", "S3"], "sample")
        assert np.shares_memory(table.frame().to_numpy(), table.X)
    written_by_r = write(EXPRESSION.removeprefix("gene\t"), "d.txt")
    parquet = tmp_path / "d.parquet"
    pl.read_csv(EXPRESSION.encode(), separator="\t").write_parquet(parquet)
    for path in (written_by_r, parquet):
        np.testing.assert_array_equal(read_table(path, target_file=tmp_path / "l.csv", features_in="rows").X, table.X)
    assert read_table(parquet, target="TP53", features_in="rows").y.tolist() == [4, 5, 6.5]


@pytest.mark.parametrize("cells", ["u\tv\tw", '"u"\t"v"\t"w"'])
def test_features_in_rows_with_the_target_in_a_row(write, cells):
    head, *rows = EXPRESSION.splitlines()
    text = "\n".join([head, f"label\t{cells}", *rows])
    for path in (write(text, "d.tsv"), write(text.replace(".", ","), "commas.tsv")):
        table = read_table(path, target="label", features_in="rows")
        assert (table.X.tolist(), table.y.tolist()) == ([[1.5, 4], [2, 5], [3, 6.5]], ["u", "v", "w"])
        assert read_table(path, target="TP53", features_in="rows", ignore=["label"]).y.tolist() == [4, 5, 6.5]


def test_features_in_rows_are_recognized_by_the_target(write, tmp_path):
    path = write(EXPRESSION + "label\tu\tv\tw\n", "t.tsv")
    expected = "the target 'label' is a row, not a column: the features seem to be in rows (features_in='rows')"
    assert refused(path) == expected
    pl.read_csv(path, separator="\t", infer_schema_length=0).write_parquet(tmp_path / "t.parquet")
    assert refused(tmp_path / "t.parquet") == expected
    assert "did you mean 'S1'" in refused(path, target="s1")


@pytest.mark.parametrize("target", ["label", None])
def test_features_in_rows_are_recognized_by_the_second_file(write, target):
    labels = write("who,label\nS1,u\nS2,v\nS3,w\n", "l.csv")
    message = refused(write(EXPRESSION, "t.tsv"), target=target, target_file=labels)
    assert "l.csv names the columns of" in message
    assert message.endswith("the features seem to be in rows (features_in='rows')")


def test_a_bad_cell_below_a_row_of_labels_is_found(write):
    path = write("gene\tS1\tS2\nlabel\tu\tv\ng1\t1\toops\n", "d.tsv")
    assert "1 of 2 columns is not numeric: 'S2' ('oops' in data row 2)" in refused(path, features_in="rows")


def test_columns_that_describe_features_in_rows_can_be_ignored(write):
    data = write("id\tabout\tS1\tS2\ng1\ta kinase\t1\t2\ng2\tunknown\t3\t4\ng3\tx\t5\t6\n", "d.tsv")
    labels = write("label\nu\nv\n", "l.csv")
    message = refused(data, target=None, target_file=labels, features_in="rows", ignore=["g1"])
    assert "has 2 rows and the table 3" in message
    table = read_table(data, target_file=labels, features_in="rows", ignore=["about", "g2"])
    assert (table.X.tolist(), table.feature_names) == ([[1, 5], [2, 6]], ["g1", "g3"])


@pytest.mark.parametrize(
    ("text", "options", "reason"),
    [
        (EXPRESSION, {"target": None}, "choose the target: a row"),
        (EXPRESSION, {"target": "TP35"}, "no target row 'TP35' in the table: did you mean 'TP53'?"),
        (EXPRESSION, {"target": "zzz"}, "its rows are 'BRCA1', 'TP53'"),
        (EXPRESSION, {"target": "TP53", "ignore": ["TP53"]}, "both the target and ignored"),
        (EXPRESSION, {"target": "TP53", "ignore": ["BRCA1"]}, "no rows left as features"),
        (EXPRESSION.replace("2", "?"), {"target": "TP53"}, "'BRCA1' (first in sample 'S?')"),
        (EXPRESSION.replace("6.5", ""), {"target": "TP53"}, "the target 'TP53' is missing or infinite in 1 of 3 rows"),
        (EXPRESSION.replace("\t2", "\tbad"), {"target": "TP53"}, "'S2' ('bad' in data row 1)"),
        (EXPRESSION + "BRCA1\t1\t2\t3\n", {"target": "TP53"}, "rows 0 and 2 (counted from 0) have the same name"),
        (EXPRESSION, {"target": "TP53", "features_in": "cells"}, "features_in='cells' must be 'columns' or 'rows'"),
    ],
)
def test_features_in_rows_that_cannot_be_used(write, text, options, reason):
    assert reason in refused(write(text, "d.tsv"), **{"features_in": "rows", **options})


def test_samples_without_a_label(write, tmp_path):
    labels = write("sample,label\nS1,u\nS2,v\n", "l.csv")
    message = refused(write(EXPRESSION, "d.tsv"), target_file=labels, features_in="rows")
    assert "no column of" in message
    assert "contains the names of all samples, 'S1', 'S2', 'S3'" in message
    named = refused(write(EXPRESSION, "d.tsv"), target_file=labels, features_in="rows", id_column="sample")
    assert "1 of 3 ids are not in column 'sample'" in named
    np.savez(tmp_path / "d.npz", X=np.eye(2), y=[0, 1])
    assert "not with .npz" in refused(tmp_path / "d.npz", features_in="rows")


# ---- rows without a target


def test_rows_without_a_target_can_be_left_out(write, tmp_path):
    text = "id,a,label,w,g\nr1,1,u,1,k\nr2,2,,2,k\nr3,3,v,3,m\nr4,4,NA,4,m\nr5,5,u,5,k\n"
    options = {"sample_weight": "w", "groups": "g", "id_column": "id"}
    assert refused(write(text), **options).endswith("fill it in or leave these rows out (drop_unlabeled=True)")
    table = read_table(write(text), target="label", drop_unlabeled=True, **options)
    assert table.X.ravel().tolist() == [1, 3, 5]
    assert (table.y.tolist(), table.ids.tolist()) == (["u", "v", "u"], ["r1", "r3", "r5"])
    assert (table.sample_weight.tolist(), table.groups.tolist()) == ([1, 3, 5], [0, 1, 0])
    assert table.notes == ("2 of 5 rows have no target 'label' and are left out",)
    complete = text.replace("r2,2,,", "r2,2,u,").replace("NA", "v")
    assert read_table(write(complete), target="label", drop_unlabeled=True, **options).notes == ()

    broken = text.replace("r5,5,", "r5,,")  # rows are counted as in the file
    assert "first in data row 5" in refused(write(broken), drop_unlabeled=True, **options)
    none = re.sub(r",(u|v|NA),", ",,", text)
    assert "is missing or infinite in 5 of 5 rows" in refused(write(none), drop_unlabeled=True, **options)

    np.savez(tmp_path / "m.npz", X=np.asfortranarray(np.arange(12.0).reshape(4, 3)), y=[0.5, np.nan, 1.5, np.inf])
    table = read_table(tmp_path / "m.npz", drop_unlabeled=True)
    assert (table.X.tolist(), table.y.tolist()) == ([[0, 1, 2], [6, 7, 8]], [0.5, 1.5])
    np.save(tmp_path / "m.npy", np.arange(12.0).reshape(4, 3))
    (tmp_path / "y.csv").write_text("label,age\nu,1\n,2\nv,3\nu,4\n")
    message = refused(tmp_path / "m.npy", target_file=tmp_path / "y.csv", drop_unlabeled=True)
    assert message.startswith("rows of a mapped table cannot be left out: use drop_unlabeled=False")


def test_sparse_rows_without_a_target_can_be_left_out(tmp_path):
    X = sp.random(6, 4, density=0.5, format="csr", random_state=0)
    parts = {name: getattr(X, name) for name in ("data", "indices", "indptr", "shape")}
    np.savez(tmp_path / "m.npz", y=[1.0, np.nan, 2.0, 1.0, np.nan, 2.0], **parts)
    table = read_table(tmp_path / "m.npz", drop_unlabeled=True)
    np.testing.assert_array_equal(table.X.toarray(), X.toarray()[[0, 2, 3, 5]])


@pytest.mark.parametrize("id_column", [None, "id"])
def test_rows_that_are_not_in_the_target_file_can_be_left_out(write, tmp_path, id_column):
    data = write("id,a\np,1\nq,2\nr,3\ns,4\n")
    (tmp_path / "y.csv").write_text("id,label\ns,v\np,u\nx,u\nr,\n")
    options = {"target_file": tmp_path / "y.csv", "id_column": id_column}
    if id_column:
        assert refused(data, **options).endswith("'q'; add them or leave these rows out (drop_unlabeled=True)")
    table = read_table(data, target="label", drop_unlabeled=True, **options)
    assert (table.ids.tolist(), table.y.tolist(), table.X.ravel().tolist()) == (["p", "s"], ["u", "v"], [1, 4])


def test_samples_without_a_target_can_be_left_out(write):
    data = write("gene,s1,s2,s3\nTP53,1,2,3\nage,50,,70\n")
    table = read_table(data, features_in="rows", target="age", drop_unlabeled=True)
    assert (table.ids.tolist(), table.y.tolist(), table.X.ravel().tolist()) == (["s1", "s3"], [50, 70], [1, 3])
