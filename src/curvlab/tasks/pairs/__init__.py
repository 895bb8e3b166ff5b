"""Reconstruction over all pairs of nodes of a graph: tiles, and the loss on them."""
