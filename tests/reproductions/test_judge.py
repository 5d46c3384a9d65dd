"""The judge: tests, Holm's correction, the four verdicts, and the rules of the papers."""

import numpy as np
import pytest
from scipy import stats

from reproductions.judge import Evidence, Rule, count, jackknifed, judge, one_sided, rules

PAPERS = ("daf-2011", "daf-2013", "efs-2004", "fsdd-2008")
rng = np.random.default_rng(0)


def rule(test="superior", **options):
    return Rule(id="a", sentence="s", where="w", statistic="t", test=test, columns=("x",), **options)


def verdict(rule, values, **options):
    return judge([rule], {"a": {"x": Evidence(np.asarray(values, dtype=float), 0.0)}}, **options)[0].verdict


def test_one_sided_p_values_are_scipy_s_without_overlap():
    values = rng.normal(0.4, 1, 30)
    for bound in (-1.0, 0.0, 0.4, 2.0):
        above, below = one_sided(values, bound, 0.0)
        assert above == pytest.approx(stats.ttest_1samp(values, bound, alternative="greater").pvalue)
        assert below == pytest.approx(stats.ttest_1samp(values, bound, alternative="less").pvalue, abs=1e-12)


def test_overlapping_splits_make_the_test_stricter():
    values = rng.normal(0.4, 1, 30)
    n, error = len(values), values.std(ddof=1)
    t = values.mean() / (error * np.sqrt(1 / n + 1.0))
    assert one_sided(values, 0, 1.0)[0] == pytest.approx(stats.t.sf(t, n - 1))
    assert one_sided(values, 0, 1.0)[0] > one_sided(values, 0, 0.0)[0]


def test_superiority_needs_more_than_the_margin():
    values = 2 + rng.normal(0, 1, 50)
    assert verdict(rule(margin=1.0), values) == "holds"
    assert verdict(rule(margin=3.0), values) == "does not hold"
    assert verdict(rule(margin=2.0), values - values.mean() + 2) == "undecided"


def test_equivalence_is_two_one_sided_tests():
    values = rng.normal(0, 1, 100)
    values -= values.mean()
    assert verdict(rule("equivalent", margin=1.0), values) == "holds"
    assert verdict(rule("equivalent", margin=0.01), values) == "undecided"
    assert verdict(rule("equivalent", margin=1.0), values + 3) == "does not hold"
    assert verdict(rule("equivalent", margin=1.0), values - 3) == "does not hold"
    assert verdict(rule("equivalent", margin=1.0, about=3.0), values + 3) == "holds"


def test_a_difference_of_zero_in_few_noisy_splits_is_not_equivalence():
    assert verdict(rule("equivalent", margin=0.1), [-5.0, 5.0, 0.0]) == "undecided"
    assert verdict(rule("equivalent", margin=0.1), [0.0] * 4) == "undecided"
    assert verdict(rule("equivalent", margin=0.1), [0.0] * 5) == "holds"


def test_claims_that_noise_decides_are_as_rare_as_the_level():
    """200 papers of 20 claims of noise with overlapping splits: in at most a twentieth of them a claim is decided."""
    names = tuple("abcdefghij")
    claim = Rule(id="a", sentence="s", where="w", statistic="t", test="superior", columns=names)
    wrong = 0
    for _ in range(200):
        evidence = {name: Evidence(rng.normal(0, 1, 20), 0.0) for name in names}
        wrong += any(each != "undecided" for each in judge([claim], {"a": evidence})[0].verdicts.values())
    assert wrong <= 0.1 * 200


def test_holm_is_over_all_columns_of_a_paper():
    values = np.array([1.0, 2.0, 1.5, -0.2, 1.1, 1.4, 0.3, 0.4])
    alone = judge([rule()], {"a": {"x": Evidence(values, 0.0)}})[0]
    many = [
        rule(),
        *(Rule(id=str(k), sentence="", where="", statistic="", test="superior", columns=("x",)) for k in range(40)),
    ]
    evidence = {"a": {"x": Evidence(values, 0.0)}} | {
        str(k): {"x": Evidence(rng.normal(0, 1, 8), 0.0)} for k in range(40)
    }
    assert alone.verdict == "holds"
    assert judge(many, evidence)[0].verdict == "undecided"


def test_facts_short_searches_and_missing_evidence():
    two = Rule(id="a", sentence="s", where="w", statistic="t", test="exact", columns=("x", "y"))
    true, false = Evidence(fact=True), Evidence(fact=False)
    assert judge([two], {"a": {"x": true, "y": true}})[0].verdict == "holds"
    assert judge([two], {"a": {"x": true, "y": false}})[0].verdict == "does not hold"
    assert judge([two], {"a": {"x": true}})[0].verdict == "undecided"
    short = {"a": {"x": Evidence(np.ones(9), 0.0, short="fewer probes")}}
    assert judge([rule()], short)[0].verdict == "not comparable"
    assert judge([rule()], short, quick=True)[0].verdict == "undecided"
    other = rule("not comparable", reason="other images")
    assert judge([other], {"a": {"x": Evidence(np.ones(9), 0.0)}})[0].verdict == "not comparable"
    with pytest.raises(ValueError, match="which the rule does not name"):
        judge([rule()], {"a": {"z": true}})
    assert count(judge([two], {"a": {"x": true, "y": true}})).startswith("1 of 1 claims hold (does not hold: 0,")


def test_a_rule_that_is_none_is_refused():
    with pytest.raises(ValueError, match="is not a rule"):
        rule("better")
    with pytest.raises(ValueError, match="is not a rule"):
        rule("not comparable")


def test_pseudo_values_of_a_mean_are_the_values():
    values = rng.normal(0, 1, 7)
    np.testing.assert_allclose(jackknifed(lambda rows: values[rows].mean(), 7), values)


@pytest.mark.parametrize("paper", PAPERS)
def test_every_rule_is_complete(paper):
    found = rules(paper)
    assert len({each.id for each in found}) == len(found) >= 10
    for each in found:
        assert each.sentence.endswith(".")
        assert each.where
        assert each.columns
        assert set(each.about if isinstance(each.about, dict) else ()) <= set(each.columns)
    assert all(each.was for each in found)  # all rules of today are younger than the first results, and say so


def test_there_are_about_sixty_claims():
    assert 50 <= sum(len(rules(paper)) for paper in PAPERS) <= 65
