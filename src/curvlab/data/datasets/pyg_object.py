"""Graphs of PyTorch Geometric: a saved `Data`, or any of its data sets of one graph."""

import inspect
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
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

from curvlab.checksums import raw_files
from curvlab.data.datasets.labelled import GIVEN_MASKS, missing_mask
from curvlab.data.datasets.own_graph import OwnGraph
from curvlab.data.files.sources import pyg_root
from curvlab.data.readers.tables import MISSING, check_file
from curvlab.errors import UsageError, refuse

PARTS = [DataEdgeAttr, DataTensorAttr, BaseStorage, NodeStorage, EdgeStorage, GlobalStorage]
"""Classes that a saved `Data` consists of, besides those that PyTorch Geometric calls safe."""

SAVE = "save it by torch.save(data, 'graph.pt') with data a torch_geometric.data.Data"


class PyGObject(OwnGraph):
    """A `Data` in a file, or a dataset class of PyTorch Geometric with one graph.

    It reads `edge_index`, `x`, `y`, the masks `train_mask`, `val_mask`, `test_mask` (`[nodes]`,
    `[nodes, splits]`, or the numbers of nodes) as the graph's split, `edge_weight` if `weighted`,
    and names of nodes (`node_ids`, a list) and classes (`class_names`). Every edge goes both ways
    but for `directed`.
    A file is read without running any code that it may hold.

    Of a graph from networkx, `weight` are weights, and `label` names texts that are classes.

    Args:
        label: attribute with the classes, numbers from 0 or a list of texts; null: `y`.
        path: path of the file. For a class: the folder that is its `root`, with its raw files as it
            would download them, such as `Cora/raw/`; null: the class downloads them.
        target: name of the class, such as torch_geometric.datasets.Planetoid; null for a file.
        options: arguments of the class other than its folder, such as {name: Cora}.
    """

    revision: ClassVar[int] = 5  # 5: masks of the numbers of nodes, node_ids of tensors

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
        x = self._tensor(raw, "x")
        y = None if self.label else self._tensor(raw, "y")
        ends = self._tensor(raw, "edge_index")
        weight_name = "edge_weight" if raw.get("edge_weight") is not None else "weight"
        read_names = {"x", "edge_index", "edge_weight", "weight", self.label or "y", "num_nodes"}
        read_names |= {"node_ids", "class_names", "train_mask", "val_mask", "test_mask"}
        unused = [str(name) for name in raw.to_dict() if name not in read_names]
        if unused:
            self.remarks.append(
                f"not used: {', '.join(unused)} (dataset.source.label=NAME takes one as classes)"
            )
        if raw.get(weight_name) is not None and not self.weighted:
            self.remarks.append(
                "weight: none (dataset.source.weighted=true takes the edges' weights)"
            )
        if self.label is not None or (y is None and raw.get("y") is not None):
            y, raw = self._named_classes(raw, self.label or "y")
        nodes = int(raw.num_nodes or 0)
        if ends is None or not _are_edges(ends, nodes):
            raise UsageError(
                f"{self.title}: edge_index [2, edges] must have numbers of nodes, 0 to "
                f"{nodes - 1}: correct edge_index, x or num_nodes."
            )
        edge_weight = None
        if self.weighted:
            edge_weight = self._weights(raw, weight_name, ends.shape[1]).numpy()
        labels = None
        classes = None
        split = dict[str, Tensor]()
        if y is not None:
            numbers = y.reshape(-1).nan_to_num(-1).clamp(min=-1)
            labels, classes = self._classes(raw, numbers)
            split = self._split(raw, nodes)
        ids = self._names(raw, "node_ids", nodes) or map(str, range(nodes))
        features = None if x is None else x.to_dense().double().reshape(len(x), -1).numpy()
        return self.assemble(
            pd.Index(ids),
            ends.long().numpy(),
            edge_weight,
            features,
            labels=labels,
            classes=classes,
            masks=split,
        )

    def _tensor(self, raw: Data, name: str) -> Tensor | None:
        """An attribute that is a tensor or absent; None for a list `y` of texts."""
        value = raw.get(name)
        if value is None or isinstance(value, Tensor):
            return value
        if name == "y" and isinstance(value, Sequence):
            is_number = [isinstance(item, int | float) for item in value]
            return torch.tensor(value) if all(is_number) else None
        raise UsageError(
            f"{self.title}: {name} is a {type(value).__name__}, not a tensor: write torch.tensor."
        )

    def _weights(self, raw: Data, name: str, edges: int) -> Tensor:
        """The weights of edges `[edges]`, which are positive."""
        weight = self._tensor(raw, name)
        if weight is None:
            raise UsageError(f"{self.title} has no edge_weight: add it, or drop weighted=True.")
        if weight.dim() == 0 or weight.numel() != edges or len(weight) != edges:
            raise UsageError(
                f"{self.title}: {name} is {[*weight.shape]} for {edges} edges: write one weight "
                "for each edge, or drop weighted=True."
            )
        numbers = weight.reshape(-1).double()
        if not bool(((numbers > 0) & numbers.float().isfinite()).all()):
            raise UsageError(
                f"{self.title}: {name} has a number that is not positive and finite: correct it, "
                "or drop weighted=True."
            )
        return numbers

    def _names(self, raw: Data, attribute: str, count: int) -> list[str]:
        """The names in a list or a tensor, which differ; empty if there are none."""
        values = raw.get(attribute)
        if values is None:
            return []
        names = [*map(str, values.tolist() if isinstance(values, Tensor) else values)]
        repeated = [name for name, times in Counter(names).items() if times > 1]
        kind = "nodes" if attribute == "node_ids" else "classes"
        if len(names) != count or repeated:
            wrong = f"{repeated[0]!r} twice" if repeated else f"{len(names)} names"
            raise UsageError(
                f"{self.title}: {attribute} has {wrong} for {count} {kind}: write a list of one "
                "name for each."
            )
        return names

    def _split(self, raw: Data, nodes: int) -> dict[str, Tensor]:
        """The masks `[nodes, splits]` of a graph that has all three of them."""
        names = {f"{part.removeprefix('given_')}_mask": part for part in GIVEN_MASKS}
        there = [name for name in names if raw.get(name) is not None]
        lacking = [name for name in names if name not in there]
        if there and lacking:
            fault = missing_mask(self.title, there, lacking)
            if self.target is None:
                raise UsageError(f"{fault} deleting {', '.join(there)} from the Data.")
            self.remarks.append(
                f"split: {', '.join(there)} not used, since there is no {' or '.join(lacking)}"
            )
        if lacking:
            return {}
        return {part: self._mask(raw[name], name, nodes) for name, part in names.items()}

    def _mask(self, values: Any, name: str, nodes: int) -> Tensor:
        """A mask `[nodes, splits]`, also of the numbers of its nodes."""
        try:
            mask = torch.as_tensor(values)
        except (TypeError, ValueError, RuntimeError):
            mask = torch.tensor(float("nan"))
        is_whole = not mask.is_floating_point() and mask.dtype != torch.bool
        has_bits = bool(((mask == 0) | (mask == 1)).all())
        has_numbers = is_whole and mask.dim() == 1 and not (len(mask) == nodes and has_bits)
        if has_numbers and len(mask) and 0 <= int(mask.min()) <= int(mask.max()) < nodes:
            has_bits = True
            mask = torch.zeros(nodes).index_fill(0, mask.long(), 1)
        if not has_bits or mask.dim() not in (1, 2) or len(mask) != nodes:
            raise UsageError(
                f"{self.title}: {name} {[*mask.shape]} must be true or false for each of {nodes} "
                "nodes, [nodes] or [nodes, splits], or have the numbers of nodes."
            )
        return mask.bool().reshape(nodes, -1)

    def _named_classes(self, raw: Data, label: str) -> tuple[Tensor, Data]:
        """The classes that an attribute has, as numbers, and the graph with their names."""
        values = raw.get(label)
        if not hasattr(values, "__len__") or len(values) != raw.num_nodes:
            has = ", ".join(str(name) for name in raw.to_dict())
            raise UsageError(
                f"label={label} names no attribute with a value for each node of "
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
        count = int(numbers.max()) + 1
        given = raw.get("class_names")
        if given is not None and len(given) > count:
            count = len(given)  # classes without a node
        names = self._names(raw, "class_names", count)
        classes = tuple(names or trained_classes or map(str, range(count)))
        if trained_classes is None:
            return numbers.long(), classes
        if count > len(classes):
            raise UsageError(
                f"{self.title}: {count - 1} is a class that the model was not trained on."
            )
        unknown = [name for name in classes if name not in trained_classes]
        if unknown:
            raise UsageError(
                f"{self.title}: {unknown[0]!r} is a class that the model was not trained on."
            )
        number_of_class = torch.tensor([*map(trained_classes.index, classes), -1])
        return number_of_class[numbers.long()], tuple(trained_classes)


def _are_edges(ends: Tensor, nodes: int) -> bool:
    """Whether a tensor has numbers of nodes, `[2, edges]`, of at least one edge."""
    if ends.dim() != 2 or len(ends) != 2 or ends.is_floating_point():
        return False
    return ends.numel() > 0 and 0 <= int(ends.min()) <= int(ends.max()) < nodes


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
