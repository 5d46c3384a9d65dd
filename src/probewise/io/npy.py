"""Memory-mapped tables: a .npy file and its sidecar, a .json file with names and target."""

from __future__ import annotations

import json
import os
import shutil
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .table import TableError, first_line, numbered_names, read_as

FORMAT = 1
MAX_SIDECAR_BYTES = 2**30
SIDECAR_ERRORS = (ValueError, TypeError, OverflowError, OSError, EOFError, MemoryError, RecursionError, SyntaxError)
Value = str | int | float | bool | None


@dataclass(frozen=True, eq=False)
class Sidecar:
    """Content of the sidecar: the feature names, and extra columns, one of which may be the target."""

    feature_names: Sequence[str]
    columns: Mapping[str, Sequence[Value]] = field(default_factory=dict)
    target: str | None = None


def sidecar_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.json")


def map_npy(path: Path) -> tuple[NDArray[Any], Sidecar]:
    """The matrix, mapped read-only, and its sidecar; without a sidecar, columns are named by their numbers."""
    X = _map_matrix(path)
    sidecar = sidecar_of(path)
    return X, _read_sidecar(sidecar, X) if sidecar.exists() else Sidecar(numbered_names(path, 0, X.shape[1]))


def write_npy(
    path: Path, shape: tuple[int, int], dtype: np.dtype[Any], blocks: Iterable[NDArray[Any]], sidecar: Sidecar
) -> None:
    """Write blocks of columns and the sidecar; after an error, neither file exists."""
    n_bytes = shape[0] * shape[1] * dtype.itemsize
    free = shutil.disk_usage(path.parent).free
    if n_bytes > free:
        raise TableError(f"{path} cannot be written: it needs {n_bytes:,} bytes, and {free:,} are free on the disk")
    part, sidecar_part = (file.with_name(f"{file.name}.part") for file in (path, sidecar_of(path)))
    header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": True, "shape": shape}
    try:
        with part.open("wb") as file:
            np.lib.format.write_array_header_1_0(file, header)
            for block in blocks:
                file.write(np.asfortranarray(block, dtype=dtype).T.data)
        content = {"format": FORMAT, "shape": shape, "target": sidecar.target}
        content |= {"columns": sidecar.columns, "feature_names": sidecar.feature_names}
        sidecar_part.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
        os.replace(sidecar_part, sidecar_of(path))
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
        sidecar_part.unlink(missing_ok=True)


def _map_matrix(path: Path) -> NDArray[Any]:
    with read_as(path, "NPY", Exception), path.open("rb") as file:  # numpy raises many kinds of errors
        shape, is_fortran, dtype, start = read_header(file)
    if len(shape) != 2 or dtype.kind not in "biuf":
        raise TableError(f"{path} contains an array of shape {shape} and type {dtype}: it must be a numeric table")
    size, claimed = path.stat().st_size, start + dtype.itemsize * shape[0] * shape[1]
    if size != claimed or min(shape) < 0:
        raise TableError(
            f"{path} is incomplete or damaged: its header claims {shape[0]:,} x {shape[1]:,} values, {claimed:,} bytes "
            f"in total, and it has {size:,}"
        )
    if not min(shape):
        return np.empty(shape, dtype)
    return np.memmap(path, dtype, "r", start, shape, "F" if is_fortran else "C")


def read_header(file: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Shape, whether the order is Fortran, type, and position of the first value."""
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # numpy repairs old headers, and warns
        version = np.lib.format.read_magic(file)
        if version not in read:
            raise ValueError(f"format {version[0]}.{version[1]} is not supported, only 1.0 and 2.0")
        return (*read[version](file), file.tell())


def _read_sidecar(path: Path, X: NDArray[Any]) -> Sidecar:
    try:
        if path.stat().st_size > MAX_SIDECAR_BYTES:
            raise ValueError(f"it has more than {MAX_SIDECAR_BYTES:,} bytes")
        content = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise ValueError("it has an unknown format")
        names, columns, target = content.get("feature_names"), content.get("columns"), content.get("target")
        if content.get("shape") != list(X.shape) or names is None or not _is_list_of(names, str, X.shape[1]):
            raise ValueError(f"it does not name the columns of a table with shape {X.shape[0]:,} x {X.shape[1]:,}")
        if not isinstance(columns, dict) or not all(_is_list_of(column, Value, len(X)) for column in columns.values()):
            raise ValueError(f"it does not contain columns of {len(X):,} values")
        if any(isinstance(value, int) and abs(value) >= 2**63 for column in columns.values() for value in column):
            raise ValueError("it contains integers of more than 64 bits")
        if target is not None and target not in columns:
            raise ValueError("it does not contain the target it names")
    except SIDECAR_ERRORS as error:
        raise TableError(f"{path} does not match its .npy file: {first_line(error)}; convert it again") from error
    return Sidecar(names, columns, target)


def _is_list_of(values: Any, kind: Any, length: int) -> bool:
    return isinstance(values, list) and len(values) == length and all(isinstance(value, kind) for value in values)
