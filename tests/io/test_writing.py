"""Rankings and tables written to files."""

import gc
import json
import re

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp

from full_disk import files_no_longer_than
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


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # xlsxwriter leaves its file open
@pytest.mark.parametrize("ending", [".csv", ".tsv", ".xlsx", ".parquet", ".json"])
def test_a_ranking_that_cannot_be_completed_leaves_the_older_file(tmp_path, ending):
    path = tmp_path / f"ranking{ending}"
    write_ranking(path, RANKING)
    before = path.read_bytes()
    long = {"feature": [f"feature {number}" for number in range(20_000)], "rank": np.arange(20_000)}
    with files_no_longer_than() as limit:
        limit(4096)
        with pytest.raises((OSError, ValueError), match=re.escape(str(path))):
            write_ranking(path, long)
    gc.collect()
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_a_written_file_keeps_its_link_and_its_mode(tmp_path):
    target, link = tmp_path / "target.csv", tmp_path / "link.csv"
    target.write_text("old")
    target.chmod(0o600)
    link.symlink_to(target)
    write_ranking(link, RANKING)
    assert link.is_symlink()
    assert target.read_text().startswith("feature")
    assert target.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("reason", ["Read-only file system (os error 30)", "No space left on device (os error 28)"])
def test_the_reason_why_a_file_cannot_be_written_is_named(tmp_path, monkeypatch, reason):
    """On a read-only file system the message asked whether the disk was full."""

    def refuse(*args, **options):
        raise OSError(reason)  # without a number, as polars does

    monkeypatch.setattr(pl.DataFrame, "write_csv", refuse)
    with pytest.raises(TableError) as error:
        write_ranking(tmp_path / "a.csv", {"feature": ["a"]})
    assert str(error.value) == f"{tmp_path / 'a.csv'} cannot be written: {reason}"
