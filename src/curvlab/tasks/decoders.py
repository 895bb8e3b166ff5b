"""Logits from points, by the geometry of the space that they lie in."""

from typing import Literal, cast

import torch
from torch import Tensor, nn

from curvlab.errors import UsageError
from curvlab.layers.lorentz import Inner
from curvlab.layers.lorentz_logits import LorentzPrototypes
from curvlab.layers.stereographic_logits import LogitCurvature, StereographicLogits
from curvlab.manifolds import EmbeddingSpace, Lorentz, Space
from curvlab.models.encoder import Encoder


class TangentLogits(nn.Linear):
    """A linear map of the logarithm at the origin; on flat space an ordinary linear layer.

    Shapes: `[nodes, dim] -> [nodes, logits]`; points of the Lorentz model and of the
    pseudo-hyperboloid are `[nodes, 1 + dim]`.

    Args:
        dim: width of the logarithms.
        logits: number of logits.
        space: where the points lie.
        maps: it is the sum of so many linear maps, each of `dim / maps` coordinates, and draws its
            parameters as each of them would: `sqrt(maps)` times as large as those of one.
    """

    def __init__(self, dim: int, logits: int, space: EmbeddingSpace, maps: int = 1) -> None:
        self.maps = maps
        super().__init__(dim, logits)
        self.space = space

    def reset_parameters(self) -> None:
        """Draw weight and bias from U(-b, b), `b = sqrt(maps / dim)`."""
        super().reset_parameters()
        if self.maps > 1:
            with torch.no_grad():
                for parameter in (self.weight, self.bias):
                    parameter.mul_(self.maps**0.5)

    def forward(self, x: Tensor) -> Tensor:
        """Map points."""
        return super().forward(self.space.logmap0(x))


Decoder = Literal["auto", "stereographic", "prototype", "linear"]


def decoder_of(
    encoder: Encoder,
    kind: Decoder,
    logits: int,
    logit_curvature: LogitCurvature = "geometric",
    inner: Inner | None = None,
) -> nn.Module:
    """Make the decoder that follows a model: none where its embeddings are the logits.

    Args:
        encoder: the model.
        kind: see `logits_decoder`.
        logits: number of logits.
        logit_curvature: of `StereographicLogits`.
        inner: of `LorentzPrototypes`.

    Raises:
        UsageError: No such decoder, none on this space, or a model that needs none.
    """
    if not encoder.gives_logits:
        space, dim, maps = encoder.manifold_out, encoder.dim_out, encoder.linear_maps
        return logits_decoder(kind, space, dim, logits, logit_curvature, inner, maps)
    if kind != "auto":
        raise UsageError(
            f"decoder={kind!r}: the last layer of this model makes the logits itself; leave "
            "decoder='auto', or end it in hidden features with last_activation=True"
        )
    if inner is not None:
        raise UsageError(
            f"inner={inner!r} is of the prototype decoder, and the last layer of this model "
            "makes the logits itself: leave it null"
        )
    return nn.Identity()


def logits_decoder(
    kind: str,
    space: EmbeddingSpace,
    dim: int,
    logits: int,
    logit_curvature: LogitCurvature = "geometric",
    inner: Inner | None = None,
    maps: int = 1,
) -> nn.Module:
    """Make the decoder of node classification.

    Args:
        kind: `auto` for the space's own: `stereographic` on stereographic spaces, `prototype` on
            the Lorentz model, `linear` on flat ones and the pseudo-hyperboloid.
        space: where the points lie.
        dim: width of the points, with all times.
        logits: number of logits.
        logit_curvature: of `StereographicLogits`.
        inner: of `LorentzPrototypes`; None for its formula, and for every other decoder.
        maps: of `TangentLogits`.

    Raises:
        UsageError: No such decoder, or none on this space.
    """
    if kind == "auto":
        kind = space.decoders[0]
    directions = dim - space.codimension
    if inner is not None and kind != "prototype":
        raise UsageError(
            f"inner={inner!r} is of the prototype decoder: leave it None with decoder={kind!r}"
        )
    if kind == "linear":
        return TangentLogits(directions, logits, space, maps)
    what = type(space).__name__
    if kind == "prototype":
        if kind not in space.decoders:
            raise UsageError(
                f"decoder='prototype': prototypes are points of the Lorentz model, not of "
                f"{what} space; decoder='auto' takes what fits"
            )
        return LorentzPrototypes(directions, logits, cast(Lorentz, space), inner)
    if kind != "stereographic":
        raise UsageError(f"task.decoder is auto, stereographic, prototype or linear, not {kind!r}")
    if kind not in space.decoders:
        raise UsageError(
            f"decoder='stereographic': there is no such regression on {what} space; "
            "decoder='linear' works on the logarithms of any"
        )
    return StereographicLogits(dim, logits, cast(Space, space), logit_curvature)
