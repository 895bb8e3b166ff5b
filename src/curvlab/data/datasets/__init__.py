"""Data sets, from raw files or generated."""
