"""Options of sources, splits, transforms and data modules: kinds, bounds, defaults, documents."""

import re
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from curvlab.config.options import check_options
from curvlab.config.schema import completed
from curvlab.data.datasets.named import named_source
from curvlab.errors import UsageError

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
NAMED = sorted(
    {
        target
        for path in CONFIGS.rglob("*.yaml")
        for target in re.findall(r"_target_: (curvlab\.data\.[\w.]+)", path.read_text())
    }
)


@pytest.mark.parametrize("target", NAMED)
def test_every_option_has_a_kind_and_a_line(target):
    for name, option in completed(target).items():
        assert option.doc, name
        assert option.says not in ("any value", ""), name
        if name != "dataset":  # the class of PyTorch Geometric that reads the files
            assert option.says != "keys of its own", name


def test_a_source_is_built_by_its_name(tmp_path):
    cora = named_source("cora", tmp_path)
    assert (cora.name, cora.data_dir, cora.given) == ("cora", str(tmp_path), "public")
    assert (cora.folder, cora.files[0]["path"]) == ("Planetoid/Cora/raw", "ind.cora.x")
    assert named_source("synthetic_web").load().num_nodes == 3000


ROOM = "curvlab.data"
NAN = float("nan")


@pytest.mark.parametrize(
    ("target", "option", "values"),
    [
        ("transforms.features.HopFeatures", "hops", [-1, 1.5, True]),
        ("transforms.graph.LaplacianEigenvectors", "k", [0, None]),
        ("transforms.graph.IdentityFeatures", "noise", [-0.1, NAN, float("inf")]),
        ("transforms.polynomial_tokens.PolynomialTokens", "dtype", ["int8"]),
        ("datasets.mini_imagenet.MiniImageNetGraph", "neighbours", [1, 0, -2, 2.5, True, "five"]),
        ("datasets.synthetic.SyntheticWeb", "seed", [-1, 2**32]),
        ("datasets.synthetic_large.SyntheticLarge", "exponent", [2.0, NAN]),
        ("loaders.triple_batches.TripleDataModule", "shuffle", ["heads"]),
        ("loaders.neighbour_batches.NeighbourDataModule", "fan_outs", [[4, 0], [2.5]]),
        ("splits.links.LinkSplit", "draw", [-1, 0.5]),
    ],
)
def test_wrong_values_are_refused_by_their_key(target, option, values):
    for value in values:
        config = OmegaConf.create({"part": {"_target_": f"{ROOM}.{target}", option: value}})
        with pytest.raises(UsageError, match=rf"part\.{option}"):
            check_options(config)
