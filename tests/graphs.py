"""Small graphs, and dense matrices of graphs."""

import networkx as nx
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import to_networkx, to_undirected


def both_directions(edges) -> Tensor:
    """`edge_index` of edges, pairs or `[2, edges]`, that are named in one direction."""
    one = edges if torch.is_tensor(edges) else torch.tensor(edges, dtype=torch.long).view(-1, 2).T
    return torch.cat([one, one.flip(0)], dim=1)


def ring(nodes: int) -> Tensor:
    """Edges of a cycle."""
    i = torch.arange(nodes)
    return both_directions(torch.stack([i, (i + 1) % nodes]))


def random_graph(nodes: int, pairs: int, features: int, seed: int = 0, alone: int = 0) -> Data:
    """Nodes with random features, joined in both directions; the last `alone` have no edges."""
    generator = torch.Generator().manual_seed(seed)
    edges = torch.randint(nodes - alone, (2, pairs), generator=generator)
    edges = both_directions(edges[:, edges[0] != edges[1]]).unique(dim=1)
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


def graph_of(network: nx.Graph) -> Data:
    """The graph of networkx, without features."""
    network = nx.convert_node_labels_to_integers(network)
    edges = torch.tensor(list(network.edges), dtype=torch.long).reshape(-1, 2).T
    return Data(edge_index=to_undirected(edges), num_nodes=network.number_of_nodes())


def of_networkx(network: nx.Graph) -> tuple[Tensor, int]:
    """Edges and number of nodes."""
    graph = graph_of(network)
    return graph.edge_index, network.number_of_nodes()


def is_simple(graph: Data) -> bool:
    """Whether every edge is there once in each direction, and none is from a node to itself."""
    return graph.is_coalesced() and graph.is_undirected() and not graph.has_self_loops()


def is_connected(graph: Data) -> bool:
    """Whether a path leads from each node to each other."""
    return nx.is_connected(to_networkx(graph, to_undirected=True))


class Given:
    """A source that has its graph."""

    def __init__(self, data: Data) -> None:
        self.data = data

    def download(self) -> list:
        """Nothing."""
        return []

    def load(self) -> Data:
        """The graph, which may be changed."""
        return self.data.clone()
