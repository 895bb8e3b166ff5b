"""Node and edge tokens of a graph."""

import pytest
import torch

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
