"""Files about a trained model that tasks write into a run's folder."""

from pathlib import Path

import torch
from torch import Tensor
from torch_geometric.data import Data

from curvlab.analysis.arrays import save_arrays
from curvlab.analysis.embeddings import Embedding, picture, save_embedding
from curvlab.analysis.filters import FILE as FILTERS
from curvlab.analysis.routing import FILE as ROUTING
from curvlab.analysis.routing import TABLE as ROUTING_TABLE
from curvlab.analysis.routing import Routing, routing_table, save_routing
from curvlab.data.datasets.triples import MASKS
from curvlab.data.vocabulary import vocabulary_of
from curvlab.files import atomic_write
from curvlab.models.encoder import Encoder
from curvlab.models.polyformer import TokenMixer
from curvlab.models.triple_scorer import TripleScorer
from curvlab.tasks.triple_ranking import EVALUATION_ENTRIES, query_blocks


@torch.no_grad()
def save_embeddings(encoder: Encoder, graph: Data, folder: Path) -> None:
    """Write `embeddings.npz`: points, space, edges, classes and names in the dataset's order."""
    encoder.eval()
    graph = graph.to(str(next(encoder.parameters()).device))
    points, space = picture(encoder.manifold_out, encoder(graph).float())
    order, nodes = _order(graph)
    classes = None
    if graph.y is not None and graph.y.dim() == 1:
        classes = graph.y[order]
    names = vocabulary_of(graph)
    ids = names.nodes
    if ids is not None and nodes is not None:
        ids = [ids[node] for node in nodes.tolist()]
    fields = graph.edge_index, classes, nodes, ids, names.classes
    embedding = Embedding(points[order], space, *fields)
    save_embedding(folder / "embeddings.npz", embedding)


def save_filters(
    encoder: Encoder, graph: Data, folder: Path, read_out: Tensor | None = None
) -> None:
    """Write `filters.npz`, the coefficients of each node's filter, if the model has filters.

    Args:
        encoder: trained model.
        graph: graph of the nodes.
        folder: folder of the run.
        read_out: weights `[dim]` of a linear map of the embeddings. If given, and the signal has
            one channel, the filters are those of the whole map from the signal.
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


@torch.no_grad()
def save_query_routing(encoder: TripleScorer, graph: Data, folder: Path) -> None:
    """Write `routing.npz` and `routing.csv`: the router's weights for training and test triples."""
    parts = {part: _routing(encoder, graph, part) for part in ("train", "test")}
    save_routing(folder / ROUTING, parts)
    table = routing_table(parts["test"])
    atomic_write(folder / ROUTING_TABLE, table.to_csv(index=False, float_format="%.4f"))


def _routing(encoder: TripleScorer, graph: Data, part: str) -> Routing:
    """Weights of a router's branches for the triples of a part."""
    device = next(encoder.parameters()).device
    mask = graph[MASKS[part]].to(graph.edge_type.device)
    head, tail = graph.edge_index[:, mask].to(device)
    relation = graph.edge_type[mask].to(device)
    size = EVALUATION_ENTRIES // encoder.dim_out
    weights = []
    for queries in query_blocks(size, head=head, relation=relation, tail=tail):
        encoder(queries)
        assert encoder.routing is not None
        weights.append(encoder.routing.float().cpu())
    return Routing(
        torch.cat(weights).numpy(),
        relation.cpu().numpy(),
        list(encoder.router_branches),
        graph.relation_names,
    )


def _order(graph: Data) -> tuple[Tensor | slice, Tensor | None]:
    """Order of the rows by `graph.nodes`, and the sorted nodes; without nodes the stored order."""
    if graph.get("nodes") is None:
        return slice(None), None
    nodes, order = graph.nodes.sort()
    return order, nodes
