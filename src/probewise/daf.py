"""DAF, dependency-aware feature ranking: every feature judged in the company of random others."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from ._probing import ProbingSelector, Rounds
from .engine.run import require_coefficient
from .engine.settings import DEFAULT_PROBE_SIZE
from .engine.units import Units
from .evaluation.size_curve import checked_size_curve_of
from .stopping import MaxTime, Rule, Settled, as_rule
from .validation.errors import ParameterError, warn
from .validation.parameters import require_rate, require_whole

HOW_MANY = ("stands_out", "size")
USUAL_TOP, USUAL_SECONDS = 20, 60
DEFAULT_STOP: Rule = Settled(top=USUAL_TOP, overlap=0.9) | MaxTime(USUAL_SECONDS)


@dataclass(eq=False, repr=False)
class DAF(ProbingSelector):
    """Ranks each feature by how much better random subsets are that hold it than those that do not.

    A probe is a random subset S of the features, J(S) the criterion on it, and

        DAF0(f) = mean of J over probes with f - mean of J over probes without f.

    So a feature earns its rank by what it adds to others, which a filter that looks at one feature at a
    time cannot see. The same seed gives the same result for any number and kind of workers.

    Parameters
    ----------
    n_features_to_select : int, float, "auto" or None, default=None
        How many features to keep: a number, a share in (0, 1], half, or found by ``fit`` as ``how_many`` says. A group
        counts as one. May be changed after ``fit``.
    criterion : str, Criterion, estimator or callable, default="auto"
        What J is: k-NN for dense data of up to 5,000 rows, a linear classifier for sparse or taller data; "knn",
        "linear", "naive_bayes", "svm", "tree", "separability"; a criterion of `probewise.criteria`; a scikit-learn
        estimator (scored by ``scoring`` and ``cv``); or a function of (X_subset, y).
    coefficient : {"daf0", "daf1", "daf2", "daf0_centred", "daf2_centred", "regression"}, default="daf0"
        "daf1" is divided by the deviation of J (more cautious about features that behave unstably); for "daf2" J is
        first divided by its deviation among probes of equal size; for the centred ones J is first less the mean of
        probes of like size, so that a feature is not credited with the sizes it met; "regression" is ridge regression
        of J on which features are in the probe, so that it is not credited with the luck of its companions either.
    max_probe_size : int or None, default=None
        Largest probe, tau; sizes are uniform in 1..tau. Too small hides what works only together, too large blurs the
        single feature. None: 200, the papers' value for wide data, or the number of features if that is less.
    inclusion : float or None, default=None
        If given, every feature is in a probe with this probability instead.
    feature_groups : list of lists, dict of lists or list of labels, default=None
        Features that enter and leave probes as one, and share score and rank. Columns are given by name or number,
        here and below.
    keep, drop : list of columns, default=None
        Those in every probe and always selected, and those in none and never selected.
    categorical_features : "from_dtype", list of columns or None, default="from_dtype"
        Columns that are categories, of text or numbers: each enters as a whole, a column of 0 and 1 for every level.
        "from_dtype": those a frame has as such; a list: these, too.
    scale : {"standard", "rank", "auto"} or None, default=None
        What columns are brought to before they are probed: deviation 1 (sparse ones to a largest value of 1), or ranks;
        "auto" is "standard" where a column's deviation is ten times or a tenth of the usual one and the table is in
        memory, up to 1 GiB. Distances and penalties go by the width of columns, so that with None wide ones count more.
        It takes a copy of X.
    how_many : {"stands_out", "size"}, default="stands_out"
        What "auto" keeps: the features that stand out, which beat luck on other rows; or as many as the size curve
        suggests.
    fdr : float, default=0.1
        The share of false ones among those kept that is allowed, on average. May be changed after ``fit``.
    min_features_to_select : int, default=1
        What "auto" keeps at least, of the best, where fewer stand out; a warning says so.
    stop : Rule, default=None
        When to stop, a rule of `probewise.stopping`; rules join by ``|`` and ``&``. None: when two halves of the
        probes agree on 90 % of the top 20, or after a minute: ``Settled(20, 0.9) | MaxTime(60)``.
    check_every : int, default=400
        Probes between two looks at the convergence measures.
    block_size : int or None, default=None
        Probes per unit of work, a divisor of ``check_every``; a time limit is kept to within one block. None: the
        criterion's own choice (50 for built-in criteria, 5 for estimators and functions).
    cv : int, splitter or iterable of splits, default=3
        Folds for the criterion, stratified for classes. Fixed once per fit.
    scoring : str, callable or None, default=None
        The score that J is, by scikit-learn's name or as a scorer made by ``make_scorer``. Built-in criteria take those
        of predictions (labels, numbers, or the decisions of two classes): "balanced_accuracy", "f1", "roc_auc",
        "neg_mean_absolute_error" and so on, the usual ones at full speed; an estimator given as criterion takes all.
        Of a score that is no mean over rows only J is known, and errors are about probes. None: accuracy, R^2, or the
        estimator's own.
    error_score : "raise" or float, default="raise"
        Where the criterion raises or gives no finite number, go on with this number as J of that probe; a
        ``FitFailedWarning`` at the end says how many there were.
    device : str, default="cpu"
        Where the criterion runs: "cuda" is a GPU, "cuda:1" the second; "auto" a GPU if there is one and the criterion
        can use it; "torch-cpu" the GPU's code without one. All but "cpu" need torch, the extra ``gpu``.
    n_jobs : int or None, default=None
        Workers; None is 1, -1 all cores. ``joblib.parallel_config`` chooses the kind.
    ledger : path or None, default=None
        A file that keeps the run: one number per probe. If it holds this run already, the run goes on from there, and
        ends as if it had never stopped.
    random_state : int, RandomState or None, default=None
        An int for a result that can be repeated.
    row_effects : bool, default=True
        Whether to keep what each of up to 64 groups of rows gave to a probe, 128 bytes each: it says how far other rows
        may change the answer. False also leaves out the test for luck.
    verbose : int or callable, default=0
        1 shows live progress, in a terminal or a notebook; a function is called now and then with a line of text that
        says where the run stands.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        The coefficient; NaN for a feature never in, or never out of, a probe.
    std_errors_ : array of shape (n_features,)
        Standard error of the coefficient: ``row_std_errors_`` where known, else ``probe_std_errors_``.
    row_std_errors_ : array of shape (n_features,)
        Had other rows been drawn, and other probes. Only of criteria and scores that are a mean over rows.
    probe_std_errors_ : array of shape (n_features,)
        Had other probes of the same rows been drawn (Welch's).
    row_groups_ : array of shape (n_samples,) or None
        The group of each row, of which the run keeps what it gave; -1 for rows that J does not count.
    ranking_ : array of shape (n_features,)
        1 is best; ties to the lower column, NaN last.
    support_ : array of shape (n_features,)
        Which features are selected.
    p_values_ : array of shape (n_features,)
        P-values: univariate and conditional tests combined.
    size_curve_ : SizeCurve
        With ``how_many="size"``.
    n_probes_ : int
        Probes scored.
    history_ : dict of arrays
        One entry per look: probes, seconds, order_change (C), value_change (C2), relative_change, left_out. Replayed
        from the ledger when first asked for.
    stop_reason_ : str
        Why it stopped, in words.
    ledger_ : Ledger
        ``ledger_.values()`` are J of probe 0, 1, ...
    tally_ : Tally
        ``tally_.counts`` says how often each feature was probed.
    plan_ : ProbePlan
        ``plan_.probe(i)`` is probe i.
    run_ : Run
        All of these together, and what else can be replayed from them.
    criterion_ : Criterion
        The criterion used.

    Notes
    -----
    Ctrl-C ends the run with the ranking so far and a ``ConvergenceWarning``, and so does a ledger that cannot be
    written any more.

    For far more than 100,000 features, put a filter first: ``make_pipeline(FSDD(20_000), DAF())``. A filter that looks
    at one feature at a time loses features that are only informative together.

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

    _: KW_ONLY
    coefficient: str = "daf0"
    max_probe_size: int | None = None
    inclusion: float | None = None
    how_many: str = "stands_out"
    fdr: float = 0.1
    min_features_to_select: int = 1
    stop: Any = None
    check_every: int = 400
    block_size: int | None = None

    def fit(self, X: Any, y: Any = None, *, groups: Any = None, sample_weight: Any = None) -> DAF:
        """Probe until the stopping rule says enough.

        ``groups`` goes to the splitter. ``sample_weight`` counts in the score, and in the fit of a model that knows
        weights: `Linear`, `NaiveBayes`, `Tree`, or an estimator; for `KNN` in the score only. The univariate test
        leaves out rows of weight 0.
        """
        self._check_parameters()
        if hasattr(self, "size_curve_"):
            del self.size_curve_
        self._probe(X, y, default_size=DEFAULT_PROBE_SIZE, groups=groups, sample_weight=sample_weight)
        if self.stop is None and not self.run_.interrupted and "settled" not in (self.run_.stop_reason or ""):
            message = f"{USUAL_SECONDS} s were over before the top {USUAL_TOP} had settled: more probes may change it"
            warn(message, ConvergenceWarning)
        if self._is_auto and self.how_many == "size":
            self._find_by_size(X, y, groups, sample_weight)
        elif self._is_auto:
            self._warn_of_none()
        return self

    def _check_parameters(self) -> None:
        require_coefficient(self.coefficient, in_rounds=False)
        self._stop_rule(0)
        if self.how_many not in HOW_MANY:
            raise ParameterError(f"how_many={self.how_many!r}: choose one of {', '.join(HOW_MANY)}")
        require_rate("fdr", self.fdr)
        require_whole("min_features_to_select", self.min_features_to_select, 0)
        if self._is_auto and self.how_many == "stands_out" and not self.row_effects:
            raise ParameterError("row_effects=False computes no p-values: use how_many='size'")
        self._check_probing_parameters()

    @property
    def _is_auto(self) -> bool:
        return isinstance(self.n_features_to_select, str) and self.n_features_to_select == "auto"

    def _stop_rule(self, n_rows: int) -> Rule:
        return as_rule(DEFAULT_STOP if self.stop is None else self.stop)

    def _rounds(self, X: Any, y: Any, units: Units, on_device: bool) -> Rounds:
        block_size = self.block_size
        if block_size is None:  # the largest divisor of check_every up to the criterion's own choice
            largest = min(self._usual_block(on_device), self.check_every)
            block_size = next(size for size in range(largest, 0, -1) if self.check_every % size == 0)
        return Rounds(self.check_every, block_size)

    # ---- how many

    def _warn_of_none(self) -> None:
        if not self.stands_out(self.fdr).any():
            kept = self.min_features_to_select
            warn(
                f"no feature stands out at a false-discovery rate of {self.fdr:g}: "
                + (f"the best {kept} kept may be luck" if kept else "none is kept")
                + "; give more probes, a larger fdr, or a number of features"
                + ("" if self.keep is None else "; what keep names stays")
            )

    def _find_by_size(self, X: Any, y: Any, groups: Any, sample_weight: Any) -> None:
        self.size_curve_ = checked_size_curve_of(self, X, y, groups=groups, sample_weight=sample_weight)
        if self.size_curve_.beats_guessing is False:
            warn(
                "no number of features predicts convincingly better than guessing: the "
                f"{self.size_curve_.suggested} kept may be noise"
            )

    def _get_support_mask(self) -> NDArray[np.bool_]:
        if not self._is_auto:
            return super()._get_support_mask()
        check_is_fitted(self, "ranking_")
        if self.how_many == "stands_out":
            selected = self.stands_out(self.fdr) | (self.ranking_ <= self.min_features_to_select)
        elif hasattr(self, "size_curve_"):
            selected = self.ranking_ <= self.size_curve_.suggested
        else:
            raise ValueError("n_features_to_select='auto' was not asked for when fit: fit again, or give a number")
        selected[self.units_.kept], selected[self.units_.dropped] = True, False
        return selected

    def _n_selected(self, n_features: int) -> int:
        return n_features if self._is_auto else super()._n_selected(n_features)
