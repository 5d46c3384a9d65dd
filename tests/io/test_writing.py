"""Rankings and tables written to files."""

import json

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp

from probewise.io import (
    Table,
    TableError,
    read_table,
    require_ranking_path,
    require_table_path,
    write_ranking,
    write_table,
)

X = np.array([[1.5, 0.0, -2.0], [0.0, 3.25, 0.0], [4.0, 0.0, 1e-9], [0.5, 7.0, 0.0]])
Y = np.array(["u", "v", "u", "w w"])
NAMES = ["a", "b b", "c"]
RANKING = {"feature": ["x", 'odd, "name"'], "rank": np.array([1, 2]), "score": np.array([0.5, np.nan])}


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".parquet", ".json", ".CSV"])
def test_a_ranking_is_written_completely(tmp_path, ending):
    path = tmp_path / f"ranking{ending}"
    write_ranking(path, RANKING)
    readers = {".tsv": lambda p: pl.read_csv(p, separator="\t"), ".parquet": pl.read_parquet, ".json": pl.read_json}
    frame = readers.get(ending, pl.read_csv)(path)
    assert frame.to_dict(as_series=False) == {"feature": ["x", 'odd, "name"'], "rank": [1, 2], "score": [0.5, None]}


def test_json_is_a_list_of_records(tmp_path):
    write_ranking(tmp_path / "r.json", RANKING)
    assert json.loads((tmp_path / "r.json").read_text())[0] == {"feature": "x", "rank": 1, "score": 0.5}


def test_paths_that_cannot_be_written(tmp_path):
    (tmp_path / "folder.csv").mkdir()
    for path, reason in [
        (tmp_path / "r.docx", "name it .csv, .tsv, .xlsx, .parquet or .json"),
        (tmp_path / "no" / "r.csv", "does not exist"),
        (tmp_path / "folder.csv", "is a folder"),
    ]:
        with pytest.raises(TableError, match=reason):
            require_ranking_path(path)
    with pytest.raises(TableError, match=r"name it \.csv, \.tsv, \.parquet, \.arrow or \.feather"):
        require_table_path(tmp_path / "small.json")
    with pytest.raises(TableError, match="'label' is the name of two columns"):
        write_table(tmp_path / "small.csv", Table(X, Y, ["a", "label", "c"], "label"))


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


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_names_that_a_spreadsheet_would_run_are_written_as_text(tmp_path, ending):
    names = ["=cmd|' /C calc'!A0", "@SUM(1)", "+x|y", "-2+3!z", "-log10 p", "+1", "plain", "1e-3"]
    write_ranking(tmp_path / f"r.{ending}", {"feature": names, "score": [-1.0] * 8})
    frame = pl.read_csv(tmp_path / f"r.{ending}", separator="," if ending == "csv" else "\t")
    assert frame["feature"].to_list() == [f"'{name}" for name in names[:4]] + names[4:]
    assert frame["score"].to_list() == [-1.0] * 8
    write_ranking(tmp_path / "r.json", {"feature": names})
    assert [row["feature"] for row in json.loads((tmp_path / "r.json").read_text())] == names
