"""All pairs of nodes of a graph: distances, and the loss of reconstruction."""
