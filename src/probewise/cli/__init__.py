"""The command line: options in, a public function called, tables out."""

import gc
from collections.abc import Sequence

__all__ = ["main", "run"]


def main() -> None:
    """The entry point of the ``probewise`` command."""
    from . import app

    gc.freeze()  # what is imported stays: not to be searched for garbage again and again while kernels are compiled
    app.main()


def run(arguments: Sequence[str]) -> int:
    """Run the command that the arguments name; the exit code."""
    from . import app

    return app.run(arguments)
