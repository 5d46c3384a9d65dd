"""Metadata: target, groups and weights in a second file, R's row names, ids, and columns that are no features."""

import random
from pathlib import Path

import numpy as np
import pytest

from probewise.io import TableError, read_table

N = 24
PATIENTS = [f"P{k // 3:02}" for k in range(N)]


def write(path: Path, header: list[str], rows: list[list[object]], separator: str = ",", quote: str = "") -> Path:
    text = [
        [f"{quote}{cell}{quote}" if isinstance(cell, str) else str(cell) for cell in row] for row in [header, *rows]
    ]
    path.write_text("\n".join(separator.join(row) for row in text) + "\n")
    return path


@pytest.fixture
def table(tmp_path):
    rows = [[f"s{k}", *np.random.default_rng(k).random(3).tolist()] for k in range(N)]
    return write(tmp_path / "table.csv", ["sample", "g1", "g2", "g3"], rows)


@pytest.fixture
def metadata(tmp_path):
    rows = [[f"s{k}", PATIENTS[k], "ill" if k % 2 else "well", 1 + k] for k in range(N)]
    random.Random(0).shuffle(rows)
    return write(tmp_path / "metadata.csv", ["sample", "patient", "state", "weight"], rows)


def test_target_groups_and_weights_in_the_second_file(table, metadata):
    data = read_table(table, target="state", target_file=metadata, groups="patient", sample_weight="weight")
    assert data.feature_names == ["g1", "g2", "g3"]
    assert data.y.tolist() == ["ill" if k % 2 else "well" for k in range(N)]
    np.testing.assert_array_equal(data.groups, np.unique(PATIENTS, return_inverse=True)[1])
    assert data.sample_weight.tolist() == list(range(1, N + 1))


def test_repeating_ids_in_the_second_file_are_suggested_as_groups(table, metadata):
    options = {"target": "state", "target_file": metadata}
    (note,) = [note for note in read_table(table, **options).notes if "groups=" in note]
    assert note.startswith("column 'patient' of ")
    assert "8 values in 24 rows: if rows with the same value belong together, use groups='patient'" in note
    for role in ({"groups": "patient"}, {"adjust": ["patient"]}, {"target": "patient"}):
        assert not [note for note in read_table(table, **options | role).notes if "groups=" in note]


def test_the_same_with_features_in_rows(tmp_path, table, metadata):
    columns = zip(*(line.split(",") for line in table.read_text().splitlines()), strict=True)
    turned = write(tmp_path / "turned.csv", *(lambda head, *rows: (list(head), list(map(list, rows))))(*columns))
    data = read_table(turned, target="state", target_file=metadata, groups="patient", features_in="rows")
    np.testing.assert_array_equal(data.groups, np.unique(PATIENTS, return_inverse=True)[1])


def test_roles_of_the_second_file_are_checked(table, metadata):
    with pytest.raises(TableError, match=r"'state' of .* cannot be both the groups and the target"):
        read_table(table, target="state", target_file=metadata, groups="state")
    with pytest.raises(TableError, match="no groups column 'pateint' in the table"):
        read_table(table, target="state", target_file=metadata, groups="pateint")


@pytest.mark.parametrize("separator", ["\t", " ", ","], ids=["tab", "space", "comma"])
@pytest.mark.parametrize("names", [[f"s{k}" for k in range(N)], [str(k + 1) for k in range(N)]], ids=["text", "count"])
def test_tables_of_write_table(tmp_path, separator, names):
    """R's header has no name for the row names, which come first."""
    rows = [[name, 0.5 + k, 2.0 * k, "ab"[k % 2]] for k, name in enumerate(names)]
    path = write(tmp_path / "r.txt", ["g1", "g2", "label"], rows, separator, quote='"')
    data = read_table(path, target="label")
    assert (data.feature_names, data.ids.tolist()) == (["g1", "g2"], names)
    assert data.X[:, 0].tolist() == [0.5 + k for k in range(N)]


def test_hexadecimal_ids(tmp_path):
    """Some of them, such as 12345678 and 1234e567, or 3e10, could be numbers."""
    names = ["12345678", "1234e567", *(f"{random.Random(k).getrandbits(32) | 0xA:08x}" for k in range(N - 2))]
    for ids in (names, ["3e10", "3f10", *(f"{0x3E11 + 977 * k:x}" for k in range(N - 2))]):
        rows = [[name, 0.5 + k, "ab"[k % 2]] for k, name in enumerate(ids)]
        data = read_table(write(tmp_path / "hex.csv", ["id", "g1", "label"], rows), target="label")
        assert (data.feature_names, data.ids.tolist()) == (["g1"], ids)
