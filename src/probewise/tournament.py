"""Tournament: rounds of probes planned by a budget, after each of which the weaker part of the features leaves."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from ._probing import ProbingSelector, Rounds, Rows
from .criteria import KNN, Average, Criterion, Linear, NaiveBayes, as_criterion
from .criteria.base import Target, folds_of_groups
from .engine.ledger import Ledger, LedgerError
from .engine.schedule import Schedule
from .engine.settings import Record
from .engine.units import NO_COLUMNS, Columns, Units
from .executors import threads
from .filters.efs import EFS
from .filters.fsdd import FSDD
from .filters.mrmr import JMI, MRMR
from .filters.relieff import ReliefF
from .kernels.device import find
from .stopping import MaxProbes, MaxTime, Rule
from .validation.errors import Parameter, ParameterError, warn
from .validation.parameters import is_whole
from .validation.stores import Stored
from .validation.tables import columns_not_finite

LARGEST_PROBE = 100
NEIGHBORS = 10
MOST_BLOCKS = 100  # of a small budget, so that rounds can end where they should
MOST_PROBES, FEWEST_PROBES, USUAL_ROWS = 12_000, 2_000, 150  # the budget falls with rows, so that time hardly grows
IN_NET = 30  # of each filter; with 60 a net among 500 features leaves no room for what only probes show
FEWEST_ROWS_OF_NET = 200  # with fewer, filters that see pairs protect luck: genes were ranked worse
RELIEF_CELLS = 4e9  # rows times rows looked at times features, up to which ReliefF takes seconds
MOST_PAIRED, BEST_ALONE = 1000, 300  # EFS compares all pairs of so many features; of more, those best alone
FOLDS = 3
MOST_ROWS = 2000  # of which more would cost time in proportion, or its square, and hardly change who stays


@dataclass(eq=False, repr=False)
class Tournament(ProbingSelector):
    """Finds the features that predict best together, by rounds of random subsets planned by a budget.

    All features are in the first round, which has up to a quarter of the budget. A round scores random subsets, probes,
    of those still in by how probable a model finds the right class of each row left out; one ridge regression over the
    probes of all rounds gives every feature a coefficient, what it adds to others; the better seven tenths go on. When
    20 are left, the rest of the budget is spent on them. A feature ranks by the round it reached, then by its
    coefficient. The best of some cheap filters cannot leave while many are in, which protects what only shows in
    company.

    Use `DAF` to learn which features matter and how sure that is; `Tournament` to predict with few features.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        How many features to keep: a number, a share in (0, 1], or half. May be changed after ``fit``.
    criterion : str, Criterion, estimator or callable, default="auto"
        What a probe is scored by: the mean of 10-nearest-neighbour and linear models, both leaving out one row; or as
        in `DAF`.
    n_probes : int or "auto", default="auto"
        The budget. "auto" is 12,000 for up to 150 rows, and falls with more to 2,000; a run that goes on keeps its own.
    net : bool or "auto", default="auto"
        Whether the 30 best of `EFS`, `ReliefF`, `JMI`, `MRMR` and `FSDD` are protected while more than 200 features go
        on (a fifth of fewer). "auto": from 200 rows on, and where these can use the table.
    time_limit : float or None, default=None
        Seconds after which it ends with the ranking so far.
    feature_groups, keep, drop, costs, categorical_features
        As in `DAF`.
    scale : {"auto", "standard", "rank"} or None, default="auto"
        As in `DAF`; "auto" is "standard" for tables of uneven columns in memory, of up to 1 GiB.
    cv : "auto", "loo", int, splitter or iterable of splits, default="auto"
        Folds for the criterion; "auto" leaves out one row where the criterion gives probabilities, else it is 3 folds;
        with ``groups`` always 3, each of whole groups.
        Of more than 2,000 rows a sample of 2,000 is used, even over y, unless ``cv`` is a list of splits or X is in a
        store.
    scoring : str or None, default=None
        None: "probability" for criteria that know it and fill no missing values, else the criterion's own.
    error_score, device, n_jobs, ledger, random_state, rows, verbose
        As in `DAF`.

    Attributes
    ----------
    ranking_ : array of shape (n_features,)
        1 is best.
    scores_ : array of shape (n_features,)
        What each feature adds to the score of a probe; compare those of one round only.
    std_errors_, row_std_errors_, probe_std_errors_, p_values_
        As in `DAF`; about rows they are of the first round, in which all features are: later ones are chosen ones.
    run_ : Run
        The finished run: plan with its rounds, ledger, tally.
    sampled_rows_ : array of int or None
        The rows that probes were scored on, where these were not all.
    n_probes_, stop_reason_, ledger_, history_, criterion_
        As in `DAF`; ``history_["left_in_round"]`` is the round after which each feature left, 0 for those that stayed.

    Examples
    --------
    >>> from probewise import Tournament
    >>> from probewise.datasets import make_madelon
    >>> data = make_madelon(n_samples=300, n_features=60, random_state=0)
    >>> tournament = Tournament(20, n_probes=1000, random_state=0).fit(data.X, data.y)
    >>> int(tournament.support_[data.informative].sum()) >= 15
    True
    """

    coefficient = "regression"
    screen = inclusion = max_probe_size = block_size = None
    check_every = 1

    _: KW_ONLY
    n_probes: int | str = "auto"
    net: bool | str = "auto"
    time_limit: float | None = None
    scale: str | None = "auto"
    cv: Any = "auto"

    def fit(self, X: Any, y: Any = None, *, groups: Any = None, sample_weight: Any = None) -> Tournament:
        """Play the rounds; ``groups`` and ``sample_weight`` are as in `DAF`."""
        self._check_parameters()
        self._probe(X, y, default_size=LARGEST_PROBE, groups=groups, sample_weight=sample_weight)
        if self.n_probes_ < self.budget_ and not self.run_.interrupted:
            message = f"time was over after {self.n_probes_:,} of {self.budget_:,} probes: more may change the ranking"
            warn(message, ConvergenceWarning)
        return self

    @property
    def budget_(self) -> int:
        """The probes planned."""
        rounds = self.run_.record.narrowing
        assert isinstance(rounds, Schedule)
        return rounds.n_probes

    def _check_parameters(self) -> None:
        if self.n_probes != "auto" and not is_whole(self.n_probes, 1):
            raise ParameterError(
                Parameter("n_probes", self.n_probes), " must be a whole number of at least 1, or 'auto'"
            )
        if not isinstance(self.net, bool) and self.net != "auto":
            raise ParameterError(Parameter("net", self.net), ": choose True, False or 'auto'")
        if self.time_limit is not None and not (isinstance(self.time_limit, Real) and self.time_limit > 0):
            raise ParameterError(Parameter("time_limit", self.time_limit), " must be above 0 seconds, or None")
        self._check_probing_parameters()

    def _stop_rule(self, n_rows: int) -> Rule:
        budget = MaxProbes(self._budget(n_rows))
        return budget if self.time_limit is None else budget | MaxTime(self.time_limit)

    def _budget(self, n_rows: int) -> int:
        """The probes asked for; else those that the run in the ledger was planned for, or the usual ones."""
        usual = np.clip(MOST_PROBES * USUAL_ROWS // n_rows, FEWEST_PROBES, MOST_PROBES)
        kept, *_ = self._kept("tournament") or [None]
        asked = (usual if kept is None else kept) if self.n_probes == "auto" else self.n_probes
        if kept not in (None, asked):
            raise LedgerError(
                f"the ledger {self.ledger} holds a tournament of {kept:,} probes, by which its rounds are planned: "
                "leave out ",
                Parameter("n_probes", asked),
                " to go on with it, or choose another file",
            )
        return int(asked)

    def _criterion_for(self, X: Any = None) -> Criterion:
        if not (isinstance(self.criterion, str) and self.criterion == "auto"):
            return as_criterion(self.criterion, X)
        return usual_criterion(2 * NEIGHBORS if X is None else X.shape[0])

    def _folds_and_score(self, criterion: Criterion, y: Any, groups: Any = None) -> tuple[Any, Any]:
        is_soft = isinstance(criterion, KNN | Linear | NaiveBayes | Average) and not _fills(criterion)
        of_classes = y is not None and Target.of(y, getattr(criterion, "task", "auto")).is_classification
        cv, scoring = self.cv, self.scoring
        if isinstance(cv, str) and cv == "auto":
            cv = "loo" if is_soft and len(y) <= MOST_ROWS else FOLDS
            if groups is not None and len(np.unique(groups)) < len(y):
                cv = folds_of_groups(FOLDS, groups, of_classes)
        if scoring is None and is_soft and of_classes:
            scoring = "probability"
        return cv, scoring

    def _sampled(self, X: Any, y: Any, seed: int) -> Rows | None:
        """A sample of many rows that has each class, or each range of y, in its share; None where all are used."""
        n_rows, has_splits = X.shape[0], np.iterable(self.cv) and not isinstance(self.cv, str)
        if n_rows <= MOST_ROWS or y is None or isinstance(X, Stored) or has_splits:
            return None
        order = np.lexsort((np.random.default_rng(seed).permutation(n_rows), y))
        return np.sort(order[np.arange(MOST_ROWS) * n_rows // MOST_ROWS])

    def _rounds(self, X: Any, y: Any, units: Units, on_device: bool) -> Rounds:
        check_every, block_size, schedule = self._kept_rounds() or self._new_rounds(X, y, units, on_device)
        assert isinstance(schedule, Schedule)
        place = find(self.device) if on_device else None
        return Rounds(check_every, block_size, replace(schedule, n_threads=self._n_threads, device=place))

    def _new_rounds(self, X: Any, y: Any, units: Units, on_device: bool) -> Rounds:
        budget = self._budget(X.shape[0])
        block_size = min(self._usual_block(on_device), max(1, budget // MOST_BLOCKS))
        schedule = Schedule.of_budget(units.n_units, budget, block_size)
        above = max(100, min(200, units.n_units // 5))
        if schedule.ends and units.n_units > above:
            schedule = replace(schedule, protected=self._protected(X, y, units, on_device), protected_above=above)
        return Rounds(block_size, block_size, schedule)

    def _kept_rounds(self) -> Rounds | None:
        """Those of the run in the ledger: one that was begun by another release goes on as it was planned."""
        if self.net != "auto" or self._kept("tournament") is None:
            return None
        with Ledger(self.ledger) as ledger:
            record = Record.read(ledger)
        return Rounds(record.check_every, record.block_size, record.narrowing)

    def _protected(self, X: Any, y: Any, units: Units, on_device: bool) -> Columns:
        """The units of the features that filters rank best; beside a device these work side by side."""
        is_wanted = X.shape[0] >= FEWEST_ROWS_OF_NET if self.net == "auto" else self.net
        if not is_wanted or y is None or isinstance(X, Stored) or self._is_category.any():
            return NO_COLUMNS
        if len(columns_not_finite(X)):
            return NO_COLUMNS
        filters = self._filters(X, y)
        places = threads(len(filters) if on_device else 1)(lambda method: method.fit(X, y).ranking_, filters)
        best = np.min(list(places), axis=0) <= IN_NET
        protected = np.unique(units.unit_of[best])
        return protected[protected >= 0].astype(np.int32)

    def _filters(self, X: Any, y: Any) -> list[Any]:
        n_rows, n_features = X.shape
        n_samples = int(np.clip(RELIEF_CELLS / (n_rows * n_features), 1, n_rows))
        here: dict[str, Any] = {"n_jobs": self._n_threads}
        # Where it looks at some rows, always at the same ones: the same seed is to give the same ranking.
        relief = ReliefF(n_samples=None if n_samples >= n_rows else n_samples, random_state=0, **here)
        if not Target.of(y, getattr(self.criterion_, "task", "auto")).is_classification:
            return [relief]
        of_columns = [MRMR(IN_NET, **here), FSDD(**here)]
        if sp.issparse(X):
            return of_columns
        if n_features > MOST_PAIRED:
            here |= {"threshold": ("top", BEST_ALONE), "normalize": "undetermined"}
        joint = JMI(IN_NET, n_jobs=self._n_threads)
        return [EFS(IN_NET, **here), relief, joint, *of_columns]


def _fills(criterion: Criterion) -> bool:
    """Whether missing values are filled in each fold, which no soft score knows."""
    return any(getattr(part, "missing", None) is not None for part in getattr(criterion, "parts", (criterion,)))


def usual_criterion(n_rows: int, **options: Any) -> Average:
    """What a probe is scored by unless said otherwise; ``options`` are those that both its models have."""
    return Average((KNN(int(np.clip(n_rows // 2, 1, NEIGHBORS)), **options), Linear(**options)))
