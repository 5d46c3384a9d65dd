"""The command line: options in, a public function called, tables out."""

from .app import main, run

__all__ = ["main", "run"]
