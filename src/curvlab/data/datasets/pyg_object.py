"""Graphs of PyTorch Geometric: a saved `Data`, or any of its data sets of one graph."""

import inspect
import warnings
from collections.abc import Mapping
from pathlib import Path
from pydoc import locate
from typing import Any, ClassVar

import pandas as pd
import torch
import torch_geometric
from torch import Tensor
from torch_geometric.data import Data, Dataset
from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
from torch_geometric.data.storage import BaseStorage, EdgeStorage, GlobalStorage, NodeStorage
from torch_geometric.utils import is_undirected

from curvlab.checksums import raw_files
from curvlab.data.datasets.labelled import GIVEN_MASKS
from curvlab.data.datasets.own_graph import OwnGraph
from curvlab.data.files.sources import pyg_root
from curvlab.data.readers.tables import MISSING, check_file
from curvlab.errors import UsageError, refuse

PARTS = [DataEdgeAttr, DataTensorAttr, BaseStorage, NodeStorage, EdgeStorage, GlobalStorage]
"""Classes that a saved `Data` consists of, besides those that PyTorch Geometric calls safe."""

SAVE = "save it by torch.save(data, 'graph.pt') with data a torch_geometric.data.Data"


class PyGObject(OwnGraph):
    """A `Data` in a file, or a dataset class of PyTorch Geometric with one graph.

    It reads `edge_index`, `x`, `y`, the masks `train_mask`, `val_mask`, `test_mask` (`[nodes]` or
    `[nodes, splits]`) as the graph's split, `edge_weight` if `weighted`, and names of nodes
    (`node_ids`, a list) and classes (`class_names`). Every edge goes both ways but for `directed`.
    A file is read without running any code that it may hold.

    Of a graph from networkx, `weight` are weights, and `label` names texts that are classes.

    Args:
        label: attribute with the classes, numbers from 0 or a list of texts; null: `y`.
        path: path of the file. For a class: the folder that is its `root`, with its raw files as it
            would download them, such as `Cora/raw/`; null: the class downloads them.
        target: name of the class, such as torch_geometric.datasets.Planetoid; null for a file.
        options: arguments of the class other than its folder, such as {name: Cora}.
    """

    revision: ClassVar[int] = 4  # 4: weights of an edge that is given both ways count once

    label: str | None = None
    target: str | None = None
    options: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.options = dict(self.options or {})
        self.version = torch_geometric.__version__ if self.target else None
        self.title = self.target or self.title

    def download(self) -> list[Path]:
        if self.target is None:
            check_file(
                self.place, "a saved Data, or name a class by target=torch_geometric.datasets.NAME"
            )
            return [self.place]
        files = [] if self.path is None else raw_files(self.place)
        if self.path is not None and not files:
            raise UsageError(
                f"path={self.path} has no raw files of {self.target}: put them there as it would "
                "download them, or drop the path."
            )
        return files

    def read(self) -> Data:
        files = self.download()
        raw = self._make(self.target, files) if self.target else load_saved(files[0])
        return self._graph(raw)

    def _make(self, target: str, files: list[Path]) -> Data:
        located = locate(target)
        if not (inspect.isclass(located) and issubclass(located, Dataset)):
            names = torch_geometric.datasets.__all__
            refuse(f"data set class target={target}", target.rpartition(".")[2], names)
        dataset_class: Any = located
        takes_root = "root" in inspect.signature(located).parameters
        with pyg_root({str(path.relative_to(self.place)): path for path in files}) as folder:
            root = {"root": str(folder)} if takes_root else {}
            try:
                (graph,) = dataset_class(**root, **(self.options or {}))
            except (
                Exception
            ) as error:  # its network, its files and its arguments raise errors of their own
                reason = " ".join(str(error).split())[:160]
                raise UsageError(
                    f"{target} with options={self.options} gives not one graph "
                    f"({type(error).__name__}: {reason}): correct the options, the files or the "
                    "connection."
                ) from error
        return graph

    def _graph(self, raw: Data) -> Data:
        x, y, weight, ends = (raw.get(name) for name in ("x", "y", "edge_weight", "edge_index"))
        weight = raw.get("weight") if weight is None else weight
        read_names = {"x", "edge_index", "edge_weight", "weight", self.label or "y", "num_nodes"}
        read_names |= {"node_ids", "class_names", "train_mask", "val_mask", "test_mask"}
        unused = [str(name) for name in raw.to_dict() if name not in read_names]
        if unused:
            self.remarks.append(
                f"not used: {', '.join(unused)} (dataset.source.label=NAME takes one as classes)"
            )
        if weight is not None and not self.weighted:
            self.remarks.append(
                "weight: none (dataset.source.weighted=true takes the edges' weights)"
            )
        if self.label is not None:
            y, raw = self._named_classes(raw)
        if self.weighted and (weight is None or not bool((weight > 0).all())):
            raise UsageError(
                f"{self.title} has no edge_weight, or one that is not positive: add it, or drop "
                "weighted=True."
            )
        nodes = int(raw.num_nodes or 0)
        if not _are_edges(ends, nodes):
            raise UsageError(
                f"{self.title}: edge_index [2, edges] must have numbers of nodes, 0 to "
                f"{nodes - 1}: correct edge_index, x or num_nodes."
            )
        if self.weighted and not self.directed and is_undirected(ends, weight, nodes):
            is_first = ends[0] <= ends[1]  # weights of repeated edges are added
            ends = ends[:, is_first]
            weight = weight[is_first]
        labels = None
        classes = None
        split = dict[str, Tensor]()
        if y is not None:
            numbers = y.reshape(-1).nan_to_num(-1).clamp(min=-1)
            labels, classes = self._classes(raw, numbers)
            split = _split_of(raw, nodes)
        ids = pd.Index(map(str, raw.get("node_ids", range(nodes))))
        features = None if x is None else x.to_dense().double().reshape(len(x), -1).numpy()
        return self.assemble(
            ids,
            ends.long().numpy(),
            weight.reshape(-1).double().numpy() if self.weighted else None,
            features,
            labels=labels,
            classes=classes,
            masks=split,
        )

    def _named_classes(self, raw: Data) -> tuple[Tensor, Data]:
        """The classes that `label` names, as numbers, and the graph with their names."""
        values = raw.get(str(self.label))
        if values is None or len(values) != raw.num_nodes:
            has = ", ".join(str(name) for name in raw.to_dict())
            raise UsageError(
                f"label={self.label} names no attribute with a value for each node of "
                f"{self.title}: it has {has}."
            )
        if isinstance(values, Tensor):
            return values, raw
        texts = pd.Series([str(value) for value in values])
        numbers, names = pd.factorize(texts.mask(texts.isin(MISSING)), sort=True)
        raw = raw.clone()
        raw.class_names = [*map(str, names)]
        return torch.from_numpy(numbers), raw

    def _classes(self, raw: Data, numbers: Tensor) -> tuple[Tensor, tuple[str, ...]]:
        """Labels by the numbers that a trained model has for the classes, and their names."""
        if not torch.equal(numbers, numbers.trunc()):
            raise UsageError(f"{self.title}: y is not whole: number the classes from 0.")
        if len(numbers) != raw.num_nodes:
            raise UsageError(
                f"{self.title}: y has {len(numbers)} values for {raw.num_nodes} nodes."
            )
        trained_classes = self.known.classes if self.known else None
        names = raw.get("class_names", trained_classes or range(int(numbers.max()) + 1))
        classes = tuple(map(str, names))
        if trained_classes is None:
            return numbers.long(), classes
        unknown = [name for name in classes if name not in trained_classes]
        if unknown:
            raise UsageError(
                f"{self.title}: {unknown[0]!r} is a class that the model was not trained on."
            )
        number_of_class = torch.tensor([*map(trained_classes.index, classes), -1])
        return number_of_class[numbers.long()], tuple(trained_classes)


def _are_edges(ends: Tensor | None, nodes: int) -> bool:
    """Whether a tensor has numbers of nodes, `[2, edges]`, of at least one edge."""
    if ends is None or ends.dim() != 2 or len(ends) != 2 or ends.is_floating_point():
        return False
    return ends.numel() > 0 and 0 <= int(ends.min()) <= int(ends.max()) < nodes


def _split_of(raw: Data, nodes: int) -> dict[str, Tensor]:
    """The masks `[nodes, splits]` of a graph that has all three of them."""
    masks = {}
    for name in GIVEN_MASKS:
        mask = raw.get(f"{name.removeprefix('given_')}_mask")
        if mask is None:
            return {}
        masks[name] = mask.bool().reshape(nodes, -1)
    return masks


def load_saved(path: Path) -> Data:
    """Load the graph in a torch file, without running code from it."""
    try:
        with warnings.catch_warnings(), torch.serialization.safe_globals(PARTS):
            warnings.simplefilter("ignore")
            raw = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # damaged bytes can make the reader raise anything
        raise UsageError(
            f"{path} is not a complete file of torch.save, or holds objects that could run code "
            f"({type(error).__name__}): {SAVE} of tensors, texts and numbers."
        ) from error
    if not isinstance(raw, Data):
        kind = type(raw).__name__
        raise UsageError(f"it is a {kind}, not one graph of one kind of nodes: {SAVE}.")
    return raw
