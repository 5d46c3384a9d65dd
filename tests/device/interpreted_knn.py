"""The Triton kernels run by Triton's interpreter: they find the neighbors of the CPU; started by test_knn."""

import numpy as np
import torch
from triton.runtime import interpreter

from probewise.criteria import KNN
from probewise.criteria.knn_device import RowsByFold
from probewise.kernels.device import neighbors, neighbors_quick

patch_tensors = interpreter._patch_lang_tensor


def with_bounds_of_loops(tensor, scope):
    """Triton 3.6 makes an int of an array of one number, which numpy no longer does."""
    patch_tensors(tensor, scope)
    scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))


interpreter._patch_lang_tensor = with_bounds_of_loops
rng = np.random.default_rng(0)
n_rows, n_features = 70, 70
sizes = np.array([1, 3, 33, 70])
indices = np.concatenate([rng.choice(n_features, size, replace=False) for size in sizes]).astype(np.int32)
offsets = np.concatenate([[0], np.cumsum(sizes)])
subsets = torch.from_numpy(indices), torch.from_numpy(offsets)
folds = rng.permutation(np.arange(n_rows) % 3)
splits = [(np.flatnonzero(folds != number), np.flatnonzero(folds == number)) for number in range(3)]
pair = [(np.arange(64, n_rows), np.arange(64)), (np.arange(64), np.arange(64, n_rows))]
tables = {
    "plain": rng.normal(size=(n_rows, n_features)),
    "tied": rng.integers(0, 2, size=(n_rows, n_features)).astype(float),
    "wide": rng.normal(size=(n_rows, n_features)) * 10.0 ** rng.integers(0, 9, n_features) + 1e6,
    "far": np.where(rng.random((n_rows, n_features)) < 0.1, -999_999_999.0, rng.normal(size=(n_rows, n_features))),
    "float32": rng.normal(size=(n_rows, n_features)).astype(np.float32),
}


def check(X, cv, k, soft, tile):
    bound = KNN(k).bind(X, np.arange(n_rows) % 4, cv, scoring="probability" if soft else None)
    device = bound.to("cpu")
    (part,) = RowsByFold.of(bound.folds, together=True, tile=tile)
    search = type(device.searches[0])(device, part)
    groups = search.rows.groups.numpy()
    quick = neighbors_quick.QuickNeighbors(search.rows, groups, part.queries, k, soft)
    near, near_distances = quick.nearest(*subsets, sizes, np.arange(len(sizes)))
    for number, table in enumerate(np.split(indices, offsets[1:-1])):
        rows = torch.from_numpy(table.astype(np.int64))[None]
        expected, distances = neighbors.nearest(search.rows, rows, search.queries, k)
        assert torch.equal(near[number].long().sort(dim=1).values, expected[0].sort(dim=1).values)
        if soft:
            assert torch.equal(near_distances[number], distances[0])
    return int(quick.mode)


modes = set()
for name, X in tables.items():
    modes.add(check(X, splits, 3, False, 1))
    if name == "tied":
        modes.add(check(X, "loo", 5, True, 64))

neighbors_quick.PIECES = ((16, 0),)  # larger ones are read in a loop
modes.add(check(tables["plain"], splits, 3, False, 1))
neighbors_quick.MANY_ROWS = 0  # the wider tiles
modes |= {check(tables["plain"], splits, 3, False, 1), check(tables["plain"], pair, 2, False, 1)}
assert modes == {0, 1, 2}, modes
print("done")
