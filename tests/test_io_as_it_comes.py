"""Tables as people have them: an ID column, decimal commas, features in rows, Excel, GCT, GEO, packed text."""

import bz2
import gzip
import io
import lzma
import sys

import numpy as np
import polars as pl
import pytest
from sklearn.datasets import dump_svmlight_file

from probewise.io import TableError, read_table

X = [[8.13, 7.5], [7.25, -1.0], [9.5, 0.125], [1e-3, 4.0]]
Y = ["ill", "well", "ill", "well"]
IDS = ["S1", "S2", "S3", "S4"]
PLAIN = "sample,g1,g2,label\n" + "".join(
    f"{name},{a},{b},{label}\n" for name, (a, b), label in zip(IDS, X, Y, strict=True)
)
WITH_COMMAS = PLAIN.replace(",", ";").replace(".", ",")


@pytest.fixture
def write(tmp_path):
    def put(content, name="t.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return put


def refusal(path, **options):
    with pytest.raises(TableError) as caught:
        read_table(path, **{"target": "label", **options})
    assert "\n" not in str(caught.value)
    return str(caught.value)


def notes_of(table):
    return ["".join(map(str, note)) for note in table.notes]


def assert_as_written(table, ids=IDS):
    assert table.X.tolist() == X
    assert table.y.tolist() == Y
    assert table.feature_names == ["g1", "g2"]
    assert table.ids.tolist() == ids


# ---- an ID column


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".arrow"])
def test_text_that_is_different_in_every_row_names_the_rows(write, tmp_path, ending):
    path = write(PLAIN)
    if ending != ".csv":
        path = tmp_path / f"t{ending}"
        frame = pl.read_csv(io.StringIO(PLAIN))
        frame.write_parquet(path) if ending == ".parquet" else frame.write_ipc(path)
    table = read_table(path, target="label")
    assert_as_written(table)
    assert table.id_column == "sample"
    assert notes_of(table) == [
        "column 'sample', text that is different in every row, is taken to name the rows (id_column='sample')"
    ]
    assert read_table(path, target="label", id_column="sample").notes == ()


def test_two_such_columns_are_not_guessed_at(write):
    path = write("a,b,g,label\nu,x,1,0\nv,y,2,1\nw,z,3,0\n")
    message = refusal(path)
    assert (
        "'a', 'b' hold text that is different in every row: say which of them names the rows (id_column='a')" in message
    )
    assert message.endswith("leave out the others (ignore=['b'])")
    assert read_table(path, target="label", id_column="b", ignore=["a"]).X.tolist() == [[1], [2], [3]]


@pytest.mark.parametrize("column", ["u,v,u", "u,,w", "u,v,3", "1,2,x"], ids=["twice", "missing", "a number", "a typo"])
def test_other_text_names_no_rows(write, column):
    cells = zip(column.split(","), (1, 2, 3), (0, 1, 0), strict=True)
    path = write("a,g,label\n" + "".join(f"{a},{g},{label}\n" for a, g, label in cells))
    assert "1 of 2 columns hold other than numbers: 'a'" in refusal(path)


def test_categories_and_the_only_column_name_no_rows(write):
    table = read_table(write("a,g,label\nu,1,0\nv,2,1\n"), target="label", categorical=["a"])
    assert (table.feature_names, table.ids, table.notes) == (["a", "g"], None, ())
    assert "'a' ('u' in data row 1)" in refusal(write("a,label\nu,0\nv,1\n"))


def test_rows_of_a_second_file_are_found_by_ids_that_were_recognised(write):
    path = write("sample,g1\nS1,1\nS2,2\nS3,3\n")
    turned = write("who,label\nS3,c\nS1,a\nS2,b\n", "labels.csv")
    assert read_table(path, target="label", target_file=turned).y.tolist() == ["a", "b", "c"]
    other = write("label\nx\ny\nz\n", "plain.csv")
    assert read_table(path, target_file=other).y.tolist() == ["x", "y", "z"]


# ---- features in rows

TURNED = "gene\tS1\tS2\tS3\tS4\nlabel\till\twell\till\twell\n" + "".join(
    "\t".join([name, *map(str, row)]) + "\n" for name, row in zip(["g1", "g2"], zip(*X, strict=True), strict=True)
)


def test_features_in_rows_are_recognised_by_the_target(write, tmp_path):
    path = write(TURNED, "t.tsv")
    said = "there is no target column 'label', but a row: the features seem to be in rows (features_in='rows')"
    assert refusal(path) == said
    pl.read_csv(path, separator="\t", infer_schema_length=0).write_parquet(tmp_path / "t.parquet")
    assert refusal(tmp_path / "t.parquet") == said
    assert "did you mean 'S1'" in refusal(path, target="s1")
    assert_as_written(read_table(path, target="label", features_in="rows"))


@pytest.mark.parametrize("target", ["label", None])
def test_features_in_rows_are_recognised_by_the_second_file(write, target):
    path = write(TURNED.replace("label\till\twell\till\twell\n", ""), "t.tsv")
    labels = write("who,label\n" + "".join(f"{name},{label}\n" for name, label in zip(IDS, Y, strict=True)), "l.csv")
    message = refusal(path, target=target, target_file=labels)
    assert "l.csv names the columns of" in message
    assert message.endswith("the features seem to be in rows (features_in='rows')")
    assert_as_written(read_table(path, target=target, target_file=labels, features_in="rows"))


# ---- decimal commas


@pytest.mark.parametrize("separator", [";", "\t"])
def test_decimal_commas_are_recognised(write, separator):
    path = write(WITH_COMMAS.replace(";", separator))
    table = read_table(path, target="label")
    assert_as_written(table)
    assert notes_of(table)[0].startswith("numbers are read with decimal commas (decimal=',')")
    assert len(read_table(path, target="label", decimal=",", id_column="sample").notes) == 0
    assert "(decimal=',')" in refusal(path, decimal=".")


def test_decimal_commas_in_quotes_in_the_target_and_in_rows(write):
    quoted = write('a,b,y\n"1,5",2,"0,25"\n"2,5",3,"1,75"\n')
    table = read_table(quoted, target="y")
    assert (table.X.tolist(), table.y.tolist()) == ([[1.5, 2], [2.5, 3]], [0.25, 1.75])
    assert_as_written(read_table(write(TURNED.replace(".", ","), "t.tsv"), target="label", features_in="rows"))


def test_what_may_be_thousands_or_is_mixed_is_asked_for(write):
    thousands = write("a;b;label\n1,234;7;u\n2,345;8;v\n")
    assert "'1,234' in data row 1 is a number only if its comma is the decimal mark: say so (decimal=',')" in refusal(
        thousands
    )
    assert read_table(thousands, target="label", decimal=",").X.tolist() == [[1.234, 7], [2.345, 8]]
    mixed = write("a;b;label\n1,5;7.5;u\n2,5;8.5;v\n")
    assert "'1,5' in data row 1 is a number only if" in refusal(mixed)
    assert "'7.5' in data row 1 is a number only if its point is the decimal mark" in refusal(mixed, decimal=",")
    assert "decimal=';' is not known: give . or ," in refusal(mixed, decimal=";")


def test_whole_numbers_stay_whole_and_decimal_commas_do_not(write):
    assert read_table(write("a;b;label\n1;2;u\n3;4;v\n"), target="label", decimal=",").X.dtype == np.int64
    assert read_table(write("a;b;label\n1,0;2;u\n3,0;4;v\n"), target="label").X.dtype == np.float64


@pytest.mark.parametrize("decimal", [None, ",", "."])
def test_a_point_alone_is_a_missing_cell(write, decimal):
    table = read_table(write("a;b;label\n1;.;u\n.;4;v\n"), target="label", decimal=decimal, gaps=True)
    np.testing.assert_array_equal(table.X, [[1, np.nan], [np.nan, 4]])
    assert "the target 'label' is missing or infinite in 1 of 2 rows" in refusal(write("a,label\n1,.\n2,u\n"))


# ---- formats


@pytest.mark.parametrize(("ending", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)])
def test_packed_text_and_what_is_cut_short(write, ending, pack):
    packed = pack(PLAIN.encode() * 50)
    assert "cannot be unpacked" in refusal(write(packed[: len(packed) // 2], f"t.csv{ending}"))
    assert "cannot be unpacked" in refusal(write(PLAIN, f"t.csv{ending}"))
    assert_as_written(read_table(write(pack(PLAIN.encode()), f"t.csv{ending}"), target="label"))


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_standard_input(monkeypatch, pack):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(pack(WITH_COMMAS.encode())))))
    assert_as_written(read_table("-", target="label"))
    assert refusal("-") == "standard input is empty"
    assert "cannot both be standard input" in refusal("-", target_file="-")
    assert not sys.stdin.buffer.closed


@pytest.mark.parametrize("address", ["https://example.org/a//b.csv?v=1&w=2", "ftp://example.org/b.csv"])
def test_an_address_is_refused_unharmed_with_the_command_that_fetches_it(address):
    message = refusal(address)
    assert message.startswith(f"{address} is an address: download it (curl -L -o b.csv ")
    assert message.count(address) == 2
    assert "s3://bucket/b.csv is an address: download it, and give the file" in refusal("s3://bucket/b.csv")


def gct(version="#1.2", sizes="2\t4", head="Name\tDescription", above="", described="some gene"):
    rows = [
        f"{name}\t{described}\t" + "\t".join(map(str, row))
        for name, row in zip(["g1", "g2"], zip(*X, strict=True), strict=True)
    ]
    return "\n".join([version, sizes, "\t".join([head, *IDS]), *([above] if above else []), *rows]) + "\n"


def test_gct(write):
    labels = write("who,label\n" + "".join(f"{name},{label}\n" for name, label in zip(IDS, Y, strict=True)), "l.csv")
    assert_as_written(read_table(write(gct(), "t.gct"), target_file=labels))
    assert_as_written(read_table(write(gzip.compress(gct().encode()), "t.gct.gz"), target_file=labels))
    newer = gct("#1.3", "2\t4\t2\t1", "id\tsymbol\tplace", "label\tna\tna\till\twell\till\twell", "TP53\t5 q")
    assert_as_written(read_table(write(newer, "t.gct"), target="label"))
    assert "say where the target is" in refusal(write(newer, "t.gct"), target=None)
    assert "says of its samples 'label'" in refusal(write(newer, "t.gct"), target=None)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (gct("#9"), "its first line is '#9', not #1.2 or #1.3"),
        (gct(sizes="2\t5"), "and its header has 6 cells"),
        (gct(sizes="many"), "and its header has 6 cells"),
        (gct(sizes="3\t4"), "claims 3 rows and has 2: is the file whole?"),
        ("", "its first line is ''"),
    ],
)
def test_gct_faults(write, content, reason):
    assert reason in refusal(write(content, "t.gct"))


SERIES = "\n".join(
    [
        '!Series_title\t"A study"',
        "",
        '!Sample_title\t"a"\t"b"\t"c"\t"d"',
        '!Sample_characteristics_ch1\t"tissue: liver"\t"tissue: liver"\t"tissue: lung"\t"tissue: liver"',
        '!Sample_characteristics_ch1\t"label: ill"\t"label: well"\t"label: ill"\t"label: well"',
        '!Sample_characteristics_ch1\t"age: 3"\t"sex: f"\t"age: 4"\t"sex: m"',
        "!series_matrix_table_begin",
        '"ID_REF"\t"S1"\t"S2"\t"S3"\t"S4"',
        *(f'"g{k + 1}"\t' + "\t".join(map(str, row)) for k, row in enumerate(zip(*X, strict=True))),
        "!series_matrix_table_end",
        "",
    ]
)


def test_a_series_matrix_of_geo(write):
    assert_as_written(read_table(write(SERIES, "GSE1_series_matrix.txt"), target="label"))
    path = write(gzip.compress(SERIES.encode()), "GSE1_series_matrix.txt.gz")
    assert_as_written(read_table(path, target="label"))
    assert read_table(path, target="tissue").y.tolist() == ["liver", "liver", "lung", "liver"]
    assert read_table(path, target="characteristics_ch1").y.tolist() == ["age: 3", "sex: f", "age: 4", "sex: m"]
    assert "says of its samples 'title', 'tissue', 'label' and 1 more" in refusal(path, target=None)
    cut = SERIES.replace("!series_matrix_table_end\n", "")
    assert "ends before !series_matrix_table_end: is the file whole?" in refusal(write(cut, "s.txt"))
    bare = "\n".join(line for line in SERIES.splitlines() if not line.startswith('"g'))
    assert "holds no values: those of this study are in its supplementary files" in refusal(write(bare, "s.txt"))


def test_excel(write, tmp_path):
    fastexcel = pytest.importorskip("fastexcel", reason="reading Excel needs the excel extra")
    xlsxwriter = pytest.importorskip("xlsxwriter")
    assert fastexcel
    path = tmp_path / "t.xlsx"
    book = xlsxwriter.Workbook(path)
    sheet = book.add_worksheet("values")
    rows = [line.split(",") for line in PLAIN.splitlines()]
    for place, row in enumerate([rows[0], [], *rows[1:]]):
        for column, cell in enumerate(row):
            sheet.write(place, column, float(cell) if place and column in (1, 2) else cell)
    book.close()
    assert_as_written(read_table(path, target="label"))
    whole = read_table(path, target="g1", features_in="columns", ignore=["label"])
    assert whole.y.tolist() == [row[0] for row in X]
    turned = tmp_path / "turned.xlsx"
    frame = pl.read_csv(io.StringIO(TURNED.replace(".", ",")), separator="\t", infer_schema_length=0)
    with xlsxwriter.Workbook(turned) as book:
        frame.write_excel(book, worksheet="turned")
        book.add_worksheet("notes").write(0, 0, "nothing")
    table = read_table(turned, target="label", features_in="rows")
    assert_as_written(table)
    assert "2 sheets: the first, 'turned', is read" in notes_of(table)[0]
    assert "cannot be read as Excel" in refusal(write(path.read_bytes()[:300], "cut.xlsx"))


def test_excel_without_its_extra_is_one_sentence(write, monkeypatch):
    monkeypatch.setitem(sys.modules, "fastexcel", None)
    with pytest.raises(ImportError, match=r"pip install 'probewise\[excel\]'"):
        read_table(write(b"PK", "t.xlsx"), target="label")


# ---- names


def test_names_for_formats_that_have_none(tmp_path, write):
    dump_svmlight_file(np.array([[1.0, 0, 2], [0, 3, 0]]), [0, 1], str(tmp_path / "t.svm"), zero_based=False)
    words = write("apple\nbanana\tfruit\ncherry\n\n", "words.txt")
    table = read_table(tmp_path / "t.svm", feature_names=words, ignore=["banana"])
    assert table.feature_names == ["apple", "cherry"]
    assert table.X.toarray().tolist() == [[1, 2], [0, 0]]
    longer = read_table(tmp_path / "t.svm", feature_names=["a", "b", "c", "d"])
    assert longer.feature_names == ["a", "b", "c"]
    assert notes_of(longer) == ["'a' is taken to name column 1, and 'c' the last one, 3"]
    assert "feature_names has 2 names for the 3 columns" in refusal(
        tmp_path / "t.svm", feature_names=["a", "b"], target=None
    )
    np.savez(tmp_path / "t.npz", X=np.eye(3), y=[0, 1, 0])
    assert read_table(tmp_path / "t.npz", feature_names=list("abc")).feature_names == ["a", "b", "c"]
    assert "feature_names has 4 names for the 3" in refusal(tmp_path / "t.npz", feature_names=list("abcd"), target=None)
    assert "has names in itself: leave feature_names out" in refusal(write(PLAIN), feature_names=words)
    assert "there is no file" in refusal(write(PLAIN), feature_names="none.txt")


def test_a_comma_in_a_name_does_not_make_commas_the_separator(write):
    header = 'id;"TP53, ""wild"" type";label\n'
    table = read_table(write(header + "a;1,5;u\nb;2,5;v\n"), target="label")
    assert table.feature_names == ['TP53, "wild" type']
    assert table.X[:, 0].tolist() == [1.5, 2.5]
    many = read_table(write('"a;b;c",d,label\n1,2,u\n3,4,v\n'), target="label")
    assert many.feature_names == ["a;b;c", "d"]


def test_classes_that_differ_in_case_or_blanks_are_noted(write):
    table = read_table(write("a,label\n1,Tumour\n2,normal\n3,tumour\n4,normal \n"), target="label")
    (note,) = ("".join(map(str, parts)) for parts in table.notes)
    told = "the target's 'Tumour', 'tumour' differ in case or blanks only, and are taken for 2 classes"
    assert note.startswith(told)
    assert sorted(set(table.y)) == ["Tumour", "normal", "tumour"]
    assert read_table(write("a,label\n1,u\n2,v\n"), target="label").notes == ()


def test_columns_of_text_come_with_the_settings_to_copy(write):
    path = write("sex,site of origin,x,label\nf,lung,1,u\nm,liver,2,v\nf,lung,3,u\n")
    message = refusal(path)
    assert "(ignore=['sex', 'site of origin'])" in message
    assert "(categorical=['sex', 'site of origin'])" in message


@pytest.mark.parametrize("first", [0, 1, 1001])
def test_columns_that_count_the_rows_are_noted(write, first):
    lines = ["number,value,reading,label"]
    lines += [f"{first + row},{row % 5},{2 * row},{'uv'[row % 2]}" for row in range(12)]
    (note,) = ("".join(map(str, parts)) for parts in read_table(write("\n".join(lines)), target="label").notes)
    assert note.startswith("'number' counts the rows, and would be ranked as if measured")
    assert "ignore=['number']" in note
    assert read_table(write("\n".join(lines)), target="label", ignore=["number"]).notes == ()
    assert read_table(write("\n".join(lines[:8])), target="label").notes == ()
