"""Node classification: one class, or several labels, per node."""

import copy
import logging
from collections.abc import Sequence
from contextlib import nullcontext
from itertools import compress
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import torch
from torch import Tensor
from torch_geometric.data import Data

from curvlab.data.datasets.labelled import GIVEN_MASKS
from curvlab.data.loaders.datamodule import GraphDataModule
from curvlab.data.vocabulary import vocabulary_of
from curvlab.errors import UsageError
from curvlab.finite import Scores
from curvlab.graph.sparse_graph import SparseGraph
from curvlab.layers.lorentz import Inner
from curvlab.layers.stereographic import LogitCurvature
from curvlab.memory import PeakBytes, check_memory
from curvlab.metrics.coincidence import coincident_nodes
from curvlab.models.encoder import Encoder
from curvlab.optim import GroupedOptimizer
from curvlab.options import FromData, Passed, PositiveFloat
from curvlab.process import all_gather_pieces, local_shard, without_group
from curvlab.tasks.decoders import Decoder, make_node_decoder
from curvlab.tasks.labels import make_labels
from curvlab.tasks.predictions import PARTS, PredictionQuery, TrainedRun, find_positions
from curvlab.tasks.references import check_size, node_references, plain_graph
from curvlab.tasks.task import PICTURED_NODES, SelectedTask

log = logging.getLogger(__name__)

UNLABELLED = "unlabelled"
"""Part of nodes without a label, in tables of predictions."""


class Part(NamedTuple):
    """Nodes of one part of the split `[nodes]` and their labels `[nodes, ...]`."""

    nodes: Tensor
    labels: Tensor


class NodeClassification(SelectedTask):
    """Trains on the training nodes; the validation score selects the weights.

    The masks `train_mask`, `val_mask` and `test_mask` `[nodes]` define the parts of the split. A
    mini-batch has `train_nodes` instead. A graph with `chunk` is evaluated once per set of weights.
    A graph with `evaluate_parts` is evaluated in subgraphs, once for each part of the split.

    Args:
        num_classes: number of logits, 1 for two classes with one logit.
        multi_label: whether a node has several labels.
        metric: metric that selects the weights: accuracy, f1_micro, f1_macro; of two classes
            f1_binary or roc_auc; of several labels roc_auc; of OGB's sets ogb_acc or ogb_rocauc;
            null: the first.
        decoder: auto (the space's own), stereographic, prototype (Lorentz) or linear.
        logit_curvature: curvature of the stereographic decoder: geometric, or paper (kappa
            |kappa|).
        inner: product of the prototype decoder: null, <m, P>, or as_released, divided by k
            (Hypformer).
        margin: margin of the margin loss, for one class a node; null: cross-entropy.
    """

    test_parts = PARTS
    predicts_by = ("nodes", "unlabelled")

    def __init__(
        self,
        encoder: Encoder,
        num_classes: FromData[int],
        multi_label: FromData[bool] = False,
        optimizer: Passed[GroupedOptimizer | None] = None,
        metric: str | None = None,
        decoder: Decoder = "auto",
        logit_curvature: LogitCurvature = "geometric",
        inner: Inner | None = None,
        margin: PositiveFloat | None = None,
    ) -> None:
        super().__init__(encoder, optimizer)
        self.evaluates_together = encoder.node_wise
        self.labels = make_labels(num_classes, multi_label, metric, margin)
        self.decoder = make_node_decoder(
            encoder, decoder, self.labels.logits, logit_curvature, inner
        )
        self.score = metric or next(iter(self.labels.metrics))
        # Nodes and their logits or embeddings, cached for one set of weights.
        self._cache: tuple[Tensor, Tensor] | None = None

    def forward(self, batch: Data, part: str) -> tuple[Tensor, Tensor]:
        nodes, labels = self._part(batch, part)
        logits = self._logits(batch, nodes)
        return logits, labels.to(logits.device)

    def on_fit_start(self) -> None:
        """Refuse a graph whose evaluation as a whole does not fit into memory.

        The estimate is the difference of the peaks of passes over two subgraphs, per node: blocks
        of scores, which do not grow with the number of nodes, cancel. The subgraphs lack edges, so
        that it is a lower bound.
        """
        data = self.trainer.datamodule  # type: ignore[attr-defined]
        if getattr(data, "evaluation", "parts") == "parts" or self.encoder.node_wise:
            return
        encoder = copy.deepcopy(self.encoder).eval()
        size = min(data.size, data.num_nodes)
        peaks = []
        nodes = []
        with (
            torch.random.fork_rng(devices=[]),
            torch.no_grad(),
            torch.compiler.set_stance("force_eager"),
            self.trainer.precision_plugin.forward_context(),
        ):
            for count in (size, -(-size // 2)):
                batch = data.batch(torch.arange(count)).to(str(self.device))
                with PeakBytes() as allocation:
                    encoder(batch)
                peaks.append(allocation.peak)
                nodes.append(batch.num_nodes)
        bytes_per_node = (peaks[0] - peaks[1]) / max(1, nodes[0] - nodes[1])
        num_bytes = bytes_per_node * data.num_nodes
        remedy = "set batching.evaluation=parts"
        check_memory("evaluation on the whole graph", num_bytes, self.device, remedy)

    def training_step(self, batch: Data, batch_idx: int) -> Tensor:
        nodes, labels = self._part(batch, "train")

        def loss(embeddings: Tensor) -> Tensor:
            logits = self.decoder(embeddings)
            if not len(labels):
                # Other processes wait for this process's gradient.
                return logits.sum()
            return self.labels.loss(logits, labels.to(logits.device))

        return self.encoder.training_loss(batch, loss, nodes)

    def on_train_batch_start(self, batch: Data | None = None, batch_idx: int = 0) -> None:
        self._cache = None

    on_test_start = on_train_batch_start

    def validation_score(self, batch: Data) -> Tensor:
        logits, labels = self(batch, "val")
        return self.labels.score(self.score, logits, labels)

    def log_part(self, part: str, batch: Data) -> None:
        """Log all metrics of a part. Only the first process logs."""
        is_first = self.trainer.is_global_zero
        if not (self.evaluates_together or is_first):
            return
        logits, labels = self(batch, part)
        if not is_first:
            return
        scores = self._scores(logits, labels)
        metrics = {f"{part}/{name}": score for name, score in scores.items()}
        self.log_dict(metrics, batch_size=1, rank_zero_only=True)
        if part == "test":
            self._warn_of_collapse(logits)

    def scores(self, batch: Data, part: str) -> dict[str, Tensor]:
        logits, labels = self(batch, part)
        return self._scores(logits, labels)

    def _scores(self, logits: Tensor, labels: Tensor) -> dict[str, Tensor]:
        """All metrics, the metric that selects the weights first."""
        metrics = self.labels.scores(logits, labels)
        return {self.score: metrics.pop(self.score), **metrics}

    def logits(self, batch: Data, nodes: Tensor) -> Tensor:
        """Logits `[selected nodes, logits]` of nodes `[selected nodes]` of any graph."""
        self._cache = None
        with without_group():
            return self._logits(batch, nodes)

    @torch.no_grad()
    def probabilities(self, batch: Data, nodes: Tensor) -> Tensor:
        """Probabilities `[selected nodes, classes]` of nodes `[selected nodes]` of any graph."""
        logits = self.logits(batch, nodes)
        return self.labels.probabilities(logits.float())

    def write_files(self, graph: Data, folder: Path) -> None:
        """Write the default files and those of the predicted classes of the test nodes."""
        from curvlab.analysis.classes import save_classes  # imports scikit-learn

        super().write_files(graph, folder)
        if (graph.num_nodes or 0) > PICTURED_NODES:
            return
        nodes, labels = split_parts(graph)["test"]
        probabilities = self.eval().probabilities(graph, nodes).cpu().numpy()
        names = vocabulary_of(graph).classes
        save_classes(folder, probabilities, labels.cpu().numpy(), names)

    def predict(self, run: TrainedRun, graph: Data | None, query: PredictionQuery) -> pd.DataFrame:
        """Table of `node`, `predicted`, `label`, `part`, and the probability of each class."""
        batch = run.prepare(graph)
        ids = run.ids(graph)
        order = torch.arange(len(ids))
        if "nodes" in batch:
            order = batch.nodes.argsort()
        positions = find_positions(query.nodes, ids, "node")
        names = self._class_names(run)
        frame = pd.DataFrame(index=range(int(batch.num_nodes or 0)))
        if batch.get("y") is not None:
            frame["label"] = _class_texts(batch.y, names)
            frame["part"] = ""
            for part, mask in part_masks(batch).items():
                frame.loc[mask.cpu().numpy(), "part"] = part
            if "labelled" in batch:
                frame.loc[~batch.labelled.cpu().numpy()] = "", UNLABELLED
        frame = frame.iloc[order[positions].numpy()]
        frame.insert(0, "node", [ids[i] for i in positions])
        if query.unlabelled and "part" in frame:
            frame = frame[frame["part"] == UNLABELLED]
        if query.unlabelled and frame.empty:
            raise UsageError("unlabelled=true, but each of these nodes has a label: drop it")
        rows = torch.tensor(frame.index.tolist(), device=run.device)
        probabilities = self.probabilities(batch, rows).cpu()
        prediction = probabilities > 0.5
        if self.labels.exclusive:
            prediction = probabilities.argmax(1)
        frame.insert(1, "predicted", _class_texts(prediction, names))
        columns = {f"p_{name}": probabilities[:, i].numpy() for i, name in enumerate(names)}
        return frame.assign(**columns).reset_index(drop=True)

    def _class_names(self, run: TrainedRun) -> list[str]:
        """Names of the classes or labels; their numbers if they have no names."""
        names = run.vocabulary.classes
        if names is not None:
            return list(names)
        return [str(i) for i in range(self._num_classes)]

    @property
    def _num_classes(self) -> int:
        """Number of classes or labels; one logit is two classes."""
        if self.labels.exclusive:
            return max(2, self.labels.logits)
        return self.labels.logits

    def score_on(self, run: TrainedRun, graph: Data) -> Scores:
        """Metrics of each part of the graph's split; without a split, of all labelled nodes."""
        if graph.get("y") is None:
            raise UsageError("the graph's nodes have no labels: nothing to score")
        batch = run.prepare(graph)
        scores = {}
        for part, mask in part_masks(graph).items():
            nodes = mask.nonzero().squeeze(-1).to(run.device)
            logits = self.logits(batch, nodes)
            metrics = self.labels.scores(logits, batch.y[nodes])
            scores[part] = {name: float(score) for name, score in metrics.items()}
        return scores

    def references(self, data: GraphDataModule) -> dict[str, float]:
        """Test scores of the majority class, the neighbours' vote and a linear model."""
        check_size(data)
        graph = plain_graph(data)
        labels = self.labels
        nodes, test_labels = split_parts(graph, self.score)["test"]

        def score(probabilities: Tensor) -> float:
            logits = probabilities[nodes]
            if labels.exclusive and labels.logits == 1:
                logits = logits[:, 1:] - logits[:, :1]
            elif not labels.exclusive:
                logits = logits - 0.5
            return float(labels.score(self.score, logits, test_labels))

        return node_references(graph, self._num_classes, labels.exclusive, score)

    def _warn_of_collapse(self, logits: Tensor) -> None:
        if not bool(logits.isfinite().all()):
            return
        if len(logits) > 1 and len(coincident_nodes(logits).unique()) == 1:
            log.warning("the model has collapsed: all test nodes have the same logits")
            return
        if self.labels.logits == 1 or not self.labels.exclusive:
            return
        prediction = logits.argmax(1)
        if bool((prediction == prediction[0]).all()):
            log.warning("the model has collapsed: all test nodes are predicted to be of one class")

    def _logits(self, batch: Data, nodes: Tensor) -> Tensor:
        """Logits `[selected nodes, logits]`, in chunks or parts between mini-batches."""
        if "evaluate_parts" in batch:
            if self._cache is None or self._cache[0] is not nodes:
                with nullcontext() if self.evaluates_together else without_group():
                    logits = batch.evaluate_parts(self._logits, nodes, self.device)
                self._cache = nodes, logits
            return self._cache[1]
        if self.training or "chunk" not in batch:
            return self.decoder(self.encoder.forward_nodes(batch, nodes))
        if self.encoder.node_wise:
            pieces = []
            for chunk in local_shard(nodes.split(batch.chunk)):
                embeddings = self.encoder.forward_nodes(batch, chunk)
                pieces.append(self.decoder(embeddings))
            return torch.cat(all_gather_pieces(pieces, nodes.device))
        if self._cache is None:
            with torch.no_grad():
                self._cache = nodes, self.encoder(batch)
        embeddings = self._cache[1].index_select(0, nodes)
        return self.decoder(embeddings)

    def _part(self, batch: Data, part: str) -> Part:
        """Nodes and labels of a part, cached on the graph: indexing by a mask synchronises."""
        if "train_nodes" in batch:
            return Part(batch.train_nodes, batch.y[batch.train_nodes])
        reads = ("y", *(f"{name}_mask" for name in PARTS))
        parts = SparseGraph.from_data(batch).derive(
            ("parts", self.score), reads, lambda graph: split_parts(graph, self.score)
        )
        return parts[part]


def _class_texts(labels: Tensor, names: Sequence[str]) -> list[str]:
    """Names of classes `[nodes]`, or the names of each node's labels `[nodes, labels]`."""
    if labels.dim() == 1:
        return [names[i] for i in labels.long().tolist()]
    return [" ".join(compress(names, row)) for row in labels.bool().tolist()]


def part_masks(graph: Data) -> dict[str, Tensor]:
    """Masks of the nonempty parts of a graph's split; without a split, `all` labelled nodes."""
    all_nodes = torch.ones(len(graph.y), dtype=torch.bool, device=graph.y.device)
    labelled = graph.get("labelled", all_nodes)
    masks: dict[str, Tensor] = {}
    for part, published_mask in zip(PARTS, GIVEN_MASKS, strict=True):
        mask = graph.get(f"{part}_mask", graph.get(published_mask))
        if mask is None:
            continue
        if mask.dim() == 2:
            mask = mask[:, 0]
        mask = mask & labelled
        if mask.any():
            masks[part] = mask
    return masks or {"all": labelled}


def split_parts(batch: Data, metric: str = "") -> dict[str, Part]:
    """Nodes and labels of each part of a graph's split.

    Raises:
        UsageError: the graph has no labels or no split, a part is empty, or the metric is not
            defined on a part.
    """
    if batch.y is None:
        raise UsageError("the graph has no labels: choose a dataset with classes, such as cora")
    parts = {}
    for name in PARTS:
        mask = batch.get(f"{name}_mask")
        if mask is None:
            raise UsageError("the graph has no split: choose one of split=..., see --help")
        nodes = mask.nonzero().squeeze(-1)
        if not len(nodes):
            raise UsageError(f"the split has no {name} nodes: choose another, see --help")
        labels = batch.y[nodes]
        parts[name] = Part(nodes, labels)
        if name != "train":
            _check_labels(labels, name, metric)
    return parts


def _check_labels(labels: Tensor, part: str, metric: str) -> None:
    """Refuse labels of a part on which the metric is not defined."""
    needs_both_values = "roc" in metric
    needs_positive = metric == "f1_binary" or (metric.startswith("f1_") and labels.dim() == 2)
    is_defined = True
    if needs_both_values:
        is_defined = not bool((labels == labels[0]).all())
    elif needs_positive:
        is_defined = bool((labels == 1).any())
    if not is_defined:
        description = "have the same labels"
        if labels.dim() == 1:
            description = f"are of class {int(labels[0])}"
        raise UsageError(
            f"all {len(labels)} {part} nodes {description}, where {metric} is not defined: choose "
            "another split, or another dataset.metric"
        )
