"""Adam for Euclidean parameters and for points of manifolds."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Adam, AdamW

from curvlab.errors import UsageError
from curvlab.manifolds._geoopt import geoopt

STABILIZE = 10
"""Number of steps between projections of points and momenta."""


class _WithPoints(torch.optim.Optimizer):
    """An optimiser whose step leaves points of manifolds to Riemannian Adam.

    Points are projected onto their manifold after every `stabilize` steps. Their decay is added to
    their gradient, also by AdamW.
    """

    def __init__(self, params: Iterable[Any], stabilize: int = STABILIZE, **options: Any) -> None:
        if options.get("amsgrad") or options.get("maximize"):
            raise UsageError("Riemannian Adam has no amsgrad and no maximize: leave them out")
        super().__init__(params, **options)
        self.stabilize = stabilize

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        points = [
            (p, p.grad, group)
            for group in self.param_groups
            for p in group["params"]
            if p.grad is not None and isinstance(p, geoopt.ManifoldParameter)
        ]
        for p, _, _ in points:
            p.grad = None  # torch's step skips parameters without a gradient
        super().step()
        for p, grad, group in points:
            p.grad = grad
            self._move(p, grad, group)
        return loss

    def _move(self, p: geoopt.ManifoldParameter, grad: Tensor, group: dict[str, Any]) -> None:
        if grad.layout != torch.strided:
            raise UsageError(
                "points of a manifold have a sparse gradient, and Riemannian Adam moves all of "
                "them in a step: make their embedding with sparse=False, or use "
                "geoopt.optim.SparseRiemannianAdam"
            )
        manifold = p.manifold
        state = self.state[p]
        x = p.detach().view(-1, p.shape[-1])
        if not state:
            state["step"] = 0  # no tensor: loading a checkpoint would move it to the device
            state["exp_avg"] = torch.zeros_like(x)
            state["exp_avg_sq"] = torch.zeros_like(manifold.component_inner(x, x))
        at = state["step"] = int(state["step"]) + 1
        m = state["exp_avg"]
        v = state["exp_avg_sq"]
        beta1, beta2 = group["betas"]
        r = manifold.egrad2rgrad(x, grad.reshape(x.shape) + group["weight_decay"] * x)
        m.lerp_(r, 1 - beta1)
        v.mul_(beta2).add_(manifold.component_inner(x, r), alpha=1 - beta2)
        denominator = (v / (1 - beta2**at)).sqrt_().add_(group["eps"])
        u = -group["lr"] / (1 - beta1**at) * m / denominator
        for old, moved in zip((x, m), manifold.retr_transp(x, u, m), strict=True):
            old.copy_(moved)
        if at % self.stabilize == 0:
            x.copy_(manifold.projx(x))
            m.copy_(manifold.proju(x, m))


class RiemannianAdam(_WithPoints, Adam):
    """torch's Adam; points of a manifold move along geodesics, their momenta with them.

    On `geoopt.ManifoldParameter`s it makes the steps of geoopt's optimiser of this name; the second
    moment has one number per norm instead of one per coordinate.

    Source: Becigneul and Ganea 2019.
    """


class RiemannianAdamW(_WithPoints, AdamW):
    """`RiemannianAdam` with torch's AdamW for Euclidean parameters: their decay is decoupled."""
