"""Output files of the commands: checks before any work is done, standard output in place of a file, and resuming."""

from __future__ import annotations

import io
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

from .console import print_line

DASH = Path("-")
STANDARD_OUTPUT = "standard output"


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


def shown(path: Path) -> str:
    """The name of an output file in messages."""
    return STANDARD_OUTPUT if path.stem == STANDARD_OUTPUT else str(path)


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
