"""Errors of the commands: bad files, columns and options give exit code 2 and one line with a remedy."""

import gzip
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

from probewise.cli import run

ROWS = 24


def columns(**more):
    rng = np.random.default_rng(0)
    labels = ["no", "yes"] * (ROWS // 2)
    return {"a": rng.normal(size=ROWS), "b": rng.integers(0, 9, ROWS), "label": labels, **more}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The working directory: a good table in several formats, and bad files."""
    monkeypatch.chdir(tmp_path)
    good = pl.DataFrame(columns())
    good.write_csv("good.csv")
    good.write_parquet("good.parquet")
    good.write_ipc("good.arrow")
    (tmp_path / "folder").mkdir()
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return tmp_path


def csv(**more):
    return pl.DataFrame(columns(**more)).write_csv()


FILES = {
    "blank.csv": "\n\n",
    "binary.csv": bytes(range(256)) * 4,
    "text.csv": csv(c=["high"] * ROWS),
    "dates.csv": csv(day=["2024-01-31"] * ROWS, plan=["pro"] * ROWS),
    "holes.csv": csv(c=[None, *range(ROWS - 1)]),
    "constant.csv": csv(label=["yes"] * ROWS),
    "rare.csv": csv(label=["maybe", *["yes", "no"] * 11, "yes"]),
    "huge.csv": csv(c=[1e300, -1e300] * (ROWS // 2)),
    "tiny.csv": csv(c=[1e-200, 0.0] * (ROWS // 2)),
    "huge-target.csv": csv(label=[1e300 * i + 0.5 for i in range(ROWS)]),
    "short.csv.gz": gzip.compress(csv().encode())[:-20],
    "not.parquet": csv(),
    "not.arrow": csv(),
    "not.npz": csv(),
    "labels.csv": "id,label\n1,yes\n2,no\n",
    "wide.csv": csv().encode("utf-16-le"),
    "not.ledger": csv(),
    "not.run": '{"probewise study": 1',
    "old.run": '{"probewise study": 99}\n',
    "odd.run": '{"probewise study": 1, "settings": []}\n',
}
REFUSED_TABLES = {
    "missing.csv": "there is no file missing.csv",
    "folder": "folder is a folder: give a file",
    "wide.csv": "wide.csv has zero bytes, as UTF-16 text without a byte order mark: save it as UTF-8",
    "blank.csv": "blank.csv has no header: its first line is blank",
    "binary.csv": "binary.csv is not UTF-8 text",
    "text.csv": "1 of 3 columns is not numeric: 'c' ('high' in data row 1); encode it as numbers, ignore it",
    "dates.csv": "ignore them (ignore=['day', 'plan']), or encode dates as numbers of days and read the others as "
    "categories (categorical_features=['plan']); probewise.prepare does this for a data frame",
    "short.csv.gz": "short.csv.gz cannot be decompressed",
    "not.parquet": "not.parquet cannot be read as Parquet",
    "not.arrow": "not.arrow cannot be read as Arrow",
    "not.npz": "not.npz cannot be read as NPZ",
}
REFUSED_BY_METHODS = {"constant.csv": "one class", "rare.csv": "class", "huge.csv": "'c'", "tiny.csv": "'c'"}
RANK = "rank good.csv --target label --n-probes 20 --n-jobs 1"
COMPARE = "compare good.csv --target label --methods fsdd --trials 1 --sizes 1 --n-jobs 1"
REFUSED_OPTIONS = [
    # which columns
    ("rank", "DATA"),
    ("rank good.csv", "choose the target column (target=...)"),
    (f"{RANK} --target labels", "there is no target column 'labels' in the table: did you mean 'label'?"),
    (f"{RANK} --target {'9' * 5000}", "there is no target column"),
    (f"{RANK} --ignore f99", "no ignored column 'f99'"),
    (f"{RANK} --target-file labels.csv", "labels.csv has 2 rows and the table 24"),
    (f"{RANK} --id-column name", "there is no id column 'name'"),
    ("rank https://example.org/a//b.csv", "(curl -L -o b.csv https://example.org/a//b.csv)"),
    # output
    (f"{RANK} --out good.csv", "--out good.csv would overwrite good.csv: choose another"),
    (f"{RANK} --select good.csv", "--select good.csv would overwrite good.csv"),
    (f"{RANK} --select n.csv --out n.csv", "would overwrite n.csv"),
    (f"{RANK} --out r.docx", "r.docx has no format that can be written: name it .csv, .tsv, .xlsx, .parquet or .json"),
    (f"{RANK} --out none/r.csv", "the folder none does not exist"),
    (f"{RANK} --select s.json", "name it .csv, .tsv, .parquet, .arrow or .feather"),
    (f"{RANK} --report r.txt", "name it .html, .md or .json"),
    (f"{RANK} --top 0", "'--top'"),
    # method
    (f"{RANK} --method magic", "--method 'magic' is not known: choose one of tournament, daf, bif, cfs"),
    (f"{RANK} --method fsdd", "--n-probes: FSDD has no such parameter; leave it out"),
    (f"{RANK} --criterion magic", "criterion='magic' is not known"),
    (f"{RANK} --task regression", "regression needs numbers"),
    (f"{RANK} --n-probes 0", "n_probes=0 must be a whole number of at least 1"),
    (f"{RANK} --n-probes many", "'--n-probes'"),
    (f"{RANK} --time-limit -inf", "'--time-limit': -inf is not above 0"),
    (f"{RANK} --time-limit nan", "'--time-limit'"),
    (f"{RANK} --time-limit fast", "'fast' is not a duration: write seconds, or 90s, 5m, 1h30m"),
    (f"{RANK} --cv 1", "cv=1 must be a whole number of at least 2, 'loo' or 'auto'"),
    (f"{RANK} --random-state -1", "Seed must be between 0 and"),
    (f"{RANK} --task guess", "task='guess': choose 'auto', 'classification'"),
    (f"{RANK} --wrong", "--wrong"),
    # ledger
    (f"{RANK} --ledger good.csv", "good.csv is not a Probewise ledger"),
    (f"{RANK} --ledger none/l", "does not exist"),
    # compare
    ("compare missing.csv --target label", "there is no file missing.csv"),
    (
        "compare holes.csv --target label",
        "values are missing or infinite in 1 of 3 feature columns: 'c' (first in data row 1); fill them",
    ),
    (f"{COMPARE} --methods magic", "--methods 'magic' is not known: choose from all"),
    (f"{COMPARE} --methods ,", "--methods ',' is not known"),
    (f"{COMPARE} --classifiers oracle", "--classifiers 'oracle' is not known"),
    (f"{COMPARE} --sizes one", "--sizes 'one' is not a list of whole numbers: write 5,10,20"),
    (f"{COMPARE} --sizes 1,3", "sizes=[1, 3] must be whole numbers"),
    (f"{COMPARE} --trials 0", "'--trials'"),
    (f"{COMPARE} --test-size 0", "test_size"),
    (f"{COMPARE} --n-probes 9", "--n-probes and --time-limit have no meaning for --methods fsdd"),
    (f"{COMPARE} --out good.csv", "would overwrite good.csv: choose another file"),
    (f"{COMPARE} --plot p.txt", "p.txt: name it"),
    (f"{COMPARE} --plot none/p.png", "does not exist"),
    (f"{COMPARE} --ledger none/r", "does not exist"),
    (f"{COMPARE} --ledger good.csv", "good.csv is not the ledger of a Probewise study"),
    (f"{COMPARE} --ledger odd.run", "odd.run is damaged in line 1: remove"),
    # report
    ("report not.ledger", "a report needs --out FILE: .html, .md or .json"),
    ("report folder --out r.md", "there is no run at folder"),
    ("report not.ledger --out r.md", "not.ledger is not a Probewise ledger: choose another file"),
    ("report not.run --out r.md", "not.run"),
    ("report odd.run --out r.md", "odd.run is damaged"),
    ("report old.run --out old.run", "old.run"),
    ("report old.run --out r.md --target x", "need --data DATA"),
    # convert and unknown commands
    ("convert good.csv out.csv --target label", ".npy"),
    ("convert not.npz out.npy --target label", "not.npz cannot be read as NPZ"),
    ("rang good.csv", "'rang'"),
]


def listed(folder):
    return {path.name: path.read_bytes() if path.is_file() else None for path in folder.iterdir()}


@pytest.mark.matrix
@pytest.mark.parametrize("name", REFUSED_TABLES)
@pytest.mark.parametrize("command", ["rank", "compare"])
def test_a_table_that_cannot_be_read_is_refused_in_one_line(here, refuse, name, command):
    before = listed(here)
    assert REFUSED_TABLES[name] in refuse(command, name, "--target", "label")
    assert listed(here) == before


@pytest.mark.parametrize("name", REFUSED_BY_METHODS)
@pytest.mark.parametrize("method", ["daf", "bif", "fsdd", "mrmr"])
def test_a_table_that_cannot_be_used_is_refused_in_one_line(here, refuse, name, method):
    if (name, method) in (("rare.csv", "fsdd"), ("rare.csv", "mrmr")):
        pytest.skip("filters accept a class of one row")
    before = listed(here)
    options = ["--n-probes", "20"] if method == "daf" else []
    message = refuse("rank", name, "--target", "label", "--method", method, "--n-jobs", "1", *options)
    assert REFUSED_BY_METHODS[name] in message
    assert listed(here) == before


def test_a_target_that_cannot_be_squared_is_refused_in_one_line(here, refuse):
    message = refuse("rank", "huge-target.csv", "--target", "label", "--n-probes", "20", "--n-jobs", "1")
    assert "y is too large to be computed with" in message


@pytest.mark.parametrize(("command", "reason"), REFUSED_OPTIONS, ids=lambda words: words[-40:])
def test_bad_options_are_refused_in_one_line(here, refuse, command, reason):
    before = listed(here)
    assert reason in refuse(*command.split())
    assert {name: content for name, content in listed(here).items() if name in before} == before


OVERWRITTEN = {  # the file that would be lost, and the command
    "a sidecar": ("t.npy.json", "rank t.npy --target label --report t.npy.json"),
    "groups": ("g.csv", "rank good.csv --target label --feature-groups g.csv --select g.csv"),
    "a target file": ("g.csv", "rank good.csv --target-file g.csv --out g.csv"),
    "a hard link": ("good.csv", "rank good.csv --target label --out link.csv"),
    "another output": ("r.json", "rank good.csv --target label --out r.json --report ./r.json"),
    "a plot": ("p.png", "compare good.csv --target label --plot p.png --out p.png"),
    "a study": ("s.svg", "compare good.csv --target label --ledger s.svg --plot s.svg"),
    "the table of a report": ("good.csv", "report old.run --data good.csv --out link.html"),
}


@pytest.mark.parametrize("name", OVERWRITTEN)
def test_outputs_that_are_inputs_are_refused(here, refuse, name):
    lost, command = OVERWRITTEN[name]
    np.save("t.npy", np.arange(6.0).reshape(3, 2))
    for file in ("t.npy.json", "g.csv"):
        (here / file).write_text("{}")
    for link in ("link.csv", "link.html"):
        (here / link).hardlink_to(here / "good.csv")
    before = listed(here)
    message = refuse(*command.split())
    assert "would overwrite" in message or "no format" in message
    assert lost in message
    assert listed(here) == before


def test_a_lack_of_memory_is_reported_in_one_line(here, refuse, monkeypatch):
    def none(*_, **__):
        raise MemoryError

    monkeypatch.setattr("probewise.io.reading.open_source", none)
    assert "not enough memory for this table: use fewer columns or rows" in refuse(*RANK.split())


def test_a_missing_extra_is_reported_in_one_line(here, refuse, monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    assert refuse(*RANK.split()).endswith("needs the cli extra: pip install 'probewise[cli]'\n")


def test_the_command_line_without_typer_exits_with_one_line(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "typer", None)
    for name in ("probewise.cli.app", "probewise.cli.options"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.delattr("probewise.cli.app", raising=False)
    with pytest.raises(SystemExit) as exited:
        run(["rank"])
    assert exited.value.code == 2
    sentence = "the command line needs the cli extra: pip install 'probewise[cli]'"
    assert capsys.readouterr() == ("", f"probewise: {sentence}\n")


def test_a_command_exits_with_code_2(tmp_path):
    command = [sys.executable, "-m", "probewise", "rank", str(tmp_path / "no.csv"), "--target", "label"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=120, check=False)
    expected = (2, "", f"probewise: there is no file {tmp_path / 'no.csv'}\n")
    assert (done.returncode, done.stdout, done.stderr) == expected
