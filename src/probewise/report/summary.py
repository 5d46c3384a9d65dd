"""The summary of a run: one dict of JSON values with everything a report shows, and the files it is written to."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from importlib import metadata
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import __version__
from .._selector import DEFAULT_FDR, Selector
from ..engine.ledger import Ledger
from ..engine.run import Run
from ..engine.schedule import FORWARD
from ..engine.tally import COEFFICIENTS
from ..inference import Discoveries
from ..validation.errors import ParameterError
from ..validation.parameters import completed_file, writable_path
from . import discoveries, outcomes, sections
from .findings import (
    Data,
    Findings,
    checked_data,
    checked_names,
    code_to_repeat,
    findings_of_ledger,
    findings_of_selector,
)
from .html import render_html, require_libraries
from .markdown import render_markdown
from .ranking_table import LABELS, direction_columns, in_label_order, json_numbers, leaking_columns, ranking_columns
from .sentences import notes_on_run, verdict

FORMAT = 1
HOW_TO_SAVE_A_RUN = "give the file of DAF(ledger=...), Tournament(ledger=...) or Study(ledger=...)"
FORWARD_ORDER = (
    " The features of the last round are ranked one at a time: the next one predicts best together with the ones "
    "before it. Their scores, which are means over random groups, can have another order."
)
METHODS = {
    "DAF": "Random groups of features (probes) are scored. A feature ranks high if probes that contain it score better "
    "than probes that do not.",
    "Tournament": "Random groups of features (probes) are scored in rounds. After each round the weakest features are "
    "dropped; the last ones left helped most.",
    "BIF": "Each feature is scored on its own.",
    "SFFS": "A set of features is built step by step. Each step adds the best feature, and then removes features as "
    "long as that improves the score.",
    "EFS": "Features are added one at a time. Each one is informative about the target and differs from the features "
    "added before.",
    "DFE": "Each feature is divided into intervals and scored on its own by what the intervals say about the target.",
    "CFS": "The method searches for a set of features that correlate with the target but not with each other.",
    "FCBF": "Features are added in the order of their relation to the target. A feature that is more closely related "
    "to a better feature than to the target is removed.",
    "FSDD": "Each feature is scored on its own. It ranks high if the classes are compact and far apart.",
    "MRMR": "Features are added one at a time. Each one is informative about the target and shares little information "
    "with the features added before.",
    "JMI": "Features are added one at a time by the information about the target that they provide together with the "
    "features added before.",
    "CMIM": "Features are added one at a time by the information about the target that no feature added before "
    "provides.",
    "ReliefF": "A feature ranks high if it differs between similar samples with different targets.",
    "study": "The samples are split at random several times. In each split every method selects features on the "
    "training samples, and classifiers trained on these features are tested on the other samples.",
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
    adjust: Any = None,
    inference: bool = True,
    fdr: float = DEFAULT_FDR,
) -> dict[str, Any]:
    """Summarize a run as one dict of JSON values.

    Parameters
    ----------
    run : Selector, StudyResult or path-like
        A fitted selector, the result of a study, or the ledger file of a run or a study.
    X : {array-like, sparse matrix} of shape (n_samples, n_features), default=None
        The data of the run. Without them the summary has no score by number of features, no correlations and no
        univariate rankings.
    y : array-like of shape (n_samples,), default=None
        The target of the run.
    source, target : str, default=None
        Names of the table and of the target.
    command : str, default=None
        The command line that made the run, to be shown; None: the one stored in its ledger.
    reading : str, default=None
        Lines of Python that create X and y, for the code that repeats the run.
    feature_names : sequence of str, default=None
        Names of the features if the run has none, for example for sparse data.
    coefficient : {"daf0", "daf1", "daf2", "daf0_centered", "daf2_centered", "regression"}, default=None
        The coefficient that ranks the run in a ledger; None: the default of its method. Ignored for a selector.
    groups, sample_weight, adjust : array-like of shape (n_samples,), default=None
        The arguments given to ``fit``; the score on held-out samples uses them.
    inference : bool, default=True
        Whether to test which features are related to the target, and which are needed given the others.
    fdr : float, default=0.1
        The false discovery rate of these tests.

    Returns
    -------
    dict of str to object
        Sections that could not be computed are None, and "omitted" has the reasons.

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
    2
    """
    findings = findings_of(run, coefficient=coefficient)
    data = (
        None if X is None else checked_data(findings, X, y, groups=groups, sample_weight=sample_weight, adjust=adjust)
    )
    if feature_names is not None:
        findings = replace(findings, names=checked_names(feature_names, len(findings.names)))
    computed, omitted = _computed_sections(findings, data, fdr if inference else None)
    univariate_ranks = (computed["univariate"] or {}).pop("ranks", {})
    frequencies = (computed["selection"] or {}).pop("frequencies", None)
    tests = (computed["inference"] or {}).pop("tests", {})
    summary: dict[str, Any] = {
        "format": FORMAT,
        "header": _header(findings, source, target),
        **computed,
        "warnings": list(getattr(findings.selector, "notes_", ())),
        "study": None,
        "features": None if findings.run is None else _features(findings, findings.run),
        "run": _run(findings),
        "repeat": {
            "command": command or findings.command,
            "code": None if findings.selector is None else code_to_repeat(findings.selector, reading),
        },
        "versions": _versions(findings.version),
        "created": datetime.now().astimezone().isoformat(timespec="minutes"),
        "omitted": omitted,
        "ranking": _ranking(findings, data, univariate_ranks, tests, frequencies),
    }
    if findings.study is not None:
        from .study import comparison, verdict_on_study

        summary["study"] = comparison(findings.study)
        return {**summary, "verdict": verdict_on_study(summary["study"])}
    return {**summary, "verdict": verdict(summary)}


def findings_of(run: Any, *, coefficient: str | None = None) -> Findings:
    """Findings of a fitted selector, of the result of a study, or of the ledger file of a run or a study."""
    if isinstance(run, Selector):
        return findings_of_selector(run)
    if not isinstance(run, str | PathLike):
        from ..study import StudyResult
        from .study import findings_of_study

        if isinstance(run, StudyResult):
            return findings_of_study(run, {})
        raise ValueError(f"run={run!r} cannot be reported: give a fitted selector, a StudyResult or a ledger file")
    path = Path(run)
    if not path.is_file():
        raise ParameterError(f"there is no run at {path}: {HOW_TO_SAVE_A_RUN}")
    if not path.stat().st_size:
        raise ParameterError(f"{path} is empty: {HOW_TO_SAVE_A_RUN}")
    from ..study import is_trial_ledger

    if is_trial_ledger(path):
        from .study import read_study

        return read_study(path)
    if coefficient not in (None, *COEFFICIENTS):
        raise ParameterError(f"coefficient={coefficient!r} must be one of {', '.join(COEFFICIENTS)}")
    with Ledger(path) as ledger:
        return findings_of_ledger(ledger, coefficient)


def _computed_sections(
    findings: Findings, data: Data | None, fdr: float | None
) -> tuple[dict[str, Any], dict[str, str]]:
    """The computed sections, None where one is unavailable, and the reasons; ``fdr=None``: no tests of features."""
    omitted: dict[str, str] = {}

    def compute(name: str, section: Callable[..., Any], *arguments: Any, needs_data: bool = False) -> Any:
        try:
            if needs_data and data is None:
                raise sections.Unavailable(sections.NO_DATA)
            return section(findings, *arguments)
        except ValueError as reason:
            omitted[name] = str(reason)
            return None

    has_run, is_study = findings.run is not None, findings.study is not None
    score = None if is_study else compute("nested_score", sections.nested_score, data, needs_data=True)
    nested = None if score is None else score.pop("nested")
    curve = None if nested is None else nested.curve
    found = None if is_study else compute("predictions", sections.held_out, curve, data)
    target = None if data is None else data.target
    survival = None if target is None or found is None else target.survival
    n_targets = 0 if target is None else target.n_targets
    is_adjusted = data is not None and "adjust" in data.fit_arguments
    tests = compute("inference", discoveries.inference, data, fdr) if has_run else None
    related = None if tests is None else tests["tests"]["related"]
    shape = {"rows": None if findings.shape is None else findings.shape[0], "features": len(findings.names)}
    return {
        "data": compute("data", sections.description, data, needs_data=True) or shape,
        "values": compute("values", sections.values, data, needs_data=True),
        "inference": tests,
        "interactions": compute("interactions", discoveries.interactions, data, fdr, related) if has_run else None,
        "nested_score": score,
        "sizes": None if is_study else compute("sizes", sections.score_by_size, curve, data),
        "predictions": sections.predictions(found),
        "survival": None if found is None or survival is None else outcomes.survival(found, survival),
        "adjustment": compute("adjustment", outcomes.adjustment, data, nested) if is_adjusted else None,
        "several": None if data is None or n_targets < 2 else outcomes.several(findings, data, found),
        "selection": None if is_study else compute("selection", sections.selection, data, needs_data=True),
        "convergence": compute("convergence", sections.convergence) if has_run else None,
        "univariate": compute("univariate", sections.univariate, data, needs_data=True),
        "redundancy": compute("redundancy", sections.redundancy, data, needs_data=True),
        "leakage": None
        if data is None or target is None or is_study
        else findings.names_of(leaking_columns(data.X, target, findings.order)),
    }, omitted


def _header(findings: Findings, source: str | None, target: str | None) -> dict[str, Any]:
    title = f"Which features{f' of {source}' if source else ''} {f'predict {target}' if target else 'matter'}?"
    if findings.study is not None:
        title = f"Which method selects the best features{f' of {source}' if source else ''}, and how stable is it?"
    criterion, scoring = findings.criterion_text, findings.parameters.get("scoring")
    is_forward = findings.run is not None and FORWARD in findings.run.ledger.settings
    return {
        "title": title,
        "method": findings.method,
        "description": METHODS.get(findings.method, "") + (FORWARD_ORDER if is_forward else ""),
        "source": source,
        "target": target,
        "criterion": criterion if scoring is None else f"{criterion}, scored by {scoring}",
        "score": findings.score_name,
    }


def _ranking(
    findings: Findings,
    data: Data | None,
    univariate_ranks: dict[str, NDArray[np.int64]],
    tests: dict[str, Discoveries],
    frequencies: NDArray[np.float64] | None,
) -> dict[str, Any]:
    """The whole ranking as columns, best feature first, and the labels of the columns."""
    order, columns = findings.order, ranking_columns(findings, tests, certainty=True)
    score = "score" if findings.coefficient == "regression" else findings.score_name
    labels = LABELS | {"score": findings.score_name, "above_average": f"{score}, above average"}
    labels["in_top"] = LABELS["in_top"].format(top=findings.top)
    if data is not None and data.target is not None:
        columns |= direction_columns(data.X, data.target, order, findings.categorical)
    if frequencies is not None:
        columns["selected_in"] = frequencies[order]
    columns = in_label_order(columns)
    for name, ranks in univariate_ranks.items():
        columns[name], labels[name] = ranks[order], f"rank by {name.upper()}"
    if findings.study is not None:
        from .study import shares_of_other_methods

        for name, (label, shares) in shares_of_other_methods(findings.study).items():
            columns[name], labels[name] = shares[order], label
    return {
        "columns": {name: _as_list(values) for name, values in columns.items()},
        "labels": {name: labels[name] for name in columns},
        "column_numbers": order.tolist(),
    }


def _as_list(values: Any) -> list[Any]:
    if isinstance(values, list):
        return values
    return json_numbers(values) if values.dtype.kind == "f" else list(values.tolist())


def _run(findings: Findings) -> dict[str, Any]:
    run = findings.run
    return {
        "probes": None if run is None else run.ledger.n_probes,
        "seconds": None if run is None else run.ledger.seconds,
        "seed": findings.seed,
        "stop_reason": None if run is None else run.stop_reason,
        "parameters": findings.parameters,
    }


def _features(findings: Findings, run: Run) -> dict[str, Any]:
    """Groups, kept and categorical features, and the rounds; "notes" describes them in sentences."""
    units = run.units
    notes = notes_on_run(run, findings.names)
    if getattr(findings.selector, "class_weight_", None) is not None:
        notes.append("All classes have the same weight in the scores, because one of them is rare")
    rounds = [{"from_probe": part.start, "features": len(part.active)} for part in run.plan.rounds]
    return {
        "notes": notes,
        "groups": [findings.names_of(unit) for unit in units.members if len(unit) > 1],
        "keep": findings.names_of(units.kept),
        "categorical": findings.names_of(findings.categorical),
        "rounds": rounds if run.in_rounds else None,
    }


def _versions(version_of_run: str) -> dict[str, str]:
    versions = {"probewise": __version__, "python": platform.python_version()}
    versions |= {name: metadata.version(name) for name in ("numpy", "scipy", "scikit-learn", "numba")}
    return versions if version_of_run == __version__ else {"probewise (run)": version_of_run, **versions}


# ---- files


def save(summary: dict[str, Any], path: str | PathLike[str]) -> Path:
    """Write the result of `summarize` to a file, whose ending decides the format: .html, .md or .json."""
    path = require_report_path(path)
    text = FORMATS[path.suffix.lower()](summary)
    with completed_file(path) as file:
        file.write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")
    return path


def render_json(summary: dict[str, Any]) -> str:
    """Render a summary as one line of JSON with all features."""
    return json.dumps(summary, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n"


def require_report_path(path: str | PathLike[str]) -> Path:
    """Check that `save` can write to the path: known format, installed libraries, existing folder."""
    path = writable_path(path, list(FORMATS), "a report cannot be written to {}: name it .html, .md or .json")
    if FORMATS[path.suffix.lower()] is render_html:
        require_libraries()
    return path


FORMATS: dict[str, Callable[[dict[str, Any]], str]] = {
    ".html": render_html,
    ".htm": render_html,
    ".md": render_markdown,
    ".json": render_json,
}
