"""Decoders: logits of points, and scores of pairs of points with their losses, by the geometry."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any, Literal

import torch.nn.functional as F
from torch import Tensor, nn

from curvlab.errors import UsageError
from curvlab.layers.lorentz import Inner, LorentzPrototypes
from curvlab.layers.stereographic import LogitCurvature, StereographicLogits
from curvlab.manifolds import Lorentz, Manifold, lorentz, lorentz_maps
from curvlab.models.encoder import Encoder

Decoder = Literal["auto", "stereographic", "prototype", "linear"]
LinkDecoderName = Literal["auto", "lorentzian", "fermi_dirac"]


class TangentLogits(nn.Linear):
    """A linear map of the logarithm at the origin; on flat space an ordinary linear layer.

    Shapes: `[nodes, dim] -> [nodes, logits]`; points of the Lorentz model and of the
    pseudo-hyperboloid are `[nodes, 1 + dim]`.

    Weight and bias start from U(-b, b), `b = sqrt(maps / dim)`: it is the sum of `maps` linear
    maps, each of `dim / maps` coordinates.
    """

    def __init__(self, dim: int, logits: int, space: Manifold, maps: int = 1) -> None:
        super().__init__(dim, logits)
        self.space = space
        if maps > 1:
            self.weight.data.mul_(maps**0.5)
            self.bias.data.mul_(maps**0.5)

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(self.space.logmap0(x))


NODE_DECODERS: dict[str, Callable[..., nn.Module]] = {
    "linear": TangentLogits,
    "stereographic": StereographicLogits,
    "prototype": LorentzPrototypes,
}
"""Decoders by the names that manifolds have in `decoders`.

Each is called with the width of tangent vectors, the number of logits and the manifold.
"""


def decoder_of(
    encoder: Encoder,
    kind: Decoder,
    logits: int,
    logit_curvature: LogitCurvature = "geometric",
    inner: Inner | None = None,
) -> nn.Module:
    """Make the decoder of node classification: none where the embeddings are the logits."""
    if encoder.gives_logits:
        if kind != "auto" or inner is not None:
            raise UsageError(
                f"decoder={kind!r}, inner={inner!r}: the last layer of this model makes the logits "
                "itself; leave decoder='auto' and inner=None, or end it in hidden features with "
                "last_activation=True"
            )
        return nn.Identity()
    space = encoder.manifold_out
    options = {"curvature": logit_curvature, "inner": inner, "maps": encoder.linear_maps}
    name = _select(space, space.decoders, kind)
    make = NODE_DECODERS[name]
    taken = _accepted(make, options)
    if inner is not None and "inner" not in taken:
        raise UsageError(
            f"inner={inner!r} is of the prototype decoder: leave it None with decoder={name!r}"
        )
    return make(encoder.dim_out - space.codimension, logits, space, **taken)


def _select(space: Manifold, names: Sequence[str], kind: str) -> str:
    """Name of a decoder of a manifold; `auto` is its first."""
    if kind == "auto":
        return names[0]
    if kind not in names:
        raise UsageError(
            f"decoder={kind!r}: there is none on {type(space).__name__} space, which has "
            f"{', '.join(names)}; decoder='auto' takes the first"
        )
    return kind


def _accepted(make: Callable[..., Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that a factory takes."""
    names = signature(make).parameters
    return {name: value for name, value in options.items() if name in names}


class LinkDecoder(nn.Module):
    """Scores `[pairs]` of points `[pairs, dim]`, larger for likelier links."""

    def pair_scores(self, points: Tensor, pairs: Tensor) -> Tensor:
        """Scores `[pairs]` of points `[nodes, dim]` by their numbers `[2, pairs]`."""
        x, y = (points.index_select(0, nodes) for nodes in pairs)
        scores: Tensor = self(x, y)
        return scores

    def pairwise_scores(self, x: Tensor, y: Tensor) -> Tensor:
        """Scores `[n, m]` of all pairs of points `[n, dim]` and `[m, dim]`, in float64."""
        scores: Tensor = self(x.double().unsqueeze(1), y.double().unsqueeze(0))
        return scores

    def probability(self, scores: Tensor) -> Tensor | None:
        """Probability of a link by its score; None where scores are not log-odds."""
        return None

    @abstractmethod
    def loss(self, edges: Tensor, non_edges: Tensor) -> Tensor:
        """Mean loss of the scores of edges `[pairs]` and of as many pairs that are none."""


class LorentzianScore(LinkDecoder):
    r"""`2 k + 2 <x, y>_L`, k = -1 / kappa: minus the squared Lorentzian distance; margin loss.

    The i-th edge is compared with the i-th pair that is none,
    `L = (margin + mean_i relu(margin - edge_i + none_i)) / 2`: the mean over both columns of
    `[edge, none]`; the first is the constant.

    Source: the code of HyboNet, which LRN takes over (their papers say Fermi-Dirac).
    """

    def __init__(self, space: Lorentz, margin: float | None) -> None:
        super().__init__()
        if margin is None:
            raise UsageError(
                "margin=None: the Lorentzian score of links has a margin loss and no other; give "
                "a margin, or decoder='fermi_dirac'"
            )
        self.space = space
        self.margin = margin

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return 2 * lorentz.inner(x, y) - 2 / self.space.kappa

    def pair_scores(self, points: Tensor, pairs: Tensor) -> Tensor:
        library = lorentz_maps.LIBRARY.functions(points)
        if library:
            return 2 * lorentz_maps.pair_inner(library, points, pairs) - 2 / self.space.kappa
        return super().pair_scores(points, pairs)

    def pairwise_scores(self, x: Tensor, y: Tensor) -> Tensor:
        inner = x.double() @ lorentz.reflect_time(y.double()).mT
        return 2 * inner - 2 / self.space.kappa

    def loss(self, edges: Tensor, non_edges: Tensor) -> Tensor:
        return (self.margin + F.relu(self.margin - edges + non_edges).mean()) / 2


class FermiDirac(LinkDecoder):
    r"""`p = 1 / (exp((d^2 - radius) / temperature) + 1)` by its logit; cross-entropy.

    d is the geodesic distance of any space.

    Source: Krioukov et al. 2010; HGCN (Chami et al. 2019), Section 4.3.
    """

    def __init__(self, space: Manifold, radius: float, temperature: float) -> None:
        super().__init__()
        self.space = space
        self.radius = radius
        self.temperature = temperature

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.radius - self.space.sqdist(x, y)) / self.temperature

    def pairwise_scores(self, x: Tensor, y: Tensor) -> Tensor:
        squared = self.space.pairwise_sqdist(x.double(), y.double())
        return (self.radius - squared) / self.temperature

    def probability(self, scores: Tensor) -> Tensor:
        return scores.sigmoid()

    def loss(self, edges: Tensor, non_edges: Tensor) -> Tensor:
        return (F.softplus(-edges).mean() + F.softplus(non_edges).mean()) / 2


LINK_DECODERS: dict[str, Callable[..., LinkDecoder]] = {
    "lorentzian": LorentzianScore,
    "fermi_dirac": FermiDirac,
}
"""Decoders by the names that manifolds have in `link_decoders`; called with the manifold."""


def link_decoder(kind: str, space: Manifold, **options: float | None) -> LinkDecoder:
    """Make a decoder of links from the options that it has, `auto` for the space's first."""
    make = LINK_DECODERS[_select(space, space.link_decoders, kind)]
    return make(space, **_accepted(make, options))
