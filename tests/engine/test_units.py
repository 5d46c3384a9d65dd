"""Feature groups, features to keep and categories: equal to literal twins, and the laws hold."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import naive
from probewise import DAF, Tournament
from probewise.criteria import KNN, Linear, NaiveBayes, as_criterion
from probewise.engine.ledger import LedgerError
from probewise.engine.probes import Subsets
from probewise.report import render_markdown, summarize
from probewise.stopping import MaxProbes
from probewise.validation.stores import Stored

NAMES = [f"gene {i}" for i in range(12)]
GROUPS = [[0, 5], [3, 4, 11]]
UNITS = [[0, 5], [1], [2], [3, 4, 11], [6], [7], [8], [9], [10]]


def table(n=60, d=12, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = np.rint(4 * rng.standard_normal((n, d)))
    X[:, [3, 8]] += 6.0 * y[:, None]
    return X, y


def daf(n_features_to_select=None, **options):
    options.setdefault("stop", MaxProbes(300))
    options.setdefault("random_state", 0)
    options.setdefault("max_probe_size", 4)
    return DAF(n_features_to_select, **options)


def separation(X, y):
    """A function as criterion."""
    return float(np.abs(X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0)).sum())


CRITERIA = [KNN(), Linear(), NaiveBayes(), separation]


def name_of(value):
    return getattr(value, "__name__", type(value).__name__)


def twin(X, y, criterion, units, *, always=(), n_probes=60, seed=0, largest=4):
    """Probes of units, each scored on its columns alone; DAF0 of each unit."""
    probes = [naive.uniform_probe(seed, i, len(units), largest) for i in range(n_probes)]
    values = []
    for probe in probes:
        columns = sorted({*always, *(column for unit in probe for column in units[unit])})
        bound = as_criterion(criterion).bind(X[:, columns], y, 3)
        values.append(float(bound(Subsets.of([range(len(columns))]))[0]))
    return np.array(values), naive.daf0(probes, values, len(units))


# ---- groups


@pytest.mark.parametrize("criterion", CRITERIA, ids=name_of)
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_groups_against_a_loop_over_probes(criterion, make):
    X, y = table()
    fitted = daf(criterion=criterion, feature_groups=GROUPS, stop=MaxProbes(60)).fit(make(X), y)
    values, scores = twin(make(X), y, criterion, UNITS)
    np.testing.assert_allclose(fitted.run_.ledger.values(), values, rtol=1e-9)
    places = naive.order(scores)
    for place, unit in enumerate(UNITS):
        np.testing.assert_allclose(fitted.scores_[unit], scores[place], rtol=1e-7, atol=1e-12)
    for i in (0, 7, 59):
        probe = naive.uniform_probe(0, i, len(UNITS), 4)
        assert sorted(fitted.run_.feature_plan.probe(i)) == sorted(column for unit in probe for column in UNITS[unit])
    ranks = {tuple(UNITS[unit]): rank + 1 for rank, unit in enumerate(places)}
    assert {unit: set(fitted.ranking_[list(unit)]) for unit in ranks} == {unit: {rank} for unit, rank in ranks.items()}


@pytest.mark.parametrize(
    "said",
    [
        [[5, 0], (11, 3, 4)],
        {"first": [0, 5], "second": np.array([3, 4, 11])},
        ["a", "b", "c", "d", "d", "a", "g", "h", "i", "j", "k", "d"],
        np.array([0, 1, 2, 3, 3, 0, 6, 7, 8, 9, 10, 3]),
        [["gene 0", "gene 5"], ["gene 3", "gene 4", "gene 11"]],
        {"first": ["gene 0", 5], "second": [-1, 3, 4], "alone": ["gene 6"]},
    ],
    ids=["lists", "dict", "labels", "numbers", "names", "names and numbers"],
)
def test_groups_may_be_given_in_many_forms(said):
    X, y = table()
    frame = pd.DataFrame(X, columns=NAMES)
    expected = daf(feature_groups=GROUPS).fit(frame, y)
    fitted = daf(feature_groups=said).fit(frame, y)
    assert fitted.scores_.tobytes() == expected.scores_.tobytes()
    assert fitted.ranking_.tolist() == expected.ranking_.tolist()


def test_groups_enter_leave_and_are_selected_as_one():
    X, y = table()
    fitted = daf(2, feature_groups=GROUPS).fit(pd.DataFrame(X, columns=NAMES), y)
    for i in range(300):
        probe = set(fitted.run_.feature_plan.probe(i).tolist())
        assert all(set(group) <= probe or not set(group) & probe for group in GROUPS)
    assert fitted.get_feature_names_out().tolist() == ["gene 3", "gene 4", "gene 8", "gene 11"]
    assert len(np.unique(fitted.scores_[[3, 4, 11]])) == 1
    assert len(np.unique(fitted.std_errors_[[0, 5]])) == 1
    assert len(np.unique(fitted.run_.feature_tally.counts[[0, 5]])) == 1
    for size in range(1, 10):
        assert fitted.set_params(n_features_to_select=size).support_.sum() == sum(
            len(unit) for unit in UNITS if fitted.ranking_[unit[0]] <= size
        )
    with pytest.raises(ValueError, match="n_features_to_select=10 with 9 features: give a number from 1 to 9"):
        fitted.set_params(n_features_to_select=10).get_support()
    fitted.set_params(n_features_to_select=None)
    assert len(np.unique(fitted.ranking_[fitted.support_])) == 4


def test_a_group_of_all_features():
    X, y = table()
    fitted = daf(feature_groups=[list(range(12))]).fit(X, y)
    assert fitted.support_.all()
    assert np.isnan(fitted.scores_).all()


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ([[0, 1], [1, 2]], "feature_groups has column gene 1 in two groups"),
        ([[0, 1], []], "feature_groups holds an empty group: leave it out"),
        ([["gene 0", "gene 77"]], "feature_groups names the column 'gene 77', which X does not have"),
        ([[0, 12]], "feature_groups holds 12: give names, or numbers from 0 to 11"),
        ([[0, 0]], "feature_groups names column gene 0 twice: name it once"),
        (["a", "b"], "feature_groups has 2 labels for 12 features"),
        ("genes", "feature_groups='genes': give lists of columns, a dict of lists, or a label for each feature"),
        (3, "feature_groups=3: give lists of columns, a dict of lists, or a label for each feature"),
        ([[0, 1.5]], "feature_groups holds 1.5: give names, or numbers from 0 to 11"),
    ],
    ids=["overlap", "empty", "no such name", "no such number", "twice", "too few labels", "text", "a number", "float"],
)
def test_impossible_groups_are_refused(said, words):
    X, y = table()
    with pytest.raises(ValueError, match=words.replace("[", r"\[")):
        daf(feature_groups=said).fit(pd.DataFrame(X, columns=NAMES), y)
    assert not hasattr(daf(), "ranking_")


def test_a_part_of_a_group_cannot_be_kept():
    X, y = table()
    with pytest.raises(ValueError, match="keep has column 5 but not all other columns of its group"):
        daf(feature_groups=GROUPS, keep=[5]).fit(X, y)
    assert daf(feature_groups=GROUPS, keep=[0, 5]).fit(X, y).support_[[0, 5]].all()


# ---- the laws, with each option and with all


OPTIONS = {
    "groups": {"feature_groups": GROUPS},
    "keep": {"keep": [7]},
    "categories": {"categorical_features": [6, 7]},
    "all": {
        "feature_groups": GROUPS,
        "keep": [7],
        "categorical_features": [6, 7],
        "n_features_to_select": "stands_out",
    },
}
laws = pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)


@laws
def test_resumed_at_once_and_with_more_workers_are_the_same(options, tmp_path):
    X, y = table()
    common = {"check_every": 100, **options}
    at_once = daf(stop=MaxProbes(400), **common).fit(X, y)
    path = tmp_path / "run.ledger"
    daf(stop=MaxProbes(200), ledger=path, **common).fit(X, y)
    resumed = daf(stop=MaxProbes(400), ledger=path, **common).fit(X, y)
    together = daf(stop=MaxProbes(400), n_jobs=2, **common).fit(X, y)
    for other in (resumed, together):
        assert other.run_.ledger.values().tobytes() == at_once.run_.ledger.values().tobytes()
        for name in ("daf0", "daf1", "daf2", "regression"):
            assert other.run_.coefficient(name)[0].tobytes() == at_once.run_.coefficient(name)[0].tobytes()
        assert other.ranking_.tolist() == at_once.ranking_.tolist()
        assert other.support_.tolist() == at_once.support_.tolist()
        for name, values in at_once.history_.items():
            if name != "seconds":
                np.testing.assert_array_equal(other.history_[name], values)


@laws
def test_the_ledger_alone_gives_the_same_ranking(options, tmp_path):
    X, y = table()
    path = tmp_path / "run.ledger"
    fitted = daf(ledger=path, **options).fit(X, y)
    kept, known = summarize(path), summarize(fitted, inference=False)
    columns = kept["ranking"]["columns"]
    known["ranking"]["columns"].pop("selected", None)  # a parameter of the selector, not of its run
    for name, values in known["ranking"]["columns"].items():
        assert columns[name] == values, name
    assert kept["ranking"]["column_numbers"] == np.argsort(fitted.ranking_, kind="stable").tolist()
    with_data = summarize(path, X, y)
    assert with_data["ranking"]["columns"]["rank"] == columns["rank"]


@laws
def test_a_ledger_with_other_units_is_refused(options, tmp_path):
    X, y = table()
    path = tmp_path / "run.ledger"
    daf(ledger=path, **options).fit(X, y)
    with pytest.raises(LedgerError, match=r"holds another run: its (units|categorical|max_probe_size) is"):
        daf(ledger=path).fit(X, y)
    if "categorical_features" in options:
        with pytest.raises(LedgerError, match=r"its categorical is \[6, 7\], not \[5, 7\]"):
            daf(ledger=path, **{**options, "categorical_features": [5, 7], "feature_groups": None}).fit(X, y)


@laws
def test_a_second_fit_does_not_depend_on_the_first(options):
    X, y = table()
    again = daf(**options).fit(X, y).set_params(**daf(1).get_params()).fit(X, y)
    fresh = daf(1).fit(X, y)
    assert again.ranking_.tolist() == fresh.ranking_.tolist()
    assert again.support_.tolist() == fresh.support_.tolist()
    back = again.set_params(**daf(**options).get_params()).fit(X, y)
    assert back.support_.tolist() == daf(**options).fit(X, y).support_.tolist()


@laws
def test_clones_and_repr(options):
    X, y = table()
    original = daf(**options)
    copy = clone(original)
    assert repr(copy) == repr(original)
    assert copy.fit(X, y).ranking_.tolist() == original.fit(X, y).ranking_.tolist()


@pytest.mark.matrix
@laws
@pytest.mark.parametrize("inclusion", [None, 0.3])
def test_tables_on_disk(options, inclusion, tmp_path):
    X, y = table()
    np.save(tmp_path / "X.npy", np.asfortranarray(X))
    stored = Stored(np.load(tmp_path / "X.npy", mmap_mode="r"))
    fit = daf(inclusion=inclusion, **options).fit
    if "categorical_features" in options:
        with pytest.raises(ValueError, match="categorical_features needs a frame or a dense array: encode"):
            fit(stored, y)
    else:
        assert fit(stored, y).scores_.tobytes() == fit(X, y).scores_.tobytes()


# ---- kept features


@pytest.mark.parametrize("criterion", CRITERIA, ids=name_of)
def test_kept_features_against_a_loop_over_probes(criterion):
    X, y = table()
    fitted = daf(criterion=criterion, keep=[10, 1], stop=MaxProbes(60)).fit(X, y)
    units = [[column] for column in range(12) if column not in (1, 10)]
    values, scores = twin(X, y, criterion, units, always=[1, 10])
    np.testing.assert_allclose(fitted.run_.ledger.values(), values, rtol=1e-9)
    rest = np.array(units).ravel()
    np.testing.assert_allclose(fitted.scores_[rest], scores, rtol=1e-7, atol=1e-12)
    assert np.isnan(fitted.scores_[[1, 10]]).all()
    assert np.isnan(fitted.std_errors_[[1, 10]]).all()
    assert np.argsort(fitted.ranking_).tolist() == [1, 10, *rest[naive.order(scores)]]
    assert fitted.run_.feature_tally.counts[[1, 10]].tolist() == [60, 60]
    for i in range(60):
        probe = fitted.run_.feature_plan.probe(i).tolist()
        assert {1, 10} <= set(probe)
        assert len(set(probe)) == len(probe)


MASK = np.arange(12) == 4


@pytest.mark.parametrize("said", [[4], ["gene 4"], (-8,), {4}, MASK, MASK.tolist(), np.array([4])], ids=range(7))
def test_kept_features_may_be_given_in_many_forms(said):
    X, y = table()
    fitted = daf(3, keep=said).fit(pd.DataFrame(X, columns=NAMES), y)
    assert fitted.ranking_[4] == 1
    assert fitted.support_[4]
    assert fitted.support_.sum() == 3


def test_the_number_of_selected_features_includes_kept_features():
    X, y = table()
    frame = pd.DataFrame(X, columns=NAMES)
    fitted = daf(3, keep=["gene 0"]).fit(frame, y)
    assert "gene 0" in fitted.get_feature_names_out()
    assert "gene 8" in fitted.get_feature_names_out()
    assert fitted.transform(frame).shape == (60, 3)
    seen = fitted.set_output(transform="pandas").transform(frame)
    assert seen.columns.tolist() == fitted.get_feature_names_out().tolist()
    assert fitted.set_params(n_features_to_select=1).support_.tolist() == (np.arange(12) == 0).tolist()
    assert fitted.set_params(n_features_to_select=None).support_.sum() == 6
    assert fitted.set_params(n_features_to_select=1.0).support_.sum() == 12


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_features_to_select": 2, "keep": [1, 2, 3]}, "n_features_to_select=2 is less than the 3 features of keep"),
        ({"keep": list(range(12))}, "keep has all 12 features, so none is left to rank"),
        ({"keep": "gene 1"}, r"keep='gene 1'"),
        ({"keep": 1}, "keep=1"),
        ({"keep": [12]}, "keep holds 12: give names, or numbers from 0 to 11"),
        ({"keep": [1, 1]}, "keep names column 1 twice: name it once"),
        ({"keep": [True]}, "keep holds True: give names, or numbers"),
        ({"keep": ["x"]}, "keep names the column 'x', and X has no names"),
    ],
    ids=range(8),
)
def test_impossible_lists_of_kept_features_are_refused(options, words):
    X, y = table()
    with pytest.raises(ValueError, match=words):
        daf(**options).fit(X, y)


# ---- categories


def frame_with_categories(seed=0, n=90):
    """Numbers, a category of three levels, one of text whose rarest level is in one fold only, and one with gaps."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    frame = pd.DataFrame(rng.standard_normal((n, 4)), columns=list("abcd"))
    frame["a"] += 1.5 * y
    frame["colour"] = pd.Categorical(rng.choice(["red", "green", "blue"], n), categories=["red", "green", "blue"])
    kinds = np.where(rng.random(n) < 0.7, np.where(y == 1, "x", "z"), "w")
    kinds[7] = "rare"
    frame["kind"] = pd.Categorical(kinds)
    grades = rng.choice([10.0, 20.0, np.nan], n)
    frame["grade"] = pd.Categorical(grades)
    return frame, y


CATEGORIES = ["colour", "kind", "grade"]
FOLDS = StratifiedKFold(3)
# what a criterion is, as an estimator of scikit-learn
MODELS = [
    (KNN(n_neighbors=5), KNeighborsClassifier(5, algorithm="brute")),
    (NaiveBayes(), GaussianNB()),
    (RidgeClassifier(), RidgeClassifier()),
]


def inside_the_folds(model, frame, y, columns):
    """J with the encoding fitted on the training rows of each fold."""
    chosen = [name for name in columns if name in CATEGORIES]
    encode = ColumnTransformer(
        [("levels", OneHotEncoder(handle_unknown="ignore", sparse_output=False), chosen)], remainder="passthrough"
    )
    texts = frame[columns].astype(dict.fromkeys(chosen, object))
    return cross_val_score(make_pipeline(encode, model), texts, y, cv=FOLDS).mean()


@pytest.mark.parametrize(("criterion", "model"), MODELS, ids=["knn", "naive_bayes", "ridge"])
def test_encoding_is_as_inside_the_folds(criterion, model):
    frame, y = frame_with_categories()
    fitted = daf(criterion=criterion, cv=FOLDS, stop=MaxProbes(12)).fit(frame, y)
    names = frame.columns.tolist()
    expected = [
        inside_the_folds(model, frame, y, [names[column] for column in sorted(fitted.run_.feature_plan.probe(i))])
        for i in range(12)
    ]
    assert any({4, 5, 6} & set(fitted.run_.feature_plan.probe(i)) for i in range(12))
    near = np.isclose(fitted.run_.ledger.values(), expected, atol=1e-9)
    assert near.mean() >= (0.8 if isinstance(criterion, KNN) else 1.0)  # equal distances are common among 0 and 1


@pytest.mark.parametrize("criterion", CRITERIA[:3], ids=name_of)
def test_levels_found_before_or_inside_the_folds_are_the_same(criterion):
    """Built-in criteria, fitted fold by fold on levels found in the fold; one level is in a single row."""
    frame, y = frame_with_categories()
    fitted = daf(criterion=criterion, cv=FOLDS, stop=MaxProbes(12)).fit(frame, y)
    names = frame.columns.tolist()
    for i in range(12):
        chosen = [names[column] for column in sorted(fitted.run_.feature_plan.probe(i))]
        values = []
        for train, test in FOLDS.split(frame, y):
            categories = [name for name in chosen if name in CATEGORIES]
            encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
            texts = frame[categories].astype(object)
            parts = [frame[[name for name in chosen if name not in CATEGORIES]].to_numpy()]
            if categories:
                parts.append(encoder.fit(texts.iloc[train]).transform(texts))
            seen = np.hstack(parts)
            values.append(criterion.bind(seen, y, [(train, test)])(Subsets.of([range(seen.shape[1])]))[0])
        assert fitted.run_.ledger.values()[i] == pytest.approx(np.mean(values), abs=1e-9)


def test_a_category_is_selected_as_a_whole_and_given_back_as_it_was():
    frame, y = frame_with_categories()
    before = frame.copy()
    fitted = daf(2, stop=MaxProbes(600)).fit(frame, y)
    assert fitted.get_feature_names_out().tolist() == ["a", "kind"]
    assert fitted.scores_.shape == (7,)
    given_back = fitted.transform(frame)
    assert isinstance(given_back, np.ndarray)
    assert given_back[:, 1].tolist() == frame["kind"].tolist()
    seen = fitted.set_output(transform="pandas").transform(frame)
    pd.testing.assert_frame_equal(seen, frame[["a", "kind"]])
    pd.testing.assert_frame_equal(frame, before)


def test_gaps_in_categories_are_a_level():
    frame, y = frame_with_categories()
    fitted = daf(1, keep=["grade"], stop=MaxProbes(50)).fit(frame, y)
    seen = fitted.transform(frame)
    np.testing.assert_array_equal(pd.isna(seen[:, 0]), frame["grade"].isna())
    named = frame.assign(grade=frame["grade"].astype(object).fillna("none").astype(str))
    twin = daf(1, keep=["grade"], categorical_features=["grade"], stop=MaxProbes(50)).fit(named, y)
    np.testing.assert_allclose(twin.run_.ledger.values(), fitted.run_.ledger.values())
    holed = frame.assign(a=frame["a"].where(np.arange(90) > 3))
    with pytest.raises(ValueError, match="NaN"):
        daf(1, keep=["grade"], missing=None, stop=MaxProbes(50)).fit(frame, y).transform(holed)


@pytest.mark.parametrize("kind", [pl.Categorical, pl.Enum(["blue", "green", "red"])], ids=["Categorical", "Enum"])
def test_polars(kind):
    frame, y = frame_with_categories()
    frame = frame[["a", "b", "c", "d", "colour"]]
    other = pl.DataFrame({name: frame[name].to_numpy() for name in "abcd"}).with_columns(
        pl.Series("colour", frame["colour"].tolist()).cast(kind)
    )
    sorted_levels = frame.assign(colour=pd.Categorical(frame["colour"].astype(str)))
    fitted = daf(2, keep=["colour"]).fit(other, y)
    assert fitted.scores_.tobytes() == daf(2, keep=["colour"]).fit(sorted_levels, y).scores_.tobytes()
    assert fitted.transform(other)[:, 1].tolist() == frame["colour"].tolist()
    seen = fitted.set_output(transform="polars").transform(other)
    assert seen["colour"].equals(other["colour"])
    gap = other.with_columns(pl.when(pl.arange(0, 90) > 3).then(pl.col("colour")).alias("colour"))
    assert fitted.fit(gap, y).transform(gap)["colour"].null_count() == 4


@pytest.mark.parametrize("said", [["kind", "colour"], [4, 5], [False] * 4 + [True, True, False]], ids=range(3))
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_text_named_as_categorical(said, make):
    frame, y = frame_with_categories()
    frame["grade"] = frame["grade"].isna().astype(float)
    expected = daf().fit(frame, y)
    columns = {name: frame[name].astype(str).tolist() if name in CATEGORIES[:2] else frame[name] for name in frame}
    text = make(columns)
    fitted = daf(categorical_features=said).fit(text, y)
    np.testing.assert_allclose(fitted.run_.ledger.values(), expected.run_.ledger.values(), atol=1e-12)
    with pytest.raises(ValueError, match=r"other than numbers in 2 of 7 columns \('colour', 'kind'\)"):
        daf().fit(text, y)


def test_columns_of_an_array_by_number():
    X, y = table(90)
    codes = np.arange(90) % 3 - 1.0  # -1 is a level like any other
    X[:, 6] = codes
    fitted = daf(criterion=KNN(), categorical_features=[6], stop=MaxProbes(60)).fit(X, y)
    assert fitted.run_.settings.categorical.tolist() == [6]
    wide = np.hstack([X[:, :6], codes[:, None] == [-1.0, 0.0, 1.0], X[:, 7:]])
    units = [[column] for column in range(6)] + [[6, 7, 8]] + [[column] for column in range(9, 14)]
    values, _ = twin(wide, y, KNN(), units)
    np.testing.assert_allclose(fitted.run_.ledger.values(), values)


def test_without_categories():
    frame, y = frame_with_categories()
    numbers = frame[["a", "b", "c", "d"]].assign(grade=pd.Categorical(np.arange(90) % 4))
    fitted = daf(categorical_features=None).fit(numbers, y)
    assert fitted.scores_.tobytes() == daf().fit(numbers.astype({"grade": int}), y).scores_.tobytes()
    with pytest.raises(ValueError, match="other than numbers in 2 of 7 columns"):
        daf(categorical_features=None).fit(frame.assign(grade=1.0), y)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("all", "categorical_features='all' must be a list of columns, 'from_dtype' or None"),
        (["x"], "categorical_features names the column 'x', which X does not have"),
        ([99], "categorical_features holds 99: give names, or numbers from 0 to 6"),
        (3, "categorical_features=3 must be a list of columns, 'from_dtype' or None"),
    ],
    ids=range(4),
)
def test_impossible_categories_are_refused(said, words):
    frame, y = frame_with_categories()
    with pytest.raises(ValueError, match=words):
        daf(categorical_features=said).fit(frame, y)


def test_too_many_levels_and_sparse_tables():
    rng = np.random.default_rng(0)
    y = np.arange(1200) % 2
    frame = pd.DataFrame({"a": rng.standard_normal(1200), "key": pd.Categorical([f"row {i}" for i in range(1200)])})
    with pytest.raises(ValueError, match="categorical column 'key' has 1,200 levels, more than the maximum of 1,000"):
        daf().fit(frame, y)
    X, y = table()
    with pytest.raises(ValueError, match="categorical_features needs a frame or a dense array: encode the columns"):
        daf(categorical_features=[1]).fit(sp.csr_matrix(X), y)


# ---- in rounds


def test_rounds_with_groups_kept_features_and_categories(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    X = rng.standard_normal((80, 120))
    X[:, [3, 8, 50]] += 1.5 * y[:, None]
    X[:, 60] = rng.integers(0, 4, 80)
    options = {
        "feature_groups": [[0, 5], [8, 90, 91]],
        "keep": [7],
        "categorical_features": [60],
        "criterion": "naive_bayes",
        "n_probes": 1200,
        "random_state": 0,
    }
    at_once = Tournament(**options).fit(X, y)
    assert len(at_once.run_.plan.rounds) > 2
    path = tmp_path / "run.ledger"
    with pytest.warns(ConvergenceWarning, match="the time limit was reached"):
        Tournament(ledger=path, time_limit=1e-9, **options).fit(X, y)
    resumed = Tournament(ledger=path, **options).fit(X, y)
    together = Tournament(n_jobs=2, **options).fit(X, y)
    for other in (resumed, together):
        assert other.run_.ledger.values().tobytes() == at_once.run_.ledger.values().tobytes()
        assert other.ranking_.tolist() == at_once.ranking_.tolist()
        assert [part.active.tolist() for part in other.run_.plan.rounds] == [
            part.active.tolist() for part in at_once.run_.plan.rounds
        ]
    for start in (0, 600, 1199):
        probe = set(at_once.run_.feature_plan.probe(start).tolist())
        assert 7 in probe
        assert {8, 90, 91} <= probe or not {8, 90, 91} & probe
    assert at_once.support_[7]
    assert len(np.unique(at_once.ranking_[[8, 90, 91]])) == len(np.unique(at_once.ranking_[[0, 5]])) == 1
    left = at_once.history_["dropped_in_round"]
    assert left[[8, 90, 91]].tolist() == [0, 0, 0]
    assert left.max() == len(at_once.run_.plan.rounds) - 1
    stayed, gone = at_once.ranking_[(left == 0) & (at_once.run_.feature_tally.counts > 0)], at_once.ranking_[left > 0]
    assert stayed.max() < gone.min()
    kept, known = summarize(path), summarize(at_once, inference=False)
    assert kept["ranking"]["columns"] == known["ranking"]["columns"]
    assert kept["features"]["rounds"] == known["features"]["rounds"]
    assert [part["features"] for part in kept["features"]["rounds"]][:2] == [116, 81]
    assert kept["convergence"] is None or kept["convergence"]["overlap"] == known["convergence"]["overlap"]
    assert any(sentence.startswith("Rounds with 116, 81, ") for sentence in kept["features"]["notes"])


# ---- the report


def test_the_report_shows_groups_and_categories():
    frame, y = frame_with_categories()
    fitted = daf(keep=["b"], feature_groups=[["a", "d"]]).fit(frame, y)
    summary = summarize(fitted, frame, y)
    features = summary["features"]
    assert features["groups"] == [["a", "d"]]
    assert (features["keep"], features["categorical"]) == (["b"], CATEGORIES)
    assert features["rounds"] is None
    assert "b" not in summary["verdict"][0].partition("with the best rank")[2].partition(".")[0].split()
    assert summary["sizes"]["size"][0] == 1
    text = render_markdown(summary)
    assert "- 1 group with 2 features in total entered the probes as one unit." in text


def test_the_code_in_the_report_gives_the_same_ranking():
    X, y = table()
    options = {**OPTIONS["all"], "feature_groups": {"x": np.array([0, 5]), "y": (3, 4, 11)}, "keep": np.arange(12) == 7}
    fitted = daf(**options).fit(X, y)
    code = summarize(fitted)["repeat"]["code"]
    names = {"X": X, "y": y}
    exec(code, names)
    assert names["daf"].ranking_.tolist() == fitted.ranking_.tolist()
    assert names["daf"].support_.tolist() == fitted.support_.tolist()
    X, y = np.random.default_rng(0).standard_normal((10, 5000)), np.arange(10) % 2
    wide = daf(feature_groups=np.arange(5000) // 2, stop=MaxProbes(50)).fit(X, y)
    assert summarize(wide)["repeat"]["code"] is None
