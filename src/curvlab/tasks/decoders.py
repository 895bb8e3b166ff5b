"""Decoders of embeddings: logits of points, and scores of pairs of points with their losses."""

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
    """A linear map of the logarithm at the origin. On flat space it is an ordinary linear layer.

    Shapes: `[nodes, dim] -> [nodes, logits]`. Points of the Lorentz model and of the
    pseudo-hyperboloid are `[nodes, 1 + dim]`.

    Args:
        dim: width of tangent vectors.
        logits: number of logits.
        space: space of the points.
        maps: number of linear maps, each of `dim / maps` coordinates, whose sum this layer is: so
            weight and bias start from U(-b, b) with `b = sqrt(maps / dim)`.
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
"""Decoders of nodes by the names in `Manifold.decoders`.

The arguments are the width of tangent vectors, the number of logits and the manifold.
"""


def make_node_decoder(
    encoder: Encoder,
    kind: Decoder,
    logits: int,
    logit_curvature: LogitCurvature = "geometric",
    inner: Inner | None = None,
) -> nn.Module:
    """Make the decoder of node classification: the identity if the embeddings are the logits."""
    if encoder.gives_logits:
        if kind != "auto" or inner is not None:
            raise UsageError(
                f"decoder={kind!r}, inner={inner!r}: the last layer of this model makes the logits "
                "itself; leave decoder='auto' and inner=None, or end it in hidden features with "
                "last_activation=True"
            )
        return nn.Identity()
    space = encoder.manifold_out
    name = _select(space, space.decoders, kind)
    make = NODE_DECODERS[name]
    options = _accepted_options(
        make, {"curvature": logit_curvature, "inner": inner, "maps": encoder.linear_maps}
    )
    if inner is not None and "inner" not in options:
        raise UsageError(
            f"inner={inner!r} is of the prototype decoder: leave it None with decoder={name!r}"
        )
    dim = encoder.dim_out - space.codimension
    return make(dim, logits, space, **options)


def _select(space: Manifold, names: Sequence[str], kind: str) -> str:
    """Select one of the names of a manifold's decoders; `auto` selects the first."""
    if kind == "auto":
        return names[0]
    if kind not in names:
        raise UsageError(
            f"decoder={kind!r}: there is none on {type(space).__name__} space, which has "
            f"{', '.join(names)}; decoder='auto' takes the first"
        )
    return kind


def _accepted_options(make: Callable[..., Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that are parameters of a factory."""
    names = signature(make).parameters
    return {name: value for name, value in options.items() if name in names}


class LinkDecoder(nn.Module):
    """Base class of decoders of links: scores `[pairs]` of two points `[pairs, dim]` each.

    Likelier links have larger scores.
    """

    def pair_scores(self, points: Tensor, pairs: Tensor) -> Tensor:
        """Scores `[pairs]` of pairs of nodes `[2, pairs]` with points `[nodes, dim]`."""
        source, target = pairs
        x = points.index_select(0, source)
        y = points.index_select(0, target)
        scores: Tensor = self(x, y)
        return scores

    def pairwise_scores(self, x: Tensor, y: Tensor) -> Tensor:
        """Scores `[n, m]` of all pairs of points `[n, dim]` and `[m, dim]`, in float64."""
        rows = x.double().unsqueeze(1)
        columns = y.double().unsqueeze(0)
        scores: Tensor = self(rows, columns)
        return scores

    def probability(self, scores: Tensor) -> Tensor | None:
        """Probability of a link by its score; None if scores are not log-odds."""
        return None

    @abstractmethod
    def loss(self, edges: Tensor, non_edges: Tensor) -> Tensor:
        """Mean loss of the scores of edges `[pairs]` and of as many non-edges `[pairs]`."""


class LorentzianScore(LinkDecoder):
    r"""Score `2 k + 2 <x, y>_L` with k = -1 / kappa; margin loss.

    The score is minus the squared Lorentzian distance. The loss compares the i-th edge with the
    i-th non-edge,

        L = (margin + mean_i relu(margin - edge_i + non_edge_i)) / 2,

    the mean over both columns of `[edge, non_edge]`, the first of them constant.

    Source: code of HyboNet, and LRN's (their papers say Fermi-Dirac).
    """

    def __init__(self, space: Lorentz, margin: float | None) -> None:
        super().__init__()
        if margin is None:
            raise UsageError(
                "margin=None: the Lorentzian score of links has only a margin loss; give a margin, "
                "or decoder='fermi_dirac'"
            )
        self.space = space
        self.margin = margin

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return 2 * lorentz.inner(x, y) - 2 / self.space.kappa

    def pair_scores(self, points: Tensor, pairs: Tensor) -> Tensor:
        functions = lorentz_maps.LIBRARY.functions(points)
        if functions is None:
            return super().pair_scores(points, pairs)
        inner = lorentz_maps.pair_inner(functions, points, pairs)
        return 2 * inner - 2 / self.space.kappa

    def pairwise_scores(self, x: Tensor, y: Tensor) -> Tensor:
        inner = x.double() @ lorentz.reflect_time(y.double()).mT
        return 2 * inner - 2 / self.space.kappa

    def loss(self, edges: Tensor, non_edges: Tensor) -> Tensor:
        hinge = F.relu(self.margin - edges + non_edges)
        return (self.margin + hinge.mean()) / 2


class FermiDirac(LinkDecoder):
    r"""Logit of `p = 1 / (exp((d^2 - radius) / temperature) + 1)`; cross-entropy.

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
        edge_loss = F.softplus(-edges).mean()
        non_edge_loss = F.softplus(non_edges).mean()
        return (edge_loss + non_edge_loss) / 2


LINK_DECODERS: dict[str, Callable[..., LinkDecoder]] = {
    "lorentzian": LorentzianScore,
    "fermi_dirac": FermiDirac,
}
"""Decoders of links by the names in `Manifold.link_decoders`. The argument is the manifold."""


def make_link_decoder(kind: str, space: Manifold, **options: float | None) -> LinkDecoder:
    """Make a decoder of links; `auto` is the space's first. Drop options of other decoders."""
    name = _select(space, space.link_decoders, kind)
    make = LINK_DECODERS[name]
    return make(space, **_accepted_options(make, options))
