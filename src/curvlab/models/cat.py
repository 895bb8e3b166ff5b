"""CAT, "Curvature-Adaptive Transformers for Geometry-Aware Learning", arXiv:2510.01634, Section 4.

The model runs on nodes of a graph and on triples.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from curvlab.checked import Checked
from curvlab.errors import UsageError
from curvlab.layers.curved_branches import (
    BranchRouter,
    EuclideanBranch,
    FeedForwardBranch,
    HyperbolicBranch,
    SphericalBranch,
    entropy,
)
from curvlab.models.cat_tokens import NeighbourTokens, NodeTokens, TripleTokens
from curvlab.models.encoder import FlatEncoder
from curvlab.models.triple_scorer import DotProductScorer
from curvlab.options import (
    Activation,
    Dropout,
    FromData,
    NonNegativeFloat,
    Passed,
    PositiveInt,
    Share,
)

Branch = Literal["euclidean", "hyperbolic", "spherical", "feed_forward"]


class RoutingEntropy(Checked, nn.Module):
    """-lambda H or + lambda H, for the mean entropy H of the router's weights; lambda is annealed.

    lambda(0) = weight, and lambda(k + 1) = max(floor, decay lambda(k)) after each pass over the
    data. The paper's text raises the entropy at the start (`encourage`); its formula lowers it
    (`paper_formula`).

    `balance` b adds b (G sum_g mean(a_g)^2 - 1) for the mean weights of the G branches. This term
    is not annealed, and is 0 if all branches are used equally (Shazeer et al. 2017).

    Source: CAT, Eq. 15 and Appendix A.

    Args:
        weight: lambda at the start.
        decay: factor of lambda after every pass.
        floor: smallest value of lambda.
        sign: sign of the entropy term: `encourage` raises the entropy, `paper_formula` lowers it.
        balance: weight of the balancing term, which the paper does not have.
    """

    def __init__(
        self,
        steps_per_pass: int,
        weight: NonNegativeFloat = 0.01,
        decay: Share = 0.95,
        floor: NonNegativeFloat = 0.001,
        sign: Literal["encourage", "paper_formula"] = "encourage",
        balance: NonNegativeFloat = 0.0,
    ) -> None:
        super().__init__()
        self.balance = balance
        self.weight = weight
        self.decay = decay
        self.floor = floor
        self.sign = -1 if sign == "encourage" else 1
        self.steps_per_pass = steps_per_pass
        self.step: Tensor = nn.Buffer(torch.zeros((), dtype=torch.long))

    @property
    def coefficient(self) -> Tensor:
        passes = self.step // self.steps_per_pass
        return (self.weight * self.decay**passes).clamp(min=self.floor)

    def forward(self, weights: Tensor) -> Tensor:
        """The term of a training step, with weights `[..., branches]`; counts the step."""
        term = self.sign * self.coefficient * entropy(weights).mean()
        if self.balance:
            mean = weights.flatten(0, -2).mean(0)
            term = term + self.balance * (len(mean) * mean.square().sum() - 1)
        self.step += 1
        return term


class CurvatureBlock(nn.Module):
    """Y = sum_g a_g Y_g of branches g, with a router's weights a, or equal weights.

    A single branch has no router. The sum has neither a residual connection nor a norm.

    Source: CAT, Eq. 12.
    """

    def __init__(self, branches: Sequence[nn.Module], router: nn.Module | None) -> None:
        super().__init__()
        self.branches = nn.ModuleList(branches)
        self.router = router

    def forward(self, x: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """Tokens of the same shape, and the router's weights; with a mask `[tokens, tokens]`."""
        outputs = torch.stack([branch(x, mask) for branch in self.branches], -1)
        if self.router is None:
            return outputs.mean(-1), None
        weights = self.router(x)
        return torch.linalg.vecdot(outputs, weights.unsqueeze(-2).to(outputs.dtype)), weights


class _Routings(list[Tensor]):
    """Branch weights of each block in the last forward pass; copies of the model have none."""

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), ()


class CAT(FlatEncoder, DotProductScorer):
    """Blocks of attention branches in several geometries that every token weighs by itself.

    On triples, the score of a tail is the product of the query's output and the tail's embedding.
    On nodes, the outputs are embeddings for a linear decoder. With the layout `single`, attention
    and distances have no effect: each branch is a feed-forward network, and the router chooses
    between networks, not between curvatures.

    Differences from the paper: sums on the sphere are normalised before their logarithm, and the
    sphere's tangent vectors stay below the antipode; points of the ball are summed by their
    midpoint.

    Args:
        steps_per_pass: Training steps of one pass over the data, after which `entropy` decays.
        activation: activation of the feed-forward networks and the router.
        dropout: dropout of embeddings and tokens.
        token_layout: layout of nodes as tokens: `graph`, all are one sequence, or `single`, each is
            a sequence of one.
        attention_mask: `adjacency`: nodes of one sequence attend to their neighbours; None: to all
            nodes.
        branches: branches of a block; a branch may occur several times.
        routed: weigh the branches for each token; False: give all branches equal weights.
        equal_start: start the router with equal weights, unlike the paper.
        euclidean: factory of the Euclidean branch from `dim`, `ffn_ratio` and `activation`.
        hyperbolic: factory of the hyperbolic branch from the same arguments.
        spherical: factory of the spherical branch from the same arguments.
        feed_forward: factory of a branch without attention or geometry.
        entropy: factory of the router's entropy term in the loss, from `steps_per_pass`.
    """

    tasks: tuple[str, ...] = (
        "kg_completion",
        "node_classification",
        "link_prediction",
        "reconstruction",
    )
    unused_parameters = True  # attention's, where a sequence has one token

    def __init__(
        self,
        in_channels: Passed[int | None] = None,
        num_entities: Passed[int | None] = None,
        num_relations: Passed[int | None] = None,
        steps_per_pass: FromData[int] = 1,
        dim: PositiveInt = 64,
        layers: PositiveInt = 1,
        activation: Activation = "relu",
        dropout: Dropout = 0.2,
        token_layout: Literal["single", "graph"] = "single",
        attention_mask: Literal["adjacency"] | None = None,
        branches: Sequence[Branch] = ("euclidean", "hyperbolic", "spherical"),
        routed: bool = True,
        equal_start: bool = False,
        euclidean: Callable[..., nn.Module] = EuclideanBranch,
        hyperbolic: Callable[..., nn.Module] = HyperbolicBranch,
        spherical: Callable[..., nn.Module] = SphericalBranch,
        feed_forward: Callable[..., nn.Module] = FeedForwardBranch,
        entropy: Callable[..., RoutingEntropy] = RoutingEntropy,
    ) -> None:
        super().__init__()
        makers = euclidean, hyperbolic, spherical, feed_forward
        kinds = dict(zip(get_args(Branch), makers, strict=True))
        if not branches:
            raise UsageError(f"branches=[] must be a list of {', '.join(kinds)}")
        together = token_layout == "graph"
        if attention_mask and not (together and num_entities is None):
            raise UsageError(
                f"attention_mask={attention_mask!r} needs the nodes of a graph in one sequence, "
                "token_layout='graph'; queries of triples have no mask (attention_mask=None)"
            )
        self.tokens: NodeTokens | TripleTokens
        if num_entities is None:
            masked = attention_mask is not None
            self.tokens = NodeTokens(in_channels or 0, dim, dropout, together, masked)
        elif together:
            raise UsageError("token_layout='graph' is for nodes: for triples use 'single'")
        else:
            self.tokens = TripleTokens(num_entities, num_relations or 0, dim, dropout)
        options = {"dim": dim, "ffn_ratio": 2, "activation": activation}
        routed = routed and len(branches) > 1
        self.blocks = nn.ModuleList()
        for _ in range(layers):
            parts = [kinds[name](**options) for name in branches]
            router = BranchRouter(dim, len(branches), activation) if routed else None
            if router is not None and equal_start:
                nn.init.zeros_(router.logits.reduce.weight)
                nn.init.zeros_(router.logits.reduce.bias)
            self.blocks.append(CurvatureBlock(parts, router))
        self.entropy = entropy(steps_per_pass=steps_per_pass) if routed else None
        self.branch_names = []
        for i, name in enumerate(branches):
            count = list(branches[: i + 1]).count(name)
            # The second of two equal branches is called `euclidean_2`.
            self.branch_names.append(name if count == 1 else f"{name}_{count}")
        self.dim_out = dim
        self._routings = _Routings()

    @property
    def num_entities(self) -> int:
        return len(self.entity_points)

    @property
    def entity_points(self) -> Tensor:
        assert isinstance(self.tokens, TripleTokens)
        return self.tokens.entities.weight

    def tails(self, index: Tensor | None = None) -> Tensor:
        return self.entity_points if index is None else self.entity_points[index]

    def forward(self, batch: Data) -> Tensor:
        x, mask = self.tokens(batch)
        routings = []
        count = 1 if isinstance(self.tokens, NeighbourTokens) else x.shape[1]
        for block in self.blocks:
            x, weights = block(x, mask)
            if weights is not None:
                routings.append(weights[:, :count].flatten(0, 1))
        self._routings = _Routings(routings)
        return x[:, :count].flatten(0, 1)

    @property
    def router_branches(self) -> Sequence[str]:
        return self.branch_names if self.entropy is not None else ()

    @property
    def statistic_names(self) -> Sequence[str]:
        """Names in `statistics` for the branches of the blocks."""
        names = [f"routing_{name}" for name in self.router_branches]
        if names:
            names.append("routing_entropy")
        if self._balls:
            names.insert(0, "at_rim")
        return names

    def statistics(self, batch: Data, points: Tensor | None = None) -> dict[str, Tensor]:  # noqa: ARG002
        """The router's mean weights, their mean entropy, and the share of points at the rim.

        They describe the last batch. `at_rim` is the mean over the hyperbolic branches.
        """
        values: list[Tensor] = []
        if self._balls:
            values.append(torch.stack([ball.at_rim for ball in self._balls]).mean())
        weights = self.routing
        if weights is not None:
            values += [*weights.mean(0), entropy(weights).mean()]
        return dict(zip(self.statistic_names, values, strict=True))

    @property
    def _balls(self) -> list[HyperbolicBranch]:
        return [part for part in self.modules() if isinstance(part, HyperbolicBranch)]

    def training_loss(
        self, batch: Data, loss: Callable[[Tensor], Tensor], nodes: Tensor | None = None
    ) -> Tensor:
        """The task's loss and the term of the routing's entropy."""
        return self._with_entropy(super().training_loss(batch, loss, nodes))

    def triple_loss(self, loss: Callable[[], Tensor]) -> Tensor:
        """The task's loss and the term of the routing's entropy."""
        return self._with_entropy(super().triple_loss(loss))

    def _with_entropy(self, loss: Tensor) -> Tensor:
        if self.entropy is None or not self._routings:
            return loss
        return loss + self.entropy(torch.stack(self._routings))

    @property
    def routing(self) -> Tensor | None:
        """Weights `[queries or nodes, branches]` of the last pass, mean over blocks, if routed."""
        return torch.stack(self._routings).mean(0) if self._routings else None


class NeighbourCAT(CAT):
    """CAT on triples whose queries attend to the neighbours of their head; see `NeighbourTokens`.

    Here attention and distances have an effect. The parameters are those of CAT.

    Args:
        neighbours: largest number of neighbour tokens of a query.
    """

    tasks = ("kg_completion",)

    def __init__(
        self,
        num_entities: int,
        num_relations: int,
        train_triples: FromData[Tensor],
        steps_per_pass: FromData[int] = 1,
        dim: PositiveInt = 64,
        layers: PositiveInt = 1,
        activation: Activation = "relu",
        dropout: Dropout = 0.2,
        neighbours: PositiveInt = 8,
    ) -> None:
        super().__init__(
            num_entities=num_entities,
            num_relations=num_relations,
            steps_per_pass=steps_per_pass,
            dim=dim,
            layers=layers,
            activation=activation,
            dropout=dropout,
        )
        self.tokens = NeighbourTokens(
            num_entities, num_relations, dim, dropout, train_triples, neighbours
        )
