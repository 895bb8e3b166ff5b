"""Timings, compared with other libraries, and the check of a GPU; not part of the package."""
