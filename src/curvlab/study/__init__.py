"""Studies: many runs that answer one question about one graph."""
