"""Evaluation of a selector: nested cross-validation and the size curve."""
