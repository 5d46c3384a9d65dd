"""Evaluation of a fitted selector: size curve, nested cross-validation, selection frequencies, representatives."""

from .adjusted import AdjustedScores as AdjustedScores
from .adjusted import adjusted_scores as adjusted_scores
from .nested import NestedScore as NestedScore
from .nested import SelectionFrequency as SelectionFrequency
from .nested import nested_score as nested_score
from .nested import selection_frequency as selection_frequency
from .sizes import SizeCurve as SizeCurve
from .sizes import size_curve as size_curve
from .subsets import representatives as representatives
