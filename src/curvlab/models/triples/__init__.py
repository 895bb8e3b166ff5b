"""Models of knowledge graphs: they score the tails of queries (head, relation)."""
