"""Search for hyperparameters: the space, the study that is kept, its trials and its winner."""

from curvlab.search.run import search

__all__ = ["search"]
