"""Curvatures learn at a rate of their own and never decay."""

import pytest
import torch
from omegaconf import OmegaConf
from torch import nn

from curvlab.layers import StereographicLinear
from curvlab.manifolds import Euclidean, Stereographic
from curvlab.optim import build_optimizer
from curvlab.optim.parameter_groups import parameter_groups


def module(space, layers=2):
    """Layers that share one space."""
    torch.manual_seed(0)
    return nn.Sequential(*(StereographicLinear(4, 4, space) for _ in range(layers)))


def config(optimizer, **options):
    return OmegaConf.create({"_target_": f"torch.optim.{optimizer}", "_partial_": True, **options})


def test_every_parameter_is_in_one_group():
    made = module(Stereographic(2, -1.0))
    groups = parameter_groups(made, curvature_lr=0.1, weight_decay=0.5)
    members = [id(p) for group in groups for p in group["params"]]
    assert sorted(members) == sorted(id(p) for p in made.parameters())
    ordinary, curvatures = groups
    assert ordinary["weight_decay"] == 0.5
    assert "lr" not in ordinary  # the optimiser's own
    assert [p.shape for p in curvatures["params"]] == [(2,)]
    assert (curvatures["lr"], curvatures["weight_decay"]) == (0.1, 0.0)


@pytest.mark.parametrize(
    "space",
    [Euclidean(2), Stereographic(2, -1.0, learnable=False)],
    ids=["flat", "fixed curvature"],
)
def test_without_curvatures_to_learn_there_is_one_group(space):
    made = module(space)
    (group,) = parameter_groups(made, curvature_lr=0.1, weight_decay=0.5)
    assert [id(p) for p in group["params"]] == [id(p) for p in made.parameters()]


def test_bounded_curvatures_are_curvatures_too():
    made = nn.ModuleList([module(Stereographic(2, -1.0, max=0.0)), module(Stereographic(4, 0.5))])
    _, curvatures = parameter_groups(made, curvature_lr=0.1, weight_decay=0.5)
    assert [p.shape for p in curvatures["params"]] == [(2,), (4,)]


def test_steps_are_as_long_as_the_two_rates():
    """Adam's first step, whatever the gradient."""
    made = module(Stereographic(2, -1.0))
    optimizer = build_optimizer(made, config("Adam", lr=0.01, curvature_lr=1e-4, weight_decay=0.0))
    assert isinstance(optimizer, torch.optim.Adam)
    before = {name: p.detach().clone() for name, p in made.named_parameters()}
    for parameter in made.parameters():
        parameter.grad = torch.full_like(parameter, 3.0)
    optimizer.step()
    for name, parameter in made.named_parameters():
        length = 1e-4 if "curvature" in name else 0.01
        torch.testing.assert_close(before[name] - parameter, torch.full_like(parameter, length))


def test_curvatures_do_not_decay():
    made = module(Stereographic(2, -1.0))
    optimizer = build_optimizer(made, config("SGD", lr=0.1, curvature_lr=0.1, weight_decay=0.5))
    weight = made[0].weight.detach().clone()
    for parameter in made.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    torch.testing.assert_close(made[0].weight, weight * (1 - 0.1 * 0.5))
    assert made[0].space.kappa.tolist() == [-1.0, -1.0]


def test_configuration_is_not_changed():
    """It is written to the result after the optimiser is built."""
    options = config("Adam", lr=0.01, curvature_lr=0.1, weight_decay=0.0)
    before = OmegaConf.to_container(options)
    build_optimizer(module(Euclidean(2)), options)
    assert OmegaConf.to_container(options) == before


def test_a_part_with_a_decay_of_its_own_decays_by_it_and_its_curvatures_do_not():
    made = nn.ModuleList([module(Euclidean(2)), module(Stereographic(2, -1.0))])
    made[1].weight_decay = 0.25
    ordinary, apart, curvatures = parameter_groups(made, curvature_lr=0.1, weight_decay=0.5)
    assert [id(p) for p in ordinary["params"]] == [id(p) for p in made[0].parameters()]
    assert (ordinary["weight_decay"], apart["weight_decay"]) == (0.5, 0.25)
    assert [p.shape for p in curvatures["params"]] == [(2,)]
    members = {id(p) for p in apart["params"] + curvatures["params"]}
    assert members == {id(p) for p in made[1].parameters()}
