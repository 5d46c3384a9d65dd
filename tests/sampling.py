"""How much of a matrix of cases, and how many random examples, a test looks at every time."""

from collections import Counter
from itertools import combinations

from hypothesis import settings


def covering(cases, times=1, pairs=False):
    """Positions of a few of the cases, in which each value of each place occurs that often, or as often as in all.

    With ``pairs`` each pair of values occurs, too. Greedy: next comes the case with most that is still wanted; among
    equals that with what was used least, then the first.
    """
    cases = [[*enumerate(case)] for case in cases]
    if pairs:
        cases = [[*case, *combinations(case, 2)] for case in cases]
    wanted = {value: min(times, n) for value, n in Counter(value for case in cases for value in case).items()}
    used, kept, left = Counter(), set(), list(range(len(cases)))
    while missing := {value for value, n in wanted.items() if n}:
        gains = [len(missing.intersection(cases[i])) for i in left]
        most = max(gains)
        equals = [i for i, gain in zip(left, gains, strict=True) if gain == most]
        best = min(equals, key=lambda i: (sum(used[v] for v in cases[i]), i))
        left.remove(best)
        kept.add(best)
        for value in cases[best]:
            used[value] += 1
            wanted[value] -= wanted[value] > 0
    return kept


def examples(n):
    """So many random examples in ``make test-all``; every time, the share of them that the profile says."""
    return settings(max_examples=max(10, n * settings.default.max_examples // 100))
