"""Mixing spaces that do not fit is refused when a layer is built."""

import numpy as np
import pytest

from curvlab.errors import UsageError
from curvlab.layers import LorentzLinear, StereographicLinear
from curvlab.layers.stereographic import StereographicFeedForward, StereographicLayerNorm
from curvlab.manifolds import Euclidean, Lorentz, PoincareBall, Sphere, Stereographic
from curvlab.models.fpst import FPST

FITTING = "Euclidean, PoincareBall, Sphere, Stereographic"


@pytest.mark.parametrize("given", [((8, 8, Lorentz()), {}), ((8, 8), {"space": Lorentz()})])
def test_a_stereographic_layer_refuses_the_hyperboloid(given):
    says = rf"^StereographicLinear cannot be built with space=Lorentz: it takes {FITTING}$"
    with pytest.raises(UsageError, match=says):
        StereographicLinear(*given[0], **given[1])


@pytest.mark.parametrize("layer", [StereographicLayerNorm, StereographicFeedForward])
def test_other_layers_do_too(layer):
    given = (8, Lorentz()) if layer is StereographicLayerNorm else (8, 8, abs, Lorentz())
    with pytest.raises(UsageError, match=f"{layer.__name__} cannot be built with space=Lorentz"):
        layer(*given)


def test_each_of_two_spaces_is_checked():
    with pytest.raises(UsageError, match="LorentzLinear cannot be built with space_out=Sphere"):
        LorentzLinear(8, 8, Lorentz(), Sphere(), "rescale")


@pytest.mark.parametrize("space", [Euclidean, PoincareBall, Sphere, Stereographic])
def test_spaces_of_the_kind_and_of_subclasses_fit(space):
    assert StereographicLinear(8, 8, space(2)).space.components == 2


def test_a_missing_argument_is_still_said_by_python():
    with pytest.raises(TypeError, match="space"):
        StereographicLinear(8, 8)


def test_a_whole_number_of_numpy_is_one():
    assert FPST(8, dim=np.int64(4)).dim_out == 4
