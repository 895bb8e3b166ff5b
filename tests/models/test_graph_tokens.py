"""Node and edge tokens of a graph."""

import pytest
import torch

from curvlab.errors import UsageError
from curvlab.models.fpst import GraphTokens

pytestmark = pytest.mark.usefixtures("float64")


def parts(tokens, graph):
    """The three parts of every token, from their definitions: features, identifiers, types."""
    of_edges = graph.num_edges, tokens.features.out_features
    features = torch.cat([tokens.features(graph.x), torch.zeros(of_edges)])
    ends = torch.cat([torch.arange(graph.num_nodes).expand(2, -1), graph.edge_index], dim=1)
    pairs = torch.cat([graph.eigenvectors[ends[0]], graph.eigenvectors[ends[1]]], dim=1)
    kinds = torch.cat([torch.zeros(graph.num_nodes), torch.ones(graph.num_edges)]).long()
    return features, pairs @ tokens.identifiers.weight.T, tokens.types.weight[kinds]


def test_tokens_are_sums_of_features_identifiers_and_types(graph):
    tokens = GraphTokens(in_channels=5, eigenvectors=3, dim=4, fusion="sum", sign_flips=False)
    torch.testing.assert_close(tokens(graph), sum(parts(tokens, graph)))


def test_tokens_may_be_a_linear_map_of_their_parts(graph):
    tokens = GraphTokens(in_channels=5, eigenvectors=3, dim=4, fusion="linear", sign_flips=False)
    joined = torch.cat(parts(tokens, graph), dim=1)
    expected = joined @ tokens.fusion.weight.T + tokens.fusion.bias
    torch.testing.assert_close(tokens(graph), expected)


def test_one_token_a_node_and_one_a_direction_of_an_edge(graph):
    tokens = GraphTokens(5, 3, 4, "sum", sign_flips=False)(graph)
    assert tokens.shape == (graph.num_nodes + graph.num_edges, 4)
    forward = graph.num_nodes
    u, v = graph.edge_index[:, 0]
    backward = forward + int(((graph.edge_index[0] == v) & (graph.edge_index[1] == u)).nonzero())
    assert not torch.equal(tokens[forward], tokens[backward])


def test_edge_tokens_ignore_the_features(graph):
    tokens = GraphTokens(5, 3, 4, "sum", sign_flips=False)
    before = tokens(graph)
    graph.x = graph.x + 1
    after = tokens(graph)
    torch.testing.assert_close(after[graph.num_nodes :], before[graph.num_nodes :])
    assert (after[: graph.num_nodes] != before[: graph.num_nodes]).all(dim=1).all()


def test_unknown_fusion_is_refused():
    with pytest.raises(UsageError, match="fusion='concat' must be one of sum, linear"):
        GraphTokens(5, 3, 4, "concat", sign_flips=False)


def test_signs_of_eigenvectors_change_in_training_only(graph):
    """Every step's tokens are those of some choice of signs, and not always of the same."""
    tokens = GraphTokens(5, 3, 4, "sum", sign_flips=True)
    plain = GraphTokens(5, 3, 4, "sum", sign_flips=False)
    plain.load_state_dict(tokens.state_dict())
    signs = torch.cartesian_prod(*[torch.tensor([1.0, -1.0])] * 3)
    possible = []
    for choice in signs:
        flipped = graph.clone()
        flipped.eigenvectors = graph.eigenvectors * choice
        possible.append(plain(flipped))
    torch.manual_seed(0)
    found = set()
    for _ in range(60):
        made = tokens(graph)
        found.add(next(i for i, p in enumerate(possible) if torch.allclose(made, p)))
    assert found == set(range(8))
    tokens.eval()
    torch.testing.assert_close(tokens(graph), possible[0])


def test_sparse_features_give_the_tokens_of_dense_ones(graph):
    tokens = GraphTokens(40, 3, 4, "sum", sign_flips=False)
    graph.x = torch.eye(12, 40)  # one of forty features a node
    torch.testing.assert_close(tokens(graph), sum(parts(tokens, graph)))
    dense = tokens(graph.clone().update({"x": graph.x.clone().requires_grad_()}))
    torch.testing.assert_close(tokens(graph), dense.detach())
