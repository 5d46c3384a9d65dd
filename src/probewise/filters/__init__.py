"""The public estimators, a file each, on one small base."""
