"""A step of Riemannian Adam against torch's Adam and geoopt's Riemannian Adam."""

import argparse

import torch
from torch import nn

from curvlab.manifolds import Lorentz, Stereographic
from curvlab.manifolds._geoopt import geoopt
from curvlab.optim import RiemannianAdam
from curvlab.tasks.cost.timing import median_ms, print_table, verdict

ENTITIES, DIM = 40_943, 64
"""Of WN18RR, and a usual width."""

LARGEST_RATIO = 2.0


def run(args: argparse.Namespace) -> None:
    """Print the milliseconds of a step of one parameter of many points."""
    device = args.device
    flat = nn.Parameter(torch.randn(ENTITIES, DIM, device=device))
    flat.grad = torch.randn_like(flat)
    adam = torch.optim.Adam([flat], lr=1e-3, foreach=True)
    rows = []
    spaces: dict[str, Lorentz | Stereographic] = {
        "Lorentz": Lorentz(learnable=False),
        "ball": Stereographic(1, -1.0, learnable=False),
    }
    for name, space in spaces.items():
        space = space.to(device)
        steps = {"Adam": adam.step}
        for who, optimizer in (("ours", RiemannianAdam), ("geoopt", geoopt.optim.RiemannianAdam)):
            start = space.random_normal(ENTITIES, DIM, std=0.1, device=device)
            points = geoopt.ManifoldParameter(start.detach(), manifold=space)
            points.grad = torch.randn_like(points)
            steps[who] = optimizer([points], lr=1e-3).step
        ms = median_ms(steps, device, args.runs)
        rows.append(
            [
                name,
                f"{ms['Adam']:.1f}",
                f"{ms['ours']:.1f}",
                verdict(ms["ours"] / ms["Adam"], LARGEST_RATIO),
                f"{ms['geoopt']:.1f}",
                f"{ms['geoopt'] / ms['Adam']:.1f}",
            ]
        )
    print_table(
        f"A step of one parameter of {ENTITIES:,} points of {DIM} coordinates",
        ("", "Adam, ms", "Riemannian, ms", "over Adam", "geoopt, ms", "over Adam"),
        rows,
    )
