"""Cost of the hyperboloid: Hypformer's layers against the Euclidean layers of the same shape.

hypll's hyperbolic linear layer takes 4 to 10 times as long as `nn.Linear`, as its users report; it
is not timed here.
"""

import argparse

import torch
from torch import Tensor, nn

from curvlab.layers import (
    LorentzLinear,
    LorentzLinearAttention,
    LorentzMidpoint,
    LorentzSoftmaxAttention,
    focused_attention,
)
from curvlab.manifolds import Lorentz
from curvlab.tasks.cost.timing import (
    Work,
    console,
    median_ms,
    peak_memory_mb,
    print_table,
    verdict,
)

NODES, DIM, POWER = 10_000, 256, 2.0
TOKENS = 4_000
LINEAR, ATTENTION = 1.2, 1.5
"""Largest admissible ratios."""


class EuclideanLinearAttention(nn.Module):
    """The layer that `LorentzAttentionLayer` is without a hyperboloid, `[nodes, dim]` to the same.

    Queries, keys and values by one product, the same feature map and sums, psi, a residual.
    """

    def __init__(self, dim: int, heads: int, power: float) -> None:
        super().__init__()
        self.heads, self.power = heads, power
        self.projection = nn.Linear(dim, 3 * heads * dim)
        self.psi = nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        """Map `[nodes, dim]` to `[nodes, dim]`."""
        query, key, value = self.projection(x).unflatten(-1, (3, self.heads, -1)).unbind(-3)
        heads = focused_attention(query, key, value, self.power).mean(-2)
        return x + heads + self.psi(value.mean(-2))


class LorentzAttentionLayer(nn.Module):
    """One layer of Hypformer: linear attention and the midpoint with its input."""

    def __init__(self, dim: int, heads: int, power: float, space: Lorentz) -> None:
        super().__init__()
        self.attention = LorentzLinearAttention(dim, heads, dim, space, power, False, "mean")
        self.residual = LorentzMidpoint(space)

    def forward(self, x: Tensor) -> Tensor:
        """Map points `[nodes, 1 + dim]` to points `[nodes, 1 + dim]`."""
        return self.residual(self.attention(x), x)


def _forward_backward(layer: nn.Module, x: Tensor) -> Work:
    """A call that computes the output and the gradients of the input and of all weights."""
    leaf = x.detach().clone().requires_grad_()
    leaves = [leaf, *layer.parameters()]
    weight = torch.randn_like(layer(leaf).detach())
    return lambda: torch.autograd.grad(layer(leaf), leaves, weight)


def _table(device: torch.device, runs: int) -> None:
    fixed, learned = (Lorentz(-0.5, learnable).to(device) for learnable in (False, True))
    other = Lorentz(-2.0, learnable=False).to(device)
    flat = 0.1 * torch.randn(NODES, DIM, device=device)
    point = fixed.from_space(flat)
    groups = [
        (
            "linear",
            LINEAR,
            (nn.Linear(DIM, DIM), flat),
            {
                "HTC": LorentzLinear(DIM, DIM, fixed, fixed, "rescale"),
                "HTC, other curvature": LorentzLinear(DIM, DIM, fixed, other, "rescale"),
                "HTC, learned curvature": LorentzLinear(DIM, DIM, fixed, learned, "rescale"),
            },
        )
    ] + [
        (
            f"linear attention, {heads} head{'s' if heads > 1 else ''}",
            ATTENTION,
            (EuclideanLinearAttention(DIM, heads, POWER), flat),
            {
                "Hypformer": LorentzAttentionLayer(DIM, heads, POWER, fixed),
                "Hypformer, learned curvature": LorentzAttentionLayer(DIM, heads, POWER, learned),
            },
        )
        for heads in (1, 2)
    ]
    rows = []
    for name, target, (plain, x), curved in groups:
        works = {"": _forward_backward(plain.to(device), x)}
        works |= {n: _forward_backward(layer.to(device), point) for n, layer in curved.items()}
        ms = median_ms(works, device, runs)
        rows.append([f"Euclidean {name}", f"{ms['']:.1f}", ""])
        rows += [[f"  {n}", f"{ms[n]:.1f}", verdict(ms[n] / ms[""], target)] for n in curved]
    title = f"forward + backward, {NODES:,} x {DIM} float32"
    print_table(title, ["", "ms", "ratio"], rows)


def _softmax(device: torch.device, runs: int) -> None:
    space = Lorentz(-1.0, learnable=False).to(device)
    x = space.from_space(0.1 * torch.randn(TOKENS, DIM, device=device))
    layers: dict[str, nn.Module] = {
        "linear": LorentzLinearAttention(DIM, 1, DIM, space, POWER, False, "mean"),
        "softmax": LorentzSoftmaxAttention(DIM, 1, DIM, space),
    }
    works = {n: _forward_backward(layer.to(device), x) for n, layer in layers.items()}
    ms = median_ms(works, device, max(3, runs // 4))
    rows = []
    for name, work in works.items():
        memory = peak_memory_mb(work, device)
        rows.append([name, f"{ms[name]:.1f}", "-" if memory is None else f"{memory:,.0f}"])
    title = (
        f"attention of {TOKENS:,} points, forward + backward; "
        f"the scores alone would take {4e-6 * TOKENS**2:.0f} MB"
    )
    print_table(title, ["", "ms", "peak MB"], rows)


def run(args: argparse.Namespace) -> None:
    """Print both tables; `args` has `device` and `runs`."""
    device = args.device
    torch.manual_seed(0)
    _table(device, args.runs)
    _softmax(device, args.runs)
    console.print(
        "for comparison: users of hypll report 4 to 10 times nn.Linear for its linear layer",
        highlight=False,
    )
