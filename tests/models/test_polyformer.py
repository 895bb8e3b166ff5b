"""PolyFormer: the specification's worked model, its invariances, its released settings."""

from functools import partial
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch_geometric.data import Data

from composing import composed
from curvlab.analysis.filters import load_filters
from curvlab.data.transforms.graph import NormalisedAdjacency
from curvlab.data.transforms.polynomial_tokens import PolynomialTokens
from curvlab.layers import PolynomialAttention
from curvlab.models import PolyAttn, PolyFormer, UniFilter
from curvlab.run.parts import build_encoder
from curvlab.tasks.decoders import TangentLogits
from curvlab.tasks.filter_regression import FilterRegression
from graphs import random_graph

PATH = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
X = torch.tensor([[1.0, 0], [0, 1], [1, 1], [2, -1]])
LOGITS = {
    "mono": [(5.727864, 3.140748, -2.242018), (35.512375, 16.106417, -18.015767),
             (9.485489, 5.171002, -3.805742), (3.744011, 2.068868, -1.416444)],
    "cheb": [(5.987987, 3.281293, -2.350267), (26.526684, 5.937335, -20.018833),
             (7.897411, 4.312959, -3.144868), (3.698898, 2.044493, -1.397670)],
}  # fmt: skip


def model(features, orders, dim, layers, heads, ffn, power, expansion, basis="mono", **options):
    layer = partial(PolynomialAttention, expansion=expansion, power=power)
    return PolyFormer(
        features, layer, heads, ffn, basis=basis, orders=orders, dim=dim, layers=layers, **options
    )


def graph(basis="mono", orders=2, project_first=False, x=X, edges=PATH, dim=1):
    data = Data(x=x.float(), edge_index=edges, num_nodes=len(x))
    data = PolynomialTokens(basis, orders, basis == "mono", "float32", dim, project_first)(data)
    if project_first:
        del data["tokens"]
        data = NormalisedAdjacency(basis == "mono")(data)
    data.x = x
    return data


def larger(features=9, **options):
    data = random_graph(40, 90, features, seed=1)
    return graph(x=data.x, edges=data.edge_index, **options)


def formula_weights(encoder, decoder):
    with torch.no_grad():
        for part in (*encoder.modules(), decoder):
            if isinstance(part, nn.Linear):
                rows, columns = part.weight.shape
                a, b = torch.arange(rows)[:, None], torch.arange(columns)
                part.weight.copy_(torch.cos((a + 2 * b).double()))
                if part.bias is not None:
                    part.bias.fill_(0.1)
        for mixer in encoder.mixers:
            heads, orders = mixer.beta.shape
            mixer.beta.copy_(1 + torch.arange(heads)[:, None] - 0.5 * torch.arange(orders))
            for weight in (mixer.mlp.weight1, mixer.mlp.weight2):
                _, rows, columns = weight.shape  # here [inputs, outputs]
                a, b = torch.arange(columns), torch.arange(rows)[:, None]
                weight.copy_(torch.cos((a + 2 * b).double()))
            mixer.mlp.bias1.fill_(0.1)
            mixer.mlp.bias2.fill_(0.1)


@pytest.mark.parametrize("projected", [False, True], ids=["tokens", "projected"])
@pytest.mark.parametrize("basis", LOGITS)
@torch.no_grad()
def test_the_worked_model(float64, basis, projected):
    encoder = model(2, 2, 4, 2, 2, 5, 2.0, 0.5, basis).eval()
    decoder = TangentLogits(4, 3, encoder.manifold_out)
    formula_weights(encoder, decoder)
    count = sum(p.numel() for p in [*encoder.parameters(), *decoder.parameters()])
    assert count == 385
    found = decoder(encoder(graph(basis, project_first=projected, x=X.double())))
    torch.testing.assert_close(found, torch.tensor(LOGITS[basis]), atol=5e-6, rtol=1e-6)


@torch.no_grad()
def test_a_node_sees_its_own_tokens_only():
    encoder = model(9, 4, 8, 2, 2, 6, 1.0, 1.0).eval()
    data = larger(orders=4)
    nodes = torch.tensor([30, 2, 17])
    whole = encoder(data)
    torch.testing.assert_close(encoder.forward_nodes(data, nodes), whole[nodes])
    data.tokens[torch.arange(40) != 2] = torch.nan
    assert torch.equal(encoder(data)[2].isfinite().sum(), torch.tensor(8))
    torch.testing.assert_close(encoder(data)[2], whole[2])


@torch.no_grad()
def test_a_filter_of_each_node_is_what_the_bare_model_computes():
    """Theorem 3.1 through the whole model: the embedding is the filtered, mapped signal."""
    bare = PolyAttn(9, heads=2, orders=4, dim=8, hidden=False).eval()
    assert bare.filters_nodes
    data = larger(orders=4)
    tokens = bare.project_tokens(data)
    per_head = bare.mixers[0].coefficients(tokens)
    torch.testing.assert_close(bare.node_filters(data), per_head.mean(1))
    width = tokens.unflatten(-1, (2, 4))
    expected = torch.einsum("nhk,knhd->nhd", per_head, width).flatten(1)
    torch.testing.assert_close(bare(data), expected, atol=1e-5, rtol=1e-4)
    assert not model(9, 4, 8, 1, 2, 6, 1.0, 1.0).filters_nodes


@pytest.mark.parametrize("heads", [1, 2, 4, None])
@torch.no_grad()
def test_saved_filters_of_a_signal_are_the_whole_map(tmp_path, heads):
    """Applied to the signal they make the model's own output (None: shared coefficients)."""
    options = {"basis": "cheb", "orders": 4, "dim": 8, "hidden": False, "input_bias": False}
    encoder = PolyAttn(1, heads=heads, **options) if heads else UniFilter(1, **options)
    task = FilterRegression(encoder)
    task.read_out.bias.zero_()
    data = larger(features=1, basis="cheb", orders=4)
    task.write_files(data, tmp_path)
    coefficients = torch.from_numpy(load_filters(tmp_path / "filters.npz")["coefficients"])
    found = (coefficients * data.tokens.squeeze(-1)).sum(1)
    for whole in (data, larger(features=1, basis="cheb", orders=4, project_first=True)):
        made = task.read_out(encoder(whole)).squeeze(-1)
        torch.testing.assert_close(found, made, atol=1e-6, rtol=1e-5)


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


@pytest.mark.sampled(3)
@pytest.mark.slow
@pytest.mark.parametrize("name", COUNTS)
def test_parameter_counts_of_the_released_settings(name):
    features, classes, *counts = COUNTS[name]
    for model, expected in zip(("polyformer", "polyformer_cheb"), counts, strict=True):
        if expected is None:
            continue
        config = composed(f"model={model}", f"dataset={name}")
        with torch.device("meta"):
            known = SimpleNamespace(inputs={"in_channels": features}, num_classes=classes)
            encoder = build_encoder(config, known)
        found = sum(p.numel() for p in encoder.parameters())
        assert found + (encoder.dim_out + 1) * classes == expected
