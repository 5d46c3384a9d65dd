"""Somol, Grim, Filip and Pudil 2013: stopping rules for dependency-aware feature ranking."""
