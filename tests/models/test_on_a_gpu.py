"""What a model says on a GPU is what it says on a processor, under TF32 too."""

import pytest
import torch

from composing import CONFIGS
from curvlab.config.folder import choices
from curvlab.data.datasets.synthetic import SyntheticWeb
from curvlab.manifolds import Stereographic
from curvlab.manifolds.matrix_products import linear, product
from curvlab.tasks.pairs.loss import reconstruction_loss
from curvlab.tasks.pairs.tiles import PairTiles
from tiny_data import said

MODELS = choices(CONFIGS, "model")

pytestmark = pytest.mark.gpu


@pytest.fixture
def tf32():
    """Let products of float32 have factors of 10 bits."""
    torch.set_float32_matmul_precision("high")
    yield
    torch.set_float32_matmul_precision("highest")


@pytest.mark.parametrize("model", MODELS)
def test_a_model_says_the_same_on_both(model, tmp_path):
    here, _ = said(model, tmp_path)
    there, loss = said(model, tmp_path, "cuda")
    assert there.device.type == "cuda"
    assert loss.isfinite()
    assert (there.cpu() - here).norm() < 1e-3 * here.norm()


def test_tf32_rounds_products_but_none_that_cancel(tf32):
    a, b = (torch.randn(256, 256) for _ in range(2))
    expected = a.double() @ b.double()

    def error(found):
        return float((found.cpu() - expected).norm() / expected.norm())

    assert error(a.cuda() @ b.cuda()) > 1e-5
    assert error(product(a.cuda(), b.cuda())) < 1e-6
    assert error(linear(a.cuda(), b.T.contiguous().cuda())) < 1e-6


def test_the_loss_of_near_pairs_is_right_under_tf32(tf32):
    edge_index = SyntheticWeb(num_nodes=100, cycle_fraction=0.5, seed=0).load().edge_index
    vectors = 0.6 + 0.02 * torch.randn(100, 8, generator=torch.Generator().manual_seed(0))
    found = []
    for device in ("cpu", "cuda"):
        space = Stereographic(kappa=[-1.0, 0.5], components=2, learnable=True).to(device)
        x = space.expmap0(vectors.to(device)).detach().requires_grad_()
        loss = reconstruction_loss(x, space, PairTiles(edge_index.to(device), 100))
        found.append(torch.autograd.grad(loss, x)[0].cpu())
    assert (found[1] - found[0]).norm() < 1e-4 * found[0].norm()
