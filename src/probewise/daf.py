"""DAF, dependency-aware feature ranking: each feature is judged together with random other features."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from ._probing import (
    SHARED_PARAMETERS,
    accepted_by,
    bind,
    criterion_or_default,
    new_settings,
    prepare,
    run_with,
    set_results,
    usual_block_size,
)
from ._selector import AUTO, Accepts, RunResultsMixin, Selector
from .criteria import as_criterion
from .engine.settings import DEFAULT_PROBE_SIZE, saved_settings
from .engine.tally import COEFFICIENTS
from .stopping import MaxTime, Rule, Settled, as_rule
from .validation.errors import warn
from .validation.parameters import SHARE, check_parameters, seed_of, whole_number

DEFAULT_TOP, DEFAULT_SECONDS = 20, 60
DEFAULT_STOP: Rule = Settled(top=DEFAULT_TOP, overlap=0.9) | MaxTime(DEFAULT_SECONDS)
STANDS_OUT = "stands_out"

PARAMETERS = {
    "coefficient": COEFFICIENTS,
    "max_probe_size": (None, whole_number(1)),
    "inclusion": (None, SHARE),
    "fdr": (SHARE,),
    "check_every": (whole_number(1),),
    **SHARED_PARAMETERS,
}


@dataclass(eq=False, repr=False)
class DAF(RunResultsMixin, Selector):
    """Ranks each feature by how much better random subsets with it score than random subsets without it.

    A probe is a random subset S of the features, J(S) is the criterion on it, and

        DAF0(f) = mean of J over probes with f - mean of J over probes without f.

    A feature is ranked by what it adds to other features, which a filter that looks at one feature at a time cannot
    see. The same seed gives the same result for any number and kind of workers.

    Parameters
    ----------
    n_features_to_select : int, float, "auto", "stands_out" or None, default=None
        Number of features to select: a number, a share in (0, 1], or None for half. "auto" selects the fewest features
        that predict held-out rows as well as the best number, by the one-standard-error rule, without near copies of
        better features; it takes several times as long. "stands_out" selects the features that are related to the
        target at the false discovery rate ``fdr``, and at least the best one. A group counts as one. May be changed
        after ``fit``, except to "auto".
    criterion : str, Criterion, estimator or callable, default="auto"
        The score J of a subset. "auto" is k-NN for dense data of up to 5,000 rows and a linear classifier for sparse
        or taller data. Also "knn", "linear", "naive_bayes", "svm", "tree", "separability"; a criterion of
        `probewise.criteria`; a scikit-learn estimator (scored by ``scoring`` and ``cv``); or a function of
        (X_subset, y).
    coefficient : {"daf0", "daf1", "daf2", "daf0_centered", "daf2_centered", "regression"}, default="daf0"
        "daf1" divides by the standard deviation of J, which is more cautious about features with unstable effects.
        "daf2" first divides J by its standard deviation among probes of equal size. The centered ones first subtract
        the mean of J over probes of similar size, so that a feature is not credited with the sizes of its probes.
        "regression" is a ridge regression of J on which features are in the probe, so that a feature is not credited
        with the other features of its probes either.
    max_probe_size : int or None, default=None
        Largest probe, tau; sizes are uniform in 1..tau. Small probes miss features that only help in combination, large
        ones blur single features. None: 200, the papers' value for wide data, or the number of features if smaller.
    inclusion : float or None, default=None
        Probability with which each feature enters a probe, independently of the others; it replaces ``max_probe_size``.
    feature_groups : list of lists, dict of lists or list of labels, default=None
        Features that enter probes together and share score and rank. Columns are given by name or number, here and
        below.
    keep : list of columns, default=None
        Features that are in every probe and always selected.
    categorical_features : "from_dtype", list of columns or None, default="from_dtype"
        Categorical columns, of text or numbers; each enters a probe as a whole, with a column of 0 and 1 for every
        level. "from_dtype": the columns that a data frame has as such; a list: these as well.
    scale : {"standard", "largest", "nonzero", "rank", "auto"} or None, default=None
        Transformation of the columns: "standard" gives standard deviation 1 (and mean 0 if X is dense), "largest" a
        largest absolute value of 1, "nonzero" a mean absolute value of 1 of the values that are not 0, "rank" ranks.
        "auto" looks at tables in memory of up to 1 GiB. It is "nonzero" for a table with at most 10% of its cells not
        0, whether it is stored as sparse or dense. For others it is "standard" if the standard deviation of a column is
        more than ten times, or less than a tenth of, the median one, or if the median is below 0.1. Distances and
        penalties depend on the width of columns, so with None wide columns count more. Scaling copies X.
    missing : {"auto", "mean", "median"} or None, default="auto"
        Replacement for missing values of a dense table in memory: the mean or median of their column. "auto" is the
        median, with a warning, unless the criterion takes missing values itself. None refuses missing values. A missing
        category is a level of its own. Constant and empty columns rank last.
    fdr : float, default=0.1
        False discovery rate for ``n_features_to_select="stands_out"``. May be changed after ``fit``.
    stop : Rule, default=None
        When to stop, a rule of `probewise.stopping`; rules combine with ``|`` and ``&``. None: when two halves of the
        probes agree on 90% of the top 20 features, or after a minute: ``Settled(20, 0.9) | MaxTime(60)``.
    check_every : int, default=400
        Number of probes between two looks at the measures of convergence.
    cv : int, splitter or iterable of splits, default=3
        Folds for the criterion, stratified for classes. They are made once per fit.
    scoring : str, callable or None, default=None
        The score that J is: a scikit-learn name, or a scorer from ``make_scorer``. Built-in criteria take scores of
        predictions (labels, numbers, or decisions between two classes) such as "balanced_accuracy", "f1", "roc_auc" or
        "neg_mean_absolute_error"; an estimator takes all scores. None: accuracy, R^2, or the estimator's own.
    device : str, default="cpu"
        Where the criterion runs: "cuda" is a GPU, "cuda:1" the second GPU; "auto" is a GPU if there is one and the
        criterion can use it; "torch-cpu" runs the GPU's code on the CPU. All but "cpu" need torch, the extra ``gpu``.
    n_jobs : int or None, default=None
        Number of workers; None is 1, -1 is all cores. ``joblib.parallel_config`` chooses the kind.
    ledger : path or None, default=None
        A file that stores the run, one number per probe. If it holds this run already, the run is resumed and ends as
        if it had never stopped.
    random_state : int, RandomState or None, default=None
        An int makes the result repeatable.
    verbose : int or callable, default=0
        1 shows live progress, in a terminal or a notebook; a function is called from time to time with a line of text.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        The coefficient; NaN for a feature that was in no probe or in all probes.
    ranking_, support_ : array of shape (n_features,)
        Ranks (1 is best, ties go to the lower column, NaN comes last), and the mask of the selected features.
    std_errors_ : array of shape (n_features,)
        Standard errors of the scores over other random probes of the same rows (Welch's); not over new samples.
    p_values_, q_values_ : array of shape (n_features,)
        Is the feature related to the target? From `probewise.inference.associated`, computed when first used. The
        methods `stands_out` and `needed` name the related features and those needed given the others.
    size_curve_ : SizeCurve
        With ``n_features_to_select="auto"``: the curve of `probewise.evaluation.nested_score`.
    history_ : dict of arrays
        One entry per look: probes, seconds, order_change (C), value_change (C2), relative_change, left_out. Replayed
        from the ledger when first used.
    n_probes_, stop_reason_ : int, str
        Number of probes scored, and why the run stopped.
    run_ : Run
        The finished run: ``run_.ledger.values()`` are J of probe 0, 1, ...; ``run_.feature_plan.probe(i)`` is probe i;
        ``run_.coefficient(name)``, ``run_.certainty()`` and more are computed from these.
    criterion_, notes_ : Criterion, list of str
        The criterion used, and what may be wrong with the rows or the target, such as replicates.

    Notes
    -----
    Ctrl-C ends the run with the ranking so far and a ``ConvergenceWarning``, and so does a ledger that can no longer be
    written.

    Departures: eq. 14 of the paper is read as the mean over probes without f. In DAF2 a size with fewer than 30 probes
    is pooled with its neighbors. C and C2 are those of DAF0 for all coefficients.

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

    n_features_to_select: Any = None
    _: KW_ONLY
    criterion: Any = "auto"
    coefficient: str = "daf0"
    max_probe_size: int | None = None
    inclusion: float | None = None
    feature_groups: Any = None
    keep: Any = None
    categorical_features: Any = "from_dtype"
    scale: str | None = None
    missing: str | None = "auto"
    fdr: float = 0.1
    stop: Any = None
    check_every: int = 400
    cv: Any = 3
    scoring: Any = None
    device: str = "cpu"
    n_jobs: int | None = None
    ledger: Any = None
    random_state: Any = None
    verbose: Any = 0

    _sizes_by_name = (AUTO, STANDS_OUT)

    def fit(self, X: Any, y: Any = None, *, groups: Any = None, sample_weight: Any = None, adjust: Any = None) -> DAF:
        """Score probes until the stopping rule holds, and rank the features.

        ``groups`` goes to the splitter. ``sample_weight`` counts in the score, and in the fit of a model that uses
        weights: `Linear`, `NaiveBayes`, `Tree`, or an estimator; for `KNN` in the score only.

        y may also be a survival outcome (an array of events and times, as scikit-survival makes it, or a data frame of
        both), or several columns of numbers, over which J is the mean.

        ``adjust`` are covariates, such as age and batch: an array or a data frame of numbers and categories, with a row
        for each sample. They are regressed out of the columns and of y, and features are judged by what they add.
        """
        check_parameters(self, PARAMETERS)
        stop = as_rule(DEFAULT_STOP if self.stop is None else self.stop)
        saved = saved_settings(self.ledger)
        criterion = as_criterion(self.criterion, X)
        data = prepare(self, criterion, X, y, groups=groups, sample_weight=sample_weight, adjust=adjust, saved=saved)
        seed = seed_of(self.random_state, saved and saved.seed)
        max_probe_size = DEFAULT_PROBE_SIZE if self.max_probe_size is None else self.max_probe_size
        warm_up = max_probe_size if self.n_jobs in (None, 1) else None
        folds = {"cv": self.cv, "scoring": self.scoring}
        score = bind(criterion, data, device=self.device, warm_up=warm_up, **folds)
        usual = usual_block_size(criterion, score)  # looks fall on block borders
        block_size = max(size for size in range(1, usual + 1) if self.check_every % size == 0)
        sizes: dict[str, Any] = {"max_probe_size": max_probe_size, "block_size": block_size}
        sizes |= {"check_every": self.check_every, "inclusion": self.inclusion}
        settings = new_settings(self, data, criterion, score, seed=seed, **sizes, **folds)
        set_results(self, run_with(self, data, data, criterion, score, settings, stop), criterion, data)
        if self.stop is None and not self.run_.interrupted and "settled" not in self.stop_reason_:
            warn(
                f"the top {DEFAULT_TOP} features had not settled after {DEFAULT_SECONDS} s: use more probes",
                ConvergenceWarning,
            )
        if self.n_features_to_select == STANDS_OUT and not self.stands_out(self.fdr).any():
            warn(
                f"no feature stands out at a false discovery rate of {self.fdr:g}: the best one is selected and may be "
                "noise; use a larger fdr, or a number of features"
            )
        self._choose_size(X, y, groups=groups, sample_weight=sample_weight, adjust=adjust)
        return self

    @property
    def _accepts(self) -> Accepts:
        return accepted_by(criterion_or_default(self.criterion), self.device, self.missing)

    # ---- number of features

    def _get_support_mask(self) -> NDArray[np.bool_]:
        if self.n_features_to_select != STANDS_OUT:
            return super()._get_support_mask()
        check_is_fitted(self, "ranking_")
        selected = self.stands_out(self.fdr) | (self.ranking_ == 1)
        selected[self._units.kept] = True
        return selected
