"""Displays like those of scikit-learn, drawn with matplotlib."""

from .drawing import line_style, matplotlib_figure, require_picture_path
from .runs import ConvergenceDisplay, RankingDisplay, expected_change
from .sizes import SizeCurveDisplay, StabilityDisplay, StudyDisplay, save_study

__all__ = [
    "ConvergenceDisplay",
    "RankingDisplay",
    "SizeCurveDisplay",
    "StabilityDisplay",
    "StudyDisplay",
    "expected_change",
    "line_style",
    "matplotlib_figure",
    "require_picture_path",
    "save_study",
]
