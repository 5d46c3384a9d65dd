"""The command line: ``probewise rank``, ``compare``, ``report``, ``diff``, ``convert`` and ``demo``."""

import gc
import sys
from collections.abc import Sequence
from types import ModuleType

__all__ = ["main", "run"]


def main() -> None:
    """Run the ``probewise`` command and exit."""
    try:
        app = _app()
        gc.freeze()  # imported modules stay: do not search them for garbage while kernels are compiled
        app.main()
    except KeyboardInterrupt:  # while modules are imported; `run` catches the others
        print("probewise: interrupted before there was a result", file=sys.stderr)
        raise SystemExit(130) from None


def run(arguments: Sequence[str]) -> int:
    """Run the command that the arguments name, and return the exit code."""
    return int(_app().run(arguments))


def _app() -> ModuleType:
    try:
        from . import app
    except ModuleNotFoundError as error:
        if error.name != "typer":
            raise
        print("probewise: the command line needs the cli extra: pip install 'probewise[cli]'", file=sys.stderr)
        raise SystemExit(2) from None
    return app
