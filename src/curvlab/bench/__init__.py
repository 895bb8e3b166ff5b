"""Benchmarks: each module's `run(args)` prints figures, their ratios and what they should be."""
