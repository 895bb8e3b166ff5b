"""Data modules: the whole graph in every step, or batches of it."""
