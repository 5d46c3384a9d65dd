"""Results of a study: tables, stability, and a test of each pair of selectors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from ..stability import anhi, ati, cw_rel, nogueira
from .trial_ledger import Record, TrialLedger

STABILITY: dict[str, Callable[..., float]] = {"cw_rel": cw_rel, "ati": ati, "anhi": anhi, "nogueira": nogueira}

Columns = dict[str, NDArray[Any]]
Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class StudyResult:
    """Results of a study: a tidy table, its summary by size, the selected features, and a test of each pair.

    Tables are dicts of columns of equal length, which pandas and polars accept.

    Attributes
    ----------
    selectors, classifiers : tuple of str
        Their names.
    sizes : ndarray of shape (n_sizes,)
        Ascending.
    trials : ndarray of shape (n_trials,)
        Numbers of the finished trials.
    n_features, n_train, n_test : int
        Number of features, of training samples and of test samples.
    accuracy : ndarray of shape (n_trials, n_selectors, n_classifiers, n_sizes)
        Accuracy on the test samples.
    seconds, probes : ndarray of shape (n_trials, n_selectors)
        Time of each selection without the compilation of kernels, and number of probes (0 for methods without probes).
    feature_names : list of str or None
        Names of the columns of X.
    """

    selectors: tuple[str, ...]
    classifiers: tuple[str, ...]
    sizes: Indices
    n_features: int
    n_train: int
    n_test: int
    records: tuple[Record, ...]
    feature_names: list[str] | None = None

    @classmethod
    def from_ledger(
        cls, ledger: TrialLedger, feature_names: list[str] | None, trials: int | None = None
    ) -> StudyResult:
        """Results of the first ``trials`` trials in a ledger; None: of all."""
        settings = ledger.settings
        assert settings is not None
        (n_rows, n_features), test_size = settings["shape"], settings["test_size"]
        n_test = math.ceil(test_size * n_rows) if isinstance(test_size, float) else int(test_size)
        return cls(
            selectors=tuple(settings["selectors"]),
            classifiers=tuple(settings["classifiers"]),
            sizes=np.array(settings["sizes"], dtype=np.int64),
            n_features=n_features,
            n_train=n_rows - n_test,
            n_test=n_test,
            records=tuple(ledger.trials[k] for k in sorted(ledger.trials) if trials is None or k < trials),
            feature_names=feature_names,
        )

    def __repr__(self) -> str:
        return (
            f"StudyResult(trials={len(self.trials)}, selectors={list(self.selectors)}, "
            f"classifiers={list(self.classifiers)}, sizes={self.sizes.tolist()})"
        )

    @property
    def selecting(self) -> list[str]:
        """The methods that select features; the others use all features at every size."""
        by_trial = [record["selectors"] for record in self.records]
        return [name for name in self.selectors if any(outcomes[name]["subsets"] for outcomes in by_trial)]

    @cached_property
    def trials(self) -> Indices:
        return np.array([record["trial"] for record in self.records], dtype=np.int64)

    @cached_property
    def accuracy(self) -> NDArray[np.float64]:
        trials = self._outcomes("accuracy")
        return np.array([[[by_name[name] for name in self.classifiers] for by_name in trial] for trial in trials])

    @cached_property
    def seconds(self) -> NDArray[np.float64]:
        return np.array(self._outcomes("seconds"))

    @cached_property
    def probes(self) -> Indices:
        return np.array(self._outcomes("probes"))

    def subsets(self, selector: str, size: int) -> list[Indices]:
        """The features selected at this size: an array of column numbers for each trial."""
        index = self.index_of("size", size, self.sizes.tolist())
        self.index_of("selector", selector, self.selectors)
        by_trial = [record["selectors"][selector]["subsets"] for record in self.records]
        all_features = np.arange(self.n_features)
        return [all_features if subsets is None else np.array(subsets[index], dtype=np.int64) for subsets in by_trial]

    def table(self) -> Columns:
        """A row for each trial, selector, classifier and size: accuracy, seconds of selection, and number of probes."""
        shape = self.accuracy.shape
        trial, selector, classifier, size = (part.ravel() for part in np.indices(shape))
        return {
            "trial": self.trials[trial],
            "selector": np.array(self.selectors)[selector],
            "classifier": np.array(self.classifiers)[classifier],
            "size": self.sizes[size],
            "n_selected": self._n_selected[trial, selector, size],
            "accuracy": self.accuracy.ravel(),
            "seconds": self.seconds[trial, selector],
            "probes": self.probes[trial, selector],
        }

    def summary(self) -> Columns:
        """A row for each selector, classifier and size: means over trials, standard deviation of accuracy, stability.

        ``accuracy`` and ``std`` are the mean and the standard deviation (divisor: trials - 1). ``cw_rel``, ``ati``,
        ``anhi`` and ``nogueira`` measure the agreement between the subsets of the trials (`probewise.stability`); they
        are NaN for one trial.
        """
        selector, classifier, size = (part.ravel() for part in np.indices(self.accuracy.shape[1:]))
        return {
            "selector": np.array(self.selectors)[selector],
            "classifier": np.array(self.classifiers)[classifier],
            "size": self.sizes[size],
            "n_selected": self._n_selected.mean(axis=0)[selector, size],
            "accuracy": self.accuracy.mean(axis=0).ravel(),
            "std": deviation(self.accuracy).ravel(),
            "seconds": self.seconds.mean(axis=0)[selector],
            **{name: values[selector, size] for name, values in self.stability().items()},
        }

    def stability(self) -> dict[str, NDArray[np.float64]]:
        """Each measure of stability as an array (selectors, sizes)."""
        if len(self.trials) < 2:
            return {name: np.full((len(self.selectors), len(self.sizes)), np.nan) for name in STABILITY}
        subsets = [[self.subsets(name, size) for size in self.sizes] for name in self.selectors]
        return {
            name: np.array([[measure(selected, self.n_features) for selected in by_size] for by_size in subsets])
            for name, measure in STABILITY.items()
        }

    def verdict(self, size: int | None = None) -> Columns:
        """Test the difference in accuracy of each pair of selectors with each classifier.

        The p-value is that of the corrected resampled t-test. The trials share their data, so the usual t-test would
        report differences where there are none; the correction accounts for the overlap. With the differences d of n
        trials,

            t = mean(d) / sqrt((1/n + n_test/n_train) * var(d)),  n - 1 degrees of freedom.

        They are compared at one ``size``; None: by the mean over all sizes. The columns of the result are
        ``classifier``, ``first``, ``second``, ``difference`` (mean accuracy of the first minus that of the second),
        ``t``, ``p_value`` (1 where all trials are equal, NaN for a single trial) and ``p_holm``, adjusted by Holm's
        method for all pairs with one classifier: if all methods were equal, at most one study in twenty would have any
        ``p_holm`` below 0.05.

        References
        ----------
        C. Nadeau, Y. Bengio, *Inference for the generalization error*, Machine Learning 52, 2003, section 3.2.
        S. Holm, *A simple sequentially rejective multiple test procedure*, Scandinavian Journal of Statistics 6, 1979.
        """
        if size is None:
            accuracy = self.accuracy.mean(axis=3)
        else:
            accuracy = self.accuracy[..., self.index_of("size", size, self.sizes.tolist())]
        first, second = np.triu_indices(len(self.selectors), k=1)
        differences = accuracy[:, first] - accuracy[:, second]
        pairs = differences.reshape(len(accuracy), -1).T
        tests = np.array([corrected_t_test(pair, self.n_test / self.n_train) for pair in pairs], dtype=np.float64)
        t, p_value = tests.reshape(*differences.shape[1:], 2).transpose(2, 0, 1)
        pair, classifier = (part.ravel() for part in np.indices(p_value.shape))
        selectors = np.array(self.selectors)
        return {
            "classifier": np.array(self.classifiers)[classifier],
            "first": selectors[first[pair]],
            "second": selectors[second[pair]],
            "difference": differences.mean(axis=0).ravel(),
            "t": t.ravel(),
            "p_value": p_value.ravel(),
            "p_holm": holm(p_value).ravel(),
        }

    def _outcomes(self, key: str) -> list[list[Any]]:
        """One entry of the records for each trial and selector."""
        return [[record["selectors"][name][key] for name in self.selectors] for record in self.records]

    @cached_property
    def _n_selected(self) -> Indices:
        """Array (trials, selectors, sizes)."""
        counts = [[list(map(len, self.subsets(name, size))) for size in self.sizes] for name in self.selectors]
        return np.array(counts, dtype=np.int64).transpose(2, 0, 1)

    @staticmethod
    def index_of(name: str, value: Any, values: Sequence[Any]) -> int:
        """Position of a size, selector or classifier in the study; an error if it is not there."""
        if value not in values:
            raise ValueError(f"{name}={value!r} is not in this study: choose one of {', '.join(map(str, values))}")
        return values.index(value)


def deviation(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Standard deviation over trials, the first axis; NaN for one trial."""
    if len(values) < 2:
        return np.full(values.shape[1:], np.nan)
    return values.std(axis=0, ddof=1)


def corrected_t_test(differences: NDArray[np.float64], test_to_train: float) -> tuple[float, float]:
    """t and two-sided p-value of Nadeau and Bengio's test for differences of trials that share their data."""
    n_trials, mean = len(differences), float(differences.mean())
    if n_trials < 2:
        return float("nan"), float("nan")
    error = float(np.sqrt((1 / n_trials + test_to_train) * differences.var(ddof=1)))
    if error <= 1e-12:  # all differences are equal up to rounding
        return (0.0, 1.0) if abs(mean) <= 1e-12 else (float(np.copysign(np.inf, mean)), 0.0)
    t = mean / error
    return t, float(2 * stdtr(n_trials - 1, -abs(t)))


def holm(p_values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Holm's adjusted p-values, along the first axis; scipy has no such function."""
    order = np.argsort(p_values, axis=0, kind="stable")
    factors = np.arange(len(p_values), 0, -1).reshape(-1, *[1] * (p_values.ndim - 1))
    stepped = np.maximum.accumulate(np.take_along_axis(p_values, order, axis=0) * factors, axis=0)
    adjusted = np.empty_like(p_values)
    np.put_along_axis(adjusted, order, np.minimum(stepped, 1), axis=0)
    return adjusted
