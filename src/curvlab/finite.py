"""Non-finite values: their first occurrence, and a check of scores."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from curvlab.errors import DivergedError
from curvlab.process import is_distributed

Scores = dict[str, dict[str, float]]

ALL_FINITE = "every module's output is finite"
"""The cause of an error if every module's output is finite: an operation between modules."""


def finite_or_nan(metric: Callable[..., Tensor], scores: Tensor, *targets: Tensor) -> Tensor:
    """Compute a metric of scores; NaN if a score is not finite. Does not synchronise the device."""
    value = metric(scores.nan_to_num(0, 0, 0), *targets)
    return torch.where(scores.isfinite().all(), value, torch.nan)


def first_non_finite(module: nn.Module, act: Callable[[], Any]) -> str:
    """Name the first non-finite parameter, or else the first module with non-finite output."""
    for name, parameter in module.named_parameters():
        if not _is_finite(parameter):
            return f"parameter {name}"
    outputs = list[str]()

    def watch(name: str) -> Any:
        def hook(_: nn.Module, __: Any, output: Any) -> None:
            values = output if isinstance(output, tuple) else (output,)
            tensors = [value for value in values if isinstance(value, Tensor)]
            if not all(map(_is_finite, tensors)):
                outputs.append(f"output of {name}")

        return hook

    handles = []
    for name, part in module.named_modules():
        handles.append(part.register_forward_hook(watch(name)))
    try:
        with torch.compiler.set_stance("force_eager"):  # compiled modules call no inner hooks
            act()
    finally:
        for handle in handles:
            handle.remove()
    return outputs[0] if outputs else ""


def step_suffix(module: nn.Module) -> str:
    """A message's " after step N" for a module in training; empty outside training."""
    step = getattr(module, "global_step", 0)
    return f" after step {step}" if step else ""


def check_finite(subject: str, values: Any, module: nn.Module, act: Callable[[], Any]) -> None:
    """Refuse a model's output if it is not finite; `act` recomputes it, to find the cause."""
    if not torch.as_tensor(values).isfinite().all():
        origin = "" if is_distributed() else first_non_finite(module, act)
        cause = origin or ALL_FINITE
        raise DivergedError(f"{subject}: not finite{step_suffix(module)}; {cause}")


def finite_scores(module: nn.Module, score: str, evaluate: Callable[[], Scores]) -> Scores:
    """Evaluate a model: metrics of each part. Refuse a `score` that is not finite."""
    scores = evaluate()
    for part, metrics in scores.items():
        check_finite(f"{part}/{score}", metrics.get(score, 0.0), module, evaluate)
    return scores


def _is_finite(tensor: Tensor) -> bool:
    return bool(tensor.isfinite().all())
