"""Stored results of Hypformer, CAT, PolyFormer's family and models of triples."""

import pytest

from curvlab.results.migrations_hyps import MODELS, migrate_hyps


def model(**node):
    node["_target_"] = MODELS + node["_target_"]
    return migrate_hyps({"config": {"model": node}})["config"]["model"]


def hypformer(**options):
    plain = {"dim": 8, "head_dim": 8, "transformer": True, "graph": True, "fusion": "tangent"}
    return model(**{"_target_": "hypformer.Hypformer", **plain, **options})


def test_widths_that_follow_others_are_null():
    assert hypformer()["head_dim"] is None
    assert hypformer(head_dim=4)["head_dim"] == 4


@pytest.mark.parametrize(
    ("options", "maps"),
    [({}, None), ({"linear_maps": "per_branch"}, "per_branch"), ({"linear_maps": None}, None)],
)
def test_the_maps_of_two_branches_are_said(options, maps):
    assert hypformer(**options)["linear_maps"] == maps
    for alone in ({"graph": False}, {"transformer": False}, {"fusion": "midpoint"}):
        assert "linear_maps" not in hypformer(**options, **alone)


def polyformer(ffn_dim, **layer):
    layer = {"_target_": "curvlab.layers.PolynomialAttention", **layer}
    return model(_target_="polyformer.PolyFormer", dim=8, ffn_dim=ffn_dim, ffn_dropout=0.5,
                 layer=layer)  # fmt: skip


def test_options_of_polyformer_became_classes():
    bare = {"pre_norm": False, "residual": False}
    found = polyformer(None, heads=2, dropout=0.5, **bare)
    layer = {"_target_": "curvlab.layers.PolynomialAttention", **bare}
    assert found == {
        "_target_": f"{MODELS}polyattn.PolyAttn", "dim": 8, "layer": layer, "requires": {},
    }  # fmt: skip
    found = polyformer(None, _target_="curvlab.layers.SharedCoefficients", basis="mono")
    assert found == {"_target_": f"{MODELS}unifilter.UniFilter", "dim": 8, "requires": {}}
    for width, kept in ((8, None), (4, 4)):
        found = polyformer(width)
        assert (found["_target_"], found["ffn_dim"]) == (f"{MODELS}polyformer.PolyFormer", kept)
        assert "ffn_dropout" not in found


def test_a_perceptron_is_called_by_its_filter_and_told_classes_are_logits():
    layer = {"_target_": "curvlab.layers.spectral_filters.GPRFilter", "orders": 4}
    requires = {"data": ["num_classes"], "manifolds": ["euclidean"], "row_normalise": False}
    found = model(_target_="spectral.FilteredPerceptron", filter=layer, requires=requires)
    assert found["_target_"] == f"{MODELS}gprgnn.GPRGNN"
    assert found["logits"]
    assert found["requires"] == {"row_normalise": False}


def test_the_curvature_of_a_ball_is_the_manifolds():
    config = {
        "manifold": {"_target_": "curvlab.manifolds.PoincareBall", "kappa": -0.5},
        "model": {"_target_": f"{MODELS}kg_hyperbolic.RotH", "curvature": {"kappa": -0.5}},
    }
    found = migrate_hyps({"config": config})["config"]
    assert found["manifold"] == config["manifold"]
    assert found["model"] == {"_target_": f"{MODELS}triples.roth.RotH", "requires": {}}
