"""Scaling of columns before they are probed."""

import numpy as np
import pytest
import scipy.sparse as sp

from probewise import DAF, Tournament
from probewise.criteria import Average, Linear
from probewise.evaluation import size_curve
from probewise.report.sentences import notes_on_run
from probewise.stopping import MaxProbes
from probewise.validation.contents import scale_for, uneven_widths
from probewise.validation.stores import Stored
from probewise.validation.tables import scaled


def table(seed=0):
    random = np.random.default_rng(seed)
    X, y = random.standard_normal((60, 30)), np.arange(60) % 2
    X[:, 1:] *= 1e4
    X[:, 0] = y  # a copy of the target among raw intensities
    return X, y


def test_standard_and_ranks():
    X, _ = table()
    X[3, 5] = np.nan
    standard = scaled(X, "standard")
    np.testing.assert_allclose(np.nanstd(standard, axis=0), 1)
    np.testing.assert_allclose(np.nanmean(standard, axis=0), 0, atol=1e-12)
    assert np.isnan(standard[3, 5])
    assert scaled(standard, "standard") is standard
    ranks = scaled(X, "rank")
    assert np.nanmax(ranks) == 1
    assert (np.argsort(ranks[:, 2]) == np.argsort(X[:, 2])).all()
    assert scaled(X, None) is X
    kept = scaled(X, "standard", np.arange(30) == 4)
    assert kept[:, 4].tolist() == X[:, 4].tolist()
    assert scaled(np.ones((4, 2)), "standard").tolist() == np.zeros((4, 2)).tolist()


def test_sparse_stays_sparse():
    X = sp.random_array((20, 8), density=0.3, rng=0, format="csr") * 50
    for scale in ("standard", "largest", "nonzero"):
        divided = scaled(X, scale)
        assert divided.format == "csr"
        assert divided.nnz == X.nnz
        assert scaled(divided, scale) is divided
        assert scale != "largest" or abs(divided).max() == 1
    np.testing.assert_allclose(scaled(X.toarray(), "nonzero"), divided.toarray(), rtol=1e-12)
    np.testing.assert_allclose(abs(divided).sum(axis=0) / divided.count_nonzero(axis=0), 1)
    with pytest.raises(ValueError, match="scale='rank' would fill a sparse table"):
        scale_for("rank", X)


def test_auto_makes_no_copy_of_what_is_not_in_memory():
    stored = Stored(np.zeros((4, 3)))
    assert scale_for("auto", stored) is None
    with pytest.raises(ValueError, match="scale='standard' copies the table, which is not in memory: use scale=None"):
        scale_for("standard", stored)
    with pytest.raises(ValueError, match="scale='log' must be 'standard', 'largest', 'nonzero', 'rank', 'auto'"):
        DAF(scale="log").fit(np.zeros((4, 3)), [0, 1, 0, 1])


def test_a_copy_of_the_target_is_found_among_wide_columns(tmp_path):
    X, y = table()
    assert uneven_widths(X) is None  # one narrow column of thirty is not the usual one
    options = {"stop": MaxProbes(600), "random_state": 0}
    assert DAF(scale="standard", **options).fit(X, y).ranking_[0] == 1
    assert DAF(**options).fit(X, y).ranking_[0] > 1
    assert Tournament(n_probes=300, random_state=0).fit(X, y).ranking_[0] == 1
    kept = DAF(scale="rank", ledger=tmp_path / "run", **options).fit(X, y)
    with pytest.raises(ValueError, match='its scale is "rank", not null'):
        DAF(ledger=tmp_path / "run", **options).fit(X, y)
    assert size_curve(kept, X, y, sizes=[1]).mean[0] == 1  # scored as the run saw the columns


def test_uneven_columns_are_said():
    X, y = table()
    X[:, :10] /= 1e5
    daf = DAF(stop=MaxProbes(50), random_state=0).fit(X, y)
    assert daf.run_.settings.uneven[1] > 100 * daf.run_.settings.uneven[0]
    assert DAF(scale="standard", stop=MaxProbes(50), random_state=0).fit(X, y).run_.settings.uneven is None
    assert DAF(criterion="naive_bayes", stop=MaxProbes(50), random_state=0).fit(X, y).run_.settings.uneven is None


def test_columns_of_like_width_stay_as_they_are(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 20)) * np.linspace(1, 4, 20)
    y = np.arange(60) % 2
    assert scale_for("auto", X) is None
    assert scale_for("auto", np.ones((5, 3))) is None
    uneven = X * np.where(np.arange(20) == 7, 40, 1)
    assert scale_for("auto", uneven) == "standard"
    assert scale_for("auto", uneven / 40) == "standard"
    run = Tournament(n_probes=100, ledger=tmp_path / "run", scale="standard", random_state=0).fit(X, y)
    resumed = run.set_params(scale="auto").fit(X, y)  # a resumed run keeps the scale in the ledger
    assert resumed.run_.settings.scale == "standard"


def test_a_table_is_scaled_by_its_values_and_not_by_how_it_is_stored():
    random = np.random.default_rng(0)
    counts = random.poisson(0.05, (300, 80)) * random.integers(1, 4, (300, 80))
    even, uneven, dense = counts.astype(float), counts * np.where(np.arange(80) == 3, 5000.0, 1.0), 1.0 + counts
    dense[:, 4] *= 1000
    for X, scale in ((even, "nonzero"), (uneven, "nonzero"), (dense, "standard")):
        assert scale_for("auto", X) == scale
        assert scale_for("auto", sp.csr_array(X)) == scale
    signal = np.array(counts[:, :3].sum(axis=1) > 0, dtype=int)
    for X in (even, uneven, dense):
        options = {"criterion": "linear", "n_probes": 300, "random_state": 0}
        fits = [Tournament(**options).fit(matrix, signal) for matrix in (X, sp.csr_array(X))]
        # Later rounds differ: pairs of columns are scanned in dense tables only.
        first = fits[0].run_.plan.rounds[1].start
        np.testing.assert_allclose(*(fit.run_.ledger.values()[:first] for fit in fits), rtol=1e-12)
        assert all(set(np.argsort(fit.ranking_)[:3]) == {0, 1, 2} for fit in fits)


def test_the_units_of_the_columns_of_a_sparse_table_do_not_matter():
    random = np.random.default_rng(0)
    X, y = (random.random((400, 60)) < 0.08).astype(np.float32), random.random(400) < 0.3
    X[:, 7], X[:, 3] = y & (random.random(400) < 0.9), y & (random.random(400) < 0.6)
    small = sp.csr_matrix(X * np.where(np.arange(60) == 7, 0.02, 1))  # as if divided by the count of one long text
    options = {"n_probes": 300, "random_state": 0}
    fits = [Tournament(**options).fit(table, y) for table in (sp.csr_matrix(X), small)]
    assert fits[0].ranking_[[7, 3]].tolist() == [1, 2]
    assert (fits[0].ranking_ == fits[1].ranking_).all()
    assert Tournament(scale=None, **options).fit(small, y).ranking_[3] == 1


def test_narrow_columns_are_standardized_because_a_penalty_would_dominate():
    random = np.random.default_rng(0)
    X, y = 0.02 * random.standard_normal((80, 30)), random.standard_normal(80)
    y += 100 * X[:, 5] + 100 * X[:, 9]
    assert scale_for("auto", X) == "standard"
    narrow = Tournament(n_probes=300, random_state=0).fit(X, y)
    assert set(np.argsort(narrow.ranking_)[:2]) == {5, 9}
    raw = Tournament(n_probes=300, random_state=0, scale=None).fit(X, y)
    assert narrow.run_.ledger.values().max() > raw.run_.ledger.values().max() + 0.2


def test_a_sparse_matrix_is_scored_by_the_linear_model_alone():
    X, y = sp.random_array((60, 40), density=0.05, rng=0, format="csr"), np.arange(60) % 2
    assert isinstance(Tournament(n_probes=50, random_state=0).fit(X, y).criterion_, Linear)
    assert isinstance(Tournament(n_probes=50, random_state=0).fit(X.toarray(), y).criterion_, Average)


def test_widths_that_rule_distances_are_told():
    X, y = table()
    X[:, 1:6] /= 1e4
    raw = DAF(criterion="knn", stop=MaxProbes(60), max_probe_size=10, random_state=0).fit(X, y)
    told = notes_on_run(raw.run_, [f"x{column}" for column in range(30)])
    assert told[0].startswith("The features have very different scales (standard deviations from")
    assert "scale='standard'" in told[0]
    for fitted in (raw.set_params(scale="standard").fit(X, y), raw.set_params(scale=None, criterion="tree").fit(X, y)):
        assert notes_on_run(fitted.run_, [""] * 30) == []
