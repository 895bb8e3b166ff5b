"""A disk cache of tensors that are expensive to compute."""

import hashlib
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from curvlab.checksums import check_archive
from curvlab.data.vocabulary import Vocabulary
from curvlab.files import atomic_path

log = logging.getLogger(__name__)

FORMAT = 3  # raise it when the content of an entry changes its meaning; old entries are then unused


def content_key(name: str, *facts: Any) -> str:
    """The name of an entry, with a hash of the facts that it depends on."""
    text = json.dumps(facts, sort_keys=True, default=str)
    return f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def fingerprint(data: Data, attributes: Sequence[str]) -> str:
    """SHA-256 over a graph's number of nodes and the named tensor attributes, dense or CSR."""
    digest = hashlib.sha256(f"{data.num_nodes}".encode())
    tensors = dense_parts({name: data[name] for name in attributes})
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name}:{tensor.dtype}:{tuple(tensor.shape)}".encode())
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        digest.update(flat.view(torch.uint8).numpy().data)  # bytes, since NumPy has no bfloat16
    return digest.hexdigest()


def get_or_compute(
    folder: str | Path, key: str, compute: Callable[[], dict[str, Any]], revision: int = 1
) -> dict[str, Any]:
    """Return the entry `key`, computed and stored if it is missing or damaged."""
    path = Path(folder) / f"{key}-r{revision}-v{FORMAT}.pt"
    if path.exists():
        try:
            check_archive(path)
            return dict(torch.load(path, weights_only=True)["tensors"])
        except Exception as error:  # unpickling rubbish can raise nearly anything
            log.warning("cache entry %s is damaged (%s): computing it again", path, error)
    entry = compute()
    try:
        with atomic_path(path) as partial, partial.open("wb") as file:  # its errors name the cause
            torch.save({"tensors": entry}, file)
    except OSError as error:
        log.warning("cannot write the cache entry %s: %s", path, error.strerror)
    return entry


def dense_parts(values: Mapping[str, Any]) -> dict[str, Tensor]:
    """Dense tensors of a graph or an entry by name; of a sparse one, its parts."""
    tensors = {name: value for name, value in values.items() if isinstance(value, Tensor)}
    dense = {name: tensor for name, tensor in tensors.items() if tensor.layout == torch.strided}
    for name in tensors.keys() - dense.keys():
        for part in (Tensor.crow_indices, Tensor.col_indices, Tensor.values):
            dense[f"{name}.{part.__name__}"] = part(tensors[name])
    return dense


def cached_graph(
    folder: str | Path, key: str, compute: Callable[[], Data], revision: int = 1
) -> Data:
    """`get_or_compute` for a graph, with its tensors, vocabulary, numbers and texts."""

    def pack() -> dict[str, Any]:
        content = dict(compute().to_dict())
        x = content.get("x")
        if x is not None and 2 * int(x.count_nonzero()) <= x.numel():
            content["x"] = x.to_sparse()
        if "vocabulary" in content:
            content["vocabulary"] = vars(content["vocabulary"])
        return content

    content = get_or_compute(folder, key, pack, revision)
    if "vocabulary" in content:
        content["vocabulary"] = Vocabulary(**content["vocabulary"])
    for name, value in content.items():
        if isinstance(value, Tensor):
            content[name] = value.to_dense()
    return Data(**content)
