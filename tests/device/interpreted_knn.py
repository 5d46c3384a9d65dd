"""The Triton kernel run by Triton's interpreter, against the plain torch code; started by test_knn."""

import numpy as np
import torch
from triton.runtime import interpreter

from probewise.criteria import KNN
from probewise.criteria.knn_device import RowsByFold
from probewise.kernels.device import neighbors, neighbors_triton

patch_tensors = interpreter._patch_lang_tensor


def with_bounds_of_loops(tensor, scope):
    """Triton 3.6 makes an int of an array of one number, which numpy no longer does."""
    patch_tensors(tensor, scope)
    scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))


interpreter._patch_lang_tensor = with_bounds_of_loops
rng = np.random.default_rng(0)
n_rows, n_features = 150, 60
X = rng.integers(-40, 40, size=(n_rows, n_features)).astype(float)  # exact in half precision: no rounding to allow for
fold = rng.permutation(np.arange(n_rows) % 3)
splits = [(np.flatnonzero(fold != number), np.flatnonzero(fold == number)) for number in range(3)]
sizes = np.array([1, 3, 7, 8, 15, 17, 33, 50, 60])
indices = np.concatenate([rng.choice(n_features, size, replace=False) for size in sizes]).astype(np.int32)
offsets = np.concatenate([[0], np.cumsum(sizes)])
features, starts = torch.from_numpy(indices), torch.from_numpy(offsets)

for k in (1, 3, 4, 9, 32):
    search = KNN(k).bind(X, np.arange(n_rows) % 4, splits).to("cpu").searches[0]
    search.halves = search.lines.half()
    search.layout = neighbors_triton.Layout.of(RowsByFold.of(splits, is_partition=True)[0].groups, n_rows, "cpu")
    near = neighbors_triton.neighbors(search, features, starts, sizes)
    groups = search.groups[: search.n_rows]
    assert (groups[near.long()] != groups[None, :, None]).all()
    for probe in range(len(sizes)):
        table = torch.from_numpy(indices[offsets[probe] : offsets[probe + 1]].astype(np.int64))[None]
        lines = search.lines[table[0]][:, : search.n_rows].double()
        apart = ((lines[:, :, None] - lines[:, None, :]) ** 2).sum(dim=0)
        ours = torch.gather(apart, 1, near[probe].long()).sort(dim=1).values
        plain = neighbors.nearest(search.lines[table], search.groups, search.ties, search.n_queries, k)[0]
        truth = torch.gather(apart, 1, plain).sort(dim=1).values
        # The lowest six bits of a distance give way to the place in the tile: 64 / 2**23 of it at most.
        assert torch.allclose(ours, truth, rtol=64 / 2**23, atol=0), (k, sizes[probe])
        assert len(near[probe, 0].unique()) == k
    print(k)
