"""Short examples of the public names for the reference of the site, run when it is built."""

import inspect
import io
from contextlib import redirect_stdout
from importlib import import_module
from typing import Any

import torch
from torch import nn

from curvlab.manifolds import Manifold

PACKAGES = (
    "curvlab", "curvlab.manifolds", "curvlab.layers", "curvlab.optim",
)  # fmt: skip
"""Packages whose public names the reference has; models have pages of their own."""

BALL = {"x": "torch.tensor([0.3, 0.1])", "y": "torch.tensor([-0.2, 0.4])"}
POINTS = {
    "stereographic": BALL,
    "charts": BALL,
    "distributions": BALL | {"x": "torch.tensor([[0.3, 0.1], [-0.2, 0.4]])"},
    "lorentz": {
        "x": "lorentz.expmap0(torch.tensor([0.3, 0.1]), -1.0)",
        "y": "lorentz.expmap0(torch.tensor([-0.2, 0.4]), -1.0)",
        "u": "torch.tensor([0.0, 0.2, 0.1])",
        "m": "torch.tensor([2.0, 0.3, 0.1])",
    },
}
"""Arguments that are points, by module."""

ARGUMENTS = {
    "v": "torch.tensor([0.5, -0.1])",
    "u": "torch.tensor([0.2, 0.1])",
    "p": "torch.tensor([0.1, 0.0])",
    "a": "torch.tensor([0.0, 1.0])",
    "m": "2 * torch.eye(2)",
    "r": "2.0",
    "t": "0.5",
    "function": "torch.relu",
    "kappa": "-1.0",
    "kappa_from": "-1.0",
    "kappa_to": "-2.0",
    "weights": "torch.ones(1)",
    "space": "torch.tensor([0.3, 0.1])",
    "numerator": "torch.tensor([0.6, 0.2])",
    "denominator": "torch.tensor([2.0])",
    "dim": "4",
    "heads": "2",
    "head_dim": "2",
    "hidden": "8",
    "in_features": "4",
    "out_features": "4",
    "classes": "3",
    "logits": "3",
    "orders": "2",
    "basis": '"monomial"',
    "kind": '"linear"',
    "out_proj": "True",
    "dropout": "0.0",
    "activation": "None",
    "time_offset": "1.1",
    "max_scale": "None",
    "power": "2.0",
    "query": "torch.rand(5, 4)",
    "key": "torch.rand(5, 4)",
    "value": "torch.rand(5, 4)",
    "e": "torch.rand(5, 4)",
    "mean": "torch.tensor([0.3, 0.1])",
    "scale": "0.1",
    "module": "nn.Linear(4, 4)",
    "params": "nn.Linear(4, 4).parameters()",
}
"""Arguments by name."""

ROWS = "torch.tensor([[0.3, 0.1], [-0.2, 0.4]])"

HEADS = dict.fromkeys(("query", "key", "value"), "torch.rand(5, 1, 4)")

SPECIAL = {
    "charts.to_sphere": {"kappa": "1.0"},
    "charts.from_sphere": {"x": "torch.tensor([0.0, 0.6, 0.8])", "kappa": "1.0"},
    "lorentz.expmap": {"v": "lorentz.logmap(x, lorentz.origin(2, -1.0), -1.0)"},
    "lorentz.transport": {"v": "lorentz.logmap(x, y, -1.0)"},
    "lorentz.from_stereographic": BALL,
    "lorentz.pairwise_sqdist": {"x": f"lorentz.expmap0({ROWS}, -1.0)"},
    "lorentz.pairwise_dist": {"x": f"lorentz.expmap0({ROWS}, -1.0)"},
    "lorentz.centroid": {"x": f"lorentz.expmap0({ROWS}, -1.0)", "weights": "torch.ones(1, 2)"},
    "stereographic.antipode": {"kappa": "1.0"},
    "stereographic.pairwise_sqdist": {"x": ROWS, "y": ROWS},
    "stereographic.pairwise_dist": {"x": ROWS, "y": ROWS},
    "stereographic.midpoint": {"x": ROWS, "weights": "torch.ones(1, 2)"},
    "stereographic.midpoint_from_sums": {"denominator": "torch.tensor(2.0)"},
    "lorentz_attention.focused_attention": HEADS,
    "distributions.frechet_mean": {"weights": "torch.ones(2)"},
    "distributions.frechet_variance": {"weights": "torch.ones(2)"},
}
"""Arguments of single functions."""

NO_EXAMPLE = ("Manifold", "Product", "PseudoHyperboloid", "GroupedOptimizer", "train", "load")
"""Names without an example: base classes, spaces with a signature, and functions that train."""


def public_members(package: str) -> dict[str, list[str]]:
    """Dotted public names of a package's public modules and of the package itself, by module."""
    module = import_module(package)
    names = {name: getattr(module, name) for name in dir(module) if not name.startswith("_")}
    modules = [n for n, v in names.items() if inspect.ismodule(v) and not hasattr(v, "__path__")]
    members = {f"{package}.{name}": _functions(f"{package}.{name}") for name in modules}
    members[package] = [
        f"{value.__module__}.{value.__qualname__}"
        for value in names.values()
        if hasattr(value, "__qualname__")
    ]
    return members


def _functions(module: str) -> list[str]:
    """Public functions that a module defines, in the order of its file."""
    members = vars(import_module(module)).items()
    return [
        f"{module}.{name}"
        for name, value in members
        if getattr(value, "__module__", "") == module and not name.startswith("_")
    ]


def example(path: str) -> str:
    """A block of code that calls a public name, with its output; empty for names in `NO_EXAMPLE`.

    Args:
        path: Name of a function or class, such as `curvlab.manifolds.stereographic.dist`.
    """
    module, _, name = path.rpartition(".")
    target = getattr(import_module(module), name)
    short = module.rpartition(".")[2]
    public = ".".join(module.split(".")[:2])
    call_name = f"{short}.{name}" if inspect.isfunction(target) and short in POINTS else name
    lines = [f"from {public} import {call_name.partition('.')[0]}"]
    if name in NO_EXAMPLE:
        return ""
    values = ARGUMENTS | POINTS.get(short, {}) | SPECIAL.get(f"{short}.{name}", {})
    is_layer = inspect.isclass(target) and issubclass(target, nn.Module)
    if is_layer:
        space = "PoincareBall" if name.startswith("Stereographic") else "Lorentz"
        values |= {"manifold": f"{space}(kappa=-1.0)"}
    required = [
        parameter.name
        for parameter in inspect.signature(target).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    ]
    unknown = [argument for argument in required if argument not in values]
    if unknown:
        raise LookupError(f"{path}: give a value of {unknown[0]} in ARGUMENTS or SPECIAL")
    if "manifold" in required:
        lines.append(f"from curvlab.manifolds import {values['manifold'].partition('(')[0]}")
    variables = [argument for argument in required if "(" in values[argument] and not is_layer]
    lines += [f"{argument} = {values[argument]}" for argument in variables]
    passed = []
    for argument in required:
        if is_layer or argument.startswith("kappa"):
            passed.append(f"{argument}={values[argument]}")
        elif argument in variables:
            passed.append(argument)
        else:
            passed.append(values[argument])
    call = f"{call_name}({', '.join(passed)})"
    if inspect.isclass(target) and issubclass(target, Manifold):
        lines += [f"space = {call}", "space.dist0(space.expmap0(torch.tensor([0.3, 0.1])))"]
    elif is_layer:
        lines += [f"layer = {call}", "sum(p.numel() for p in layer.parameters())"]
    else:
        lines.append(call)
    return f"```python\n{_run(lines)}\n```"


def _run(lines: list[str]) -> str:
    """The lines as they are typed, and the value of the last one."""
    names: dict[str, Any] = {"torch": torch, "nn": nn}
    torch.manual_seed(0)
    with redirect_stdout(io.StringIO()):
        for line in lines[:-1]:
            exec(line, names)
        value = eval(lines[-1], names)
    return "\n".join([*(f">>> {line}" for line in lines), repr(value)])
