"""Pickled raw files, read without letting them run code."""

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from curvlab.errors import UsageError


class RestrictedUnpickler(pickle.Unpickler):
    """Unpickles with the given classes and nothing else.

    Args:
        file: An open binary file.
        allowed: What stands for `module.name`, for each that the file may name.
        encoding: Of strings from Python 2.
    """

    def __init__(self, file: Any, allowed: Mapping[str, Any], encoding: str = "ASCII") -> None:
        super().__init__(file, encoding=encoding)
        self.allowed = allowed

    def find_class(self, module: str, name: str) -> Any:
        """The stand-in for what the file names.

        Raises:
            UsageError: The file may not name it.
        """
        try:
            return self.allowed[f"{module}.{name}"]
        except KeyError:
            raise UsageError(f"it asks for {module}.{name}, which its data does not need") from None


def read_pickle(path: Path, allowed: Mapping[str, Any], encoding: str = "ASCII") -> Any:
    """Unpickle a file, with the given classes and nothing else.

    Raises:
        UsageError: The file names something else, or is no pickle.
    """
    try:
        with path.open("rb") as file:
            return RestrictedUnpickler(file, allowed, encoding).load()
    except Exception as error:  # rubbish can raise nearly anything
        raise UsageError(
            f"{path} is not unpickled: {error}; delete it and run again to fetch a fresh copy."
        ) from error
