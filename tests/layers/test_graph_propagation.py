"""The graph branch against its formulas on a dense matrix."""

import itertools

import pytest
import torch
from torch_geometric.data import Data

from curvlab.data.datasets.synthetic import SyntheticWeb
from curvlab.data.transforms.graph import NormalisedAdjacency
from curvlab.graph.sparse_matrix import SparseMatrix
from curvlab.layers.graph_propagation import GraphConvolutionBranch
from drawn import draw

pytestmark = pytest.mark.usefixtures("float64")

NODES, FEATURES, DIM = 20, 7, 4
SWITCHES = ("batch_norm", "residual", "weight", "initial")


def adjacency():
    graph = SyntheticWeb(num_nodes=NODES, cycle_fraction=0.5, seed=0).load()
    graph.edge_index = graph.edge_index[:, (graph.edge_index > 0).all(dim=0)]  # 0 is alone
    return NormalisedAdjacency(self_loops=False)(graph).normalised_adj.to(torch.get_default_dtype())


def directed():
    edges = torch.randint(NODES, (2, 60), generator=torch.Generator().manual_seed(1))
    matrix = NormalisedAdjacency(False)(Data(edge_index=edges, num_nodes=NODES)).normalised_adj
    return matrix.to(torch.get_default_dtype())


def branch(**options):
    switches = dict.fromkeys(SWITCHES, False)
    return GraphConvolutionBranch(
        in_channels=FEATURES, dim=DIM, **{"layers": 3, "dropout": 0.0, **switches, **options}
    )


def by_hand(made, x, matrix, options):
    """The definition; batch norm of the nodes at hand, with its own weights 1 and 0."""
    matrix = matrix.to_dense()

    def norm(u):
        if not options["batch_norm"]:
            return u
        return (u - u.mean(0)) / (u.var(0, correction=0) + 1e-5).sqrt()

    first = x = norm(x @ made.features.weight.T + made.features.bias).relu()
    for linear in made.maps:
        u = matrix @ x
        if options["initial"]:
            u = torch.cat([u, first], dim=1)
        if options["weight"] or options["initial"]:
            u = u @ linear.weight.T + linear.bias
        u = norm(u)
        u = u.relu()
        x = u + first if options["residual"] else u
    return x


@pytest.mark.parametrize("values", list(itertools.product([False, True], repeat=4)))
def test_every_combination_is_its_formula(values):
    options = dict(zip(SWITCHES, values, strict=True))
    made = branch(**options)
    expected = by_hand(made, draw(NODES, FEATURES), adjacency(), options)
    torch.testing.assert_close(made(draw(NODES, FEATURES), adjacency()), expected)


@pytest.mark.parametrize("make", [adjacency, directed])
def test_the_gradient_goes_through_the_transpose(make):
    dense, matrix = make().to_dense(), SparseMatrix(make())
    x = draw(NODES, FEATURES).requires_grad_()
    torch.testing.assert_close(matrix @ x, dense @ x)
    assert torch.autograd.gradcheck(lambda x: matrix @ x, x)
    assert torch.autograd.gradgradcheck(lambda x: (matrix @ x).square(), x)


@pytest.mark.usefixtures("float32")
def test_half_precision_is_raised():
    matrix, x = SparseMatrix(adjacency()), draw(NODES, FEATURES)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert (matrix @ x.bfloat16()).dtype == torch.float32
        leaf = x.clone().requires_grad_()
        (matrix @ leaf).sum().backward()
        assert branch(weight=True)(x, adjacency()).isfinite().all()
    torch.testing.assert_close(leaf.grad, adjacency().to_dense().sum(0)[:, None].expand_as(x))
