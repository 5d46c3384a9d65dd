"""Filters: selectors that score features without training a model; one file for each paper."""
