"""Everything known about a run as one dict of JSON values."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from importlib import metadata
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import __version__
from .._selector import Selector
from ..engine.ledger import Ledger
from ..engine.run import Run
from ..engine.tally import COEFFICIENTS
from ..study import StudyResult
from ..study.runfile import SIGNATURE
from ..validation.errors import ForPython, Parameter, ParameterError
from . import evidence
from .code import code_of
from .data import Data, checked_data, described
from .direction import direction_columns, values_drawn
from .findings import Findings, checked_names, findings_of_ledger, findings_of_selector
from .leakage import giveaways
from .ranking_table import LABELS, certainty_columns, in_order, ranking_columns
from .study import comparison, findings_of_study, other_shares, read_study
from .verdict import verdict
from .words import plain_numbers, sentences_on_features

FORMAT = 1
A_KEPT_RUN = (
    "give a file of ",
    ForPython(
        "DAF(ledger=...) or of Study(run=...)", "rank ", Parameter("ledger"), " or of compare ", Parameter("run")
    ),
)
WAYS = {
    "DAF": "Random groups of features are tried. A feature ranks high if groups with it do better than groups without.",
    "Tournament": "Random groups of features are tried in rounds. After each the weaker part leaves; what is left last "
    "helped the others most.",
    "BIF": "Each feature is tried alone.",
    "SFFS": "A group of features is built one by one, each step the best there is, with steps back where they pay.",
    "EFS": "Features are taken one by one: each tells much about the target and is unlike those taken before.",
    "DFE": "Each feature is cut into intervals and judged alone by what these tell about the target.",
    "CFS": "A group is sought whose features go with the target but not with each other.",
    "FCBF": "Features are taken by what they tell about the target; one that is more like a better feature leaves.",
    "FSDD": "Each feature is judged alone: classes far apart and narrow are good.",
    "MRMR": "Features are taken one by one: each tells much about the target and little that is known already.",
    "JMI": "Features are taken one by one by what they tell about the target together with those taken before.",
    "CMIM": "Features are taken one by one by what they tell about the target that no feature taken before tells.",
    "ReliefF": "A feature is good if rows that are alike but differ in the target differ in it.",
    "study": "The rows are split at random, again and again. Methods select features on one part; classifiers trained "
    "there with these features are tested on the other part.",
}


def summarize(
    run: Any,
    X: Any = None,
    y: Any = None,
    *,
    source: str | None = None,
    target: str | None = None,
    command: str | None = None,
    reading: str | None = None,
    feature_names: Sequence[str] | None = None,
    coefficient: str | None = None,
    groups: Any = None,
    sample_weight: Any = None,
) -> dict[str, Any]:
    """Everything known about a run, as one dict of JSON values.

    Parameters
    ----------
    run : Selector, StudyResult or path-like
        A fitted selector, the result of a study, or the file of a ledger or of a study.
    X : {array-like, sparse matrix} of shape (n_samples, n_features), default=None
        The data of the run. Without them there is no accuracy by size, no likeness and no comparison with features
        judged alone.
    y : array-like of shape (n_samples,), default=None
        The target of the run.
    source, target : str, default=None
        What the data and the target are called.
    command : str, default=None
        The command line that made the run, to be shown; None: the one kept in its ledger.
    reading : str, default=None
        Lines of Python that make X and y, for the code that repeats the run.
    feature_names : sequence of str, default=None
        Names for a run that does not know them, as of sparse data.
    coefficient : {"daf0", "daf1", "daf2", "daf0_centered", "daf2_centered", "regression"}, default=None
        What a ledger is ranked by; None is "daf0". A fitted selector has its own.
    groups, sample_weight : array-like of shape (n_samples,), default=None
        Of the rows, as they were given to ``fit``: the score on rows not seen is made with them.

    Returns
    -------
    dict of str to object
        What is not known is None, with the reason in "gaps".

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from probewise import FSDD
    >>> from probewise.report import summarize
    >>> X, y = load_iris(return_X_y=True)
    >>> summary = summarize(FSDD(2).fit(X, y), X, y)
    >>> summary["ranking"]["columns"]["feature"]
    ['x2', 'x3', 'x0', 'x1']
    >>> summary["sizes"]["suggested"]
    3
    """
    found = findings_of(run, coefficient=coefficient)
    data = None if X is None else checked_data(found, X, y, groups=groups, sample_weight=sample_weight)
    if feature_names is not None:
        found = replace(found, names=checked_names(feature_names, len(found.names)))
    parts, gaps = _parts(found, data)
    code = None if found.selector is None else code_of(found.selector, reading)
    summary: dict[str, Any] = {
        "format": FORMAT,
        "asked": _asked(found, source, target),
        **parts,
        "study": None if found.study is None else comparison(found.study),
        "features": None if found.run is None else _features(found, found.run),
        "run": _run(found),
        "repeat": {"command": command or found.command, "code": code},
        "versions": _versions(found.version),
        "made": datetime.now().astimezone().isoformat(timespec="minutes"),
        "gaps": gaps,
    }
    summary["giveaways"] = None if data is None or found.study else _giveaways(found, data)
    summary["ranking"] = _ranking(found, data, (summary["alone"] or {}).pop("ranks", {}))
    summary["verdict"] = verdict(summary)
    return summary


def _parts(found: Findings, data: Data | None) -> tuple[dict[str, Any], dict[str, str]]:
    """What is computed from the run and the data, None where it is not known, and why it is not."""
    gaps: dict[str, str] = {}

    def part(name: str, make: Callable[..., dict[str, Any]], *arguments: Any, is_possible: bool = True) -> Any:
        try:
            if not is_possible:
                raise evidence.Unknown(evidence.NEEDS_DATA)
            return make(*arguments)
        except evidence.Unknown as reason:
            gaps[name] = str(reason)
            return None

    of_data = partial(part, is_possible=data is not None)
    on_rows_not_seen = None if found.study else of_data("honest", evidence.honest, found, data)
    curve = None if on_rows_not_seen is None else on_rows_not_seen.pop("curve")
    shape = {"rows": None if found.shape is None else found.shape[0], "features": len(found.names)}
    return {
        "data": of_data("data", described, found, data) or shape,
        "convergence": part("convergence", evidence.convergence, found) if found.run else None,
        "sizes": None if found.study else part("sizes", evidence.accuracy_by_size, found, curve, data),
        "honest": on_rows_not_seen,
        "alone": of_data("alone", evidence.alone, found, data),
        "likeness": of_data("likeness", evidence.likeness, found, data),
        "interactions": part("interactions", evidence.interactions, found, data) if found.run else None,
        "which_rows": part("which_rows", evidence.helped_rows, found, data) if found.run else None,
        "values": of_data("values", _values, found, data),
    }, gaps


def findings_of(run: Any, *, coefficient: str | None = None) -> Findings:
    """What a fitted selector, the result of a study, or the file of a ledger or of a study holds."""
    if isinstance(run, Selector):
        return findings_of_selector(run)
    if isinstance(run, StudyResult):
        return findings_of_study(run, {})
    if not isinstance(run, str | PathLike):
        raise ValueError(f"run={run!r} cannot be reported: give a fitted selector, a StudyResult, or the file of a run")
    path = Path(run)
    if not path.is_file():
        raise ParameterError(f"there is no run at {path}: ", *A_KEPT_RUN)
    if not path.stat().st_size:
        raise ParameterError(f"{path} is empty: ", *A_KEPT_RUN)
    with path.open("rb") as file:
        if file.read(len(SIGNATURE)) == SIGNATURE:
            return read_study(path)
    if coefficient not in (None, *COEFFICIENTS):
        known = ", ".join(COEFFICIENTS)
        raise ParameterError(Parameter("coefficient", coefficient), f" is not known: choose one of {known}")
    with Ledger(path) as ledger:
        return findings_of_ledger(ledger, coefficient)


def question_of(source: str | None, target: str | None, *, of_methods: bool = False) -> str:
    """The heading of a report."""
    of = f" of {source}" if source else ""
    for_what = f" to predict {target}" if target else ""
    if of_methods:
        return f"Which way to select features{of} works best{for_what}, and is it stable?"
    return f"Which features{of} matter{for_what}?"


def _asked(found: Findings, source: str | None, target: str | None) -> dict[str, Any]:
    scoring, way = found.settings.get("scoring"), WAYS.get(found.method, "")
    return {
        "method": found.method,
        "way": way,
        "question": question_of(source, target, of_methods=found.study is not None),
        "source": source,
        "target": target,
        "criterion": found.criterion_text if scoring is None else f"{found.criterion_text}, scored by {scoring}",
        "score": found.score_name,
    }


def _values(found: Findings, data: Data) -> dict[str, Any]:
    if data.target is None:
        raise evidence.Unknown(evidence.NO_TARGET)
    return values_drawn(data.X, data.target, found.order, found.names, found.categorical)


def _giveaways(found: Findings, data: Data) -> list[str] | None:
    if data.target is None:
        return None
    return [found.names[column] for column in giveaways(data.X, data.target, found.order)]


def _ranking(found: Findings, data: Data | None, ranks_alone: dict[str, NDArray[np.int64]]) -> dict[str, Any]:
    """The whole ranking as columns, best first, and the labels of the columns."""
    run, order, stands_out = found.run, found.order, found.stands_out
    columns = ranking_columns(
        found.ranking, found.scores, found.names, std_errors=found.std_errors, run=run, p_values=found.p_values
    )
    scored = "score" if found.coefficient == "regression" else found.score_name
    labels = LABELS | {"score": found.score_name, "above_average": f"{scored}, above average"}
    if data is not None and data.target is not None:
        columns |= direction_columns(data.X, data.target, order, found.categorical)
    if run is not None and found.coefficient is not None:
        columns |= certainty_columns(run, found.coefficient, found.ranking, found.top)
        labels["in_top"] = LABELS["in_top"].format(top=found.top)
        if stands_out is not None:
            columns["stands_out"] = stands_out[order]
        if run.in_rounds:
            columns["left_in_round"] = [left or None for left in run.rounds_left()[order].tolist()]
    columns = in_order(columns)
    for name, ranks in ranks_alone.items():
        columns[name], labels[name] = ranks[order], f"rank by {name.upper()}"
    if found.study is not None:
        for name, (label, shares) in other_shares(found.study).items():
            columns[name], labels[name] = shares[order], label
    return {
        "columns": {name: _as_list(values) for name, values in columns.items()},
        "labels": {name: labels[name] for name in columns},
        "column_numbers": order.tolist(),
        "standing_out": None if stands_out is None else int(stands_out.sum()),
        "rate": found.fdr,
    }


def _as_list(values: Any) -> list[Any]:
    if isinstance(values, list):
        return values
    return plain_numbers(values) if values.dtype.kind == "f" else list(values.tolist())


def _run(found: Findings) -> dict[str, Any]:
    run = found.run
    return {
        "probes": None if run is None else run.ledger.n_probes,
        "seconds": None if run is None else run.ledger.seconds,
        "seed": found.seed,
        "stop_reason": None if run is None else run.stop_reason,
        "settings": found.settings,
    }


def _features(found: Findings, run: Run) -> dict[str, Any]:
    """What was asked about single features, and what became of it; "told" has it in sentences."""
    units, names = run.units, found.names
    rounds = [{"from_probe": part.start, "features": len(part.active)} for part in run.plan.rounds]
    return {
        "told": sentences_on_features(run, names),
        "groups": [[names[column] for column in unit.tolist()] for unit in units.members if len(unit) > 1],
        "kept": [names[column] for column in units.kept.tolist()],
        "dropped": [names[column] for column in units.dropped.tolist()],
        "categorical": [names[column] for column in found.categorical.tolist()],
        "rounds": rounds if run.in_rounds else None,
    }


def _versions(of_run: str) -> dict[str, str]:
    versions = {"probewise": __version__, "python": platform.python_version()}
    versions |= {name: metadata.version(name) for name in ("numpy", "scipy", "scikit-learn", "numba")}
    return versions if of_run == __version__ else {"probewise, of the run": of_run, **versions}
