"""No metric depends on the order of the nodes, entities or queries, whatever is tied."""

import pandas as pd
import pytest
import torch
from torch_geometric.data import Data

from curvlab.analysis.ranks import ranking_table
from curvlab.manifolds import Euclidean, Lorentz, Product, PseudoHyperboloid, Stereographic
from curvlab.metrics.ranking import TIES, rank_counts, ranking_metrics, ranks
from curvlab.tasks import reconstruction
from curvlab.tasks.labels import kind_of_labels
from curvlab.tasks.link_prediction import link_scores
from curvlab.tasks.reconstruction import Reconstruction
from graphs import random_graph
from placed import Placed

EXACT = 1e-6
SPACES = {
    "euclidean": Euclidean(conformal_factor=1.0),
    "stereographic": Stereographic(2, (-1.0, 0.5)),
    "flat": Stereographic(1, 0.0),
    "lorentz": Lorentz(),
    "pseudo-hyperboloid": PseudoHyperboloid(time_dims=2),
    "product": Product("H2xS1xE1"),
}
NODES = 70


def assert_equal(found, expected):
    """Metrics agree to 1e-6."""
    torch.testing.assert_close(found, expected, atol=EXACT, rtol=0, check_dtype=False)


def orders(count, of=NODES):
    """Drawn orders of nodes."""
    generator = torch.Generator().manual_seed(7)
    return [torch.randperm(of, generator=generator) for _ in range(count)]


def permuted(edge_index, order):
    """The same edges where node `order[i]` is number i."""
    return order.argsort()[edge_index]


def tangents(kind):
    """Tangent vectors of 70 nodes, many of which coincide."""
    generator = torch.Generator().manual_seed(3)
    v = torch.randn(NODES, 4, generator=generator)
    if kind == "one point":
        return v[:1].repeat(NODES, 1)
    if kind == "nine points":
        return v[torch.arange(NODES) % 9]
    if kind == "grid":
        return torch.cartesian_prod(*[torch.tensor([-0.3, 0.0, 0.3])] * 4)[:NODES]
    noise = torch.randn(NODES, 4, generator=generator).clamp(-2, 2)
    return v[torch.arange(NODES) % 9] * (1 + 3e-7 * noise)


@pytest.mark.parametrize("kind", ["one point", "nine points", "grid", "rounded points"])
@pytest.mark.parametrize("name", SPACES)
def test_mean_average_precision(name, kind, monkeypatch):
    """Blocks of any number of rows, and points in any of them; ties by symmetry too, on a grid."""
    graph, space = random_graph(NODES, 200, 1), SPACES[name]
    points = space.expmap0(tangents(kind)).detach()
    expected = None
    for number, order in enumerate(orders(6)):
        batch = Data(graph.x, permuted(graph.edge_index, order), num_nodes=NODES)
        task = Reconstruction(Placed(points[order], space))
        rows = [1, 3, 16, 64, NODES, 1000][number]
        monkeypatch.setattr(reconstruction, "EVALUATION_ENTRIES", rows * NODES)
        found = task.precision(batch).item()
        expected = found if expected is None else expected
        assert found == pytest.approx(expected, abs=EXACT * 100)


KINDS = {
    "classes": (5, False, ["ogb_acc"]),
    "two classes": (2, False, ["roc_auc"]),
    "one logit": (1, False, []),
    "labels": (4, True, ["ogb_rocauc"]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_metrics_of_node_classification(kind):
    classes, several, further = KINDS[kind]
    generator = torch.Generator().manual_seed(0)
    logits = torch.randint(-2, 3, (NODES, classes), generator=generator).float()
    labels = torch.randint(max(classes, 2), (NODES,), generator=generator)
    if several:
        labels = torch.randint(2, (NODES, classes), generator=generator).float()
    found = kind_of_labels(classes, several)
    for metric in further:
        found = kind_of_labels(classes, several, metric)
    expected = found.scores(logits, labels)
    assert set(further) <= expected.keys()
    for order in orders(5):
        assert_equal(found.scores(logits[order], labels[order]), expected)


def test_metrics_of_links():
    generator = torch.Generator().manual_seed(0)
    edges, others = (torch.randint(6, (NODES,), generator=generator).float() for _ in range(2))
    expected = link_scores(edges + 1, others)
    for order, other in zip(orders(5), orders(10)[5:], strict=True):
        assert_equal(link_scores(edges[order] + 1, others[other]), expected)


@pytest.mark.parametrize("ties", TIES)
def test_metrics_of_triples(ties):
    """Candidates and queries in any order, with and without known answers."""
    generator = torch.Generator().manual_seed(0)
    scores = torch.randint(4, (20, NODES), generator=generator).float()
    target = torch.randint(NODES, (20,), generator=generator)
    known = torch.stack([torch.randint(n, (60,), generator=generator) for n in (20, NODES)]).unique(
        dim=1
    )

    def metrics(queries, candidates):
        at = queries.argsort()[known[0]], candidates.argsort()[known[1]]
        counts = rank_counts(
            scores[queries][:, candidates], candidates.argsort()[target[queries]], at
        )
        return [ranking_metrics(ranks(found, ties), (1, 3, 10)) for found in counts]

    expected = metrics(torch.arange(20), torch.arange(NODES))
    for queries, candidates in zip(orders(5, 20), orders(5), strict=True):
        assert_equal(metrics(queries, candidates), expected)


def test_tables_of_ranks():
    generator = torch.Generator().manual_seed(0)
    optimistic = torch.randint(1, 30, (NODES,), generator=generator)
    table = pd.DataFrame(
        {
            "side": ["head", "tail"] * (NODES // 2),
            "type": "filtered",
            "optimistic": optimistic,
            "pessimistic": optimistic + torch.randint(9, (NODES,), generator=generator),
            "candidates": 50,
        }
    )
    expected = ranking_table(table)
    for order in orders(3):
        pd.testing.assert_frame_equal(ranking_table(table.iloc[order.tolist()]), expected)
