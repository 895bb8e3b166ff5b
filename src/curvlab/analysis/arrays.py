"""NumPy archives in a run's folder, written atomically and checked when read."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from curvlab.errors import UsageError
from curvlab.files import atomic_path


def save_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write arrays and tensors by name; None is left out."""
    content = dict[str, Any]()
    for name, array in arrays.items():
        if isinstance(array, Tensor):
            content[name] = array.detach().cpu()
        elif array is not None:
            content[name] = np.asarray(array)
    with atomic_path(path) as partial, partial.open("wb") as stream:
        np.savez_compressed(stream, allow_pickle=False, **content)


def load_arrays(path: Path, content: str, origin: str, needs: set[str]) -> dict[str, np.ndarray]:
    """Read arrays.

    Args:
        path: The file.
        content: Description of the arrays, for messages.
        origin: Description of the runs that write the file, for messages.
        needs: Names of the required arrays.

    Raises:
        UsageError: The file or a required array is missing.
    """
    if not path.is_file():
        raise UsageError(f"{path} is missing: {origin}")
    try:
        with path.open("rb") as stream, np.load(stream) as file:
            arrays = dict(file)
    except Exception:  # a damaged archive can raise nearly anything
        arrays = {}
    if not needs <= arrays.keys():
        raise UsageError(f"{path} has no {content}: run the model again to write it.")
    return arrays
