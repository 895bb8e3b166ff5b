"""A model and a graph for curvlab."""
