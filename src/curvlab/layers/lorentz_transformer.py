r"""The transformer of Hypformer: linear maps, attention and residual connections between points."""

import torch
from torch import Tensor, nn

from curvlab.layers.dropout import Dropout
from curvlab.layers.lorentz import (
    CurvatureMode,
    InputLift,
    LorentzFeatureLinear,
    LorentzLinear,
    LorentzMap,
    LorentzMidpoint,
)
from curvlab.layers.lorentz_attention import LorentzLinearAttention, PointAttention
from curvlab.layers.spaces import OnSpaces
from curvlab.layers.sparse_graph import Features, as_features
from curvlab.manifolds import Lorentz, lorentz
from curvlab.process import own_share, pieces_of_all


class HyperbolicTransformer(OnSpaces, nn.Module):
    r"""The attention's branch (Hypformer, Section 4 and Figure 4): features to points.

    With HTC a linear map of points, HRC a function of their space parts, and `(.)` the midpoint:

        x = HTC(exp_0 X),  x <- x (.) eps HTC'(exp_0 X),  x <- HRC[layer norm, relu, dropout](x);
        in each layer  x <- HRC[layer norm]( attention(x) (.) x );  z = HTC''(x).

    The second term, of a map of its own, is the positional encoding. A layer has neither activation
    nor feed-forward: the last HTC is all that the paper's figure means by it.

    `curvature_mode=recalibrate` has the midpoints on the features' space, as the authors' code for
    small graphs: the points that lie between them and what lifts to the other space. Unlike there
    a point lies on the same space in training and evaluation.

    Shapes: `[nodes, in_channels] -> [nodes, 1 + dim]`; features may be nearly all 0.

    Args:
        in_channels: number of input features.
        dim: width.
        space_in: where the features are lifted to.
        space: where the points lie between the first map and the last.
        space_out: where the result lies, `space` or another; Eq. 18's change of curvature is that
            of the last HTC here.
        attentions: the layers, from points of `space` to points of it.
        curvature_mode: `rescale` or `recalibrate`, see `LorentzLinear` and above.
        input_lift: `exp0` or `exp0_ref`, see `LorentzFeatureLinear`.
        positional_encoding: add the second map of the features.
        position_weight: eps, its weight.
        layer_norm: normalise before the first layer and after each.
        input_activation: take the relu before the first layer.
        dropout: before the first layer.
        residual: add a layer's input to its output by the midpoint.

    Source: Hypformer, Section 4, in the order of the authors' code.
    """

    def __init__(
        self,
        in_channels: int,
        dim: int,
        space_in: Lorentz,
        space: Lorentz,
        space_out: Lorentz,
        attentions: list[nn.Module],
        curvature_mode: CurvatureMode,
        input_lift: InputLift,
        positional_encoding: bool,
        position_weight: float,
        layer_norm: bool,
        input_activation: bool,
        dropout: float,
        residual: bool,
    ) -> None:
        super().__init__()
        middle = space_in if curvature_mode == "recalibrate" else space

        def features() -> LorentzFeatureLinear:
            return LorentzFeatureLinear(
                in_channels, dim, space_in, middle, curvature_mode, input_lift
            )

        self.features = features()
        self.position = features() if positional_encoding else None
        self.sum = LorentzMidpoint(middle, weight=position_weight)
        self.input_map = _map_of(
            space,
            nn.LayerNorm(dim) if layer_norm else None,
            nn.ReLU() if input_activation else None,
            Dropout(dropout) if dropout else None,
        )
        self.attentions = nn.ModuleList(attentions)
        self.residuals = nn.ModuleList()
        self.norms = nn.ModuleList()
        lies_on = middle if isinstance(self.input_map, nn.Identity) else space
        for _ in attentions if residual else ():
            self.residuals.append(Residual(lies_on, space, middle))
            lies_on = space if layer_norm else middle
        for _ in attentions:
            self.norms.append(_map_of(space, nn.LayerNorm(dim) if layer_norm else None))
        self.last = LorentzLinear(dim, dim, space, space_out, curvature_mode)

    def forward(self, features: Tensor | Features) -> Tensor:
        """Map features to points and let all attend to all."""
        x = self._start(features)
        for i, attention in enumerate(self.attentions):
            x = self._after(i, attention(x), x)
        return self.last(x)

    @torch.no_grad()
    def encode_in_chunks(self, features: Tensor, chunk: int) -> Tensor:
        """What `forward` returns in evaluation, `chunk` nodes at a time.

        In every layer what all nodes attend to is made first: the two sums of linear attention, the
        keys and values of softmax attention. The processes of a group share the chunks.
        """
        device = features.device
        chunks = [self._start(part) for part in own_share(features.split(chunk))]
        for i, attention in enumerate(self.attentions):
            assert isinstance(attention, LorentzLinearAttention | PointAttention)
            summaries = [attention.summary(x) for x in chunks]
            of_all = (pieces_of_all([part[k] for part in summaries], device) for k in range(2))
            context = attention.context(*of_all)
            for j, x in enumerate(chunks):
                chunks[j] = self._after(i, attention.attend(x, *context), x)
        return torch.cat(pieces_of_all([self.last(x) for x in chunks], device))

    def _start(self, features: Tensor | Features) -> Tensor:
        """Points before the first layer."""
        features = as_features(features)
        x = self.features(features)
        if self.position is not None:
            x = self.sum(x, self.position(features))
        return self.input_map(x)

    def _after(self, i: int, attended: Tensor, x: Tensor) -> Tensor:
        """Layer i after its attention."""
        if self.residuals:
            attended = self.residuals[i](x, attended)
        return self.norms[i](attended)


class Residual(nn.Module):
    """Midpoint of x and y as they are, wherever they lie, as a point of a third space.

    Args:
        space_x: where x lies.
        space_y: where y lies.
        space: where the midpoint lies: either of the two, or both are one.
    """

    def __init__(self, space_x: Lorentz, space_y: Lorentz, space: Lorentz) -> None:
        super().__init__()
        self.midpoint = LorentzMidpoint(space_x, space_y)
        self.space_x, self.space = space_x, space

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """Midpoint `[..., 1 + dim]` of points `[..., 1 + dim]`."""
        middle = self.midpoint(x, y)
        if self.space is self.space_x:
            return middle
        return lorentz.change_curvature(middle, self.space_x.kappa, self.space.kappa)


def _map_of(space: Lorentz, *functions: nn.Module | None) -> nn.Module:
    """One HRC of several functions, of which those that are None are left out."""
    present = [function for function in functions if function is not None]
    return LorentzMap(nn.Sequential(*present), space) if present else nn.Identity()
