"""Adagrad with one number of state a row."""

from collections.abc import Callable, Iterable
from typing import Annotated, Any

import torch
from annotated_types import Gt
from torch import Tensor, nn


class RowwiseAdagrad(torch.optim.Optimizer):
    """x_i <- x_i - lr g_i / (sqrt(G_i) + eps), G_i <- G_i + mean_j g_ij^2, for rows i of tables.

    Adam's state is two more tables and Adagrad's is one; this is one number a row. A sparse
    gradient moves only the rows that it has. Source: row-wise Adagrad of DLRM (Naumov et al. 2019,
    arXiv:1906.00091) and FBGEMM.

    Args:
        params: parameters of at least two dimensions.
        lr: learning rate.
        eps: added to the root.
    """

    def __init__(
        self,
        params: Iterable[nn.Parameter],
        lr: Annotated[float, Gt(0)] = 0.1,
        eps: Annotated[float, Gt(0)] = 1e-10,
    ) -> None:
        super().__init__(params, {"lr": lr, "eps": eps})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Move the rows that have a gradient."""
        loss = None if closure is None else torch.enable_grad()(closure)()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._move(parameter, parameter.grad, group["lr"], group["eps"])
        return loss

    def _move(self, parameter: Tensor, gradient: Tensor, lr: float, eps: float) -> None:
        state = self.state[parameter]
        if not state:
            state["sum"] = parameter.new_zeros(len(parameter))
        if gradient.is_sparse:
            gradient = gradient.coalesce()
            rows, gradient = gradient.indices()[0], gradient.values()
            total = state["sum"].index_add_(0, rows, _mean_squares(gradient))[rows]
            parameter.index_add_(0, rows, _divided(gradient, total, eps), alpha=-lr)
        else:
            total = state["sum"].add_(_mean_squares(gradient))
            parameter.sub_(_divided(gradient, total, eps), alpha=lr)


def _mean_squares(gradient: Tensor) -> Tensor:
    """Means of the squares of each row."""
    return gradient.square().flatten(1).mean(1)


def _divided(gradient: Tensor, total: Tensor, eps: float) -> Tensor:
    """Rows by the roots of their sums."""
    root = total.sqrt() + eps
    return gradient / root.view(-1, *(1,) * (gradient.dim() - 1))
