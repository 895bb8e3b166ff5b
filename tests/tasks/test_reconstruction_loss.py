"""The loss over all pairs, in tiles with a backward pass of its own, against the plain sum."""

import math

import pytest
import torch
from mpmath import mp
from torch import Tensor

from curvlab.cpp import kernel_kind, use_kernels
from curvlab.data.datasets.synthetic import SyntheticWeb
from curvlab.manifolds import (
    Euclidean,
    Lorentz,
    Manifold,
    Product,
    PseudoHyperboloid,
    Stereographic,
    lorentz,
    stereographic,
)
from curvlab.manifolds.pair_form import CurvedProfile
from curvlab.tasks.pairs.loss import reconstruction_loss
from curvlab.tasks.pairs.tiles import PairTiles
from drawn import assert_close, draw
from graphs import both_directions

pytestmark = pytest.mark.usefixtures("float64")

CURVATURES = [
    (0.0, 0.0),
    (-1.0, 0.5),
    (-0.5, -3.9),
    (2.0, 1.0),
    (0.0, -1e-3, 1e-7, 1.0),
    (1e-5, -1e-5),
    (0.0199, -0.0199),  # on either side of where series and closed form meet
    (0.0201, -0.0201),
    (-1.0,),
]
NODES = 30


def web(nodes=NODES):
    return SyntheticWeb(num_nodes=nodes, cycle_fraction=0.5, seed=0).load().edge_index


def dense_sqdist(x: Tensor, kappa: Tensor) -> Tensor:
    """Squared distances `[nodes, nodes]`, summed over the components."""
    blocks = x.unflatten(-1, (len(kappa), -1))
    return stereographic.sqdist(blocks[:, None], blocks, kappa).sum(-1)


def dense_loss(sqdist: Tensor, edge_index: Tensor, power: int) -> Tensor:
    """The definition: every node's non-neighbours, itself among them, by autograd."""
    distance = sqdist
    if power == 1:
        distinct = sqdist > 0
        distance = torch.where(distinct, torch.where(distinct, sqdist, 1).sqrt(), 0)
    neighbour = torch.zeros(sqdist.shape, dtype=torch.bool)
    neighbour[edge_index[0], edge_index[1]] = True
    negatives = torch.logsumexp(-distance.masked_fill(neighbour, torch.inf), dim=1)
    return (distance + negatives[:, None])[neighbour].sum()


def random_points(kappas, nodes=NODES, spread=0.6, seed=0):
    """Points with four coordinates a component, some of them far out."""
    v = draw(nodes, len(kappas), 4, size=spread, seed=seed)
    x = stereographic.expmap0(v, torch.tensor(kappas))
    return stereographic.project(x, torch.tensor(kappas)).flatten(1)


def in_tiles(x, kappas, edge_index, power, size=None, **options):
    """What `value_and_gradients` gives for a product with the given curvatures."""
    space = Stereographic(len(kappas), kappas, learnable=True)
    return value_and_gradients(x, space, PairTiles(edge_index, NODES, size), power, **options)


def value_and_gradients(x, space, tiles, power, clamp=None):
    """The loss, and its derivatives by points and curvatures."""
    x = x.clone().requires_grad_()
    loss = reconstruction_loss(x, space, tiles, power, clamp)
    return loss.detach(), *torch.autograd.grad(loss, [x, *space.parameters()])


def dense_value_and_gradients(x, kappas, edge_index, power):
    x, kappa = x.clone().requires_grad_(), torch.tensor(kappas, dtype=x.dtype).requires_grad_()
    loss = dense_loss(dense_sqdist(x, kappa), edge_index, power)
    return loss.detach(), *torch.autograd.grad(loss, [x, kappa])


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize(
    ("kappas", "size"),
    [
        *((kappas, None) for kappas in CURVATURES),
        *(((-1.0, 0.5), size) for size in (1, 4, 7, 15, 29, 30, 1000)),
    ],
)
def test_value_and_gradients_are_those_of_the_plain_sum(kappas, size, power):
    """In tiles of any size."""
    edge_index, x = web(), random_points(kappas)
    result = in_tiles(x, kappas, edge_index, power, size)
    expected = dense_value_and_gradients(x, kappas, edge_index, power)
    assert_close(result, expected, 1e-8)
    assert (result[2].abs() > 1e-3).all()


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("factor", [1.0, 2.0])
def test_flat_space_without_maps(factor, power):
    edge_index, x = web(), random_points((0.0, 0.0))
    space, tiles = Euclidean(2, conformal_factor=factor), PairTiles(edge_index, NODES, 8)
    result = value_and_gradients(x, space, tiles, power)
    leaf = x.clone().requires_grad_()
    difference = leaf[:, None] - leaf
    expected = dense_loss(factor**2 * difference.square().sum(-1), edge_index, power)
    assert_close(result, (expected.detach(), *torch.autograd.grad(expected, leaf)), 1e-8)


@pytest.mark.parametrize(
    "space", [Euclidean(), Stereographic(1, -1.0, learnable=True)], ids=["flat", "ball"]
)
def test_complete_separation_has_no_loss(space):
    """Neighbours in one place, others far away: nothing is left but each node itself."""
    edges = both_directions([(0, 1), (0, 2), (1, 2), (3, 4), (3, 5), (4, 5)])
    x = space.double().expmap0(torch.tensor([[9.0, 0]] * 3 + [[-9.0, 0]] * 3))
    assert reconstruction_loss(x, space, PairTiles(edges, 6)).item() == pytest.approx(0, abs=1e-12)


def test_without_the_node_itself_there_would_be_no_lower_bound():
    """A path on a line, larger and larger: the sum that FPS-T prints falls without end when negated
    and rises without end when not; the node itself among its negatives keeps it above 0."""
    edges, loss, without = both_directions([(0, 1), (1, 2), (2, 3), (3, 4)]), [], []
    for size in (1.0, 10.0, 100.0):
        x = size * torch.arange(5.0).unsqueeze(1)
        space = Euclidean(conformal_factor=1.0)
        loss.append(reconstruction_loss(x, space, PairTiles(edges, 5)).item())
        distance = (x - x.T).square()
        apart = distance.masked_fill(torch.eye(5).bool(), torch.inf)
        without.append(dense_loss(apart, edges, 2).item())
    assert min(loss) > 0
    assert without[1] < 99 * without[0] < 0
    assert without[2] < 99 * without[1]


@pytest.fixture(params=["plain", "C++"])
def kernels(request):
    """The arithmetic of tiles, operation by operation or in C++."""
    if request.param == "C++":
        request.getfixturevalue("cpp_kernels")
        yield
    else:
        with use_kernels("plain"):
            yield


@pytest.mark.usefixtures("float32", "kernels")
@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("spread", [0.2, 0.6])
@pytest.mark.parametrize("kappas", CURVATURES)
def test_single_precision_keeps_its_digits(kappas, spread, power):
    edge_index, x = web(), random_points(kappas, spread=spread)
    result = in_tiles(x, kappas, edge_index, power)
    kappas = torch.tensor(kappas).double().tolist()
    expected = dense_value_and_gradients(x.double(), kappas, edge_index, power)
    assert [t.dtype for t in result] == [torch.float32] * 3
    assert_close(result, expected, 1e-5)


@pytest.mark.usefixtures("float32", "cpp_kernels")
@pytest.mark.parametrize(("power", "clamp"), [(1, None), (2, None), (1, 0.02), (2, 1e-4)])
@pytest.mark.parametrize("size", [1, 7, 29, 1000])
@pytest.mark.parametrize(
    "space",
    [
        Stereographic(2, (-1.0, 0.5), learnable=True),
        PseudoHyperboloid(3, -0.7, learnable=True),
        Product("U4xU4", learnable=True),
    ],
    ids=["balls", "pseudo", "product"],
)
def test_tiles_in_cpp_are_the_plain_ones(space, size, power, clamp):
    """Of any size, with pairs that time, space and no geodesic joins, to rounding."""
    x = space.expmap0(0.6 * torch.randn(NODES, 8 - space.codimension)).detach()
    tiles = PairTiles(web(), NODES, size)
    with use_kernels("plain"):
        plain = value_and_gradients(x, space, tiles, power, clamp)
    assert_close(value_and_gradients(x, space, tiles, power, clamp), plain, 1e-5)
    assert kernel_kind() == "C++"


@pytest.mark.usefixtures("float32", "cpp_kernels")
def test_tiles_in_cpp_do_not_depend_on_the_threads():
    kappas, found, before = (-1.0, 0.5), [], torch.get_num_threads()
    for threads in (1, 3):
        torch.set_num_threads(threads)
        found.append(in_tiles(random_points(kappas), kappas, web(), 2, 13))
    torch.set_num_threads(before)
    torch.testing.assert_close(*found, rtol=0, atol=0)


def exact_distance_and_slope(x: Tensor, y: Tensor, kappa: float) -> tuple[float, float]:
    """Distance of float32 points and its derivative by kappa, with 50 digits."""
    with mp.workdps(50):
        x, y = ([mp.mpf(c) for c in point.tolist()] for point in (x, y))
        chord = sum((a - b) ** 2 for a, b in zip(x, y, strict=True))

        def distance(k):
            scales = [1 + k * sum(c**2 for c in point) for point in (x, y)]
            root = mp.sqrt(k)  # imaginary in hyperbolic space, where asin(i s) = i asinh(s)
            return mp.re(2 * mp.asin(root * mp.sqrt(chord / mp.fprod(scales))) / root)

        k = mp.mpf(kappa)
        return float(distance(k)), float(mp.diff(distance, k, h=k * mp.mpf("1e-15")))


MAGNITUDES = [1e-6, 1e-4, 1e-3, 0.01, 0.019, 0.0199, 0.0201, 0.05, 0.3, 1.0]
LENGTHS = [0.1, 0.5, 1, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20]
CELLS = [
    (sign * magnitude, length)
    for magnitude in MAGNITUDES
    for sign in (-1, 1)
    for length in LENGTHS
    if magnitude**0.5 * length < (3 if sign > 0 else 7)  # short of the antipode and of the rim
]


@pytest.mark.usefixtures("float32", "kernels")
def test_slopes_in_kappa_of_long_edges():
    """An edge has weight 1 at any length: the loss of one alone is `2 D`."""
    tiles = PairTiles(both_directions([(0, 1)]), 2)
    for kappa, length in CELLS:
        space = Stereographic(1, kappa, learnable=True)
        x = space.expmap0(torch.tensor([[-0.4, 0.1], [0.4, 0.3]]) * length / 0.5**0.5 / 1.2)
        found = value_and_gradients(x.detach(), space, tiles, 2)[2].item()
        distance, slope = exact_distance_and_slope(*x.detach(), space.kappa.item())
        assert found == pytest.approx(4 * distance * slope, rel=2e-4), (kappa, length)


@pytest.mark.usefixtures("float32", "kernels")
def test_slopes_in_kappa_of_far_pairs():
    """Two edges of no length, at distance d: the loss is `4 log(1 + 2 exp(-d))`."""
    tiles = PairTiles(both_directions([(0, 1), (2, 3)]), 4)
    for kappa, length in CELLS:
        space = Stereographic(1, kappa, learnable=True)
        x = space.expmap0(torch.tensor([[-0.4, 0.1], [0.4, 0.3]]) * length / 0.5**0.5 / 1.2)
        x = x.detach().repeat_interleave(2, 0)
        found = value_and_gradients(x, space, tiles, 1)[2].item()
        distance, slope = exact_distance_and_slope(x[0], x[2], space.kappa.item())
        share = 2 * math.exp(-distance) / (1 + 2 * math.exp(-distance))
        assert found == pytest.approx(-4 * share * slope, rel=2e-4, abs=2e-6), (kappa, length)


@pytest.mark.usefixtures("float32")
@pytest.mark.parametrize("kappa", [-1.0, -0.01, 0.01, 1.0])
def test_both_branches_of_a_profile_are_chosen_on_the_device(kappa):
    """As on accelerators, which compute both: the same numbers as where one is called."""
    found = []
    for known in (True, False):
        profile = CurvedProfile(torch.tensor(kappa), far=True)
        if not known:
            profile.hyperbolic = torch.tensor(profile.hyperbolic)
            profile.nearly_flat = torch.tensor(profile.nearly_flat)
        form = torch.tensor([1e-3, 0.1, 1.0, 3.0, 20.0])
        tiles = torch.zeros(3, 5)
        profile.evaluate(form, *tiles)
        found.append(tiles)
    assert_close(*found, 1e-6)


@pytest.mark.usefixtures("float32", "kernels")
@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("spread", [0.0, 1.0, 1e3])
@pytest.mark.parametrize("kappa", [-5.0, -1.0, -1e-8, 0.0, 1e-8, 1.0, 5.0])
def test_everything_is_finite_in_single_precision(kappa, spread, power):
    x, space = random_points((kappa, kappa), spread=spread), Stereographic(2, kappa, learnable=True)
    tiles = PairTiles(web(), NODES)
    for part in value_and_gradients(x, space, tiles, power):
        assert part.isfinite().all()


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_antipodes_have_finite_gradients(dtype, power):
    """The distance has a kink there, and the closed form a pole."""
    x = torch.tensor([[0.5, 0], [-2, 0], [1, 0], [-1, 0], [0, 1e3], [0, -1e-3]], dtype=dtype)
    tiles = PairTiles(both_directions([(0, 1), (2, 4), (3, 5)]), 6)
    for part in value_and_gradients(
        x, Stereographic(1, 1.0, learnable=True).to(dtype), tiles, power
    ):
        assert part.isfinite().all()


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("kappa", [-2.0, -0.3])
def test_points_of_the_lorentz_model_have_the_loss_of_their_images(kappa, power):
    """The curvature acts on the distances, and on time and image of what has the same space."""
    edge_index, tiles = web(), PairTiles(web(), NODES, 8)
    s = torch.randn(NODES, 4).requires_grad_()
    model = Lorentz(kappa, learnable=True)
    loss = reconstruction_loss(model.from_space(s), model, tiles, power)
    k = model.kappa.detach().requires_grad_()
    images = lorentz.to_stereographic(lorentz.from_space(s, k), k)
    expected = dense_loss(dense_sqdist(images, k.reshape(1)), edge_index, power)
    torch.testing.assert_close(loss, expected)
    by_space, by_raw = torch.autograd.grad(loss, [s, model.curvature.raw])
    slope = torch.autograd.grad(model.kappa, model.curvature.raw)[0]
    expected = torch.autograd.grad(expected, [s, k])
    torch.testing.assert_close((by_space, by_raw / slope), expected, atol=1e-8, rtol=1e-8)


@pytest.mark.usefixtures("float32")
def test_far_points_of_the_lorentz_model_keep_their_digits():
    """At radius 9 in float32, where the image is beyond the last number below the rim."""
    model = Lorentz(-1.0, learnable=True)
    v = 9 * torch.nn.functional.normalize(torch.randn(5, 2, generator=torch.manual_seed(0)))
    tiles = PairTiles(both_directions([(0, 1), (0, 2), (1, 2), (2, 3), (3, 4)]), 5)
    loss = reconstruction_loss(model.expmap0(v), model, tiles, power=1)
    exact = reconstruction_loss(model.expmap0(v).double(), model.double(), tiles, power=1)
    torch.testing.assert_close(loss.double(), exact, rtol=1e-3, atol=0)


@pytest.mark.parametrize("clamp", [None, 0.5])
@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("signature", ["U4xU4", "H3xS2xE1xL2"])
def test_a_space_without_a_form_has_the_same_loss_and_gradient(signature, power, clamp):
    class Plain(Product):
        pair_form = Manifold.pair_form

    tiles, found = PairTiles(web(), NODES, 4), []
    for kind in (Product, Plain):
        space = kind(signature, learnable=True)
        v = (0.6 * torch.randn(NODES, 8, generator=torch.manual_seed(0))).requires_grad_()
        loss = reconstruction_loss(space.expmap0(v), space, tiles, power, clamp)
        found.append((loss, *torch.autograd.grad(loss, [v, *space.parameters()])))
    torch.testing.assert_close(*found)


@pytest.mark.usefixtures("float32", "kernels")
@pytest.mark.parametrize("clamp", [None, 1e-15, 0.5])
@pytest.mark.parametrize(
    "space", [Euclidean(), Stereographic(1, -1.0, learnable=True)], ids=["flat", "ball"]
)
def test_points_that_are_not_numbers_spoil_the_loss(space, clamp):
    """The finite guard is to see them."""
    x = random_points((-1.0,))
    x[3] = torch.nan
    x.requires_grad_()
    tiles = PairTiles(web(), NODES)
    assert reconstruction_loss(x, space, tiles, 2, clamp).isnan()


@pytest.mark.parametrize("power", [2, 1])
@pytest.mark.parametrize("time_dims", [1, 3, 8])
def test_tiles_of_the_pseudo_hyperboloid_are_the_definition(time_dims, power):
    """In value and gradients, with pairs that time, space, and no geodesic joins."""
    space = PseudoHyperboloid(time_dims, -0.7, learnable=True)
    v = 1.2 * torch.randn(NODES, 7)
    edge_index = web()

    def results(loss_of):
        tangents = v.clone().requires_grad_()
        loss = loss_of(space.expmap0(tangents))
        return loss, *torch.autograd.grad(loss, [tangents, space.curvature.raw])

    def dense(x):
        return dense_loss(space.sqdist(x[:, None], x), edge_index, power)

    tiles = PairTiles(edge_index, NODES, 8)
    in_tiles = results(lambda x: reconstruction_loss(x, space, tiles, power))
    assert_close(in_tiles, results(dense), 1e-10)


def dense_clamped_loss(sqdist, edge_index, power, clamp):
    """The definition: `exp(-D)` of each pair and the quotient of each edge clamped, by autograd."""
    self = torch.eye(NODES)
    similarity = torch.exp(-(sqdist if power == 2 else (sqdist + self).sqrt() - self))
    neighbour = torch.zeros(sqdist.shape, dtype=torch.bool)
    neighbour[edge_index[0], edge_index[1]] = True
    similarity = similarity.clamp(min=clamp)
    quotient = similarity / similarity.masked_fill(neighbour, 0).sum(1, keepdim=True)
    return -quotient[neighbour].clamp(min=clamp).log().sum()


@pytest.mark.parametrize(
    ("power", "clamp", "spread"),
    [(2, 1e-15, 0.8), (2, 1e-4, 0.4), (2, 0.02, 0.2), (1, 1e-2, 0.4), (2, 0.9, 1.0)],
)
@pytest.mark.parametrize("kappas", [None, (-1.0, 0.5), (1e-3, -0.3)])
def test_clamped_loss_is_its_definition(kappas, power, clamp, spread):
    """In flat and curved spaces, where some edges and some other pairs are clamped, or all."""
    edge_index, curvatures = web(), kappas or (0.0, 0.0)
    x = random_points(curvatures, spread=spread)
    space = Euclidean(2) if kappas is None else Stereographic(2, kappas, learnable=True)
    tiles = PairTiles(edge_index, NODES, 8)
    result = value_and_gradients(x, space, tiles, power, clamp)
    leaf, kappa = x.clone().requires_grad_(), torch.tensor(curvatures).requires_grad_()
    sqdist = dense_sqdist(leaf, kappa)
    expected = dense_clamped_loss(sqdist, edge_index, power, clamp)
    gradients = torch.autograd.grad(expected, [leaf, kappa][: len(result) - 1])
    assert_close(result, (expected.detach(), *gradients), 1e-8)
    assert result[0] < value_and_gradients(x, space, tiles, power)[0]
    assert result[1].any() == (clamp < 0.9)


@pytest.mark.usefixtures("float32", "kernels")
def test_two_backward_passes_of_one_loss_are_the_same():
    x, tiles = random_points((0.5, -1.0)).requires_grad_(), PairTiles(web(), NODES, 8)
    space = Stereographic(2, (0.5, -1.0), learnable=True)
    loss = reconstruction_loss(x, space, tiles)
    gradients = [torch.autograd.grad(loss, x, retain_graph=True)[0] for _ in range(2)]
    torch.testing.assert_close(*gradients, rtol=0, atol=0)
    with pytest.raises(RuntimeError, match="differentiable once"):
        torch.autograd.grad(loss, x, create_graph=True)
