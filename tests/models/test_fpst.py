"""FPS-T: its tokens, one block, and the whole: flat twin, size, symmetries, limits."""

import functools

import pytest
import torch
from torch.func import functional_call
from torch.nn import functional

from curvlab.layers import StereographicAttention, StereographicFeedForward
from curvlab.manifolds import Euclidean, Stereographic
from curvlab.models.fpst import FPST, FPSTBlock, GraphTokens
from drawn import assert_finite

pytestmark = pytest.mark.usefixtures("float64")

OPTIONS = {"in_channels": 5, "dim": 4, "eigenvectors": 3}
VARIANTS = {
    "default": {},
    "two layers": {"layers": 2},
    "no layer norm": {"layer_norm": False},
    "no output projection": {"out_proj": False},
    "exact attention": {"attention": "exact"},
    "one head": {"heads": 1},
    "elu": {"activation": "elu"},
}
PARAMETERS = {  # d: for k = 4, 8, 16, 32
    2: (6122, 6138, 6170, 6234),
    4: (12290, 12322, 12386, 12514),
    8: (24770, 24834, 24962, 25218),
    16: (50306, 50434, 50690, 51202),
}
LEARNABLE = functools.partial(Stereographic, learnable=True)


def model(manifold, seed=0, **options):
    torch.manual_seed(seed)
    made = FPST(manifold=manifold, **{**OPTIONS, **options})
    for parameter in made.parameters():
        if parameter.dim() == 1 and not parameter.any():  # biases, which start at 0
            torch.nn.init.normal_(parameter, std=0.1)
    return made


def curved(kappa, **options):
    """A model whose layers all have the given curvatures."""
    made = model(functools.partial(LEARNABLE, kappa=1.0), **options)
    for block in made.blocks:
        with torch.no_grad():
            block.space.curvature.raw.copy_(torch.as_tensor(kappa))
    return made


def count(module):
    return sum(p.numel() for p in module.parameters())


@pytest.mark.parametrize("options", VARIANTS.values(), ids=VARIANTS)
def test_at_curvature_zero_it_is_tokengt(graph, options):
    """Same weights, same outputs and gradients; but curvatures have gradients of their own."""
    flat = model(Euclidean, **options)
    zero = curved(0.0, **options)
    zero.load_state_dict(flat.state_dict(), strict=False)

    outputs = [made(graph) for made in (flat, zero)]
    torch.testing.assert_close(*outputs, atol=1e-10, rtol=1e-10)
    direction = torch.randn(outputs[0].shape, generator=torch.Generator().manual_seed(1))
    for out in outputs:
        (out * direction).sum().backward()
    gradients = {name: p.grad for name, p in zero.named_parameters()}
    for name, parameter in flat.named_parameters():
        torch.testing.assert_close(gradients.pop(name), parameter.grad, atol=1e-10, rtol=1e-10)
    assert len(gradients) == len(zero.blocks)
    for name, slope in gradients.items():
        assert name.endswith("curvature.raw")
        assert slope.isfinite().all()
        assert (slope.abs() > 1e-6).all()


@pytest.mark.parametrize("dim", PARAMETERS)
def test_parameter_counts(dim):
    """For Web-Edu's nodes, without layer norms; the flat twin has two curvatures fewer."""
    for k, expected in zip((4, 8, 16, 32), PARAMETERS[dim], strict=True):
        options = {"in_channels": 3031, "dim": dim, "eigenvectors": k, "layer_norm": False}
        assert count(model(LEARNABLE, **options)) == expected
        assert count(model(Euclidean, **options)) == expected - 2


@pytest.mark.parametrize("kappa", [0.0, (-1.0, 0.5)])
@pytest.mark.parametrize("layers", [1, 2])
def test_renaming_nodes_permutes_the_embeddings(graph, kappa, layers):
    made = curved(kappa, layers=layers)
    before = made(graph)
    order = torch.randperm(12, generator=torch.Generator().manual_seed(0))
    graph.x, graph.eigenvectors = graph.x[order], graph.eigenvectors[order]
    edges = torch.argsort(order)[graph.edge_index]
    graph.edge_index = edges[:, torch.randperm(edges.shape[1])]
    torch.testing.assert_close(made(graph), before[order], atol=1e-10, rtol=0)


@pytest.mark.parametrize("kappa", [(0.0, 0.0), (-1.0, 0.5), (-0.5, -3.9), (1e-9, -1e-9)])
def test_derivatives_by_all_curvatures_are_central_differences(graph, kappa):
    """Of three nodes' embeddings, in which all tokens are."""
    made = curved(kappa, layers=2, activation="tanh")
    raws = {name: p.detach() for name, p in made.named_parameters() if "curvature" in name}

    def output(*values):
        return functional_call(made, dict(zip(raws, values, strict=True)), (graph,))[::4]

    inputs = [raw.requires_grad_() for raw in raws.values()]
    assert torch.autograd.gradcheck(output, inputs)
    assert all(g.abs().min() > 1e-4 for g in torch.autograd.grad(output(*inputs).sum(), inputs))


def block_by_maps(block, v):
    """A block as the paper writes it, every exponential and logarithm in its place."""
    x = block.space.expmap0(v)
    x = block.space.add(block.attention(block.norm1(x)), x)
    return block.space.add(block.feed_forward(block.norm2(x)), x)


@pytest.mark.parametrize("kappa", [-20.0, -1.0, 2.0])
def test_points_pass_between_layers_by_their_logarithms(graph, kappa):
    """The second layer is entered at exp0 of its own space, not at the first one's points."""
    made = curved(kappa, layers=2)
    with torch.no_grad():
        made.blocks[1].space.curvature.raw.copy_(torch.tensor([-0.25, 0.3]))
    first, second = made.blocks
    x = block_by_maps(first, made.tokens(graph))
    expected = block_by_maps(second, first.space.logmap0(x))[:12]
    torch.testing.assert_close(made(graph), expected, atol=1e-10, rtol=0)
    assert made.manifold_out is second.space


@pytest.mark.usefixtures("float32")
@pytest.mark.parametrize("scale", [0.0, 1e3])
@pytest.mark.parametrize("layer_norm", [True, False])
@pytest.mark.parametrize("kappa", [-5.0, -1.0, -1e-8, 0.0, 1e-8, 1.0, 5.0])
def test_model_stays_finite_in_single_precision(graph, kappa, layer_norm, scale):
    made = curved(kappa, layers=2, layer_norm=layer_norm, dim=8)
    graph.x = scale * graph.x
    if scale == 0:
        for parameter in made.tokens.parameters():
            torch.nn.init.zeros_(parameter)
    assert_finite(made(graph), made.parameters())


def parts(tokens, graph):
    """The three parts of every token, from their definitions: features, identifiers, types."""
    of_edges = graph.num_edges, tokens.features.out_features
    features = torch.cat([tokens.features(graph.x), torch.zeros(of_edges)])
    ends = torch.cat([torch.arange(graph.num_nodes).expand(2, -1), graph.edge_index], dim=1)
    pairs = torch.cat([graph.eigenvectors[ends[0]], graph.eigenvectors[ends[1]]], dim=1)
    kinds = torch.cat([torch.zeros(graph.num_nodes), torch.ones(graph.num_edges)]).long()
    return features, pairs @ tokens.identifiers.weight.T, tokens.types.weight[kinds]


def test_tokens_are_sums_of_features_identifiers_and_types(graph):
    tokens = GraphTokens(5, 3, 4, sign_flips=False)
    torch.testing.assert_close(tokens(graph), sum(parts(tokens, graph)))


def test_identifiers_may_be_projected_alike_at_both_ends(graph):
    """Appendix B.1: `P_u + P_u` of a node, `P_u + P_v` of an edge, whichever its direction."""
    shared = GraphTokens(5, 3, 4, sign_flips=False, shared_identifiers=True)
    plain = GraphTokens(5, 3, 4, sign_flips=False)
    weights = shared.state_dict()
    name = "identifiers.weight"
    plain.load_state_dict({**weights, name: torch.cat([weights[name]] * 2, dim=1)})
    torch.testing.assert_close(shared(graph), plain(graph))
    back = graph.clone()
    back.edge_index = graph.edge_index.flip(0)
    torch.testing.assert_close(shared(back), shared(graph))


def test_signs_of_eigenvectors_change_in_training_only(graph):
    """Every step's tokens are those of some choice of signs, and not always of the same."""
    tokens = GraphTokens(5, 3, 4, sign_flips=True)
    plain = GraphTokens(5, 3, 4, sign_flips=False)
    plain.load_state_dict(tokens.state_dict())
    signs = torch.cartesian_prod(*[torch.tensor([1.0, -1.0])] * 3)
    possible = []
    for choice in signs:
        flipped = graph.clone()
        flipped.eigenvectors = graph.eigenvectors * choice
        possible.append(plain(flipped))
    found = set()
    for _ in range(60):
        made = tokens(graph)
        found.add(next(i for i, p in enumerate(possible) if torch.allclose(made, p)))
    assert found == set(range(8))
    tokens.eval()
    torch.testing.assert_close(tokens(graph), possible[0])


# Coordinates after one block, four tokens of width 4 in two heads.
WORKED = [
    (-0.019950, 0.889262, 1.100260, 0.573501),
    (0.413578, 0.703483, 0.529011, -0.475593),
    (0.520367, 0.290925, -0.544412, -1.221825),
    (-0.270888, 0.819636, 0.541087, -0.754488),
]


def matrix(shift):
    """`0.5 sin(1.3 i + 0.7 j + shift)`, `[4, 4]`."""
    index = torch.arange(4.0)
    return 0.5 * torch.sin(1.3 * index[:, None] + 0.7 * index + shift)


def worked_block(space, layer_norm=True):
    """The specification's block: weights `matrix(s)`, biases `0.1 cos(i + s)`, s = 1 ... 6."""
    heads = space.components
    attention = StereographicAttention(4, heads, space, "linear", True)
    feed_forward = StereographicFeedForward(4, 4, functional.relu, space)
    made = FPSTBlock(space, 4, attention, feed_forward, layer_norm)
    layers = (attention.query, attention.key, attention.value, attention.out)
    with torch.no_grad():
        for s, layer in enumerate((*layers, feed_forward.inner, feed_forward.outer), start=1):
            layer.weight.copy_(matrix(s))
            layer.bias.copy_(0.1 * torch.cos(torch.arange(4.0) + s))
    return made


def test_worked_example():
    out = worked_block(Stereographic(2, (-1.0, 0.5), learnable=True))(matrix(0.1))
    assert out.tolist() == [pytest.approx(row, abs=1e-6) for row in WORKED]


@pytest.mark.parametrize("layer_norm", [True, False])
@pytest.mark.parametrize(
    "space", [Euclidean(2), Stereographic(2, learnable=True)], ids=["flat", "kappa 0"]
)
def test_flat_block_is_the_pre_norm_transformer_with_linear_attention(space, layer_norm):
    """Against the transformer written out with nothing but plain matrix operations."""
    made = worked_block(space.double(), layer_norm)
    x = matrix(0.1)

    def norm(t):
        return functional.layer_norm(t, (4,)) if layer_norm else t

    def linear(t, s):
        return t @ matrix(s).T + 0.1 * torch.cos(torch.arange(4.0) + s)

    query, key, value = (linear(norm(x), s).view(4, 2, 2).transpose(0, 1) for s in (1, 2, 3))
    scores = (functional.elu(query) + 1) @ (functional.elu(key) + 1).mT
    heads = scores / scores.sum(-1, keepdim=True) @ value
    y = x + linear(heads.transpose(0, 1).reshape(4, 4), 4)
    expected = y + linear(functional.relu(linear(norm(y), 5)), 6)
    torch.testing.assert_close(made(x), expected, atol=1e-12, rtol=0)


MAPS = ("expmap0", "expmap0_and_log", "clamp_tangent", "logmap0")


@pytest.mark.parametrize(
    ("layer_norm", "rows", "calls"),
    [
        (True, None, (0, 2, 1, 3)),
        (True, 2, (1, 1, 2, 3)),
        (False, None, (0, 1, 0, 3)),
        (False, 2, (0, 1, 0, 3)),
    ],
)
def test_a_block_computes_no_map_of_a_point_twice(monkeypatch, layer_norm, rows, calls):
    """Points and logarithms that are both read come from one call of `expmap0_and_log`.

    Logarithms alone are read of the normalised input of the feed-forward layer and, of all tokens
    but the first `rows`, of the block's input. The three points that have a logarithm of their own
    are the heads' means, the attention's sum and the hidden layer.
    """
    block, seen = worked_block(Stereographic(2, learnable=True), layer_norm), []
    for name in MAPS:
        computed = getattr(Stereographic, name)
        monkeypatch.setattr(
            Stereographic, name, lambda *a, name=name, f=computed: seen.append(name) or f(*a)
        )
    block(matrix(0.1), rows)
    assert tuple(map(seen.count, MAPS)) == calls


@pytest.mark.parametrize("options", [*VARIANTS.values(), {"layers": 2, "dropout": 0.5}])
@pytest.mark.parametrize("kappa", [None, -1.0, 0.5])
def test_rows_of_edges_that_nobody_reads_are_not_computed(graph, kappa, options):
    """As the last block on all tokens, cut afterwards: values, gradients, random numbers."""
    made = model(Euclidean, **options) if kappa is None else curved(kappa, **options)
    direction = torch.randn(12, 4, generator=torch.Generator().manual_seed(1))

    def cut_afterwards():
        x = made.tokens(graph)
        for block in made.blocks[:-1]:
            x = block.space.logmap0(block(x))
        return made.blocks[-1](x)[:12]

    queries, results = [], []
    made.blocks[-1].attention.query.register_forward_hook(lambda *call: queries.append(call[2]))
    for output in (lambda: made(graph), cut_afterwards):
        torch.manual_seed(2)
        out = output()
        gradients = torch.autograd.grad((out * direction).sum(), made.parameters())
        results.append((out, *gradients, torch.rand(1)))
    torch.testing.assert_close(*results, atol=1e-10, rtol=1e-10)
    assert [len(query) for query in queries] == [12, 12 + graph.num_edges]
