"""Information on codes equals the equations, is exact about ties, and does not depend on the way codes are kept."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from probewise import information
from probewise.executors import threads
from probewise.information import Codes
from sampling import examples

PAIRWISE = ("mutual_information", "symmetrical_uncertainty", "extended_balanced_gain")


@st.composite
def tables(draw):
    """A column and some more, of one to a dozen levels: bit sets and rows of level numbers both occur."""
    n = draw(st.integers(1, 90))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    many = np.stack([rng.integers(0, draw(st.integers(1, 12)), n) for _ in range(draw(st.integers(1, 5)))], axis=1)
    return rng.integers(0, draw(st.integers(1, 12)), n), many


@examples(200)
@given(tables())
def test_every_measure_equals_its_equation(data):
    base, many = data
    columns = [column.tolist() for column in many.T]
    np.testing.assert_allclose(information.entropy(many), [naive.entropy(c) for c in columns], atol=1e-10)
    for name in PAIRWISE:
        expected = [getattr(naive, name)(base.tolist(), column) for column in columns]
        np.testing.assert_allclose(getattr(information, name)(base, many), expected, atol=1e-10, err_msg=name)
    expected = [naive.balanced_gain(column, base.tolist()) for column in columns]
    np.testing.assert_allclose(information.balanced_gain(many, base), expected, atol=1e-10)


@examples(100)
@given(tables(), st.integers(0, 2**32))
def test_symmetric_and_blind_to_the_names_of_levels_and_the_order_of_rows_to_the_bit(data, seed):
    base, many = data
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(base))
    renamed = rng.permutation(100)
    for name in PAIRWISE:
        measure = getattr(information, name)
        values = measure(base, many)
        assert values.tolist() == [measure(column, base) for column in many.T]
        assert values.tolist() == measure(base[rows], many[rows]).tolist()
        assert values.tolist() == measure(renamed[base], -renamed[many]).tolist()


@pytest.mark.parametrize("n", [64, 200, 5000])
@pytest.mark.parametrize("levels", [2, 3, 4, 5, 40, 3000])
def test_codes_come_back_and_large_tables_are_counted(n, levels):
    rng = np.random.default_rng(n)
    many = rng.integers(0, levels, (n, 3))
    codes = Codes.of(many)
    for column in range(3):
        _, expected = np.unique(many[:, column], return_inverse=True)
        np.testing.assert_array_equal(codes.column(column), expected)
    for base in (many[:, 1], rng.integers(0, 3, n), rng.integers(0, 70, n)):
        cells = [np.unique(np.stack([base, column]), axis=1, return_counts=True)[1] for column in many.T]
        np.testing.assert_array_equal(codes.against(base).cells, [len(counts) for counts in cells])
        expected = [-(c / n * np.log2(c / n)).sum() for c in cells]
        np.testing.assert_allclose(codes.against(base).joint_entropy, expected, atol=1e-9)


def test_any_number_of_threads_and_any_choice_of_columns():
    rng = np.random.default_rng(0)
    codes = Codes.of(rng.integers(0, 3, (40, 20_000)))
    base = rng.integers(0, 4, 40)
    one, four = codes.against(base).information, codes.against(base, map=threads(4)).information
    assert one.tobytes() == four.tobytes()
    some = np.array([7, 19_999, 0])
    assert codes.against(base, some).information.tolist() == one[some].tolist()


@examples(100)
@given(tables(), st.integers(1, 3))
def test_the_largest_correlation_is_that_of_all_pairs(data, n_threads):
    base, many = data
    columns = [base.tolist(), *(column.tolist() for column in many.T), base[::-1].tolist()]
    pairs = [naive.extended_balanced_gain(a, b) for i, a in enumerate(columns) for b in columns[:i]]
    codes = Codes.of(np.array(columns).T)
    found = codes.largest_extended_gain(np.arange(len(columns)), map=threads(n_threads))
    assert found == pytest.approx(max(pairs), abs=1e-10)


def test_the_largest_correlation_among_many_columns():
    rng = np.random.default_rng(5)
    many = rng.integers(0, rng.integers(2, 7, 400), (60, 400))
    codes = Codes.of(many)
    brute = max(codes.against(f, np.arange(f)).extended_gain.max() for f in range(1, 400))
    for n_threads in (1, 2):
        assert codes.largest_extended_gain(np.arange(400), map=threads(n_threads)) == brute


def test_one_column_gives_a_number():
    assert information.entropy([0, 0, 1, 1]) == 1.0
    assert information.mutual_information([0, 0, 1, 1], [5, 5, 9, 9]) == 1.0
    assert information.symmetrical_uncertainty([1, 1], [2, 2]) == 0.0
    assert information.balanced_gain([3, 3, 3], [0, 1, 0]) == 0.0
