"""One trial of a study: a split of the rows, features selected on one part, classifiers tested on the other."""

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

from .._selector import RankingSelector
from ..criteria import Function, Scorer
from ..criteria.identity import stable_text
from ..engine.fingerprints import fingerprint
from ..engine.loop import working_time
from ..engine.settings import UNKNOWN
from .runfile import Record

SIZE_PARAMETERS = ("n_features_to_select", "k")
WITHOUT_CONSEQUENCE = {"n_jobs", "verbose", "random_state", *SIZE_PARAMETERS}

Indices = NDArray[np.int64]
Warned = list[tuple[str, type[Warning]]]  # what a worker has nobody to show to


@dataclass(frozen=True)
class Trials:
    """The work of a worker: called with the data and the number of a trial, it returns the record of the trial."""

    selectors: dict[str, Any]
    classifiers: dict[str, Any]
    sizes: Indices
    test_size: float
    seed: int
    log_level: int = logging.NOTSET

    def __call__(self, X: Any, y: NDArray[Any], trial: int) -> tuple[Record, Warned]:
        logging.getLogger("probewise").setLevel(self.log_level)  # a new process knows nothing of its parent's
        train, test = self.split(y, trial)
        record: Record = {"trial": trial, "selectors": {}}
        warned: Warned = []
        for name, selector in self.selectors.items():
            with _warnings_kept(name, trial, warned):
                chosen, note = self._selected(selector, X[train], y[train], trial)
                accuracy = self._accuracy(chosen, X, y, train, test, trial)
            subsets = None if selector is None else [subset.tolist() for subset in chosen]
            record["selectors"][name] = {**note, "subsets": subsets, "accuracy": accuracy}
        return record, warned

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

    def seeded(self, selector: Any, trial: int) -> Any:
        """The selector as the trial has it, not yet fitted."""
        return _seeded(selector, self._seeds(trial)["selector"])

    def _selected(self, selector: Any, X: Any, y: NDArray[Any], trial: int) -> tuple[list[Indices], dict[str, Any]]:
        """The features at each size, and what it took."""
        if selector is None:
            return [np.arange(X.shape[1])] * len(self.sizes), {"seconds": 0.0, "probes": 0}
        began = working_time()
        fitted = self.seeded(selector, trial)
        chosen = select(fitted, X, y, self.sizes.tolist())
        return chosen, {"seconds": working_time() - began, "probes": int(getattr(fitted, "n_probes_", 0))}

    def _accuracy(
        self, chosen: list[Indices], X: Any, y: NDArray[Any], train: Indices, test: Indices, trial: int
    ) -> dict[str, list[float]]:
        """The accuracy of each classifier at each size; equal subsets are tested once."""
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
    _set_size(selector, min(sizes) if backward else max(sizes))
    selector.fit(X, y)
    if str(getattr(selector, "stop_reason_", "")).startswith("interrupted"):
        raise KeyboardInterrupt  # a selector keeps what it has; a trial is whole or not at all
    return [_at_size(selector, X, y, size) for size in sizes]


def _at_size(fitted: Any, X: Any, y: Any, size: int) -> Indices:
    if hasattr(fitted, "path_"):
        size = max((known for known in fitted.path_ if known <= size), default=min(fitted.path_))
    follows = _set_size(fitted, size)
    chosen = _support(fitted)
    if follows and len(chosen) != size and not isinstance(fitted, RankingSelector):
        again = clone(fitted)
        _set_size(again, size)
        return _support(again.fit(X, y))
    if len(chosen) > size and hasattr(fitted, "ranking_"):
        best = np.argsort(np.asarray(fitted.ranking_)[chosen], kind="stable")[:size]
        return np.sort(chosen[best])
    return chosen


def _set_size(selector: Any, size: int) -> bool:
    """Set how many features to select; False where the selector has no parameter for it."""
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
def _warnings_kept(name: str, trial: int, warned: Warned) -> Iterator[None]:
    """Warnings kept, not shown; errors with the selector and the trial they came from."""
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
    except ValueError as error:
        raise ValueError(f"{name}, trial {trial}: {error}") from error
    seen = dict.fromkeys((str(warning.message), warning.category) for warning in caught)
    warned.extend((f"{name}: {text}", category) for text, category in seen)


def _described(thing: Any, name: str) -> dict[str, str]:
    """The class and parameters of an estimator, by name, the same in every process."""
    if isinstance(thing, Function | Scorer) and thing.name is not None:
        return {name: thing.describe()}
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
    return {name: stable_text(thing).replace(UNKNOWN, "")}  # the study gives names to its selectors and classifiers
