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
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.validation import column_or_1d

from .. import __version__
from ..criteria.base import kind_of_target
from ..engine.certainty import holm
from ..engine.progress import live_line
from ..evaluation.sizes import spaced_sizes
from ..executors import ClusterError, Map, executor
from ..validation.errors import Parameter, ParameterError, warn
from ..validation.labels import plain_labels
from ..validation.parameters import is_whole, random_of, require_whole, seed_of
from ..validation.tables import canonical, explained, require_plain
from .result import STABILITY, StudyResult, corrected_t_test, deviation
from .runfile import Record, RunFile, StudyError
from .trials import Indices, Trials, Warned, select, split_rows

__all__ = [
    "CLASSIFIERS",
    "STABILITY",
    "RunFile",
    "Study",
    "StudyError",
    "StudyResult",
    "Trials",
    "corrected_t_test",
    "deviation",
    "holm",
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

    In every trial the rows are split at random, stratified. Each selector is fitted to the training rows alone;
    each classifier is trained on the same rows with the features selected, once for each size, and its accuracy
    measured on the rows left out. A trial is a pure function of (random_state, trial), so that the table is the
    same for any number of workers, and whether or not the study was interrupted.

    Parameters
    ----------
    selectors : dict of str to selector or None
        None in place of a selector means all features. Parameters that say how many features to keep are set by the
        study, see Notes.
    classifiers : dict of str to estimator
        scikit-learn classifiers or pipelines.
    trials : int, default=20
        Number of splits. The standard deviations and the verdict are over trials; more can be added to a ``run``
        later.
    test_size : float or int, default=0.5
        Share, or number, of rows to test on. The papers take half.
    sizes : iterable of int, default=None
        Numbers of features to select; None: up to 12 from 1 to 100 (or all features), evenly spaced by ratio.
    random_state : int, RandomState instance or None, default=None
        An int for a study that can be repeated. It decides splits and every ``random_state`` among the parameters of
        selectors and classifiers, those given there notwithstanding.
    n_jobs : int, default=None
        Number of workers, each a process with whole trials: most classifiers hold Python's lock, which threads would
        wait for. Selectors may have workers of their own. None is 1, -1 all cores.
    run : path-like, default=None
        File that keeps finished trials, a line of JSON each, in their order. If it holds this study already, only
        trials that are not in it are conducted.
    verbose : int or callable, default=0
        1 shows progress, in a terminal or a notebook; a function is called now and then with a line of text.

    Notes
    -----
    *How many features.* Selectors of this library are fitted once for all sizes. One that searches for
    a size (SFFS) gives the subset on its path, or the largest one below where it did not get that far. One that
    chooses the size itself (CFS, FCBF) gives its best by ``ranking_``, never more than the size. Selectors from
    elsewhere get the size as ``n_features_to_select`` or ``k``, and fitted again for each size if they do not
    follow it. What was selected in fact is in the table (``n_selected``).

    *Time.* A selector that stops by the clock (``MaxTime``, DAF's default) can give another result on a busy
    machine. Give ``MaxProbes`` for a table that is the same wherever it is made.

    Ctrl-C ends the study with the trials done so far and a ``ConvergenceWarning``.

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
    run: str | PathLike[str] | None = None
    verbose: Any = 0

    def compare(self, X: Any, y: Any) -> StudyResult:
        """Conduct the trials, those in the ``run`` file excepted, and gather the results.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The table; a frame gives the names of the features.
        y : array-like of shape (n_samples,)
            Class labels.

        Returns
        -------
        StudyResult
        """
        self._check()
        X, y, names = _checked(X, y)
        sizes = _checked_sizes(self.sizes, X.shape[1])
        split_rows(y, self.test_size, seed=0)  # scikit-learn's bounds and message
        workers = executor(self.n_jobs, prefer="processes")
        with RunFile(self.run) as file:
            seed = seed_of(self.random_state, None if file.settings is None else file.settings["seed"])
            log_level = logging.getLogger("probewise").level
            trials = Trials(dict(self.selectors), dict(self.classifiers), sizes, self.test_size, seed, log_level)
            file.begin(trials.settings(X, y), notes={"version": __version__, "feature_names": names})
            self._conduct(partial(trials, X, y), workers, file)
        return StudyResult.of_run(file, names, self.trials)

    def _conduct(self, trial: Callable[[int], tuple[Record, Warned]], map: Map, file: RunFile) -> None:
        missing = [number for number in range(self.trials) if number not in file.trials]
        done, started = self.trials - len(missing), time.perf_counter()
        results: Any = map(trial, missing)
        try:
            with closing(results), live_line(self.verbose) as progress:
                for now, (record, warned) in enumerate(results, start=1):
                    file.append(record)
                    for text, category in warned:
                        warn(text, category)
                    if progress:
                        seconds = time.perf_counter() - started
                        left = seconds / now * (len(missing) - now)
                        position = f"{done + now} of {self.trials} trials"
                        progress(f"study: {position}, {seconds:.0f} s, about {left:.0f} s left")
        except (KeyboardInterrupt, ClusterError) as error:
            finished = sum(number < self.trials for number in file.trials)
            if not finished:
                raise
            if isinstance(error, ClusterError) and self.run is not None:
                raise ClusterError(
                    f"{error}: {self.run} holds {finished} of {self.trials} trials; start the cluster again, and the "
                    "same study goes on from there"
                ) from error
            after = f"after {finished} of {self.trials} trials" + (f" ({error})" if str(error) else "")
            message = f"the study was interrupted {after}: these are the results so far"
            warn(message, ConvergenceWarning)

    def _check(self) -> None:
        """Refuse what cannot be meant before any work is done."""
        for name in ("selectors", "classifiers"):
            members = getattr(self, name)
            if not isinstance(members, Mapping) or not members or not all(isinstance(key, str) for key in members):
                raise ValueError(f"{name}={members!r} must be a dict of at least one name: {name[:-1]}")
        for name, selector in self.selectors.items():
            if selector is not None and not (hasattr(selector, "fit") and hasattr(selector, "get_support")):
                raise ValueError(f"selectors[{name!r}]={selector!r} is no selector: it needs fit and get_support")
            if getattr(selector, "ledger", None) is not None:
                raise ValueError(
                    f"selectors[{name!r}] has a ledger, which holds one run, and each trial is another: "
                    "leave it out, and keep the study by run="
                )
        for name, classifier in self.classifiers.items():
            if not (hasattr(classifier, "fit") and hasattr(classifier, "predict")):
                raise ValueError(f"classifiers[{name!r}]={classifier!r} is no classifier: it needs fit and predict")
        require_whole("trials", self.trials, 1)
        random_of(self.random_state)


def _checked(X: Any, y: Any) -> tuple[Any, NDArray[Any], list[str] | None]:
    """X by rows, y, and the names of the columns if they have any."""
    require_plain(X, y)
    names = [str(name) for name in X.columns] if hasattr(X, "columns") else None
    with explained(X):
        X = check_array(X, accept_sparse="csr", dtype="numeric", ensure_all_finite=False)
        X = X.astype(np.float64) if X.dtype.kind == "O" else X
    X = canonical(X) if hasattr(X, "indptr") else X
    if y is None:
        raise ValueError("y is None: a study compares accuracy, and needs one class label per row")
    y = column_or_1d(plain_labels(y), warn=True)
    check_consistent_length(X, y)
    kind = kind_of_target(y)
    if kind not in ("binary", "multiclass"):
        raise ValueError(f"y is {kind}: a study compares accuracy, and needs one class label per row")
    labels, counts = np.unique(y, return_counts=True)
    if len(labels) < 2:
        raise ValueError(f"y has only one class, {labels[0]!s}: a study needs at least two")
    if counts.min() < 2:
        raise ValueError(
            f"y has a single row of class {labels[counts.argmin()]!s}: each class needs a row to train and one to "
            "test on; leave it out or join it to another class"
        )
    return X, y, names


def _checked_sizes(sizes: Iterable[int] | None, n_features: int) -> Indices:
    if sizes is None:
        return spaced_sizes(n_features, steps=STEPS)
    wanted = list(sizes)
    if not wanted or not all(is_whole(size, 1, n_features) for size in wanted):
        raise ParameterError(
            Parameter("sizes", wanted), f" with {n_features} features: give whole numbers from 1 to {n_features}"
        )
    return np.unique(np.array(wanted, dtype=np.int64))
