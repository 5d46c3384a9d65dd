"""Relevance feedback: sessions with ask and tell, and the simulation, which equals its naive twin."""

import dataclasses
import os
from itertools import pairwise

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.linear_model import LinearRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import naive
from probewise.feedback import FeedbackSession, relevance_feedback
from probewise.forest import AdaptiveRandomForestClassifier


def images(classes=4, each=40, d=12, apart=2.0, seed=0):
    """Rows of several classes in turn; each class is shifted in one column, and the other columns are noise."""
    rng = np.random.default_rng(seed)
    y = np.arange(classes * each) % classes
    X = rng.standard_normal((len(y), d))
    X[np.arange(len(y)), y] += apart
    return X, y


def center_score(X, positive, rows):
    """How much nearer a row is to the mean of the positives than to the mean of the negatives."""
    positive = np.asarray(positive)
    centers = [X[positive].mean(axis=0), X[~positive].mean(axis=0)]
    return ((rows - centers[1]) ** 2).sum(axis=1) - ((rows - centers[0]) ** 2).sum(axis=1)


class Centers(RidgeClassifier):
    """A nearest-center classifier, simple enough for the naive twin."""

    def fit(self, X, y):
        self.X_, self.y_, self.classes_ = X, y == 1, np.unique(y)
        return self

    def decision_function(self, X):
        return center_score(self.X_, self.y_, X)

    def predict(self, X):
        return (self.decision_function(X) > 0).astype(int)


@pytest.mark.parametrize(("initial", "rounds", "returned"), [(5, 10, 20), (1, 3, 7), (2, 0, 160), (40, 1, 1)])
def test_the_loop_equals_the_twin(initial, rounds, returned):
    X, y = images()
    counts = {"initial": initial, "rounds": rounds, "returned": returned}
    result = relevance_feedback(X, y, Centers(), **counts, random_state=initial)
    assert result.precision.shape == result.seconds.shape == result.n_features.shape == (rounds + 1, 4)
    for column, query in enumerate(result.queries):
        expected = naive.relevance_feedback(X, y, center_score, result.initial_rows, query, rounds, returned)
        np.testing.assert_allclose(result.precision[:, column], expected)
    asked = np.isfinite(result.precision)
    assert (result.precision[asked] <= result.possible[asked]).all()
    assert (result.seconds[asked] > 0).all()
    assert (result.n_features[asked] == 12).all()
    assert np.isnan(result.seconds[~asked]).all()
    assert np.isnan(result.possible[~asked]).all()
    assert (result.n_features[~asked] == 0).all()


def test_the_same_number_of_rows_of_each_class_is_labeled_from_the_start():
    X, y = images()
    result = relevance_feedback(X, y, GaussianNB(), initial=3, rounds=0, random_state=0)
    assert np.bincount(y[result.initial_rows]).tolist() == [3, 3, 3, 3]
    assert len(set(result.initial_rows)) == 12
    other = relevance_feedback(X, y, GaussianNB(), initial=3, rounds=0, random_state=1)
    assert other.initial_rows.tolist() != result.initial_rows.tolist()


def test_feedback_finds_the_rows_of_separate_classes():
    X, y = images(apart=3.0)
    result = relevance_feedback(X, y, AdaptiveRandomForestClassifier(20), rounds=4, returned=5, random_state=0)
    assert result.precision[-1].mean() > 0.9
    assert (result.possible[:5] == 1).all()
    assert (result.seconds > 0).all()
    assert (result.n_features == 12).all()


def test_ties_are_ranked_by_row_number():
    X, y = np.zeros((60, 2)), np.repeat([0, 1, 2], 20)
    result = relevance_feedback(X, y, DecisionTreeClassifier(), initial=5, returned=15, rounds=3, random_state=0)
    assert result.precision[:3].tolist() == [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    assert np.isnan(result.precision[3]).all()


def test_relative_precision_counts_rounds_with_something_to_find():
    X, y = np.zeros((60, 2)), np.repeat([0, 1, 2], 20)
    result = relevance_feedback(X, y, DecisionTreeClassifier(), returned=15, rounds=3, random_state=0)
    np.testing.assert_allclose(result.relative_precision, [1.0, 0.5, 1 / 3])


# ---- sessions


def answered(session, relevant, rounds, n_rows=10):
    """Rows of each round."""
    found = []
    for _ in range(rounds):
        rows = session.ask(n_rows)
        session.tell(rows, relevant[rows])
        found.append(rows.tolist())
    return found


def test_no_labeled_row_is_returned_and_all_rows_are_in_the_end():
    X, y = images()
    session = FeedbackSession(X, classifier=GaussianNB(), random_state=0)
    found = answered(session, y == 1, 20)
    flat = [row for rows in found for row in rows]
    assert sorted(flat) == list(range(160))
    assert session.ask(5).tolist() == session.features_.tolist() == []
    assert repr(session) == "FeedbackSession(160 labeled rows, 40 relevant)"


def test_a_session_finds_what_a_person_means():
    X, y = images(apart=4.0, d=60)
    session = FeedbackSession(X, random_state=0)
    found = answered(session, y == 2, 5)
    shares = [np.mean(y[rows] == 2) for rows in found]
    assert shares[0] < 0.6
    assert min(shares[3:]) >= 0.8
    assert 2 in session.features_


@pytest.mark.parametrize("stop", [0, 1, 3])
def test_a_resumed_session_continues_with_the_same_rows(tmp_path, stop):
    X, y = images()
    whole = answered(FeedbackSession(X, random_state=3), y == 1, 5)
    session = FeedbackSession(X, random_state=3)
    before = answered(session, y == 1, stop)
    session.save(tmp_path / "session.json")
    assert [path.name for path in tmp_path.iterdir()] == ["session.json"]
    after = answered(FeedbackSession.resume(tmp_path / "session.json", X), y == 1, 5 - stop)
    assert before + after == whole


def test_the_first_rows_are_random_and_one_relevant_row_gives_its_neighbors():
    X, _ = images()
    first = FeedbackSession(X, random_state=0).ask(160)
    assert sorted(first) == list(range(160))
    assert first.tolist() != FeedbackSession(X, random_state=1).ask(160).tolist()
    nearest = FeedbackSession(X, random_state=0).tell([7], [True]).ask(3)
    distances = np.linalg.norm(X - X[7], axis=1)
    assert nearest.tolist() == np.argsort(distances)[1:4].tolist()
    assert 7 not in FeedbackSession(X, random_state=0).tell([7], [False]).ask(159)


def test_a_later_answer_replaces_an_earlier_one():
    X, _ = images()
    changed = FeedbackSession(X, random_state=0).tell([0, 1, 2], [1, 1, 0]).tell([1], [0])
    assert changed.labels.tolist() == [True, False, False]
    same = FeedbackSession(X, random_state=0).tell([2, 1, 0], [0, 0, 1])
    assert changed.ask(9).tolist() == same.ask(9).tolist()


def test_what_a_session_refuses(tmp_path):
    X, _ = images()
    session = FeedbackSession(X, random_state=0)
    for rows, labels, message in (
        ([1, 2], [1], "give one label for each row"),
        ([160], [1], "whole numbers from 0 to 159"),
        ([-1], [1], "whole numbers from 0 to 159"),
        ([1.5], [1], "whole numbers"),
        ([1], ["cat"], "labels must be True or False"),
    ):
        with pytest.raises(ValueError, match=message):
            session.tell(rows, labels)
    with pytest.raises(ValueError, match="n_rows=0"):
        session.ask(0)
    with pytest.raises(ValueError, match="selector='mrmr'"):
        FeedbackSession(X, selector="mrmr")
    with pytest.raises(ValueError, match="classifier='svm'"):
        FeedbackSession(X, classifier="svm")
    session.save(tmp_path / "a.json")
    with pytest.raises(ValueError, match="saved with another table"):
        FeedbackSession.resume(tmp_path / "a.json", X[:, 1:])
    for path in (tmp_path, tmp_path / "none" / "a.json"):
        with pytest.raises(ValueError, match="cannot be written"):
            session.save(path)
    (tmp_path / "b.json").write_text("[]")
    with pytest.raises(ValueError, match="not a saved feedback session"):
        FeedbackSession.resume(tmp_path / "b.json", X)


@pytest.mark.parametrize("selector", ["efs", None])
def test_a_sparse_table_with_the_default_forest(selector):
    X, y = images()
    X[np.abs(X) < 0.5] = 0
    sessions = [FeedbackSession(table, selector=selector, random_state=0) for table in (X, sp.csr_array(X))]
    for session in sessions:
        rows = session.ask(40)
        session.tell(rows, y[rows] == 1)
    assert sessions[0].ask(20).tolist() == sessions[1].ask(20).tolist()


def test_a_session_is_saved_through_a_link_and_into_a_pipe(tmp_path):
    """A device or a link was replaced by a file."""
    session = FeedbackSession(images()[0], random_state=0)
    (tmp_path / "link.json").symlink_to(tmp_path / "a.json")
    session.save(tmp_path / "link.json")
    assert (tmp_path / "link.json").is_symlink()
    assert FeedbackSession.resume(tmp_path / "a.json", session.X).seed == session.seed
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    session.save(tmp_path / "pipe")
    assert os.read(reader, 10_000) == (tmp_path / "a.json").read_bytes()
    os.close(reader)


# ---- the simulation


def test_the_selector_is_fitted_on_the_labeled_rows_in_every_round():
    calls = []

    def score(X, y):
        calls.append((len(y), int(y.sum())))
        return f_classif(X, y)

    X, y = images(d=300)
    plain = relevance_feedback(X, y, GaussianNB(), rounds=4, random_state=0)
    chosen = relevance_feedback(X, y, GaussianNB(), selector=SelectKBest(score, k=3), rounds=4, random_state=0)
    assert (chosen.n_features == 3).all()
    assert chosen.relative_precision.mean() > plain.relative_precision.mean()
    assert len(calls) == 20
    assert calls[::5] == [(20, 5)] * 4
    for query in range(4):
        rows, positives = zip(*calls[5 * query : 5 * query + 5], strict=True)
        assert all(b == a + 20 for a, b in pairwise(rows))
        assert positives[-1] > positives[0]


@pytest.mark.parametrize(
    ("classifier", "backend"),
    [
        (AdaptiveRandomForestClassifier(5), "threading"),
        (DecisionTreeClassifier(), "threading"),
        (SVC(), "threading"),
        pytest.param(AdaptiveRandomForestClassifier(5), "loky", marks=pytest.mark.slow),
    ],
)
def test_results_depend_on_the_seed_and_not_on_the_workers(classifier, backend):
    X, y = images()
    with joblib.parallel_config(backend=backend):
        runs = [relevance_feedback(X, y, classifier, rounds=2, random_state=5, n_jobs=n) for n in (None, 1, 2)]
    for run in runs[1:]:
        np.testing.assert_array_equal(run.precision, runs[0].precision)
        np.testing.assert_array_equal(run.n_features, runs[0].n_features)
        np.testing.assert_array_equal(run.initial_rows, runs[0].initial_rows)


def test_a_query_does_not_depend_on_the_others():
    X, y = images()
    names = np.array(["bus", "cat", "dog", "elephant"])[y]
    model = DecisionTreeClassifier(max_depth=2)
    every = relevance_feedback(X, names, model, rounds=3, random_state=0)
    two = relevance_feedback(X, names, model, rounds=3, random_state=0, queries=["dog", "bus"])
    assert every.queries.tolist() == ["bus", "cat", "dog", "elephant"]
    assert two.queries.tolist() == ["dog", "bus"]
    np.testing.assert_array_equal(two.precision, every.precision[:, [2, 0]])


def test_sparse_tables_and_unchanged_input():
    X, y = images()
    X[np.abs(X) < 0.5] = 0
    before, model = X.copy(), SVC()
    dense = relevance_feedback(X, y, model, rounds=2, random_state=0)
    sparse = relevance_feedback(sp.csr_array(X), y, model, rounds=2, random_state=0)
    np.testing.assert_allclose(sparse.precision, dense.precision, atol=0.051)
    np.testing.assert_array_equal(X, before)
    assert not hasattr(model, "classes_")
    with pytest.raises(dataclasses.FrozenInstanceError):
        dense.precision = None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"initial": 0}, "initial=0 must be a whole number of at least 1"),
        ({"initial": 41}, "initial=41, but class 0 has 40 rows"),
        ({"rounds": -1}, "rounds=-1 must be a whole number of at least 0"),
        ({"rounds": 2.5}, "rounds=2.5"),
        ({"returned": 0}, "returned=0"),
        ({"returned": 161}, "returned=161 must be at most 160, the number of rows"),
        ({"queries": [7]}, r"queries contains 7, which is not a class in y: \[0, 1, 2, 3\]"),
        ({"queries": []}, "queries is empty"),
        ({"classifier": LinearRegression()}, "neither decision_function nor predict_proba"),
    ],
)
def test_bad_arguments_are_named(options, message):
    X, y = images()
    with pytest.raises(ValueError, match=message):
        relevance_feedback(X, y, **{"classifier": GaussianNB(), **options})


def test_one_class_is_an_error():
    with pytest.raises(ValueError, match="only one class, 3"):
        relevance_feedback(np.zeros((30, 2)), np.full(30, 3), GaussianNB())


@pytest.mark.slow
@pytest.mark.shared_data
def test_feedback_finds_real_images(real_data):
    data = real_data("coil20")
    options = {"rounds": 2, "queries": [3, 11], "random_state": 0}
    result = relevance_feedback(data["X"], data["y"], AdaptiveRandomForestClassifier(), **options)
    assert result.precision.shape == (3, 2)
    assert result.relative_precision.mean() > 0.5  # a class has a twentieth of the rows
