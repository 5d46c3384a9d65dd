"""Agreement between selections: of the subsets of repeated runs of one selector, and of those of two selectors.

Parameters
----------
subsets, first, second : list of index lists, sets, arrays or boolean masks, or boolean array (n_subsets, n_features)
    The subsets, such as the ``support_`` of repeated runs. The same subset may come many times.
n_features : int
    The number of features the subsets were taken from.

A feature listed twice in one subset, an index outside of 0..n_features - 1, or fewer than two subsets (one, for the
measures of two selectors) is a ValueError. With n subsets over the features Y, F_f is the number of subsets that hold
f, and N = sum F_f. Measures return a float.

References
----------
.. [1] P. Somol, J. Novovičová, *Evaluating stability and comparing output of feature selectors that optimize feature
   subset cardinality*, IEEE TPAMI 32(11), 2010.
.. [2] A. Kalousis, J. Prados, M. Hilario, *Stability of feature selection algorithms*, ICDM 2005.
.. [3] L. I. Kuncheva, *A stability index for feature selection*, AIA 2007, definitions 1 and 2.
.. [4] S. Nogueira, K. Sechidis, G. Brown, *On the stability of feature selection algorithms*, JMLR 18(174), 2018.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

COLUMNS_AT_A_TIME = 4096  # made dense
DENSE_GAIN = 16  # a feature that more than one pair of subsets in 16 shares is cheaper as a dense column


def cw_rel(subsets: Any, n_features: int) -> float:
    """Relative weighted consistency [1]: 0 for the least possible agreement, 1 for the largest, whatever the sizes.

    CW_rel = (CW - CW_min) / (CW_max - CW_min), CW = sum_f F_f (F_f - 1) / (N (n - 1)), where CW_min and CW_max are
    the least and largest CW that n subsets with N features in all can have: with D = N mod |Y|, H = N mod n,
    CW_min = (N^2 - |Y| (N - D) - D^2) / (|Y| N (n - 1)) and CW_max = (H^2 + N (n - 1) - H n) / (N (n - 1)).

    It is not corrected for chance: CW_min is reached only by features dealt out evenly, so subsets drawn at random
    score above 0, the more so the fewer they are. Compare with `nogueira`, which is 0 on average for random subsets.
    Where CW_max = CW_min (every subset holds every feature, or one feature was selected once in all) CW itself comes
    back. Where no subset holds a feature, NaN. Time grows with N and |Y|, not with the number of pairs.

    Examples
    --------
    >>> cw_rel([{1, 2, 3}, {1, 2, 3, 4}, {1, 2, 3, 4, 5}], n_features=10)
    0.8
    """
    chosen = _read(subsets, n_features)
    n, total, features = len(chosen), chosen.total, chosen.n_features
    if not total:
        return float("nan")
    uneven, beyond = total % features, total % n
    # All three times |Y| N (n - 1): whole numbers, so that no digit is lost.
    consistency = features * (chosen.square - total)
    least = total**2 - features * (total - uneven) - uneven**2
    largest = features * (beyond**2 + total * (n - 1) - beyond * n)
    if least == largest:
        return consistency / (features * total * (n - 1))
    return (consistency - least) / (largest - least)


def ati(subsets: Any, n_features: int) -> float:
    """Average Tanimoto index [1, 2]: the mean over pairs of subsets of |A ∩ B| / |A ∪ B|, from 0 to 1.

    The Tanimoto index of sets is Jaccard's: `jaccard` is this same function. Not corrected for chance. Two empty
    subsets agree fully: 1. There is no closed form in F_f; memory grows with the square of the number of subsets.

    Examples
    --------
    >>> round(ati([{1, 2, 3}, {1, 2, 3, 4}, {1, 2, 3, 4, 5}], n_features=10), 6)
    0.716667
    """
    chosen = _read(subsets, n_features)
    n = len(chosen)
    return float((_tanimoto(chosen, chosen).sum() - n) / (n * (n - 1)))


jaccard = ati


def anhi(subsets: Any, n_features: int) -> float:
    """Average normalised Hamming index [1]: the mean over pairs of subsets of 1 - |A △ B| / |Y|, from 0 to 1.

    That is 1 - 2 sum_f F_f (n - F_f) / (n (n - 1) |Y|). Features left out of both subsets count as agreement, so small
    subsets of many features score near 1 whatever they hold. Not corrected for chance.

    Examples
    --------
    >>> round(anhi([{1, 2, 3}, {1, 2, 3, 4}, {1, 2, 3, 4, 5}], n_features=10), 6)
    0.866667
    """
    chosen = _read(subsets, n_features)
    n = len(chosen)
    return 1 - 2 * (n * chosen.total - chosen.square) / (n * (n - 1) * chosen.n_features)


def kuncheva(subsets: Any, n_features: int) -> float:
    """Kuncheva's stability [3]: the mean over pairs of (r d - k^2) / (k (d - k)), r = |A ∩ B|, k = |A| = |B|, d = |Y|.

    1 for equal subsets, 0 on average for random ones; for n subsets never below -1 / (n - 1). All subsets must be of
    one size k, or it is a ValueError: `nogueira` is the same number there, and takes any sizes. NaN for k = 0 and
    k = d, where every selection is the same by necessity.

    Examples
    --------
    >>> round(kuncheva([[0, 1, 2], [0, 1, 3], [0, 1, 2]], n_features=10), 6)
    0.68254
    """
    chosen = _read(subsets, n_features)
    n, d, k = len(chosen), chosen.n_features, int(chosen.sizes[0])
    if not chosen.of_one_size:
        raise ValueError(
            f"subsets of {chosen.sizes.min()} to {chosen.sizes.max()} features: kuncheva needs subsets of one size; "
            "use nogueira, which is equal to it there and takes any sizes"
        )
    if k in (0, d):
        return float("nan")
    in_common = (chosen.square - chosen.total) / (n * (n - 1))
    return (in_common * d - k**2) / (k * (d - k))


def nogueira(subsets: Any, n_features: int) -> float:
    """Nogueira's stability: 1 less the mean variance of a feature's selection over that of random selection.

    Definition 4 of [4]: with k̄ = N / n the mean size, d = |Y| and p_f = F_f / n,
    Φ = 1 - (1/d) sum_f n/(n - 1) p_f (1 - p_f) / (k̄/d (1 - k̄/d)).
    1 for equal subsets, never below -1 / (n - 1), and 0 on average for random subsets of one size; where random subsets
    differ in size, below 0 by Var(k) / ((n - 1) k̄ (d - k̄)), which is little for many subsets. NaN where no feature is
    selected, or every feature every time.

    Examples
    --------
    >>> round(nogueira([{1, 2, 3}, {1, 2, 3, 4}, {1, 2, 3, 4, 5}], n_features=10), 6)
    0.722222
    """
    chosen = _read(subsets, n_features)
    n, d, total = len(chosen), chosen.n_features, chosen.total
    if total in (0, n * d):
        return float("nan")
    return 1 - (n * total - chosen.square) * n * d / ((n - 1) * total * (n * d - total))


@dataclass(frozen=True)
class StabilityInterval:
    """An estimate of stability with its variance and the ends of its confidence interval."""

    estimate: float
    variance: float
    lower: float
    upper: float
    confidence: float


@dataclass(frozen=True)
class StabilityTest:
    """The statistic of a test, standard normal where the two stabilities are equal, and its two-sided p-value."""

    statistic: float
    p_value: float


def nogueira_interval(subsets: Any, n_features: int, confidence: float = 0.95) -> StabilityInterval:
    """`nogueira` with a confidence interval for the stability of the procedure that made the subsets.

    Corollary 9 of [4]: Φ ± z sqrt(v), v = 4/n^2 sum_i (φ_i - φ̄)^2, with k_i the size of subset i, z_if = 1 where it
    holds f, and
    φ_i = [(1/d) sum_f z_if p_f - k_i k̄/d^2 + Φ/2 (2 k_i k̄/d^2 - k_i/d - k̄/d + 1)] / (k̄/d (1 - k̄/d)).

    The subsets must come from independent runs. The interval holds for many subsets, and is too narrow for a handful;
    its ends are not clipped to the range of Φ. NaN throughout where `nogueira` is NaN.

    Parameters
    ----------
    confidence : float, default=0.95
        The share of such intervals that hold the true stability, in (0, 1); nearer 1 is wider.

    Examples
    --------
    >>> found = nogueira_interval([{0, 1}, {0, 1}, {0, 2}, {0, 1}, {0, 1}, {1, 3}], n_features=10)
    >>> [round(end, 3) for end in (found.lower, found.estimate, found.upper)]
    [0.269, 0.583, 0.898]
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence={confidence!r}: give a share between 0 and 1, such as 0.95")
    chosen = _read(subsets, n_features)
    estimate, variance = nogueira(chosen, n_features), _nogueira_variance(chosen)
    reach = float(ndtri((1 + confidence) / 2)) * variance**0.5
    return StabilityInterval(estimate, variance, estimate - reach, estimate + reach, confidence)


def nogueira_test(first: Any, second: Any, n_features: int) -> StabilityTest:
    """Are two procedures equally stable? T = (Φ_1 - Φ_2) / sqrt(v_1 + v_2) and its two-sided p-value.

    Theorem 10 of [4]. T is positive where ``first`` is the more stable one (the authors' has the other sign). As in
    `nogueira_interval`, the runs must be independent and many. Where neither varies (v_1 = v_2 = 0), equal stabilities
    give T = 0 and p = 1, others an infinite T and p = 0. NaN where `nogueira` is NaN for either.

    Examples
    --------
    >>> steady = [[0, 1], [0, 1], [0, 2], [0, 1], [0, 1], [0, 1]]
    >>> shaky = [[0, 1], [2, 3], [0, 4], [5, 1], [0, 1], [1, 3]]
    >>> test = nogueira_test(steady, shaky, n_features=10)
    >>> round(test.statistic, 2), round(test.p_value, 4)
    (3.49, 0.0005)
    """
    one, two = _read(first, n_features, name="first"), _read(second, n_features, name="second")
    difference = nogueira(one, n_features) - nogueira(two, n_features)
    if difference == 0:
        return StabilityTest(0.0, 1.0)
    variance = _nogueira_variance(one) + _nogueira_variance(two)
    statistic = difference / variance**0.5 if variance else float(np.copysign(np.inf, difference))
    return StabilityTest(statistic, float(2 * ndtr(-abs(statistic))))


def iati(first: Any, second: Any, n_features: int) -> float:
    """Inter-system average Tanimoto index [1]: the mean of |A ∩ B| / |A ∪ B| over A of one selector, B of the other.

    From 0 to 1; two selectors that agree as far as their own instability allows score about as each one's `ati`.
    Two empty subsets agree fully: 1.

    Examples
    --------
    >>> iati([{0, 1}, {0, 1}], [{0, 1}, {2, 3}], n_features=10)
    0.5
    """
    one, two = _read_two(first, second, n_features)
    return float(_tanimoto(one, two).mean())


def ianhi(first: Any, second: Any, n_features: int) -> float:
    """Inter-system average normalised Hamming index [1]: the mean of 1 - |A △ B| / |Y| over pairs as in `iati`.

    From 0 to 1. As with `anhi`, features left out of both count as agreement.

    Examples
    --------
    >>> ianhi([{0, 1}, {0, 1}], [{0, 1}, {2, 3}], n_features=10)
    0.8
    """
    one, two = _read_two(first, second, n_features)
    differing = len(two) * one.total + len(one) * two.total - 2 * int(one.counts @ two.counts)
    return 1 - differing / (len(one) * len(two) * one.n_features)


def icw(first: Any, second: Any, n_features: int) -> float:
    """Weighted inter-system consistency [1]: how alike two selectors' frequencies of features are, from 0 to 1.

    With p_f and q_f the share of the first's and of the second's subsets that hold f,
    ICW = 1 - sum_f w_f |p_f - q_f|, w_f = max(p_f, q_f) / sum_g max(p_g, q_g):
    features that at least one selector chooses often weigh most. Unlike `iati` it is 1 for two selectors with the
    same frequencies, however unstable. NaN where neither selects a feature.

    Examples
    --------
    >>> icw([{0, 1}, {0, 1}], [{0, 1}, {2, 3}], n_features=10)
    0.5
    """
    one, two = _read_two(first, second, n_features)
    if one.total + two.total == 0:
        return float("nan")
    p, q = one.counts / len(one), two.counts / len(two)
    weight = np.maximum(p, q)
    return float(1 - weight @ np.abs(p - q) / weight.sum())


@dataclass(frozen=True)
class Measure:
    """What one should know of a measure of agreement.

    Attributes
    ----------
    function : callable
        Of (subsets, n_features), or of (first, second, n_features) where ``n_selectors`` is 2.
    meaning : str
        One sentence.
    low, high : float
        The range; the low end of -1 is for two subsets, -1 / (n - 1) for n.
    corrected_for_chance : bool
        Whether random subsets score 0 on average (`nogueira` says how nearly, where sizes differ).
    equal_sizes : bool
        Whether all subsets must be of one size.
    n_selectors : int
        1 for the stability of one selector, 2 for the similarity of two.
    """

    function: Callable[..., float]
    meaning: str
    low: float = 0
    high: float = 1
    corrected_for_chance: bool = False
    equal_sizes: bool = False
    n_selectors: int = 1


MEASURES: Mapping[str, Measure] = {
    "cw_rel": Measure(cw_rel, "Frequency-weighted agreement between the least and the most possible."),
    "ati": Measure(ati, "Mean share of the union of two subsets that both hold (Jaccard)."),
    "anhi": Measure(anhi, "Mean share of all features on which two subsets agree, held or left out."),
    "kuncheva": Measure(
        kuncheva, "Mean overlap of two subsets above what chance gives, for one size.", -1, 1, True, True
    ),
    "nogueira": Measure(nogueira, "Kuncheva's stability for any sizes, with intervals and a test.", -1, 1, True),
    "iati": Measure(iati, "As ati, over pairs of one subset from each selector.", n_selectors=2),
    "ianhi": Measure(ianhi, "As anhi, over pairs of one subset from each selector.", n_selectors=2),
    "icw": Measure(icw, "How alike the two selectors' frequencies of each feature are.", n_selectors=2),
}


def stability_table(subsets: Any, n_features: int) -> list[dict[str, Any]]:
    """Every measure of one selector's stability in `MEASURES`, a record each: pass it to a data frame to see it.

    A record holds measure, value, low, high, corrected_for_chance, equal_sizes and meaning. The value is NaN where a
    measure is not defined, as for one that needs equal sizes where sizes differ.

    Examples
    --------
    >>> for record in stability_table([{1, 2, 3}, {1, 2, 3, 4}, {1, 2, 3, 4, 5}], n_features=10):
    ...     print(record["measure"], round(record["value"], 3))
    cw_rel 0.8
    ati 0.717
    anhi 0.867
    kuncheva nan
    nogueira 0.722
    """
    chosen, records = _read(subsets, n_features), []
    for name, measure in MEASURES.items():
        if measure.n_selectors == 1:
            is_defined = chosen.of_one_size or not measure.equal_sizes
            value = measure.function(chosen, n_features) if is_defined else float("nan")
            known = ("low", "high", "corrected_for_chance", "equal_sizes", "meaning")
            records.append({"measure": name, "value": value} | {key: getattr(measure, key) for key in known})
    return records


@dataclass(frozen=True, eq=False)
class _Selections:
    """Checked subsets: subset k holds the features ``indices[offsets[k]:offsets[k + 1]]``, each once."""

    indices: NDArray[np.int64]
    offsets: NDArray[np.int64]
    n_features: int

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def total(self) -> int:
        """N, a Python integer, which cannot overflow in the formulas."""
        return len(self.indices)

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        return np.diff(self.offsets)

    @property
    def of_one_size(self) -> bool:
        return not np.ptp(self.sizes)

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """F_f of every feature."""
        return np.bincount(self.indices, minlength=self.n_features)

    @cached_property
    def square(self) -> int:
        """The sum of F_f squared."""
        return int(self.counts @ self.counts)

    @cached_property
    def matrix(self) -> sp.csr_array:
        """Subsets by features, 1 where the subset holds the feature."""
        ones = np.ones(len(self.indices), np.int32)
        return sp.csr_array((ones, self.indices, self.offsets), shape=(len(self), self.n_features))


def _read(subsets: Any, n_features: int, *, name: str = "subsets", least: int = 2) -> _Selections:
    if isinstance(subsets, _Selections):
        return subsets
    if not isinstance(n_features, int | np.integer) or isinstance(n_features, bool) or n_features < 1:
        raise ValueError(f"n_features={n_features!r}: give the number of features the subsets were taken from")
    if isinstance(subsets, str | Mapping) or not isinstance(subsets, Iterable):
        raise ValueError(f"{name} is a {type(subsets).__name__}: give a list of subsets or a boolean array of masks")
    parts = [_indices(subset, int(n_features), f"{name}[{k}]") for k, subset in enumerate(subsets)]
    if len(parts) < least:
        raise ValueError(f"{name} holds {len(parts)} subsets; at least {least} are needed: select on more resamples")
    offsets = np.cumsum([0] + [len(part) for part in parts], dtype=np.int64)
    return _Selections(np.concatenate(parts), offsets, int(n_features))


def _read_two(first: Any, second: Any, n_features: int) -> tuple[_Selections, _Selections]:
    return _read(first, n_features, name="first", least=1), _read(second, n_features, name="second", least=1)


def _indices(subset: Any, n_features: int, where: str) -> NDArray[np.int64]:
    array = np.asarray(list(subset) if isinstance(subset, AbstractSet) else subset)
    if array.dtype == bool and array.ndim == 1:
        if len(array) != n_features:
            raise ValueError(f"{where} is a mask of {len(array)} features, but n_features={n_features}")
        return np.flatnonzero(array)
    if array.ndim == 1 and array.size == 0:
        return np.empty(0, np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(f"{where} is {subset!r:.60}: a subset is a list of column indices or a boolean mask")
    array = np.sort(array)
    bad = array[0] if array[0] < 0 else array[-1]
    if not 0 <= bad < n_features:
        raise ValueError(f"{where} holds the index {bad}; with n_features={n_features}, give 0 to {n_features - 1}")
    twice = array[1:][array[1:] == array[:-1]]
    if len(twice):
        remedy = "list each feature once (is it a mask of 0 and 1? then make it boolean)"
        raise ValueError(f"{where} holds the index {twice[0]} more than once: {remedy}")
    return array.astype(np.int64)


def _nogueira_variance(chosen: _Selections) -> float:
    n, d, total = len(chosen), chosen.n_features, chosen.total
    if total in (0, n * d):
        return float("nan")
    k, mean = chosen.sizes / d, total / (n * d)
    held = chosen.matrix @ (chosen.counts / n) / d
    phi = held - k * mean + nogueira(chosen, d) / 2 * (2 * k * mean - k - mean + 1)
    return float(4 / n * np.var(phi / (mean * (1 - mean))))


def _tanimoto(first: _Selections, second: _Selections) -> NDArray[np.float64]:
    """The index of each subset of one list with each of the other.

    A feature in many subsets is cheaper as a dense column, one in few as a sparse one.
    """
    pairs = first.counts * second.counts
    is_dense = pairs * DENSE_GAIN > len(first) * len(second)
    often, seldom = np.flatnonzero(is_dense), np.flatnonzero((pairs > 0) & ~is_dense)
    one, two = first.matrix.tocsc(), second.matrix.tocsc()
    common: NDArray[np.float64] = (one[:, seldom] @ two[:, seldom].T).toarray().astype(np.float64)
    for start in range(0, len(often), COLUMNS_AT_A_TIME):
        columns = often[start : start + COLUMNS_AT_A_TIME]
        common += one[:, columns].toarray().astype(np.float32) @ two[:, columns].toarray().astype(np.float32).T
    union = first.sizes[:, None] + second.sizes - common
    return np.divide(common, union, out=np.ones_like(common), where=union > 0)
