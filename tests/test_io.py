"""Tables come in as they are meant, and what cannot be ranked is refused in one clear line."""

import gzip
import json
import sys

import numpy as np
import polars as pl
import pytest

from probewise.io import TableError, read_table, require_ranking_path, write_ranking

HEADER = "a,b,label\n"


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


@pytest.mark.parametrize("name", ["data.tsv", "data.txt", "DATA.TSV"])
def test_tab_separated_text(write, name):
    table = read_table(write("a\tlabel\n1\t0\n2\t1\n", name), target="label")
    assert table.X.ravel().tolist() == [1, 2]


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("name", ["data.csv", "data.txt"])
def test_the_separator_is_found_where_the_name_misleads(write, name, separator):
    path = write(separator.join(["a", "b", "label"]) + "\n" + separator.join("123") + "\n", name)
    assert read_table(path, target="label").X.tolist() == [[1, 2]]


@pytest.mark.parametrize("name", ["d.csv.gz", "d.tsv.gz", "my.data.CSV.GZ"])
def test_compressed_text(tmp_path, name):
    separator = "\t" if "tsv" in name else ","
    with gzip.open(tmp_path / name, "wt") as file:
        file.write(f"a{separator}label\n1{separator}0\n")
    assert read_table(tmp_path / name, target="label").X.tolist() == [[1]]


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
    assert refusal(tmp_path / "no.csv") == f"there is no file {tmp_path / 'no.csv'}"


def test_a_folder_is_no_file(tmp_path):
    (tmp_path / "d.csv").mkdir()
    assert "is a folder" in refusal(tmp_path / "d.csv")


@pytest.mark.parametrize("name", ["data.xlsx", "data", "data.gz", "data.parquet.gz"])
def test_unknown_format(write, name):
    assert ".csv, .tsv, .txt or .parquet" in refusal(write("a,label\n1,2\n", name))


def test_a_file_that_is_not_what_its_name_says(write):
    assert "cannot be read as Parquet" in refusal(write("a,label\n1,2\n", "bad.parquet"))


@pytest.mark.parametrize("text", ["", "a,label\n1,2,3\n"])
def test_broken_text(write, text):
    assert "cannot be read as text separated by ','" in refusal(write(text))


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
    assert "6 of 7 feature columns hold no numbers" in message
    assert "'a' (String), 'b' (String), 'c' (String) and 3 more" in message
    assert "--ignore" in message


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
    assert "--ignore 0" in refusal(path)
    assert read_table(path, target="label", ignore=["0"]).feature_names == ["a"]


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
        (tmp_path / "r.xlsx", "name it .csv, .tsv, .parquet or .json"),
        (tmp_path / "no" / "r.csv", "does not exist"),
        (tmp_path / "folder.csv", "is a folder"),
    ]:
        with pytest.raises(TableError, match=reason):
            require_ranking_path(path)


def test_without_polars_one_sentence_says_what_to_install(write, monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ImportError, match=r"reading tables needs the cli extra: pip install 'probewise\[cli\]'"):
        read_table(write(HEADER), target="label")
