"""Studies: one question about one graph, answered by many runs."""
