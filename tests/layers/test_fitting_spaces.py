"""The manifold of a layer or model: a class, an instance or a partial; others are refused."""

from functools import partial

import numpy as np
import pytest
import torch

from curvlab.errors import UsageError
from curvlab.layers import LorentzLinear, StereographicLinear
from curvlab.layers.stereographic import StereographicLogits
from curvlab.manifolds import Euclidean, Lorentz, PoincareBall, Product, Sphere, Stereographic
from curvlab.models import FPST, HGCN

ANSWERS = {
    "Lorentz": (lambda: StereographicLogits(8, 8, Lorentz), "manifold=Lorentz must be Euclidean"),
    "an instance": (lambda: StereographicLogits(8, 8, manifold=Lorentz()), "manifold=Lorentz"),
    "the second": (lambda: LorentzLinear(8, 8, Lorentz, Sphere), "manifold_out=Sphere must be Lor"),
    "a name": (lambda: FPST(8, manifold="poincare"), "manifold='poincare' must be Euclidean or Lo"),
    "a curvature": (lambda: StereographicLinear(8, 8, -1.0), "manifold=-1.0 must be Euclidean"),
    "a product of three": (
        lambda: FPST(8, manifold=partial(Product, "H8xS4xE4")),
        "heads=2 and dim=16 must be 3 and 16 on this Product",
    ),
    "a signature": (lambda: FPST(8, manifold=partial(Product, "H8y")), "signature='H8y' must be a"),
    "c": (lambda: HGCN(8, c=1.0), r"HGCN takes no c: .*manifold=PoincareBall\(kappa=-1.0\)"),
    "k": (lambda: StereographicLinear(8, 8, Sphere, k=1.0), "takes no k: give the .* kappa"),
}


@pytest.mark.parametrize("wrong", ANSWERS)
def test_what_is_no_manifold_of_a_layer_or_model_is_answered_with_one_that_is(wrong):
    make, answer = ANSWERS[wrong]
    with pytest.raises(UsageError, match=answer):
        make()


@pytest.mark.parametrize("kind", [Euclidean, PoincareBall, Sphere, Stereographic])
@pytest.mark.parametrize("given", [lambda kind: kind, lambda kind: kind(), partial])
def test_a_class_an_instance_and_a_partial_are_taken(kind, given):
    assert type(StereographicLinear(8, 8, manifold=given(kind)).space) is kind
    model = FPST(8, heads=4, manifold=given(kind))
    assert type(model.manifold_out) is kind
    assert model.manifold_out.components == 4


def test_the_options_of_an_instance_are_those_of_the_spaces_made_of_it():
    kappa = FPST(8, manifold=PoincareBall(kappa=-3.0, learnable=False)).manifold_out.kappa
    torch.testing.assert_close(kappa, torch.tensor([-3.0, -3.0]))


def test_a_missing_argument_is_still_said_by_python():
    with pytest.raises(TypeError, match="manifold"):
        StereographicLinear(8, 8)


def test_a_whole_number_of_numpy_is_one():
    assert FPST(8, dim=np.int64(4)).dim_out == 4
