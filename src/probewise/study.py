"""The papers' protocol: repeated random splits, accuracy by size, stability, and a verdict on each pair of methods."""

from __future__ import annotations

import json
import logging
import os
import secrets
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import KW_ONLY, dataclass
from functools import cached_property, partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr
from sklearn.base import BaseEstimator, clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import check_array, check_consistent_length, check_random_state
from sklearn.utils.multiclass import type_of_target

from . import __version__
from .criteria import Function
from .engine import Clock
from .executors import Map, executor
from .ledger import fingerprint
from .progress import live_line
from .selectors.base import RankingSelector
from .stability import anhi, ati, cw_rel, nogueira

try:
    import fcntl
except ImportError:  # Windows has no such lock
    fcntl = None  # type: ignore[assignment]

LARGEST = 100
STEPS = 13
FORMAT = 1
SIGNATURE = b'{"probewise study": '
SIZE_PARAMETERS = ("n_features_to_select", "k")
WITHOUT_CONSEQUENCE = {"n_jobs", "verbose", "random_state", *SIZE_PARAMETERS}
STABILITY: dict[str, Callable[..., float]] = {"cw_rel": cw_rel, "ati": ati, "anhi": anhi, "nogueira": nogueira}
CLASSIFIERS: dict[str, Callable[[], Any]] = {
    "knn": lambda: make_pipeline(StandardScaler(), KNeighborsClassifier(3)),
    "linear": lambda: make_pipeline(StandardScaler(), RidgeClassifier()),
    "svm": lambda: make_pipeline(StandardScaler(), SVC()),
    "naive_bayes": GaussianNB,
    "tree": DecisionTreeClassifier,
    "forest": RandomForestClassifier,
}

Columns = dict[str, NDArray[Any]]
Indices = NDArray[np.int64]
Record = dict[str, Any]


class StudyError(ValueError):
    """A run file that cannot be used: another study's, in use, damaged, or not a study's."""


@dataclass(frozen=True, eq=False)
class Study:
    """Compares selectors by what classifiers make of their features, over repeated random splits.

    In every trial the rows are split at random, stratified. Each selector is fitted to the training rows alone;
    each classifier is trained on the same rows with the features selected, once for each size, and its accuracy
    measured on the rows left out. A trial is a pure function of (random_state, trial), so that the table is the
    same for any number of workers, and whether or not the study was interrupted.

    Parameters
    ----------
    selectors : dict of name to selector; None in place of a selector means all features. Parameters that say
        how many features to keep are set by the study, see Notes.
    classifiers : dict of name to scikit-learn classifier or pipeline.
    trials : how many splits. The standard deviations and the verdict are over trials; more can be added to a
        ``run`` later.
    test_size : share (or number) of rows to test on. The papers take half.
    sizes : numbers of features to select; None: up to 12 from 1 to 100 (or all features), evenly spaced by ratio.
    random_state : an int for a study that can be repeated. It decides splits and every ``random_state`` among the
        parameters of selectors and classifiers, those given there notwithstanding.
    n_jobs : workers, each a process with whole trials: most classifiers hold Python's lock, which threads would
        wait for. Selectors may have workers of their own. None is 1, -1 all cores.
    run : a file that keeps finished trials (a line of JSON each). If it holds this study already, only trials
        that are not in it are conducted. Finished trials are written in their order.
    verbose : 1 shows progress.

    Notes
    -----
    *How many features.* Selectors of this library are fitted once and asked for each size. One that searches for
    a size (SFFS) gives the subset on its path, or the largest one below where it did not get that far. One that
    chooses the size itself (CFS) gives its best by ``ranking_``, never more than the size. Selectors from
    elsewhere are asked through ``n_features_to_select`` or ``k``, and fitted again for each size if they do not
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
    verbose: int = 0

    def compare(self, X: Any, y: Any) -> StudyResult:
        """Conduct the trials, those in the ``run`` file excepted, and gather the results."""
        self._check()
        X, y, names = _checked(X, y)
        sizes = _checked_sizes(self.sizes, X.shape[1])
        n_train, n_test = map(len, split_rows(y, self.test_size, seed=0))
        workers = executor(self.n_jobs, prefer="processes")
        with RunFile(self.run) as file:
            trials = Trials(
                dict(self.selectors),
                dict(self.classifiers),
                sizes,
                self.test_size,
                self._seed(file.settings),
                logging.getLogger("probewise").level,
            )
            file.begin(trials.settings(X, y), notes={"version": __version__, "feature_names": names})
            self._conduct(partial(trials, X, y), workers, file)
        return StudyResult(
            selectors=tuple(self.selectors),
            classifiers=tuple(self.classifiers),
            sizes=sizes,
            n_features=X.shape[1],
            n_train=n_train,
            n_test=n_test,
            records=tuple(file.trials[trial] for trial in sorted(file.trials) if trial < self.trials),
            feature_names=names,
        )

    def _conduct(self, trial: Callable[[int], tuple[Record, list[Message]]], map: Map, file: RunFile) -> None:
        missing = [number for number in range(self.trials) if number not in file.trials]
        done, started = self.trials - len(missing), time.perf_counter()
        results: Any = map(trial, missing)
        try:
            with closing(results), live_line(self.verbose) as progress:
                for now, (record, messages) in enumerate(results, start=1):
                    file.append(record)
                    _tell(messages)
                    if progress:
                        progress(_standing(done + now, self.trials, time.perf_counter() - started, now))
        except KeyboardInterrupt:
            finished = sum(number < self.trials for number in file.trials)
            if not finished:
                raise
            warnings.warn(
                f"the study was interrupted after {finished} of {self.trials} trials: these are the results so far",
                ConvergenceWarning,
                stacklevel=3,
            )

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
        if not _is_whole(self.trials) or self.trials < 1:
            raise ValueError(f"trials={self.trials!r} must be a whole number of at least 1")
        check_random_state(self.random_state)  # scikit-learn's bounds and message

    def _seed(self, kept: Mapping[str, Any] | None) -> int:
        """The seed asked for; without one, that of the run file if it has a study, else a new one."""
        if self.random_state is None:
            return secrets.randbits(32) if kept is None else int(kept["seed"])
        if _is_whole(self.random_state):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _checked(X: Any, y: Any) -> tuple[Any, NDArray[Any], list[str] | None]:
    """X by rows, y, and the names of the columns if they have any."""
    names = [str(name) for name in X.columns] if hasattr(X, "columns") else None
    X = check_array(X, accept_sparse="csr", dtype="numeric", ensure_all_finite=False)
    y = np.asarray(y)
    check_consistent_length(X, y)
    kind = type_of_target(y, input_name="y")
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
        return np.unique(np.geomspace(1, min(LARGEST, n_features), STEPS).round().astype(np.int64))
    wanted = list(sizes)
    if not wanted or not all(_is_whole(size) and 1 <= size <= n_features for size in wanted):
        raise ValueError(f"sizes={wanted!r} with {n_features} features: give whole numbers from 1 to {n_features}")
    return np.unique(np.array(wanted, dtype=np.int64))


def _standing(done: int, trials: int, seconds: float, now: int) -> str:
    left = seconds / now * (trials - done)
    return f"study: {done} of {trials} trials, {seconds:.0f} s, about {left:.0f} s left"


# ---- one trial


@dataclass(frozen=True)
class Message:
    """A warning raised in a trial, on its way from a worker."""

    text: str
    category: type[Warning]


@dataclass(frozen=True)
class Trials:
    """What a worker does: called with the data and the number of a trial, it gives the trial's record."""

    selectors: dict[str, Any]
    classifiers: dict[str, Any]
    sizes: Indices
    test_size: float
    seed: int
    log_level: int = logging.NOTSET

    def __call__(self, X: Any, y: NDArray[Any], trial: int) -> tuple[Record, list[Message]]:
        logging.getLogger("probewise").setLevel(self.log_level)  # a new process knows nothing of its parent's
        train, test = self.split(y, trial)
        record: Record = {"trial": trial, "selectors": {}}
        messages: list[Message] = []
        for name, selector in self.selectors.items():
            with _noted(name, trial, messages):
                chosen, note = self._selected(selector, X[train], y[train], trial)
                accuracy = self._accuracy(chosen, X, y, train, test, trial)
            subsets = None if selector is None else [subset.tolist() for subset in chosen]
            record["selectors"][name] = {**note, "subsets": subsets, "accuracy": accuracy}
        return record, messages

    def split(self, y: NDArray[Any], trial: int) -> tuple[Indices, Indices]:
        return split_rows(y, self.test_size, self._seeds(trial)["split"])

    def settings(self, X: Any, y: NDArray[Any]) -> dict[str, Any]:
        """What makes the study what it is, in plain JSON values."""
        settings = {
            "seed": self.seed,
            "shape": list(X.shape),
            "data": fingerprint(X),
            "target": fingerprint(y),
            "test_size": self.test_size,
            "sizes": self.sizes.tolist(),
            "selectors": list(self.selectors),
            "classifiers": list(self.classifiers),
        }
        for role, members in (("selectors", self.selectors), ("classifiers", self.classifiers)):
            for name, member in members.items():
                settings |= _described(member, f"{role}[{name!r}]")
        return settings

    def _seeds(self, trial: int) -> dict[str, int]:
        words = np.random.SeedSequence([self.seed, trial]).generate_state(3).tolist()
        return dict(zip(("split", "selector", "classifier"), words, strict=True))

    def _selected(self, selector: Any, X: Any, y: NDArray[Any], trial: int) -> tuple[list[Indices], dict[str, Any]]:
        """The features at each size, and what it took."""
        if selector is None:
            return [np.arange(X.shape[1])] * len(self.sizes), {"seconds": 0.0, "probes": 0}
        clock = Clock(0.0)
        fitted = _seeded(selector, self._seeds(trial)["selector"])
        chosen = select(fitted, X, y, self.sizes.tolist())
        return chosen, {"seconds": clock.seconds, "probes": int(getattr(fitted, "n_probes_", 0))}

    def _accuracy(
        self, chosen: list[Indices], X: Any, y: NDArray[Any], train: Indices, test: Indices, trial: int
    ) -> dict[str, list[float]]:
        """The accuracy of each classifier at each size; equal subsets are judged once."""
        known: dict[bytes, dict[str, float]] = {}
        for subset in chosen:
            if subset.tobytes() not in known:
                here = X[:, subset]
                known[subset.tobytes()] = {
                    name: self._score(classifier if len(subset) else DummyClassifier(), here, y, train, test, trial)
                    for name, classifier in self.classifiers.items()
                }
        return {name: [known[subset.tobytes()][name] for subset in chosen] for name in self.classifiers}

    def _score(self, classifier: Any, X: Any, y: NDArray[Any], train: Indices, test: Indices, trial: int) -> float:
        trained = _seeded(classifier, self._seeds(trial)["classifier"]).fit(X[train], y[train])
        return float(np.mean(trained.predict(X[test]) == y[test]))


def split_rows(y: NDArray[Any], test_size: float, seed: int) -> tuple[Indices, Indices]:
    """The rows to train and to test on, stratified."""
    train, test = train_test_split(np.arange(len(y)), test_size=test_size, stratify=y, random_state=seed)
    return train, test


def select(selector: Any, X: Any, y: Any, sizes: Sequence[int]) -> list[Indices]:
    """The features an unfitted selector chooses at each size, in column order. It is fitted here."""
    backward = getattr(selector, "direction", None) == "backward"
    _ask(selector, min(sizes) if backward else max(sizes))
    selector.fit(X, y)
    if str(getattr(selector, "stop_reason_", "")).startswith("interrupted"):
        raise KeyboardInterrupt  # a selector keeps what it has; a trial is whole or not at all
    return [_at_size(selector, X, y, size) for size in sizes]


def _at_size(fitted: Any, X: Any, y: Any, size: int) -> Indices:
    if hasattr(fitted, "path_"):
        size = max((known for known in fitted.path_ if known <= size), default=min(fitted.path_))
    follows = _ask(fitted, size)
    chosen = _support(fitted)
    if follows and len(chosen) != size and not isinstance(fitted, RankingSelector):
        again = clone(fitted)
        _ask(again, size)
        return _support(again.fit(X, y))
    if len(chosen) > size and hasattr(fitted, "ranking_"):
        best = np.argsort(np.asarray(fitted.ranking_)[chosen], kind="stable")[:size]
        return np.sort(chosen[best])
    return chosen


def _ask(selector: Any, size: int) -> bool:
    """Set how many features to select; False where the selector has no say for it."""
    for name in SIZE_PARAMETERS:
        if name in selector.get_params(deep=False):
            selector.set_params(**{name: size})
            return True
    return False


def _support(selector: Any) -> Indices:
    return np.asarray(selector.get_support(indices=True), dtype=np.int64)


def _seeded(estimator: Any, seed: int) -> Any:
    """A copy, with every random state among its parameters set."""
    estimator = clone(estimator)
    states = [name for name in estimator.get_params() if name == "random_state" or name.endswith("__random_state")]
    return estimator.set_params(**dict.fromkeys(states, seed))


@contextmanager
def _noted(name: str, trial: int, messages: list[Message]) -> Iterator[None]:
    """Warnings kept, not shown, since a worker has nobody to show them to; faults with the place they came from."""
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
    except ValueError as error:
        raise ValueError(f"{name}, trial {trial}: {error}") from error
    seen = dict.fromkeys((str(warning.message), warning.category) for warning in caught)
    messages.extend(Message(f"{name}: {text}", category) for text, category in seen)


def _tell(messages: list[Message]) -> None:
    for message in messages:
        warnings.warn(message.text, message.category, stacklevel=4)


def _described(thing: Any, name: str) -> dict[str, str]:
    """The class and parameters of an estimator, by name, the same in every process."""
    if isinstance(thing, BaseEstimator):
        described = {name: type(thing).__name__}
        for parameter, value in thing.get_params(deep=False).items():
            if parameter not in WITHOUT_CONSEQUENCE:
                described |= _described(value, f"{name}.{parameter}")
        return described
    if isinstance(thing, list | tuple):
        parts = [_described(part, f"{name}[{place}]") for place, part in enumerate(thing)]
        return {key: text for part in parts for key, text in part.items()} or {name: repr(thing)}
    if isinstance(thing, np.ndarray):
        return {name: fingerprint(thing)}
    if hasattr(thing, "__code__"):
        return {name: Function(thing).describe()}
    return {name: repr(thing).split(" at 0x")[0]}


# ---- the run on disk


class RunFile:
    """Finished trials in a file of JSON lines: a header with the study's settings, then a line per trial.

    A line is written at once and forced to the disk. What a kill -9 leaves of a last line is cut off at the
    next opening, and that trial done again. While open the file is locked, where the system has such locks.
    Without a path trials are kept in memory.
    """

    def __init__(self, path: str | PathLike[str] | None) -> None:
        self.path = None if path is None else Path(path)
        self.settings: dict[str, Any] | None = None
        self.trials: dict[int, Record] = {}
        self._file: int | None = None

    def __enter__(self) -> RunFile:
        if self.path is not None:
            if not self.path.parent.is_dir():
                raise StudyError(f"run={str(self.path)!r}: the folder {self.path.parent} does not exist")
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o666)
            try:
                self._lock(self._file)
                self._read(self._file)
            except BaseException:
                self.__exit__()
                raise
        return self

    def __exit__(self, *exception: object) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def begin(self, settings: Mapping[str, Any], *, notes: Mapping[str, Any]) -> None:
        """Go on with the study in the file if it has these settings, or begin it."""
        asked = json.loads(json.dumps(dict(settings), default=float))
        if self.settings is None:
            self.settings = asked
            self._write({"probewise study": FORMAT, "settings": asked, "notes": dict(notes)})
        names = dict.fromkeys([*asked, *self.settings])
        different = [name for name in names if asked.get(name) != self.settings.get(name)]
        if different:
            differences = "; ".join(
                f"its {name} is {_shown(self.settings.get(name))}, not {_shown(asked.get(name))}" for name in different
            )
            raise StudyError(
                f"{self.path} holds another study: {differences}. "
                "Give the same data and settings to go on with it, or choose another file."
            )

    def append(self, record: Record) -> None:
        """Add a finished trial."""
        self._write(record)
        self.trials[record["trial"]] = record

    def _lock(self, file: int) -> None:
        if fcntl is None:
            return
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StudyError(f"{self.path} is in use by another process: wait for it or choose another file") from None

    def _read(self, file: int) -> None:
        assert self.path is not None
        content = self.path.read_bytes()
        if not (content.startswith(SIGNATURE) or SIGNATURE.startswith(content)):
            raise StudyError(f"{self.path} is not the run of a Probewise study: choose another file")
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            os.truncate(file, whole)
        for number, line in enumerate(content[:whole].splitlines(), start=1):
            try:
                self._take(json.loads(line), is_header=number == 1)
            except (json.JSONDecodeError, KeyError, TypeError, UnicodeDecodeError) as error:
                raise StudyError(f"{self.path} is damaged in line {number}: remove that line or the file") from error

    def _take(self, line: dict[str, Any], *, is_header: bool) -> None:
        if not is_header:
            self.trials.setdefault(int(line["trial"]), line)
        elif line["probewise study"] != FORMAT:
            raise StudyError(
                f"{self.path} has study format {line['probewise study']}; this version reads format {FORMAT}"
            )
        else:
            self.settings = line["settings"]

    def _write(self, line: Mapping[str, Any]) -> None:
        if self._file is None:
            return
        data = memoryview(json.dumps(line).encode() + b"\n")
        while data:
            data = data[os.write(self._file, data) :]
        os.fsync(self._file)


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


# ---- what came out


@dataclass(frozen=True, eq=False)
class StudyResult:
    """What a study found: a tidy table, its summary by size, the features selected, and a verdict on each pair.

    Tables are dicts of equally long columns, which pandas and polars take as they are.

    Attributes
    ----------
    selectors, classifiers : their names.
    sizes : array of the sizes, ascending.
    trials : array of the numbers of the finished trials.
    n_features, n_train, n_test : features, and rows in each training and test part.
    accuracy : array (trials, selectors, classifiers, sizes), on the test rows.
    seconds, probes : arrays (trials, selectors), the time a selection took, kernels being compiled excepted, and
        the probes it made (0: a method without probes).
    feature_names : names of the columns of X, or None.
    """

    selectors: tuple[str, ...]
    classifiers: tuple[str, ...]
    sizes: Indices
    n_features: int
    n_train: int
    n_test: int
    records: tuple[Record, ...]
    feature_names: list[str] | None = None

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
        return np.array(
            [
                [[outcome["accuracy"][name] for name in self.classifiers] for outcome in self._outcomes(record)]
                for record in self.records
            ]
        )

    @cached_property
    def seconds(self) -> NDArray[np.float64]:
        return np.array([[outcome["seconds"] for outcome in self._outcomes(record)] for record in self.records])

    @cached_property
    def probes(self) -> Indices:
        return np.array([[outcome["probes"] for outcome in self._outcomes(record)] for record in self.records])

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
        stability = self.stability()
        return {
            "selector": np.array(self.selectors)[selector],
            "classifier": np.array(self.classifiers)[classifier],
            "size": self.sizes[size],
            "n_selected": self._n_selected.mean(axis=0)[selector, size],
            "accuracy": self.accuracy.mean(axis=0).ravel(),
            "std": deviation(self.accuracy).ravel(),
            "seconds": self.seconds.mean(axis=0)[selector],
            **{name: values[selector, size] for name, values in stability.items()},
        }

    def stability(self) -> dict[str, NDArray[np.float64]]:
        """Each measure of stability as an array (selectors, sizes)."""
        return {name: self._stability_by(measure) for name, measure in STABILITY.items()}

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
        size : compare at this size; None: by the mean over all sizes.

        Returns
        -------
        columns ``classifier``, ``first``, ``second``, ``difference`` (mean accuracy of the first less that of the
        second), ``t``, ``p_value`` (1 where all trials are equal, NaN for a single trial) and ``p_holm``.

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
        tests = [
            corrected_t_test(each, self.n_test / self.n_train) for each in differences.reshape(len(accuracy), -1).T
        ]
        t, p_value = np.array(tests, dtype=np.float64).reshape(*differences.shape[1:], 2).transpose(2, 0, 1)
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

    def _outcomes(self, record: Record) -> list[Record]:
        return [record["selectors"][name] for name in self.selectors]

    @cached_property
    def _n_selected(self) -> Indices:
        """Array (trials, selectors, sizes)."""
        counts = [[list(map(len, self.subsets(name, size))) for size in self.sizes] for name in self.selectors]
        return np.array(counts, dtype=np.int64).transpose(2, 0, 1)

    def _stability_by(self, measure: Callable[..., float]) -> NDArray[np.float64]:
        if len(self.trials) < 2:
            return np.full((len(self.selectors), len(self.sizes)), np.nan)
        return np.array(
            [[measure(self.subsets(name, size), self.n_features) for size in self.sizes] for name in self.selectors]
        )

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
    spread = float(np.sqrt((1 / n_trials + test_to_train) * differences.var(ddof=1)))
    if spread <= 1e-12:  # differences that are equal but for rounding
        return (0.0, 1.0) if abs(mean) <= 1e-12 else (float(np.copysign(np.inf, mean)), 0.0)
    t = mean / spread
    return t, float(2 * stdtr(n_trials - 1, -abs(t)))


def holm(p_values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Holm's adjustment of p-values for their number, down the first axis."""
    order = np.argsort(p_values, axis=0, kind="stable")
    factors = np.arange(len(p_values), 0, -1)[:, None]
    stepped = np.maximum.accumulate(np.take_along_axis(p_values, order, axis=0) * factors, axis=0)
    adjusted = np.empty_like(p_values)
    np.put_along_axis(adjusted, order, np.minimum(stepped, 1), axis=0)
    return adjusted
