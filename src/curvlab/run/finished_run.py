"""A finished run: embeddings, predictions and scores of its model."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import lightning
import pandas as pd
import torch
from lightning.pytorch.utilities.seed import isolate_rng
from omegaconf import DictConfig, OmegaConf
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import is_undirected

from curvlab.callbacks import EncoderStatistics
from curvlab.config.building import build
from curvlab.config.file_contents import user_file_checksums, user_files
from curvlab.config.resolvers import data_name
from curvlab.data.loaders.datamodule import GraphDataModule, to_default_dtype
from curvlab.data.vocabulary import Vocabulary, vocabulary_of
from curvlab.errors import UsageError
from curvlab.finite import Scores, check_finite, finite_scores
from curvlab.manifolds import Manifold
from curvlab.models.encoder import Encoder
from curvlab.models.triple_scorer import TripleScorer
from curvlab.process import default_dtype
from curvlab.results.result import Result
from curvlab.run import reporting
from curvlab.run.hardware import choose_device, prepare_process
from curvlab.run.parts import build_trainer, build_transforms, evaluate_parts, prepare_data
from curvlab.tasks.predictions import PredictionQuery, Query, refuse_unused
from curvlab.tasks.task import Task


@dataclass(repr=False, eq=False)
class Run:
    """A finished run: its configuration, and its model with the reported weights.

    Attributes:
        task: LightningModule with the model, decoder, loss and metrics.
        config: Resolved configuration.
        checkpoint: Further contents of `best.ckpt`; see `curvlab.run.parts.save_best`.
        result: Result of the run; None for a `best.ckpt` without its folder.
        folder: Folder of the run; None for a `best.ckpt` without its folder.
    """

    task: Task
    config: DictConfig
    checkpoint: dict[str, Any]
    result: Result | None = None
    folder: Path | None = None

    def __repr__(self) -> str:
        kappa = getattr(self.space, "kappa", None)
        curvature = ""
        if kappa is not None:
            curvature = f"kappa={kappa.detach().cpu().numpy().round(3)}"
        facts: dict[str, Any] = {
            "model": self.config.model.name,
            "dataset": data_name(_root_=self.config),
            self.task.score: f"{self.checkpoint['score']:.2f}",
            "space": f"{type(self.space).__name__}({curvature})",
        }
        if self.folder:
            facts["folder"] = self.folder
        text = ", ".join(f"{name}={value}" for name, value in facts.items())
        return f"Run({text})"

    @property
    def model(self) -> Encoder:
        """The model in evaluation mode: it maps a prepared graph to points of `space`."""
        return self.task.encoder

    @property
    def _scorer(self) -> TripleScorer | None:
        """The model if the run scores triples, else None; CAT also classifies nodes."""
        if self.task.data_kind == "triples" and isinstance(self.model, TripleScorer):
            return self.model
        return None

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """Names of nodes and classes, or of entities and relations; None without names."""
        names = self.checkpoint.get("vocabulary") or {}
        return Vocabulary(**names)

    @property
    def space(self) -> Manifold:
        """The space of the embeddings."""
        return self.model.manifold_out

    @property
    def device(self) -> torch.device:
        """Device of the model."""
        return next(self.task.parameters()).device

    @cached_property
    def data(self) -> GraphDataModule:
        """The data module; its files are read at the first access."""
        self._check_files()
        with isolate_rng(), default_dtype(self.config.trainer.precision):
            lightning.seed_everything(self.config.seed, workers=True, verbose=False)
            return prepare_data(self.config)

    def _check_files(self) -> None:
        """Refuse a run if the user's files have changed since the training."""
        plain = OmegaConf.to_container(self.config, resolve=True)
        assert isinstance(plain, dict)
        trained_on = self.checkpoint.get("files", {})
        for key, content in user_files(plain).items():
            if content is None or content == trained_on.get(key, content):
                continue
            changes = ""
            checksums = (self.checkpoint.get("each_file") or {}).get(key)
            if checksums is not None:
                current_checksums = user_file_checksums(plain)[key]
                changes = _describe_changes(checksums, current_checksums)
            raise UsageError(
                f"{OmegaConf.select(self.config, key)} has changed since this run was trained "
                f"on it{changes}: train again, or use the new data as another graph (--data, or "
                "graph= in Python)"
            )

    @property
    def transductive_reason(self) -> str:
        """Why the model works only on the graph of its training; empty if it is inductive."""
        for part in (self.model, *self._transforms):
            if part.transductive_reason:
                return str(part.transductive_reason)
        return ""

    @torch.no_grad()
    def embed(self, graph: Data | None = None) -> Tensor:
        """Points of `space`, `[nodes, dim]`, in the order of the data set's nodes or entities.

        Args:
            graph: Another graph, for inductive models: features `x` as in training, and
                `edge_index` with both directions of every edge; None for the graph of training.

        Raises:
            UsageError: The model is transductive, or the features have another width.
            DivergedError: An embedding is not finite, for instance if features are too large.
        """
        if self._scorer is not None:
            if graph is not None:
                self.check_inductive()
            return self._scorer.entity_points.detach().clone()
        with default_dtype(self.config.trainer.precision):
            batch = self.prepare(graph)
            points = self._forward(batch)
            check_finite("embeddings", points, self.task, lambda: self.model(batch))
        if "nodes" in batch:
            return points[batch.nodes.argsort()]
        return points

    def _forward(self, batch: Data) -> Tensor:
        """Embed all nodes of a batch, in parts if the batch is evaluated in parts."""
        if "evaluate_parts" in batch:
            nodes = torch.arange(batch.num_nodes)
            points: Tensor = batch.evaluate_parts(self.model.forward_nodes, nodes, self.device)
            return points
        if "chunk" in batch and self.model.node_wise:
            nodes = torch.arange(batch.num_nodes, device=self.device)
            chunks = nodes.split(batch.chunk)
            return torch.cat([self.model.forward_nodes(batch, chunk) for chunk in chunks])
        return self.model(batch)

    def ids(self, graph: Data | None = None) -> list[str]:
        """Names of the rows of `embed`; numbers from 0 for nodes without names."""
        if self._scorer is not None:
            numbers = range(self._scorer.num_entities)
            return list(self.vocabulary.entities or map(str, numbers))
        batch = self.prepare(graph)
        vocabulary = self.vocabulary if graph is None else vocabulary_of(graph)
        nodes = batch.get("nodes", torch.arange(int(batch.num_nodes or 0)))
        numbers = nodes.sort().values.tolist()
        if vocabulary.nodes is None:
            return list(map(str, numbers))
        return [vocabulary.nodes[number] for number in numbers]

    @torch.no_grad()
    def embed_relations(self) -> pd.DataFrame:
        """Parameters of a knowledge graph's relations: `id`, and a column for each parameter.

        Parameters of inverse relations follow those of the relations.

        Raises:
            UsageError: The model has no relations.
        """
        tables = self._scorer.relation_tables if self._scorer is not None else {}
        if not tables:
            raise UsageError(f"model={self.config.model.name} does not embed relations")
        rows = max(len(values) for values in tables.values())
        names = list(self.vocabulary.relations or map(str, range(rows)))
        names += [f"{name} (inverse)" for name in names]
        columns: dict[str, Any] = {"id": names[:rows]}
        for name, values in tables.items():
            for i, column in enumerate(values.T):
                columns[f"{name}{i}"] = column.cpu().numpy()
        return pd.DataFrame(columns)

    @torch.no_grad()
    def predict(
        self,
        graph: Data | None = None,
        *,
        k: int = 10,
        nodes: Sequence[str | int] | None = None,
        queries: Sequence[Query] = (),
        known: bool | None = None,
        unlabelled: bool = False,
    ) -> pd.DataFrame:
        """Predictions of the model, one row each.

        - Node classification (`nodes`, `unlabelled`): the columns are `node`, `predicted`, the
          true `label`, `part` (train, val, test, unlabelled), and the probability of each class.
        - Links (`nodes`, `k`, `known`): the rows are the k likeliest neighbours of each node.
        - Knowledge graphs (`queries`, `k`, `known`): the rows are the k best tails of a query
          `(head, relation, None)`, or heads of `(None, relation, tail)`. A triple `(head,
          relation, tail)` has one row, with its score and the filtered rank of the tail.

        Args:
            graph: Another graph; see `embed`.
            k: Answers per node or query.
            nodes: Names of the nodes to predict classes or links of; None: all nodes.
            queries: Queries of a knowledge graph.
            known: List answers that the data contain; None: only for knowledge graphs.
            unlabelled: Predict only the nodes without a label.

        Raises:
            UsageError: A node, entity or relation does not exist, or the task does not predict it.
            DivergedError: A prediction is not finite.
        """
        with default_dtype(self.config.trainer.precision):
            query = PredictionQuery(k, nodes, queries, known, unlabelled)
            refuse_unused(query.given, self.task.predicts_by, self.config.task.name)
            predict = partial(self.task.predict, self, graph, query)
            table = predict()
            numbers = table.select_dtypes("number").to_numpy(copy=True)
            check_finite("predictions", numbers, self.task, predict)
            return table

    def evaluate(self, accelerator: str | None = None, graph: Data | None = None) -> Scores:
        """Evaluate on the data of training, or on another graph: `{"test": {"map": 98.91}, ...}`.

        Args:
            accelerator: Accelerator of Lightning; None: the run's accelerator.
            graph: Another graph with the labels or parts that the task scores; see `embed`.

        Raises:
            UsageError: The data or the device are missing.
            DivergedError: The score is not finite.
        """
        if graph is not None:
            if accelerator:
                raise UsageError(
                    f"accelerator={accelerator}: another graph is evaluated on {self.device}, the "
                    "device of the model; omit it"
                )
            with torch.no_grad(), default_dtype(self.config.trainer.precision):
                score = partial(self.task.score_on, self, graph)
                return finite_scores(self.task, self.task.score, score)
        return self._evaluate(accelerator)

    def _evaluate(self, accelerator: str | None) -> Scores:
        """Evaluate on the data of training; restore torch's settings afterwards."""
        threads = torch.get_num_threads()
        strict = torch.are_deterministic_algorithms_enabled()
        config = copy.deepcopy(self.config)
        config.trainer.devices = 1
        if accelerator:
            config.trainer.accelerator = accelerator
        config.trainer.pop("profiler", None)  # a profiler would write a file
        try:
            device = choose_device(config.trainer.accelerator, config.trainer.precision)
            prepare_process(config.trainer.threads, device)
            with default_dtype(config.trainer.precision), reporting.quiet():
                trainer = build_trainer(config, device, Path(), [EncoderStatistics()], None)
                return evaluate_parts(trainer, self.task, self.data)
        finally:
            torch.set_num_threads(threads)
            torch.use_deterministic_algorithms(strict)

    def prepare(self, graph: Data | None = None) -> Data:
        """Prepare a graph for the model, on its device; None for the graph of training."""
        if graph is None:
            (batch,) = self.data.test_dataloader()
            return self.data.transfer_batch_to_device(batch, self.device, 0)
        self.check_inductive()
        self._check_graph(graph)
        batch = to_default_dtype(graph.clone())
        for transform in self._transforms:
            batch = transform.resolve(batch)(batch)
        width = self.checkpoint["facts"]["inputs"]["in_channels"]
        if batch.x.shape[1] != width:
            raise UsageError(
                f"the graph's nodes have {batch.x.shape[1]} features, and the model was trained on "
                f"{width}: use the same features in the same order"
            )
        return batch.to(str(self.device))

    def _check_graph(self, graph: Data) -> None:
        """Refuse a graph without features, or with other directions of edges than in training."""
        if graph.get("x") is None or graph.get("edge_index") is None:
            raise UsageError("a new graph needs node features x and edges edge_index")
        if not is_undirected(graph.edge_index, num_nodes=graph.num_nodes):
            raise UsageError(
                "the graph has edges in one direction only, and the model was trained on both "
                "directions: use torch_geometric.utils.to_undirected"
            )
        if self.config.dataset.source.get("directed") and "edge_forward" not in graph:
            raise UsageError(
                "the model was trained on a directed graph and this graph has no edge_forward: "
                "read it with curvlab.data.datasets.reading.read_graph(path, directed=True)"
            )

    @cached_property
    def _transforms(self) -> list[Any]:
        transforms = build_transforms(self.config)
        states = self.checkpoint.get("normalisation", ())
        for transform, state in zip(transforms, states, strict=False):
            transform.transductive_reason = state["tied"]
            transform.fitted = state["fitted"]
        return transforms

    def split(self, graph: Data) -> Data:
        """Split a graph with the split of the run's task and the run's seed."""
        make_split = build(self.config.task.split)
        split: Data = make_split(graph, self.config.seed)
        return split

    def check_inductive(self) -> None:
        """Refuse another graph for a transductive model."""
        if self.transductive_reason:
            raise UsageError(
                f"model={self.config.model.name} on dataset={self.config.dataset.name} works only "
                f"on the graph of its training: {self.transductive_reason}"
            )


def _describe_changes(old: Mapping[str, str], new: Mapping[str, str]) -> str:
    """List the files of a folder whose checksums differ, in parentheses.

    The list is empty if both are the checksum of a single file.
    """
    if len(old) == len(new) == 1 and old.keys() == new.keys():
        return ""
    files_by_state = {
        "changed": [name for name in old.keys() & new.keys() if old[name] != new[name]],
        "missing": old.keys() - new.keys(),
        "new": new.keys() - old.keys(),
    }
    parts = [
        f"{', '.join(sorted(files))} {state}" for state, files in files_by_state.items() if files
    ]
    return f" ({'; '.join(parts)})"
