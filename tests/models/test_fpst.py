"""FPS-T as a whole: its flat twin, its size, its symmetries, its limits."""

import functools

import pytest
import torch
from torch.func import functional_call

from curvlab.errors import UsageError
from curvlab.manifolds import Euclidean, Stereographic
from curvlab.models.fpst import FPST

pytestmark = pytest.mark.usefixtures("float64")

OPTIONS = {"in_channels": 5, "dim": 4, "eigenvectors": 3}
VARIANTS = {
    "default": {},
    "two layers": {"layers": 2},
    "no layer norm": {"layer_norm": False},
    "no output projection": {"out_proj": False},
    "wide heads and feed-forward": {"head_dim": 3, "ffn_ratio": 2},
    "linear fusion": {"token_fusion": "linear"},
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
WEB_EDU_NODES = 3031


def model(manifold, seed=0, **options):
    torch.manual_seed(seed)
    made = FPST(manifold=manifold, **{**OPTIONS, **options})
    for parameter in made.parameters():
        if parameter.dim() == 1 and not parameter.any():  # biases, which start at 0
            torch.nn.init.normal_(parameter, std=0.1)
    return made


def curved(kappa, **options):
    """A model whose layers all have the given curvatures."""
    made = model(functools.partial(Stereographic, kappa=1.0), **options)
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
@pytest.mark.parametrize(("column", "eigenvectors"), [(0, 4), (1, 8), (2, 16), (3, 32)])
def test_parameter_counts(dim, column, eigenvectors):
    """For Web-Edu's nodes, without layer norms; the flat twin has two curvatures fewer."""
    options = {
        "in_channels": WEB_EDU_NODES,
        "dim": dim,
        "eigenvectors": eigenvectors,
        "layer_norm": False,
    }
    assert count(model(Stereographic, **options)) == PARAMETERS[dim][column]
    assert count(model(Euclidean, **options)) == PARAMETERS[dim][column] - 2


@pytest.mark.parametrize(
    ("dim", "options", "expected"),
    [
        (16, {"ffn_ratio": 4}, 53568),
        (4, {"ffn_ratio": 4}, 12672),
        (16, {"ffn_ratio": 2, "head_dim": 16}, 53584),
        (4, {"ffn_ratio": 2, "head_dim": 4}, 12676),
    ],
)
def test_parameter_counts_of_the_layouts_that_may_be_the_papers(dim, options, expected):
    """With 32 eigenvectors and parts of tokens fused by a linear map, without curvatures."""
    options = {**options, "token_fusion": "linear", "eigenvectors": 32, "layer_norm": False}
    made = model(Euclidean, in_channels=WEB_EDU_NODES, dim=dim, **options)
    assert count(made) == expected


def test_layer_norms_and_curvatures_are_what_a_layer_adds():
    one, two = (model(Stereographic, layers=n) for n in (1, 2))
    # Six matrices and biases, two norms with scale and shift, two curvatures.
    assert count(two) - count(one) == 6 * (16 + 4) + 2 * (4 + 4) + 2


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
    made = curved(kappa, layers=2, activation="tanh")
    raws = {name: p.detach() for name, p in made.named_parameters() if "curvature" in name}

    def output(*values):
        return functional_call(made, dict(zip(raws, values, strict=True)), (graph,))

    inputs = [raw.requires_grad_() for raw in raws.values()]
    assert torch.autograd.gradcheck(output, inputs)
    assert all(g.abs().min() > 1e-4 for g in torch.autograd.grad(output(*inputs).sum(), inputs))


def block_by_maps(block, v):
    """A block as the paper writes it, every exponential and logarithm in its place."""
    x = block.space.expmap0_projected(v)
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


def test_curvatures_are_one_vector_a_layer(graph):
    made = model(Stereographic, layers=3, heads=4, dim=8)
    names = [name for name, _ in made.named_parameters() if "curvature" in name]
    assert len(names) == 3
    assert all(made.get_parameter(name).shape == (4,) for name in names)
    assert made(graph).shape == (12, 8)


def test_bounded_curvatures_stay_within_their_bounds(graph):
    """`manifold=poincare`: negative whatever the optimiser does."""
    made = model(functools.partial(Stereographic, kappa=-1.0, max=0.0))
    optimiser = torch.optim.SGD(made.parameters(), lr=10.0)
    (made.manifold_out.kappa.sum() * -1).backward()
    optimiser.step()
    assert (made.manifold_out.kappa < 0).all()
    assert (made.manifold_out.kappa > -1).all()
    assert made(graph).isfinite().all()


def test_wide_heads_need_the_output_projection():
    with pytest.raises(UsageError, match=r"out_proj=True.*head_dim=2"):
        model(Stereographic, head_dim=3, out_proj=False)


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
    out = made(graph)
    assert out.isfinite().all()
    made.zero_grad()
    out.sum().backward()
    assert all(p.grad.isfinite().all() for p in made.parameters())
