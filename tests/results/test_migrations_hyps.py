"""Stored results of Hypformer, CAT, PolyFormer's family and models of triples."""

import json
from pathlib import Path

import pytest

from curvlab.config.schema import locate, options_of
from curvlab.results.migrations import migrated
from curvlab.results.migrations_hyps import MODELS, MOVED, STAYED, migrate_hyps

RESULTS = Path(__file__).resolve().parents[2] / "docs" / "results" / "tables"
TARGETS = (*MOVED, *STAYED, "polyformer.PolyFormer", "spectral.FilteredPerceptron")
FOR_TRANSFORMS = {
    "name", "label", "requires", "_target_", "self_loops", "token_dtype", "eigenvectors",
    "smallest", "largest",
}  # fmt: skip


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


def test_others_stay_as_they_are():
    stored = {"config": {"model": {"_target_": f"{MODELS}fpst.FPST"}}}
    assert migrate_hyps(stored) is stored
    assert migrate_hyps({"status": "failed"}) == {"status": "failed"}


def test_every_stored_result_names_a_class_and_options_of_today():
    paths = [
        path
        for path in sorted(RESULTS.rglob("result.json"))
        if any(f'"{MODELS}{target}"' in path.read_text() for target in TARGETS)
    ]
    assert len(paths) > 300
    for path in paths:
        node = migrated(json.loads(path.read_text()))["config"]["model"]
        options = options_of(node["_target_"])
        assert locate(node["_target_"]) is not None
        assert set(node) - FOR_TRANSFORMS - {"recipe"} <= set(options), path
        for name in set(node) & {name for name, option in options.items() if option.settable}:
            if not isinstance(node[name], dict):
                assert options[name].problem(node[name]) is None, (path, name)
