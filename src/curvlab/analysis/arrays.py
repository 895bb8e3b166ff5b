"""NumPy archives in a run's folder, written atomically and checked when read."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from curvlab.errors import UsageError
from curvlab.files import atomic_path


def save_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write arrays and tensors by their names, without those that are None."""
    there = {name: array for name, array in arrays.items() if array is not None}
    kept = {
        k: v.detach().cpu() if isinstance(v, Tensor) else np.asarray(v) for k, v in there.items()
    }
    with atomic_path(path) as partial, partial.open("wb") as stream:
        np.savez_compressed(stream, allow_pickle=False, **kept)


def load_arrays(path: Path, content: str, origin: str, needs: set[str]) -> dict[str, np.ndarray]:
    """Read arrays; refuse a file without those it needs: `content`, which `origin` writes."""
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
