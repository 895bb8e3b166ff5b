"""Models of knowledge graphs, one a file: they score the tails of queries (head, relation)."""
