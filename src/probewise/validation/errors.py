"""Errors that name parameters as data, worded by Python and by the command line each in its own way; and warnings."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

UNSAID: Any = ...
BETWEEN = ("probewise", "sklearn")  # the line of the user is above all lines of these


@dataclass(frozen=True)
class Parameter:
    """A parameter named in a message, with the value that the user gave it if that matters."""

    name: str  # in Python
    value: Any = UNSAID  # shown as Python writes it, and never looked into

    def __str__(self) -> str:
        return self.name if self.value is UNSAID else f"{self.name}={self.value!r}"


class Setting(Parameter):
    """A parameter to give instead, as a remedy; ``None`` as its value means to leave it out."""

    def __str__(self) -> str:
        return f"{self.name}=..." if self.value is UNSAID else super().__str__()


class ForPython:
    """Advice in words that only a Python caller can use; ``otherwise`` is what all others read in its place."""

    def __init__(self, text: str, *otherwise: str | Parameter) -> None:
        self.text, self.otherwise = text, otherwise

    def __str__(self) -> str:
        return self.text


Part: TypeAlias = str | Parameter | ForPython
Message: TypeAlias = tuple[Part, ...]


class ParameterError(ValueError):
    """What is wrong with a parameter and what to do about it: parts of a sentence, put together without blanks.

    Examples
    --------
    >>> error = ParameterError(Parameter("fdr", 3), " must be a share above 0 and below 1")
    >>> str(error)
    'fdr=3 must be a share above 0 and below 1'
    >>> error.worded(lambda parameter: f"--{parameter.name} {parameter.value}")
    '--fdr 3 must be a share above 0 and below 1'
    """

    def __init__(self, *parts: Part) -> None:
        super().__init__(*parts)

    def __str__(self) -> str:
        return "".join(map(str, self.args))

    def worded(self, word: Callable[[Parameter], str]) -> str:
        """The sentence with ``word`` of each parameter, for callers who do not write Python."""
        parts: list[Any] = [
            other for part in self.args for other in (part.otherwise if isinstance(part, ForPython) else (part,))
        ]
        return "".join(word(part) if isinstance(part, Parameter) else part for part in parts)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the user's line, through however many functions, or a pipeline, it led here."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in BETWEEN:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
