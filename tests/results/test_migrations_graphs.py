"""Stored graph networks by the classes and options of today."""

import pytest

from curvlab.results.migrations_graphs import migrate_graphs


def model_of(**model):
    return migrate_graphs({"config": {"model": model}})["config"]["model"]


def network(layer, adjacency, **options):
    layer = {"_target_": layer, "_partial_": True, **options.pop("of_layer", {})}
    target = "curvlab.models.baselines.GraphNetwork"
    return model_of(_target_=target, layer=layer, adjacency=adjacency, dim=8, **options)


@pytest.mark.parametrize(
    ("layer", "adjacency", "options", "target", "found"),
    [
        ("torch.nn.Linear", "none", {}, "mlp.MLP", {}),
        ("torch.nn.Linear", "none", {"hops": 3}, "sign.SIGN", {"hops": 3}),
        ("torch_geometric.nn.GCNConv", "edge_index", {"of_layer": {"cached": True}}, "gcn.GCN",
         {"cached": True}),
        ("torch_geometric.nn.GATConv", "edge_index",
         {"heads": 8, "of_layer": {"heads": 8, "dropout": 0.3}}, "gat.GAT",
         {"heads": 8, "attention_dropout": 0.3}),
        ("torch_geometric.nn.SAGEConv", "csr", {}, "sage.GraphSAGE", {}),
        ("curvlab.models.baselines.MeanSAGE", "edge_index", {}, "sage.GraphSAGE",
         {"project_first": True}),
        ("torch_geometric.nn.SGConv", "csr", {"of_layer": {"K": 2, "cached": True}}, "sgc.SGC",
         {"K": 2, "cached": True}),
        ("torch_geometric.nn.ChebConv", "edge_index", {"of_layer": {"K": 3}}, "chebnet.ChebNet",
         {"K": 3}),
    ],
)  # fmt: skip
def test_a_network_is_called_by_its_layer(layer, adjacency, options, target, found):
    expected = {"_target_": f"curvlab.models.{target}", "dim": 8, "requires": {}, **found}
    assert network(layer, adjacency, **options) == expected


def test_a_layer_of_somebody_elses_stays_one():
    model = network("mine.Layer", "csr", of_layer={"K": 2})
    assert model["_target_"] == "curvlab.models.graph_network.GraphNetwork"
    assert (model["layer"]["K"], model["adjacency"]) == (2, "csr")
    other = network("torch_geometric.nn.GCNConv", "edge_index", of_layer={"improved": True})
    assert other["layer"]["improved"] is True


def test_the_number_of_classes_told_is_the_option_of_logits():
    requires = {"data": ["num_classes"], "manifolds": ["euclidean"], "transforms": []}
    model = network("torch_geometric.nn.GCNConv", "edge_index", requires=requires)
    assert model["logits"] is True
    assert model["requires"] == {"transforms": []}


def test_an_adjacency_had_no_self_loops_before_it_had_the_option():
    transform = {"_target_": "curvlab.data.transforms.graph.SparseAdjacency"}
    for loops in ({}, {"self_loops": False}, {"self_loops": True}):
        requires = {"transforms": [transform | loops]}
        model = network("torch_geometric.nn.SGConv", "csr", requires=requires)
        expected = transform | {"self_loops": False} | loops
        assert model["requires"]["transforms"] == [expected]


def test_hybonet_with_a_residual_is_lrn():
    target, residual = "curvlab.models.hybonet.HyboNet", {"operator": "centroid"}
    lrn = model_of(_target_=target, residual=residual, skip_mode="sequential", manifold={})
    assert lrn["_target_"] == "curvlab.models.lrn.LRN"
    assert (lrn["residual"], lrn["skip_mode"]) == (residual, "sequential")
    assert "manifold" not in lrn
    hybonet = model_of(_target_=target, residual=None, skip_mode="sequential")
    assert hybonet == {"_target_": target, "requires": {}}


def test_a_fixed_ball_is_a_choice_of_the_manifold():
    config = {
        "model": {"_target_": "curvlab.models.curved_gcn.HGNN", "requires": {"learnable": False}},
        "manifold": {"name": "poincare", "learnable": False},
    }
    found = migrate_graphs({"config": config})["config"]
    assert found["model"] == {"_target_": "curvlab.models.hgnn.HGNN", "requires": {}}
    assert found["manifold"]["name"] == "poincare_fixed"


def test_graphtrans_has_a_gcn_in_front():
    layer = {"_target_": "torch_geometric.nn.GCNConv", "_partial_": True}
    front = {"_target_": "curvlab.models.baselines.GraphNetwork", "_partial_": True,
             "layer": layer, "adjacency": "edge_index", "layers": 2, "dropout": 0.5,
             "normalisation": "batch", "last_activation": True}  # fmt: skip
    target = "curvlab.models.graph_transformers.GraphTrans"
    found = model_of(_target_=target, graph_network=front)["graph_network"]
    assert found == {
        "_target_": "curvlab.models.graphtrans.FrontGCN",
        "_partial_": True,
        "layers": 2,
        "dropout": 0.5,
    }
    changed = model_of(_target_=target, graph_network={**front, "activation": "elu"})
    assert changed["graph_network"]["_target_"] == "curvlab.models.gcn.GCN"
