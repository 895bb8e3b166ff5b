"""Values derived from a graph and kept on its `Data`: sparse matrices and features."""
