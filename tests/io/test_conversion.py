"""Conversion of tables to mapped .npy files, a few columns at a time, and errors of damaged ones in one line."""

import json
import re
import shutil
from functools import partial

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import dump_svmlight_file

from probewise import DAF
from probewise.cli import run
from probewise.io import conversion, convert_table, formats, read_table
from probewise.stopping import MaxProbes
from probewise.validation.stores import Stored
from table_files import refusal

not_converted = partial(refusal, function=convert_table)


def frame(n=40, d=9, dtype=np.float32):
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    X = (rng.standard_normal((n, d)) * 5 + y[:, None]).astype(dtype)
    columns = {f"gene {i}": X[:, i] for i in range(d)}
    return pl.DataFrame({"who": [f"p{i}" for i in range(n)], **columns, "label": np.array(["ill", "well"])[y]})


def write(data, path):
    {
        ".parquet": lambda: data.write_parquet(path, row_group_size=15),
        ".arrow": lambda: data.write_ipc(path),
        ".feather": lambda: data.write_ipc_stream(path),
        ".csv": lambda: data.write_csv(path),
        ".tsv": lambda: data.write_csv(path, separator="\t"),
    }[path.suffix]()
    return path


def last_line(capsys):
    return capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize("ending", [".parquet", ".arrow", ".feather", ".csv", ".tsv"])
def test_a_converted_table_is_the_same_table(ending, tmp_path):
    path = write(frame(), tmp_path / f"table{ending}")
    assert convert_table(path, tmp_path / "X.npy", target="label", id_column="who") == (40, 9)
    assert convert_table(path, tmp_path / "guessed.npy", target="label") == (40, 9)
    assert (tmp_path / "guessed.npy").read_bytes() == (tmp_path / "X.npy").read_bytes()
    there = read_table(tmp_path / "X.npy", id_column="who")
    here = read_table(path, target="label", id_column="who")
    assert isinstance(there.X, np.memmap)
    assert there.X.flags.f_contiguous
    assert not there.X.flags.writeable
    assert there.X.dtype == here.X.dtype
    np.testing.assert_array_equal(there.X, here.X)
    assert there.y.tolist() == here.y.tolist()
    assert there.ids.tolist() == here.ids.tolist()
    assert (there.feature_names, there.target) == (here.feature_names, "label")
    np.testing.assert_array_equal(np.load(tmp_path / "X.npy", mmap_mode="r"), here.X)


def test_sparse_formats_become_dense(tmp_path):
    rng = np.random.default_rng(0)
    X, y = sp.random(30, 12, 0.3, random_state=0, format="csr"), rng.integers(0, 3, 30)
    dump_svmlight_file(X, y, str(tmp_path / "table.svmlight"), zero_based=False)
    np.savez(tmp_path / "table.npz", X=X.toarray(), y=y, feature_names=[f"w{i}" for i in range(12)])
    for name in ("table.svmlight", "table.npz"):
        assert convert_table(tmp_path / name, tmp_path / "X.npy", force=True) == (30, 12)
        table = read_table(tmp_path / "X.npy")
        np.testing.assert_allclose(table.X, X.toarray(), rtol=1e-12)
        assert table.y.tolist() == y.tolist()
    assert table.feature_names[-1] == "w11"


@pytest.mark.parametrize(
    ("kinds", "dtype", "written"),
    [
        ((np.float32, np.float32), None, np.float32),
        ((np.float32, np.float64), None, np.float64),
        ((np.int8, np.int32), None, np.int32),
        ((np.uint8, np.bool_), None, np.uint8),
        ((np.int16, np.float32), None, np.float64),
        ((np.float64, np.float64), "float32", np.float32),
        ((np.int64, np.bool_), "float32", np.float32),
        ((np.int64, np.int64), "float64", np.float64),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_types(kinds, dtype, written, tmp_path, monkeypatch):
    """Also if groups of columns (of one column each here) have different types."""
    monkeypatch.setattr(conversion, "CELLS_AT_A_TIME", 1)
    values = np.arange(20) % 7
    data = pl.DataFrame({f"c{i}": values.astype(kind) for i, kind in enumerate(kinds)})
    data = data.with_columns(pl.Series("label", values % 2))
    for ending in (".parquet", ".csv"):
        path = write(data, tmp_path / f"table{ending}")
        convert_table(path, tmp_path / "X.npy", target="label", dtype=dtype, force=True)
        table = read_table(tmp_path / "X.npy")
        here = read_table(path, target="label")
        assert table.X.dtype == (written if ending == ".parquet" else dtype or here.X.dtype)
        np.testing.assert_array_equal(table.X, here.X.astype(table.X.dtype))


def test_parquet_is_read_a_few_columns_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(conversion, "CELLS_AT_A_TIME", 3 * 40)
    n_read = []
    select = formats.LazySource._select

    def counted(self, columns):
        n_read.append(len(columns))
        return select(self, columns)

    monkeypatch.setattr(formats.LazySource, "_select", counted)
    convert_table(write(frame(d=10), tmp_path / "table.parquet"), tmp_path / "X.npy", target="label", ignore=["who"])
    assert n_read == [1, 3, 3, 3, 1]


def test_labels_of_all_types_survive(tmp_path):
    data = pl.DataFrame({"a": [0.5, 1.5, 2.5, 3.5]})
    for labels in (["x", "ü", "x", "1"], [1, 2, 2, 1], [0.25, 1e300, -0.0, 3.0], [True, False, True, True]):
        path = write(data.with_columns(pl.Series("label", labels)), tmp_path / "table.parquet")
        convert_table(path, tmp_path / "X.npy", target="label", force=True)
        assert read_table(tmp_path / "X.npy").y.tolist() == labels
    categories = pl.Series("label", ["x", "y", "y", "x"], dtype=pl.Categorical)
    convert_table(
        write(data.with_columns(categories), tmp_path / "table.parquet"), tmp_path / "X.npy", target="label", force=True
    )
    assert read_table(tmp_path / "X.npy").y.tolist() == ["x", "y", "y", "x"]


def test_a_target_may_be_chosen_later(tmp_path):
    path = write(frame().drop("who", "label"), tmp_path / "table.parquet")
    (tmp_path / "labels.csv").write_text("label\n" + "\n".join("ab"[i % 2] for i in range(40)))
    convert_table(path, tmp_path / "X.npy")
    assert read_table(tmp_path / "X.npy", target_file=tmp_path / "labels.csv").X.shape == (40, 9)
    message = refusal(tmp_path / "X.npy")
    assert "choose the target column" in message
    table = read_table(tmp_path / "X.npy", target="gene 4", ignore=["gene 0"])
    here = read_table(path, target="gene 4", ignore=["gene 0"])
    assert isinstance(table.X, Stored)
    assert table.feature_names == here.feature_names
    np.testing.assert_array_equal(np.asarray(table.X), here.X)
    daf = DAF(stop=MaxProbes(50), check_every=50, random_state=0)
    scores = clone(daf).fit(table.frame(), table.y).scores_
    assert scores.tobytes() == clone(daf).fit(here.X, here.y).scores_.tobytes()
    np.testing.assert_array_equal(table.take([6, 0]).X, here.X[:, [6, 0]])


def test_a_file_written_by_numpy(tmp_path):
    """In C order and without a .json file: columns are named by their numbers."""
    X = np.random.default_rng(0).random((20, 6)) > 0.5
    np.save(tmp_path / "X.npy", X)
    (tmp_path / "labels.csv").write_text("label\n" + "\n".join("ab"[i % 2] for i in range(20)))
    table = read_table(tmp_path / "X.npy", target_file=tmp_path / "labels.csv")
    assert table.feature_names == ["0", "1", "2", "3", "4", "5"]
    assert table.X.dtype == np.uint8
    assert isinstance(table.X, np.memmap)
    np.testing.assert_array_equal(table.X, X)


# ---- errors


@pytest.fixture
def parquet(tmp_path):
    return write(frame(), tmp_path / "table.parquet")


def test_nothing_is_overwritten_without_force(parquet, tmp_path):
    out = tmp_path / "X.npy"
    convert_table(parquet, out, target="label", ignore=["who"])
    before = out.read_bytes()
    assert "X.npy already exists" in not_converted(parquet, out=out, target="label", ignore=["who"])
    out.unlink()
    assert "X.npy.json already exists" in not_converted(parquet, out=out, target="label", ignore=["who"])
    convert_table(parquet, out, target="label", ignore=["who"], force=True)
    assert out.read_bytes() == before
    assert "would overwrite the table that is converted" in not_converted(out, out=out, force=True)


@pytest.mark.parametrize(
    ("out", "options", "reason"),
    [
        ("X.csv", {}, "name it .npy"),
        ("nowhere/X.npy", {}, "the folder .*nowhere does not exist"),
        (".", {}, "name it .npy"),
        ("X.npy", {"dtype": "int8"}, "dtype='int8' must be float32 or float64"),
        ("X.npy", {"target": "lable"}, "did you mean 'label'"),
        ("X.npy", {"target": "who"}, "1 of 10 columns is not numeric: 'label'"),
        ("X.npy", {"target": "label", "ignore": ["label"]}, "cannot be both used and ignored"),
    ],
    ids=["ending", "folder", "is a folder", "type", "target", "text", "ignored"],
)
def test_bad_arguments_are_refused(out, options, reason, parquet, tmp_path):
    message = not_converted(parquet, out=tmp_path / out, **options)
    assert re.search(reason, message)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["table.parquet"]


def test_a_failed_conversion_leaves_no_files(tmp_path, monkeypatch):
    monkeypatch.setattr(conversion, "CELLS_AT_A_TIME", 1)
    data = pl.DataFrame({"a": [1, 2, 3], "b": [1, None, 3], "c": [1e39, 2.0, 3.0], "label": [0, 1, 0]})
    integers = write(data.drop("c"), tmp_path / "integers.parquet")
    message = not_converted(integers, out=tmp_path / "X.npy", target="label")
    assert "missing in the integer columns 'b'" in message
    large = write(data.drop("b"), tmp_path / "large.parquet")
    message = not_converted(large, out=tmp_path / "X.npy", target="label", dtype="float32")
    assert message == "values are too large for float32 in 'c': use dtype='float64'"
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(100, 90, 10))
    message = not_converted(large, out=tmp_path / "X.npy", target="label")
    assert "it needs 48 bytes, and 10 are free on the disk" in message
    assert sorted(path.name for path in tmp_path.iterdir()) == ["integers.parquet", "large.parquet"]
    monkeypatch.undo()
    assert convert_table(integers, tmp_path / "X.npy", target="label", dtype="float64") == (3, 2)
    assert np.isnan(np.load(tmp_path / "X.npy")[1, 1])
    assert "values are missing or infinite in 1 of 2" in refusal(tmp_path / "X.npy")


def test_a_damaged_parquet_file(tmp_path):
    (tmp_path / "table.parquet").write_bytes(b"PAR1 and no more")
    assert "cannot be read as Parquet" in not_converted(tmp_path / "table.parquet", out=tmp_path / "X.npy")
    assert "there is no file" in not_converted(tmp_path / "none.parquet", out=tmp_path / "X.npy")


def header(shape="(3, 2)", descr="'<f4'", order="True", version=1):
    text = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}"
    text += " " * (63 - (10 + len(text)) % 64) + "\n"
    return b"\x93NUMPY" + bytes([version, 0]) + len(text).to_bytes(2, "little") + text.encode()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "cannot be read as NPY"),
        (b"not a file of numpy", "cannot be read as NPY"),
        (header()[:40], "cannot be read as NPY"),
        (header()[:64] + b"\0" + header()[65:] + bytes(24), "cannot be read as NPY"),  # numpy's parser failed
        (header() + bytes(20), "its header claims 3 x 2 values, 152 bytes in total, and it has 148"),
        (header() + bytes(28), "is incomplete or damaged: .* and it has 156"),
        (header("(3000000000, 4000000000)") + bytes(24), "is incomplete or damaged"),
        (header("(-3, -2)") + bytes(24), "is incomplete or damaged"),
        (header("(6,)") + bytes(24), r"an array of shape \(6,\)"),
        (header(descr="'|O'") + bytes(24), "type object: it must be a numeric table"),
        (header(descr="'<c8'") + bytes(48), "type complex64"),
        (header(descr="'<U1'") + bytes(24), "type <U1"),
        (header(descr="[('a', '<f4')]") + bytes(24), "it must be a numeric table"),
        (header(descr="exit()") + bytes(24), "cannot be read as NPY"),
        (header("(" * 300 + ")" * 300) + bytes(24), "cannot be read as NPY"),
        (header(version=3) + bytes(24), "format 3.0"),
        (header("(0, 2)"), "has a header but no rows"),
        (header(f"(0, {10**12})"), "claims 1,000,000,000,000 columns, more than the limit of 10,000,000"),
        (header(f"({10**12}, 0)"), "target"),
    ],
    ids=[
        "empty", "text", "half a header", "a zero byte", "short", "long", "lie", "negative", "one dimension", "objects",
        "complex", "letters", "records", "code", "nested", "version", "no rows", "many columns", "no columns",
    ],
)  # fmt: skip
def test_a_damaged_npy_file(content, reason, tmp_path):
    path = tmp_path / "X.npy"
    path.write_bytes(content)
    assert re.search(reason, refusal(path, target="0"))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"format": 2}, "unknown format"),
        ({"shape": [3, 3]}, "does not name the columns of a table with shape 3 x 2"),
        ({"feature_names": ["a"]}, "does not name the columns"),
        ({"feature_names": ["a", 7]}, "does not name the columns"),
        ({"feature_names": None}, "does not name the columns"),
        ({"columns": {"label": [1, 2]}}, "does not contain columns of 3 values"),
        ({"columns": {"label": [1, 2, {"a": 1}]}}, "does not contain columns of 3 values"),
        ({"columns": {"label": [1, 2, 2**70]}}, "more than 64 bits"),
        ({"columns": []}, "does not contain columns"),
        ({"target": "elsewhere"}, "does not contain the target it names"),
        ({"target": ["label"]}, "does not"),
    ],
    ids=str,
)
def test_a_damaged_sidecar(change, reason, tmp_path):
    content = {"format": 1, "shape": [3, 2], "feature_names": ["a", "b"], "target": "label"}
    content["columns"] = {"label": [0, 1, 0]}
    np.save(tmp_path / "X.npy", np.ones((3, 2)))
    (tmp_path / "X.npy.json").write_text(json.dumps(content))
    assert read_table(tmp_path / "X.npy").y.tolist() == [0, 1, 0]
    (tmp_path / "X.npy.json").write_text(json.dumps({**content, **change}))
    message = refusal(tmp_path / "X.npy")
    assert reason in message
    assert message.endswith("convert it again")


@pytest.mark.parametrize("content", [b"", b"[1, 2", b"[]", b"\xff\xfe", b"[" * 100_000, b"1" * 5000], ids=len)
def test_a_sidecar_that_is_not_json(content, tmp_path):
    np.save(tmp_path / "X.npy", np.ones((3, 2)))
    (tmp_path / "X.npy.json").write_bytes(content)
    assert "does not match its .npy file" in refusal(tmp_path / "X.npy")


# ---- the command


def test_command(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(frame(n=60, d=20), tmp_path / "table.parquet")
    assert run(["convert", "table.parquet", "wide.npy", "--target", "label", "--id-column", "who"]) == 0
    assert last_line(capsys) == "probewise: 60 rows and 20 features are in wide.npy"
    options = ["--n-probes", "400", "--random-state", "3", "--quiet"]
    assert run(["rank", "wide.npy", *options]) == 0
    ranking = capsys.readouterr().out
    assert "gene 1" in ranking
    assert run(["rank", "table.parquet", "--target", "label", "--ignore", "who", *options]) == 0
    assert capsys.readouterr().out == ranking
    ignored = ["--ignore", "gene 3", "--method", "fsdd", "--quiet"]
    assert run(["rank", "wide.npy", *ignored]) == 0
    ranking = capsys.readouterr().out
    assert "gene 3" not in ranking
    assert run(["rank", "table.parquet", "--target", "label", "--ignore", "who", *ignored]) == 0
    assert capsys.readouterr().out == ranking


def test_command_with_ledger_selection_and_report(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(frame(n=60, d=20), tmp_path / "table.parquet")
    assert run(["convert", "table.parquet", "wide.npy", "--target", "label", "--id-column", "who", "--quiet"]) == 0
    assert capsys.readouterr().err == ""
    command = ["rank", "wide.npy", "--method", "daf", "--ledger", "run.ledger", "--select", "best.csv"]
    command += ["--n-features-to-select", "3", "--quiet"]
    assert run([*command, "--n-probes", "400", "--ignore", "gene 0"]) == 0
    assert pl.read_csv("best.csv").shape == (60, 4)
    assert run([*command, "--n-probes", "800", "--ignore", "gene 0", "--report", "report.json"]) == 0
    assert "gene 1" in (tmp_path / "report.json").read_text()
    capsys.readouterr()
    assert run(["rank", "wide.npy", "--ledger", "run.ledger", "--n-probes", "800"]) == 2
    assert "holds another run" in last_line(capsys)


def test_command_refuses_in_one_line(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(frame(), tmp_path / "table.parquet")
    assert run(["convert", "table.parquet", "wide.csv"]) == 2
    assert last_line(capsys) == "probewise: wide.csv cannot be mapped: name it .npy"
    assert run(["convert", "table.parquet", "wide.npy", "--target", "label", "--ignore", "who", "--dtype", "half"]) == 2
    assert last_line(capsys) == "probewise: dtype='half' must be float32 or float64"
    assert run(["convert", "table.parquet", "wide.npy", "--target", "label", "--ignore", "who"]) == 0
    assert run(["convert", "table.parquet", "wide.npy", "--target", "label", "--ignore", "who"]) == 2
    assert last_line(capsys).endswith("or overwrite it (force=True)")
    assert run(["convert", "table.parquet", "wide.npy", "--target", "label", "--ignore", "who", "--force"]) == 0
    (tmp_path / "wide.npy").write_bytes((tmp_path / "wide.npy").read_bytes()[:-1])
    assert run(["rank", "wide.npy"]) == 2
    assert "wide.npy is incomplete or damaged" in last_line(capsys)
