"""Constraints on parameters, declared as data and checked by `check_parameters`."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from probewise.validation.errors import ParameterError
from probewise.validation.parameters import PATH, SHARE, check_parameters, number, whole_number

CONSTRAINTS = {
    "n_probes": (whole_number(1), "auto"),
    "time_limit": (number(above=0), None),
    "protect": (True, False, "auto"),
    "fdr": (SHARE,),
    "ledger": (PATH, None),
    "direction": ("forward", "backward"),
    "n_levels": (whole_number(2, 9),),
    "error_score": (number(), "raise"),
}
VALID = {
    "n_probes": 5,
    "time_limit": None,
    "protect": True,
    "fdr": 0.1,
    "ledger": Path("run.ledger"),
    "direction": "forward",
    "n_levels": np.int64(9),
    "error_score": 0,
}


def check(**changed):
    check_parameters(SimpleNamespace(**(VALID | changed)), CONSTRAINTS)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_probes", "auto"),
        ("n_probes", np.int32(1)),
        ("time_limit", 0.5),
        ("protect", False),
        ("protect", "auto"),
        ("ledger", "run.ledger"),
        ("ledger", None),
        ("direction", np.str_("backward")),
        ("error_score", "raise"),
    ],
)
def test_every_alternative_is_accepted(name, value):
    check(**{name: value})


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("n_probes", 0, "a whole number of at least 1 or 'auto'"),
        ("n_probes", 2.0, "a whole number of at least 1 or 'auto'"),
        ("n_probes", True, "a whole number of at least 1 or 'auto'"),
        ("n_probes", "many", "a whole number of at least 1 or 'auto'"),
        ("time_limit", 0, "a number above 0 or None"),
        ("time_limit", np.nan, "a number above 0 or None"),
        ("time_limit", False, "a number above 0 or None"),
        ("protect", 1, "True, False or 'auto'"),
        ("protect", None, "True, False or 'auto'"),
        ("fdr", 1, "a share above 0 and below 1"),
        ("fdr", "small", "a share above 0 and below 1"),
        ("ledger", 7, "the path of a file or None"),
        ("direction", "up", "'forward' or 'backward'"),
        ("direction", np.array(["forward", "backward"]), "'forward' or 'backward'"),
        ("n_levels", 10, "a whole number from 2 to 9"),
        ("error_score", np.inf, "a finite number or 'raise'"),
    ],
)
def test_the_error_names_the_parameter_the_value_and_what_is_allowed(name, value, allowed):
    with pytest.raises(ParameterError) as raised:
        check(**{name: value})
    assert str(raised.value) == f"{name}={value!r} must be {allowed}"


def test_the_first_wrong_parameter_is_reported():
    with pytest.raises(ParameterError, match="n_probes=0 must be"):
        check(fdr=2, n_probes=0)
