"""DAF, dependency-aware feature ranking: every feature judged in the company of random others."""

from __future__ import annotations

import math
import secrets
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .. import __version__
from ..criteria import as_criterion
from ..criteria.placed import BLOCK_SIZE, OnDevice
from ..engine import ProbeError, Run, history, run_probes, size_scaled_tally
from ..kernels.device import find
from ..ledger import Ledger, fingerprint, peek
from ..probes import ProbePlan
from ..progress import Verbose, live_progress
from ..regression import Regression
from ..stopping import MaxTime, Rule, Settled, as_rule
from ..tally import COEFFICIENTS
from .base import WrapperSelector
from .screening import ScreenedPlan, ScreenedScore, Screening, as_screen

DEFAULT_PROBE_SIZE = 200
DEFAULT_STOP: Rule = Settled(top=20, overlap=0.9) | MaxTime(60)


class DAF(WrapperSelector):
    """Ranks each feature by how much better random subsets are that hold it than those that do not.

    A probe is a random subset S of the features, J(S) the criterion on it, and

        DAF0(f) = mean of J over probes with f - mean of J over probes without f.

    So a feature earns its rank by what it adds to others, which a filter that looks at one feature at a
    time cannot see. The same seed gives the same result for any number and kind of workers.

    Parameters
    ----------
    n_features_to_select : how many features to keep: a number, a share in (0, 1], or None for half. May be
        changed after ``fit``.
    criterion : what J is: "auto" (k-NN for dense data of up to 5,000 rows, a linear classifier for sparse or taller
        data), a name ("knn", "linear", "naive_bayes", "svm", "tree", "separability"), a criterion of
        `probewise.criteria`, a scikit-learn estimator (scored by ``scoring`` and ``cv``), or a function of
        (X_subset, y).
    coefficient : "daf0"; "daf1", divided by the spread of J (more cautious about features that behave
        unstably); "daf2", J first divided by its spread among probes of equal size; "regression", ridge regression
        of J on which features are in the probe, so that a feature is not credited with the luck of its companions.
    max_probe_size : largest probe, tau; sizes are uniform in 1..tau. Too small hides what works only
        together, too large blurs the single feature. None: 200, the papers' value for wide data, or the number
        of features if that is less.
    inclusion : if given, every feature is in a probe with this probability instead.
    screen : probe only the features that a cheap method ranks best: how many pass, a number or a share in (0, 1], by
        `FSDD` (of a number y in five groups); or a selector, which lets pass what it selects; or a pair of a selector
        and how many pass. None: all are probed. For far more than 100,000 features; see Notes for what it can lose.
    narrow : reserved; None.
    stop : when to stop, a rule of `probewise.stopping`; rules join by ``|`` and ``&``. None: when two
        halves of the probes agree on 90 % of the top 20, or after a minute: ``Settled(20, 0.9) | MaxTime(60)``.
    check_every : probes between two looks at the convergence measures.
    block_size : probes per unit of work, a divisor of ``check_every``; a time limit is kept to within one
        block. None: the criterion's own choice (50 for built-in criteria, 5 for estimators and functions).
    cv : folds for the criterion: a number (stratified for classes), a splitter, or an iterable of splits.
        Fixed once per fit.
    scoring : score for an estimator given as criterion.
    error_score : what to do where the criterion raises or gives no finite number: "raise", or go on with this number
        as J of that probe; a ``FitFailedWarning`` at the end says how many there were.
    device : where the criterion runs: "cpu"; "cuda", a GPU, or "cuda:1", the second; "auto", a GPU if there is one and
        the criterion can use it; "torch-cpu", the GPU's code without one. All but "cpu" need torch, the extra ``gpu``.
    n_jobs : workers; None is 1, -1 all cores. ``joblib.parallel_config`` chooses the kind.
    ledger : a file that keeps the run: one number per probe. If it holds this run already, the run goes on
        from there, and ends as if it had never stopped.
    random_state : an int for a result that can be repeated.
    verbose : 1 shows live progress, in a terminal or a notebook; or a function, called now and then with a line of
        text that says where the run stands.

    Attributes
    ----------
    scores_ : array (n_features,), the coefficient; NaN for a feature never in, or never out of, a probe, as are
        those that did not pass the screen.
    std_errors_ : array (n_features,), Welch's standard error of the coefficient.
    ranking_ : array (n_features,), 1 is best; ties to the lower column, NaN last. Features that did not pass the
        screen come behind all that did, in the order of the screen.
    support_ : array (n_features,), which features are selected.
    passed_ : array (n_features,), which features passed the screen and are probed; all, without one.
    screen_ : the `Screening`: the columns ``passed``, the ``rest`` best first; None where everything passed.
    n_probes_ : probes scored.
    history_ : dict of arrays, one entry per look: probes, seconds, order_change (C), value_change (C2),
        relative_change, left_out. Replayed from the ledger when first asked for.
    stop_reason_ : why it stopped, in words.
    ledger_ : the `Ledger`; ``ledger_.values()`` are J of probe 0, 1, ...
    tally_ : the `Tally`; ``tally_.counts`` says how often each feature was probed.
    plan_ : the `ProbePlan`; ``plan_.probe(i)`` is probe i.
    criterion_ : the criterion used.

    Notes
    -----
    Ctrl-C ends the run with the ranking so far and a ``ConvergenceWarning``, and so does a ledger that cannot be
    written any more.

    A screen that looks at one feature at a time, as `FSDD` does, lets features that tell something only together
    pass no more often than noise: at a cut of a tenth, nine in ten of them are lost. `ReliefF` as the screen keeps
    more where there are few features for the rows. The screen sees the same rows as the probes, in every ``fit``.

    Departures: eq. 14 of the paper is read as the mean over probes without f. In DAF2 a size with fewer
    than 30 probes pools its neighbours. C and C2 are of DAF0 whatever the coefficient.

    References
    ----------
    P. Somol, J. Grim, *Fast dependency-aware feature selection in very-high-dimensional pattern recognition
    problems*, research report 2295, UTIA, 2011, eq. 5-16. P. Somol, J. Grim, J. Filip, P. Pudil, *On stopping
    rules in dependency-aware feature ranking*, CIARP 2013.

    Examples
    --------
    >>> from probewise import DAF
    >>> from probewise.datasets import make_madelon
    >>> from probewise.stopping import MaxProbes
    >>> data = make_madelon(n_samples=300, n_features=50, random_state=0)
    >>> daf = DAF(20, stop=MaxProbes(1000), random_state=0).fit(data.X, data.y)
    >>> daf.n_probes_, daf.stop_reason_
    (1000, 'the limit of 1,000 probes was reached')
    >>> int(daf.support_[data.informative].sum()) >= 15
    True
    """

    _history: dict[str, NDArray[Any]] | None

    def __init__(
        self,
        n_features_to_select: Any = None,
        *,
        criterion: Any = "auto",
        coefficient: str = "daf0",
        max_probe_size: int | None = None,
        inclusion: float | None = None,
        screen: Any = None,
        narrow: None = None,
        stop: Any = None,
        check_every: int = 400,
        block_size: int | None = None,
        cv: Any = 3,
        scoring: Any = None,
        error_score: Any = "raise",
        device: str = "cpu",
        n_jobs: int | None = None,
        ledger: Any = None,
        random_state: Any = None,
        verbose: Verbose = 0,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.criterion = criterion
        self.coefficient = coefficient
        self.max_probe_size = max_probe_size
        self.inclusion = inclusion
        self.screen = screen
        self.narrow = narrow
        self.stop = stop
        self.check_every = check_every
        self.block_size = block_size
        self.cv = cv
        self.scoring = scoring
        self.error_score = error_score
        self.device = device
        self.n_jobs = n_jobs
        self.ledger = ledger
        self.random_state = random_state
        self.verbose: Any = verbose

    def fit(self, X: Any, y: Any = None, *, groups: Any = None) -> DAF:
        """Probe until the stopping rule says enough. ``groups`` goes to the splitter."""
        stop = self._checked_parameters()
        X, y = self._checked(X, y)
        self.criterion_ = as_criterion(self.criterion, X)
        self.screen_ = self._screening(X, y)
        seen, columns = (X, None) if self.screen_ is None else self.screen_.seen(X)
        score = self._bound(self.criterion_, seen, y, groups)
        self._on_device = isinstance(score, OnDevice)
        self.plan_ = self._plan(X.shape[1])
        self._block = self._block_size()
        with (
            self._open_ledger(X, y, score.folds) as ledger,
            live_progress(self.verbose, self._names_probed()) as progress,
            self._told_how_to_see_it_again(groups),
        ):
            run = run_probes(
                self._plan_among_passed,
                score if columns is None else ScreenedScore(score, columns),
                stop=stop,
                map=self._map(self.criterion_, X, score),
                ledger=ledger,
                block_size=self._block,
                check_every=self.check_every,
                error_score=None if self.error_score == "raise" else float(self.error_score),
                progress=progress,
            )
        del score  # it may hold some numbers of every feature
        self._take(run)
        return self

    def coefficients(self, name: str) -> NDArray[np.float64]:
        """Another coefficient of the same run, replayed from the ledger."""
        check_is_fitted(self, "tally_")
        return self._coefficient(name)[0]

    @property
    def history_(self) -> dict[str, NDArray[Any]]:
        """C, C2, relative C2 and the features left out, at every look."""
        check_is_fitted(self, "ledger_")
        if self._history is None:
            plan = self._plan_among_passed
            self._history = history(plan, self.ledger_, block_size=self._block, check_every=self.check_every)
        return self._history

    def _take(self, run: Run) -> None:
        self.ledger_ = run.ledger
        self.tally_ = run.tally if self.screen_ is None else self.screen_.spread(run.tally)
        self.n_probes_, self.stop_reason_ = run.tally.n_probes, run.stop_reason
        self._history = None
        scores, self.std_errors_ = self._coefficient(self.coefficient)
        self._keep(scores)
        self.passed_ = np.full(len(scores), self.screen_ is None)
        if self.screen_ is not None:
            self.passed_[self.screen_.passed] = True
            self.ranking_ = self.screen_.ranking(scores)
        if run.interrupted:
            warnings.warn(f"DAF was {run.stop_reason}: this is the ranking so far", ConvergenceWarning, stacklevel=3)

        self._tell_of_failures()

    def _tell_of_failures(self) -> None:
        failures = self.ledger_.failures
        if failures is None:
            return
        told = f"the criterion failed on {len(failures.probes):,} of {self.n_probes_:,} probes, the first time on "
        told += f"{failures.first}"
        if len(failures.probes) == self.n_probes_:
            raise ValueError(f"{told}; with no J but error_score={failures.error_score} there is nothing to rank by")
        warnings.warn(f"{told}; their J is error_score={failures.error_score}", FitFailedWarning, stacklevel=4)

    @contextmanager
    def _told_how_to_see_it_again(self, groups: Any) -> Iterator[None]:
        """A failed probe in terms of what the user has at hand."""
        try:
            yield
        except ProbeError as error:
            data = "np.asarray(X)" if hasattr(self, "feature_names_in_") else "X"
            options = "" if groups is None else ", groups=groups"
            options += "" if self.scoring is None else ", scoring=daf.scoring"
            probe = error.failure.probe
            error.again = f"daf.criterion_.bind({data}, y, daf.cv{options})(daf.plan_.draw({probe}, {probe + 1}))"
            raise

    def _coefficient(self, name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The coefficient of every feature and its standard error."""
        if name == "daf0":
            return self.tally_.daf0(), self.tally_.std_errors()
        if name == "daf1":
            return self.tally_.daf1(), self.tally_.std_errors("daf1")
        if name == "daf2":
            scaled = size_scaled_tally(self.plan_, self.ledger_)
            return scaled.daf0(), scaled.std_errors()
        if name == "regression":
            fitted = Regression.of(self._plan_among_passed, self.ledger_)
            return self._spread_over_all(fitted.coefficients), self._spread_over_all(fitted.std_errors)
        raise ValueError(f"coefficient={name!r} is not known: choose one of {', '.join(COEFFICIENTS)}")

    def _spread_over_all(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values of the features that passed, with NaN for the rest."""
        if self.screen_ is None:
            return values
        out = np.full(self.screen_.n_features, np.nan)
        out[self.screen_.passed] = values
        return out

    def _checked_parameters(self) -> Rule:
        """Refuse what cannot be meant before any work is done."""
        if self.coefficient not in COEFFICIENTS:
            raise ValueError(f"coefficient={self.coefficient!r} is not known: choose one of {', '.join(COEFFICIENTS)}")
        if self.narrow is not None:
            raise ValueError(f"narrow={self.narrow!r}: this version knows only None")
        find(self.device)
        for name, least in (("max_probe_size", 1), ("check_every", 1), ("block_size", 1)):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or value != int(value) or value < least):
                raise ValueError(f"{name}={value!r} must be a whole number of at least {least}")
        if self.error_score != "raise" and not _is_finite_number(self.error_score):
            raise ValueError(f"error_score={self.error_score!r} must be 'raise' or a finite number, which becomes J")
        if self.inclusion is not None and not 0 < self.inclusion < 1:
            raise ValueError(f"inclusion={self.inclusion!r} must be a probability above 0 and below 1")
        if self.screen is not None:
            as_screen(self.screen)
        if self.block_size is not None and self.check_every % self.block_size:
            raise ValueError(
                f"block_size={self.block_size} must divide check_every={self.check_every}, "
                "so that looks fall on block borders"
            )
        return as_rule(DEFAULT_STOP if self.stop is None else self.stop)

    def _block_size(self) -> int:
        """The one given, or the largest divisor of check_every up to the criterion's own choice."""
        if self.block_size is not None:
            return self.block_size
        largest = min(BLOCK_SIZE if self._on_device else self.criterion_.block_size, self.check_every)
        return next(size for size in range(largest, 0, -1) if self.check_every % size == 0)

    def _screening(self, X: Any, y: Any) -> Screening | None:
        if self.screen is None:
            return None
        return Screening.of(self.screen, X, y, criterion=self.criterion_, n_jobs=self.n_jobs)

    @property
    def _plan_among_passed(self) -> ProbePlan:
        """The plan as the run sees it, which knows of no features but those that passed."""
        return self.plan_.within if isinstance(self.plan_, ScreenedPlan) else self.plan_

    def _plan(self, n_features: int) -> ProbePlan:
        size = DEFAULT_PROBE_SIZE if self.max_probe_size is None else int(self.max_probe_size)
        if self.screen_ is not None:
            return self.screen_.plan(size, self.inclusion, self._seed())
        return ProbePlan(n_features, min(size, n_features), self.inclusion, self._seed())

    def _seed(self) -> int:
        """The seed asked for; without one, the ledger's if it has a run, else a new one."""
        if self.random_state is None:
            kept = None if self.ledger is None else peek(self.ledger, "seed")
            return secrets.randbits(32) if kept is None else int(kept)
        if isinstance(self.random_state, int | np.integer):
            check_random_state(self.random_state)  # scikit-learn's bounds and message
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _open_ledger(self, X: Any, y: Any, folds: Any) -> Ledger:
        if self.ledger is None:
            return Ledger()
        settings = {
            "seed": self.plan_.seed,
            "shape": list(X.shape),
            "max_probe_size": self.plan_.max_size,
            "inclusion": self.inclusion,
            "criterion": ("on a device: " if self._on_device else "") + self.criterion_.describe(),
            "scoring": None if self.scoring is None else str(self.scoring),
            "data": fingerprint(X),
            "target": None if y is None else fingerprint(y),
            "folds": fingerprint(*(part for split in folds.splits for part in split)),
            "screen": None,
        }
        notes = {"feature_names": self._names(), "version": __version__, "block_size": self._block}
        notes["check_every"] = self.check_every
        if self.screen_ is not None:
            settings |= self.screen_.settings
            notes |= self.screen_.notes
        return Ledger(self.ledger, settings, notes=notes)

    def _names_probed(self) -> list[str] | None:
        """Names of the features as the run numbers them."""
        names = self._names()
        if self.screen_ is None:
            return names
        return [str(column) if names is None else names[column] for column in self.screen_.passed.tolist()]

    def _names(self) -> list[str] | None:
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else [str(name) for name in names]


def _is_finite_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
