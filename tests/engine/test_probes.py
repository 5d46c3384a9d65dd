"""Law 1: probe i is a pure function of (seed, i), the same on any platform, for ever."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from probewise.engine.probes import ProbePlan, Subsets
from probewise.engine.schedule import TournamentPlan
from probewise.kernels import draw
from sampling import examples


@pytest.mark.parametrize(
    ("counter", "key", "words"),
    [  # the known answers that come with Random123
        ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
        (
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
            [0xA4093822, 0x299F31D0],
            [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
        ),
    ],
)
def test_philox_known_answers(counter, key, words):
    assert list(draw.philox(*np.array([*counter, *key], np.uint64))) == words


GOLDEN = {
    "uniform": (ProbePlan(1000, max_size=8, seed=42), [0, 1, 2, 10**6, 2**40]),
    "wide": (ProbePlan(10**6, max_size=5, seed=2**63 + 11), [0, 7, 123456789]),
    "whole": (ProbePlan(6, max_size=None, seed=0), [0, 1, 2, 3]),
    "bernoulli": (ProbePlan(1000, inclusion=0.005, seed=42), [0, 1, 2, 10**6]),
    "half": (ProbePlan(12, inclusion=0.5, seed=3), [0, 1, 2]),
}
FROZEN = {
    "uniform": [[466, 73, 340, 986, 327], [490, 186, 416], [978, 435, 582, 541, 870], [612, 120, 848], [612]],
    "wide": [[266135, 679476, 321223, 918133, 517661], [633659, 812135, 839766], [926643]],
    "whole": [[3, 4, 5], [3, 2, 0], [0, 3, 4], [1, 2, 3, 4, 0]],
    "bernoulli": [
        [97, 619, 622, 755, 794, 895, 958],
        [267, 602],
        [98, 264, 387, 446, 599, 601, 705, 956, 961],
        [212, 634, 654, 687],
    ],
    "half": [[0, 1, 3, 6, 7, 8, 11], [1, 3, 4, 5, 6, 7, 8, 10, 11], [3, 5, 6, 7, 9, 10, 11]],
}


@pytest.mark.parametrize("name", GOLDEN)
def test_probes_are_frozen(name):
    """These lists must never change: ledgers of all versions rest on them."""
    plan, numbers = GOLDEN[name]
    assert [plan.probe(i).tolist() for i in numbers] == FROZEN[name]


@given(st.integers(1, 200), st.integers(1, 250), st.integers(0, 2**64 - 1), st.integers(0, 2**60))
def test_uniform_probes_equal_the_twin(n_features, max_size, seed, i):
    plan = ProbePlan(n_features, max_size=max_size, seed=seed)
    assert plan.probe(i).tolist() == naive.uniform_probe(seed, i, n_features, max_size)


@examples(30)
@given(st.integers(1, 3000), st.floats(0.0005, 0.99), st.integers(0, 2**64 - 1), st.integers(0, 2**60))
def test_bernoulli_probes_equal_the_twin(n_features, inclusion, seed, i):
    plan = ProbePlan(n_features, inclusion=inclusion, seed=seed)
    assert plan.probe(i).tolist() == naive.bernoulli_probe(seed, i, n_features, inclusion)


plans = st.builds(
    ProbePlan,
    n_features=st.integers(1, 400),
    max_size=st.none() | st.integers(1, 500),
    inclusion=st.none() | st.floats(0.01, 0.99),
    seed=st.integers(0, 2**64 - 1),
)


@given(plans, st.integers(0, 2**50), st.integers(1, 40))
def test_a_probe_does_not_depend_on_its_batch(plan, start, n):
    batch = plan.draw(start, start + n)
    for k in (0, n // 2, n - 1):
        assert batch[k].tolist() == plan.probe(start + k).tolist()


@given(plans, st.integers(0, 2**50))
def test_a_probe_is_a_set_of_features(plan, i):
    probe = plan.probe(i)
    assert 1 <= len(probe) <= plan.largest
    assert len(set(probe.tolist())) == len(probe)
    assert probe.min() >= 0
    assert probe.max() < plan.n_features


def test_sizes_and_features_are_uniform():
    plan = ProbePlan(40, max_size=10, seed=5)
    subsets = plan.draw(0, 100_000)
    sizes = np.bincount(subsets.sizes, minlength=11)[1:]
    assert chi_square(sizes, 100_000 / 10) < 30  # 9 degrees of freedom: one in 2,000
    assert chi_square(np.bincount(subsets.indices, minlength=40), len(subsets.indices) / 40) < 75


def test_pairs_are_drawn_equally_often():
    """Floyd's sampling gives every set of a size the same chance, not only every feature."""
    plan = ProbePlan(6, max_size=2, seed=1)
    pairs = [tuple(sorted(s.tolist())) for s in plan.draw(0, 60_000) if len(s) == 2]
    counts = np.unique(np.array(pairs), axis=0, return_counts=True)[1]
    assert len(counts) == 15
    assert chi_square(counts, len(pairs) / 15) < 40


def test_bernoulli_inclusion_has_the_requested_share():
    plan = ProbePlan(300, inclusion=0.2, seed=9)
    subsets = plan.draw(0, 5_000)
    share = np.bincount(subsets.indices, minlength=300) / 5_000
    assert abs(share.mean() - 0.2) < 4 * np.sqrt(0.2 * 0.8 / (300 * 5_000))
    assert abs(share - 0.2).max() < 5 * np.sqrt(0.2 * 0.8 / 5_000)
    assert abs(np.var(subsets.sizes) - 300 * 0.2 * 0.8) < 4


def test_an_empty_bernoulli_draw_is_drawn_again():
    sizes = ProbePlan(2, inclusion=0.05, seed=0).draw(0, 5_000).sizes
    assert sizes.min() == 1
    assert abs((sizes == 2).mean() - 0.0025 / 0.0975) < 0.01


def test_seeds_and_probes_differ():
    first = ProbePlan(1000, max_size=50, seed=1)
    assert first.probe(0).tolist() != first.probe(1).tolist()
    assert first.probe(0).tolist() != ProbePlan(1000, max_size=50, seed=2).probe(0).tolist()
    assert first.probe(0).tolist() != first.probe(2**32).tolist()


def test_subsets_of_lists():
    subsets = Subsets.of([[3, 1], [], [2]])
    assert len(subsets) == 3
    assert [s.tolist() for s in subsets] == [[3, 1], [], [2]]
    assert subsets.sizes.tolist() == [2, 0, 1]
    assert len(Subsets.of([])) == 0


def chi_square(counts, expected):
    return float((((counts - expected) ** 2) / expected).sum())


@pytest.mark.parametrize("inclusion", [None, 0.2])
def test_sizes_are_known_without_drawing(inclusion):
    plan = ProbePlan(40, 12, inclusion, seed=5)
    for one in (plan, TournamentPlan(40, 12, inclusion, 5).with_round(20, np.arange(9))):
        assert one.sizes(3, 50).tolist() == one.draw(3, 50).sizes.tolist()
