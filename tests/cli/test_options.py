"""Options of the commands: names, number, help texts, durations and stopping rules."""

import inspect
import re

import pytest

import probewise
from probewise import __version__
from probewise.cli import app, inputs, options
from probewise.io import convert_table, read_table
from probewise.stopping import MaxProbes, MaxTime
from probewise.study import Study

# Options that set no parameter: they choose the command's input, method and output.
OWN = {"data", "method", "top", "out", "select", "report", "quiet"}
# Parameters of the criteria, which the command passes to the criterion.
CRITERIA = {"task", "missing"}
FIT = {"sample_weight", "groups", "adjust"}


def flags(command):
    return set(inspect.signature(command).parameters) - {"context"}


def parameters(*functions):
    return {name for function in functions for name in inspect.signature(function).parameters}


def selector_parameters():
    kinds = [getattr(probewise, name) for name in inputs.METHODS.values()]
    return {name for kind in kinds for name in kind().get_params(deep=False)}


def test_rank_has_at_most_32_options():
    assert len(flags(app.rank) - {"data"}) <= 32


@pytest.mark.parametrize(("name", "most"), [("Tournament", 16), ("DAF", 20)])
def test_selectors_have_few_parameters(name, most):
    assert len(getattr(probewise, name)().get_params(deep=False)) <= most


def test_flags_have_the_names_of_parameters():
    known = selector_parameters() | parameters(read_table) | CRITERIA | FIT
    assert flags(app.rank) - OWN <= known
    assert flags(app.compare) - OWN - {"methods", "plot", "ledger"} <= known | parameters(Study)
    assert flags(app.report) - OWN - {"run"} <= known
    assert flags(app.convert) - OWN <= parameters(convert_table)


def test_help_of_rank_shows_every_option(succeed):
    text = succeed("rank", "--help").out
    for name in flags(app.rank) - {"data"}:
        assert f"--{name.replace('_', '-')} " in text


def test_version(succeed):
    assert succeed("--version") == (f"probewise {__version__}\n", "")


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_help_shows_the_commands_and_examples(succeed, arguments):
    text = succeed(*arguments).out
    for command in ("rank", "compare", "report", "diff", "convert", "demo"):
        assert re.search(rf"│ {command} ", text)
    assert "probewise rank data.csv --target label" in text


@pytest.mark.parametrize("command", ["rank", "compare", "report", "diff", "convert"])
def test_help_of_a_command_has_panels_and_an_example(succeed, command):
    text = succeed(command, "--help").out
    assert f"Example: probewise {command}" in text
    assert "Output" in re.findall(r"╭─ ([\w ]+) ─", text)
    if command == "rank":
        assert {"The table", "The method", "Output", "The run"} < set(re.findall(r"╭─ ([\w ]+) ─", text))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("0.5", 0.5), ("5m", 300), ("5 min", 300), ("1h30m", 5400), ("2d", 172800), ("1e3", 1000)],
)
def test_durations(text, seconds):
    assert options.seconds_in(text) == seconds


def test_limits_make_a_stopping_rule():
    assert inputs.stopping_rule(None, None) is None
    assert inputs.stopping_rule(70, None) == MaxProbes(70)
    assert inputs.stopping_rule(70, 2.0) == MaxProbes(70) | MaxTime(2.0)
