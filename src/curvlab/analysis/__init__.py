"""What a graph or an embedding looks like: curvature, hyperbolicity, projections and plots."""
