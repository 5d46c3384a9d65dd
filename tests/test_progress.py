"""The live display: data is never markup, and nothing is shown unless asked."""

import io

import numpy as np
import pytest
from rich.console import Console

from probewise.probes import Subsets
from probewise.progress import Throttled, live_progress, one_line, panel
from probewise.stopping import Look, State
from probewise.tally import Tally

NAMES = ["[/]", "[red]gene", "a\nb", "x" * 100]


@pytest.fixture
def state():
    tally = Tally.of(Subsets.of([[0, 1], [1, 2], [2, 3], [3]]), np.array([0.4, 0.3, 0.2, 0.1]), 4)
    look = Look(4, 1.0, value_change=0.01, relative_change=0.5, overlap={2: 0.5})
    return State(4, 2.0, tally, (look,))


def test_names_are_text(state):
    console = Console(file=io.StringIO(), width=200)
    console.print(panel(state, 1000.0, NAMES, "DAF"))
    shown = console.file.getvalue()
    for text in ("[/]", "[red]gene", "a\\nb", "1,000 probes/s", "C2 1.00e-02 (50.0% of the first)", "50% of the top 2"):
        assert text in shown
    assert "x" * 41 not in shown
    assert one_line(state, 1000.0, NAMES, "DAF").count("\n") == 0
    assert one_line(state, 1000.0, None, "DAF").endswith("top: 0, 1, 2, 3")


def test_lines_are_rare_and_speed_is_of_this_session(state):
    shown = []
    throttled = Throttled(0.0, lambda state, speed: shown.append(speed))
    throttled(state)
    throttled(State(104, 3.0, state.tally))
    assert shown[1] == 100.0
    rare = Throttled(1e9, lambda state, speed: shown.append(speed))
    rare(state)
    assert len(shown) == 2


def test_nothing_is_shown_unless_asked(state, capsys):
    with live_progress(0) as progress:
        assert progress is None
    with live_progress(1) as progress:
        progress.last = -1e9
        progress(state)
    assert "DAF: 4 probes" in capsys.readouterr().err
