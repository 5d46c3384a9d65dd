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

from ..engine.certainty import holm
from ..stability import anhi, ati, cw_rel, nogueira
from .runfile import Record, RunFile

STABILITY: dict[str, Callable[..., float]] = {"cw_rel": cw_rel, "ati": ati, "anhi": anhi, "nogueira": nogueira}

Columns = dict[str, NDArray[Any]]
Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class StudyResult:
    """Results of a study: a tidy table, its summary by size, the features selected, and a test of each pair.

    Tables are dicts of equally long columns, which pandas and polars take as they are.

    Attributes
    ----------
    selectors, classifiers : tuple of str
        Their names.
    sizes : ndarray of shape (n_sizes,)
        Ascending.
    trials : ndarray of shape (n_trials,)
        Numbers of the finished trials.
    n_features, n_train, n_test : int
        Features, and rows in each training and test part.
    accuracy : ndarray of shape (n_trials, n_selectors, n_classifiers, n_sizes)
        On the test rows.
    seconds, probes : ndarray of shape (n_trials, n_selectors)
        The time a selection took, kernels being compiled excepted, and the probes it made (0: a method without
        probes).
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
    def of_run(cls, run: RunFile, feature_names: list[str] | None, trials: int | None = None) -> StudyResult:
        """What a run file holds of the first so many trials, or of all."""
        settings = run.settings
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
            records=tuple(run.trials[trial] for trial in sorted(run.trials) if trials is None or trial < trials),
            feature_names=feature_names,
        )

    def __repr__(self) -> str:
        return (
            f"StudyResult(trials={len(self.trials)}, selectors={list(self.selectors)}, "
            f"classifiers={list(self.classifiers)}, sizes={self.sizes.tolist()})"
        )

    @cached_property
    def trials(self) -> Indices:
        return np.array([record["trial"] for record in self.records], dtype=np.int64)

    @cached_property
    def accuracy(self) -> NDArray[np.float64]:
        by_name = self._of_each("accuracy")
        return np.array([[[each[name] for name in self.classifiers] for each in trial] for trial in by_name])

    @cached_property
    def seconds(self) -> NDArray[np.float64]:
        return np.array(self._of_each("seconds"))

    @cached_property
    def probes(self) -> Indices:
        return np.array(self._of_each("probes"))

    def subsets(self, selector: str, size: int) -> list[Indices]:
        """The features selected at that size, an array of column numbers for each trial."""
        place = self._place("size", size, self.sizes.tolist())
        self._place("selector", selector, self.selectors)
        kept = [record["selectors"][selector]["subsets"] for record in self.records]
        everything = np.arange(self.n_features)
        return [everything if each is None else np.array(each[place], dtype=np.int64) for each in kept]

    def table(self) -> Columns:
        """A row for each trial, selector, classifier and size: accuracy, seconds of selection, and probes."""
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

    def to_pandas(self) -> Any:
        """The table as a pandas DataFrame."""
        try:
            import pandas  # type: ignore[import-untyped]
        except ModuleNotFoundError:
            raise ImportError("to_pandas needs pandas: pip install pandas") from None
        return pandas.DataFrame(self.table())

    def summary(self) -> Columns:
        """A row for each selector, classifier and size: means over trials, deviation of accuracy, stability.

        ``accuracy`` and ``std`` are mean and standard deviation (divisor: trials - 1); ``cw_rel``, ``ati``, ``anhi``
        and ``nogueira`` measure the agreement of the trials' subsets (`probewise.stability`), NaN for one trial.
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
            name: np.array([[measure(each, self.n_features) for each in by_size] for by_size in subsets])
            for name, measure in STABILITY.items()
        }

    def verdict(self, size: int | None = None) -> Columns:
        """Each pair of selectors with each classifier: the difference in accuracy, and how likely chance makes it.

        The p-value is that of the corrected resampled t-test. Trials share their data, so that the usual test
        would find differences where there are none; this one counts in how much they share: with d the
        differences of n trials,

            t = mean(d) / sqrt((1/n + n_test/n_train) * var(d)),  n - 1 degrees of freedom.

        Among many pairs some fall below 0.05 by chance. ``p_holm`` is Holm's adjustment for all pairs with one
        classifier: where it is below 0.05, chance makes any such find among them in one study of twenty at most.

        Parameters
        ----------
        size : int, default=None
            Compare at this size; None: by the mean over all sizes.

        Returns
        -------
        dict of str to ndarray
            Columns ``classifier``, ``first``, ``second``, ``difference`` (mean accuracy of the first less that of
            the second), ``t``, ``p_value`` (1 where all trials are equal, NaN for a single trial) and ``p_holm``.

        References
        ----------
        C. Nadeau, Y. Bengio, *Inference for the generalization error*, Machine Learning 52, 2003, section 3.2.
        S. Holm, *A simple sequentially rejective multiple test procedure*, Scandinavian Journal of Statistics 6, 1979.
        """
        if size is None:
            accuracy = self.accuracy.mean(axis=3)
        else:
            accuracy = self.accuracy[..., self._place("size", size, self.sizes.tolist())]
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

    def _of_each(self, what: str) -> list[list[Any]]:
        """One entry of the records, for each trial and selector."""
        return [[record["selectors"][name][what] for name in self.selectors] for record in self.records]

    @cached_property
    def _n_selected(self) -> Indices:
        """Array (trials, selectors, sizes)."""
        counts = [[list(map(len, self.subsets(name, size))) for size in self.sizes] for name in self.selectors]
        return np.array(counts, dtype=np.int64).transpose(2, 0, 1)

    @staticmethod
    def _place(what: str, asked: Any, known: Sequence[Any]) -> int:
        if asked not in known:
            raise ValueError(f"{what}={asked!r} is not in this study: choose one of {', '.join(map(str, known))}")
        return known.index(asked)


def deviation(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The standard deviation over trials, the first axis; NaN for one trial."""
    if len(values) < 2:
        return np.full(values.shape[1:], np.nan)
    return values.std(axis=0, ddof=1)


def corrected_t_test(differences: NDArray[np.float64], test_to_train: float) -> tuple[float, float]:
    """t and two-sided p of Nadeau's and Bengio's test, for differences of trials that share their data."""
    n_trials, mean = len(differences), float(differences.mean())
    if n_trials < 2:
        return float("nan"), float("nan")
    error = float(np.sqrt((1 / n_trials + test_to_train) * differences.var(ddof=1)))
    if error <= 1e-12:  # differences that are equal but for rounding
        return (0.0, 1.0) if abs(mean) <= 1e-12 else (float(np.copysign(np.inf, mean)), 0.0)
    t = mean / error
    return t, float(2 * stdtr(n_trials - 1, -abs(t)))
