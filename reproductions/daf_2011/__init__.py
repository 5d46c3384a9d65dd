"""Somol and Grim 2011: fast dependency-aware feature selection."""
