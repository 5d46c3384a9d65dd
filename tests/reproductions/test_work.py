"""Units of work: stored when they finish, the same for any number of workers, refused with other settings."""

import json

import numpy as np
import pytest

from probewise.progress import RateLimited
from probewise.study.trials import seeds
from reproductions.work import Work, unit_seconds

DATA = (np.arange(6.0).reshape(3, 2), np.array([0, 1, 0]))


def work(folder, **options):
    return Work(None, None, folder, **options)


def square(unit):
    return {"square": np.float64(unit) ** 2, "row": np.arange(unit)}


@pytest.mark.slow
def test_units_give_the_same_for_any_number_of_workers(tmp_path):
    alone = work(tmp_path / "a").units("squares", square, range(5), DATA)
    assert alone == work(tmp_path / "b", n_jobs=2).units("squares", square, range(5), DATA)
    assert alone[3] == {"square": 9.0, "row": [0, 1, 2]}


def test_finished_units_are_not_repeated_and_a_torn_line_is(tmp_path):
    calls = []

    def counted(unit):
        calls.append(unit)
        return square(unit)

    lines = []
    here = work(tmp_path, progress=lines.append)
    here.units("squares", counted, range(3), DATA)
    path = tmp_path / "runs" / "squares.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    here.units("squares", counted, range(4), DATA)
    assert calls == [0, 1, 2, 2, 3]
    assert lines[0] == "squares: 0 of 3 units are finished"
    assert "4 of 4, about 0 s left" in lines[-1]
    assert unit_seconds(tmp_path) >= 0


def test_the_start_of_a_part_is_shown_at_once(tmp_path):
    """A rate-limited display holds back recent lines, but not the first line of a part."""
    lines = []
    here = work(tmp_path, progress=RateLimited(1000.0, lines.append))
    here.tell("reading the data")
    here.units("squares", square, range(2), DATA)
    assert lines == ["reading the data", "squares: 0 of 2 units are finished"]


def test_other_settings_are_refused(tmp_path):
    work(tmp_path).units("squares", square, range(1), DATA, sizes=(1, 2))
    with pytest.raises(ValueError, match=r"its sizes is \[1, 2\], not \[1, 3\]"):
        work(tmp_path).units("squares", square, range(1), DATA, sizes=(1, 3))
    with pytest.raises(ValueError, match="its seed is 0, not 1"):
        work(tmp_path, seed=1).units("squares", square, range(1), DATA, sizes=(1, 2))


def test_seeds_differ_between_trials_and_uses():
    words = [word for trial in range(5) for word in seeds(0, trial).values()]
    assert len(set(words)) == 15
    assert json.dumps(seeds(3, 4)) == json.dumps(seeds(3, 4))
