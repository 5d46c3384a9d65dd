"""Errors that name parameters: one error, worded for Python and for others."""

import pickle

from probewise.validation.errors import ForPython, Parameter, ParameterError, Setting

ERROR = ParameterError(
    Parameter("scoring", "{fdr}"),
    " is not known: use ",
    Setting("how_many", "size"),
    ForPython(" with narrow", " or no ", Parameter("narrow")),
    ForPython("; give an estimator"),
)


def word(parameter):
    return f"<{parameter.name}>"


def test_python_reads_names_and_values_as_it_writes_them():
    assert str(ERROR) == "scoring='{fdr}' is not known: use how_many='size' with narrow; give an estimator"


def test_others_read_their_own_words_and_nothing_meant_for_python():
    assert ERROR.worded(word) == "<scoring> is not known: use <how_many> or no <narrow>"


def test_an_error_comes_back_whole_from_another_process():
    again = pickle.loads(pickle.dumps(ERROR))
    assert (type(again), str(again), again.worded(word)) == (ParameterError, str(ERROR), ERROR.worded(word))
