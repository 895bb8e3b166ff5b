"""Mini-batches of polynomial tokens from disk, for graphs that do not fit in memory."""

import logging
from pathlib import Path

import torch
from torch import Tensor
from torch_geometric.data import Data

from curvlab.data.files.cache import content_key
from curvlab.data.files.disk_graph import DiskGraph, write_disk_graph
from curvlab.data.loaders.batches import MiniBatchDataModule, pass_generator, step_parts
from curvlab.data.loaders.datamodule import load_source
from curvlab.data.loaders.token_store import SPEC, TokenStore
from curvlab.data.splits.nodes import PARTS
from curvlab.data.transforms.polynomial_tokens import PolynomialTokens
from curvlab.errors import UsageError
from curvlab.options import Incidental, NonNegativeInt, PositiveFloat
from curvlab.results.leases import take

log = logging.getLogger(__name__)

NO_EDGES = torch.empty(2, 0, dtype=torch.long)


class TokenDataModule(MiniBatchDataModule):
    """Batches are the tokens of training nodes, which is all that models of single nodes need.

    The graph is written to disk (piece by piece if its source has `to_disk`) and its tokens are
    computed from there. The trainer's graph has the nodes with a label alone, in the random order
    of the file, and no edges; a batch is of training rows that lie together in the file.

    Args:
        size: most nodes of a batch, also of those that are evaluated at a time.
        workers: processes that read the batches ahead of the steps; 0: the training process does.
        memory_gb: for computing the tokens, in 10^9 bytes; at least 8e-9 a node.
    """

    draws_at_windows = True

    workers: Incidental[NonNegativeInt] = 1
    memory_gb: Incidental[PositiveFloat] = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        tokens = self.transforms[-1] if self.transforms else None
        if len(self.transforms) > 1 or not isinstance(tokens, PolynomialTokens):
            raise UsageError(
                "batching=tokens is for models of polynomial tokens, such as polyformer, on "
                "features as they come: choose another batching, or dataset.features=null"
            )
        self.spec = tokens

    def prepare_data(self) -> None:
        super().prepare_data()
        _ = self.graph

    def batch(self, nodes: Tensor) -> Data:
        return Data(
            tokens=self.graph.tokens.index_select(0, nodes),
            y=self.graph.y.index_select(0, nodes),
            edge_index=NO_EDGES,
            num_nodes=len(nodes),
            train_nodes=torch.arange(len(nodes)),
        )

    def rounds(self, number: int, batches: int) -> list[tuple[Tensor, ...]]:
        train = self.graph.train_mask.nonzero().squeeze(-1)
        cut = train.tensor_split(step_parts(len(train), self.size, batches))
        order = pass_generator(self.seed, number).permutation(len(cut))
        return [tuple(cut[i] for i in some) for some in order.reshape(-1, batches)]

    def _prepare(self) -> Data:
        store = self._store()
        store.arrays.verify()
        data = store.graph.labelled_nodes()
        if self.split is not None:
            data = self.split(data, self.seed)
        order = torch.from_numpy(store.order)
        rows = {name: data[name][order] for name in ("y", *PARTS) if name in data}
        return Data(
            tokens=store.tokens(),
            edge_index=NO_EDGES,
            num_nodes=len(order),
            chunk=self.size,
            nodes=torch.from_numpy(store.nodes),
            vocabulary=getattr(self.source, "vocabulary", None),
            **rows,
        )

    def _store(self) -> TokenStore:
        """Graph and tokens on disk, created by one process at a time if missing."""
        key = getattr(self.source, "disk_key", None)
        if key is None or self.cache_dir is None:
            raise UsageError(
                "batching=tokens: this dataset is not kept on disk; choose one of node "
                "classification"
            )
        folder = Path(self.cache_dir) / "graphs" / key
        graph = DiskGraph.open(folder)
        if graph is not None and (store := self._tokens_of(graph)).complete:
            return store
        folder.parent.mkdir(parents=True, exist_ok=True)
        lease = folder.with_name(f"{key}.lease")  # the folder itself is thrown away to be written
        with take(lease, lambda holder: log.info("%s is at work in %s: waiting", holder, folder)):
            store = self._tokens_of(DiskGraph.open(folder) or self._written(folder))
            if not store.complete:
                store.compute(1e9 * self.memory_gb)
        return store

    def _written(self, folder: Path) -> DiskGraph:
        to_disk = getattr(self.source, "to_disk", None)
        if to_disk is not None:
            return to_disk(folder)
        data = load_source(self.source)
        if data.x is None or data.y is None:
            raise UsageError(
                "batching=tokens: the graph needs features and labels of its nodes; choose another "
                "batching, which gives a graph without features some"
            )
        self._check_edges(data)
        return write_disk_graph(folder, data)

    def _tokens_of(self, graph: DiskGraph) -> TokenStore:
        options = {name: getattr(self.spec, name) for name in (*SPEC, "revision")}
        return TokenStore(graph.folder / content_key("tokens", options), graph, self.spec)

    @property
    def num_features(self) -> int:
        return int(self.graph.tokens.shape[2])

    def _whole_on(self, device: torch.device) -> Data:
        """The graph on a device, but for the tokens, which are read a part at a time."""
        if self._whole is None or self._whole.y.device != device:
            tokens = self.graph.tokens
            rest = {name: value for name, value in self.graph if name != "tokens"}
            self._whole = Data(**rest).to(str(device))
            self._whole.tokens = tokens
        return self._whole
