"""Data sets, each from its raw files or generated."""
