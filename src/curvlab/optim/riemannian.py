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


class _RiemannianStep(torch.optim.Optimizer):
    """Mixin that moves points of manifolds by Riemannian Adam, and other parameters by torch.

    Points are projected onto their manifold after every `stabilize` steps. Their weight decay is
    added to their gradient, in AdamW too.
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
        points = []
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None and isinstance(p, geoopt.ManifoldParameter):
                    points.append((p, p.grad, group))
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
        lr = group["lr"]
        beta1, beta2 = group["betas"]
        manifold = p.manifold
        state = self.state[p]
        x = p.detach().view(-1, p.shape[-1])
        if not state:
            # A number, since loading a checkpoint would move a tensor to the device.
            state["step"] = 0
            state["exp_avg"] = torch.zeros_like(x)
            state["exp_avg_sq"] = torch.zeros_like(manifold.component_inner(x, x))
        step = int(state["step"]) + 1
        state["step"] = step
        m = state["exp_avg"]
        v = state["exp_avg_sq"]
        r = manifold.egrad2rgrad(x, grad.reshape(x.shape) + group["weight_decay"] * x)
        m.lerp_(r, 1 - beta1)
        v.mul_(beta2).add_(manifold.component_inner(x, r), alpha=1 - beta2)
        denominator = (v / (1 - beta2**step)).sqrt_().add_(group["eps"])
        u = -lr / (1 - beta1**step) * m / denominator
        point, momentum = manifold.retr_transp(x, u, m)
        x.copy_(point)
        m.copy_(momentum)
        if step % self.stabilize == 0:
            x.copy_(manifold.projx(x))
            m.copy_(manifold.proju(x, m))


class RiemannianAdam(_RiemannianStep, Adam):
    """torch's Adam; points of a manifold move along geodesics, and their momenta are transported.

    The steps of `geoopt.ManifoldParameter`s equal those of `geoopt.optim.RiemannianAdam`. The
    second moment has one number per norm instead of one per coordinate.

    Source: Becigneul and Ganea 2019.
    """


class RiemannianAdamW(_RiemannianStep, AdamW):
    """`RiemannianAdam` with torch's AdamW for Euclidean parameters: their decay is decoupled."""
