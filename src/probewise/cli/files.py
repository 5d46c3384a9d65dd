"""Files of the commands: tables that are read, outputs that are checked, standard output, and runs to resume."""

from __future__ import annotations

import io
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..validation.tables import columns_not_finite
from .console import STANDARD_OUTPUT, print_line

if TYPE_CHECKING:
    from ..io import Table

DASH = Path("-")
FILLINGS, ERROR = ("mean", "median"), "error"
FILLED_BY = (None, "auto", "knn", "linear")  # criteria that can fill missing values
READ_BY_POLARS = (".parquet", ".arrow", ".feather", ".ipc", ".zst")


@dataclass(frozen=True)
class TableOptions:
    """Options that say how a table is read, with the names of their flags."""

    data: str
    target: str | None = None
    target_file: str | None = None
    id_column: str | None = None
    ignore: Sequence[str] | None = None
    features_in: str = "columns"
    decimal: str | None = None
    feature_names: str | None = None
    sample_weight: str | None = None
    groups: str | None = None
    categorical_features: Sequence[str] | None = None

    @property
    def path(self) -> Path:
        from ..io.input_files import local_path

        return local_path(self.data)

    @property
    def files(self) -> list[Path]:
        """The files that are read."""
        from ..io.input_files import local_path

        read = [local_path(file) for file in (self.data, self.target_file, self.feature_names) if file is not None]
        # an .npy table has a second file with its names
        return [*read, *(path.with_name(f"{path.name}.json") for path in read if path.suffix.lower() == ".npy")]

    def read(self, *, allow_missing: bool = False, quiet: bool = False) -> Table:
        """Read the table, and print every guess that was made."""
        from ..io import read_table
        from ..progress import live_line

        with live_line(0 if quiet else 1) as progress, _without_panics(self.files):
            table = read_table(self.path, **self._arguments(allow_missing=allow_missing), progress=progress)
        for note in () if quiet else table.notes:
            print_line("".join(note))
        return table

    def _arguments(self, *, allow_missing: bool) -> dict[str, Any]:
        """The arguments of `read_table` that differ from its defaults."""
        categories = [name for item in self.categorical_features or () for name in item.split(",")]
        arguments = {
            "target": self.target,
            "target_file": self.target_file,
            "id_column": self.id_column,
            "ignore": list(self.ignore or ()),
            "features_in": None if self.features_in == "columns" else self.features_in,
            "decimal": self.decimal,
            "feature_names": self.feature_names,
            "sample_weight": self.sample_weight,
            "groups": self.groups,
            "categorical_features": categories,
            "allow_missing": allow_missing,
            "drop_unlabeled": self.path.suffix.lower() != ".npy",  # the rows of a mapped table are fixed
        }
        return {name: value for name, value in arguments.items() if value not in (None, [], False)}

    def code(self, *, allow_missing: bool) -> str:
        """The Python code that reads the same table."""
        arguments = self._arguments(allow_missing=allow_missing)
        written = ", ".join([repr(self.data), *(f"{name}={value!r}" for name, value in arguments.items())])
        lines = [
            "from probewise.io import read_table",
            f"table = read_table({written})",
            "X, y = table.frame(), table.y",
        ]
        lines += ["sample_weight = table.sample_weight"] if self.sample_weight else []
        lines += ["groups = table.groups"] if self.groups else []
        return "\n".join(lines)


def table_to_rank(
    options: TableOptions, method: str, *, criterion: str | None, missing: str | None, device: str | None, quiet: bool
) -> tuple[Table, str | None]:
    """The table, and how its missing values are filled: as requested, or with the median if the criterion can."""
    if missing not in (None, *FILLINGS, ERROR):
        raise ValueError(f"missing={missing!r} must be 'mean', 'median' or 'error'")
    makes_probes = method in ("daf", "tournament")
    takes_missing = missing in FILLINGS or (makes_probes and criterion == "tree") or method == "fsdd"
    fills = makes_probes and missing is None and criterion in FILLED_BY and device in (None, "cpu", "auto")
    fills &= options.path.suffix.lower() != ".npy"  # checking a mapped table would read all of it once more
    table = options.read(allow_missing=missing != ERROR and (takes_missing or fills), quiet=quiet)
    n_missing = len(columns_not_finite(table.X)) if fills else 0
    if n_missing and not quiet:
        print_line(
            f"missing values in {n_missing:,} of {table.X.shape[1]:,} features are filled with the median of the "
            "training rows of each fold (missing='median'); use --missing error to refuse them"
        )
    return table, "median" if n_missing else missing if missing in FILLINGS else None


@contextmanager
def _without_panics(files: Sequence[Path]) -> Iterator[None]:
    """Hide the stack traces that polars prints to standard error for a file that it cannot read."""
    try:
        stderr = os.dup(2) if any(file.suffix.lower() in READ_BY_POLARS for file in files) else -1
    except OSError:  # there is no standard error
        stderr = -1
    if stderr < 0:
        yield
        return
    sys.stderr.flush()
    with tempfile.TemporaryFile() as captured:
        try:
            os.dup2(captured.fileno(), 2)
            yield
        except ValueError:
            captured.truncate(0)
            raise
        finally:
            sys.stderr.flush()
            os.dup2(stderr, 2)
            os.close(stderr)
            captured.seek(0)
            for line in captured:
                os.write(2, line)


# ---- outputs and runs


def check_outputs(
    outputs: Mapping[str, tuple[Callable[[Path], Any], Path | Sequence[Path] | None]],
    *,
    inputs: Iterable[Path] = (),
    runs: Iterable[Path | None] = (),
) -> None:
    """Refuse outputs that cannot be written, or that would overwrite an input, a run or another output.

    Parameters
    ----------
    outputs : mapping of str to (function, paths)
        For each flag the function that refuses a path of an unknown format, and the paths.
    inputs, runs : iterables of Path
        Files that are read, and files that hold runs.
    """
    stored = [path for path in runs if path is not None]
    journals = [path.with_name(path.name + ending) for path in stored for ending in ("-wal", "-journal", "-shm")]
    used = [*inputs, *stored, *journals]
    for flag, (require, paths) in outputs.items():
        for path in [paths] if isinstance(paths, Path) else paths or ():
            require(path)
            for other in used:
                if other.resolve() == path.resolve() or (other.exists() and path.exists() and other.samefile(path)):
                    raise ValueError(f"--{flag} {path} would overwrite {other}: choose another file")
            used.append(path)


@contextmanager
def standard_output(path: Path | None, ending: str, *, quiet: bool) -> Iterator[Path | None]:
    """Yield a temporary file in place of "-", and print its content at the end.

    Until then everything else that the command prints goes to standard error.
    """
    if path != DASH:
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{STANDARD_OUTPUT}{ending}"
        with redirect_stdout(io.StringIO() if quiet else sys.stderr):
            yield file
        if file.exists():
            sys.stdout.write(file.read_text(encoding="utf-8"))


def is_resumed(file: Path | None, *, resume: bool, quiet: bool, has_run: Callable[[Path], bool]) -> bool:
    """Whether a stored run is continued; with --resume, a run that does not exist yet is started."""
    if file is None:
        if resume:
            raise ValueError("--resume needs --ledger FILE, the file that keeps the run")
        return False
    if file.exists() and not resume:
        raise ValueError(f"{file} exists already: add --resume to continue its run, or choose another file")
    found = file.exists() and has_run(file)
    if resume and not found and not quiet:
        print_line(f"there is no run in {file} yet: starting a new one")
    return found
