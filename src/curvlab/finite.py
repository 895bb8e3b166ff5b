"""Non-finite values: where they first occurred, and the refusal of scores computed from them."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from curvlab.errors import DivergedError
from curvlab.process import is_distributed

Scores = dict[str, dict[str, float]]

BETWEEN = "all outputs of modules are"  # where it began, if no module's output is to blame


def finite_or_nan(metric: Callable[..., Tensor], scores: Tensor, *targets: Tensor) -> Tensor:
    """Compute a metric of scores; NaN if one is not finite. Does not synchronise the device."""
    value = metric(scores.nan_to_num(0, 0, 0), *targets)
    return torch.where(scores.isfinite().all(), value, torch.nan)


def first_non_finite(module: nn.Module, act: Callable[[], Any]) -> str:
    """Name the first parameter, or else the first module's output, that is not finite, if any."""
    bad = [f"parameter {name}" for name, p in module.named_parameters() if not _is_finite(p)]
    if bad:
        return bad[0]

    def watch(name: str) -> Any:
        def hook(_: nn.Module, __: Any, output: Any) -> None:
            tensors = output if isinstance(output, tuple) else (output,)
            if not all(_is_finite(t) for t in tensors if isinstance(t, Tensor)):
                bad.append(f"output of {name}")

        return hook

    handles = [part.register_forward_hook(watch(name)) for name, part in module.named_modules()]
    try:
        with torch.compiler.set_stance("force_eager"):  # compiled modules call no hooks inside
            act()
    finally:
        for handle in handles:
            handle.remove()
    return bad[0] if bad else ""


def step_suffix(module: nn.Module) -> str:
    """The step after which a module is evaluated, for a message; empty if it is not in training."""
    step = getattr(module, "global_step", 0)
    return f" after step {step}" if step else ""


def check_finite(what: str, values: Any, module: nn.Module, act: Callable[[], Any]) -> None:
    """Refuse a model's output if it is not finite; `act` recomputes it, to find the cause."""
    if not torch.as_tensor(values).isfinite().all():
        where = "" if is_distributed() else first_non_finite(module, act)
        raise DivergedError(f"{what}: not finite{step_suffix(module)}; {where or BETWEEN}")


def finite_scores(module: nn.Module, score: str, evaluate: Callable[[], Scores]) -> Scores:
    """Evaluate a model: metrics of each part; `score` is finite."""
    scores = evaluate()
    for part, metrics in scores.items():
        check_finite(f"{part}/{score}", metrics.get(score, 0.0), module, evaluate)
    return scores


def _is_finite(tensor: Tensor) -> bool:
    return bool(tensor.isfinite().all())
