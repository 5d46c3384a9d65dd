"""The command line: options in, a public function called, tables out.

Kernels that are to be compiled beside it are begun with first: what the commands import takes seconds.
"""

import gc
import sys
from collections.abc import Sequence

__all__ = ["main", "run"]


def main() -> None:
    """The entry point of the ``probewise`` command."""
    if {"rank", "demo"} & set(sys.argv[1:2]) and not {"--help", "--help-all", "--method"} & set(sys.argv):
        from . import precompile as ahead

        ahead.begin("draws", "linear", *(["neighbors"] if "demo" in sys.argv[1:2] else []), "rest")
    from . import app

    gc.freeze()  # what is imported stays: not to be searched for garbage again and again while kernels are compiled
    app.main()


def run(arguments: Sequence[str]) -> int:
    """Run the command that the arguments name; the exit code."""
    from . import app

    return app.run(arguments)
