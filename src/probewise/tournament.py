"""Tournament: rounds of probes planned by a budget; after each round the weakest features are dropped."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from operator import attrgetter
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy import stats
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import gen_batches
from sklearn.utils.class_weight import compute_sample_weight

from ._probing import (
    SHARED_PARAMETERS,
    Data,
    accepted_by,
    bind,
    criterion_or_default,
    new_settings,
    prepare,
    run_with,
    set_results,
)
from ._selector import Accepts, RunResultsMixin, Selector
from .criteria import KNN, Average, Criterion, Linear, NaiveBayes, as_criterion
from .criteria.base import Target, folds_of_groups
from .criteria.device import OnDevice
from .criteria.scoring import FOR_NUMBERS
from .engine.ledger import LedgerError
from .engine.schedule import LinearModel, Schedule
from .engine.settings import Settings, saved_settings
from .engine.units import NO_COLUMNS, Columns
from .executors import threads, threads_beside_device
from .filters.efs import EFS
from .filters.fsdd import FSDD
from .filters.mrmr import JMI, MRMR
from .filters.relieff import ReliefF
from .inference import pairs
from .stopping import MaxProbes, MaxTime, Rule
from .validation.contents import copies_of_columns
from .validation.errors import warn
from .validation.parameters import check_parameters, number, seed_of, survival_in, whole_number
from .validation.stores import Stored
from .validation.tables import columns_not_finite, moments

MAX_PROBE_SIZE = 100
N_NEIGHBORS = 10
MAX_BLOCKS = 100  # a small budget has small blocks, so that rounds can end where they should
MAX_PROBES, MIN_PROBES, USUAL_ROWS = 12_000, 2_000, 150  # the budget falls with rows, so that time hardly grows
# Wide tables have a probe for each column, as long as that takes seconds: with fewer probes, informative features are
# dropped in the first rounds.
MAX_PROBE_ROWS, GPU_FACTOR = 5_000_000, 4
N_PROTECTED = 30  # per filter; with 60, few of 500 features would be left to what only probes can show
MIN_ROWS_TO_PROTECT = 200  # with fewer rows, filters that see pairs protect noise: genes were ranked worse
RELIEF_CELLS = 4e9  # rows times sampled rows times features, up to which ReliefF takes seconds
MAX_PAIR_CELLS = 1e10  # rows times pairs of features, up to which all pairs are scanned in a second
MAX_PAIRS = 5  # strongest pairs whose features stay until the last round
MAX_STEPS, STEP_LEVEL = 5, 0.05  # features of a stepwise regression that stay until the last round; its error level
PART_CELLS = 2**20  # cells of X in double precision at a time
EXPLAINED = 1e-6  # share of the variance of a column, below which it is a combination of others
MAX_PAIRED, BEST_ALONE = 1000, 300  # EFS compares all pairs of so many features, else pairs of the best ones
FOLDS = 3
RARE = 0.4  # share of the rows, relative to an equal share, below which a class is rare
FEWEST_OF_CLASS = 5  # with many tiny classes, equal weights of classes ranked worse
MAX_PRODUCTS = 2e10  # rows squared times columns, up to which the linear model takes seconds
MAX_ROWS = 2000  # more rows would cost time in proportion, or its square, and hardly change the ranking

PARAMETERS = {
    "n_probes": ("auto", whole_number(1)),
    "time_limit": (None, number(above=0)),
    **SHARED_PARAMETERS,
}


@dataclass(eq=False, repr=False)
class Tournament(RunResultsMixin, Selector):
    """Finds the features that predict best together, in rounds of random subsets planned by a budget.

    All features take part in the first round, which has up to a quarter of the budget. A round scores random subsets
    (probes) of the remaining features by the probability that a model gives to the true class of each held-out row.
    One ridge regression over the probes of all rounds gives every feature a coefficient: how much it adds to a probe.
    With classes, the weight of the feature in a linear classifier on all remaining features is added to it.
    The best 70% of the features go on. When 20 features are left, they share the rest of the budget. Features are
    ranked by the round they reached, then by their coefficient. With numbers to predict, copies of other columns are
    dropped first, and up to five features that a stepwise linear regression adds stay until the last round. Forward
    selection ranks the last 20 (not for survival times), so that near copies do not follow each other. The best
    features of some fast filters are protected in the early rounds, so that features that only help in combination are
    not dropped by chance.

    Use `Tournament` to predict with few features, and `DAF` to see how much each feature contributes.

    Parameters
    ----------
    n_features_to_select : int, float, "auto" or None, default=None
        Number of features to select: a number, a share in (0, 1], None for half, or "auto", as in `DAF`. May be changed
        after ``fit``, except to "auto".
    criterion : str, Criterion, estimator or callable, default="auto"
        The score J of a probe. "auto" is the mean of a 10-nearest-neighbor and a linear model, leaving out one row at
        a time, and the linear model alone for a sparse matrix; other values as in `DAF`. Only "auto" adds the weights
        of the linear classifier, and ranks by forward selection.
    n_probes : int or "auto", default="auto"
        The budget. "auto" is 12,000 for up to 150 rows and falls with more rows to 2,000. Where it is less, a wide
        table has one probe for each feature (four on a GPU), up to 12,000 and up to 5,000,000 / rows (four times as
        many on a GPU). A resumed run keeps its own budget.
    time_limit : float or None, default=None
        Seconds after which the run ends with the ranking so far.
    feature_groups, keep, categorical_features, missing
        As in `DAF`.
    scale : {"auto", "standard", "largest", "nonzero", "rank"} or None, default="auto"
        As in `DAF`. "auto" standardizes tables whose columns have very different widths, or very small ones, and gives
        the values of sparse tables that are not 0 a usual size of 1.
    cv : "auto", "loo", int, splitter or iterable of splits, default="auto"
        Folds for the criterion. "auto" leaves out one row at a time where the criterion gives probabilities, and uses
        3 folds otherwise; with ``groups``, always 3 folds of whole groups. Of more than 2,000 rows a stratified sample
        of 2,000 is used, unless ``cv`` is a list of splits or X is in a store. It has as many rows of rare classes as
        possible, up to half of an equal share.
    scoring : str or None, default=None
        None is "probability" for criteria that give probabilities and fill no missing values, else the criterion's
        default. With None and without ``sample_weight``, all classes have the same weight if a class has less than 0.4
        of an equal share of the rows (20% of the rows if there are two classes).
    device, n_jobs, ledger, random_state, verbose
        As in `DAF`.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        The coefficient of each feature of the last round; NaN for features that were dropped before it. With classes
        and the default criterion, the standardized weight in the linear classifier is added, times the standard
        deviation of the coefficients and the squared skill of the classifier.
        ``run_.coefficient("regression")`` has the coefficients of all features.
    class_weight_ : "balanced" or None
        "balanced" if a class is rare and all classes have the same weight.
    ranking_, support_, std_errors_, p_values_, q_values_, run_, size_curve_, n_probes_, stop_reason_, history_,
    criterion_, notes_
        As in `DAF`; ``history_["dropped_in_round"]`` is the round after which each feature was dropped, 0 for those
        of the last round.

    Examples
    --------
    >>> from probewise import Tournament
    >>> from probewise.datasets import make_madelon
    >>> data = make_madelon(n_samples=300, n_features=60, random_state=0)
    >>> tournament = Tournament(20, n_probes=1000, random_state=0).fit(data.X, data.y)
    >>> int(tournament.support_[data.informative].sum()) >= 15
    True
    """

    n_features_to_select: Any = None
    _: KW_ONLY
    criterion: Any = "auto"
    n_probes: int | str = "auto"
    time_limit: float | None = None
    feature_groups: Any = None
    keep: Any = None
    categorical_features: Any = "from_dtype"
    scale: str | None = "auto"
    missing: str | None = "auto"
    cv: Any = "auto"
    scoring: Any = None
    device: str = "cpu"
    n_jobs: int | None = None
    ledger: Any = None
    random_state: Any = None
    verbose: Any = 0

    def fit(
        self, X: Any, y: Any = None, *, groups: Any = None, sample_weight: Any = None, adjust: Any = None
    ) -> Tournament:
        """Score the probes of all rounds and rank the features.

        ``groups``, ``sample_weight`` and ``adjust`` are as in `DAF.fit`.
        """
        check_parameters(self, PARAMETERS)
        saved = saved_settings(self.ledger)
        criterion = self._criterion_for(X, y)
        data = prepare(self, criterion, X, y, groups=groups, sample_weight=sample_weight, adjust=adjust, saved=saved)
        seed = seed_of(self.random_state, saved and saved.seed)
        used = data.take(self._sample_of_rows(data, seed))
        cv, scoring, self.class_weight_ = self._folds_and_scoring(criterion, data, used)
        if self.class_weight_ is not None:
            used = replace(used, sample_weight=compute_sample_weight("balanced", used.y))
        warm_up = MAX_PROBE_SIZE if self.n_jobs in (None, 1) else None
        folds = {"cv": cv, "scoring": scoring}
        score = bind(criterion, used, device=self.device, warm_up=warm_up, **folds)
        schedule, block_size = self._schedule(data, used, criterion, score, saved)
        sizes: dict[str, Any] = {"max_probe_size": MAX_PROBE_SIZE, "check_every": block_size, "block_size": block_size}
        settings = new_settings(self, data, criterion, score, seed=seed, schedule=schedule, **sizes, **folds)
        stop: Rule = MaxProbes(schedule.n_probes)
        if self.time_limit is not None:
            stop = stop | MaxTime(self.time_limit)
        set_results(self, run_with(self, data, used, criterion, score, settings, stop), criterion, data)
        if self.run_.ledger.n_probes < schedule.n_probes and not self.run_.interrupted:
            warn(
                f"the time limit was reached after {self.n_probes_:,} of {schedule.n_probes:,} probes: more probes may "
                "change the ranking",
                ConvergenceWarning,
            )
        self._choose_size(X, y, groups=groups, sample_weight=sample_weight, adjust=adjust)
        return self

    @property
    def _accepts(self) -> Accepts:
        if isinstance(self.criterion, str) and self.criterion == "auto":
            return accepted_by(default_criterion(1), self.device, self.missing)
        return accepted_by(criterion_or_default(self.criterion), self.device, self.missing)

    def _criterion_for(self, X: Any, y: Any) -> Criterion:
        if isinstance(self.criterion, str) and self.criterion == "auto":
            n_rows = (getattr(X, "shape", None) or [len(X) if hasattr(X, "__len__") else 0])[0]
            for_numbers = isinstance(self.scoring, str) and self.scoring in FOR_NUMBERS
            task = "regression" if for_numbers or survival_in(y) is not None else "auto"
            return default_criterion(n_rows, is_sparse=sp.issparse(X), task=task)
        return as_criterion(self.criterion, X)

    def _sample_of_rows(self, data: Data, seed: int) -> NDArray[np.int64] | None:
        """A sample of many rows, without those of weight 0; None where all rows are used.

        Each class, or each range of y, has its share of the sample, but a class has at least half of an equal share, or
        all of its rows.
        """
        n_rows, has_splits = data.shape[0], np.iterable(self.cv) and not isinstance(self.cv, str)
        if n_rows <= MAX_ROWS or data.y is None or isinstance(data.matrix, Stored) or has_splits:
            return None
        rows = np.arange(n_rows) if data.sample_weight is None else np.flatnonzero(data.sample_weight)
        if len(rows) <= MAX_ROWS:
            return rows
        y = data.y if data.y.ndim == 1 else data.y[:, 0]
        order = rows[np.lexsort((np.random.default_rng(seed).permutation(len(rows)), y[rows]))]
        sizes = np.array([len(rows)])
        if data.is_classification:
            sizes = np.unique(data.y[rows], return_counts=True)[1]
        drawn, least = MAX_ROWS * sizes / len(rows), np.minimum(sizes, MAX_ROWS // (2 * len(sizes)))
        if (is_rare := drawn < least).any():
            drawn = np.where(is_rare, least, (MAX_ROWS - least[is_rare].sum()) * sizes / sizes[~is_rare].sum())
            blocks = np.split(order, np.cumsum(sizes)[:-1])
            parts = [block[np.arange(n) * len(block) // n] for block, n in zip(blocks, drawn.astype(int), strict=True)]
            return np.sort(np.concatenate(parts))
        return np.sort(order[np.arange(MAX_ROWS) * len(rows) // MAX_ROWS])

    def _folds_and_scoring(self, criterion: Criterion, data: Data, used: Data) -> tuple[Any, Any, str | None]:
        """``cv`` and ``scoring`` with their "auto" values replaced, and the weights of classes.

        Classes have equal weights if one is so rare that the default score would hardly count it. Weights of the user
        come first.
        """
        # No probability score exists for missing values that are filled in each fold.
        fills = any(map(attrgetter("allow_nan"), getattr(criterion, "parts", (criterion,))))
        gives_probabilities = isinstance(criterion, KNN | Linear | NaiveBayes | Average) and not fills
        cv, scoring = self.cv, self.scoring
        if isinstance(cv, str) and cv == "auto":
            cv = "loo" if gives_probabilities and used.shape[0] <= MAX_ROWS else FOLDS
            if used.groups is not None and len(np.unique(used.groups)) < used.shape[0]:
                cv = folds_of_groups(FOLDS, used.groups, bool(used.is_classification))
        if scoring is not None or not gives_probabilities or not used.is_classification:
            return cv, scoring, None
        sizes = np.unique(np.asarray(data.y), return_counts=True)[1]
        has_rare_class = max(sizes.min(), FEWEST_OF_CLASS) * len(sizes) < RARE * data.shape[0]
        return cv, "probability", "balanced" if has_rare_class and data.sample_weight is None else None

    def _schedule(
        self, data: Data, used: Data, criterion: Criterion, score: Any, saved: Settings | None
    ) -> tuple[Schedule, int]:
        """The rounds and the number of probes in a block; a resumed run keeps those of its ledger."""
        on_device, n_units = isinstance(score, OnDevice), used.table.units.n_units
        n_threads = threads_beside_device() if on_device and self.n_jobs is None else self.n_jobs
        if saved is not None and saved.schedule is not None:
            schedule, block_size = saved.schedule, saved.block_size
            if self.n_probes not in ("auto", schedule.n_probes):
                raise LedgerError(
                    f"the ledger {self.ledger} holds a tournament planned for {schedule.n_probes:,} probes: leave out "
                    f"n_probes={self.n_probes} to resume it, or choose another file"
                )
        else:
            n_rows, n_columns = used.shape
            by_width = min(n_columns, MAX_PROBE_ROWS // n_rows) * (GPU_FACTOR if on_device else 1)
            default = min(MAX_PROBES, max(MIN_PROBES, MAX_PROBES * USUAL_ROWS // n_rows, by_width))
            n_probes = int(default if self.n_probes == "auto" else self.n_probes)
            # Also on a GPU, which scores many blocks at once: rounds end at block borders, so they are the same there.
            block_size = min(criterion.block_size, max(1, n_probes // MAX_BLOCKS))
            schedule = Schedule.of_budget(n_units, n_probes, block_size)
            above = max(100, min(200, n_units // 5))
            if schedule.ends and n_units > above:
                protected = self._protected(used, n_threads, on_device)
                schedule = replace(schedule, protected=protected, protected_above=above)
            if schedule.ends:
                copies = NO_COLUMNS
                # For classes no gain was measured: -0.2 ± 0.2 points of accuracy with 20 features on nine tables.
                if not used.is_classification and used.table.units.are_features and not isinstance(used.matrix, Stored):
                    copies = copies_of_columns(used.matrix).astype(np.int32)
                schedule = replace(schedule, paired=self._paired(used, n_threads), copies=copies)
        model = forward = None
        if isinstance(self.criterion, str) and self.criterion == "auto":
            model = linear_model(used)
            # Residuals of survival times hold so little signal that forward selection takes noise.
            is_number = not used.is_classification and survival_in(used.outcome) is None
            if is_number and self.scoring in (None, "r2"):
                forward = used.table.score_of_units(score), used.shape[0]
        return replace(schedule, n_threads=n_threads, model=model, forward=forward), block_size

    def _protected(self, data: Data, n_jobs: int | None, on_device: bool) -> Columns:
        """Units that contain one of the best features of a filter."""
        X = data.matrix
        if not can_be_filtered(data):
            return NO_COLUMNS
        filters = filters_for(X, data.is_classification, n_jobs)
        # Beside a GPU the cores are free, so the filters run at the same time.
        run_all = threads(len(filters) if on_device else 1)
        targets = np.atleast_2d(np.asarray(data.y).T)
        rankings = run_all(lambda method: np.min([method.fit(X, y).ranking_ for y in targets], axis=0), filters)
        best = np.min(list(rankings), axis=0) <= -(-N_PROTECTED // len(targets))
        return units_of_columns(data, np.flatnonzero(best))

    def _paired(self, data: Data, n_jobs: int | None) -> Columns:
        """Units of pairs that act together on the target, and of a stepwise regression.

        Few probes have both features of a pair, so they could be dropped. The twenty best features of a spectrum may
        all be of one band; the stepwise regression has one of each band that the target needs.
        """
        X = data.matrix
        stepwise = np.empty(0, np.int64) if data.is_classification else stepwise_columns(data)
        if sp.issparse(X) or not can_be_filtered(data) or X.shape[0] * X.shape[1] ** 2 / 2 > MAX_PAIR_CELLS:
            return units_of_columns(data, stepwise) if len(stepwise) else NO_COLUMNS
        task = "classification" if data.is_classification else "regression"
        of_rows: dict[str, Any] = {"groups": data.groups, "sample_weight": data.sample_weight}
        found = pairs(X, data.y, task=task, **of_rows, random_state=0, n_jobs=n_jobs).pairs
        return units_of_columns(data, np.r_[stepwise, found[:MAX_PAIRS].ravel()])


def can_be_filtered(data: Data) -> bool:
    """Whether filters can read the table, and it has enough rows for them to find more than noise."""
    X = data.matrix
    is_plain = data.y is not None and not isinstance(X, Stored) and not data.categorical.any()
    return data.shape[0] >= MIN_ROWS_TO_PROTECT and is_plain and not len(columns_not_finite(X))


def stepwise_columns(data: Data) -> NDArray[np.int64]:
    """Columns that a stepwise linear regression adds to predict a number, as long as the best column is significant."""
    X, (n_rows, n_columns) = data.matrix, data.matrix.shape
    y = np.asarray(data.y)
    if data.y is None or y.ndim > 1 or isinstance(X, Stored) or len(columns_not_finite(X)):
        return np.empty(0, np.int64)

    def products(values: NDArray[np.float64]) -> NDArray[np.float64]:
        """X.T @ values, without a copy of X in double precision."""
        parts = [X] if sp.issparse(X) else (X[:, part] for part in gen_batches(n_columns, max(1, PART_CELLS // n_rows)))
        return np.concatenate([part.T @ values for part in parts])

    chosen, basis = list[int](), np.full((n_rows, 1), n_rows**-0.5)
    total = n_rows * moments(X)[1] ** 2
    shared, rest = np.zeros(n_columns), y - y.mean()
    while len(chosen) < min(MAX_STEPS, n_rows - 3):
        unexplained = np.where(total - shared > EXPLAINED * total, total - shared, np.inf)
        squared = np.minimum(products(rest) ** 2 / unexplained / (rest @ rest or 1.0), 1 - 1e-12)
        best, n_free = int(squared.argmax()), n_rows - len(chosen) - 2
        statistic = np.sqrt(n_free * squared[best] / (1 - squared[best]))
        if 2 * n_columns * stats.t.sf(statistic, n_free) >= STEP_LEVEL:
            break
        column = X[:, [best]].toarray().ravel() if sp.issparse(X) else X[:, best].astype(np.float64)
        column = column - basis @ (basis.T @ column)
        column /= np.linalg.norm(column)
        chosen, basis = [*chosen, best], np.column_stack([basis, column])
        shared += products(column) ** 2
        rest = rest - column * (column @ rest)
    return np.array(chosen, dtype=np.int64)


def units_of_columns(data: Data, columns: NDArray[np.int64]) -> Columns:
    """The units with one of these columns, ascending."""
    units = np.unique(data.table.units.unit_of[columns])
    return units[units >= 0].astype(np.int32)


def filters_for(X: Any, is_classification: bool | None, n_jobs: int | None) -> list[Any]:
    """The filters that take seconds at most on this table."""
    n_rows, n_features = X.shape
    n_samples = int(np.clip(RELIEF_CELLS / (n_rows * n_features), 1, n_rows))
    # A sample of ReliefF is always the same: the same seed has to give the same ranking.
    relief = ReliefF(n_samples=None if n_samples >= n_rows else n_samples, random_state=0, n_jobs=n_jobs)
    if not is_classification:
        return [relief]
    univariate = [MRMR(N_PROTECTED, n_jobs=n_jobs), FSDD(n_jobs=n_jobs)]
    if sp.issparse(X):
        return univariate
    limits: dict[str, Any] = {}
    if n_features > MAX_PAIRED:
        limits = {"threshold": ("top", BEST_ALONE), "normalize": "undetermined"}
    return [EFS(N_PROTECTED, n_jobs=n_jobs, **limits), relief, JMI(N_PROTECTED, n_jobs=n_jobs), *univariate]


def linear_model(data: Data) -> LinearModel | None:
    """The model whose weights join the coefficients; None without classes, or for a store or an incomplete or large X.

    For numbers no gain was measured.
    """
    X, (n_rows, n_columns) = data.matrix, data.matrix.shape
    is_large = isinstance(X, Stored) or n_rows**2 * n_columns > MAX_PRODUCTS
    if not data.is_classification or is_large or len(columns_not_finite(X)):
        return None
    target = Target.of(data.y, "classification")
    targets = (target.values[:, None] == np.arange(target.n_classes)).astype(np.float64)
    weights = np.ones(n_rows) if data.sample_weight is None else data.sample_weight
    return LinearModel(X, data.table.columns, targets, weights, data.groups)


def default_criterion(n_rows: int, is_sparse: bool = False, **options: Any) -> Criterion:
    """The mean of k-NN and a linear model; for sparse matrices the linear model, which takes a tenth of the time."""
    if is_sparse:
        return Linear(**options)
    return Average((KNN(int(np.clip(n_rows // 2, 1, N_NEIGHBORS)), **options), Linear(**options)))
