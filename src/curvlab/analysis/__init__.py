"""Curvature, hyperbolicity, projections and plots of graphs and embeddings."""
