"""Text tables: headers, separators, quotes, decimal marks, types of columns, and errors that name the row."""

import gzip

import numpy as np
import polars as pl
import pytest

from probewise.io import read_table
from table_files import refusal, write_text

HEADER = "a,b,label\n"


def read(path, **options):
    return read_table(path, target="label", **options)


def refused(path, **options):
    return refusal(path, **{"target": "label", **options})


# ---- header and separator

HEADERLESS = {
    "numbers": "5.1,3.5,0\n4.9,3.6,1\n5.3,3.4,0\n5.0,3.5,1\n",
    "labels": "5.1,3.5,a\n4.9,3.6,b\n5.3,3.4,a\n5.0,3.5,b\n",
    "quoted": '"5.1","3.5","a"\n"4.9","3.6","b"\n"5.3","3.4","a"\n',
    "row ids": "s1,5.1,a\ns2,4.9,b\ns3,5.3,a\n",
    "missing value": "NA,3.5,a\n4.9,3.6,b\n5.3,3.4,a\n",
    "extreme values": "5.1,3.5,9,2.1,0\n4.9,3.6,3,2.0,1\n5.3,3.4,5,2.2,0\n",
    "numeric target": "5.1,3.5,1.31\n4.9,3.6,1.02\n5.3,3.4,1.63\n",
}


@pytest.mark.parametrize("text", HEADERLESS.values(), ids=HEADERLESS)
def test_a_first_line_of_data_is_not_taken_for_a_header(write, text):
    assert "looks like data: add a header above it" in refused(write(text), target="2")


@pytest.mark.parametrize("header", ["0,1,2", "1,2,3", "400,402.5,label", "5.1,3.5,label", "700,3.5,0", "NA,3.5,label"])
def test_a_header_may_be_numbers(write, header):
    rows = HEADERLESS["numbers"].splitlines()
    assert read_table(write("\n".join([header, *rows])), target="2").X.shape == (4, 2)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("name", ["data.csv", "data.txt", "DATA.TSV"])
def test_the_separator_is_guessed_if_the_ending_misleads(write, name, separator):
    path = write(separator.join(["a", "b", "label"]) + "\n" + separator.join("123") + "\n", name)
    assert read(path).X.tolist() == [[1, 2]]


def test_a_comma_in_a_name_does_not_make_commas_the_separator(write):
    table = read(write('id;"TP53, ""wild"" type";label\na;1,5;u\nb;2,5;v\n'))
    assert table.feature_names == ['TP53, "wild" type']
    assert table.X[:, 0].tolist() == [1.5, 2.5]
    many = read(write('"a;b;c",d,label\n1,2,u\n3,4,v\n'))
    assert many.feature_names == ["a;b;c", "d"]


def test_unusual_names_survive(tmp_path):
    names = ["[red]x", "a,b", 'say "hi"', "žluťoučký", " spaced ", "two\nlines", ":smile:"]
    frame = pl.DataFrame({name: [1.0, 2.0] for name in names}).with_columns(label=pl.Series([0, 1]))
    frame.write_csv(tmp_path / "odd [1] *.csv")
    table = read(tmp_path / "odd [1] *.csv")
    assert table.feature_names == names
    assert table.frame().columns == names


def test_row_names_written_by_r_have_no_column_name(write):
    path = write('"a"\t"label"\n"r1"\t1\t"u"\n"r2"\t2\t"v"\n', "d.txt")
    for table in (read(path, ignore=["0"]), read(path)):
        assert (table.feature_names, table.X.tolist(), table.y.tolist()) == (["a"], [[1], [2]], ["u", "v"])
    assert (table.ids.tolist(), table.id_column) == (["r1", "r2"], "id")
    assert "id_column='0'" in table.notes[0]


# ---- encoding and compression


def test_other_encodings(tmp_path):
    path = tmp_path / "d.csv"
    path.write_bytes("a,label\n1,caf\u00e9\n".encode("latin-1"))
    assert "is not UTF-8 text (byte 0xe9 after ',label\\n1,caf'): save it as UTF-8" in refused(path)
    for encoding in ("utf-8-sig", "utf-16"):  # as spreadsheets save them
        path.write_bytes("a;label\r\n1;café\r\n2;thé\r\n;\r\n".encode(encoding))
        table = read(path)
        assert (table.feature_names, table.X.tolist(), table.y.tolist()) == (["a"], [[1], [2]], ["café", "thé"])


def test_the_format_of_a_long_name_is_its_end(tmp_path):
    (tmp_path / "my.data.CSV.GZ").write_bytes(gzip.compress(b"a,label\n1,0\n"))
    assert read(tmp_path / "my.data.CSV.GZ").X.tolist() == [[1]]


@pytest.mark.parametrize("name", ["d.csv", "d.csv.gz", "d.csv.zst", "d.libsvm"])
def test_an_empty_file(tmp_path, name):
    write_text(tmp_path / name, "")
    assert refused(tmp_path / name) == f"{tmp_path / name} is empty"


# ---- cells


def test_numbers_are_read_to_the_last_bit(write):
    values = np.random.default_rng(0).standard_normal((50, 40)) * 10.0 ** np.arange(-20, 20)
    lines = [",".join(map(repr, row)) + ",0" for row in values.tolist()]
    text = ",".join(f"c{k}" for k in range(40)) + ",label\n" + "\n".join(lines)
    np.testing.assert_array_equal(read(write(text)).X, values)


@pytest.mark.filterwarnings("ignore:integers above")
@pytest.mark.parametrize(
    ("cells", "kind"), [("1,2", "i"), ("1,true", "i"), ("1,2.0", "f"), ("1,2e3", "f"), (f"1,{2**60}", "f")]
)
def test_integers_and_booleans_stay_integers(write, cells, kind):
    table = read(write(f"a,b,label\n{cells},0\n{cells},1\n"))
    assert table.X.dtype.kind == kind
    assert table.X[0].tolist() == [1, 1 if "true" in cells else float(cells[2:])]
    assert table.y.dtype.kind == "i"


def test_a_column_that_turns_fractional_late_is_read_completely(write):
    assert read(write("a,label\n" + "1,0\n" * 2000 + "0.5,1\n")).X[-1, 0] == 0.5


def test_blanks_around_numbers_and_blank_lines_are_ignored(write):
    table = read(write("a,label\n1, 0\n 2.5, 1\n\n"))
    assert (table.X.ravel().tolist(), table.y.tolist()) == ([1, 2.5], [0, 1])


def test_rounded_integers_are_warned_of(write):
    rows = [f"{2**60 + row},{2**60 + 10**12 * row},{row / 7}" for row in range(9)]
    with pytest.warns(UserWarning, match=r"integers above 2\*\*53 are rounded in 'far': subtract"):
        read(write("\n".join(["far,times,label", *rows])))


def test_codes_that_differ_only_as_text_stay_different(write):
    path = write("code,same,label\n01234,001,7\n1234,002,07\n0042,010,7\n")
    table = read(path, categorical_features=["code", "same"])
    assert table.levels[0] == ["0042", "01234", "1234"]
    assert table.X[:, 0].tolist() == [1, 2, 0]
    assert table.y.tolist() == ["7", "07", "7"]
    assert read_table(path, target="same").y.tolist() == [1, 2, 10]  # all different as numbers


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
    y = read(write("a,label\n" + "".join(f"1,{word}\n" for word in words))).y
    assert y.tolist() == expected
    assert isinstance(y.tolist()[0], type(expected[0]))


@pytest.mark.parametrize("hole", ["", "NA", "nan", "?", "NaN", "null", "inf", "-inf"])
def test_missing_values_are_named_with_their_row(write, hole):
    message = refused(write(f"a,b,label\n1,2,0\n3,{hole},1\n5,6,0\n"))
    assert "in 1 of 2 feature columns: 'b' (first in data row 2)" in message


@pytest.mark.parametrize(("first", "hole"), [("yes", ""), ("1.5", ""), ("1.5", "nan"), ("1", "NA"), ("2", "inf")])
def test_missing_targets_are_named_with_their_row(write, first, hole):
    message = refused(write(f"a,label\n1,{first}\n2,{hole}\n3,{first}\n"))
    assert "the target 'label' is missing or infinite in 1 of 3 rows (first: data row 2)" in message


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
def test_a_row_of_another_width_is_named(write, text, row, n_cells):
    assert f"data row {row:,} has {n_cells} cells and the header 3" in refused(write(text))


def test_columns_that_are_not_numeric_are_named_and_counted(write):
    path = write("a,b,c,d,e,f,g,label\na,b,c,d,e,f,1,0\n")
    message = refused(path)
    assert "6 of 7 columns are not numeric" in message
    assert "'a' ('a' in data row 1), 'b' ('b' in data row 1), 'c' ('c' in data row 1) and 3 more" in message
    path = write("sex,site of origin,x,label\nf,lung,1,u\nm,liver,2,v\nf,lung,3,u\n")
    message = refused(path)
    assert "(ignore=['sex', 'site of origin'])" in message
    assert "(categorical_features=['sex', 'site of origin'])" in message


def test_one_bad_cell_in_a_hundred_thousand_columns_is_named(write):
    names = [f"gene{k}" for k in range(100_000)]
    rows = [["1.5"] * 100_000 for _ in range(3)]
    rows[1][70_000] = "a bad cell"
    path = write("\n".join([",".join([*names, "label"]), *(",".join([*row, "u"]) for row in rows)]))
    message = refused(path)
    assert "1 of 100,000 columns is not numeric: 'gene70000' ('a bad cell' in data row 2)" in message
    assert "(ignore=['gene70000'])" in message
    assert read(path, ignore=["gene70000"]).X.shape == (3, 99_999)


# ---- quotes


@pytest.mark.parametrize("separator", [",", "\t", ";"])
def test_quotes_hide_separators_and_line_ends(write, separator):
    rows = [
        ["id", "a", "b", "label"],
        ["x", "1", "2", "u, v; w\t"],
        ["y", "3", "4", 'say "hi"'],
        ["z", "5", "6", "p\nq"],
    ]
    text = "\n".join(separator.join('"' + cell.replace('"', '""') + '"' for cell in row) for row in rows)
    table = read(write(text), ignore=["id"])
    assert table.X.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert table.y.tolist() == ["u, v; w", 'say "hi"', "p\nq"]


def test_quotes_may_begin_late(write):
    text = "a,label\n" + "1,u\n" * 3000 + '2,"u"\n' + '3,"v, w"\n' * 3000
    table = read(write(text))
    assert np.unique(table.X, return_counts=True)[1].tolist() == [3000, 1, 3000]
    assert np.unique(table.y).tolist() == ["u", "v, w"]


def test_a_quote_left_open_swallows_no_rows(write):
    assert "is a quote left open?" in refused(write('a,label\n1,"u\n' + "1,v\n" * 50_000))
    assert "data row 1 has" not in refused(write('a,b,label\n1,2,u\n1,"2,v\n1,2,w\n'))
    rows = "".join(f"{i},x\n" for i in range(50))
    assert "close the quote in the last data row, '50,\"x" in refused(write(f'a,label\n{rows}50,"x\n{rows}'))
    refused(write(f'a,"label\n{rows * 2000}'))
    assert len(read(write(f'a,label\n1,"x"\n2,5" disk\n{rows}9,"a ""b""\nc"\n')).y) == 53


# ---- decimal commas


@pytest.mark.parametrize("separator", [";", "\t"])
def test_decimal_commas_are_recognized(write, separator):
    path = write("g1;g2;label\n8,13;7,5;u\n0,001;-1,0;v\n".replace(";", separator))
    table = read(path)
    assert table.X.tolist() == [[8.13, 7.5], [0.001, -1]]
    assert table.notes[0].startswith("numbers are read with decimal commas (decimal=',')")
    assert read(path, decimal=",").notes == ()
    assert "use decimal=','" in refused(path, decimal=".")


def test_decimal_commas_in_quotes_and_in_the_target(write):
    table = read_table(write('a,b,y\n"1,5",2,"0,25"\n"2,5",3,"1,75"\n'), target="y")
    assert (table.X.tolist(), table.y.tolist()) == ([[1.5, 2], [2.5, 3]], [0.25, 1.75])


def test_decimal_marks_that_are_mixed_or_may_be_thousands_are_refused(write):
    thousands = write("a;b;label\n1,234;7;u\n2,345;8;v\n")
    message = "'1,234' in data row 1 is a number only if the comma is the decimal mark: use decimal=','"
    assert message in refused(thousands)
    assert read(thousands, decimal=",").X.tolist() == [[1.234, 7], [2.345, 8]]
    mixed = write("a;b;label\n1,5;7.5;u\n2,5;8.5;v\n")
    assert "'1,5' in data row 1 is a number only if" in refused(mixed)
    assert "'7.5' in data row 1 is a number only if the point is the decimal mark" in refused(mixed, decimal=",")
    assert refused(mixed, decimal=";") == "decimal=';' must be '.' or ','"


def test_numbers_with_decimal_commas_are_floats(write):
    assert read(write("a;b;label\n1;2;u\n3;4;v\n"), decimal=",").X.dtype == np.int64
    assert read(write("a;b;label\n1,0;2;u\n3,0;4;v\n")).X.dtype == np.float64


@pytest.mark.parametrize("decimal", [None, ",", "."])
def test_a_single_point_is_a_missing_value(write, decimal):
    table = read(write("a;b;label\n1;.;u\n.;4;v\n"), decimal=decimal, allow_missing=True)
    np.testing.assert_array_equal(table.X, [[1, np.nan], [np.nan, 4]])
    assert "the target 'label' is missing or infinite in 1 of 2 rows" in refused(write("a,label\n1,.\n2,u\n"))


def test_progress_is_reported_for_a_large_file(write, monkeypatch):
    monkeypatch.setattr("probewise.io.input_files.CHARACTERS_AT_A_TIME", 20_000)
    monkeypatch.setattr("probewise.io.input_files.QUIET_SECONDS", 0)
    lines = []
    path = write(HEADER + "1.5,2.5,yes\n" * 10_000)
    assert read(path, progress=lines.append).X.shape == (10_000, 2)
    assert lines[0].startswith("reading data.csv: ")
    shares = [int(line.split()[-1].rstrip("%")) for line in lines]
    assert len(shares) > 3
    assert shares == sorted(shares)
