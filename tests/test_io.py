"""Tables come in as they are meant, and what cannot be ranked is refused in one clear line."""

import gzip
import json
import re
import sys

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from probewise.io import (
    Table,
    TableError,
    read_table,
    require_ranking_path,
    require_table_path,
    write_ranking,
    write_table,
)

HEADER = "a,b,label\n"


def pack(path, text):
    """Writes text, packed as the name says."""
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    elif path.suffix == ".zst":
        with pa.OSFile(str(path), "wb") as file, pa.CompressedOutputStream(file, "zstd") as packed:
            packed.write(text.encode())
    else:
        path.write_text(text)


@pytest.fixture
def write(tmp_path):
    """Puts text into a file and gives its path."""

    def put(text, name="data.csv"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return put


def refusal(path, **options):
    with pytest.raises(TableError) as caught:
        read_table(path, **{"target": "label", **options})
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_csv_gives_numbers_labels_and_names(write):
    table = read_table(write(HEADER + "1,0.5,yes\n2,1.5,no\n"), target="label")
    assert table.X.dtype == np.float64
    np.testing.assert_array_equal(table.X, [[1, 0.5], [2, 1.5]])
    assert table.y.tolist() == ["yes", "no"]
    assert table.feature_names == ["a", "b"]
    assert table.target == "label"


def test_codes_that_are_apart_only_as_words_stay_apart(write):
    path = write("code,same,label\n01234,001,7\n1234,002,07\n0042,010,7\n")
    table = read_table(path, target="label", categorical=["code", "same"])
    assert table.levels[0] == ["0042", "01234", "1234"]
    assert table.X[:, 0].tolist() == [1, 2, 0]
    assert table.y.tolist() == ["7", "07", "7"]
    assert read_table(path, target="same").y.tolist() == [1, 2, 10]  # none of these merge as numbers


HEADERLESS = {
    "numbers": "5.1,3.5,0\n4.9,3.6,1\n5.3,3.4,0\n5.0,3.5,1\n",
    "words": "5.1,3.5,a\n4.9,3.6,b\n5.3,3.4,a\n5.0,3.5,b\n",
    "quoted": '"5.1","3.5","a"\n"4.9","3.6","b"\n"5.3","3.4","a"\n',
    "named rows": "s1,5.1,a\ns2,4.9,b\ns3,5.3,a\n",
    "a gap": "NA,3.5,a\n4.9,3.6,b\n5.3,3.4,a\n",
    "extremes": "5.1,3.5,9,2.1,0\n4.9,3.6,3,2.0,1\n5.3,3.4,5,2.2,0\n",
    "a quantity": "5.1,3.5,1.31\n4.9,3.6,1.02\n5.3,3.4,1.63\n",
}


@pytest.mark.parametrize("text", HEADERLESS.values(), ids=HEADERLESS)
def test_a_first_line_of_data_is_not_lost(write, text):
    assert "holds data, not names: put a header above it" in refusal(write(text), target="2")


@pytest.mark.parametrize("header", ["0,1,2", "1,2,3", "400,402.5,label", "5.1,3.5,label", "700,3.5,0", "NA,3.5,label"])
def test_a_header_may_be_of_numbers(write, header):
    rows = HEADERLESS["numbers"].splitlines()
    assert read_table(write("\n".join([header, *rows])), target="2").X.shape == (4, 2)


@pytest.mark.parametrize("name", ["data.tsv", "data.txt", "DATA.TSV"])
def test_tab_separated_text(write, name):
    table = read_table(write("a\tlabel\n1\t0\n2\t1\n", name), target="label")
    assert table.X.ravel().tolist() == [1, 2]


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("name", ["data.csv", "data.txt"])
def test_the_separator_is_found_where_the_name_misleads(write, name, separator):
    path = write(separator.join(["a", "b", "label"]) + "\n" + separator.join("123") + "\n", name)
    assert read_table(path, target="label").X.tolist() == [[1, 2]]


@pytest.mark.parametrize("name", ["d.csv.gz", "d.tsv.gz", "d.csv.zst", "d.txt.zst"])
def test_compressed_text(tmp_path, name):
    separator = "," if "csv" in name else "\t"
    pack(tmp_path / name, f"a{separator}label\r\n1{separator}0\r\n\r\n2{separator}1")
    table = read_table(tmp_path / name, target="label")
    assert (table.X.tolist(), table.y.tolist()) == ([[1], [2]], [0, 1])


def test_the_format_is_known_by_the_end_of_a_long_name(tmp_path):
    (tmp_path / "my.data.CSV.GZ").write_bytes(gzip.compress(b"a,label\n1,0\n"))
    assert read_table(tmp_path / "my.data.CSV.GZ", target="label").X.tolist() == [[1]]


@pytest.mark.parametrize(
    ("kinds", "expected"),
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
def test_parquet_keeps_the_type_of_numbers(tmp_path, kinds, expected):
    columns = {f"c{k}": pl.Series([1, 0, 1]).cast(kind) for k, kind in enumerate(kinds)}
    pl.DataFrame({**columns, "label": [0, 1, 0]}).write_parquet(tmp_path / "d.parquet")
    table = read_table(tmp_path / "d.parquet", target="label")
    assert table.X.dtype == expected
    np.testing.assert_array_equal(table.X, [[1, 1], [0, 0], [1, 1]])


def test_integers_stay_integers_and_truth_values_become_0_and_1(write):
    table = read_table(write("a,b,label\n1,true,0\n5,false,1\n"), target="label")
    assert table.X.dtype.kind == "i"
    assert table.X.tolist() == [[1, 1], [5, 0]]
    assert table.y.dtype.kind == "i"


def test_a_column_that_turns_fractional_late_is_read_in_full(write):
    text = "a,label\n" + "1,0\n" * 2000 + "0.5,1\n"
    assert read_table(write(text), target="label").X[-1, 0] == 0.5


def test_blanks_around_numbers_and_a_blank_last_line_do_no_harm(write):
    table = read_table(write("a,label\n1, 0\n 2.5, 1\n\n"), target="label")
    assert table.X.ravel().tolist() == [1, 2.5]
    assert table.y.tolist() == [0, 1]


@pytest.mark.parametrize("kind", [pl.Categorical, pl.Enum(["u", "v"])])
def test_categories_are_labels(tmp_path, kind):
    frame = pl.DataFrame({"a": [1.0, 2.0], "label": pl.Series(["u", "v"]).cast(kind)})
    frame.write_parquet(tmp_path / "d.parquet")
    assert read_table(tmp_path / "d.parquet", target="label").y.tolist() == ["u", "v"]


def test_a_column_number_serves_where_no_column_has_that_name(write):
    path = write("a,1,label\n1,2,3\n")
    assert read_table(path, target="2").target == "label"
    assert read_table(path, target="1").target == "1"
    assert read_table(path, target="label", ignore=["0"]).feature_names == ["1"]


def test_ignored_columns_are_left_out_whatever_they_hold(write):
    path = write("id,a,note,label\nx,1,,0\ny,2,hello,1\n")
    assert read_table(path, target="label", ignore=["id", "note"]).feature_names == ["a"]


def test_unusual_names_survive(tmp_path):
    names = ["[red]x", "a,b", 'say "hi"', "žluťoučký", " spaced ", "two\nlines", ":smile:"]
    frame = pl.DataFrame({name: [1.0, 2.0] for name in names}).with_columns(label=pl.Series([0, 1]))
    frame.write_csv(tmp_path / "odd [1] *.csv")
    table = read_table(tmp_path / "odd [1] *.csv", target="label")
    assert table.feature_names == names
    assert table.frame().columns == names


@pytest.mark.parametrize("n_rows", [1, 2, 3])
def test_the_frame_is_the_matrix_with_names_and_shares_its_memory(write, n_rows):
    table = read_table(write(HEADER + "1,0.5,yes\n" * n_rows), target="label")
    back = table.frame().to_numpy()
    np.testing.assert_array_equal(back, table.X)
    assert np.shares_memory(back, table.X)


def test_missing_file(tmp_path):
    for beside in ("genes.csv", "genes.tsv", "other.txt"):
        (tmp_path / beside).touch()
    assert refusal(tmp_path / "no.csv") == f"there is no file {tmp_path / 'no.csv'}"
    asked = tmp_path / "gens.csv"
    assert refusal(asked) == f"there is no file {asked}: did you mean 'genes.csv', 'genes.tsv'?"
    asked = tmp_path / "nowhere" / "genes.csv"
    assert refusal(asked) == f"there is no file {asked}"


def test_a_folder_is_no_file(tmp_path):
    (tmp_path / "d.csv").mkdir()
    assert "is a folder" in refusal(tmp_path / "d.csv")


@pytest.mark.parametrize("name", ["data.xls", "data", "data.gz", "data.parquet.gz"])
def test_unknown_format(write, name):
    message = refusal(write("a,label\n1,2\n", name))
    assert "name it .csv, .tsv, .txt, .arff, .parquet, .arrow, .feather, .ipc, .libsvm" in message
    assert ".npy, .h5ad, .gct or .xlsx (text also with .gz, .bz2, .xz or .zst)" in message


def test_a_file_that_is_not_what_its_name_says(write):
    assert "cannot be read as Parquet" in refusal(write("a,label\n1,2\n", "bad.parquet"))


@pytest.mark.parametrize("name", ["d.csv", "d.csv.gz", "d.csv.zst", "d.libsvm"])
def test_an_empty_file_is_called_empty(tmp_path, name):
    pack(tmp_path / name, "")
    assert refusal(tmp_path / name) == f"{tmp_path / name} is empty"


@pytest.mark.parametrize(
    ("text", "row", "n_cells"),
    [
        ("a,b,label\n1,2,0\n3,4,5,1\n", 2, 4),
        ("a,b,label\n1,2,0\n\n3,4\n", 2, 2),
        ('a,b,label\n1,2,"x, y"\n1,2,x, y\n', 2, 4),
        ("a,b,label\n1,2,3,4\n1,2,3\n", 1, 4),
        ("a,b,label\n" + "1,2,0\n" * 5000 + "1,2\n", 5001, 2),
    ],
)
def test_a_ragged_row_is_named(write, text, row, n_cells):
    assert f"data row {row:,} has {n_cells} cells and the header 3" in refusal(write(text))


def test_a_quote_left_open_is_told(write):
    assert "is a quote left open?" in refusal(write('a,label\n1,"u\n' + "1,v\n" * 50_000))
    assert "data row 1 has" not in refusal(write('a,b,label\n1,2,u\n1,"2,v\n1,2,w\n'))


@pytest.mark.parametrize(
    ("header", "ignore", "reason"),
    [
        ("a,b,a,label", (), "the name 'a' stands for columns 0 and 2, counted from 0: rename one"),
        ("a,b,label,label", (), "column 3 has the name of the target, 'label'"),
        ("a,b,a,label", ["b"], "columns 0 and 2"),
    ],
)
def test_names_given_twice_are_told(write, header, ignore, reason):
    assert reason in refusal(write(f"{header}\n1,2,3,0\n4,5,6,1\n"), ignore=ignore)


def test_a_name_given_twice_is_settled_by_ignoring_a_column_by_its_number(write):
    table = read_table(write("a,b,a,label\n1,2,3,0\n4,5,6,1\n"), target="label", ignore=["2"])
    assert table.feature_names == ["a", "b"]
    assert table.X.tolist() == [[1, 2], [4, 5]]


def test_text_in_another_encoding(tmp_path):
    path = tmp_path / "d.csv"
    path.write_bytes("a,label\n1,caf\u00e9\n".encode("latin-1"))
    assert "is no text in UTF-8 (byte 0xe9 after ',label\\n1,caf'): save it as UTF-8" in refusal(path)


def test_what_spreadsheets_save(tmp_path):
    for encoding in ("utf-8-sig", "utf-16"):
        path = tmp_path / f"{encoding}.csv"
        path.write_bytes("a;label\r\n1;café\r\n2;thé\r\n;\r\n".encode(encoding))
        table = read_table(path, target="label")
        assert (table.feature_names, table.X.tolist(), table.y.tolist()) == (["a"], [[1], [2]], ["café", "thé"])


@pytest.mark.parametrize("name", ["d.csv.gz", "d.csv.zst"])
@pytest.mark.parametrize("cut", [False, True])
def test_a_packed_file_that_is_damaged(tmp_path, name, cut):
    path = tmp_path / name
    pack(path, HEADER + "".join(f"{k},{k * k % 97},{k % 2}\n" for k in range(9000)))
    path.write_bytes(path.read_bytes()[:-2000] if cut else b"no archive at all")
    assert "is the file whole?" in refusal(path)


def test_no_rows(write):
    assert "no rows" in refusal(write("a,label\n"))


def test_no_features(write):
    assert "no columns beside the target" in refusal(write("label\n1\n2\n"))


@pytest.mark.parametrize(("asked", "meant"), [("lable", "'label'"), ("LABEL", "'label'"), ("aa", "'a'")])
def test_a_missing_target_suggests_what_may_be_meant(write, asked, meant):
    message = refusal(write(HEADER + "1,2,0\n"), target=asked)
    assert f"no target column {asked!r}" in message
    assert f"did you mean {meant}" in message


@pytest.mark.parametrize("asked", ["zzz", "3", "-1", "²"])
def test_a_missing_target_with_nothing_like_it_lists_columns(write, asked):
    assert "its columns are 'a', 'b', 'label'" in refusal(write(HEADER + "1,2,0\n"), target=asked)


def test_ignoring_what_is_not_there_or_is_the_target(write):
    path = write(HEADER + "1,2,0\n")
    assert "no ignored column 'c'" in refusal(path, ignore=["c"])
    assert "both the target and ignored" in refusal(path, ignore=["label"])


def test_text_columns_are_named_and_counted(write):
    columns = "abcdef"
    path = write(f"{','.join(columns)},g,label\n{','.join(columns)},1,0\n")
    message = refusal(path)
    assert "6 of 7 columns hold other than numbers" in message
    assert "'a' ('a' in data row 1), 'b' ('b' in data row 1), 'c' ('c' in data row 1) and 3 more" in message
    assert "(ignore" in message


def test_dates_hold_no_numbers(tmp_path):
    pl.DataFrame({"day": pl.Series([1, 2]).cast(pl.Date), "label": [0, 1]}).write_parquet(tmp_path / "d.parquet")
    assert "'day' (Date)" in refusal(tmp_path / "d.parquet")
    assert "is of type Date" in refusal(tmp_path / "d.parquet", target="day")


@pytest.mark.parametrize("hole", ["", "NA", "nan", "?", "NaN", "null", "inf", "-inf"])
def test_missing_values_are_named_with_their_row(write, hole):
    message = refusal(write(f"a,b,label\n1,2,0\n3,{hole},1\n5,6,0\n"))
    assert "in 1 of 2 feature columns: 'b' (first in data row 2)" in message


def test_many_columns_with_missing_values_are_counted(tmp_path):
    columns = {f"c{k}": [1.0, None] for k in range(9)}
    pl.DataFrame({**columns, "label": [0, 1]}).write_parquet(tmp_path / "d.parquet")
    assert "in 9 of 9 feature columns: 'c0', 'c1', 'c2' and 6 more" in refusal(tmp_path / "d.parquet")


def test_a_column_without_any_value(write, tmp_path):
    assert "missing or infinite in 1 of 1" in refusal(write("a,label\n,0\n,1\n"))
    pl.DataFrame({"a": [None, None], "label": [0, 1]}).write_parquet(tmp_path / "d.parquet")
    assert "missing or infinite in 1 of 1" in refusal(tmp_path / "d.parquet")


@pytest.mark.parametrize(("first", "hole"), [("yes", ""), ("1.5", ""), ("1.5", "nan"), ("1", "NA"), ("2", "inf")])
def test_missing_target_values_are_named_by_row(write, first, hole):
    message = refusal(write(f"a,label\n1,{first}\n2,{hole}\n3,{first}\n"))
    assert "the target 'label' is missing or infinite in 1 of 3 rows (first: data row 2)" in message


def test_a_saved_row_index_is_not_ranked_unseen(write):
    path = write(",a,label\n0,1,0\n1,2,1\n")
    assert "ignore=['0']" in refusal(path)
    assert read_table(path, target="label", ignore=["0"]).feature_names == ["a"]


# ---- text, cell by cell


def test_numbers_are_read_to_the_last_bit(write):
    values = np.random.default_rng(0).standard_normal((50, 40)) * 10.0 ** np.arange(-20, 20)
    lines = [",".join(map(repr, row)) + ",0" for row in values.tolist()]
    text = ",".join(f"c{k}" for k in range(40)) + ",label\n" + "\n".join(lines)
    np.testing.assert_array_equal(read_table(write(text), target="label").X, values)


@pytest.mark.parametrize("separator", [",", "\t", ";"])
def test_quotes_hide_separators_and_line_ends(write, separator):
    rows = [
        ["id", "a", "b", "label"],
        ["x", "1", "2", "u, v; w\t"],
        ["y", "3", "4", 'say "hi"'],
        ["z", "5", "6", "p\nq"],
    ]
    text = "\n".join(separator.join('"' + cell.replace('"', '""') + '"' for cell in row) for row in rows)
    table = read_table(write(text), target="label", ignore=["id"])
    assert table.X.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert table.y.tolist() == ["u, v; w", 'say "hi"', "p\nq"]


def test_quotes_may_begin_late(write):
    text = "a,label\n" + "1,u\n" * 3000 + '2,"u"\n' + '3,"v, w"\n' * 3000
    table = read_table(write(text), target="label")
    assert np.unique(table.X, return_counts=True)[1].tolist() == [3000, 1, 3000]
    assert np.unique(table.y).tolist() == ["u", "v, w"]


def test_a_table_as_r_writes_it_has_row_names_without_a_name(write):
    path = write('"a"\t"label"\n"r1"\t1\t"u"\n"r2"\t2\t"v"\n', "d.txt")
    for table in (read_table(path, target="label", ignore=["0"]), read_table(path, target="label")):
        assert (table.feature_names, table.X.tolist(), table.y.tolist()) == (["a"], [[1], [2]], ["u", "v"])
    assert (table.ids.tolist(), table.id_column) == (["r1", "r2"], "id")
    assert "(id_column='0')" in "".join(map(str, table.notes[0]))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["1", "2"], [1, 2]),
        (["1.0", "2"], [1.0, 2.0]),
        (["true", "False"], [True, False]),
        (["none", "mild"], ["none", "mild"]),
        (["1", "b"], ["1", "b"]),
        (["007", "008"], [7, 8]),
        ([str(2**62 + 1), "0"], [2**62 + 1, 0]),
    ],
)
def test_the_target_is_numbers_or_labels(write, words, expected):
    y = read_table(write("a,label\n" + "".join(f"1,{word}\n" for word in words)), target="label").y
    assert y.tolist() == expected
    assert isinstance(y.tolist()[0], type(expected[0]))


@pytest.mark.filterwarnings("ignore:column 'b' of X holds whole numbers")
@pytest.mark.parametrize(("cells", "kind"), [("1,2", "i"), ("1,2.0", "f"), ("1,2e3", "f"), (f"1,{2**60}", "f")])
def test_whole_numbers_stay_whole(write, cells, kind):
    assert read_table(write(f"a,b,label\n{cells},0\n{cells},1\n"), target="label").X.dtype.kind == kind


def test_one_text_column_in_a_hundred_thousand_is_named(write):
    names = [f"gene{k}" for k in range(100_000)]
    rows = [["1.5"] * 100_000 for _ in range(3)]
    rows[1][70_000] = "a bad cell"
    text = "\n".join([",".join([*names, "label"]), *(",".join([*row, "u"]) for row in rows)])
    path = write(text)
    message = refusal(path)
    assert "1 of 100,000 columns hold other than numbers: 'gene70000' ('a bad cell' in data row 2)" in message
    assert "(ignore=['gene70000'])" in message
    assert read_table(path, target="label", ignore=["gene70000"]).X.shape == (3, 99_999)


def test_a_large_file_tells_how_far_it_is(write, monkeypatch):
    monkeypatch.setattr("probewise.io.unpacking.CHARACTERS_AT_A_TIME", 20_000)
    monkeypatch.setattr("probewise.io.unpacking.QUIET_SECONDS", 0)
    told = []
    path = write(HEADER + "1.5,2.5,yes\n" * 10_000)
    assert read_table(path, target="label", progress=told.append).X.shape == (10_000, 2)
    assert told[0].startswith("reading data.csv: ")
    shares = [int(line.split()[-1].rstrip("%")) for line in told]
    assert len(shares) > 3
    assert shares == sorted(shares)


# ---- one table, many formats

X = np.array([[1.5, 0.0, -2.0], [0.0, 3.25, 0.0], [4.0, 0.0, 1e-9], [0.5, 7.0, 0.0]])
Y = np.array(["u", "v", "u", "w w"])
NAMES = ["a", "b b", "c"]
FRAME = pl.from_numpy(X, schema=NAMES, orient="row").with_columns(label=pl.Series(Y))


def dense_arff(path):
    kinds, quoted = ["real", "NUMERIC", "numeric"], ["u", "v", "u", "'w w'"]
    attributes = [f"@attribute '{name}' {kind}" for name, kind in zip(NAMES, kinds, strict=True)]
    rows = [",".join(map(repr, row)) + f", {label}" for row, label in zip(X.tolist(), quoted, strict=True)]
    pack(
        path,
        "\n".join(
            ["% a comment", "@RELATION t", *attributes, "@Attribute label {u,v,'w w'}", "", "@DATA", *rows, "% end"]
        ),
    )


def sparse_arff(path):
    attributes = [f"@attribute '{name}' numeric" for name in NAMES]
    rows = []
    for row, label in zip(X.tolist(), Y.tolist(), strict=True):
        cells = [f"{k} {value!r}" for k, value in enumerate(row) if value]
        rows.append("{" + ", ".join([*cells, *([] if label == "u" else [f"3 '{label}'"])]) + "}")
    pack(path, "\n".join(["@relation t", *attributes, "@attribute label {u,v,'w w'}", "@data", *rows]))


WRITERS = {
    "t.csv": FRAME.write_csv,
    "t.tsv": lambda path: FRAME.write_csv(path, separator="\t"),
    "t.txt": lambda path: FRAME.write_csv(path, separator="\t", quote_style="always"),
    "t.csv.gz": lambda path: pack(path, FRAME.write_csv()),
    "t.csv.zst": lambda path: pack(path, FRAME.write_csv()),
    "t.parquet": FRAME.write_parquet,
    "t.arrow": FRAME.write_ipc,
    "t.ipc": FRAME.write_ipc_stream,
    "t.feather": lambda path: pa.feather.write_feather(FRAME.to_arrow(), path, compression="zstd"),
    "t.arff": dense_arff,
    "t.arff.gz": dense_arff,
    "sparse.arff": sparse_arff,
    "t.npz": lambda path: np.savez(path, X=X, label=Y, feature_names=NAMES),
}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("target", ["label", "3"])
def test_each_format_gives_the_same_table(tmp_path, name, target):
    WRITERS[name](tmp_path / name)
    table = read_table(tmp_path / name, target=target)
    assert sp.issparse(table.X) == (name == "sparse.arff")
    np.testing.assert_array_equal(table.X.toarray() if sp.issparse(table.X) else table.X, X)
    assert (table.y.tolist(), table.feature_names, table.target) == (Y.tolist(), NAMES, "label")


@pytest.mark.parametrize("name", WRITERS)
def test_each_format_can_leave_columns_out_and_names_what_is_missing(tmp_path, name):
    path = tmp_path / name
    WRITERS[name](path)
    table = read_table(path, target="label", ignore=["b b", "0"])
    np.testing.assert_array_equal(table.X.toarray() if sp.issparse(table.X) else table.X, X[:, 2:])
    assert table.feature_names == ["c"]
    assert "did you mean 'label'?" in refusal(path, target="lable")
    assert "say which column is the target (target=...)" in refusal(path, target=None)


@pytest.mark.parametrize(
    ("names", "shown"),
    [("ab", "'a', 'b'"), ("abcde", "'a', 'b', 'c', 'd', 'e'"), ("abcdefgh", "'a', 'b', 'c', 2 more, 'f', 'g', 'h'")],
)
def test_columns_at_both_ends_are_named_where_no_target_is(write, names, shown):
    path = write(f"{','.join(names)}\n{','.join('1' * len(names))}\n")
    assert refusal(path, target=None).endswith(f"has {shown}")


@pytest.mark.parametrize(
    "name", [name for name in WRITERS if name.endswith((".parquet", "arrow", "ipc", "feather", "npz", "arff"))]
)
def test_each_format_is_checked(write, name):
    assert "cannot be read as " in refusal(write("1,2,3\n", name))


def test_arff_has_identifiers_missing_values_and_nominal_numbers(write):
    head = "@relation r\n@attribute id string\n@attribute bit {0,1}\n@attribute colour {red, 'dark blue'}\n"
    path = write(head + "@attribute y {a,b}\n@data\n'n, 1',0,red,a\nn2,1,'dark blue',b\nn3,?,red,a\n", "d.arff")
    assert "1 of 2 columns hold other than numbers: 'colour' ('red' in data row 1)" in refusal(path, target="y")
    assert "'bit' (first in data row 3)" in refusal(path, target="y", ignore=["colour"], id_column="id")
    path.write_text(path.read_text().replace("?", "1"))
    table = read_table(path, target="colour", ignore=["y"], id_column="id")
    assert (table.X.ravel().tolist(), table.y.tolist()) == ([0, 1, 1], ["red", "dark blue", "red"])
    assert table.ids.tolist() == ["n, 1", "n2", "n3"]


def test_arff_faults(write):
    assert "no line @data" in refusal(write("@relation r\n@attribute a numeric\n", "d.arff"))
    assert "'@attribute'" in refusal(write("@relation r\n@attribute\n@data\n1\n", "d.arff"))
    head = "@relation r\n@attribute a numeric\n@attribute label {u,v}\n@data\n"
    assert "data row 2 has 3 cells" in refusal(write(head + "1,u\n1,2,v\n", "d.arff"))
    assert "'7 1' in data row 2" in refusal(write(head + "{0 1}\n{7 1}\n", "d.arff"))
    assert "'a' ('x' in data row 1)" in refusal(write(head + "{0 x}\n{1 v}\n", "d.arff"))
    assert "'a' (first in data row 2)" in refusal(write(head + "{0 1}\n{0 ?,1 v}\n", "d.arff"))
    assert "no rows" in refusal(write(head, "d.arff"))


def test_what_a_sparse_arff_row_leaves_out_is_the_first_value_and_never_taken_for_0(write):
    head = "@relation r\n@attribute a numeric\n@attribute side {left,right}\n@attribute bit {0,1}\n@attribute n {1,2}\n"
    path = write(head + "@data\n{0\t1.5, 1 right}\n{2 1, 3 2}\n", "d.arff")
    table = read_table(path, target="side", ignore=["n"])
    assert (table.X.toarray().tolist(), table.y.tolist()) == ([[1.5, 0], [0, 1]], ["right", "left"])
    assert "'n' ('1' in data row 1)" in refusal(path, target="side")


@pytest.mark.parametrize("name", ["d.libsvm", "d.svmlight", "d.svm"])
@pytest.mark.parametrize("zero_based", [True, False])
def test_svmlight_stays_sparse_and_keeps_its_numbers(tmp_path, name, zero_based):
    dump_svmlight_file(X, [1, -1, 1, -1], str(tmp_path / name), zero_based=zero_based)
    table = read_table(tmp_path / name)
    assert sp.issparse(table.X)
    np.testing.assert_array_equal(table.X.toarray(), X)
    assert table.feature_names == (["0", "1", "2"] if zero_based else ["1", "2", "3"])
    assert table.y.tolist() == [1, -1, 1, -1]
    assert table.y.dtype.kind == "i"
    assert read_table(tmp_path / name, ignore=[table.feature_names[1]]).X.shape == (4, 2)
    assert table.frame() is table.X


def test_svmlight_with_fractions_for_targets(write):
    assert read_table(write("0.5 1:2\n1 2:1\n", "d.svm")).y.tolist() == [0.5, 1]


def test_svmlight_faults(write):
    assert "cannot be read as svmlight" in refusal(write("1 2:x\n", "d.svm"), target=None)
    assert "'3' (first in data row 2)" in refusal(write("1 1:1\n0 1:2 3:nan\n", "d.svm"), target=None)


def save(path, **arrays):
    np.savez(path, **arrays)
    return path


def test_npz_brings_its_target_names_and_classes(tmp_path):
    path = save(tmp_path / "d.npz", X=X, y=[1, 2, 1, 3], feature_names=NAMES, class_names=["u", "v", "w"], other=[1, 2])
    table = read_table(path)
    assert (table.y.tolist(), table.feature_names, table.target) == (["u", "v", "u", "w"], NAMES, "y")
    plain = read_table(save(tmp_path / "d.npz", X=X.astype(np.float32), y=[0, 1, 0, 1], class_names=["u", "v", "w"]))
    assert (plain.y.tolist(), plain.feature_names, plain.X.dtype) == ([0, 1, 0, 1], ["0", "1", "2"], np.float32)


@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_npz_holds_sparse_matrices(tmp_path, kind):
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
        ({"Z": X}, "holds Z: it needs a matrix X"),
        ({"X": X[0]}, "it needs a matrix X"),
        ({"X": X, "y": [1, 2]}, "y in .* is of shape"),
        ({"X": X, "y": [1, 2, 3, 4], "feature_names": ["a"]}, "1 feature_names for 3 columns"),
        ({"X": X.astype(str), "y": [1, 2, 3, 4]}, "give numbers"),
        ({"X": np.array([[None]]), "y": [1]}, "cannot be read as NPZ: Object arrays"),
        ({"data": [1.0], "indices": [9], "indptr": [0, 1], "shape": [1, 2], "y": [0]}, "cannot be read as NPZ"),
        ({"X": np.array([[1.0], [np.nan]]), "y": [0, 1]}, "'0' .first in data row 2"),
        ({"X": X, "y": [0, 1, np.nan, 1]}, "first: data row 3"),
    ],
)
def test_npz_faults(tmp_path, arrays, reason):
    assert re.search(reason, refusal(save(tmp_path / "d.npz", **arrays), target=None))


def test_h5ad_needs_anndata_and_says_so(write, monkeypatch):
    monkeypatch.setitem(sys.modules, "anndata", None)
    with pytest.raises(ImportError, match=r"reading \.h5ad files needs anndata: pip install anndata"):
        read_table(write("", "d.h5ad"), target="kind")


@pytest.mark.parametrize("matrix", [X, sp.csr_matrix(X), sp.csc_matrix(X)], ids=["dense", "csr", "csc"])
def test_h5ad_genes_are_features_and_obs_holds_the_target(tmp_path, matrix):
    anndata = pytest.importorskip("anndata", reason="anndata is not installed")
    import pandas as pd

    cells = [f"cell{k}" for k in range(4)]
    obs = pd.DataFrame({"kind": pd.Categorical(Y), "depth": [1, 2, 3, 4], "hole": ["p", None, "q", "q"]}, index=cells)
    anndata.AnnData(matrix, obs=obs, var=pd.DataFrame(index=NAMES)).write_h5ad(tmp_path / "d.h5ad")
    table = read_table(tmp_path / "d.h5ad", target="kind", id_column="obs_names")
    assert sp.issparse(table.X) == sp.issparse(matrix)
    np.testing.assert_array_equal(table.X.toarray() if sp.issparse(table.X) else table.X, X)
    assert (table.y.tolist(), table.feature_names, table.ids.tolist()) == (Y.tolist(), NAMES, cells)
    assert read_table(tmp_path / "d.h5ad", target="depth", ignore=["b b"]).feature_names == ["a", "c"]
    assert "did you mean 'kind'?" in refusal(tmp_path / "d.h5ad", target="kin")
    assert "first: data row 2" in refusal(tmp_path / "d.h5ad", target="hole")


# ---- the target in a second file


def test_a_second_file_in_the_same_order(write):
    data, labels = write("a,b\n1,2\n3,4\n"), write("label\nyes\nno\n", "labels.csv")
    table = read_table(data, target_file=labels)
    assert (table.X.tolist(), table.y.tolist(), table.target) == ([[1, 2], [3, 4]], ["yes", "no"], "label")
    both = write("age,label\n70,yes\n60,no\n", "both.tsv")
    assert read_table(data, target="age", target_file=both).y.tolist() == [70, 60]
    assert "say which column" in refusal(data, target=None, target_file=both)


def test_a_second_file_joined_by_ids(write):
    data = write("id,a\n01,1\n02,2\n03,3\n")
    labels = write("id,label\n03,w\n01,u\n02,v\n04,x\n", "labels.csv")
    table = read_table(data, target_file=labels, id_column="id")
    assert (table.y.tolist(), table.feature_names, table.ids.tolist()) == (["u", "v", "w"], ["a"], ["01", "02", "03"])
    other = write("sample\tlabel\n02\tv\n03\tw\n01\tu\n", "other.tsv")
    assert read_table(data, target="label", target_file=other, id_column="id").y.tolist() == ["u", "v", "w"]
    whole = write("id,label\n3,w\n1,u\n2,v\n", "whole.csv")
    pl.DataFrame({"id": [1.0, 2.0, 3.0], "a": [1, 2, 3]}).write_parquet(data.with_suffix(".parquet"))
    by_number = read_table(data.with_suffix(".parquet"), target_file=whole, id_column="id")
    assert by_number.y.tolist() == ["u", "v", "w"]


@pytest.mark.parametrize(
    ("labels", "options", "reason"),
    [
        ("label\nu\n", {}, "labels.csv has 1 rows and the table 2: is its first line no header?"),
        ("label\nu\nv\nw\n", {}, "has 3 rows and the table 2: give a column of ids (id_column=...)"),
        ("id,label\n1,u\n3,v\n", {"id_column": "id"}, "1 of 2 ids are not in column 'id' of "),
        ("id,label\n1,u\n1,v\n2,v\n", {"id_column": "id"}, "the id '1' stands in rows 1 and 2 of "),
        ("label\nu\nv\n", {"id_column": "id"}, "it needs ids too"),
        ("id,label\n1,u\n2,\n", {"id_column": "id"}, "first: data row 2"),
        ("a\nu\nv\n", {}, "column 1 has the name of the target, 'a'"),
        ("label\nu\nv\n", {"target": "lable"}, "did you mean 'label'?"),
    ],
)
def test_second_files_that_do_not_fit(write, labels, options, reason):
    data, second = write("id,a\n1,5\n2,6\n"), write(labels, "labels.csv")
    assert reason in refusal(data, **{"target": None, "target_file": second, **options})


def test_a_file_given_for_a_column_is_recognised(write):
    labels = write("label\nu\n", "labels.csv")
    assert f"that is a file: give it as target_file={str(labels)!r}" in refusal(write("a\n1\n"), target=str(labels))


# ---- features in rows

EXPRESSION = "gene\tS1\tS2\tS3\nBRCA1\t1.5\t2\t3\nTP53\t4\t5\t6.5\n"


def test_features_in_rows_with_the_target_in_a_second_file(write):
    data = write(EXPRESSION, "d.tsv")
    for labels in ("sample,label\nS3,w\nS1,u\nS2,v\nS9,x\n", "label\nu\nv\nw\n"):
        table = read_table(data, target_file=write(labels, "l.csv"), features_in="rows")
        assert table.X.tolist() == [[1.5, 4], [2, 5], [3, 6.5]]
        assert (table.y.tolist(), table.feature_names) == (["u", "v", "w"], ["BRCA1", "TP53"])
        assert (table.ids.tolist(), table.id_column) == (["S1", "S2", "S3"], "sample")
        assert np.shares_memory(table.frame().to_numpy(), table.X)


@pytest.mark.parametrize("cells", ["u\tv\tw", '"u"\t"v"\t"w"'])
def test_features_in_rows_with_the_target_in_a_row(write, cells):
    head, *rows = EXPRESSION.splitlines()
    path = write("\n".join([head, f"label\t{cells}", *rows]), "d.tsv")
    table = read_table(path, target="label", features_in="rows")
    assert (table.X.tolist(), table.y.tolist()) == ([[1.5, 4], [2, 5], [3, 6.5]], ["u", "v", "w"])
    assert read_table(path, target="TP53", features_in="rows", ignore=["label"]).y.tolist() == [4, 5, 6.5]


def test_a_bad_cell_below_a_row_of_labels_is_still_found(write):
    path = write("gene\tS1\tS2\nlabel\tu\tv\ng1\t1\toops\n", "d.tsv")
    assert "1 of 2 columns hold other than numbers: 'S2' ('oops' in data row 2)" in refusal(path, features_in="rows")


def test_features_in_rows_as_r_writes_them_and_in_parquet(write, tmp_path):
    labels = write("sample,label\nS1,u\nS2,v\nS3,w\n", "l.csv")
    table = read_table(write(EXPRESSION.removeprefix("gene\t"), "d.txt"), target_file=labels, features_in="rows")
    assert table.feature_names == ["BRCA1", "TP53"]
    frame = pl.read_csv(EXPRESSION.encode(), separator="\t")
    frame.write_parquet(tmp_path / "d.parquet")
    again = read_table(tmp_path / "d.parquet", target_file=labels, features_in="rows")
    np.testing.assert_array_equal(again.X, table.X)
    assert read_table(tmp_path / "d.parquet", target="TP53", features_in="rows").y.tolist() == [4, 5, 6.5]


def test_features_in_rows_without_columns_that_describe_them(write):
    data = write("id\tabout\tS1\tS2\ng1\ta kinase\t1\t2\ng2\tunknown\t3\t4\ng3\tx\t5\t6\n", "d.tsv")
    labels = write("label\nu\nv\n", "l.csv")
    message = refusal(data, target=None, target_file=labels, features_in="rows", ignore=["g1"])
    assert "has 2 rows and the table 3" in message
    table = read_table(data, target_file=labels, features_in="rows", ignore=["about", "g2"])
    assert (table.X.tolist(), table.feature_names) == ([[1, 5], [2, 6]], ["g1", "g3"])


@pytest.mark.parametrize(
    ("text", "options", "reason"),
    [
        (EXPRESSION, {"target": None}, "say where the target is"),
        (EXPRESSION, {"target": "TP35"}, "no target row 'TP35' in the table: did you mean 'TP53'?"),
        (EXPRESSION, {"target": "zzz"}, "its rows are 'BRCA1', 'TP53'"),
        (EXPRESSION, {"target": "TP53", "ignore": ["TP53"]}, "both the target and ignored"),
        (EXPRESSION, {"target": "TP53", "ignore": ["BRCA1"]}, "no rows left"),
        (EXPRESSION.replace("2", "?"), {"target": "TP53"}, "'BRCA1' (first in sample 'S?')"),
        (EXPRESSION.replace("6.5", ""), {"target": "TP53"}, "the target 'TP53' is missing or infinite in 1 of 3 rows"),
        (EXPRESSION.replace("\t2", "\tbad"), {"target": "TP53"}, "'S2' ('bad' in data row 1)"),
        (EXPRESSION + "BRCA1\t1\t2\t3\n", {"target": "TP53"}, "'BRCA1' stands for rows 0 and 2"),
        (EXPRESSION, {"target": "TP53", "features_in": "cells"}, "choose one of columns, rows"),
    ],
)
def test_features_in_rows_that_cannot_be_used(write, text, options, reason):
    assert reason in refusal(write(text, "d.tsv"), **{"features_in": "rows", **options})


def test_samples_that_have_no_label(write):
    labels = write("sample,label\nS1,u\nS2,v\n", "l.csv")
    message = refusal(write(EXPRESSION, "d.tsv"), target="label", target_file=labels, features_in="rows")
    assert "no column of" in message
    assert "holds the names of all samples, 'S1', 'S2', 'S3'" in message
    named = refusal(write(EXPRESSION, "d.tsv"), target_file=labels, features_in="rows", id_column="sample")
    assert "1 of 3 ids are not in column 'sample'" in named
    assert "not in .npz" in refusal(save(labels.with_name("d.npz"), X=X, y=Y), features_in="rows")


# ---- out

RANKING = {"feature": ["x", 'odd, "name"'], "rank": np.array([1, 2]), "score": np.array([0.5, np.nan])}


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".parquet", ".json", ".CSV"])
def test_a_ranking_is_written_whole(tmp_path, ending):
    path = tmp_path / f"ranking{ending}"
    write_ranking(path, RANKING)
    readers = {".tsv": lambda p: pl.read_csv(p, separator="\t"), ".parquet": pl.read_parquet, ".json": pl.read_json}
    frame = readers.get(ending, pl.read_csv)(path)
    assert frame.to_dict(as_series=False) == {
        "feature": ["x", 'odd, "name"'],
        "rank": [1, 2],
        "score": [0.5, None],
    }


def test_json_is_a_list_of_records(tmp_path):
    write_ranking(tmp_path / "r.json", RANKING)
    assert json.loads((tmp_path / "r.json").read_text())[0] == {"feature": "x", "rank": 1, "score": 0.5}


def test_where_a_ranking_cannot_go(tmp_path):
    (tmp_path / "folder.csv").mkdir()
    for path, reason in [
        (tmp_path / "r.docx", "name it .csv, .tsv, .xlsx, .parquet or .json"),
        (tmp_path / "no" / "r.csv", "does not exist"),
        (tmp_path / "folder.csv", "is a folder"),
    ]:
        with pytest.raises(TableError, match=reason):
            require_ranking_path(path)


@pytest.mark.parametrize("matrix", [X, sp.csr_matrix(X), X.astype(np.float32)], ids=["dense", "sparse", "float32"])
@pytest.mark.parametrize("ending", [".csv", ".tsv", ".parquet", ".arrow", ".feather"])
def test_a_smaller_table_is_written_and_read_again(tmp_path, ending, matrix):
    path = tmp_path / f"small{ending}"
    table = Table(matrix, Y, NAMES, "label", np.array(["01", "02", "03", "04"]), "sample")
    write_table(path, table.take(np.array([2, 0])))
    again = read_table(path, target="label", id_column="sample")
    np.testing.assert_array_equal(again.X.astype(matrix.dtype), X.astype(matrix.dtype)[:, [2, 0]])
    assert (again.feature_names, again.y.tolist()) == (["c", "a"], Y.tolist())
    assert again.ids.tolist() == ["01", "02", "03", "04"]
    assert again.X.dtype == (np.float64 if ending in (".csv", ".tsv") else matrix.dtype)


def test_where_a_table_cannot_go(tmp_path):
    with pytest.raises(TableError, match=r"name it \.csv, \.tsv, \.parquet, \.arrow or \.feather"):
        require_table_path(tmp_path / "small.json")
    with pytest.raises(TableError, match="'label' names two columns"):
        write_table(tmp_path / "small.csv", Table(X, Y, ["a", "label", "c"], "label"))


def test_without_polars_one_sentence_says_what_to_install(write, monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ImportError, match=r"reading tables needs the cli extra: pip install 'probewise\[cli\]'"):
        read_table(write(HEADER), target="label")


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_names_that_a_spreadsheet_would_run_are_words(tmp_path, ending):
    names = ["=cmd|' /C calc'!A0", "@SUM(1)", "+x|y", "-2+3!z", "-log10 p", "+1", "plain", "1e-3"]
    write_ranking(tmp_path / f"r.{ending}", {"feature": names, "score": [-1.0] * 8})
    found = pl.read_csv(tmp_path / f"r.{ending}", separator="," if ending == "csv" else "\t")
    assert found["feature"].to_list() == [f"'{name}" for name in names[:4]] + names[4:]
    assert found["score"].to_list() == [-1.0] * 8
    write_ranking(tmp_path / "r.json", {"feature": names})
    assert [row["feature"] for row in json.loads((tmp_path / "r.json").read_text())] == names


def test_rows_without_a_target_can_be_left_out(write, tmp_path):
    text = "id,a,label,w,g\nr1,1,u,1,k\nr2,2,,2,k\nr3,3,v,3,m\nr4,4,NA,4,m\nr5,5,u,5,k\n"
    options = {"weights": "w", "groups": "g", "id_column": "id"}
    assert refusal(write(text), **options).endswith("fill it in or leave out those rows (drop_unlabelled=True)")
    table = read_table(write(text), target="label", drop_unlabelled=True, **options)
    assert table.X.ravel().tolist() == [1, 3, 5]
    assert (table.y.tolist(), table.ids.tolist()) == (["u", "v", "u"], ["r1", "r3", "r5"])
    assert (table.weights.tolist(), table.groups.tolist()) == ([1, 3, 5], [0, 1, 0])
    assert table.notes == (("2 of 5 rows have no target 'label', and are left out",),)
    whole = text.replace("r2,2,,", "r2,2,u,").replace("NA", "v")
    assert read_table(write(whole), target="label", drop_unlabelled=True, **options).notes == ()

    broken = text.replace("r5,5,", "r5,,")  # rows are counted as in the file
    assert "first in data row 5" in refusal(write(broken), drop_unlabelled=True, **options)
    none = re.sub(r",(u|v|NA),", ",,", text)
    assert "is missing or infinite in 5 of 5 rows" in refusal(write(none), drop_unlabelled=True, **options)

    np.savez(tmp_path / "m.npz", X=np.asfortranarray(np.arange(12.0).reshape(4, 3)), y=[0.5, np.nan, 1.5, np.inf])
    table = read_table(tmp_path / "m.npz", drop_unlabelled=True)
    assert (table.X.tolist(), table.y.tolist()) == ([[0, 1, 2], [6, 7, 8]], [0.5, 1.5])
    np.save(tmp_path / "m.npy", np.arange(12.0).reshape(4, 3))
    (tmp_path / "y.csv").write_text("label,age\nu,1\n,2\nv,3\nu,4\n")
    message = refusal(tmp_path / "m.npy", target_file=tmp_path / "y.csv", drop_unlabelled=True)
    assert message.startswith("a mapped table has its rows as they are: leave out drop_unlabelled")


def test_sparse_rows_without_a_target_can_be_left_out(tmp_path):
    X = sp.random(6, 4, density=0.5, format="csr", random_state=0)
    parts = {name: getattr(X, name) for name in ("data", "indices", "indptr", "shape")}
    np.savez(tmp_path / "m.npz", y=[1.0, np.nan, 2.0, 1.0, np.nan, 2.0], **parts)
    table = read_table(tmp_path / "m.npz", drop_unlabelled=True)
    np.testing.assert_array_equal(table.X.toarray(), X.toarray()[[0, 2, 3, 5]])


@pytest.mark.parametrize("id_column", [None, "id"])
def test_rows_that_the_target_file_does_not_name_can_be_left_out(write, tmp_path, id_column):
    data = write("id,a\np,1\nq,2\nr,3\ns,4\n")
    (tmp_path / "y.csv").write_text("id,label\ns,v\np,u\nx,u\nr,\n")
    options = {"target_file": tmp_path / "y.csv", "id_column": id_column}
    if id_column:
        assert refusal(data, **options).endswith("'q'; add them or leave out those rows (drop_unlabelled=True)")
    table = read_table(data, target="label", drop_unlabelled=True, **options)
    assert (table.ids.tolist(), table.y.tolist(), table.X.ravel().tolist()) == (["p", "s"], ["u", "v"], [1, 4])


def test_samples_without_a_target_can_be_left_out(write):
    data = write("gene,s1,s2,s3\nTP53,1,2,3\nage,50,,70\n")
    table = read_table(data, features_in="rows", target="age", drop_unlabelled=True)
    assert (table.ids.tolist(), table.y.tolist(), table.X.ravel().tolist()) == (["s1", "s3"], [50, 70], [1, 3])
