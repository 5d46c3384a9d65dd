"""Columns of very different scale and offset: J is that of the CPU, which is compared with exact arithmetic."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: make test-device")

from probewise.criteria import KNN, Linear  # noqa: E402
from probewise.criteria.device import to_device  # noqa: E402
from probewise.engine.probes import Subsets  # noqa: E402
from stress import CASES, SHAPES, folds_of, subsets_of, table  # noqa: E402

MANY = {"many rows": (600, 30, (8, 12, 30))}  # of which the CPU finds neighbours in another way
DEVICE = "cuda" if torch.cuda.is_available() else "torch-cpu"


@pytest.mark.matrix(pairs=True)
@pytest.mark.parametrize("criterion", [KNN(3), Linear()], ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("case", [*CASES, ("constant in every class", 1e6), ("constant in every class", 1e9)], ids=str)
@pytest.mark.parametrize("shape", [*SHAPES, *MANY])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_as_on_the_cpu(criterion, case, shape, dtype):
    n, n_features, sizes = (SHAPES | MANY)[shape]
    X, y = table(*case, n, n_features)
    bound = criterion.bind(X.astype(dtype), y, folds_of(shape, y)[0])
    subsets = Subsets.of(subsets_of(n_features, sizes) + subsets_of(n_features, [1, 2, 6], 1))
    np.testing.assert_array_equal(to_device(bound, DEVICE)(subsets), bound(subsets))
