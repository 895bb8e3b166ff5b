"""SIGN: Scalable inception graph neural networks (Frasca et al. 2020, arXiv:2004.11198)."""

from curvlab.models.mlp import MLP


class SIGN(MLP):
    """MLP of a node's features and their mixtures along the edges, stacked by `StackedHops`."""
