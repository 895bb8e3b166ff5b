"""Scores of pairs of points, and the losses that go with them."""

from abc import abstractmethod
from typing import cast

import torch.nn.functional as F
from torch import Tensor, nn

from curvlab.errors import UsageError
from curvlab.manifolds import EmbeddingSpace, Lorentz, lorentz


class LinkDecoder(nn.Module):
    """How likely two points are to be joined."""

    @abstractmethod
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """Scores `[pairs]` of points `[pairs, dim]`, larger for likelier links."""

    def probability(self, scores: Tensor) -> Tensor | None:
        """That pairs of these scores are linked; None where scores are no log-odds."""
        return None

    @abstractmethod
    def loss(self, edges: Tensor, non_edges: Tensor) -> Tensor:
        """Mean loss of the scores of edges `[pairs]` and of as many pairs that are none."""


class LorentzianScore(LinkDecoder):
    r"""`2 k + 2 <x, y>_L`, k = -1 / kappa: minus the squared Lorentzian distance; margin loss.

    The i-th edge is compared with the i-th pair that is none,
    `L = (margin + mean_i relu(margin - edge_i + none_i)) / 2`: the mean over both columns of
    `[edge, none]`, of which the first is the constant.

    Args:
        space: where the points lie.
        margin: by how much an edge should score more.

    Source: the code of HyboNet, which LRN takes over (their papers say Fermi-Dirac).
    """

    def __init__(self, space: Lorentz, margin: float) -> None:
        super().__init__()
        self.space, self.margin = space, margin

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """Scores `[pairs]`."""
        return 2 * lorentz.inner(x, y) - 2 / self.space.kappa

    def loss(self, edges: Tensor, non_edges: Tensor) -> Tensor:
        """Margin loss."""
        return (self.margin + F.relu(self.margin - edges + non_edges).mean()) / 2


class FermiDirac(LinkDecoder):
    r"""`p = 1 / (exp((d^2 - radius) / temperature) + 1)` by its logit; cross-entropy.

    d is the geodesic distance of any space.

    Args:
        space: where the points lie.
        radius: squared distance at which p is 1/2.
        temperature: how slowly p falls there.

    Source: Krioukov et al. 2010; HGCN (Chami et al. 2019), Section 4.3.
    """

    def __init__(self, space: EmbeddingSpace, radius: float, temperature: float) -> None:
        super().__init__()
        self.space, self.radius, self.temperature = space, radius, temperature

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """Logits `[pairs]`."""
        return (self.radius - self.space.sqdist(x, y)) / self.temperature

    def probability(self, scores: Tensor) -> Tensor:
        """Sigmoid."""
        return scores.sigmoid()

    def loss(self, edges: Tensor, non_edges: Tensor) -> Tensor:
        """Binary cross-entropy, mean over all pairs."""
        return (F.softplus(-edges).mean() + F.softplus(non_edges).mean()) / 2


def link_decoder(
    kind: str, space: EmbeddingSpace, margin: float | None, radius: float, temperature: float
) -> LinkDecoder:
    """Make the decoder of link prediction.

    Args:
        kind: `lorentzian` or `fermi_dirac`; `auto` for the space's own: the first on the Lorentz
            model, else the second.
        space: where the points lie.
        margin: of `LorentzianScore`.
        radius: of `FermiDirac`.
        temperature: of `FermiDirac`.

    Raises:
        UsageError: no such decoder, none on this space, or no margin.
    """
    if kind == "auto":
        kind = space.link_decoders[0]
    if kind == "fermi_dirac":
        return FermiDirac(space, radius, temperature)
    if kind != "lorentzian":
        raise UsageError(f"task.decoder is auto, lorentzian or fermi_dirac, not {kind!r}")
    if kind not in space.link_decoders:
        raise UsageError(
            "decoder='lorentzian': only points of the Lorentz model have a Lorentzian product, "
            f"not those of {type(space).__name__} space; decoder='fermi_dirac' works on any"
        )
    if margin is None:
        raise UsageError(
            "margin=None: the Lorentzian score of links has a margin loss and no other; give "
            "a margin, or decoder='fermi_dirac'"
        )
    return LorentzianScore(cast(Lorentz, space), margin)
