"""Constraints on parameters, declared as data and checked by `check_parameters`."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from probewise.stopping import MaxProbes, Rule
from probewise.validation.errors import ParameterError
from probewise.validation.parameters import (
    FUNCTION,
    PATH,
    SHARE,
    check_parameters,
    instance_of,
    number,
    whole_number,
)

CONSTRAINTS = {
    "n_probes": (whole_number(1), "auto"),
    "time_limit": (number(above=0), None),
    "protect": (True, False, "auto"),
    "fdr": (SHARE,),
    "ledger": (PATH, None),
    "verbose": (whole_number(0), FUNCTION),
    "direction": ("forward", "backward"),
    "stop": (instance_of(Rule), None),
    "n_levels": (whole_number(2, 9),),
    "width": (number(least=0, most=1),),
    "error_score": (number(), "raise"),
}
VALID = {
    "n_probes": 5,
    "time_limit": None,
    "protect": True,
    "fdr": 0.1,
    "ledger": Path("run.ledger"),
    "verbose": print,
    "direction": "forward",
    "stop": MaxProbes(9),
    "n_levels": np.int64(9),
    "width": 1.0,
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
        ("verbose", 0),
        ("direction", np.str_("backward")),
        ("stop", None),
        ("width", np.float32(0)),
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
        ("verbose", -1, "a whole number of at least 0 or a function"),
        ("direction", "up", "'forward' or 'backward'"),
        ("direction", np.array(["forward", "backward"]), "'forward' or 'backward'"),
        ("stop", MaxProbes, "an instance of Rule or None"),
        ("n_levels", 10, "a whole number from 2 to 9"),
        ("width", 1.5, "a number of at least 0 and at most 1"),
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
