"""Measures of stability: they equal their naive twins and have the properties that the papers state."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import naive
from probewise import stability
from probewise.engine.probes import ProbePlan
from probewise.stability import (
    MEASURES,
    anhi,
    ati,
    cw_rel,
    ianhi,
    iati,
    icw,
    jaccard,
    kuncheva,
    nogueira,
    nogueira_interval,
    nogueira_test,
    stability_table,
)

GROWING = [{1, 2, 3}, {1, 2, 3, 4}, {1, 2, 3, 4, 5}]
EQUAL = [[0, 1, 2], [0, 1, 3], [0, 1, 2]]
FUNCTIONS = {name: measure for name, (measure, _) in MEASURES.items()} | {"iati": iati, "ianhi": ianhi, "icw": icw}
ONE, TWO = list(MEASURES), ["iati", "ianhi", "icw"]
ANY_SIZE = [name for name in ONE if name != "kuncheva"]
CORRECTED_FOR_CHANCE = ("kuncheva", "nogueira")


@st.composite
def selections(draw, lists=1, least=2, one_size=False):
    """n_features, then lists of subsets over that many features."""
    d = draw(st.integers(1, 9))
    sizes = {"min_size": (size := draw(st.integers(0, d))), "max_size": size} if one_size else {}
    subset = st.lists(st.integers(0, d - 1), unique=True, **sizes)
    return d, *(draw(st.lists(subset, min_size=least, max_size=6)) for _ in range(lists))


@pytest.mark.parametrize("name", ANY_SIZE)
@given(selections())
def test_measures_equal_the_twin(name, case):
    d, subsets = case
    expected = getattr(naive, name)(subsets, d)
    assert FUNCTIONS[name](subsets, d) == pytest.approx(expected, abs=1e-12, nan_ok=True)


@given(selections(one_size=True))
def test_kuncheva_equals_the_twin_and_nogueira(case):
    d, subsets = case
    assert kuncheva(subsets, d) == pytest.approx(naive.kuncheva(subsets, d), abs=1e-12, nan_ok=True)
    assert kuncheva(subsets, d) == pytest.approx(nogueira(subsets, d), abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("name", TWO)
@given(selections(lists=2, least=1))
def test_similarities_equal_the_twin_and_do_not_depend_on_the_order(name, case):
    d, first, second = case
    function = FUNCTIONS[name]
    assert function(first, second, d) == pytest.approx(getattr(naive, name)(first, second, d), abs=1e-12, nan_ok=True)
    assert function(first, second, d) == pytest.approx(function(second, first, d), abs=1e-12, nan_ok=True)


@given(selections())
def test_the_interval_equals_the_twin(case):
    d, subsets = case
    interval = nogueira_interval(subsets, d, 0.9)
    assume(not np.isnan(interval.estimate))
    variance = naive.nogueira_variance(subsets, d)
    assert interval.estimate == nogueira(subsets, d)
    assert interval.variance == pytest.approx(variance, abs=1e-12)
    assert interval.upper - interval.estimate == pytest.approx(1.6448536269514722 * variance**0.5, abs=1e-6)
    assert interval.upper + interval.lower == pytest.approx(2 * interval.estimate)


@pytest.mark.parametrize("name", ONE)
@given(selections(one_size=True), st.randoms())
def test_measures_stay_in_range_and_do_not_depend_on_order_or_names(name, case, random):
    d, subsets = case
    measure = FUNCTIONS[name]
    value = measure(subsets, d)
    assume(not np.isnan(value))
    assert -(name in CORRECTED_FOR_CHANCE) - 1e-12 <= value <= 1 + 1e-12
    names = random.sample(range(d), d)
    renamed = [[names[f] for f in subset] for subset in random.sample(subsets, len(subsets))]
    assert measure(renamed, d) == pytest.approx(value)


@pytest.mark.parametrize("name", ONE)
def test_equal_subsets_agree_completely(name):
    assert FUNCTIONS[name]([[4, 0, 2]] * 5, 7) == pytest.approx(1)


@pytest.mark.parametrize("name", TWO)
def test_equal_selectors_agree_completely(name):
    assert FUNCTIONS[name]([[4, 0, 2]] * 5, [[0, 2, 4]] * 3, 7) == pytest.approx(1)
    assert FUNCTIONS[name]([[0, 1]], [[2, 3]], 4) == pytest.approx(0)


def test_icw_compares_frequencies_and_iati_subsets():
    unstable = [[0, 1], [2, 3]]
    assert icw(unstable, unstable, 4) == 1
    assert iati(unstable, unstable, 4) == pytest.approx(0.5)
    assert ianhi(unstable, unstable, 4) == pytest.approx(0.5)


def random_subsets(rng, smallest, largest, d=40):
    return [rng.choice(d, rng.integers(smallest, largest + 1), replace=False) for _ in range(8)]


@pytest.mark.parametrize("name", ONE)
def test_random_subsets_score_zero_only_where_corrected(name):
    rng = np.random.default_rng(0)
    values = [FUNCTIONS[name](random_subsets(rng, 5, 5), 40) for _ in range(300)]
    off_zero = abs(np.mean(values)) > 4 * np.std(values) / np.sqrt(300)
    assert off_zero == (name not in CORRECTED_FOR_CHANCE)


def test_nogueira_of_random_subsets_of_different_sizes_is_as_documented():
    rng, gaps = np.random.default_rng(0), []
    for _ in range(300):
        subsets = random_subsets(rng, 1, 20)
        k = np.array([len(subset) for subset in subsets])
        gaps.append(nogueira(subsets, 40) + np.var(k) / (7 * k.mean() * (40 - k.mean())))
    assert abs(np.mean(gaps)) < 4 * np.std(gaps) / np.sqrt(300)


def test_intervals_have_their_coverage():
    """Features are selected independently with known probabilities, so the true stability is known."""
    rng = np.random.default_rng(0)
    probabilities = np.array([0.95, 0.9, 0.8, 0.6, 0.5, 0.3, 0.2, *[0.05] * 13])
    truth = 1 - np.mean(probabilities * (1 - probabilities)) / (probabilities.mean() * (1 - probabilities.mean()))
    intervals = [nogueira_interval(rng.random((60, 20)) < probabilities, 20) for _ in range(400)]
    assert 0.91 < np.mean([interval.lower < truth < interval.upper for interval in intervals]) < 0.98
    spread = np.std([interval.estimate for interval in intervals])
    assert np.mean([interval.variance for interval in intervals]) ** 0.5 == pytest.approx(spread, rel=0.1)


def test_the_test_has_its_level_and_detects_differences():
    rng = np.random.default_rng(0)
    steady, shaky = np.array([0.95] * 5 + [0.02] * 15), np.array([0.6] * 5 + [0.1] * 15)
    same = [nogueira_test(rng.random((60, 20)) < shaky, rng.random((60, 20)) < shaky, 20) for _ in range(400)]
    assert 0.02 < np.mean([test.p_value < 0.05 for test in same]) < 0.09
    assert abs(np.mean([test.statistic for test in same])) < 0.2
    apart = nogueira_test(rng.random((60, 20)) < steady, rng.random((60, 20)) < shaky, 20)
    assert apart.statistic > 5
    assert apart.p_value < 1e-6


def test_the_test_without_variance():
    constant, opposed = [[0, 1]] * 3, [[0, 1], [2, 3]]
    assert nogueira_test(constant, [[2, 3]] * 4, 4) == stability.StabilityTest(0.0, 1.0)
    assert nogueira_test(constant, opposed, 4) == stability.StabilityTest(np.inf, 0.0)
    assert nogueira_test(opposed, constant, 4) == stability.StabilityTest(-np.inf, 0.0)
    assert np.isnan(nogueira_test(constant, [[], []], 4).p_value)


def test_all_representations_of_subsets_are_equivalent():
    masks = np.zeros((3, 10), dtype=bool)
    for row, subset in zip(masks, GROWING, strict=True):
        row[list(subset)] = True
    lists = [sorted(subset) for subset in GROWING]
    unsigned = [np.array(subset, dtype=np.uint8) for subset in lists]
    for subsets in (masks, list(masks), masks.tolist(), lists, unsigned, tuple(map(frozenset, lists)), iter(lists)):
        assert cw_rel(subsets, 10) == pytest.approx(0.8)
    assert ati(np.array(EQUAL), np.int64(10)) == pytest.approx(2 / 3)
    probes = ProbePlan(10, max_size=4, seed=1).draw(0, 6)
    assert ati(probes, 10) == pytest.approx(naive.ati(probes, 10))


def test_the_input_is_not_changed():
    subsets = [np.array([2, 0, 1]), np.array([3, 1, 0])]
    stability_table(subsets, 4)
    assert [subset.tolist() for subset in subsets] == [[2, 0, 1], [3, 1, 0]]


def test_empty_subsets():
    none = [[], []]
    assert ati(none, 3) == anhi(none, 3) == 1
    assert iati(none, none, 3) == ianhi(none, none, 3) == 1
    undefined = [cw_rel(none, 3), kuncheva(none, 3), nogueira(none, 3), icw(none, none, 3)]
    assert np.isnan(undefined).all()
    assert np.isnan(dataclasses.astuple(nogueira_interval(none, 3))[:4]).all()
    assert ati([[], [0]], 3) == 0
    assert icw([[]], [[0]], 3) == 0


def test_all_features_selected():
    everything = [[0, 1, 2], [2, 1, 0]]
    assert cw_rel(everything, 3) == ati(everything, 3) == anhi(everything, 3) == 1
    assert np.isnan([kuncheva(everything, 3), nogueira(everything, 3)]).all()
    assert icw(everything, everything, 3) == 1


@pytest.mark.parametrize(
    ("subsets", "message"),
    [
        ([[0, 1]], r"subsets contains 1 subsets; at least 2"),
        ([], "contains 0 subsets"),
        ([[0, 1], [2, 4]], r"subsets\[1\] contains the index 4; with n_features=4, indices are 0 to 3"),
        ([[0, -1], [2]], r"subsets\[0\] contains the index -1"),
        ([[0], [1, 2, 1]], r"subsets\[1\] contains the index 1 more than once"),
        (np.array([[0, 1, 1, 0], [1, 0, 0, 0]]), "a mask must be boolean"),
        ([[0.0, 1.0], [2.0]], "list of column indices"),
        ([["a"], ["b"]], "list of column indices"),
        ([0, 1, 2], "list of column indices"),
        (np.zeros((2, 5), dtype=bool), "mask of 5 features, but n_features=4"),
        ("01", "is a str"),
        ({0: [1]}, "is a dict"),
        (None, "is a NoneType"),
    ],
)
def test_bad_subsets_are_named(subsets, message):
    with pytest.raises(ValueError, match=message):
        cw_rel(subsets, 4)


@pytest.mark.parametrize("n_features", [0, -1, 2.5, True, None, "10"])
def test_bad_n_features(n_features):
    with pytest.raises(ValueError, match="n_features="):
        ati(EQUAL, n_features)


def test_bad_arguments():
    with pytest.raises(
        ValueError, match="kuncheva needs subsets of one size, and these have 3 to 5 features: use nogueira"
    ):
        kuncheva(GROWING, 10)
    with pytest.raises(ValueError, match="confidence=95"):
        nogueira_interval(EQUAL, 10, 95)
    with pytest.raises(ValueError, match="second contains 0 subsets; at least 1"):
        icw(EQUAL, [], 10)
    with pytest.raises(ValueError, match=r"second\[0\] contains the index 10"):
        nogueira_test(EQUAL, [[10], [1]], 10)


def test_the_table_contains_all_measures():
    frame = pd.DataFrame(stability_table(EQUAL, 10)).set_index("measure")
    assert frame.index.tolist() == ONE
    for name in ONE:
        assert frame.value[name] == FUNCTIONS[name](EQUAL, 10)
    values = {record["measure"]: record["value"] for record in stability_table(GROWING, 10)}
    assert [name for name in ONE if np.isnan(values[name])] == ["kuncheva"]


def test_jaccard_is_ati():
    assert jaccard is ati


def test_a_thousand_subsets_of_a_million_features():
    """Every subset contains the first 20 features and 20 features of its own."""
    subsets = [np.r_[:20, 20 + 20 * k : 40 + 20 * k] for k in range(1000)]
    values = {record["measure"]: record["value"] for record in stability_table(subsets, 10**6)}
    assert values["ati"] == pytest.approx(20 / 60)
    assert values["anhi"] == pytest.approx(1 - 40 / 10**6)
    expected = (20 * 10**6 - 40**2) / (40 * (10**6 - 40))
    assert [values["kuncheva"], values["nogueira"]] == pytest.approx([expected] * 2)
    assert values["cw_rel"] == pytest.approx(0.5, abs=1e-3)
