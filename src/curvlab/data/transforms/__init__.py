"""What models need of a graph, computed once."""
