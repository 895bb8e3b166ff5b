"""Readers of users' files: what a file says, as tables of edges, of nodes, and of triples."""
