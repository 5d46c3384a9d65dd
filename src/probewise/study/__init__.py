"""Comparison of selectors over repeated random splits: accuracy by size, stability, and a test of each pair."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import KW_ONLY, dataclass
from functools import partial
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from .. import __version__
from ..criteria.base import kind_of_target
from ..evaluation.sizes import spaced_sizes
from ..executors import ClusterError, Map, executor
from ..progress import live_line
from ..validation.errors import ParameterError, warn
from ..validation.parameters import check_parameter, is_whole, random_of, seed_of, whole_number
from ..validation.tables import validated
from .result import STABILITY, StudyResult, corrected_t_test, deviation, holm
from .trial_ledger import NotWrittenError, Record, StudyError, TrialLedger, is_trial_ledger
from .trials import Indices, Trials, WorkerWarnings, select, split_rows

__all__ = [
    "CLASSIFIERS",
    "STABILITY",
    "Study",
    "StudyError",
    "StudyResult",
    "TrialLedger",
    "Trials",
    "corrected_t_test",
    "deviation",
    "holm",
    "is_trial_ledger",
    "select",
    "split_rows",
]

STEPS = 13
CLASSIFIERS: dict[str, Callable[..., Any]] = {  # center=False for sparse data, whose zeros must stay zeros
    "knn": lambda center=True: make_pipeline(StandardScaler(with_mean=center), KNeighborsClassifier(3)),
    "linear": lambda center=True: make_pipeline(StandardScaler(with_mean=center), RidgeClassifier()),
    "svm": lambda center=True: make_pipeline(StandardScaler(with_mean=center), SVC()),
    "naive_bayes": lambda center=True: GaussianNB(),
    "tree": lambda center=True: DecisionTreeClassifier(),
    "forest": lambda center=True: RandomForestClassifier(),
}


@dataclass(frozen=True, eq=False)
class Study:
    """Comparison of selectors by the accuracy of classifiers on their features, over repeated random splits.

    In every trial the samples are split at random, stratified by class. Each selector is fitted to the training
    samples. Each classifier is trained on the same samples with the selected features, once for each size, and its
    accuracy is measured on the test samples. A trial is a pure function of (random_state, trial), so the table is the
    same for any number of workers, and whether or not the study was interrupted.

    Parameters
    ----------
    selectors : dict of str to selector or None
        None in place of a selector means all features. The study sets the parameter for the number of features, see
        Notes.
    classifiers : dict of str to estimator
        scikit-learn classifiers or pipelines.
    trials : int, default=20
        Number of splits. Standard deviations and tests are over trials; more can be added to a ``ledger`` later.
    test_size : float or int, default=0.5
        Share, or number, of samples to test on. The papers use half.
    sizes : iterable of int, default=None
        Numbers of features to select; None: up to 12 from 1 to 100 (or all features), evenly spaced by ratio.
    random_state : int, RandomState instance or None, default=None
        An int makes the study repeatable. It determines the splits and overrides every ``random_state`` among the
        parameters of selectors and classifiers.
    n_jobs : int, default=None
        Number of worker processes; each one runs whole trials. None means 1, -1 all cores.
    ledger : path-like, default=None
        File for the finished trials, one line of JSON each. If it already has trials of this study, only the missing
        trials are run.
    verbose : int or callable, default=0
        1 shows progress in a terminal or a notebook; a function is called from time to time with a line of text.

    Notes
    -----
    *Number of features.* Selectors of this library are fitted once for all sizes. SFFS gives the subset of each size
    on its path, or the largest one below. Selectors that choose the number of features themselves (CFS, FCBF) give
    their best features by ``ranking_``, at most as many as the size. Other selectors get the size as
    ``n_features_to_select`` or ``k``, and are refitted for each size if necessary. The number of selected features is
    in the table (``n_selected``).

    *Time.* A selector with a time limit (``MaxTime``, the default of DAF) can give another result on a busy machine.
    Use ``MaxProbes`` for a table that is the same on every machine.

    Ctrl-C ends the study with the trials finished so far and a ``ConvergenceWarning``.

    References
    ----------
    P. Somol, J. Grim, *Fast dependency-aware feature selection in very-high-dimensional pattern recognition
    problems*, research report 2295, UTIA, 2011, section V.

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from probewise import BIF
    >>> from probewise.datasets import make_madelon
    >>> from probewise.study import Study
    >>> data = make_madelon(n_samples=120, n_features=30, random_state=0)
    >>> study = Study({"bif": BIF(), "all": None}, {"3-nn": KNeighborsClassifier(3)}, trials=4, sizes=[5, 15],
    ...               random_state=0)
    >>> result = study.compare(data.X, data.y)
    >>> result.table()["accuracy"].shape  # 4 trials, 2 selectors, 2 sizes
    (16,)
    >>> [name for name in result.summary()]  # doctest: +NORMALIZE_WHITESPACE
    ['selector', 'classifier', 'size', 'n_selected', 'accuracy', 'std', 'seconds', 'cw_rel', 'ati', 'anhi',
     'nogueira']
    """

    selectors: Mapping[str, Any]
    classifiers: Mapping[str, Any]
    _: KW_ONLY
    trials: int = 20
    test_size: float = 0.5
    sizes: Iterable[int] | None = None
    random_state: Any = None
    n_jobs: int | None = None
    ledger: str | PathLike[str] | None = None
    verbose: Any = 0

    def compare(self, X: Any, y: Any) -> StudyResult:
        """Run the trials that are not in the ledger yet, and return the results of all.

        X is an array, a sparse matrix or a data frame, which has the names of the features; y are class labels.
        """
        self._check_parameters()
        X, y, names = _checked_data(X, y)
        sizes = _checked_sizes(self.sizes, X.shape[1])
        split_rows(y, self.test_size, seed=0)  # scikit-learn checks test_size
        workers = executor(self.n_jobs, prefer="processes")  # most classifiers hold the GIL
        with TrialLedger(self.ledger) as ledger:
            seed = seed_of(self.random_state, None if ledger.settings is None else ledger.settings["seed"])
            log_level = logging.getLogger("probewise").level
            trials = Trials(dict(self.selectors), dict(self.classifiers), sizes, self.test_size, seed, log_level)
            ledger.begin(trials.settings(X, y), notes={"version": __version__, "feature_names": names})
            self._run_trials(partial(trials, X, y), workers, ledger)
        return StudyResult.from_ledger(ledger, names, self.trials)

    def _run_trials(self, trial: Callable[[int], tuple[Record, WorkerWarnings]], map: Map, ledger: TrialLedger) -> None:
        missing = [number for number in range(self.trials) if number not in ledger.trials]
        n_before, start = self.trials - len(missing), time.perf_counter()
        results: Any = map(trial, missing)
        try:
            with closing(results), live_line(self.verbose) as progress:
                for n_done, (record, worker_warnings) in enumerate(results, start=1):
                    ledger.append(record)
                    for text, category in worker_warnings:
                        warn(text, category)
                    if progress:
                        seconds = time.perf_counter() - start
                        left = seconds / n_done * (len(missing) - n_done)
                        position = f"{n_before + n_done} of {self.trials} trials"
                        progress(f"study: {position}, {seconds:.0f} s, about {left:.0f} s left")
        except (KeyboardInterrupt, ClusterError, NotWrittenError) as error:
            n_finished = sum(number < self.trials for number in ledger.trials)
            if not n_finished:
                raise
            if isinstance(error, ClusterError) and self.ledger is not None:
                raise ClusterError(
                    f"{error}: {self.ledger} has {n_finished} of {self.trials} trials; start the cluster again and "
                    "repeat the same study to continue it"
                ) from error
            reason = f" ({error})" if str(error) else ""
            warn(
                f"the study was interrupted after {n_finished} of {self.trials} trials{reason}: "
                "these are the results so far",
                ConvergenceWarning,
            )

    def _check_parameters(self) -> None:
        for name in ("selectors", "classifiers"):
            members = getattr(self, name)
            if not isinstance(members, Mapping) or not members or not all(isinstance(key, str) for key in members):
                raise ValueError(f"{name}={members!r} must be a dict of at least one name: {name[:-1]}")
        for name, selector in self.selectors.items():
            if selector is not None and not (hasattr(selector, "fit") and hasattr(selector, "get_support")):
                raise ValueError(f"selectors[{name!r}]={selector!r} is not a selector: it needs fit and get_support")
            if getattr(selector, "ledger", None) is not None:
                raise ValueError(
                    f"selectors[{name!r}] has a ledger, which stores one run, but every trial is another run: remove "
                    "it, and save the study with Study(ledger=...)"
                )
        for name, classifier in self.classifiers.items():
            if not (hasattr(classifier, "fit") and hasattr(classifier, "predict")):
                raise ValueError(f"classifiers[{name!r}]={classifier!r} is not a classifier: it needs fit and predict")
        check_parameter("trials", self.trials, whole_number(1))
        random_of(self.random_state)


def _checked_data(X: Any, y: Any) -> tuple[Any, NDArray[Any], list[str] | None]:
    """X as an array or CSR matrix, y, and the names of the columns if they have any."""
    names = [str(name) for name in X.columns] if hasattr(X, "columns") else None
    if y is None:
        raise ValueError("y is None: a study compares accuracy and needs one class label per sample")
    X, y = validated(BaseEstimator(), X, y, accept_sparse="csr", dtype="numeric", ensure_all_finite=False)
    kind = kind_of_target(y)
    if kind not in ("binary", "multiclass"):
        raise ValueError(f"y is {kind}: a study compares accuracy and needs one class label per sample")
    labels, counts = np.unique(y, return_counts=True)
    if len(labels) < 2:
        raise ValueError(f"y has only one class, {labels[0]!s}: a study needs at least two")
    if counts.min() < 2:
        raise ValueError(
            f"class {labels[counts.argmin()]!s} of y has a single sample: each class needs one to train and one to "
            "test on; remove it or merge it with another class"
        )
    return X, y, names


def _checked_sizes(sizes: Iterable[int] | None, n_features: int) -> Indices:
    if sizes is None:
        return spaced_sizes(n_features, steps=STEPS)
    values = list(sizes)
    if not values or not all(is_whole(size, 1, n_features) for size in values):
        raise ParameterError(f"sizes={values!r} must be whole numbers from 1 to the number of features, {n_features}")
    return np.unique(np.array(values, dtype=np.int64))
