"""Liang, Yang and Winstanley 2008: feature selection by the distance discriminant."""
