"""DAF, dependency-aware feature ranking: every feature judged in the company of random others."""

from __future__ import annotations

import math
import secrets
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning
from sklearn.utils import check_random_state
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_is_fitted, validate_data

from .. import __version__
from ..checks.labels import checked_weights
from ..checks.tables import are_categories, is_frame, kinds_of_columns, number_categories, require_plain
from ..criteria import as_criterion
from ..criteria.placed import BLOCK_SIZE, OnDevice
from ..kernels.device import find
from ..probing.certainty import Certainty
from ..probing.engine import ProbeError, Run, history, run_probes
from ..probing.interactions import Group, Interactions, interactions_of, redundancy_of
from ..probing.ledger import Ledger, fingerprint, peek
from ..probing.probes import PlanInRounds, ProbePlan, Subsets
from ..probing.progress import Verbose, live_progress
from ..probing.rounds import FEWEST_FEATURES, Narrowing, as_share
from ..probing.units import grouped, named_columns
from ..stopping import MaxTime, Rule, Settled, as_rule
from .base import WrapperSelector
from .outcome import DEFAULT_PROBE_SIZE, Outcome, checked_costs, require_coefficient
from .scene import Scene, one_hot, set_up
from .screening import Screening, as_screen
from .size_curve import checked_size_curve_of

LARGEST_IN_ROUNDS = 1000
DEFAULT_STOP: Rule = Settled(top=20, overlap=0.9) | MaxTime(60)


class DAF(WrapperSelector):
    """Ranks each feature by how much better random subsets are that hold it than those that do not.

    A probe is a random subset S of the features, J(S) the criterion on it, and

        DAF0(f) = mean of J over probes with f - mean of J over probes without f.

    So a feature earns its rank by what it adds to others, which a filter that looks at one feature at a
    time cannot see. The same seed gives the same result for any number and kind of workers.

    Parameters
    ----------
    n_features_to_select : how many features to keep: a number, a share in (0, 1], None for half, or "auto", found by
        ``fit`` as ``how_many`` says. A group counts as one. May be changed after ``fit``.
    criterion : what J is: "auto" (k-NN for dense data of up to 5,000 rows, a linear classifier for sparse or taller
        data), a name ("knn", "linear", "naive_bayes", "svm", "tree", "separability"), a criterion of
        `probewise.criteria`, a scikit-learn estimator (scored by ``scoring`` and ``cv``), or a function of
        (X_subset, y).
    coefficient : "daf0"; "daf1", divided by the spread of J (more cautious about features that behave
        unstably); "daf2", J first divided by its spread among probes of equal size; "regression", ridge regression
        of J on which features are in the probe, so that a feature is not credited with the luck of its companions.
    max_probe_size : largest probe, tau; sizes are uniform in 1..tau. Too small hides what works only
        together, too large blurs the single feature. None: 200, the papers' value for wide data (1,000 with
        ``narrow``, where smaller ones are mixed in), or the number of features if that is less.
    inclusion : if given, every feature is in a probe with this probability instead.
    screen : probe only the features that a cheap method ranks best: how many pass, a number or a share in (0, 1], by
        `FSDD` (of a number y in five groups); or a selector, which lets pass what it selects; or a pair of a selector
        and how many pass. None: all are probed. For far more than 100,000 features; see Notes for what it can lose.
    narrow : probe in rounds; after each keep this share of the features, the better part, as 0.6, and probe only those;
        "auto": 0.6. A round ends when two halves of it agree, so that nothing is dropped without evidence; with few
        probes there may be one round only. What left ranks behind what stayed. With "daf0" or "regression" only. None:
        all features to the end.
    feature_groups : features that enter and leave probes as one, and share score and rank: lists of columns, a dict of
        lists, or a label for each feature. Columns are given by name or number, here and below.
    keep, drop : columns that are in every probe and always selected, and such that are in none and never are.
    costs : rank by benefit per cost: an array, or a dict of those that are not 1. The benefit is what a score is above
        the middle one; below it, what it lacks counts times the cost.
    categorical_features : columns that are categories, of text or numbers: each enters as a whole, a column of 0 and 1
        for every level. "from_dtype": those a frame has as such; a list: these, too; None: none.
    how_many : what "auto" keeps: "decoys", the features that beat shuffled copies of features, which take part in the
        probes; "size", as many as the size curve suggests.
    fdr : with decoys, the share of false ones among those kept that is allowed, on average. May be changed after
        ``fit``.
    stop : when to stop, a rule of `probewise.stopping`; rules join by ``|`` and ``&``. None: when two
        halves of the probes agree on 90 % of the top 20, or after a minute: ``Settled(20, 0.9) | MaxTime(60)``.
    check_every : probes between two looks at the convergence measures.
    block_size : probes per unit of work, a divisor of ``check_every``; a time limit is kept to within one
        block. None: the criterion's own choice (50 for built-in criteria, 5 for estimators and functions).
    cv : folds for the criterion: a number (stratified for classes), a splitter, or an iterable of splits.
        Fixed once per fit.
    scoring : the score that J is: of built-in criteria "accuracy", "balanced_accuracy", "f1_macro" or "roc_auc" for
        classes (the area under the curve, of two classes), "r2" or "neg_mean_squared_error" for numbers; of an
        estimator given as criterion what scikit-learn knows. None: accuracy, R^2, or the estimator's own.
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
    p_values_ : array (n_features,), with decoys: the chance that luck gives a score as high.
    size_curve_ : with ``how_many="size"``: the `SizeCurve`.
    n_probes_ : probes scored.
    history_ : dict of arrays, one entry per look: probes, seconds, order_change (C), value_change (C2),
        relative_change, left_out. Replayed from the ledger when first asked for. With ``narrow`` also left_in_round,
        for each feature the number of the round after which it left, 0 if it stayed.
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
    _kept: NDArray[np.int32]
    _dropped: NDArray[np.int32]

    def __init__(
        self,
        n_features_to_select: Any = None,
        *,
        criterion: Any = "auto",
        coefficient: str = "daf0",
        max_probe_size: int | None = None,
        inclusion: float | None = None,
        screen: Any = None,
        narrow: Any = None,
        feature_groups: Any = None,
        keep: Any = None,
        drop: Any = None,
        costs: Any = None,
        categorical_features: Any = "from_dtype",
        how_many: str = "decoys",
        fdr: float = 0.1,
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
        self.feature_groups = feature_groups
        self.keep = keep
        self.drop = drop
        self.costs = costs
        self.categorical_features = categorical_features
        self.how_many = how_many
        self.fdr = fdr
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

    def fit(self, X: Any, y: Any = None, *, groups: Any = None, sample_weight: Any = None) -> DAF:
        """Probe until the stopping rule says enough.

        ``groups`` goes to the splitter. ``sample_weight`` counts in the score, and in the fit of a model that knows
        weights: `Linear`, `NaiveBayes`, `Tree`, or an estimator; for `KNN` in the score only. A screen knows none.
        """
        stop = self._checked_parameters()
        given = X
        X, y = self._checked(X, y)
        self.criterion_, self._run_seed = as_criterion(self.criterion, X), self._seed()
        scene = self._scene(X, y)
        score = self._bound(self.criterion_, scene.matrix, y, groups, sample_weight)
        self._on_device = isinstance(score, OnDevice)
        self._block = self._block_size()
        self._rounds = self._narrowing()
        within = self._plan(scene)
        self.plan_, self.units_ = scene.plan(within), scene.units
        self._n_selected(self._n_ranks)
        with (
            self._open_ledger(X, y, score.folds, sample_weight) as ledger,
            live_progress(self.verbose, self._names_probed()) as progress,
            self._told_how_to_see_it_again(groups, sample_weight),
        ):
            run = run_probes(
                within,
                scene.asking(score),
                stop=stop,
                map=self._map(self.criterion_, scene.matrix, score),
                ledger=ledger,
                block_size=self._block,
                check_every=self.check_every,
                error_score=None if self.error_score == "raise" else float(self.error_score),
                progress=progress,
                narrow=self._rounds,
            )
        del score, scene  # they may hold some numbers of every feature
        self._take(run)
        self._find_how_many(given, y, groups, sample_weight)
        return self

    def coefficients(self, name: str) -> NDArray[np.float64]:
        """Another coefficient of the same run, replayed from the ledger."""
        check_is_fitted(self, "tally_")
        return self._coefficient(name)[0]

    def certainty(self, coefficient: str | None = None) -> Certainty:
        """How sure the ranking is: intervals of coefficients and ranks, and the chance to be in the true top k.

        Of the coefficient of the run, or another one. True is what endless probes of the same data would give. For
        "daf2" that is with J scaled by the spreads found so far; "regression" is shrunken, and its intervals are of
        what the penalty leaves: they say how steady the number is, not how large the effect. Features that were not
        probed, or not up to the last round of narrowing, are NaN; costs play no part, and those of a group count one
        by one.
        """
        check_is_fitted(self, "tally_")
        return self._outcome.certainty(coefficient or self.coefficient)

    def interactions(self, top: int = 20) -> Interactions:
        """What the first ``top`` features do in pairs, by the ledger: which help, and which replace each other."""
        return interactions_of(self, top)

    def redundancy(self, X: Any = None, top: int = 20) -> list[Group]:
        """Groups among the first ``top`` features that stand in for one another, the best of each group first.

        By the probes: what one is worth is gone where the other is. With X, the data of ``fit``, also by the columns:
        those that are nearly the same (|correlation| of 0.9 and more).
        """
        return redundancy_of(self, X, top)

    @property
    def history_(self) -> dict[str, NDArray[Any]]:
        """C, C2, relative C2 and the features left out, at every look; and the round in which each feature left."""
        check_is_fitted(self, "ledger_")
        if self._history is None:
            narrow, first = self._rounds, self._within
            if isinstance(first, PlanInRounds):
                first = replace(first, later=())
            options: dict[str, Any] = {"block_size": self._block, "check_every": self.check_every, "narrow": narrow}
            self._history = history(first, self.ledger_, **options)
            if narrow is not None:
                self._history["left_in_round"] = self._outcome.rounds_left()
        return self._history

    @property
    def _within(self) -> ProbePlan:
        """The plan as the run sees it, which numbers units."""
        return getattr(self.plan_, "within", self.plan_)

    def _take(self, run: Run) -> None:
        self._outcome = outcome = Outcome(run.plan, run.ledger, run.tally, self.units_, self.screen_)
        self.plan_, self.ledger_, self.tally_ = outcome.plan, run.ledger, outcome.tally_of_features
        self.n_probes_, self.stop_reason_ = run.tally.n_probes, run.stop_reason
        self._history = None
        scores, errors = outcome.coefficient(self.coefficient)
        self.scores_, self.std_errors_ = outcome.spread(scores), outcome.spread(errors)
        self.ranking_ = outcome.ranking(scores, self._checked_costs())
        self.passed_ = np.ones(self.n_features_in_, dtype=bool)
        if self.screen_ is not None:
            self.passed_ = np.isin(np.arange(self.n_features_in_), self.screen_.passed)
        self.passed_[self._kept], self.passed_[self._dropped] = True, False
        if run.interrupted:
            warnings.warn(f"DAF was {run.stop_reason}: this is the ranking so far", ConvergenceWarning, stacklevel=3)
        self._tell_of_failures()

    def _find_how_many(self, X: Any, y: Any, groups: Any, sample_weight: Any) -> None:
        """What ``n_features_to_select="auto"`` means for these data."""
        for name in ("p_values_", "size_curve_"):
            if hasattr(self, name):
                delattr(self, name)
        if self.n_features_to_select != "auto":
            return
        if self.how_many == "size":
            self.size_curve_ = checked_size_curve_of(self, X, y, groups=groups, sample_weight=sample_weight)
            if self.size_curve_.beats_guessing is False:
                warnings.warn(
                    "no number of features predicts convincingly better than guessing: the "
                    f"{self.size_curve_.suggested} kept may be noise",
                    UserWarning,
                    stacklevel=3,
                )
            return
        self.p_values_ = self._outcome.chances(self._outcome.coefficient(self.coefficient)[0])
        if not self._discovered().any():
            warnings.warn(
                f"no feature beats the decoys at a false-discovery rate of {self.fdr:g}: none is kept; give more "
                "probes, a larger fdr, or a number of features"
                + ("" if self.keep is None else "; what keep names stays"),
                UserWarning,
                stacklevel=3,
            )

    def _discovered(self) -> NDArray[np.bool_]:
        """Which features beat the decoys."""
        return self._outcome.discovered(self.p_values_, self.fdr)

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self, "ranking_")
        if not self._is_auto:
            kept = self.ranking_ <= self._n_selected(self._n_ranks)
        elif hasattr(self, "p_values_"):
            kept = self._discovered()
        elif hasattr(self, "size_curve_"):
            kept = self.ranking_ <= self.size_curve_.suggested
        else:
            raise ValueError("n_features_to_select='auto' was not asked for when fit: fit again, or give a number")
        if self.units_ is None:
            return kept
        kept[self.units_.always] = True
        kept[self._dropped] = False
        return kept

    def _n_selected(self, n_features: int) -> int:
        if self._is_auto:
            return n_features
        asked, n_kept = super()._n_selected(n_features), 0 if self.keep is None else len(self._kept)
        if asked < n_kept:
            raise ValueError(
                f"n_features_to_select={self.n_features_to_select!r} is less than the {n_kept} features of keep: "
                "give at least as many"
            )
        return asked

    @property
    def _n_ranks(self) -> int:
        """How many can be selected: a group counts as one, what is dropped not at all."""
        units = self.units_
        if units is None:
            return int(self.n_features_in_)
        in_groups = int(units.members.offsets[units.n_real]) - units.n_real
        return int(self.n_features_in_) - in_groups - len(self._dropped)

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
    def _told_how_to_see_it_again(self, groups: Any, sample_weight: Any) -> Iterator[None]:
        """A failed probe in terms of what the user has at hand."""
        try:
            yield
        except ProbeError as error:
            data = "np.asarray(X)" if hasattr(self, "feature_names_in_") else "X"
            options = "" if groups is None else ", groups=groups"
            options += "" if self.scoring is None else ", scoring=daf.scoring"
            options += "" if sample_weight is None else ", sample_weight=sample_weight"
            probe = error.failure.probe
            error.again = f"daf.criterion_.bind({data}, y, daf.cv{options})(daf.plan_.draw({probe}, {probe + 1}))"
            if self._categorical.any() or self._makes_decoys:  # columns that X does not have
                error.again = "the same fit and n_jobs=1"
            raise

    def _coefficient(self, name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The coefficient of every feature and its standard error."""
        scores, errors = self._outcome.coefficient(name)
        return self._outcome.spread(scores), self._outcome.spread(errors)

    def _checked_parameters(self) -> Rule:
        """Refuse what cannot be meant before any work is done."""
        require_coefficient(self.coefficient, in_rounds=self.narrow is not None)
        self._check_combinations()
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

    def _check_combinations(self) -> None:
        if self.how_many not in ("decoys", "size"):
            raise ValueError(f"how_many={self.how_many!r}: choose 'decoys' or 'size'")
        if not _is_finite_number(self.fdr) or not 0 < self.fdr < 1:
            raise ValueError(f"fdr={self.fdr!r} must be a share above 0 and below 1")
        if self.narrow is not None:
            as_share(self.narrow)
            if self._makes_decoys:
                raise ValueError(
                    "n_features_to_select='auto' by decoys needs narrow=None, since decoys must stay to the end: "
                    "use how_many='size' with narrow"
                )
        if self.screen is not None and self._makes_decoys:
            raise ValueError(
                "n_features_to_select='auto' by decoys needs screen=None: what passed a screen is better than luck "
                "already, and decoys are not; use how_many='size' with screen"
            )

    @property
    def _is_auto(self) -> bool:
        return isinstance(self.n_features_to_select, str) and self.n_features_to_select == "auto"

    @property
    def _makes_decoys(self) -> bool:
        return self._is_auto and self.how_many == "decoys"

    def _narrowing(self) -> Narrowing | None:
        if self.narrow is None:
            return None
        asked = self.n_features_to_select
        is_number = asked is not None and not isinstance(asked, str)
        n_asked = super()._n_selected(self.n_features_in_) if is_number else 0
        return Narrowing(as_share(self.narrow), max(FEWEST_FEATURES, 2 * n_asked), self._block)

    def _block_size(self) -> int:
        """The one given, or the largest divisor of check_every up to the criterion's own choice."""
        if self.block_size is not None:
            return self.block_size
        largest = min(BLOCK_SIZE if self._on_device else self.criterion_.block_size, self.check_every)
        return next(size for size in range(largest, 0, -1) if self.check_every % size == 0)

    def _checked(self, X: Any, y: Any, *, reset: bool = True) -> tuple[Any, Any]:
        """Categories of a frame become numbers here, -1 where one is missing."""
        self._kept = np.empty(0, np.int32) if reset else self._kept
        X, found = self._numbered(X)
        X, y = super()._checked(X, y, reset=reset)
        if reset:
            self._categorical = self._which_categorical(found, X.shape[1])
        return X, y

    def _numbered(self, X: Any) -> tuple[Any, NDArray[np.bool_] | None]:
        """X with numbers for categories, and which columns of a frame they were in."""
        kinds = kinds_of_columns(X) if self.categorical_features is not None else None
        if kinds is None:
            return X, None
        asked, also = self.categorical_features, None
        if not isinstance(asked, str):
            names = np.array([str(name) for name in X.columns])
            also = named_columns(asked, "categorical_features", names, len(names))
        found = are_categories(kinds, also)
        return number_categories(X, -1, also)[0] if found.any() else X, found

    def transform(self, X: Any) -> Any:
        """The selected columns of X, categories as they are; of a table in a store no others are read."""
        check_is_fitted(self, "ranking_")
        numbers, found = self._numbered(X) if is_frame(X) else (X, None)
        if found is None or not found.any():
            return super().transform(X)
        require_plain(X)
        validate_data(self, numbers, dtype=None, ensure_all_finite=not self._takes_nan, reset=False)
        places = self.get_support(indices=True)
        chosen = X.iloc[:, places] if hasattr(X, "iloc") else X[:, places.tolist()]
        return np.asarray(chosen) if _get_output_config("transform", self)["dense"] == "default" else chosen

    def _as_judged(self, X: Any) -> tuple[Any, Subsets | None]:
        """What the criterion sees of X, and the columns of each feature in it; None: the one of its number."""
        names = getattr(self, "feature_names_in_", None)
        return one_hot(X, self._categorical, names) if self._categorical.any() else (X, None)

    def _which_categorical(self, found: NDArray[np.bool_] | None, n_features: int) -> NDArray[np.bool_]:
        asked = self.categorical_features
        if asked is None:
            return np.zeros(n_features, dtype=bool)
        if isinstance(asked, str):
            if asked != "from_dtype":
                raise ValueError(
                    f"categorical_features={asked!r}: give 'from_dtype', a list of columns, or None for no categories"
                )
            return np.zeros(n_features, dtype=bool) if found is None else found
        columns = named_columns(asked, "categorical_features", getattr(self, "feature_names_in_", None), n_features)
        return np.isin(np.arange(n_features), columns) | (False if found is None else found)

    def _scene(self, X: Any, y: Any) -> Scene:
        names, n_features = getattr(self, "feature_names_in_", None), X.shape[1]
        groups = [] if self.feature_groups is None else grouped(self.feature_groups, names, n_features)
        keep, drop = (
            named_columns([] if asked is None else asked, name, names, n_features)
            for name, asked in (("keep", self.keep), ("drop", self.drop))
        )
        self._kept, self._dropped, self._categorical[drop] = keep, drop, False
        self._checked_costs()
        self.screen_ = None
        if self.screen is not None:
            if groups or self._categorical.any():
                raise ValueError(
                    f"screen={self.screen!r} looks at one column at a time: it does not go with feature_groups or "
                    "categorical columns; leave out one of them"
                )
            self.screen_ = Screening.of(self.screen, X, y, criterion=self.criterion_, n_jobs=self.n_jobs)
        return set_up(
            X,
            categorical=self._categorical,
            groups=groups,
            keep=keep,
            drop=drop,
            screening=self.screen_,
            decoys_from=self._run_seed if self._makes_decoys else None,
            names=names,
        )

    def _checked_costs(self) -> NDArray[np.float64] | None:
        names = getattr(self, "feature_names_in_", None)
        return None if self.costs is None else checked_costs(self.costs, names, self.n_features_in_)

    def _plan(self, scene: Scene) -> ProbePlan:
        """The plan over units."""
        n_units = scene.n_units
        default = DEFAULT_PROBE_SIZE if self.narrow is None else LARGEST_IN_ROUNDS
        size = default if self.max_probe_size is None else int(self.max_probe_size)
        kind = ProbePlan if self.narrow is None else PlanInRounds
        return kind(n_units, min(size, n_units), self.inclusion, self._run_seed)

    def _seed(self) -> int:
        """The seed asked for; without one, the ledger's if it has a run, else a new one."""
        if self.random_state is None:
            kept = None if self.ledger is None else peek(self.ledger, "seed")
            return secrets.randbits(32) if kept is None else int(kept)
        if isinstance(self.random_state, int | np.integer):
            check_random_state(self.random_state)  # scikit-learn's bounds and message
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _open_ledger(self, X: Any, y: Any, folds: Any, sample_weight: Any = None) -> Ledger:
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
            "units": None,
            "narrow": None,
            "categorical": np.flatnonzero(self._categorical).tolist() or None,
        }
        weights = checked_weights(sample_weight, X.shape[0])
        settings["sample_weight"] = None if weights is None else fingerprint(weights)
        notes: dict[str, Any] = {"feature_names": self._names(), "version": __version__, "block_size": self._block}
        notes["check_every"] = self.check_every
        notes["cv"] = str(self.cv) if isinstance(self.cv, int | np.integer) or hasattr(self.cv, "split") else "splits"
        if self._rounds is not None:
            settings |= self._rounds.settings | {"narrow_looks": self.check_every}
        if self.screen_ is not None:
            settings |= self.screen_.settings
            notes |= self.screen_.notes
        if self.units_ is not None and not self._is_only_screened:
            settings |= self.units_.settings
            notes |= self.units_.notes
        costs = self._checked_costs()
        if costs is not None:
            notes["costs"] = costs.tolist()
        if self._makes_decoys:
            notes["fdr"] = self.fdr
        return Ledger(self.ledger, settings, notes=notes)

    @property
    def _is_only_screened(self) -> bool:
        """Whether the ledger's words about the screen say all about units."""
        parts = (self.feature_groups, self.keep, self.drop)
        return self.screen_ is not None and all(part is None for part in parts) and not self._makes_decoys

    def _names_probed(self) -> list[str] | None:
        """Names of the units as the run numbers them: a group by its first feature."""
        names, units = self._names(), self.units_
        if units is None:
            return names
        first = units.members.indices[units.members.offsets[:-1]].tolist()
        real = [str(column) if names is None else names[column] for column in first[: units.n_real]]
        return [*real, *("decoy" for _ in range(units.n_decoys))]

    def _told(self, names: Sequence[str]) -> list[str]:
        """What was said of features and what became of it, in sentences without their full stops."""
        found = (int((self._discovered()).sum()), self.fdr) if hasattr(self, "p_values_") else None
        return self._outcome.told(names, categorical=self._categorical, costs=self._checked_costs(), beaten=found)

    def _names(self) -> list[str] | None:
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else [str(name) for name in names]


def _is_finite_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
