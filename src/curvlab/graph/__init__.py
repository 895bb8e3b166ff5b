"""Values derived from a graph, which lie on its `Data`: sparse matrices and features."""
