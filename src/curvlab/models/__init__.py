"""Encoders: a prepared graph in, embeddings on `manifold_out` out; one file an architecture."""
