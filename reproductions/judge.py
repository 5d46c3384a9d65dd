"""One rule for the claims of all papers: the tests, Holm's correction, and the four verdicts.

The rules are in ``claims.toml`` of each paper: the sentence, its location, the statistic, the test with its margin, and
the columns (data sets) it is judged on. An experiment supplies the evidence for each column: a sample with a value for
each split, or a fact that is either true or false.

- ``superior``: the mean of the sample is above the margin.
- ``equivalent``: the mean differs from ``about`` (default: 0) by less than the margin (two one-sided tests, TOST).
- ``exact``: a theorem or a count, without chance.
- ``not comparable``: seconds on machines of 2004 to 2011, images that replace the paper's, a shorter search.

Tests are one-sided corrected resampled t-tests (Nadeau and Bengio 2003). Every column is tested in both directions:
whether it holds and whether it does not. Holm's correction is over all these tests of a paper, at 5%. A column for
which neither is significant, or which has fewer than five splits, is undecided.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probewise.study import corrected_t_test, holm

HERE = Path(__file__).parent
ALPHA = 0.05
HOLDS, FAILS, UNDECIDED, NOT_COMPARABLE = VERDICTS = ("holds", "does not hold", "undecided", "not comparable")
TESTS = ("superior", "equivalent", "exact", "not comparable")
FEWEST = 5  # splits of a test: two equal differences of small test sets are no evidence


@dataclass(frozen=True)
class Rule:
    """A claim as `claims.toml` states it; ``was`` is its verdict under an earlier rule, if it had one."""

    id: str
    sentence: str
    where: str
    statistic: str
    test: str
    columns: tuple[str, ...]
    margin: float = 0.0
    about: Mapping[str, float] | float = 0.0
    unit: str = "points"
    reason: str = ""  # why it is not comparable
    was: str = ""
    sizes: Mapping[str, Sequence[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.test not in TESTS or (self.test == "not comparable") != bool(self.reason):
            raise ValueError(f"claim {self.id}: test={self.test!r} with reason={self.reason!r} is not a rule")

    def center(self, column: str) -> float:
        return self.about[column] if isinstance(self.about, Mapping) else self.about


@dataclass(frozen=True)
class Evidence:
    """Our result for one column: values by split, or a fact; ``short`` says why the search was shorter."""

    values: NDArray[np.float64] | None = None
    test_to_train: float = 1.0
    fact: bool | None = None
    text: str = ""
    short: str = ""


Results = Mapping[str, Mapping[str, Evidence]]  # by claim and column


@dataclass(frozen=True)
class Judged:
    """A claim with the verdict on each column and on the whole."""

    rule: Rule
    verdicts: Mapping[str, str]
    shown: Mapping[str, str]

    @property
    def verdict(self) -> str:
        """The worst verdict; columns that are not comparable count only if all of them are."""
        found = [verdict for verdict in self.verdicts.values() if verdict != NOT_COMPARABLE]
        if not found:
            return NOT_COMPARABLE if self.verdicts else UNDECIDED
        return FAILS if FAILS in found else UNDECIDED if UNDECIDED in found else HOLDS


def rules(paper: str) -> list[Rule]:
    """The rules of a paper, the most important first."""
    text = (HERE / paper.replace("-", "_") / "claims.toml").read_text(encoding="utf-8")
    return [Rule(**{**claim, "columns": tuple(claim["columns"])}) for claim in tomllib.loads(text)["claim"]]


def one_sided(values: NDArray[np.float64], bound: float, test_to_train: float) -> tuple[float, float]:
    """p-values of "the mean is above the bound" and of "the mean is below the bound"."""
    if len(values) < FEWEST:
        return 1.0, 1.0
    t, two_sided = corrected_t_test(values - bound, test_to_train)
    return (two_sided / 2, 1 - two_sided / 2) if t > 0 else (1 - two_sided / 2, two_sided / 2)


def p_values(rule: Rule, column: str, evidence: Evidence) -> tuple[float, float]:
    """p-values of "the claim holds" and of "the claim does not hold" on one column."""
    assert evidence.values is not None
    center, ratio = rule.center(column), evidence.test_to_train
    above_high, below_high = one_sided(evidence.values, center + rule.margin, ratio)
    if rule.test == "superior":
        return above_high, below_high
    above_low, below_low = one_sided(evidence.values, center - rule.margin, ratio)
    return max(above_low, below_high), min(1.0, 2 * min(below_low, above_high))


def judge(rules: Sequence[Rule], evidence: Results, *, quick: bool = False) -> list[Judged]:
    """Verdicts on all claims of a paper. In a quick run a shorter search leaves a claim undecided."""
    tests: dict[tuple[str, str], tuple[float, float]] = {}
    for rule in rules:
        for column, found in evidence.get(rule.id, {}).items():
            if column not in rule.columns:
                raise ValueError(f"claim {rule.id}: there is evidence for {column!r}, which the rule does not name")
            if rule.test in ("superior", "equivalent") and found.values is not None and not found.short:
                tests[rule.id, column] = p_values(rule, column, found)
    adjusted = dict(zip(tests, holm(np.ravel(list(tests.values()))).reshape(-1, 2).tolist(), strict=True))

    def verdict(rule: Rule, column: str) -> str:
        found = evidence.get(rule.id, {}).get(column, Evidence())
        if rule.test == "not comparable" or (found.short and not quick):
            return NOT_COMPARABLE
        if rule.test == "exact" and found.fact is not None:
            return HOLDS if found.fact else FAILS
        holds, fails = (p < ALPHA for p in adjusted.get((rule.id, column), (1, 1)))
        return HOLDS if holds else FAILS if fails else UNDECIDED

    def shown(rule: Rule, column: str) -> str:
        """The evidence in words: mean, standard deviation over splits, and the adjusted p-value of the better side."""
        found = evidence.get(rule.id, {}).get(column, Evidence())
        parts = [found.text]
        if found.values is not None and len(found.values):
            spread = f" ± {np.std(found.values, ddof=1):.3g}" if len(found.values) > 1 else ""
            parts.append(f"{round(float(np.mean(found.values)), 9):+z.3g}{spread} {rule.unit}".rstrip())
        if (rule.id, column) in adjusted:
            p_value = min(adjusted[rule.id, column])
            parts.append("p < 0.001" if p_value < 0.001 else f"p = {p_value:.2g}")
        return ", ".join(part for part in (*parts, found.short) if part)

    return [
        Judged(rule, {c: verdict(rule, c) for c in rule.columns}, {c: shown(rule, c) for c in rule.columns})
        for rule in rules
    ]


def count(claims: Sequence[Judged]) -> str:
    """The sentence on top of every summary."""
    number = {verdict: sum(claim.verdict == verdict for claim in claims) for verdict in VERDICTS}
    rest = ", ".join(f"{verdict}: {number[verdict]}" for verdict in VERDICTS[1:])
    return f"{number[HOLDS]} of {len(claims)} claims hold ({rest})"


def jackknifed(statistic: Any, n: int) -> NDArray[np.float64]:
    """Pseudo-values of a statistic of n splits, whose mean estimates it: n T - (n - 1) T without split i."""
    whole, everything = statistic(list(range(n))), list(range(n))
    return np.array([n * whole - (n - 1) * statistic(everything[:i] + everything[i + 1 :]) for i in range(n)])
