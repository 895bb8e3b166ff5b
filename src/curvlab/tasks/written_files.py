"""Files about a trained model that tasks write into a run's folder."""

from pathlib import Path

import torch
from torch import Tensor
from torch_geometric.data import Data

from curvlab.analysis.arrays import save_arrays
from curvlab.analysis.embeddings import Embedding, picture, save_embedding
from curvlab.analysis.filters import FILE as FILTERS
from curvlab.data.vocabulary import vocabulary_of
from curvlab.models.encoder import Encoder
from curvlab.models.polyformer import TokenMixer


@torch.no_grad()
def save_embeddings(encoder: Encoder, graph: Data, folder: Path) -> None:
    """Write `embeddings.npz`: points, space, edges, classes and names in the dataset's order."""
    encoder.eval()
    graph = graph.to(str(next(encoder.parameters()).device))
    points, space = picture(encoder.manifold_out, encoder(graph).float())
    order, nodes = _order(graph)
    classes = graph.y[order] if graph.y is not None and graph.y.dim() == 1 else None
    names = vocabulary_of(graph)
    ids = names.nodes
    if ids is not None and nodes is not None:
        ids = [ids[node] for node in nodes.tolist()]
    fields = graph.edge_index, classes, nodes, ids, names.classes
    save_embedding(folder / "embeddings.npz", Embedding(points[order], space, *fields))


def save_filters(
    encoder: Encoder, graph: Data, folder: Path, read_out: Tensor | None = None
) -> None:
    """Write `filters.npz`, coefficients of each node's filter, if the model has them.

    With weights `read_out` `[dim]` of a linear map of the embeddings, of one signal: the filters of
    the whole map.
    """
    if not isinstance(encoder, TokenMixer) or not encoder.filters_nodes:
        return
    encoder.eval()
    graph = graph.to(str(encoder.input.weight.device))
    if encoder.hidden is not None or encoder.input.in_features > 1:
        read_out = None
    order, nodes = _order(graph)
    coefficients = encoder.node_filters(graph, read_out)[order]
    arrays = {"coefficients": coefficients, "basis": encoder.basis, "nodes": nodes}
    save_arrays(folder / FILTERS, arrays)


def _order(graph: Data) -> tuple[Tensor | slice, Tensor | None]:
    """The order of rows by `graph.nodes`, and these nodes sorted; unchanged without them."""
    if graph.get("nodes") is None:
        return slice(None), None
    nodes, order = graph.nodes.sort()
    return order, nodes
