"""Pictures of embeddings: names of the nodes of small graphs, whole numbers of neighbours."""

import matplotlib.pyplot as plt
import pytest
import torch
from torch_geometric.utils import to_undirected

from curvlab.analysis.embeddings import Embedding
from curvlab.analysis.model_figures import NAMED_NODES, embedding_figure
from curvlab.manifolds.euclidean_space import Euclidean


@pytest.mark.parametrize("nodes", [5, NAMED_NODES, NAMED_NODES + 1])
def test_nodes_of_small_graphs_are_named_and_degrees_are_whole(nodes):
    path = to_undirected(torch.stack([torch.arange(nodes - 1), torch.arange(1, nodes)]))
    points = torch.randn(nodes, 3, generator=torch.Generator().manual_seed(0))
    ids = [f"node {i}" for i in range(nodes)]
    figure = embedding_figure(Embedding(points, Euclidean(), path, ids=ids), "title")
    figure.canvas.draw()
    axis, bar = figure.axes
    named = [text.get_text() for text in axis.texts]
    assert named == (ids if nodes <= NAMED_NODES else [])
    assert all(tick == round(tick) for tick in bar.get_yticks())
    plt.close(figure)
