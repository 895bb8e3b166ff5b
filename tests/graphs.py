"""Small random graphs, and dense matrices of graphs."""

import torch
from torch import Tensor
from torch_geometric.data import Data


def random_graph(nodes: int, pairs: int, features: int, seed: int = 0, alone: int = 0) -> Data:
    """Nodes with random features, joined in both directions; the last `alone` have no edges."""
    generator = torch.Generator().manual_seed(seed)
    edges = torch.randint(nodes - alone, (2, pairs), generator=generator)
    edges = edges[:, edges[0] != edges[1]]
    edges = torch.cat([edges, edges.flip(0)], dim=1).unique(dim=1)
    return Data(torch.randn(nodes, features, generator=generator), edges, num_nodes=nodes)


def dense_adjacency(graph: Data) -> Tensor:
    """`A`, `[nodes, nodes]`."""
    matrix = torch.zeros(graph.num_nodes, graph.num_nodes)
    matrix[graph.edge_index[0], graph.edge_index[1]] = 1
    return matrix


def symmetric(graph: Data) -> Tensor:
    """`D^-1/2 (A + I) D^-1/2`."""
    looped = dense_adjacency(graph) + torch.eye(graph.num_nodes)
    scale = looped.sum(1).rsqrt()
    return scale[:, None] * looped * scale
