"""Class labels of any type become the codes that numpy gives them."""

import numpy as np
import pytest

from probewise.criteria.base import Target


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64, np.uint64])
@pytest.mark.parametrize("spread", [2, 7, 100])
def test_integer_labels(dtype, spread):
    rng = np.random.default_rng(spread)
    y = (rng.integers(0, spread, 300) - (spread // 2 if np.issubdtype(dtype, np.signedinteger) else 0)).astype(dtype)
    target = Target.of(y, "classification")
    classes, codes = np.unique(y, return_inverse=True)
    np.testing.assert_array_equal(target.classes, classes)
    np.testing.assert_array_equal(target.values, codes)
    assert target.classes.dtype == dtype


@pytest.mark.parametrize(
    "labels",
    [
        np.array([-128, 127] * 200, dtype=np.int8),
        np.array([2**63 + 5, 2**63 + 7], dtype=np.uint64),
        np.array([-(2**63), 2**63 - 1], dtype=np.int64),
        np.array(["b", "a", "c"]),
        np.array([True, False]),
        np.array([1.0, 2.0, 1.0]),
    ],
    ids=lambda labels: str(labels.dtype),
)
def test_extreme_and_other_labels(labels):
    target = Target.of_classes(labels)
    classes, codes = np.unique(labels, return_inverse=True)
    np.testing.assert_array_equal(target.classes, classes)
    np.testing.assert_array_equal(target.values, codes)


def test_a_continuous_target_is_refused():
    with pytest.raises(ValueError, match="y is continuous"):
        Target.of_classes(np.array([0.5, 1.25, 3.0]))
