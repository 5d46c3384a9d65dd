"""Triton's kernels of filters and scores run by its interpreter, against plain torch code; started by test_filters."""

import numpy as np
import torch
from triton.runtime import interpreter

from probewise.kernels.device import contingency, filters_triton, moments, neighbors, relief, scores, scores_triton

patch_tensors = interpreter._patch_lang_tensor


def with_bounds_of_loops(tensor, scope):
    """Triton 3.6 makes an int of an array of one number, which numpy no longer does."""
    patch_tensors(tensor, scope)
    scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))


interpreter._patch_lang_tensor = with_bounds_of_loops
rng = np.random.default_rng(0)


def check_moments():
    for n_rows, n_columns, n_classes, kind in (
        (3, 1, 2, np.float32),
        (20, 30, 2, np.float32),
        (37, 700, 5, np.float64),
        (70, 1100, 3, np.int16),
        (9, 2100, 4, np.int8),
    ):
        X = torch.from_numpy((20 * rng.normal(size=(n_rows, n_columns)) + 7).astype(kind))
        codes = np.arange(n_rows) % n_classes
        runs = moments.Runs.of(codes, n_classes, n_columns, "cpu")
        plain, found = moments._sums_of_runs(X, runs), filters_triton.sums_of_runs(X, runs)
        for one, other in zip(plain[:3], found[:3], strict=True):
            torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)
        assert plain[3]
        assert found[3]
    X = torch.from_numpy(rng.normal(size=(8, 600)))
    X[3, 555] = torch.nan
    assert not filters_triton.sums_of_runs(X, moments.Runs.of(np.arange(8) % 2, 2, 600, "cpu"))[3]


def check_counts():
    for n_words, n_lines, n_masks in ((1, 1, 1), (3, 700, 2), (2, 64, 5), (4, 513, 9)):
        lines, masks = (
            torch.from_numpy(rng.integers(-(2**31), 2**31, (n_words, n)).astype(np.int32)) for n in (n_lines, n_masks)
        )
        expected = contingency._unpacked(masks).T @ contingency._unpacked(lines)
        assert torch.equal(filters_triton.in_both(lines, masks), expected)


def check_relief():
    for n_rows, n_features, capped in ((5, 3, False), (130, 70, False), (40, 150, True)):
        X = rng.normal(size=(n_rows, n_features)) * (2 if capped else 1)
        one = (np.zeros(n_features), np.ones(n_features), capped, np.arange(n_rows) % 2, 3)
        plain, triton = relief.DeviceTable(X, *one, "cpu"), relief.DeviceTable(X, *one, "cpu")
        triton.kernels = filters_triton
        samples = np.arange(0, n_rows, 2)
        near = plain.nearest(samples)
        assert np.array_equal(near, triton.nearest(samples))
        near[0, 0] = -1
        weights = rng.normal(size=near.shape)
        expected = plain.weighted_diffs(samples, near, weights)
        np.testing.assert_allclose(triton.weighted_diffs(samples, near, weights), expected, rtol=1e-11, atol=1e-12)


def check_votes():
    for k, n_classes in ((1, 2), (3, 2), (4, 5), (7, 3)):
        near = torch.from_numpy(rng.integers(0, 20, (3, 50, k)).astype(np.int32))
        labels = torch.from_numpy(rng.integers(0, n_classes, 20))
        assert torch.equal(scores_triton.vote(near, labels, n_classes), neighbors.vote(labels[near.long()], n_classes))


def check_sums():
    for n_tests, n_parts in ((1, 1), (50, 3), (700, 2), (90, 64)):
        parts = scores.Parts.of(rng.integers(-1, n_parts, n_tests), n_parts, "cpu")
        values = torch.from_numpy(rng.integers(0, 9, (4, n_tests + 1)).astype(float))[:, :-1]
        assert torch.equal(scores_triton.sums_of_parts(values, parts.members), parts.total(values))


check_votes()
check_sums()
check_moments()
check_counts()
check_relief()
