"""The rounds of a tournament: when each round ends, which features stay, and the probes of each round.

A budget of probes is split into rounds (`Schedule`). Everything here is a function of the data, the plan, and the
ledger up to a look, so that the result does not depend on the number of workers or on whether a run was resumed.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..executors import one_blas_thread
from .ledger import Ledger, LedgerError
from .probes import ProbePlan, Round, Subsets, concatenated
from .regression import Design, Regression
from .tally import positions

Floats = NDArray[np.float64]
NO_UNITS: NDArray[np.int32] = np.empty(0, np.int32)
# The share of features that stay after a round, and the number of features in the last round.
KEPT_SHARE, N_LAST = 0.7, 20
# The first round, with all features, gets a quarter of the budget. Measured on held-out rows, a third of the budget is
# as good as a quarter, and a half is one point worse. The first round gets less where later rounds would have fewer
# than 200 probes each: with 1,000 probes that finds 19.3 instead of 18.6 of the 20 informative features of Madelon.
FIRST_SHARE, MIN_LATER_PROBES = 0.25, 200
MAX_SHARE = 0.3  # largest probe of a round, as a share of its features
RIDGE = 10.0  # shrinks the coefficient of a feature that was in ten probes by half
# Rough measurements for the estimate of the remaining time: the fixed cost of a probe, in features; the seconds of a
# regression per probe (for each factor of 10 in features above 80) and per feature.
PROBE_OVERHEAD, BASE_FEATURES = 80, 80
SECONDS_PER_PROBE, SECONDS_PER_FEATURE = 6.5e-7, 1.5e-8
TOLERANCE = 1e-3  # of the solution; far below its standard errors
PART = 4096  # columns that the linear model has in memory at a time
NO_WEIGHT = 1e-9  # stands for the weight 0 of a row, relative to the largest weight
COPY = 1e-9  # squared distance of two rows, relative to their squared lengths, below which they are copies
WEIGHTS, FORWARD = "weights", "forward"  # names in the ledger of weights, and of features by forward selection
TIED = 2.0  # times 1 / rows: an error that is larger by this share is no evidence (a difference of 2 in AIC)


@dataclass(frozen=True, eq=False)
class TournamentPlan(ProbePlan):
    """Probes in rounds, each among fewer features than the round before.

    Sizes are uniform from 1 to ``max_size``, or to three tenths of the features of the round if that is less.
    """

    later: tuple[Round, ...] = field(default=(), kw_only=True)

    def with_round(self, start: int, active: NDArray[np.int32]) -> TournamentPlan:
        """Add a round with fewer features that starts at probe ``start``."""
        return replace(self, later=(*self.later, Round(start, np.sort(active).astype(np.int32))))

    @cached_property
    def rounds(self) -> tuple[Round, ...]:
        return (*super().rounds, *self.later)

    @property
    def largest(self) -> int:
        ((first_plan, *_),) = self._by_round(0, 1)
        return first_plan.largest

    def draw(self, start: int, stop: int) -> Subsets:
        parts = []
        for plan, active, low, high in self._by_round(start, stop):
            drawn = plan.draw(low, high)
            parts.append(Subsets(active[drawn.indices], drawn.offsets))
        return concatenated(parts)

    def sizes(self, start: int, stop: int) -> NDArray[np.int64]:
        sizes = [np.empty(0, np.int64)]
        for plan, _, low, high in self._by_round(start, stop):
            sizes.append(plan.sizes(low, high))
        return np.concatenate(sizes)

    def _by_round(self, start: int, stop: int) -> Iterator[tuple[ProbePlan, NDArray[np.int32], int, int]]:
        """Yield the plan and the features of each round that these probes belong to, with its part of the range."""
        for number, part in enumerate(self.rounds):
            end = self.later[number].start if number < len(self.later) else stop
            low, high = max(start, part.start), min(stop, end)
            if low < high:
                size = self.n_features if self.max_size is None else self.max_size
                largest = max(1, min(size, int(MAX_SHARE * len(part.active))))
                yield ProbePlan(len(part.active), largest, self.inclusion, self.seed), part.active, low, high


@dataclass(frozen=True, eq=False)
class Schedule:
    """The rounds of a tournament: when each round ends and which features stay.

    The first round has a quarter of the probes; less where the other rounds would have too few, and more where there
    are few rounds. The other rounds have equal numbers of whole blocks, and the last round also the rest.
    """

    n_probes: int  # the budget
    ends: tuple[int, ...]  # probes after which features are dropped
    # Units that stay while more than ``protected_above`` units are left.
    protected: NDArray[np.int32] = field(default_factory=NO_UNITS.copy)
    protected_above: int = 0
    paired: NDArray[np.int32] = field(default_factory=NO_UNITS.copy)  # units that stay until the last round
    copies: NDArray[np.int32] = field(default_factory=NO_UNITS.copy)  # copies of other units, which are dropped first
    n_threads: int | None = None  # for the regressions between rounds; any number gives the same bits
    model: LinearModel | None = None  # None without a target, or for a run that was read without its data
    # The criterion on units and the number of rows, for a forward selection of the last features; None: by coefficient.
    forward: tuple[Callable[[Subsets], Floats], int] | None = None
    # The design matrix of the last regression, which the next one extends.
    _last_design: list[Design] = field(default_factory=list, init=False, repr=False)

    @classmethod
    def of_budget(cls, n_units: int, n_probes: int, block_size: int) -> Schedule:
        """Plan rounds of whole blocks until few features are left; a small budget has fewer rounds."""
        n_blocks = n_probes // block_size
        n_rounds = min(len(sizes_of_rounds(n_units)) - 1, max(0, n_blocks // 2 - 1))
        max_first = n_blocks - n_rounds * MIN_LATER_PROBES // block_size
        first = max(n_blocks // (n_rounds + 1), min(max_first, int(FIRST_SHARE * n_blocks)))
        ends = first + np.arange(n_rounds) * (n_blocks - first) // max(1, n_rounds)
        return cls(n_probes, tuple((block_size * ends).tolist()))

    def __call__(self, plan: ProbePlan, ledger: Ledger, n_probes: int) -> ProbePlan:
        """The plan after ``n_probes``: unchanged, or with a new round where a round ends here."""
        if not isinstance(plan, TournamentPlan):
            return plan
        self._note_weights(plan, ledger)
        n_rounds = len(plan.rounds)
        is_over = n_probes >= self.n_probes and self.forward is not None and FORWARD not in ledger.settings
        if not is_over and n_probes not in self.ends[n_rounds - 1 : n_rounds]:
            return plan
        so_far = ledger if n_probes == ledger.n_probes else ledger.until(n_probes)
        active = plan.rounds[-1].active
        design = self._design(plan, so_far)
        scores = design.of_features(design.solve(RIDGE, tolerance=TOLERANCE) / design.roots, active)
        scores = with_weights(scores, so_far, n_rounds - 1)
        scores = np.round(scores, 12 - int(np.ceil(np.log10(np.abs(scores).max() or 1.0))))  # the same for every BLAS
        if is_over:
            ledger.note(FORWARD, self._forward_order(active[np.argsort(positions(scores))][:N_LAST].tolist()))
            return plan
        n_kept = sizes_of_rounds(plan.n_features, len(self.ends))[n_rounds]
        positions_of_units = positions(scores)
        if n_kept > self.protected_above:
            positions_of_units[np.isin(active, self.protected)] -= len(active)
        positions_of_units[np.isin(active, self.paired)] -= 2 * len(active)
        positions_of_units[np.isin(active, self.copies)] += 4 * len(active)
        active = active[positions_of_units <= np.partition(positions_of_units, n_kept - 1)[n_kept - 1]]
        plan = plan.with_round(n_probes, active)
        self._note_weights(plan, ledger)
        return plan

    def _forward_order(self, rest: list[int]) -> list[int]:
        """Units, given in the order of their coefficients, in the order in which forward selection takes them.

        A coefficient is the mean effect of a unit in random subsets, so that similar units have similar coefficients:
        the first five of a spectrum would be neighbors. Each step takes the unit with the largest J together with those
        before it; of units whose errors are equal within the tolerance, the one with the largest coefficient.
        """
        assert self.forward is not None
        (score, n_rows), order = self.forward, list[int]()
        while rest:
            errors = 1.0 - score(Subsets.of([[*order, unit] for unit in rest]))
            order.append(rest.pop(int((errors <= errors.min() * (1 + TIED / n_rows)).argmax())))
        return order

    def _note_weights(self, plan: ProbePlan, ledger: Ledger) -> None:
        """Store the weights of the current round in the ledger, so that it can be replayed without the data."""
        stored = ledger.settings.get(WEIGHTS, [])
        if self.model is not None and len(stored) == len(plan.rounds) - 1:
            weights = self.model(plan.rounds[-1].active).astype("<f4")
            ledger.note(WEIGHTS, [*stored, base64.b64encode(weights.tobytes()).decode()])

    def scores(self, plan: ProbePlan, ledger: Ledger) -> Floats:
        """The coefficient of each unit so far, for a display of progress; NaN for dropped units."""
        design, active = Design(plan, ledger, n_threads=self.n_threads), plan.rounds[-1].active
        out, scores = np.full(plan.n_features, np.nan), design.solve(RIDGE, tolerance=TOLERANCE) / design.roots
        out[active] = with_weights(design.of_features(scores, active), ledger, len(plan.rounds) - 1)
        return out

    def end_of_round(self, plan: ProbePlan) -> int | None:
        """The probe at which the current round ends; None in the last round."""
        return next(iter(self.ends[len(plan.rounds) - 1 :]), None)

    def effort(self, plan: ProbePlan, n_probes: int) -> tuple[float, float]:
        """Work of the first ``n_probes`` in arbitrary units, and the seconds of the regressions between rounds."""
        sizes = np.array(sizes_of_rounds(plan.n_features, len(self.ends)), np.float64)
        largest = np.clip(MAX_SHARE * sizes, 1, plan.max_size or plan.n_features)
        n_probes_of_round = np.diff(np.minimum([0, *self.ends, self.n_probes], n_probes))
        n_ended = sum(end <= n_probes for end in self.ends)
        seconds_of_round = SECONDS_PER_PROBE * self.n_probes * max(0.5, np.log10(plan.n_features / BASE_FEATURES))
        seconds_of_round += SECONDS_PER_FEATURE * plan.n_features
        return float(n_probes_of_round @ (PROBE_OVERHEAD + largest / 2)), float(n_ended * seconds_of_round)

    def fit(self, plan: ProbePlan, ledger: Ledger) -> Regression:
        """One ridge regression over the probes of all rounds, with the weights of the last round of each unit."""
        design = self._design(plan, ledger)
        fitted = Regression.of_design(design, RIDGE / design.unit, TOLERANCE)
        coefficients = fitted.coefficients.copy()
        for number, part in enumerate(plan.rounds):
            coefficients[part.active] = with_weights(fitted.coefficients[part.active], ledger, number)
        return replace(fitted, coefficients=coefficients)

    def _design(self, plan: ProbePlan, ledger: Ledger) -> Design:
        design = Design(plan, ledger, *self._last_design, n_threads=self.n_threads)
        self._last_design[:] = [design] if len(plan.rounds) <= len(self.ends) else []
        return design

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_last_design": [], "model": None, "forward": None}  # their results are in the ledger


@dataclass(frozen=True, eq=False)
class LinearModel:
    """Weights of units in a ridge classifier on all units that are left, because a probe sees only a few of them.

    A call returns the weight of each unit (the largest of its columns; over classes, the root of the sum of squares;
    for sparse X, times the standard deviation), standardized over the units and multiplied by ``share``.
    """

    X: Any  # rows and columns as the criterion sees them, dense or sparse
    columns: Subsets  # the columns of each unit
    targets: Floats  # rows and classes, 1 for the class of the row and 0 for others
    row_weights: Floats  # a weight of 2 is the same as two copies of the row
    groups: NDArray[Any] | None

    def __call__(self, active: NDArray[np.int32]) -> Floats:
        chosen, weights = self.columns.only(np.isin(np.arange(len(self.columns)), active)), np.empty(0)
        shares = self.row_weights / self.row_weights.sum()
        with one_blas_thread():  # the bits do not depend on the number of threads
            matrix, no_sum = self._system(chosen.indices)[0], np.zeros((1, self.targets.shape[1]))
            dual = np.linalg.solve(matrix, np.vstack([self.targets, no_sum]))[:-1]
            for part in self._centered(chosen.indices):
                # The penalty favors wide columns, but not enough: without their widths, rare words would come first.
                widths = np.sqrt(shares @ part**2) if sp.issparse(self.X) else 1.0
                weights = np.r_[weights, np.linalg.norm(part.T @ dual, axis=1) * widths]
        weights = np.maximum.reduceat(weights, chosen.offsets[:-1])
        return np.asarray(self.share * (weights - weights.mean()) / (weights.std() or 1.0))

    @cached_property
    def share(self) -> float:
        """The squared skill of the model on all units for left-out rows: 0 for guessing, 1 if it is always right.

        Skill is 1 - error / error of guessing the largest class. Weights of a model that predicts little are noise: on
        Madelon they would displace most informative features. Rows of a group, and copies of a row, are left out
        together.
        """
        with one_blas_thread():
            matrix, products = self._system(self.columns.indices)
            inverse = np.linalg.inv(matrix)[:-1, :-1]
        squares = products.diagonal()
        distances = squares[:, None] + squares - 2 * products
        first_copy = (distances <= COPY * (squares[:, None] + squares)).argmax(axis=1)
        labels = first_copy if self.groups is None else np.unique(self.groups, return_inverse=True)[1]
        order = np.argsort(labels, kind="stable")
        errors, dual = np.empty(self.targets.shape), inverse @ self.targets
        for rows in np.split(order, np.flatnonzero(np.diff(labels[order])) + 1):
            errors[rows] = np.linalg.solve(inverse[np.ix_(rows, rows)], dual[rows])
        weights = self.row_weights / self.row_weights.sum()
        error = weights @ ((self.targets - errors).argmax(axis=1) != self.targets.argmax(axis=1))
        return float(max(0.0, 1 - error / (1 - (weights @ self.targets).max())) ** 2)

    def _system(self, columns: NDArray[np.int32]) -> tuple[Floats, Floats]:
        """The equations for the coefficients of rows in a ridge model with an intercept; and the products of rows."""
        n_rows, weights = len(self.targets), self.row_weights
        products, matrix = np.zeros((n_rows, n_rows)), np.ones((n_rows + 1, n_rows + 1))
        for part in self._centered(columns):
            products += part @ part.T
        penalty = weights @ products.diagonal() / (weights.sum() * len(columns)) or 1.0  # the mean variance
        matrix[:-1, :-1] = products + np.diag(penalty / np.maximum(weights, NO_WEIGHT * weights.max()))
        matrix[-1, -1] = 0.0  # the last row makes the coefficients sum to 0
        return matrix, products

    def _centered(self, columns: NDArray[np.int32]) -> Iterator[Floats]:
        """These columns minus their means, some at a time."""
        for start in range(0, len(columns), PART):
            part = self.X[:, columns[start : start + PART]]
            part = np.asarray(part.toarray() if sp.issparse(part) else part, dtype=np.float64)
            yield part - self.row_weights @ part / self.row_weights.sum()


def with_weights(coefficients: Floats, ledger: Ledger, number: int) -> Floats:
    """Coefficients of the units of a round, plus the stored weight of each times their standard deviation."""
    stored = ledger.settings.get(WEIGHTS, [])
    if isinstance(stored, list) and number >= len(stored):
        return coefficients
    try:
        weights = np.frombuffer(base64.b64decode(stored[number], validate=True), "<f4").astype(np.float64)
    except (TypeError, ValueError, KeyError):
        weights = np.empty(0)
    if len(weights) != len(coefficients) or not np.isfinite(weights).all():
        raise LedgerError(f"the ledger {ledger.path} is damaged: its weights are impossible; restore a copy")
    is_known = ~np.isnan(coefficients)
    return coefficients + weights * (coefficients[is_known].std() if is_known.any() else 0.0)


def sizes_of_rounds(n_units: int, n_rounds: int | None = None, share: float = KEPT_SHARE) -> list[int]:
    """Number of units in each round; with fewer rounds than needed, more units are dropped in each."""
    sizes = [n_units]
    while sizes[-1] > N_LAST:
        sizes.append(max(N_LAST, int(share * sizes[-1])))
    if n_rounds is None or len(sizes) - 1 <= n_rounds:
        return sizes
    if not n_rounds:
        return [n_units]
    return [*sizes_of_rounds(n_units, share=(N_LAST / n_units) ** (1 / n_rounds))[:n_rounds], N_LAST]
