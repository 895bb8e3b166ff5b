"""Graphs of PyTorch Geometric: a saved `Data`, or any of its data sets of one graph."""

import difflib
import importlib
import inspect
import io
import logging
import pickle
import warnings
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
import torch_geometric
from torch import Tensor
from torch_geometric.data import Data, Dataset
from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
from torch_geometric.data.storage import BaseStorage, EdgeStorage, GlobalStorage, NodeStorage

from curvlab.checksums import raw_files
from curvlab.data.datasets.graph_from_tables import simple_graph
from curvlab.data.datasets.labelled import GIVEN
from curvlab.data.datasets.own_graph import OwnGraph
from curvlab.data.files.tables import check_is_file, check_memory
from curvlab.data.vocabulary import Vocabulary
from curvlab.errors import UsageError
from curvlab.options import Incidental

log = logging.getLogger(__name__)

PARTS = [DataEdgeAttr, DataTensorAttr, BaseStorage, NodeStorage, EdgeStorage, GlobalStorage]
"""Classes that a saved `Data` consists of, beside those that PyTorch Geometric calls safe."""

IDS = ("node_ids", "node_id", "node_names", "names", "ids")
CLASSES = ("class_names", "classes", "label_names")
"""Attributes by which a `Data` names its nodes and classes."""

SAVE = "save it by torch.save(data, 'graph.pt') with data a torch_geometric.data.Data"


class PyGObject(OwnGraph):
    """A `Data` in a file, or a data set class of PyTorch Geometric that has one graph.

    Used are `edge_index`, `x`, `y`, the masks `train_mask`, `val_mask`, `test_mask` (`[nodes]` or
    `[nodes, splits]`) as its own split, `edge_weight` where it is asked for, and names of nodes
    (`node_ids`, a list) and classes (`class_names`). Every edge goes both ways but for `directed`.
    A file is read without running any code that it may hold.

    Args:
        path: of the file; of a class the folder, its `root`, where its raw files lie ready as it
            would download them, such as `Cora/raw/`; null: it downloads them.
        target: of the class, such as torch_geometric.datasets.Planetoid; null for a file.
        options: arguments of the class beside its folder, such as {name: Cora}.
        **others: of `OwnGraph`.
    """

    def __init__(
        self,
        path: Incidental[str | None] = None,
        target: str | None = None,
        options: Mapping[str, Any] | None = None,
        **others: Any,
    ) -> None:
        super().__init__(path, **others)
        self.target = target
        self.arguments = dict(options or {})

    @property
    def what(self) -> str:
        """File or class."""
        return str(self.target or self.path)

    @property
    def options(self) -> Mapping[str, Any]:
        """How it is read; of a class also what it is given, and of which version it is."""
        read = {name: getattr(self, name) for name in ("weighted", "mutual", "directed")}
        version = torch_geometric.__version__ if self.target else None
        return read | {"target": self.target, "arguments": self.arguments, "version": version}

    def download(self) -> list[Path]:
        """Return where files are; a class without a folder fetches its own when it is read.

        Raises:
            UsageError: there are none, or neither file nor class is named.
        """
        if self.path is None and self.target is None:
            raise UsageError(
                "a graph of PyTorch Geometric is either path=graph.pt, a saved Data, or "
                "target=torch_geometric.datasets.NAME with options={...}"
            )
        if self.path is None:
            return []
        if self.target is not None:
            return self._ready(self.path)
        check_is_file(self.path, "a saved Data")
        return [self.path]

    def read(self) -> Data:
        """Read the file, or let the class do its work in a folder that is thrown away.

        Raises:
            UsageError: it is not one graph of one kind of nodes, or is malformed.
        """
        files = self.download()
        raw = saved(files[0]) if self.target is None else self._made(files)
        try:
            return self._simple(raw)
        except UsageError as error:
            raise UsageError(f"{self.what}: {error}") from error

    def _ready(self, folder: Path) -> list[Path]:
        """The raw files of a class in a folder."""
        if not folder.is_dir():
            raise UsageError(
                f"path={folder} is no folder: with target={self.target} it is the root folder of "
                "the class, where its raw files lie; drop it to download them"
            )
        files = raw_files(folder)
        if not files:
            raise UsageError(
                f"path={folder} has no raw files of {self.target}: put them there as it "
                "would download them, or drop the path"
            )
        return files

    def _made(self, files: Sequence[Path]) -> Data:
        """The graph of the class, which works on links to the files."""
        assert self.target is not None
        make = dataset_class(self.target)
        takes_root = "root" in inspect.signature(make).parameters
        if files and not takes_root:
            raise UsageError(f"{self.target} reads no files: drop path={self.path}.")
        with TemporaryDirectory() as place, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            root = {"root": place} if takes_root else {}
            for path in files:
                assert self.path is not None
                link = Path(place) / path.relative_to(self.path)
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(path.resolve())
            try:
                with redirect_stderr(io.StringIO()):  # "Processing... Done!"
                    made = make(**root, **self.arguments)
                    graphs = [made[i] for i in range(min(len(made), 2))]
            except Exception as error:  # its network, its files and its arguments fail in own ways
                why = " ".join(str(error).split())[:160]
                way_out = (
                    f"the options, or the files in {self.path}" if files
                    else "the options, or the connection"
                )  # fmt: skip
                raise UsageError(
                    f"{self.target} with options={self.arguments} gives no graph "
                    f"({type(error).__name__}: {why}): correct {way_out}."
                ) from error
        if len(graphs) != 1:
            raise UsageError(f"{self.target} has several graphs or none: choose one of one graph.")
        return graphs[0]

    def _simple(self, raw: Any) -> Data:
        """The simple graph of what was read."""
        content = _content(raw)
        ends, nodes = _ends(content)
        weight = _weights(content, ends.shape[1]) if self.weighted else None
        data = simple_graph(ends, nodes, weight, self.mutual, self.directed)
        if content.get("x") is not None:
            data.x = _features(content["x"], nodes)
        classes = None
        if content.get("y") is not None:
            _add_labels(data, content["y"], nodes)
            classes = _names(content, CLASSES, None)
            _add_split(data, content, nodes)
        data.vocabulary = Vocabulary(nodes=_names(content, IDS, nodes), classes=classes)
        if self.known is not None and data.y is not None and self.known.classes is not None:
            data.vocabulary = Vocabulary(nodes=data.vocabulary.nodes, classes=self.known.classes)
        return data


def saved(path: Path) -> Any:
    """What a file of torch holds, without running code that it may hold.

    Raises:
        UsageError: it holds more than tensors and PyTorch Geometric's own classes, or is no file
            of torch.
    """
    check_memory(path)
    try:
        with warnings.catch_warnings(), torch.serialization.safe_globals(PARTS):
            warnings.simplefilter("ignore")
            return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        found = str(error).partition("GLOBAL ")[2].split(" ")[0]
        what = f"asks for {found}, which could run code" if found else "is no file of torch.save"
        raise UsageError(f"{path} {what}: {SAVE} of tensors, texts and numbers.") from error
    except Exception as error:  # what damaged bytes do to the reader is anybody's guess
        why = " ".join(str(error).split())[:120]
        raise UsageError(f"{path} cannot be read ({why}): {SAVE}.") from error


def dataset_class(target: str) -> type:
    """A data set class by its dotted name.

    Raises:
        UsageError: there is none of that name.
    """
    module, _, name = target.rpartition(".")
    try:
        found = getattr(importlib.import_module(module or "torch_geometric.datasets"), name, None)
    except ImportError:
        found = None
    if not (inspect.isclass(found) and issubclass(found, Dataset)):
        names = dir(torch_geometric.datasets)
        near = difflib.get_close_matches(name, names, n=2)
        hint = f"did you mean {' or '.join(near)}?" if near else "such as Planetoid or WebKB."
        raise UsageError(
            f"target={target} is no data set class: name one of torch_geometric.datasets; {hint}"
        )
    return found


def _content(raw: Any) -> dict[str, Any]:
    """Attributes of one graph.

    An in-memory data set saves (attributes, slices, class), of one graph without slices.
    """
    if isinstance(raw, tuple | list) and len(raw) in (1, 2, 3) and isinstance(raw[0], Data | dict):
        if len(raw) > 1 and raw[1] is not None:
            raise UsageError(f"it holds several graphs: {SAVE} of one of them.")
        raw = raw[0]
    if isinstance(raw, Data):
        raw = raw.to_dict()
    if not isinstance(raw, dict) or not all(isinstance(name, str) for name in raw):
        raise UsageError(f"it is a {type(raw).__name__}, not a graph of one kind of nodes: {SAVE}.")
    return raw


def _ends(content: Mapping[str, Any]) -> tuple[np.ndarray, int]:
    """Both ends of the edges `[2, edges]`, and the number of nodes."""
    edges = content.get("edge_index")
    if not isinstance(edges, Tensor):
        raise UsageError("there is no tensor edge_index: give the Data one, [2, edges].")
    if edges.dim() != 2 or edges.shape[0] != 2:
        raise UsageError(f"edge_index has the shape {list(edges.shape)} instead of [2, edges].")
    if edges.is_floating_point() or edges.is_complex() or edges.dtype == torch.bool:
        raise UsageError(f"edge_index has numbers of {edges.dtype}: make them whole, .long().")
    if not edges.shape[1]:
        raise UsageError("edge_index has no edge: check how the Data was made.")
    ends = edges.long().numpy()
    rows = [content.get(name) for name in ("x", "y")]
    sizes = [len(t) for t in rows if isinstance(t, Tensor) and t.dim()]
    number = content.get("num_nodes") or (sizes[0] if sizes else int(ends.max()) + 1)
    if ends.min() < 0 or ends.max() >= int(number):
        raise UsageError(
            f"edge_index names node {ends.min() if ends.min() < 0 else ends.max()}, but the nodes "
            f"are 0 to {int(number) - 1}: correct edge_index, x or num_nodes."
        )
    return ends, int(number)


def _weights(content: Mapping[str, Any], edges: int) -> np.ndarray:
    weight = content.get("edge_weight")
    if not isinstance(weight, Tensor) or weight.numel() != edges:
        raise UsageError("weighted=True needs edge_weight [edges]: add it, or drop the word.")
    weights = weight.reshape(-1).double().numpy()
    wrong = ~(np.isfinite(weights) & (weights > 0))
    if wrong.any():
        first = int(np.flatnonzero(wrong)[0])
        raise UsageError(f"edge_weight[{first}] is {weights[first]:g}: weights must be positive.")
    return weights


def _features(x: Any, nodes: int) -> Tensor:
    if not isinstance(x, Tensor) or x.is_complex():
        raise UsageError("x is no tensor of real numbers: give it [nodes, features].")
    x = x.to_dense().float()
    x = x.unsqueeze(1) if x.dim() == 1 else x
    if x.dim() != 2 or len(x) != nodes or not x.shape[1]:
        raise UsageError(f"x has the shape {list(x.shape)} instead of [{nodes}, features].")
    return x.contiguous()


def _add_labels(data: Data, y: Any, nodes: int) -> None:
    """Add `y`, and `labelled` where a label is NaN or negative."""
    if not isinstance(y, Tensor) or y.dim() == 0 or len(y) != nodes:
        shape = list(y.shape) if isinstance(y, Tensor) else type(y).__name__
        raise UsageError(f"y has the shape {shape} instead of [{nodes}]: give each node a label.")
    y = y.squeeze(1) if y.dim() == 2 and y.shape[1] == 1 else y
    known = ~y.isnan() if y.is_floating_point() else torch.ones_like(y, dtype=torch.bool)
    known &= y >= 0
    known = known.all(dim=1) if y.dim() == 2 else known
    if bool((y[known] != y[known].round()).any() if y.is_floating_point() else False):
        raise UsageError("y has numbers that are not whole: number the classes from 0.")
    y = torch.where(known if y.dim() == 1 else known.unsqueeze(1), y, -1).long()
    if y.dim() == 1:
        counts = torch.bincount(y[known])
        empty = (counts == 0).nonzero().flatten().tolist()
        if empty:
            raise UsageError(
                f"no node is of class {empty[0]} of {len(counts)}: number the classes from 0 "
                "without a gap."
            )
    data.y = y
    if not bool(known.all()):
        data.labelled = known


def _add_split(data: Data, content: Mapping[str, Any], nodes: int) -> None:
    """Add the given splits, if there are all three masks."""
    masks = {name: content.get(f"{name.removeprefix('given_')}_mask") for name in GIVEN}
    given = [f"{name.removeprefix('given_')}_mask" for name in GIVEN if masks[name] is not None]
    if len(given) < len(GIVEN):
        if given:
            log.info("%s alone: no split without all three masks", ", ".join(given))
        return
    for name, mask in masks.items():
        part = name.removeprefix("given_")
        if not isinstance(mask, Tensor) or mask.dim() not in (1, 2) or len(mask) != nodes:
            raise UsageError(
                f"{part}_mask is not [{nodes}] true or false: give all of train_mask, val_mask and "
                "test_mask, or none."
            )
        mask = mask.bool().reshape(nodes, -1)
        if "labelled" in data:
            mask = mask & data.labelled.unsqueeze(1)
        if not bool(mask.any(dim=0).all()):
            raise UsageError(f"{part}_mask has no node with a label: give all three parts some.")
        data[name] = mask
    widths = {data[name].shape[1] for name in GIVEN}
    if len(widths) > 1:
        most = max(widths)  # Planetoid's kin: ten divisions for training, one test part
        if widths - {1, most}:
            raise UsageError("train_mask, val_mask and test_mask have other numbers of splits.")
        for name in GIVEN:
            data[name] = data[name].expand(-1, most).contiguous()
    if bool((sum(data[name].int() for name in GIVEN) > 1).any()):
        raise UsageError("a node is in two of train_mask, val_mask and test_mask: keep one.")
    data.given = "given"


def _names(content: Mapping[str, Any], words: tuple[str, ...], length: int | None) -> Any:
    """A list of names; None without one."""
    for word in words:
        names = content.get(word)
        if isinstance(names, Tensor) and names.dim() == 1 and not names.is_floating_point():
            names = names.tolist()
        if isinstance(names, list | tuple) and length in (None, len(names)):
            return tuple(map(str, names))
    return None
