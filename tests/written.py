"""Files as libraries write them, in memory."""

import io
import zipfile
from collections.abc import Callable, Mapping
from typing import Any

import torch


def written(save: Callable[..., Any], *content: Any, **options: Any) -> bytes:
    """What `save(file, *content, **options)` writes."""
    file = io.BytesIO()
    save(file, *content, **options)
    return file.getvalue()


def saved(content: Any, **options: Any) -> bytes:
    """What `torch.save` writes."""
    return written(lambda file: torch.save(content, file, **options))


def zipped(files: Mapping[str, str | bytes]) -> bytes:
    """An archive of files by their paths in it."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for path, content in files.items():
            archive.writestr(path, content)
    return file.getvalue()
