"""The walk of ``DAF().fit`` in CONTRIBUTING.md is what a profiler sees."""

import re
import sys
from pathlib import Path

import probewise
from probewise import DAF
from probewise.datasets import make_madelon

SOURCE = Path(probewise.__file__).parent
CONTRIBUTING = Path(__file__).parents[1] / "CONTRIBUTING.md"


def stated():
    blocks = re.findall(r"^```walk\n(.*?)^```$", CONTRIBUTING.read_text(), re.DOTALL | re.MULTILINE)
    return [line.split()[0] for block in blocks for line in block.splitlines()]


def visited(work):
    files = set()

    def note(frame, event, argument):
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(SOURCE):
            files.add(path.relative_to(SOURCE).as_posix())

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return {name for name in files if not name.startswith("kernels/")}


def test_a_fit_visits_the_files_that_the_walk_names():
    data = make_madelon(n_samples=100, n_features=30, random_state=0)
    DAF(random_state=0).fit(data.X, data.y)  # modules are imported, kernels compiled
    assert sorted(visited(lambda: DAF(random_state=0).fit(data.X, data.y))) == sorted(stated())
