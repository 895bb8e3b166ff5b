"""Options of sources, splits, transforms and data modules: kinds, bounds, defaults, documents."""

import re
from pathlib import Path

import pytest

from curvlab.config.schema import complete_options
from curvlab.data.datasets.named import named_source

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
    for name, option in complete_options(target).items():
        assert option.doc, name
        assert option.says not in ("any value", ""), name
        if name != "dataset":  # the class of PyTorch Geometric that reads the files
            assert option.says != "keys of its own", name


def test_a_source_is_built_by_its_name(tmp_path):
    cora = named_source("cora", tmp_path)
    assert (cora.name, cora.data_dir, cora.given) == ("cora", str(tmp_path), "public")
    assert (cora.folder, cora.files[0]["path"]) == ("Planetoid/Cora/raw", "ind.cora.x")
    assert named_source("synthetic_web").load().num_nodes == 3000
