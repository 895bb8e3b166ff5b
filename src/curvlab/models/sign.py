"""SIGN: Scalable inception graph neural networks (Frasca et al. 2020, arXiv:2004.11198)."""

from curvlab.models.mlp import MLP


class SIGN(MLP):
    """MLP of a node's features and their mixtures along the edges, stacked by `StackedHops`.

    The mixtures are part of `batch.x`, so that `in_channels` counts them: in a loop of your own,
    apply `curvlab.data.transforms.features.StackedHops(hops)` to the graph first.
    """
