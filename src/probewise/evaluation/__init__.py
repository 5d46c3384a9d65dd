"""Evaluation of a fitted selector: the size curve and nested cross-validation."""

from .nested import NestedScore as NestedScore
from .nested import nested_score as nested_score
from .sizes import SizeCurve as SizeCurve
from .sizes import size_curve as size_curve
