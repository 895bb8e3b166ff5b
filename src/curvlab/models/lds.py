"""LDS: Learning discrete structures for graph neural networks.

Franceschi et al. 2019, arXiv:1903.11960. The inner problem trains a graph convolutional network on
sampled graphs. The outer problem changes the probabilities of edges so that the trained network
has a lower loss on held-out nodes.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data

from curvlab.data.splits.halved_validation import HalvedValidation
from curvlab.data.transforms.graph import GraphTransform
from curvlab.errors import UsageError
from curvlab.graph.sparse_matrix import inverse_roots
from curvlab.layers.elementwise import dropout
from curvlab.models.encoder import FlatEncoder
from curvlab.options import Dropout, FromData, PositiveInt

INNER = (
    *("first", "second", "first_mean", "second_mean", "first_square", "second_square"),
    *("steps", "lowest", "waited"),
)
"""Buffers of the inner problem: weights, their moments, the number of steps of Adam, the lowest
inner loss, and the number of steps since it fell."""


def sampled_graph(probabilities: Tensor, generator: torch.Generator | None = None) -> Tensor:
    r"""Sample a symmetric adjacency `[nodes, nodes]` of 0 and 1 with independent edges, no loops.

    `A_uv = A_vu ~ Bernoulli(theta_uv)` for u < v, theta `[nodes, nodes]`. The gradient goes
    straight through the draw: `dL/dtheta_uv = dL/dA_uv + dL/dA_vu`.

    Source: Franceschi et al. 2019 (LDS), Section 3.
    """
    uniform = torch.empty_like(probabilities).uniform_(generator=generator)
    above = (uniform < probabilities).triu_(1)
    straight = probabilities.triu(1) + probabilities.T.tril(-1)
    return (above | above.T).to(probabilities.dtype) + (straight - straight.detach())


def propagate(adjacency: Tensor, x: Tensor) -> Tensor:
    """`D^{-1/2} (A + I) D^{-1/2} x`, `[nodes, dim]`, with D the degrees including self-loops."""
    scale = inverse_roots(adjacency.sum(1, keepdim=True) + 1)
    scaled = scale * x
    return scale * (adjacency @ scaled + scaled)


BETAS = (0.9, 0.999)
EPS = 1e-8


def adam_step(
    weights: Sequence[Tensor],
    gradients: Sequence[Tensor],
    means: Sequence[Tensor],
    squares: Sequence[Tensor],
    steps: Tensor,
    lr: float,
) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    """Step number `steps` of Adam as a function of the gradients: weights and both moments.

    `eps^2` is added under the root: where a gradient is 0, the root of the second moment alone has
    no derivative.
    """
    beta1, beta2 = BETAS
    means = [m.lerp(g, 1 - beta1) for m, g in zip(means, gradients, strict=True)]
    squares = [
        beta2 * v + (1 - beta2) * g.square() for v, g in zip(squares, gradients, strict=True)
    ]
    rate = lr / (1 - beta1**steps)
    spread = 1 / (1 - beta2**steps)
    moved = [
        w - rate * m / (v * spread + EPS**2).sqrt()
        for w, m, v in zip(weights, means, squares, strict=True)
    ]
    return moved, means, squares


class LDS(FlatEncoder):
    r"""Learning discrete structures: edges drawn with learned probabilities `theta`.

    The network is `f_w(X, A) = P relu(P X W_1) W_2` with `P = D^{-1/2} (A + I) D^{-1/2}`. A
    training step makes `inner_steps` steps of Adam,

        w <- Adam(w, d/dw [L_inner(f_w(X, A)) + c/2 ||W_1||^2]),  A ~ Bernoulli(theta),

    and `forward` returns the logits of the last weights on one more graph. Their loss is that of
    the held-out nodes (`HalvedValidation`). Its gradient with respect to theta goes back through
    these steps and straight through the samples; theta is clamped to [0, 1]. The weights are
    initialised again after `inner_patience` steps without a lower inner loss, or after
    `inner_limit` steps. Evaluation returns the mean logits of `samples` graphs, the same in each
    call.

    Weights and moments of the inner problem are buffers: the outer optimiser only changes theta.

    Shapes: `batch.x [nodes, in_channels]`, `batch.y [nodes]`, `batch.inner_mask [nodes]`; returns
    `[nodes, num_classes]`. Theta and each graph take `[nodes, nodes]`, and a step keeps
    `inner_steps + 1` graphs.

    Args:
        graph: graph whose edges initialise theta.
        dim: hidden width.
        dropout: dropout of the inputs of both layers in inner steps.

    Source: Algorithm 1, with the settings of the released code. The code also learns the rate of
    Adam, between 0.0001 and 0.05 from 0.02, and lets the outer rate decay; here both are constant.
    """

    tasks = ("node_classification",)
    gives_logits = True
    whole_graph = True  # any two nodes may have an edge
    transductive_reason = "it has a parameter for every pair of nodes"
    inner_lr = 0.02
    inner_weight_decay = 0.0005
    inner_steps = 5
    inner_patience = 20
    inner_limit = 400
    min_decrease = 0.001  # of the inner loss, relative, that counts as lower
    samples = 16
    revision = 3  # 2: a generator of their own draws the graphs of evaluation; 3: as `Encoder`

    def __init__(
        self,
        in_channels: int,
        num_classes: FromData[int],
        graph: FromData[Data],
        dim: PositiveInt = 16,
        dropout: Dropout = 0.5,
    ) -> None:
        super().__init__()
        if num_classes < 2 or graph.y.dim() > 1:
            raise UsageError(
                "LDS is for labels that are one of several classes (dataset.metric=accuracy): "
                "choose another model"
            )
        theta = torch.zeros(graph.num_nodes, graph.num_nodes)
        source, target = graph.edge_index.cpu()
        theta[source, target] = 1.0
        self.theta = nn.Parameter(theta.triu_(1))
        self.shapes = (in_channels, dim), (dim, num_classes)
        for name, value in zip(INNER, self._start(theta), strict=True):
            self.register_buffer(name, value)
        self.dim_out = num_classes
        self.dropout = dropout

    @classmethod
    def required_transforms(cls, options: Mapping[str, Any]) -> Sequence[GraphTransform]:  # noqa: ARG003
        return (HalvedValidation(),)

    def forward(self, batch: Data) -> Tensor:
        if not self.training:
            theta = self.theta.clamp(0, 1)
            generator = torch.Generator(self.theta.device).manual_seed(0)
            weights = [self.get_buffer(name) for name in INNER[:2]]
            graphs = (sampled_graph(theta, generator) for _ in range(self.samples))
            samples = (self._network(batch.x, graph, weights) for graph in graphs)
            return torch.stack([logits / self.samples for logits in samples]).sum(0)
        if "inner_mask" not in batch:
            raise UsageError(
                "LDS learns in two levels, from the nodes of inner_mask and of train_mask: apply "
                "curvlab.data.splits.halved_validation.HalvedValidation to a graph with masks"
            )
        with torch.no_grad():
            self.theta.clamp_(0, 1)
            state = [self.get_buffer(name) for name in INNER]
            settled = (state[-1] >= self.inner_patience) | (state[-3] >= self.inner_limit)
            pairs = zip(self._start(self.theta), state, strict=True)
            state = [torch.where(settled, *pair) for pair in pairs]  # without synchronising
        *parts, steps, lowest, waited = state
        weights = parts[:2]
        means = parts[2:4]
        squares = parts[4:]
        weights = [weight.requires_grad_() for weight in weights]
        for _ in range(self.inner_steps):
            logits = self._network(batch.x, sampled_graph(self.theta), weights, self.dropout)
            losses = F.cross_entropy(logits, batch.y, reduction="none") * batch.inner_mask
            loss = losses.sum() / batch.inner_mask.sum()
            loss = loss + self.inner_weight_decay / 2 * weights[0].square().sum()
            gradients = torch.autograd.grad(loss, weights, create_graph=True)
            steps = steps + 1
            weights, means, squares = adam_step(
                weights, gradients, means, squares, steps, self.inner_lr
            )
            fell = loss.detach() < lowest * (1 - self.min_decrease)
            waited = torch.where(fell, 0.0, waited + 1)
            lowest = torch.where(fell, loss.detach(), lowest)
        logits = self._network(batch.x, sampled_graph(self.theta), weights)
        state = [*weights, *means, *squares, steps, lowest, waited]
        with torch.no_grad():
            for name, value in zip(INNER, state, strict=True):
                self.get_buffer(name).copy_(value)
        return logits

    def _network(
        self, x: Tensor, adjacency: Tensor, weights: Sequence[Tensor], p: float = 0.0
    ) -> Tensor:
        first, second = weights
        hidden = F.relu(propagate(adjacency, dropout(x, p, self.training) @ first))
        return propagate(adjacency, dropout(hidden, p, self.training) @ second)

    def _start(self, template: Tensor) -> list[Tensor]:
        weights = [nn.init.xavier_uniform_(template.new_empty(shape)) for shape in self.shapes]
        zeros = [template.new_zeros(shape) for shape in (*self.shapes, *self.shapes, ())]
        return [*weights, *zeros, template.new_full((), torch.inf), template.new_zeros(())]
