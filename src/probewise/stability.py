"""Measures of stability: agreement between the subsets of repeated runs of one selector, or of two selectors.

All measures take ``subsets`` (or ``first`` and ``second``), such as the ``support_`` of repeated runs: a list of index
lists, sets, arrays or boolean masks, or a boolean array of shape (n_subsets, n_features). Subsets may repeat.
``n_features`` is the number of features the subsets were taken from. Measures return a float.

A ValueError is raised for a feature listed twice in one subset, an index outside 0..n_features - 1, or fewer than two
subsets (one, for the measures of two selectors). Notation: there are n subsets of the features Y; F_f is the number of
subsets that contain f, and N = sum F_f.

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


def cw_rel(subsets: Any, n_features: int) -> float:
    """Relative weighted consistency [1]: from 0 (least possible agreement) to 1 (largest), for subsets of any sizes.

    CW_rel = (CW - CW_min) / (CW_max - CW_min), CW = sum_f F_f (F_f - 1) / (N (n - 1)), where CW_min and CW_max are
    the least and largest CW of n subsets with N features in total: with D = N mod |Y|, H = N mod n,
    CW_min = (N^2 - |Y| (N - D) - D^2) / (|Y| N (n - 1)) and CW_max = (H^2 + N (n - 1) - H n) / (N (n - 1)).

    It is not corrected for chance: random subsets score above 0, especially if there are few of them; `nogueira` is 0
    on average for random subsets. If CW_max = CW_min, CW is returned; if all subsets are empty, NaN.

    >>> cw_rel([{1, 2, 3}, {1, 2, 3, 4}, {1, 2, 3, 4, 5}], n_features=10)
    0.8
    """
    selections = _validated(subsets, n_features)
    n, total, features = len(selections), selections.total, selections.n_features
    if not total:
        return float("nan")
    D, H = total % features, total % n
    # All three are multiplied by |Y| N (n - 1), so that they are exact integers.
    consistency = features * (selections.square - total)
    least = total**2 - features * (total - D) - D**2
    largest = features * (H**2 + total * (n - 1) - H * n)
    if least == largest:
        return consistency / (features * total * (n - 1))
    return (consistency - least) / (largest - least)


def ati(subsets: Any, n_features: int) -> float:
    """Average Tanimoto index [1, 2]: the mean of |A ∩ B| / |A ∪ B| over pairs of subsets, from 0 to 1.

    It is also known as the Jaccard index (`jaccard` is the same function). It is not corrected for chance. The index of
    two empty subsets is 1. Memory grows with the square of the number of subsets.
    """
    selections = _validated(subsets, n_features)
    n = len(selections)
    return float((_tanimoto(selections, selections).sum() - n) / (n * (n - 1)))


jaccard = ati


def anhi(subsets: Any, n_features: int) -> float:
    """Average normalized Hamming index [1]: the mean of 1 - |A △ B| / |Y| over pairs of subsets, from 0 to 1.

    It equals 1 - 2 sum_f F_f (n - F_f) / (n (n - 1) |Y|). Features that are in neither subset count as agreement, so
    small subsets of many features always score near 1. It is not corrected for chance.
    """
    selections = _validated(subsets, n_features)
    n = len(selections)
    return 1 - 2 * (n * selections.total - selections.square) / (n * (n - 1) * selections.n_features)


def kuncheva(subsets: Any, n_features: int) -> float:
    """Kuncheva's stability [3]: the mean over pairs of (r d - k^2) / (k (d - k)), r = |A ∩ B|, k = |A| = |B|, d = |Y|.

    It is 1 for equal subsets, 0 on average for random subsets, and at least -1 / (n - 1). All subsets have size k;
    `nogueira` gives the same value and also takes subsets of different sizes. For k = 0 and k = d it is NaN.
    """
    selections = _validated(subsets, n_features)
    n, d, k = len(selections), selections.n_features, int(selections.sizes[0])
    if not selections.have_one_size:
        raise ValueError(
            f"kuncheva needs subsets of one size, and these have {selections.sizes.min()} to {selections.sizes.max()} "
            "features: use nogueira, which takes any sizes"
        )
    if k in (0, d):
        return float("nan")
    mean_overlap = (selections.square - selections.total) / (n * (n - 1))
    return (mean_overlap * d - k**2) / (k * (d - k))


def nogueira(subsets: Any, n_features: int) -> float:
    """Nogueira's stability: 1 minus the mean variance of a feature's selection relative to random selection.

    Definition 4 of [4]: with k̄ = N / n the mean size, d = |Y| and p_f = F_f / n,
    Φ = 1 - (1/d) sum_f n/(n - 1) p_f (1 - p_f) / (k̄/d (1 - k̄/d)).
    It is 1 for equal subsets, at least -1 / (n - 1), and 0 on average for random subsets of one size k. If their sizes
    differ, the average is -Var(k) / ((n - 1) k̄ (d - k̄)), near 0 for many subsets. It is NaN if all subsets are empty
    or contain every feature.
    """
    selections = _validated(subsets, n_features)
    n, d, total = len(selections), selections.n_features, selections.total
    if total in (0, n * d):
        return float("nan")
    return 1 - (n * total - selections.square) * n * d / ((n - 1) * total * (n * d - total))


@dataclass(frozen=True)
class StabilityInterval:
    """An estimate of stability with its variance and confidence interval."""

    estimate: float
    variance: float
    lower: float
    upper: float
    confidence: float


@dataclass(frozen=True)
class StabilityTest:
    """The test statistic, standard normal if the two stabilities are equal, and its two-sided p-value."""

    statistic: float
    p_value: float


def nogueira_interval(subsets: Any, n_features: int, confidence: float = 0.95) -> StabilityInterval:
    """`nogueira` with a confidence interval for the stability of the procedure that made the subsets.

    Corollary 9 of [4]: Φ ± z sqrt(v), v = 4/n^2 sum_i (φ_i - φ̄)^2, with k_i the size of subset i, z_if = 1 if it
    contains f, and
    φ_i = [(1/d) sum_f z_if p_f - k_i k̄/d^2 + Φ/2 (2 k_i k̄/d^2 - k_i/d - k̄/d + 1)] / (k̄/d (1 - k̄/d)).

    The subsets must come from independent runs. The interval is asymptotic: it is too narrow for a few subsets, and its
    ends are not clipped to the range of Φ. All values are NaN if `nogueira` is NaN.

    >>> interval = nogueira_interval([{0, 1}, {0, 1}, {0, 2}, {0, 1}, {0, 1}, {1, 3}], n_features=10)
    >>> [round(end, 3) for end in (interval.lower, interval.estimate, interval.upper)]
    [0.269, 0.583, 0.898]
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence={confidence!r} must be a number between 0 and 1, such as 0.95")
    selections = _validated(subsets, n_features)
    estimate, variance = nogueira(selections, n_features), _nogueira_variance(selections)
    half_width = float(ndtri((1 + confidence) / 2)) * variance**0.5
    return StabilityInterval(estimate, variance, estimate - half_width, estimate + half_width, confidence)


def nogueira_test(first: Any, second: Any, n_features: int) -> StabilityTest:
    """Test whether two procedures are equally stable: T = (Φ_1 - Φ_2) / sqrt(v_1 + v_2) and its two-sided p-value.

    Theorem 10 of [4]. T is positive if ``first`` is more stable (in the paper it has the opposite sign). As in
    `nogueira_interval`, the runs must be independent and many. If v_1 = v_2 = 0, equal stabilities give T = 0 and
    p = 1, and different ones an infinite T and p = 0. The values are NaN if `nogueira` is NaN for either procedure.

    >>> steady = [[0, 1], [0, 1], [0, 2], [0, 1], [0, 1], [0, 1]]
    >>> shaky = [[0, 1], [2, 3], [0, 4], [5, 1], [0, 1], [1, 3]]
    >>> test = nogueira_test(steady, shaky, n_features=10)
    >>> round(test.statistic, 2), round(test.p_value, 4)
    (3.49, 0.0005)
    """
    one, two = _validated(first, n_features, name="first"), _validated(second, n_features, name="second")
    difference = nogueira(one, n_features) - nogueira(two, n_features)
    if difference == 0:
        return StabilityTest(0.0, 1.0)
    variance = _nogueira_variance(one) + _nogueira_variance(two)
    statistic = difference / variance**0.5 if variance else float(np.copysign(np.inf, difference))
    return StabilityTest(statistic, float(2 * ndtr(-abs(statistic))))


def iati(first: Any, second: Any, n_features: int) -> float:
    """Inter-system average Tanimoto index [1]: the mean of |A ∩ B| / |A ∪ B| over A of one selector, B of the other.

    It ranges from 0 to 1. Two selectors that differ no more than their own repeated runs score about the `ati` of each.
    The index of two empty subsets is 1.
    """
    one, two = _validated_pair(first, second, n_features)
    return float(_tanimoto(one, two).mean())


def ianhi(first: Any, second: Any, n_features: int) -> float:
    """Inter-system average normalized Hamming index [1]: the mean of 1 - |A △ B| / |Y| over the pairs of `iati`.

    It ranges from 0 to 1. Features that are in neither subset count as agreement.
    """
    one, two = _validated_pair(first, second, n_features)
    n_different = len(two) * one.total + len(one) * two.total - 2 * int(one.counts @ two.counts)
    return 1 - n_different / (len(one) * len(two) * one.n_features)


def icw(first: Any, second: Any, n_features: int) -> float:
    """Weighted inter-system consistency [1]: similarity of two selectors' selection frequencies, from 0 to 1.

    With p_f and q_f the fractions of the first and of the second selector's subsets that contain f,
    ICW = 1 - sum_f w_f |p_f - q_f|, w_f = max(p_f, q_f) / sum_g max(p_g, q_g).
    Features that at least one selector chooses often have the largest weights. Unlike `iati` it is 1 for two selectors
    with the same frequencies, even if they are unstable. It is NaN if neither selects a feature.
    """
    one, two = _validated_pair(first, second, n_features)
    if one.total + two.total == 0:
        return float("nan")
    p, q = one.counts / len(one), two.counts / len(two)
    weight = np.maximum(p, q)
    return float(1 - weight @ np.abs(p - q) / weight.sum())


MEASURES: Mapping[str, tuple[Callable[..., float], str]] = {
    "cw_rel": (cw_rel, "Frequency-weighted agreement, scaled from the least to the largest possible."),
    "ati": (ati, "Mean fraction of the union of two subsets that is in both (Jaccard)."),
    "anhi": (anhi, "Mean fraction of all features that are in both or in neither of two subsets."),
    "kuncheva": (kuncheva, "Mean overlap of two subsets of one size, corrected for chance."),
    "nogueira": (nogueira, "Kuncheva's stability for subsets of any sizes."),
}


def stability_table(subsets: Any, n_features: int) -> list[dict[str, Any]]:
    """All measures of one selector's stability: a list of records with a measure, its value and its meaning.

    The value of `kuncheva` is NaN if the subsets have different sizes.

    >>> for record in stability_table([{1, 2, 3}, {1, 2, 3, 4}, {1, 2, 3, 4, 5}], n_features=10):
    ...     print(record["measure"], round(record["value"], 3))
    cw_rel 0.8
    ati 0.717
    anhi 0.867
    kuncheva nan
    nogueira 0.722
    """
    selections, records = _validated(subsets, n_features), []
    for name, (measure, meaning) in MEASURES.items():
        is_defined = selections.have_one_size or measure is not kuncheva
        value = measure(selections, n_features) if is_defined else float("nan")
        records.append({"measure": name, "value": value, "meaning": meaning})
    return records


@dataclass(frozen=True, eq=False)
class _Selections:
    """Validated subsets: subset k contains the features ``indices[offsets[k]:offsets[k + 1]]``, each once."""

    indices: NDArray[np.int64]
    offsets: NDArray[np.int64]
    n_features: int

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def total(self) -> int:
        """N, as a Python integer, which cannot overflow."""
        return len(self.indices)

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        return np.diff(self.offsets)

    @property
    def have_one_size(self) -> bool:
        return not np.ptp(self.sizes)

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """F_f of each feature."""
        return np.bincount(self.indices, minlength=self.n_features)

    @cached_property
    def square(self) -> int:
        """The sum of F_f²."""
        return int(self.counts @ self.counts)

    @cached_property
    def matrix(self) -> sp.csr_array:
        """Subsets by features: 1 if the subset contains the feature."""
        ones = np.ones(len(self.indices), np.int32)
        return sp.csr_array((ones, self.indices, self.offsets), shape=(len(self), self.n_features))


def _validated(subsets: Any, n_features: int, *, name: str = "subsets", least: int = 2) -> _Selections:
    if isinstance(subsets, _Selections):
        return subsets
    if not isinstance(n_features, int | np.integer) or isinstance(n_features, bool) or n_features < 1:
        raise ValueError(f"n_features={n_features!r} must be the number of features, a whole number of at least 1")
    if isinstance(subsets, str | Mapping) or not isinstance(subsets, Iterable):
        raise ValueError(f"{name} is a {type(subsets).__name__}: give a list of subsets or a boolean array of masks")
    parts = [_indices(subset, int(n_features), f"{name}[{k}]") for k, subset in enumerate(subsets)]
    if len(parts) < least:
        raise ValueError(f"{name} contains {len(parts)} subsets; at least {least} are needed")
    offsets = np.cumsum([0] + [len(part) for part in parts], dtype=np.int64)
    return _Selections(np.concatenate(parts), offsets, int(n_features))


def _validated_pair(first: Any, second: Any, n_features: int) -> tuple[_Selections, _Selections]:
    return _validated(first, n_features, name="first", least=1), _validated(second, n_features, name="second", least=1)


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
        raise ValueError(
            f"{where} contains the index {bad}; with n_features={n_features}, indices are 0 to {n_features - 1}"
        )
    repeated = array[1:][array[1:] == array[:-1]]
    if len(repeated):
        raise ValueError(f"{where} contains the index {repeated[0]} more than once: a mask must be boolean, not 0 or 1")
    return array.astype(np.int64)


def _nogueira_variance(selections: _Selections) -> float:
    n, d, total = len(selections), selections.n_features, selections.total
    if total in (0, n * d):
        return float("nan")
    k, mean = selections.sizes / d, total / (n * d)
    overlap = selections.matrix @ (selections.counts / n) / d
    phi = overlap - k * mean + nogueira(selections, d) / 2 * (2 * k * mean - k - mean + 1)
    return float(4 / n * np.var(phi / (mean * (1 - mean))))


def _tanimoto(first: _Selections, second: _Selections) -> NDArray[np.float64]:
    """The Tanimoto index of each subset of the first list with each subset of the second."""
    common = (first.matrix @ second.matrix.T).toarray().astype(np.float64)
    union = first.sizes[:, None] + second.sizes - common
    return np.divide(common, union, out=np.ones_like(common), where=union > 0)
