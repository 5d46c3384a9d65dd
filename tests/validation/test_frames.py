"""Raw data frames: one message lists all decisions, and `prepare` makes them."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

from probewise import Tournament, prepare

N = 60


def raw_columns():
    random = np.random.default_rng(0)
    days = pd.date_range("2024-01-01", periods=N, freq="36h")
    return {
        "dose": [None, *random.standard_normal(N - 1)],
        "visited": days.to_pydatetime().tolist(),
        "born": days.strftime("%Y-%m-%d").tolist(),
        "color": [None, *random.choice(["red", "green"], N - 1)],
        "score as text": [f"{value:.2f}" for value in random.standard_normal(N)],
        "sample": [f"S{k:03}" for k in range(N)],
        "sample_id": np.arange(N) + 1000,
        "patient_id": np.arange(N) // 3,
        "remark": [f"the sample was taken in room {k // 2}" for k in range(N)],
        "lab": ["north"] * N,
        "smoker": random.random(N) < 0.5,
    }


def raw(library):
    return library.DataFrame(raw_columns())


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_one_warning_lists_what_was_decided(library):
    frame = raw(library)
    with pytest.warns(UserWarning, match="decisions to check") as caught:
        prepared = prepare(frame)
    assert len(caught) == 1
    for words in (
        "'visited', 'born': dates, now days",
        "'color': text, now categories",
        "'sample', 'sample_id': ids, left out",
        "'patient_id': groups of rows, left out",
        "'remark': free text, left out",
        "'lab': constant",
        "'dose', 'color': with missing values",
    ):
        assert words in str(caught[0].message)
    assert list(prepared.columns) == ["dose", "visited", "born", "color", "score as text", "smoker"]
    visited = np.asarray(prepared["visited"])
    np.testing.assert_allclose(visited, 1.5 * np.arange(N))
    np.testing.assert_allclose(np.asarray(prepared["born"]), np.floor(visited))
    assert np.isnan(np.asarray(prepared["dose"])[0])
    y = (visited > 45).astype(int)
    with pytest.warns(UserWarning, match="are filled with the median"):
        tournament = Tournament(n_probes=100, random_state=0).fit(prepared, y)
    assert set(np.argsort(tournament.ranking_)[:2]) == {1, 2}
    assert type(prepared) is type(frame)


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_fit_names_everything_to_decide_at_once(library):
    frame = raw(library)
    with pytest.raises(ValueError, match="dates or times in 1 of 11 columns \\('visited'\\)") as error:
        Tournament().fit(frame, np.arange(N) % 2)
    for words in (
        "text in 5 of 11 columns",
        "missing values in 2 of 11 columns ('dose', 'color')",
        "probewise.prepare(X)",
    ):
        assert words in str(error.value)
    frame = frame.drop(columns="visited") if library is pd else frame.drop("visited")
    with pytest.raises(ValueError, match=r"other than numbers in 5 of 10 columns.*missing values in 2 of 10.*prepare"):
        Tournament().fit(frame, np.arange(N) % 2)


def test_tidy_frames_stay_as_they_are_without_a_word():
    frame = pd.DataFrame(np.random.default_rng(0).standard_normal((20, 3)), columns=list("abc"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pd.testing.assert_frame_equal(prepare(frame), frame)
    assert prepare(frame.set_index(pd.Index(list("abcdefghijklmnopqrst")))).index[3] == "d"


def test_times_with_zones_gaps_and_spans():
    times = pd.Series(pd.date_range("2024-01-01", periods=4, tz="Europe/Prague"))
    times[2] = pd.NaT
    frame = pd.DataFrame(
        {
            "at": times,
            "span": pd.to_timedelta([0, 6, 12, 48], unit="h"),
            "iso": ["2024-01-01T00:00:00Z", None, "2024-01-02T12:00:00Z", "2024-01-03"],
        }
    )
    with pytest.warns(UserWarning, match="'at', 'span', 'iso': dates"):
        prepared = prepare(frame)
    np.testing.assert_allclose(prepared["at"], [0, 1, np.nan, 3])
    np.testing.assert_allclose(prepared["span"], [0, 0.25, 0.5, 2])
    np.testing.assert_allclose(prepared["iso"], [0, np.nan, 1.5, 2])


def test_what_cannot_be_prepared():
    with pytest.raises(ValueError, match="frame is of type ndarray: give a data frame"):
        prepare(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="X has 2 columns of the name 'a'"):
        prepare(pd.DataFrame(np.eye(2), columns=["a", "a"]))
    with (
        pytest.warns(UserWarning, match="constant or empty"),
        pytest.raises(ValueError, match="no column of the frame is a feature"),
    ):
        prepare(pd.DataFrame({"a": [1, 1]}))
