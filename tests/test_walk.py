"""The default path in CONTRIBUTING.md is what a profiler sees."""

import re
import sys
from pathlib import Path

import probewise
from probewise import Tournament
from probewise.datasets import make_madelon

SOURCE = Path(probewise.__file__).parent
CONTRIBUTING = Path(__file__).parents[1] / "CONTRIBUTING.md"
MAX_FILES, MAX_FUNCTIONS = 24, 250


def stated():
    """The files of the walk in CONTRIBUTING.md."""
    (block,) = re.findall(r"^```walk\n(.*?)^```$", CONTRIBUTING.read_text(), re.DOTALL | re.MULTILINE)
    return [line.split()[0] for line in block.splitlines()]


def visited(work):
    """(file, function) of every function of the package that is called."""
    functions = set()

    def record(frame, event, argument):
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(SOURCE):
            functions.add((path.relative_to(SOURCE).as_posix(), frame.f_code.co_qualname))

    before = sys.getprofile()
    sys.setprofile(record)
    try:
        work()
    finally:
        sys.setprofile(before)
    return functions


def test_a_fit_visits_the_files_that_the_walk_names():
    data = make_madelon(n_samples=100, n_features=500, random_state=0)
    Tournament(20, random_state=0).fit(data.X, data.y)  # modules are imported, kernels compiled
    functions = visited(lambda: Tournament(20, random_state=0).fit(data.X, data.y))
    files = {file for file, _ in functions if not file.startswith("kernels/")}
    assert sorted(files) == sorted(stated())
    assert len(files) <= MAX_FILES
    assert len(functions) <= MAX_FUNCTIONS
