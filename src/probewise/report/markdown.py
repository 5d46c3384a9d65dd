"""The dict as Markdown: the verdict, the top features, and the numbers behind them, for a ticket or a commit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from ..probing.interactions import IN_WORDS
from .words import count, decimals_of, evidence, number, p_value, percent, span

TOP = 30


def render_markdown(summary: dict[str, Any]) -> str:
    """The report as Markdown text; of the ranking the top 30."""
    parts = [
        [f"# {text(summary['asked']['question'])}", *map(text, summary["verdict"])],
        _data(summary),
        _ranking(summary),
        _study(summary["study"]),
        _sizes(summary["sizes"]),
        _convergence(summary["convergence"]),
        _alone(summary),
        _pairs(
            "Redundancy: pairs that are nearly the same",
            (summary["likeness"] or {}).get("nearly_the_same"),
            "correlation",
        ),
        _interactions(summary),
        _run(summary),
    ]
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
    columns, labels = summary["ranking"]["columns"], summary["ranking"]["labels"]
    decimals = decimals_of(columns)
    apart: dict[str, Callable[[Any], str]] = {"p_value": p_value, "cost": "{:g}".format}

    def shown(key: str, value: Any) -> str:
        return value if isinstance(value, str) else apart.get(key, partial(number, decimals=decimals))(value)

    rows = [
        [shown(key, value) for key, value in zip(labels, row, strict=True)]
        for row in zip(*(columns[key][:TOP] for key in labels), strict=True)
    ]
    left = len(columns["feature"]) - len(rows)
    more = [f"and {left:,} more"] if left else []
    told = [f"- {text(sentence)}." for sentence in (summary["features"] or {}).get("told", ())]
    way = [text(summary["asked"]["way"]), *(["\n".join(told)] if told else [])]
    return ["## The ranking", *way, table(list(labels.values()), rows), *more]


def _study(study: dict[str, Any] | None) -> list[str]:
    if study is None:
        return []
    parts = [f"## Methods compared: {count(study['trials'], 'split')}"]
    for place, classifier in enumerate(study["classifiers"]):
        rows = [
            [name, *(number(value, 3) for value in study["accuracy"][method][place])]
            for method, name in enumerate(study["selectors"])
        ]
        parts.append(table([f"accuracy, {classifier}", *study["sizes"]], rows))
    stable = [
        [name, *(number(value, 3) for value in study["stability"]["nogueira"][method])]
        for method, name in enumerate(study["selectors"])
    ]
    parts.append(table(["stability, Nogueira", *study["sizes"]], stable))
    pairs = study["pairs"]
    tests = zip(pairs["first"], pairs["second"], pairs["classifier"], pairs["difference"], pairs["p_holm"], strict=True)
    rows = [
        [f"{first} − {second}", name, number(difference, 3), number(p, 3)]
        for first, second, name, difference, p in tests
    ]
    return [*parts, table(["difference in accuracy", "classifier", "mean", "p (Holm)"], rows)] if rows else parts


def _sizes(sizes: dict[str, Any] | None) -> list[str]:
    if sizes is None:
        return []
    how = "made anew in each fold" if sizes["honest"] else "made on all rows, so this is optimistic"
    rows = [
        [size, number(score, 3), number(error, 3), "suggested" if size == sizes["suggested"] else ""]
        for size, score, error in zip(sizes["size"], sizes["score"], sizes["std_error"], strict=True)
    ]
    return [
        "## How many features",
        text(f"Judged by {sizes['judge']}, cross-validated in {sizes['folds']} folds; the ranking was {how}."),
        table(["features", sizes["measure"], "std error", ""], rows),
    ]


def _convergence(looks: dict[str, Any] | None) -> list[str]:
    if looks is None:
        return []
    shared, top = percent(looks["overlap"][-1]), looks["top"]
    return [
        "## Convergence",
        f"After {looks['probes'][-1]:,} probes two halves of the run share {shared} of the top {top}; "
        f"C is {number(looks['order_change'][-1], 2)}, C2 {looks['value_change'][-1] or 0:.3g}.",
    ]


def _alone(summary: dict[str, Any]) -> list[str]:
    alone = summary["alone"]
    if alone is None:
        return []
    shared = ", ".join(f"{name.upper()} {number(amount)}" for name, amount in alone["shared"].items())
    missed, top = ", ".join(alone["revealed"]) or "none", alone["top"]
    told = f"Of the top {top}, also in the top {top} alone: {shared}. High here, low alone: {missed}."
    return ["## Features judged alone", text(told)]


def _pairs(title: str, pairs: list[dict[str, Any]] | None, key: str) -> list[str]:
    if not pairs:
        return []
    return [
        f"## {title}",
        table(["feature", "and", key], [[p["first"], p["second"], number(p[key], 4)] for p in pairs[:10]]),
    ]


def _interactions(summary: dict[str, Any]) -> list[str]:
    told = summary["interactions"]
    if told is None:
        return []
    decimals = decimals_of(summary["ranking"]["columns"])
    rows = []
    for pair in told["strongest"]:
        figures = [number(pair[key], decimals) for key in ("contrast", "std_error")]
        rows.append([pair["first"], pair["second"], IN_WORDS[pair["kind"]], *figures, p_value(pair["p_holm"])])
    groups = [f"- {text(group['words'])} ({evidence(group['evidence'])})" for group in told["groups"]]
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
