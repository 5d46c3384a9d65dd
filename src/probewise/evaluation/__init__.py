"""Evaluation of a fitted selector: the size curve and nested cross-validation."""

from .nested_score import NestedScore as NestedScore
from .nested_score import nested_score as nested_score
from .size_curve import SizeCurve as SizeCurve
from .size_curve import size_curve as size_curve
