"""Every format gives the same table: compressed text, ARFF, GCT, GEO, Excel, Parquet, Arrow, svmlight, NPZ, AnnData."""

import bz2
import gzip
import io
import lzma
import re
import sys

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from probewise.io import read_table
from table_files import refusal, write_text

X = np.array([[1.5, 0.0, -2.0], [0.0, 3.25, 0.0], [4.0, 0.0, 1e-9], [0.5, 7.0, 0.0]])
Y = np.array(["u", "v", "u", "w w"])
NAMES = ["a", "b b", "c"]
IDS = ["S1", "S2", "S3", "S4"]
FRAME = pl.from_numpy(X, schema=NAMES, orient="row").with_columns(label=pl.Series(Y))


def refused(path, **options):
    return refusal(path, **{"target": "label", **options})


def dense(matrix):
    return matrix.toarray() if sp.issparse(matrix) else matrix


def assert_same(table, ids=None):
    np.testing.assert_array_equal(dense(table.X), X)
    assert (table.y.tolist(), table.feature_names, table.target) == (Y.tolist(), NAMES, "label")
    assert ids is None or table.ids.tolist() == ids


def dense_arff(path):
    kinds, quoted = ["real", "NUMERIC", "numeric"], ["u", "v", "u", "'w w'"]
    attributes = [f"@attribute '{name}' {kind}" for name, kind in zip(NAMES, kinds, strict=True)]
    rows = [",".join(map(repr, row)) + f", {label}" for row, label in zip(X.tolist(), quoted, strict=True)]
    lines = ["% a comment", "@RELATION t", *attributes, "@Attribute label {u,v,'w w'}", "", "@DATA", *rows, "% end"]
    write_text(path, "\n".join(lines))


WRITERS = {
    "t.csv": FRAME.write_csv,
    "t.tsv": lambda path: FRAME.write_csv(path, separator="\t"),
    "t.txt": lambda path: FRAME.write_csv(path, separator="\t", quote_style="always"),
    "t.csv.gz": lambda path: write_text(path, FRAME.write_csv()),
    "t.csv.zst": lambda path: write_text(path, FRAME.write_csv()),
    "t.parquet": FRAME.write_parquet,
    "t.arrow": FRAME.write_ipc,
    "t.ipc": FRAME.write_ipc_stream,
    "t.feather": lambda path: pa.feather.write_feather(FRAME.to_arrow(), path, compression="zstd"),
    "t.arff": dense_arff,
    "t.arff.gz": dense_arff,
    "t.npz": lambda path: np.savez(path, X=X, label=Y, feature_names=NAMES),
}


@pytest.mark.parametrize("name", WRITERS)
def test_each_format_gives_the_same_table(tmp_path, name):
    path = tmp_path / name
    WRITERS[name](path)
    for target in ("label", "3"):
        table = read_table(path, target=target)
        assert not sp.issparse(table.X)
        assert_same(table)
    table = read_table(path, target="label", ignore=["b b", "0"])
    np.testing.assert_array_equal(dense(table.X), X[:, 2:])
    assert table.feature_names == ["c"]
    assert "did you mean 'label'?" in refused(path, target="lable")
    assert "choose the target column (target=...)" in refused(path, target=None)


@pytest.mark.parametrize(
    "name", [name for name in WRITERS if name.endswith((".parquet", "arrow", "ipc", "feather", "npz", "arff"))]
)
def test_a_file_of_another_format_than_its_name(write, name):
    assert "cannot be read as " in refused(write("1,2,3\n", name))


# ---- compressed text and standard input


@pytest.mark.parametrize(
    ("ending", "compress"), [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress), (".zst", None)]
)
def test_compressed_text_and_damaged_archives(tmp_path, write, ending, compress):
    text, path = FRAME.write_csv(), tmp_path / f"t.csv{ending}"
    write_text(path, text * 50) if compress is None else path.write_bytes(compress(text.encode() * 50))
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert "cannot be decompressed" in refused(path)
    assert "is the file complete?" in refused(write(b"not an archive", path.name))
    if compress is not None:
        assert_same(read_table(write(compress(text.encode()), path.name), target="label"))


@pytest.mark.parametrize("compress", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_standard_input(monkeypatch, compress):
    content = compress(FRAME.write_csv(separator=";").replace(".", ",").encode())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(content))))
    assert_same(read_table("-", target="label"))
    assert refused("-") == "standard input is empty"
    assert "cannot both be standard input" in refused("-", target_file="-")
    assert not sys.stdin.buffer.closed


# ---- Parquet


@pytest.mark.parametrize(
    ("dtypes", "expected"),
    [
        ((pl.Float32, pl.Float32), np.float32),
        ((pl.Float32, pl.Float64), np.float64),
        ((pl.Float32, pl.Int8), np.float64),
        ((pl.Int16, pl.Int16), np.int16),
        ((pl.UInt8, pl.Boolean), np.uint8),
        ((pl.Int64, pl.Float32), np.float64),
        ((pl.Int128, pl.Int64), np.float64),
        ((pl.Decimal(10, 2), pl.Int64), np.float64),
    ],
)
def test_parquet_keeps_the_type_of_numbers(tmp_path, dtypes, expected):
    columns = {f"c{k}": pl.Series([1, 0, 1]).cast(dtype) for k, dtype in enumerate(dtypes)}
    pl.DataFrame({**columns, "label": [0, 1, 0]}).write_parquet(tmp_path / "d.parquet")
    table = read_table(tmp_path / "d.parquet", target="label")
    assert table.X.dtype == expected
    np.testing.assert_array_equal(table.X, [[1, 1], [0, 0], [1, 1]])


@pytest.mark.parametrize("dtype", [pl.Categorical, pl.Enum(["u", "v"])])
def test_categories_are_labels(tmp_path, dtype):
    frame = pl.DataFrame({"a": [1.0, 2.0], "label": pl.Series(["u", "v"]).cast(dtype)})
    frame.write_parquet(tmp_path / "d.parquet")
    assert read_table(tmp_path / "d.parquet", target="label").y.tolist() == ["u", "v"]


def test_dates_are_not_numeric(tmp_path):
    pl.DataFrame({"day": pl.Series([1, 2]).cast(pl.Date), "label": [0, 1]}).write_parquet(tmp_path / "d.parquet")
    assert "'day' (Date)" in refused(tmp_path / "d.parquet")
    assert "has type Date" in refused(tmp_path / "d.parquet", target="day")


def test_columns_with_missing_values_are_counted(write, tmp_path):
    columns = {f"c{k}": [1.0, None] for k in range(9)}
    pl.DataFrame({**columns, "label": [0, 1]}).write_parquet(tmp_path / "d.parquet")
    assert "in 9 of 9 feature columns: 'c0', 'c1', 'c2' and 6 more" in refused(tmp_path / "d.parquet")
    pl.DataFrame({"a": [None, None], "label": [0, 1]}).write_parquet(tmp_path / "d.parquet")
    assert "missing or infinite in 1 of 1" in refused(tmp_path / "d.parquet")
    assert "missing or infinite in 1 of 1" in refused(write("a,label\n,0\n,1\n"))


# ---- ARFF


def test_arff_has_ids_missing_values_and_nominal_numbers(write):
    head = "@relation r\n@attribute id string\n@attribute bit {0,1}\n@attribute color {red, 'dark blue'}\n"
    path = write(head + "@attribute y {a,b}\n@data\n'n, 1',0,red,a\nn2,1,'dark blue',b\nn3,?,red,a\n", "d.arff")
    assert "1 of 2 columns is not numeric: 'color' ('red' in data row 1)" in refused(path, target="y")
    assert "'bit' (first in data row 3)" in refused(path, target="y", ignore=["color"], id_column="id")
    path.write_text(path.read_text().replace("?", "1"))
    table = read_table(path, target="color", ignore=["y"], id_column="id")
    assert (table.X.ravel().tolist(), table.y.tolist()) == ([0, 1, 1], ["red", "dark blue", "red"])
    assert table.ids.tolist() == ["n, 1", "n2", "n3"]


def test_arff_errors(write):
    assert "no line @data" in refused(write("@relation r\n@attribute a numeric\n", "d.arff"))
    assert "'@attribute'" in refused(write("@relation r\n@attribute\n@data\n1\n", "d.arff"))
    head = "@relation r\n@attribute a numeric\n@attribute label {u,v}\n@data\n"
    assert "data row 2 has 3 cells" in refused(write(head + "1,u\n1,2,v\n", "d.arff"))
    assert "sparse rows, which are not read" in refused(write(head + "{0 1}\n{0 2}\n", "d.arff"))
    assert "no rows" in refused(write(head, "d.arff"))


# ---- expression matrices


def gct(version="#1.2", sizes="3\t4", head="Name\tDescription", annotation="", description="some gene"):
    rows = [f"{name}\t{description}\t" + "\t".join(map(str, row)) for name, row in zip(NAMES, X.T, strict=True)]
    return "\n".join([version, sizes, "\t".join([head, *IDS]), *([annotation] if annotation else []), *rows]) + "\n"


def test_gct(write):
    labels = write("who,label\n" + "".join(f"{name},{label}\n" for name, label in zip(IDS, Y, strict=True)), "l.csv")
    assert_same(read_table(write(gct(), "t.gct"), target_file=labels), IDS)
    assert_same(read_table(write(gzip.compress(gct().encode()), "t.gct.gz"), target_file=labels), IDS)
    annotation = "\t".join(["label", "na", "na", *Y])
    path = write(gct("#1.3", "3\t4\t2\t1", "id\tsymbol\tplace", annotation, "TP53\t5 q"), "t.gct")
    assert_same(read_table(path, target="label"), IDS)
    assert "choose the target: a row" in refused(path, target=None)
    assert "annotates its samples with 'label'" in refused(path, target=None)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (gct("#9"), "its first line is '#9', not #1.2 or #1.3"),
        (gct(sizes="3\t5"), "and its header has 6 cells"),
        (gct(sizes="many"), "and its header has 6 cells"),
        (gct(sizes="4\t4"), "claims 4 rows and has 3: is the file complete?"),
        ("", "its first line is ''"),
    ],
)
def test_gct_errors(write, content, reason):
    assert reason in refused(write(content, "t.gct"))


SERIES = "\n".join(
    [
        '!Series_title\t"A study"',
        "",
        '!Sample_title\t"a"\t"b"\t"c"\t"d"',
        '!Sample_characteristics_ch1\t"tissue: liver"\t"tissue: liver"\t"tissue: lung"\t"tissue: liver"',
        "\t".join(["!Sample_characteristics_ch1", *(f'"label: {label}"' for label in Y)]),
        '!Sample_characteristics_ch1\t"age: 3"\t"sex: f"\t"age: 4"\t"sex: m"',
        "!series_matrix_table_begin",
        '"ID_REF"\t"S1"\t"S2"\t"S3"\t"S4"',
        *(f'"{name}"\t' + "\t".join(map(str, row)) for name, row in zip(NAMES, X.T, strict=True)),
        "!series_matrix_table_end",
        "",
    ]
)


def test_a_series_matrix_of_geo(write):
    assert_same(read_table(write(SERIES, "GSE1_series_matrix.txt"), target="label"), IDS)
    path = write(gzip.compress(SERIES.encode()), "GSE1_series_matrix.txt.gz")
    assert_same(read_table(path, target="label"), IDS)
    assert read_table(path, target="tissue").y.tolist() == ["liver", "liver", "lung", "liver"]
    assert read_table(path, target="characteristics_ch1").y.tolist() == ["age: 3", "sex: f", "age: 4", "sex: m"]
    assert "annotates its samples with 'title', 'tissue', 'label' and 1 more" in refused(path, target=None)
    cut = SERIES.replace("!series_matrix_table_end\n", "")
    assert "ends before !series_matrix_table_end: is the file complete?" in refused(write(cut, "s.txt"))
    bare = "\n".join(line for line in SERIES.splitlines() if not line.startswith(('"a', '"b', '"c')))
    expected = "contains no values: the values of this study are in its supplementary files"
    assert expected in refused(write(bare, "s.txt"))


# ---- Excel


def test_excel(write, tmp_path):
    pytest.importorskip("fastexcel", reason="reading Excel needs the excel extra")
    xlsxwriter = pytest.importorskip("xlsxwriter")
    path = tmp_path / "t.xlsx"
    rows = [["sample", *NAMES, "label"], [], *([*row] for row in zip(IDS, *X.T, Y, strict=True))]
    with xlsxwriter.Workbook(path) as book:
        sheet = book.add_worksheet("values")
        for row, cells in enumerate(rows):
            for column, cell in enumerate(cells):
                sheet.write(row, column, cell)
    assert_same(read_table(path, target="label"), IDS)
    assert read_table(path, target="a", ignore=["label"]).y.tolist() == X[:, 0].tolist()

    transposed = [["gene", *IDS], ["label", *Y], *([name, *row] for name, row in zip(NAMES, X.T, strict=True))]
    with xlsxwriter.Workbook(tmp_path / "transposed.xlsx") as book:
        sheet = book.add_worksheet("transposed")
        for row, cells in enumerate(transposed):
            for column, cell in enumerate(cells):  # numbers as text with decimal commas
                sheet.write(row, column, cell if isinstance(cell, str) else str(cell).replace(".", ","))
        book.add_worksheet("notes").write(0, 0, "nothing")
    table = read_table(tmp_path / "transposed.xlsx", target="label", features_in="rows")
    assert_same(table, IDS)
    assert "2 sheets: the first, 'transposed', is read" in table.notes[0]
    assert "cannot be read as Excel" in refused(write(path.read_bytes()[:300], "cut.xlsx"))


def test_excel_without_its_extra_is_one_sentence(write, monkeypatch):
    monkeypatch.setitem(sys.modules, "fastexcel", None)
    with pytest.raises(ImportError, match=r"pip install 'probewise\[excel\]'"):
        read_table(write(b"PK", "t.xlsx"), target="label")


# ---- svmlight, NPZ, AnnData


@pytest.mark.parametrize("name", ["d.libsvm", "d.svmlight", "d.svm"])
@pytest.mark.parametrize("zero_based", [True, False])
def test_svmlight_stays_sparse_and_keeps_its_column_numbers(tmp_path, name, zero_based):
    dump_svmlight_file(X, [1, -1, 1, -1], str(tmp_path / name), zero_based=zero_based)
    table = read_table(tmp_path / name)
    assert sp.issparse(table.X)
    np.testing.assert_array_equal(table.X.toarray(), X)
    assert table.feature_names == (["0", "1", "2"] if zero_based else ["1", "2", "3"])
    assert table.y.tolist() == [1, -1, 1, -1]
    assert table.y.dtype.kind == "i"
    assert read_table(tmp_path / name, ignore=[table.feature_names[1]]).X.shape == (4, 2)
    assert table.frame() is table.X


def test_svmlight_targets_and_errors(write):
    assert read_table(write("0.5 1:2\n1 2:1\n", "d.svm")).y.tolist() == [0.5, 1]
    assert "cannot be read as svmlight" in refused(write("1 2:x\n", "d.svm"), target=None)
    assert "'3' (first in data row 2)" in refused(write("1 1:1\n0 1:2 3:nan\n", "d.svm"), target=None)


def test_feature_names_for_formats_without_names(tmp_path, write):
    dump_svmlight_file(np.array([[1.0, 0, 2], [0, 3, 0]]), [0, 1], str(tmp_path / "t.svm"), zero_based=False)
    words = write("apple\nbanana\tfruit\ncherry\n\n", "words.txt")
    table = read_table(tmp_path / "t.svm", feature_names=words, ignore=["banana"])
    assert table.feature_names == ["apple", "cherry"]
    assert table.X.toarray().tolist() == [[1, 2], [0, 0]]
    longer = read_table(tmp_path / "t.svm", feature_names=["a", "b", "c", "d"])
    assert longer.feature_names == ["a", "b", "c"]
    assert longer.notes == ("'a' is read as the name of column 1, and 'c' of the last one, 3",)
    message = refused(tmp_path / "t.svm", feature_names=["a", "b"], target=None)
    assert "feature_names has 2 names for the 3 columns" in message
    np.savez(tmp_path / "t.npz", X=np.eye(3), y=[0, 1, 0])
    assert read_table(tmp_path / "t.npz", feature_names=list("abc")).feature_names == ["a", "b", "c"]
    assert "feature_names has 4 names for the 3" in refused(tmp_path / "t.npz", feature_names=list("abcd"), target=None)
    assert "has feature names: do not use feature_names" in refused(write("a,label\n1,2\n"), feature_names=words)
    assert "there is no file" in refused(write("a,label\n1,2\n"), feature_names="none.txt")


def save(path, **arrays):
    np.savez(path, **arrays)
    return path


def test_npz_contains_target_names_and_classes(tmp_path):
    path = save(tmp_path / "d.npz", X=X, y=[1, 2, 1, 3], feature_names=NAMES, class_names=["u", "v", "w"], other=[1, 2])
    table = read_table(path)
    assert (table.y.tolist(), table.feature_names, table.target) == (["u", "v", "u", "w"], NAMES, "y")
    plain = read_table(save(tmp_path / "d.npz", X=X.astype(np.float32), y=[0, 1, 0, 1], class_names=["u", "v", "w"]))
    assert (plain.y.tolist(), plain.feature_names, plain.X.dtype) == ([0, 1, 0, 1], ["0", "1", "2"], np.float32)


@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_npz_contains_sparse_matrices(tmp_path, kind):
    matrix = sp.csr_matrix(X)
    parts = {part: getattr(matrix, part) for part in ("data", "indices", "indptr", "shape")}
    table = read_table(save(tmp_path / "d.npz", **parts, y=[0, 1, 0, 1]))
    assert (matrix != table.X).nnz == 0
    sp.save_npz(tmp_path / "m.npz", matrix.asformat(kind))
    (tmp_path / "y.csv").write_text("y\n0\n1\n0\n1\n")
    table = read_table(tmp_path / "m.npz", target_file=tmp_path / "y.csv")
    assert table.X.format == "csr"
    assert (matrix != table.X).nnz == 0


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [
        ({"X": X, "y": [1, 2]}, "y in .* has shape"),
        ({"X": X, "y": [1, 2, 3, 4], "feature_names": ["a"]}, "1 feature_names for 3 columns"),
        ({"X": np.array([[1.0], [np.nan]]), "y": [0, 1]}, "'0' .first in data row 2"),
        ({"X": X, "y": [0, 1, np.nan, 1]}, "first: data row 3"),
    ],
)
def test_npz_errors(tmp_path, arrays, reason):
    assert re.search(reason, refused(save(tmp_path / "d.npz", **arrays), target=None))


def test_h5ad_without_anndata_is_one_sentence(write, monkeypatch):
    monkeypatch.setitem(sys.modules, "anndata", None)
    with pytest.raises(ImportError, match=r"reading \.h5ad files needs anndata: pip install anndata"):
        read_table(write("", "d.h5ad"), target="kind")


@pytest.mark.parametrize("matrix", [X, sp.csr_matrix(X), sp.csc_matrix(X)], ids=["dense", "csr", "csc"])
def test_h5ad_genes_are_features_and_obs_contains_the_target(tmp_path, matrix):
    anndata = pytest.importorskip("anndata", reason="anndata is not installed")
    import pandas as pd

    cells = [f"cell{k}" for k in range(4)]
    obs = pd.DataFrame({"kind": pd.Categorical(Y), "depth": [1, 2, 3, 4], "hole": ["p", None, "q", "q"]}, index=cells)
    anndata.AnnData(matrix, obs=obs, var=pd.DataFrame(index=NAMES)).write_h5ad(tmp_path / "d.h5ad")
    table = read_table(tmp_path / "d.h5ad", target="kind", id_column="obs_names")
    assert sp.issparse(table.X) == sp.issparse(matrix)
    np.testing.assert_array_equal(dense(table.X), X)
    assert (table.y.tolist(), table.feature_names, table.ids.tolist()) == (Y.tolist(), NAMES, cells)
    assert read_table(tmp_path / "d.h5ad", target="depth", ignore=["b b"]).feature_names == ["a", "c"]
    assert "did you mean 'kind'?" in refused(tmp_path / "d.h5ad", target="kin")
    assert "first: data row 2" in refused(tmp_path / "d.h5ad", target="hole")
