"""PolyFormer's configurations: the specification's hyperparameters and parameter counts."""

import pytest
import torch
from torch import nn

from composing import composed
from curvlab.config.building import build
from curvlab.config.rules import validate
from curvlab.run.parts import build_encoder
from curvlab.search.space import check_search

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


@pytest.mark.slow
@pytest.mark.parametrize("name", COUNTS)
def test_parameter_counts_of_the_released_settings(name):
    features, classes, *counts = COUNTS[name]
    for model, expected in zip(("polyformer", "polyformer_cheb"), counts, strict=True):
        if expected is None:
            continue
        config = composed(f"model={model}", f"dataset={name}")
        with torch.device("meta"):
            encoder = build_encoder(config, Described(features, classes))
        found = sum(p.numel() for p in encoder.parameters())
        assert found + (encoder.dim_out + 1) * classes == expected


def test_attention_alone_learns_and_decays_at_its_own_rates():
    """The released settings of Pubmed, of two layers."""
    config = composed("model=polyformer", "dataset=pubmed__quota")
    encoder = build_encoder(config, Described(500, 3))
    task = nn.ModuleDict({"encoder": encoder, "decoder": nn.Linear(encoder.dim_out, 3)})
    optimizer = build(config.optimizer).build(task)
    rates = {
        id(p): (group["lr"], group["weight_decay"])
        for group in optimizer.param_groups
        for p in group["params"]
    }
    own = {name for name, p in task.named_parameters() if rates[id(p)] == (5e-4, 1e-8)}
    others = {name for name, p in task.named_parameters() if rates[id(p)] == (5e-3, 1e-3)}
    parts = ("norm.weight", "norm.bias", "mlp.weight1", "mlp.bias1", "mlp.weight2", "mlp.bias2",
             "query.weight", "key.weight", "beta")  # fmt: skip
    assert own == {f"encoder.mixers.{layer}.{part}" for layer in (0, 1) for part in parts}
    assert own | others == {name for name, _ in task.named_parameters()}


def test_one_rate_of_dropout_is_of_the_head_and_the_other_of_the_layers():
    config = composed("model=polyformer", "dataset=pubmed__quota")
    encoder = build_encoder(config, Described(500, 3))
    assert encoder.dropout == 0.5
    assert [part.dropout for part in (*encoder.mixers, *encoder.feed_forwards)] == [0.8] * 4


def test_table_6_has_about_50_000_parameters():
    config = composed("table=polyformer/table6", "model=polyformer", "dataset=roman_empire")
    with torch.device("meta"):
        encoder = build_encoder(config, Described(300, 18))
    found = sum(p.numel() for p in encoder.parameters())
    assert found + (encoder.dim_out + 1) * 18 == 49868


@pytest.mark.parametrize("model", ["polyformer", "polyformer_cheb"])
def test_the_papers_search_is_one(model):
    config = composed(f"search={model}", "dataset=minesweeper")
    assert config.model.name == model
    check_search(config)
    validate(config)
