"""Curvatures learn at a rate of their own and never decay."""

from collections import Counter

import pytest
import torch
from torch import nn

from curvlab.errors import UsageError
from curvlab.layers import LorentzLinear, LorentzPrototypes, StereographicLinear
from curvlab.manifolds import Euclidean, Lorentz, Stereographic
from curvlab.optim import (
    SGD,
    Adam,
    AdamW,
    ReduceOnPlateau,
    RiemannianAdam,
    RiemannianAdamW,
    parameter_groups,
)


def module(space, layers=2):
    """Layers that share one space."""
    return nn.Sequential(*(StereographicLinear(4, 4, space) for _ in range(layers)))


def rates(made, groups):
    """Rate and decay of each parameter, which is in one group, by its name."""
    of = {id(p): (group["lr"], group["weight_decay"]) for group in groups for p in group["params"]}
    assert sum(len(group["params"]) for group in groups) == len(of)
    return {name: of[id(p)] for name, p in made.named_parameters()}


@pytest.mark.parametrize(
    "spaces",
    [
        [Stereographic(2, -1.0, learnable=True)],
        [Euclidean(2)],
        [Stereographic(2, -1.0, learnable=False)],
        [Stereographic(k, -1.0, max=top, learnable=True) for k, top in ((2, 0.0), (4, None))],
    ],
    ids=["learned", "flat", "fixed", "bounded"],
)
def test_curvatures_have_a_group_and_every_parameter_is_in_one(spaces):
    made = nn.ModuleList(map(module, spaces))
    found = rates(made, parameter_groups(made, curvature_lr=0.1, weight_decay=0.5))
    assert found == {n: (0.1, 0.0) if "curvature" in n else (0.01, 0.5) for n in found}


def test_steps_are_as_long_as_the_two_rates():
    """Adam's first step, whatever the gradient."""
    made = module(Stereographic(2, -1.0, learnable=True))
    optimizer = Adam(lr=0.01, curvature_lr=1e-4, weight_decay=0.0).build(made)
    assert isinstance(optimizer, torch.optim.Adam)
    before = {name: p.detach().clone() for name, p in made.named_parameters()}
    for parameter in made.parameters():
        parameter.grad = torch.full_like(parameter, 3.0)
    optimizer.step()
    for name, parameter in made.named_parameters():
        length = 1e-4 if "curvature" in name else 0.01
        torch.testing.assert_close(before[name] - parameter, torch.full_like(parameter, length))


def test_a_part_with_a_decay_of_its_own_decays_by_it_and_its_curvatures_do_not():
    made = nn.ModuleList([module(Euclidean(2)), module(Stereographic(2, -1.0, learnable=True))])
    made[1].weight_decay = 0.25
    found = rates(made, parameter_groups(made, curvature_lr=0.1, weight_decay=0.5))
    for name, found_rates in found.items():
        decay = 0.25 if name.startswith("1") else 0.5
        assert found_rates == ((0.1, 0.0) if "curvature" in name else (0.01, decay))


def prototypes(learnable=True):
    """Euclidean parameters, a curvature, and points of the space that has it."""
    space = Lorentz(-0.5, learnable)
    linear = LorentzLinear(3, 4, Lorentz(-1.0, learnable=False), space, "rescale")
    return nn.Sequential(linear, LorentzPrototypes(4, 2, space))


RATES = {"lr": 0.01, "curvature_lr": 1e-4, "weight_decay": 0.05}
POINT_RATES = {"manifold_lr": 0.03, "manifold_weight_decay": 0.02}


def test_points_of_a_manifold_have_a_rate_and_a_decay_of_their_own():
    made = prototypes()
    optimizer = Adam(**RATES, **POINT_RATES).build(made)
    assert isinstance(optimizer, RiemannianAdam)
    found = rates(made, optimizer.param_groups)
    assert found.pop("1.prototypes") == (0.03, 0.02)
    assert found == {n: (1e-4, 0.0) if "curvature" in n else (0.01, 0.05) for n in found}


@pytest.mark.usefixtures("float64")
def test_points_move_along_geodesics_by_the_length_of_the_rate():
    """Adam's first step has the length of the rate, here on the manifold, against the gradient."""
    made = prototypes(learnable=False)
    rates = {**POINT_RATES, "manifold_weight_decay": 0.0}
    optimizer = Adam(**RATES, **rates).build(made)
    points, space = made[1].prototypes, made[1].space
    before, target = points.detach().clone(), space.random_normal(2, 5).detach()
    space.sqdist(points, target).sum().backward()
    optimizer.step()
    torch.testing.assert_close(points.detach(), space.project(points.detach()))
    torch.testing.assert_close(space.dist(before, points), torch.full((2,), 0.03))
    expected = space.dist(before, target) - 0.03  # straight towards the target
    torch.testing.assert_close(space.dist(points, target), expected)


def test_without_points_adam_stays_torchs():
    optimizer = Adam(**RATES, **POINT_RATES).build(module(Euclidean(2)))
    assert type(optimizer) is torch.optim.Adam


@pytest.mark.parametrize(
    "optimizer", [Adam(**RATES), SGD(**RATES, **POINT_RATES)], ids=["no rate", ""]
)
def test_points_without_a_step_for_them_are_refused(optimizer):
    with pytest.raises(UsageError, match=r"optimizer=adam_classification, or task.decoder=linear"):
        optimizer.build(prototypes())


def test_adamw_with_points_decays_apart_from_the_gradient():
    made = prototypes()
    optimizer = AdamW(**RATES, **POINT_RATES).build(made)
    assert isinstance(optimizer, RiemannianAdamW)
    weight = made[0].weight.detach().clone()
    for parameter in made.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    torch.testing.assert_close(made[0].weight, weight * (1 - 0.01 * 0.05))
    assert made[0].space_out.kappa.item() == pytest.approx(-0.5)


def test_biases_and_scales_have_a_decay_of_their_own_if_they_are_given_one():
    made = prototypes()
    groups = parameter_groups(
        made, 0.01, 1e-4, 0.05, 0.0, manifold_lr=0.03, manifold_weight_decay=0.0
    )
    for name, (_, decay) in rates(made, groups).items():
        assert decay == (0.05 if name == "0.weight" else 0.0)


def test_a_part_may_learn_and_decay_at_rates_of_its_own():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2))
    vars(model[1]).update(lr=0.5, weight_decay=None)
    vars(model[2]).update(lr=0.25, weight_decay=0.125)
    found = rates(model, parameter_groups(model, lr=0.3, curvature_lr=1.0, weight_decay=0.01))
    expected = [(0.3, 0.01), (0.5, 0.01), (0.25, 0.125)]
    assert found == {name: expected[int(name[0])] for name in found}


def test_torchs_own_options_are_passed_on_and_others_refused():
    assert Adam(amsgrad=True).build(module(Euclidean(2))).defaults["amsgrad"]
    with pytest.raises(TypeError, match="amsgrat"):
        Adam(amsgrat=True)


def test_a_plateau_lowers_the_rate():
    optimizer = Adam(lr=0.1).build(nn.Linear(2, 2))
    scheduler = ReduceOnPlateau(patience=1).build(optimizer)
    for score in (1.0, 2.0, 2.0, 1.0):
        scheduler.step(score)
    assert optimizer.param_groups[0]["lr"] == 0.05


def test_rates_of_nested_parts_in_either_order_make_one_group():
    outer_rate, outer_decay = nn.Linear(2, 2), nn.Linear(2, 2)
    outer_rate.inner, outer_decay.inner = nn.Linear(2, 2), nn.Linear(2, 2)
    outer_rate.lr = outer_decay.inner.lr = 0.5
    outer_decay.weight_decay = outer_rate.inner.weight_decay = 0.25
    model = nn.ModuleList([outer_rate, outer_decay])
    groups = parameter_groups(model, lr=0.01)
    counts = Counter(id(p) for group in groups for p in group["params"])
    assert counts == {id(p): 1 for p in model.parameters()}
    inner = [p for part in model for p in part.inner.parameters()]
    for p in inner:
        (group,) = [g for g in groups if any(p is q for q in g["params"])]
        assert (group["lr"], group["weight_decay"]) == (0.5, 0.25)
