"""Markdown: the verdict, the top features and the numbers behind them, for a ticket or a commit message."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from ..display import span
from .ranking_table import INTERVAL_ENDS, cell, decimals_of, direction_in_words, display_columns, typeset_cell
from .sentences import (
    adjustment_sentence,
    cluster_notes,
    count,
    inference_words,
    number,
    one_line,
    percent,
    predicts,
    selection_sentence,
    survival_sentence,
)

N_ROWS, N_DIRECTIONS = 30, 10


def render_markdown(summary: dict[str, Any]) -> str:
    """Render the result of `summarize` as Markdown, with the top 30 features of the ranking."""
    heading = [f"# {text(summary['header']['title'])}", *map(text, summary["verdict"])]
    parts = [heading]
    for title, sections in PARTS.items():
        lines = [section(summary) for name, section in sections.items() if summary[name] is not None]
        parts += [[f"## {title}"], *lines] if lines else []
    return "\n\n".join(line for part in parts for line in part) + "\n"


def text(value: Any) -> str:
    """The value as plain text on one line, with Markdown characters escaped."""
    line = " ".join(str(value).split())
    line = re.sub(r"([\\`*_\[\]|~#])", r"\\\1", line)
    return line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def table(head: Sequence[Any], rows: Iterable[Sequence[Any]]) -> str:
    texts = [[text(cell) for cell in row] for row in (head, *rows)]
    lines = [f"| {' | '.join(row)} |" for row in [texts[0], ["---"] * len(head), *texts[1:]]]
    return "\n".join(lines)


def bullets(items: Iterable[str]) -> str:
    return "\n".join(f"- {text(item)}" for item in items)


def fenced(code: str, language: str) -> str:
    """A block of code in a fence longer than any inside it."""
    longest = max((len(run) for run in re.findall(r"`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{code}\n{fence}"


def _data(summary: dict[str, Any]) -> list[str]:
    data, header = summary["data"], summary["header"]
    size = [count(data["rows"], "sample")] if data["rows"] is not None else []
    facts = {"table": header["source"], "target": header["target"]}
    facts["size"] = ", ".join([*size, count(data["features"], "feature")])
    if "missing_cells" in data:
        facts["missing"] = f"{count(data['missing_cells'], 'cell')} in {count(data['missing_columns'], 'column')}"
        facts["constant"] = count(data["constant_columns"], "column")
    if "classes" in data:
        facts["classes"] = ", ".join(f"{each['label']} ({each['rows']:,})" for each in data["classes"][:12])
    return [bullets(f"{name}: {value}" for name, value in facts.items() if value)]


def _ranking(summary: dict[str, Any]) -> list[str]:
    columns = summary["ranking"]["columns"]
    labels = {name: label for name, label in summary["ranking"]["labels"].items() if name not in INTERVAL_ENDS}
    labels = display_columns(labels)
    decimals = decimals_of(columns)
    rows = [
        [typeset_cell(name, value, decimals) for name, value in zip(labels, row, strict=True)]
        for row in zip(*(columns[name][:N_ROWS] for name in labels), strict=True)
    ]
    n_more = len(columns["feature"]) - len(rows)
    notes = [f"{note}." for note in (summary["features"] or {}).get("notes", ())]
    for row, name in enumerate(columns["feature"][:N_DIRECTIONS]):
        direction = direction_in_words(columns, row, one_line)
        notes += [f"{one_line(name)}: {direction}"] if direction else []
    parts = ["### The ranking", text(summary["header"]["description"]), bullets(notes)]
    parts += [table(list(labels.values()), rows), f"and {n_more:,} more" if n_more else ""]
    return [part for part in parts if part]


def _study(summary: dict[str, Any]) -> list[str]:
    study, sentences = summary["study"], summary["study"]["sentences"]
    by_size = {
        f"accuracy, {name}": ([of_method[k] for of_method in study["accuracy"]], sentences["accuracy"][k])
        for k, name in enumerate(study["classifiers"])
    }
    by_size["stability, Nogueira"] = study["stability"]["nogueira"], sentences["stability"]["nogueira"]
    parts = [count(study["trials"], "split")]
    for title, (values, sentence) in by_size.items():
        rows = [[name, *map(number, row)] for name, row in zip(study["selectors"], values, strict=True)]
        parts += [table([title, *study["sizes"]], rows), text(sentence)]
    pairs = study["pairs"]
    tests = zip(pairs["first"], pairs["second"], pairs["classifier"], pairs["difference"], pairs["p_holm"], strict=True)
    rows = [
        [f"{first} − {second}", name, number(difference), number(p)] for first, second, name, difference, p in tests
    ]
    if not rows:
        return parts
    return [*parts, table(["difference in accuracy", "classifier", "mean", "p (Holm)"], rows), text(sentences["pairs"])]


def _sizes(summary: dict[str, Any]) -> list[str]:
    sizes = summary["sizes"]
    suggested = sizes["suggested"] if predicts(summary) else None
    how = "repeated in each fold" if sizes["nested"] else "made on all samples, so these scores are optimistic"
    rows = [
        [size, number(score), number(error), "suggested" if size == suggested else ""]
        for size, score, error in zip(sizes["size"], sizes["score"], sizes["std_error"], strict=True)
    ]
    return [
        "### How many features are enough?",
        text(f"Scored by {sizes['scored_by']}, cross-validated in {sizes['folds']} folds; the ranking was {how}."),
        table(["features", sizes["measure"], "std error", ""], rows),
    ]


def _predictions(summary: dict[str, Any]) -> list[str]:
    found, title = summary["predictions"], "### Held-out predictions"
    how = f"Held-out predictions of {found['model']} with {count(found['size'], 'feature')}"
    if "rmse" in found:
        units = f"in the units of {summary['header']['target'] or 'the target'}"
        return [title, text(f"{how}: root mean squared error {found['rmse']:.3g} {units}, R² {found['r2']:.2f}.")]
    auc = "" if found["auc"] is None else f" AUC {found['auc']:.3f} ± {found['auc_error']:.3f};"
    scores = f"{auc} balanced accuracy {percent(found['balanced_accuracy'])}; base rate {percent(found['base_rate'])}"
    rows = [
        [name, *numbers, percent(recall)]
        for name, numbers, recall in zip(found["classes"], found["confusion"], found["recall"], strict=True)
    ]
    return [title, text(f"{how}:{scores}."), table(["true class", *found["classes"], "recall"], rows)]


def _survival(summary: dict[str, Any]) -> list[str]:
    found = summary["survival"]
    times = [f"at risk at {time:.3g}" for time in found["times"]]
    rows = [[half["name"], half["rows"], half["events"], *half["at_risk"]] for half in found["halves"]]
    return [
        "### Survival by predicted risk",
        survival_sentence(found),
        table(["half", "samples", "events", *times], rows),
    ]


def _adjustment(summary: dict[str, Any]) -> list[str]:
    return ["### Beyond the covariates", text(adjustment_sentence(summary))]


def _several(summary: dict[str, Any]) -> list[str]:
    found = summary["several"]
    parts = ["### Several targets"]
    if found["scores"] is not None:
        scores = zip(found["targets"], found["scores"]["r2"], found["scores"]["rmse"], strict=True)
        parts += [table(["target", "R², held out", "RMSE"], [[a, number(b, 2), number(c, 3)] for a, b, c in scores])]
    rows = [
        [name, *(number(value, 2) for value in row)]
        for name, row in zip(found["features"], found["correlation"], strict=True)
    ]
    return [
        *parts,
        text("Correlation of the best features with each target:"),
        table(["feature", *found["targets"]], rows),
    ]


def _convergence(summary: dict[str, Any]) -> list[str]:
    checks = summary["convergence"]
    shared, top = percent(checks["overlap"][-1]), checks["top"]
    return [
        "### Convergence",
        f"After {checks['probes'][-1]:,} probes, two halves of the run agree on {shared} of the top {top}; "
        f"C is {number(checks['order_change'][-1], 2)}, C2 is {checks['value_change'][-1] or 0:.3g}.",
    ]


def _univariate(summary: dict[str, Any]) -> list[str]:
    part = summary["univariate"]
    shared = ", ".join(f"{name.upper()} {number(amount)}" for name, amount in part["shared"].items())
    missed, univariate_only = (", ".join(part[kind]) or "none" for kind in ("missed", "univariate_only"))
    top = f"the top {part['top']}"
    words = f"Number of features in {top} that are also in {top} of a univariate ranking: {shared}."
    words += f" Ranked high here and low in univariate rankings: {missed}. The reverse: {univariate_only}."
    return ["### Comparison with univariate rankings", text(words)]


def _redundancy(summary: dict[str, Any]) -> list[str]:
    pairs = summary["redundancy"]["close_pairs"][:10]
    rows = [[pair["first"], pair["second"], number(pair["correlation"], 4)] for pair in pairs]
    title = "### Redundancy: nearly identical pairs"
    return [title, table(["feature", "and", "correlation"], rows)] if rows else []


def _inference(summary: dict[str, Any]) -> list[str]:
    tests = summary["inference"]
    sentences = [f"{inference_words(summary)}.", tests["explanation"]]
    notes = bullets(f"{note}." for note in cluster_notes(tests))
    return ["### Related and needed features", *map(text, sentences), *([notes] if notes else [])]


def _selection(summary: dict[str, Any]) -> list[str]:
    found = summary["selection"]
    words = f"{selection_sentence(found)}; Kuncheva's stability index is {number(found['stability'], 2)} "
    words += f"(1: the same features, 0: chance). The method was run again on {found['halves']} random halves."
    return ["### Would other samples give the same features?", text(words)]


def _interactions(summary: dict[str, Any]) -> list[str]:
    part, title = summary["interactions"], "### Pairs that act together"
    if not part["pairs"]:
        return [title, f"No pair is named at a false discovery rate of {percent(part['fdr'])}."]
    rows = [
        [pair["first"], pair["second"], cell("related", pair["only_together"], 0), cell("q_needed", pair["q_value"], 4)]
        for pair in part["pairs"]
    ]
    return [title, table(["feature", "and", "only together", "q-value"], rows)]


def _run(summary: dict[str, Any]) -> list[str]:
    run, repeat = summary["run"], summary["repeat"]
    facts = {
        "criterion": summary["header"]["criterion"],
        "probes": run["probes"] and f"{run['probes']:,} in {span(run['seconds'])}",
        "seed": run["seed"],
        "stop reason": run["stop_reason"],
        "versions": ", ".join(f"{name} {version}" for name, version in summary["versions"].items()),
    }
    parts = [bullets(f"{name}: {value}" for name, value in facts.items() if value is not None)]
    parts += [fenced(repeat["command"], "console")] if repeat["command"] else []
    return parts + ([fenced(repeat["code"], "python")] if repeat["code"] else [])


PARTS = {
    "The data": {"data": _data},
    "Which features predict best?": {
        "ranking": _ranking,
        "selection": _selection,
        "convergence": _convergence,
        "univariate": _univariate,
    },
    "Which features are related or needed?": {
        "inference": _inference,
        "interactions": _interactions,
        "redundancy": _redundancy,
    },
    "How well do they predict?": {
        "adjustment": _adjustment,
        "sizes": _sizes,
        "predictions": _predictions,
        "survival": _survival,
        "several": _several,
    },
    "Comparison of methods": {"study": _study},
    "The run": {"run": _run},
}
