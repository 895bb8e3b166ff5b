"""Pickled raw files, read without letting them run code."""

import codecs
import io
import pickle
from collections import OrderedDict, defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_matrix

_reconstruct: Any = np.empty(0).__reduce__()[0]


def _empty_array(*_: Any) -> Any:
    """The array that a file's numbers are then read into, regardless of the arguments."""
    return _reconstruct(np.ndarray, (0,), b"b")


def _load_tensor(content: bytes) -> Any:
    return torch.load(io.BytesIO(content), weights_only=True)


_NUMPY = {
    "multiarray._reconstruct": _empty_array,
    "numeric._frombuffer": np.empty(0).__reduce_ex__(5)[0],
}
ARRAYS = {
    "numpy.ndarray": "an array",  # not the class: it would take a file's bytes for addresses
    "numpy.dtype": np.dtype,
    **{f"numpy.core.{name}": function for name, function in _NUMPY.items()},
    **{f"numpy._core.{name}": function for name, function in _NUMPY.items()},
    **{f"scipy.sparse.{module}.csr_matrix": csr_matrix for module in ("csr", "_csr")},
    "torch._utils._rebuild_tensor_v2": torch._utils._rebuild_tensor_v2,
    "torch.storage._load_from_bytes": _load_tensor,
    "_codecs.encode": codecs.encode,
    "collections.OrderedDict": OrderedDict,
    "collections.defaultdict": defaultdict,
    **{f"{module}.list": list for module in ("builtins", "__builtin__")},
}
"""Classes and functions that pickled arrays name, by the names of several releases."""


class RestrictedUnpickler(pickle.Unpickler):
    """Unpickles with a stand-in for each allowed `module.name` and nothing else."""

    def __init__(
        self, file: Any, stand_ins: Mapping[str, Any] = ARRAYS, encoding: str = "ASCII"
    ) -> None:
        super().__init__(file, encoding=encoding)
        self.stand_ins = stand_ins

    def find_class(self, module: str, name: str) -> Any:
        """Return the stand-in for a class or function that the file names."""
        if f"{module}.{name}" not in self.stand_ins:
            raise pickle.UnpicklingError(
                f"it asks for {module}.{name}, which its data does not need"
            )
        return self.stand_ins[f"{module}.{name}"]


def read_pickle(path: Path, stand_ins: Mapping[str, Any] = ARRAYS, encoding: str = "ASCII") -> Any:
    """Unpickle a file, with the given classes and nothing else."""
    with path.open("rb") as file:
        return RestrictedUnpickler(file, stand_ins, encoding).load()
