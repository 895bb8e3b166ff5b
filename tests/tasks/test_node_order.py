"""No metric depends on the order of the nodes, entities or queries, whatever is tied."""

from types import SimpleNamespace

import pandas as pd
import pytest
import torch
from torch_geometric.data import Data

from curvlab.analysis.ranks import ranking_table
from curvlab.manifolds import Euclidean, Lorentz, Product, PseudoHyperboloid, Stereographic
from curvlab.metrics.ranking import TIES, rank_counts, ranking_metrics, ranks
from curvlab.tasks import reconstruction
from curvlab.tasks.decoders import LinkDecoder
from curvlab.tasks.filter_regression import FilterRegression
from curvlab.tasks.labels import make_labels
from curvlab.tasks.likeliest_links import likeliest_links
from curvlab.tasks.link_prediction import METRICS, LinkPrediction, link_scores
from curvlab.tasks.predictions import PredictionQuery
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


def of_classes(classes, several, further):
    """Names of the metrics of a kind of labels."""
    return {name for m in (None, *further) for name in make_labels(classes, several, m).metrics}


@pytest.mark.parametrize("kind", KINDS)
def test_metrics_of_node_classification(kind):
    classes, several, further = KINDS[kind]
    generator = torch.Generator().manual_seed(0)
    logits = torch.randint(-2, 3, (NODES, classes), generator=generator).float()
    labels = torch.randint(max(classes, 2), (NODES,), generator=generator)
    if several:
        labels = torch.randint(2, (NODES, classes), generator=generator).float()
    found = make_labels(classes, several)
    for metric in further:
        found = make_labels(classes, several, metric)
    expected = found.scores(logits, labels)
    assert set(further) <= expected.keys()
    for order in orders(5):
        assert_equal(found.scores(logits[order], labels[order]), expected)


class Linear(LinkDecoder):
    """Scores whose rounding depends on the place of a pair and on the order of its ends."""

    def forward(self, x, y):
        noise = 1 + 1e-7 * torch.randn(len(x), generator=torch.Generator().manual_seed(len(x)))
        return -(x + 1.0001 * y).sum(1) * noise

    def loss(self, edges, non_edges):
        raise NotImplementedError


@pytest.mark.parametrize("decoder", ["auto", "noisy"])
@pytest.mark.parametrize("kind", ["one point", "nine points", "rounded points"])
@pytest.mark.parametrize("name", [name for name in SPACES if name != "pseudo-hyperboloid"])
def test_metrics_of_links_of_points(name, kind, decoder):
    """Nodes, pairs and the ends of a pair in any order; where all are tied, AUC is a half."""
    space, points = SPACES[name], SPACES[name].expmap0(tangents(kind)).detach()
    generator = torch.Generator().manual_seed(0)
    edges, others = torch.randint(NODES, (2, 2, 50), generator=generator)
    expected = None
    for order in orders(5):
        task = LinkPrediction(Placed(points[order], space))
        if decoder == "noisy":
            task.decoder = Linear()
        new = order.argsort()
        batch = Data(test_edges=new[edges], test_non_edges=new[others], num_nodes=NODES)
        found = {name: score.item() for name, score in task.scores(batch, "test").items()}
        if kind == "one point":
            assert found["roc_auc"] == 50
        if decoder == "auto":
            expected = expected or found
            assert found == pytest.approx(expected, abs=100 * EXACT)
        edges = edges.flip(0)[:, torch.randperm(50, generator=generator)]
        others = others.flip(0)[:, torch.randperm(50, generator=generator)]


@pytest.mark.parametrize("kind", ["two classes", "one logit", "labels"])
def test_areas_of_logits_that_rounding_alone_separates(kind):
    """The layers of a model sum in the order of the nodes: equal nodes differ in last digits."""
    classes, several, _ = KINDS[kind]
    generator = torch.Generator().manual_seed(0)
    exact = torch.randn(1 if kind == "one logit" else classes, generator=generator)
    rounded = exact * (1 + 3e-7 * torch.randn(NODES, len(exact), generator=generator).clamp(-2, 2))
    labels = torch.randint(2, (NODES, classes) if several else (NODES,), generator=generator)
    metric = make_labels(classes, several, "roc_auc")
    assert metric.score("roc_auc", rounded, labels).item() == 50


def test_every_metric_that_selects_or_is_reported_is_tested_here():
    """A new metric is in none of these lists until a test of its order is written."""
    classes = {name for kind in KINDS.values() for name in of_classes(*kind)}
    assert classes == {"accuracy", "f1_micro", "f1_macro", "f1_binary", "roc_auc"} | {
        "ogb_acc",
        "ogb_rocauc",
    }
    assert link_scores(torch.ones(2), torch.zeros(2)).keys() == set(METRICS)


def test_the_fit_of_a_filter():
    generator = torch.Generator().manual_seed(0)
    x, target = torch.randn(NODES, 3, generator=generator), torch.arange(NODES) // 9 / 4
    every = torch.ones(NODES, dtype=torch.bool)
    task = FilterRegression(Placed(x.clone(), Euclidean()))
    masks = dict.fromkeys(("scored", "train_mask", "val_mask", "test_mask"), every)
    expected = None
    for order in orders(5):
        with torch.no_grad():
            task.encoder.points.copy_(x[order])
        found = task.scores(Data(target=target[order], num_nodes=NODES, **masks), "test")
        expected = expected or found
        torch.testing.assert_close(found, expected, atol=0, rtol=EXACT)


def test_lists_of_the_nearest_nodes():
    """Tied answers have the mean of their ranks, also where the list ends among them."""
    points = tangents("rounded points")
    ids = [f"n{i}" for i in range(NODES)]

    def nearest(order, k):
        graph = Data(
            edge_index=permuted(random_graph(NODES, 200, 1).edge_index, order), num_nodes=NODES
        )
        run = SimpleNamespace(
            ids=lambda _: [ids[i] for i in order.tolist()],
            embed=lambda _: points[order],
            data=SimpleNamespace(graph=graph),
            space=Euclidean(),
        )
        query = PredictionQuery(k=k, known=True)
        scores = lambda x, y: -(x - y).norm(dim=-1)  # noqa: E731
        pairwise_scores = lambda x, y: scores(x[:, None], y)  # noqa: E731
        return likeliest_links(run, None, query, scores, pairwise_scores)

    same = torch.arange(NODES) % 9
    exact = torch.cdist(points[same], points[same])
    exact.fill_diagonal_(torch.inf)
    for k in (5, NODES):
        tables = [nearest(order, k).sort_values(["node", "rank"]) for order in orders(3)]
        for table in tables:
            assert (table.groupby("node").size() == min(k, NODES - 1)).all()
            for _, (node, other, rank) in table[["node", "neighbour", "rank"]].iterrows():
                row, value = exact[int(node[1:])], exact[int(node[1:]), int(other[1:])]
                tied = torch.isclose(row, value, rtol=1e-4, atol=1e-6)
                nearer = ((row < value) & ~tied).sum().item()
                assert rank == nearer + (tied.sum().item() + 1) / 2
        whole = [
            table.sort_values(["node", "neighbour"])[["node", "neighbour", "rank", "known"]]
            for table in tables
        ]
        if k == NODES:
            for table in whole[1:]:
                pd.testing.assert_frame_equal(
                    table.reset_index(drop=True), whole[0].reset_index(drop=True)
                )
        else:
            ranks_of = [table.groupby("node")["rank"].apply(list) for table in tables]
            for found in ranks_of[1:]:
                pd.testing.assert_series_equal(found, ranks_of[0])


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
