"""Transforms of graphs, computed once before training."""
