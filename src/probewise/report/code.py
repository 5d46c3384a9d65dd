"""Python code that repeats the fit of a selector."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import takewhile
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import BaseCrossValidator

from .._probing import ProbingSelector
from .._selector import Selector
from ..criteria import Criterion
from ..stopping import MaxProbes, Rule

WITHOUT_CONSEQUENCE: dict[str, Any] = {"ledger": None, "n_jobs": None, "verbose": 0}  # for the ranking
FEATURE_PARAMETERS = ("feature_groups", "keep", "drop", "categorical_features")
LONGEST_LINE = 10_000


def code_of(selector: Selector, reading: str | None = None) -> str | None:
    """The code that gives this very result; None where a parameter cannot be written down.

    ``reading`` are the lines that make X and y.
    """
    again = clone(selector)
    parameters = again.get_params(deep=False)
    again.set_params(**{name: value for name, value in WITHOUT_CONSEQUENCE.items() if name in parameters})
    if isinstance(selector, ProbingSelector):
        limit = {"stop": MaxProbes(selector.n_probes_)} if "stop" in parameters else {"n_probes": selector.budget_}
        again.set_params(**limit, random_state=selector.run_.plan.seed)
    assignments = _assigned_before(again)
    text = repr(again)
    if " at 0x" in text or any(len(line) > LONGEST_LINE for line in assignments):
        return None
    imports = [f"from probewise import {type(selector).__name__}"]
    for parameter in again.get_params(deep=True).values():
        for value in parameter if isinstance(parameter, tuple) else (parameter,):
            if isinstance(value, BaseEstimator | Rule | BaseCrossValidator):
                imports.append(f"from {_public_module(type(value))} import {type(value).__name__}")
    of_rows = "".join(f", {name}={name}" for name in getattr(selector, "fit_arguments_", ()))
    fit = f"{type(selector).__name__.lower()} = {text}.fit(X, y{of_rows})"
    lines = (reading or "# X, y: the data of the run").splitlines()
    imports += [line for line in lines if line.startswith("from ")]
    return "\n".join([*dict.fromkeys(imports), "", *(line for line in lines if line not in imports), *assignments, fit])


class _Name(str):
    """A text that is written without quotes."""

    def __repr__(self) -> str:
        return str(self)


def _assigned_before(selector: Selector) -> list[str]:
    """Lines that assign parameters about features to variables, which take the values' places in the selector."""
    lines = []
    for name in FEATURE_PARAMETERS:
        value = selector.get_params(deep=False).get(name)
        if value is not None and not isinstance(value, str):
            lines.append(f"{name} = {_without_arrays(value)!r}")
            selector.set_params(**{name: _Name(name)})
    return lines


def _without_arrays(value: Any) -> Any:
    """Arrays as lists, also inside of dicts and lists."""
    if isinstance(value, Mapping):
        return {_without_arrays(key): _without_arrays(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    if isinstance(value, list | tuple):
        return [_without_arrays(item) for item in value]
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def _public_module(kind: type) -> str:
    """Where a class is imported from: its module, up to the first private part."""
    if issubclass(kind, Criterion):
        return "probewise.criteria"
    return ".".join(takewhile(lambda part: not part.startswith("_"), kind.__module__.split(".")))
