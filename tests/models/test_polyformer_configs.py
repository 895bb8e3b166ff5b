"""PolyFormer's configurations: the specification's hyperparameters and parameter counts."""

from pathlib import Path

import pytest
import torch
from hydra import compose, initialize_config_dir

from curvlab.config import register_resolvers, validate
from curvlab.parts import build_encoder
from curvlab.search.space import check_search

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
COUNTS = {  # with the decoder, on features and logits of the real sets
    "citeseer__quota": (3703, 6, 3053986, 1741452),
    "coauthor_cs": (6805, 15, 1055015, 474359),
    "pubmed__quota": (500, 3, 2069875, 592435),
    "coauthor_physics": (8415, 5, 1276495, 1293621),
    "minesweeper": (7, 1, 54529, 1337121),
    "tolokers": (10, 1, 121649, 2583985),
    "roman_empire": (300, 18, 12474786, 3009378),
    "questions": (301, 1, 583861, 6323809),
    "twitch_gamers": (7, 2, 646218, None),
    "pokec": (65, 2, 4500487, None),
    "ogbn_arxiv": (128, 40, 733016, None),
    "ogbn_papers100m": (128, 172, 15005361, None),
}


class Described:
    def __init__(self, features, classes):
        self.inputs, self.num_classes = {"in_channels": features}, classes


@pytest.fixture(scope="module")
def composed():
    register_resolvers()
    with initialize_config_dir(str(CONFIGS), version_base="1.3"):
        yield lambda *words: compose("train", list(words))


@pytest.mark.parametrize("name", COUNTS)
def test_parameter_counts_of_the_released_settings(name, composed):
    features, classes, *counts = COUNTS[name]
    for model, expected in zip(("polyformer", "polyformer_cheb"), counts, strict=True):
        if expected is None:
            continue
        config = composed(f"model={model}", f"dataset={name}")
        with torch.device("meta"):
            encoder = build_encoder(config, Described(features, classes))
        found = sum(p.numel() for p in encoder.parameters())
        assert found + (encoder.dim_out + 1) * classes == expected


def test_table_6_has_about_50_000_parameters(composed):
    for model, expected in {"polyformer": 49868}.items():
        config = composed("table=polyformer/table6", f"model={model}", "dataset=roman_empire")
        with torch.device("meta"):
            encoder = build_encoder(config, Described(300, 18))
        found = sum(p.numel() for p in encoder.parameters()) + (encoder.dim_out + 1) * 18
        assert found == expected


@pytest.mark.parametrize("model", ["polyformer", "polyformer_cheb"])
def test_the_papers_search_is_one(model, composed):
    config = composed(f"search={model}", "dataset=minesweeper")
    assert config.model.name == model
    check_search(config)
    validate(config, multirun=True)
