"""One trial of a study: split the samples, select features on one part, test classifiers on the other part."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import train_test_split

from .._selector import Selector
from ..criteria import Function, Scorer
from ..criteria.base import stable_text
from ..engine.fingerprints import fingerprint
from ..engine.loop import working_time
from ..engine.settings import UNNAMED
from ..executors import require_complete
from .trial_ledger import Record

SIZE_PARAMETERS = ("n_features_to_select", "k")
NO_EFFECT = {"n_jobs", "verbose", "random_state", *SIZE_PARAMETERS}  # parameters that do not define a study

Indices = NDArray[np.int64]
WorkerWarnings = list[tuple[str, type[Warning]]]  # shown by the main process


@dataclass(frozen=True)
class Trials:
    """The trials of a study; a worker calls it with the data and the number of a trial."""

    selectors: dict[str, Any]
    classifiers: dict[str, Any]
    sizes: Indices
    test_size: float
    seed: int
    log_level: int = logging.NOTSET

    def __call__(self, X: Any, y: NDArray[Any], trial: int) -> tuple[Record, WorkerWarnings]:
        logging.getLogger("probewise").setLevel(self.log_level)  # a new process does not inherit it
        train, test = self.split(y, trial)
        record: Record = {"trial": trial, "selectors": {}}
        caught: WorkerWarnings = []
        for name, selector in self.selectors.items():
            with _collect_warnings(name, trial, caught):
                subsets, effort = self._select(selector, X[train], y[train], trial)
                accuracy = self._accuracy(subsets, X, y, train, test, trial)
            columns = None if selector is None else [subset.tolist() for subset in subsets]
            record["selectors"][name] = {**effort, "subsets": columns, "accuracy": accuracy}
        return record, caught

    def split(self, y: NDArray[Any], trial: int) -> tuple[Indices, Indices]:
        return split_rows(y, self.test_size, seeds(self.seed, trial)["split"])

    def settings(self, X: Any, y: NDArray[Any]) -> dict[str, Any]:
        """The settings that define the study, as JSON values."""
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

    def _select(self, selector: Any, X: Any, y: NDArray[Any], trial: int) -> tuple[list[Indices], dict[str, Any]]:
        """The features selected at each size, and the seconds and probes it took."""
        if selector is None:
            return [np.arange(X.shape[1])] * len(self.sizes), {"seconds": 0.0, "probes": 0}
        start = working_time()
        selector = _seeded(selector, seeds(self.seed, trial)["selector"])
        subsets = select(selector, X, y, self.sizes.tolist())
        return subsets, {"seconds": working_time() - start, "probes": int(getattr(selector, "n_probes_", 0))}

    def _accuracy(
        self, subsets: list[Indices], X: Any, y: NDArray[Any], train: Indices, test: Indices, trial: int
    ) -> dict[str, list[float]]:
        """The accuracy of each classifier at each size; equal subsets are tested once."""
        scores: dict[bytes, dict[str, float]] = {}
        for subset in subsets:
            if subset.tobytes() not in scores:
                columns = X[:, subset]
                scores[subset.tobytes()] = {
                    name: self._score(classifier if len(subset) else DummyClassifier(), columns, y, train, test, trial)
                    for name, classifier in self.classifiers.items()
                }
        return {name: [scores[subset.tobytes()][name] for subset in subsets] for name in self.classifiers}

    def _score(self, classifier: Any, X: Any, y: NDArray[Any], train: Indices, test: Indices, trial: int) -> float:
        fitted = _seeded(classifier, seeds(self.seed, trial)["classifier"]).fit(X[train], y[train])
        return float(np.mean(fitted.predict(X[test]) == y[test]))


def seeds(seed: int, trial: int) -> dict[str, int]:
    """Seeds of the split, the selector and the classifier in a trial."""
    words = np.random.SeedSequence([seed, trial]).generate_state(3).tolist()
    return dict(zip(("split", "selector", "classifier"), words, strict=True))


def split_rows(y: NDArray[Any], test_size: float, seed: int) -> tuple[Indices, Indices]:
    """The rows to train and to test on, stratified by class."""
    train, test = train_test_split(np.arange(len(y)), test_size=test_size, stratify=y, random_state=seed)
    return train, test


def select(selector: Any, X: Any, y: Any, sizes: Sequence[int]) -> list[Indices]:
    """Fit the selector and return the features it selects at each size, in column order."""
    backward = getattr(selector, "direction", None) == "backward"
    _set_size(selector, min(sizes) if backward else max(sizes))
    selector.fit(X, y)
    require_complete(selector)
    return [_at_size(selector, X, y, size) for size in sizes]


def _at_size(fitted: Any, X: Any, y: Any, size: int) -> Indices:
    if hasattr(fitted, "path_"):
        size = max((reached for reached in fitted.path_ if reached <= size), default=min(fitted.path_))
    has_size = _set_size(fitted, size)
    subset = _support(fitted)
    if has_size and len(subset) != size and not isinstance(fitted, Selector):
        copy = clone(fitted)
        _set_size(copy, size)
        return _support(copy.fit(X, y))
    if len(subset) > size and hasattr(fitted, "ranking_"):
        best = np.argsort(np.asarray(fitted.ranking_)[subset], kind="stable")[:size]
        return np.sort(subset[best])
    return subset


def _set_size(selector: Any, size: int) -> bool:
    """Set the number of features to select; False if the selector has no such parameter."""
    for name in SIZE_PARAMETERS:
        if name in selector.get_params(deep=False):
            selector.set_params(**{name: size})
            return True
    return False


def _support(selector: Any) -> Indices:
    return np.asarray(selector.get_support(indices=True), dtype=np.int64)


def _seeded(estimator: Any, seed: int) -> Any:
    """A copy in which every ``random_state`` among the parameters is the seed."""
    estimator = clone(estimator)
    states = [name for name in estimator.get_params() if name == "random_state" or name.endswith("__random_state")]
    return estimator.set_params(**dict.fromkeys(states, seed))


@contextmanager
def _collect_warnings(name: str, trial: int, caught: WorkerWarnings) -> Iterator[None]:
    """Collect warnings instead of showing them, and add the selector and the trial to errors."""
    try:
        with warnings.catch_warnings(record=True) as recorded:
            warnings.simplefilter("always")
            yield
    except ValueError as error:
        raise ValueError(f"{name}, trial {trial}: {error}") from error
    distinct = dict.fromkeys((str(warning.message), warning.category) for warning in recorded)
    caught.extend((f"{name}: {text}", category) for text, category in distinct)


def _described(value: Any, name: str) -> dict[str, str]:
    """The class and the parameters of an estimator, by name; the text is the same in every process."""
    if isinstance(value, Function | Scorer) and value.name is not None:
        return {name: value.describe()}
    if isinstance(value, BaseEstimator):
        texts = {name: type(value).__name__}
        for parameter, part in value.get_params(deep=False).items():
            if parameter not in NO_EFFECT:
                texts |= _described(part, f"{name}.{parameter}")
        return texts
    if isinstance(value, list | tuple):
        parts = [_described(part, f"{name}[{index}]") for index, part in enumerate(value)]
        return {key: text for part in parts for key, text in part.items()} or {name: repr(value)}
    if isinstance(value, np.ndarray):
        return {name: fingerprint(value)}
    # The study gives names to its selectors and classifiers, so a function in them needs none.
    return {name: stable_text(value).replace(UNNAMED, "")}
