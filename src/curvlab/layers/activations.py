"""Activations by name."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from curvlab.errors import UsageError

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "elu": F.elu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
}


def activation_function(name: str) -> Callable[[Tensor], Tensor]:
    """The activation called `name`.

    Raises:
        UsageError: the name is unknown.
    """
    if name not in ACTIVATIONS:
        raise UsageError(f"activation is one of {', '.join(ACTIVATIONS)}, not {name!r}.")
    return ACTIVATIONS[name]
