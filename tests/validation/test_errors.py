"""The error for wrong parameters, and the line that a warning points at."""

import pickle
import warnings

import numpy as np
import pytest

from probewise import Tournament
from probewise.validation.errors import ParameterError


def test_parameter_error_is_a_value_error_with_one_message():
    error = ParameterError("n_probes=0 must be a whole number of at least 1")
    assert isinstance(error, ValueError)
    assert str(error) == "n_probes=0 must be a whole number of at least 1"


def test_parameter_error_survives_pickling():
    error = pickle.loads(pickle.dumps(ParameterError("cv=1: use at least 2 folds")))
    assert (type(error), str(error)) == (ParameterError, "cv=1: use at least 2 folds")


@pytest.mark.filterwarnings("always")
def test_a_warning_points_at_the_line_of_the_user():
    rng = np.random.default_rng(0)
    with warnings.catch_warnings(record=True) as caught:
        Tournament(time_limit=1e-9, random_state=0).fit(rng.normal(size=(20, 5)), np.arange(20) % 2)
    assert caught
    assert {warning.filename for warning in caught} == {__file__}
