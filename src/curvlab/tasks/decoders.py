"""Logits from points, by the geometry of the space that they lie in."""

from torch import Tensor, nn

from curvlab.errors import UsageError
from curvlab.layers.stereographic_logits import StereographicLogits
from curvlab.manifolds import EmbeddingSpace, Euclidean, Stereographic


class TangentLogits(nn.Linear):
    """A linear map of the logarithm at the origin; on flat space an ordinary linear layer.

    Shapes: `[nodes, dim] -> [nodes, logits]`.
    """

    def __init__(self, dim: int, logits: int, space: EmbeddingSpace) -> None:
        super().__init__(dim, logits)
        self.space = space

    def forward(self, x: Tensor) -> Tensor:
        """Map points `[nodes, dim]`."""
        return super().forward(self.space.logmap0(x))


def logits_decoder(
    kind: str, space: EmbeddingSpace, dim: int, logits: int, logit_curvature: str
) -> nn.Module:
    """Make the decoder of node classification.

    Args:
        kind: `auto` by the space: `stereographic` on stereographic spaces, `linear` on flat ones.
        space: where the points lie.
        dim: width of the points.
        logits: number of logits.
        logit_curvature: of `StereographicLogits`.

    Raises:
        UsageError: No such decoder, or none on this space.
    """
    if kind == "auto":
        kind = _natural(space)
    if kind == "linear":
        return TangentLogits(dim, logits, space)
    if kind != "stereographic":
        raise UsageError(f"task.decoder is auto, stereographic or linear, not {kind!r}")
    if not isinstance(space, Stereographic | Euclidean):
        raise UsageError(f"task.decoder=stereographic: {_refusal(space)}")
    return StereographicLogits(dim, logits, space, logit_curvature)


def _natural(space: EmbeddingSpace) -> str:
    if isinstance(space, Stereographic):
        return "stereographic"
    if isinstance(space, Euclidean):
        return "linear"
    raise UsageError(_refusal(space))


def _refusal(space: EmbeddingSpace) -> str:
    return (
        f"there is no regression on {type(space).__name__} space, only on stereographic and "
        "Euclidean ones; task.decoder=linear works on the logarithms of any"
    )
