"""Files of the commands: where results may go, checked before any work is done, standard output, and the table read."""

from __future__ import annotations

import io
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..validation.errors import ParameterError
from ..validation.tables import columns_not_finite
from .console import print_line
from .options import as_flag
from .parsing import is_file_of_groups, values_of

if TYPE_CHECKING:
    from ..io import Table

STANDARD_OUTPUT = "standard output"
FILLINGS, REFUSE = ("mean", "median"), "refuse"
FILLED_BY = ("auto", "knn", "linear")
READ_BY_POLARS = (".parquet", ".arrow", ".feather", ".ipc", ".zst")
INPUTS = ("data", "target_file", "names", "costs")
KEPT = ("ledger", "run", "first", "second")


def check_outputs(given: Any, required: Mapping[str, Callable[[Path], Any]]) -> None:
    """Refuse what could not be written, or would overwrite a file in use or another output.

    ``required`` has for each option what refuses a path of a format that cannot be written.
    """
    used = _in_use(given)
    for option, require in required.items():
        asked = getattr(given, option) or ()
        for path in [asked] if isinstance(asked, Path) else asked:
            require(path)
            for other in used:
                if other.resolve() == path.resolve() or (other.exists() and path.exists() and other.samefile(path)):
                    raise ValueError(f"--{option} {path} would overwrite {other}: choose another file")
            used.append(path)


def reports_of(given: Any, option: str) -> list[Path]:
    """The reports to write: those of the option, and of --json and --markdown."""
    paths = list(getattr(given, option) or ())
    for name, path, ending in (("json", given.json, ".json"), ("markdown", given.markdown, ".md")):
        if path is not None and path.suffix.lower() != ending:
            raise ValueError(f"--{name} {path}: name it *{ending}")
        paths += [] if path is None else [path]
    return paths


def _in_use(given: Any) -> list[Path]:
    """The files that a command reads or keeps, with those that stand beside them."""
    from ..io.npy import sidecar_of

    read = [path for path in (getattr(given, name, None) for name in INPUTS) if path is not None]
    read += [Path(text) for text in getattr(given, "feature_groups", None) or () if is_file_of_groups(text)]
    kept = [path for path in (getattr(given, name, None) for name in KEPT) if path is not None]
    beside = [path.with_name(path.name + ending) for path in kept for ending in ("-wal", "-journal", "-shm")]
    return [*read, *(sidecar_of(path) for path in read), *kept, *beside]


@contextmanager
def piped(given: Any, endings: Mapping[str, str]) -> Iterator[None]:
    """Where one of these options is -, its content is printed, and what is else for people goes to standard error."""
    asked = [name for name in endings if getattr(given, name) in (Path("-"), [Path("-")])]
    if not asked:
        yield
        return
    if len(asked) > 1:
        raise ValueError(f"{', '.join(f'--{name} -' for name in asked)}: one of them can be on standard output")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{STANDARD_OUTPUT}{endings[asked[0]]}"
        is_list = isinstance(getattr(given, asked[0]), list)
        setattr(given, asked[0], [path] if is_list else path)
        with redirect_stdout(io.StringIO() if getattr(given, "quiet", False) else sys.stderr):
            yield
        if path.exists():
            sys.stdout.write(path.read_text(encoding="utf-8"))


def place(path: Path) -> str:
    """The file in words."""
    return STANDARD_OUTPUT if path.stem == STANDARD_OUTPUT else str(path)


def goes_on(file: Path | None, given: Any, has_begun: Callable[[Path], bool]) -> bool:
    """Whether there is a run to go on with; one that is to go on, if there is none, begins."""
    if file is None:
        if given.resume:
            raise ValueError("--resume needs --ledger FILE, the file that keeps the run")
        return False
    if file.exists() and not given.resume:
        raise ValueError(f"{file} exists already: add --resume to go on with it, or choose another file")
    begun = file.exists() and has_begun(file)
    if given.resume and not begun and not given.quiet:
        print_line(f"there is no run in {file} yet: it begins")
    return begun


def table_of(given: Any, *, allow_missing: bool = False) -> Table:
    from ..engine.progress import live_line
    from ..io import read_table

    with live_line(0 if given.quiet else 1) as progress, _without_panics(given.data, given.target_file):
        table = read_table(given.data, **_reading_options(given), allow_missing=allow_missing, progress=progress)
    for note in () if given.quiet else table.notes:
        print_line(ParameterError(*note).worded(as_flag))
    return table


def table_to_rank(given: Any, *, makes_probes: bool) -> Table:
    """The table, with missing values where the method takes them; where nothing was asked for, folds fill them."""
    if given.missing not in (None, *FILLINGS, REFUSE):
        raise ValueError(f"--missing {given.missing!r} is not known: choose {', '.join(FILLINGS)} or {REFUSE}")
    takes_nan = given.missing is not None or (makes_probes and given.criterion == "tree") or given.method == "fsdd"
    fills = makes_probes and not takes_nan and given.criterion in FILLED_BY and given.device in ("cpu", "auto")
    fills &= given.data.suffix.lower() != ".npy"  # what is mapped is looked at once
    if given.missing == REFUSE:
        given.missing, takes_nan = None, False
    table = table_of(given, allow_missing=takes_nan or fills)
    n_gaps = len(columns_not_finite(table.X)) if fills else 0
    if n_gaps:
        given.missing = "median"
    if n_gaps and not given.quiet:
        print_line(
            f"missing values, in {n_gaps:,} of {table.X.shape[1]:,} features, are filled with the median of the rows "
            f"each fold trains on (--missing median); --missing {REFUSE} if they must not be"
        )
    return table


def _reading_options(given: Any) -> dict[str, Any]:
    return {
        **values_of(given, "target", "target_file", "id_column", "features_in", "decimal"),
        "drop_unlabeled": given.drop_unlabelled,
        "feature_names": given.names,
        "ignore": given.ignore or (),
        "sample_weight": getattr(given, "weights", None),
        "groups": getattr(given, "groups", None),
        "categorical_features": [name for text in getattr(given, "categorical", ()) or () for name in text.split(",")],
    }


def reading_code(given: Any, *, allow_missing: bool) -> str:
    """The lines of Python that read the same table."""
    from ..io.input_files import STANDARD_INPUT

    options = {name: value for name, value in _reading_options(given).items() if value and value != "columns"}
    options |= {"allow_missing": True} if allow_missing else {}
    written = {name: str(value) if isinstance(value, Path) else value for name, value in options.items()}
    data = "-" if given.data == STANDARD_INPUT else str(given.data)
    arguments = ", ".join([repr(data), *(f"{name}={value!r}" for name, value in written.items())])
    taken = [f"{name} = table.{name}" for name in ("sample_weight", "groups") if options.get(name)]
    lines = ["from probewise.io import read_table", f"table = read_table({arguments})", "X, y = table.frame(), table.y"]
    return "\n".join([*lines, *taken])


@contextmanager
def _without_panics(*files: Path | None) -> Iterator[None]:
    """Keep back the pages that polars' own code prints of a file that it cannot read: the one line is ours."""
    by_polars = any(file is not None and file.suffix.lower() in READ_BY_POLARS for file in files)
    try:
        kept = os.dup(2) if by_polars else -1
    except OSError:  # there is no standard error
        kept = -1
    if kept < 0:
        yield
        return
    sys.stderr.flush()
    with tempfile.TemporaryFile() as held_back:
        try:
            os.dup2(held_back.fileno(), 2)
            yield
        except ValueError:
            held_back.truncate(0)
            raise
        finally:
            sys.stderr.flush()
            os.dup2(kept, 2)
            os.close(kept)
            held_back.seek(0)
            for line in held_back:
                os.write(2, line)
