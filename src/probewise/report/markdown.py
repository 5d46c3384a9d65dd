"""A summary as Markdown: the verdict, the top features, and the numbers behind them, for a ticket or a commit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from ..engine.interactions import IN_WORDS
from ..engine.progress import span
from .direction import in_words
from .ranking_table import ENDS, decimals_of, for_people, typeset_cell
from .verdict import predicts
from .words import count, evidence, number, p_value, percent, quoted

TOP, WAYS = 30, 10


def render_markdown(summary: dict[str, Any]) -> str:
    """The report as Markdown.

    Parameters
    ----------
    summary : dict of str to object
        What `summarize` gave.

    Returns
    -------
    str
        Of the ranking it has the top 30.
    """
    heading = [f"# {text(summary['asked']['question'])}", *map(text, summary["verdict"])]
    known = [section for name, section in SECTIONS.items() if summary[name] is not None]
    parts = [heading, *(section(summary) for section in known)]
    return "\n\n".join(line for part in parts for line in part) + "\n"


def text(value: Any) -> str:
    """The value as plain text in Markdown, on one line: what would be markup is escaped."""
    line = " ".join(str(value).split())
    line = re.sub(r"([\\`*_\[\]|~#])", r"\\\1", line)
    return line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def table(head: Sequence[Any], rows: Iterable[Sequence[Any]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        f"| {' | '.join(text(cell) if i != 1 else str(cell) for cell in line)} |" for i, line in enumerate(lines)
    )


def fenced(code: str, language: str) -> str:
    """A block of code, in a fence longer than any inside it."""
    longest = max((len(run) for run in re.findall(r"`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{code}\n{fence}"


def _data(summary: dict[str, Any]) -> list[str]:
    data, asked = summary["data"], summary["asked"]
    size = [count(data["rows"], "row")] if data["rows"] is not None else []
    lines = [("table", asked["source"]), ("target", asked["target"])]
    lines.append(("size", ", ".join([*size, count(data["features"], "feature")])))
    if "missing_cells" in data:
        lines.append(
            ("missing", f"{count(data['missing_cells'], 'cell')} in {count(data['missing_columns'], 'column')}")
        )
        lines.append(("constant", count(data["constant_columns"], "column")))
    if "classes" in data:
        lines.append(("classes", ", ".join(f"{each['label']} ({each['rows']:,})" for each in data["classes"][:12])))
    return ["## The data", "\n".join(f"- {name}: {text(value)}" for name, value in lines if value)]


def _ranking(summary: dict[str, Any]) -> list[str]:
    columns = summary["ranking"]["columns"]
    labels = {name: text for name, text in summary["ranking"]["labels"].items() if name not in ENDS}
    labels = for_people(labels)
    decimals = decimals_of(columns)
    rows = [
        [typeset_cell(key, value, decimals) for key, value in zip(labels, row, strict=True)]
        for row in zip(*(columns[key][:TOP] for key in labels), strict=True)
    ]
    n_more = len(columns["feature"]) - len(rows)
    told = [f"{sentence}." for sentence in (summary["features"] or {}).get("told", ())]
    ways = [(name, in_words(columns, place, quoted)) for place, name in enumerate(columns["feature"][:WAYS])]
    sentences = "\n".join(
        f"- {text(line)}" for line in [*told, *(f"{quoted(name)}: {way}" for name, way in ways if way)]
    )
    parts = ["## The ranking", text(summary["asked"]["way"]), sentences, table(list(labels.values()), rows)]
    return [part for part in parts if part] + ([f"and {n_more:,} more"] if n_more else [])


def _study(summary: dict[str, Any]) -> list[str]:
    study, told = summary["study"], summary["study"]["told"]
    by_size = {
        f"accuracy, {name}": ([of[k] for of in study["accuracy"]], told["accuracy"][k])
        for k, name in enumerate(study["classifiers"])
    }
    by_size["stability, Nogueira"] = study["stability"]["nogueira"], told["stability"]["nogueira"]
    parts = [f"## Methods compared: {count(study['trials'], 'split')}"]
    for what, (values, sentence) in by_size.items():
        rows = [[name, *(number(value) for value in row)] for name, row in zip(study["selectors"], values, strict=True)]
        parts += [table([what, *study["sizes"]], rows), text(sentence)]
    pairs = study["pairs"]
    tests = zip(pairs["first"], pairs["second"], pairs["classifier"], pairs["difference"], pairs["p_holm"], strict=True)
    rows = [
        [f"{first} − {second}", name, number(difference), number(p)] for first, second, name, difference, p in tests
    ]
    if not rows:
        return parts
    return [*parts, table(["difference in accuracy", "classifier", "mean", "p (Holm)"], rows), text(told["pairs"])]


def _sizes(summary: dict[str, Any]) -> list[str]:
    sizes = summary["sizes"]
    suggested = sizes["suggested"] if predicts(summary) else None
    how = "made anew in each fold" if sizes["honest"] else "made on all rows, so this is optimistic"
    rows = [
        [size, number(score), number(error), "suggested" if size == suggested else ""]
        for size, score, error in zip(sizes["size"], sizes["score"], sizes["std_error"], strict=True)
    ]
    return [
        "## How many features",
        text(f"Judged by {sizes['judge']}, cross-validated in {sizes['folds']} folds; the ranking was {how}."),
        table(["features", sizes["measure"], "std error", ""], rows),
    ]


def _convergence(summary: dict[str, Any]) -> list[str]:
    looks = summary["convergence"]
    shared, top = percent(looks["overlap"][-1]), looks["top"]
    return [
        "## Convergence",
        f"After {looks['probes'][-1]:,} probes two halves of the run share {shared} of the top {top}; "
        f"C is {number(looks['order_change'][-1], 2)}, C2 {looks['value_change'][-1] or 0:.3g}.",
    ]


def _alone(summary: dict[str, Any]) -> list[str]:
    alone = summary["alone"]
    shared = ", ".join(f"{name.upper()} {number(amount)}" for name, amount in alone["shared"].items())
    missed, outdone = (", ".join(alone[kind]) or "none" for kind in ("revealed", "outdone"))
    words = f"Of the top {alone['top']}, also in the top {alone['top']} alone: {shared}."
    words += f" High here, low alone: {missed}. High alone, low here: {outdone}."
    return ["## Features judged alone", text(words)]


def _redundancy(summary: dict[str, Any]) -> list[str]:
    pairs = summary["likeness"]["nearly_the_same"][:10]
    rows = [[pair["first"], pair["second"], number(pair["correlation"], 4)] for pair in pairs]
    title = "## Redundancy: pairs that are nearly the same"
    return [title, table(["feature", "and", "correlation"], rows)] if rows else []


def _interactions(summary: dict[str, Any]) -> list[str]:
    found = summary["interactions"]
    decimals = decimals_of(summary["ranking"]["columns"])
    rows = []
    for pair in found["strongest"]:
        figures = [number(pair[key], decimals) for key in ("contrast", "std_error")]
        rows.append([pair["first"], pair["second"], IN_WORDS[pair["kind"]], *figures, p_value(pair["p_holm"])])
    groups = [f"- {text(group['words'])} ({evidence(group['evidence'])})" for group in found["groups"]]
    return [
        "## What goes together",
        table(["feature", "and", "what they do", "contrast", "std error", "p (Holm)"], rows),
        "\n".join(groups) or "No feature of the top was seen to stand in for another.",
    ]


def _run(summary: dict[str, Any]) -> list[str]:
    run, repeat = summary["run"], summary["repeat"]
    lines = [
        ("criterion", summary["asked"]["criterion"]),
        ("probes", run["probes"] and f"{run['probes']:,} in {span(run['seconds'])}"),
        ("seed", run["seed"]),
        ("stopped because", run["stop_reason"]),
        ("versions", ", ".join(f"{name} {version}" for name, version in summary["versions"].items())),
    ]
    parts = ["## The run", "\n".join(f"- {name}: {text(value)}" for name, value in lines if value is not None)]
    parts += [fenced(repeat["command"], "console")] if repeat["command"] else []
    return parts + ([fenced(repeat["code"], "python")] if repeat["code"] else [])


SECTIONS = {
    "data": _data,
    "ranking": _ranking,
    "study": _study,
    "sizes": _sizes,
    "convergence": _convergence,
    "alone": _alone,
    "likeness": _redundancy,
    "interactions": _interactions,
    "run": _run,
}
