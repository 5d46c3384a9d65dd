"""Triton's kernels of scores, run by its interpreter, against plain torch code; started by test_scores."""

import numpy as np
import torch
from triton.runtime import interpreter

from probewise.kernels.device import neighbors, scores, scores_triton

patch_tensors = interpreter._patch_lang_tensor


def with_bounds_of_loops(tensor, scope):
    """Triton 3.6 makes an int of an array of one number, which numpy no longer does."""
    patch_tensors(tensor, scope)
    scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))


interpreter._patch_lang_tensor = with_bounds_of_loops
rng = np.random.default_rng(0)


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
