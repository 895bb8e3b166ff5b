"""Load a trained run from its folder or `best.ckpt`: `curvlab.load(path)`."""

import copy
import logging
import os
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

import curvlab.config.trust as trusted
from curvlab.callbacks import EncoderStatistics
from curvlab.checksums import DamagedError, check_archive
from curvlab.config.building import build
from curvlab.config.file_contents import user_file_checksums, user_files
from curvlab.config.resolvers import data_name, register_resolvers
from curvlab.config.schema import options_of
from curvlab.data.loaders.datamodule import GraphDataModule, to_default_dtype
from curvlab.data.vocabulary import Vocabulary, vocabulary_of
from curvlab.errors import UsageError
from curvlab.finite import Scores, check_finite, finite_scores
from curvlab.manifolds import Manifold
from curvlab.models.encoder import Encoder
from curvlab.models.triple_scorer import TripleScorer
from curvlab.process import default_dtype
from curvlab.results.folder import BEST
from curvlab.results.identity import map_dicts, outdated_classes
from curvlab.results.migrations import (
    SchemaError,
    migrated,
    with_current_targets,
)
from curvlab.results.result import Result, read_result
from curvlab.run import reporting
from curvlab.run.hardware import choose_device, prepare_process
from curvlab.run.parts import (
    DataSpec,
    build_task,
    build_trainer,
    build_transforms,
    evaluate_parts,
    prepare_data,
)
from curvlab.tasks.node_classification import NodeClassification
from curvlab.tasks.predictions import PredictionQuery, Query
from curvlab.tasks.task import Task

log = logging.getLogger(__name__)

WEIGHTS = Path(__file__).parents[1] / "weights"

PLACES = ("data_dir", "mirror", "path", "nodes")
"""Keys of folders and files, relative to the directory in which the run was started."""


@dataclass(repr=False, eq=False)
class Run:
    """A finished run: its configuration, and its model with the reported weights.

    Attributes:
        task: the LightningModule: model, decoder, loss and metrics.
        config: the configuration, resolved.
        kept: the other contents of the file; see `curvlab.run.parts.save_best`.
        result, folder: result and folder of the run; None from a `best.ckpt` alone.
    """

    task: Task
    config: DictConfig
    kept: dict[str, Any]
    result: Result | None = None
    folder: Path | None = None

    def __repr__(self) -> str:
        kappa = getattr(self.space, "kappa", None)
        curvature = "" if kappa is None else f"kappa={kappa.detach().cpu().numpy().round(3)}"
        facts = {
            "model": self.config.model.name,
            "dataset": data_name(_root_=self.config),
            self.task.score: f"{self.kept['score']:.2f}",
            "space": f"{type(self.space).__name__}({curvature})",
            **({"folder": self.folder} if self.folder else {}),
        }
        return f"Run({', '.join(f'{key}={value}' for key, value in facts.items())})"

    @property
    def model(self) -> Encoder:
        """The model in evaluation mode, which maps a prepared graph to points of `space`."""
        return self.task.encoder

    @property
    def _scorer(self) -> TripleScorer | None:
        """The model, if it scores triples; CAT also classifies nodes."""
        triples = self.task.data_kind == "triples"
        return self.model if triples and isinstance(self.model, TripleScorer) else None

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """Names of nodes and classes, or of entities and relations; None without names."""
        return Vocabulary(**(self.kept.get("vocabulary") or {}))

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
        """Refuse a run whose user's files have changed since."""
        plain = OmegaConf.to_container(self.config, resolve=True)
        assert isinstance(plain, dict)
        trained_on = self.kept.get("files", {})
        for key, content in user_files(plain).items():
            if content is not None and content != trained_on.get(key, content):
                before = (self.kept.get("each_file") or {}).get(key)
                which = "" if before is None else differing(before, user_file_checksums(plain)[key])
                raise UsageError(
                    f"{OmegaConf.select(self.config, key)} has changed since this run was trained "
                    f"on it{which}: train again, or give it as another graph (--data, or graph= in "
                    "Python)"
                )

    @property
    def transductive_reason(self) -> str:
        """Why the model works only on the graph of its training; empty if it is inductive."""
        parts = [self.model, *self._transforms]
        return next((part.transductive_reason for part in parts if part.transductive_reason), "")

    @torch.no_grad()
    def embed(self, graph: Data | None = None) -> Tensor:
        """Points of `space`, `[nodes, dim]`, in the order of the data set's nodes or entities.

        Args:
            graph: Another graph, for inductive models: features `x` as in training, and
                `edge_index` with both directions of every edge; None for the graph of training.

        Raises:
            UsageError: The model is transductive, or the features have another width.
            DivergedError: An embedding is not finite, for instance since features are too large.
        """
        if self._scorer is not None:
            if graph is not None:
                self.check_inductive()
            return self._scorer.entity_points.detach().clone()
        with default_dtype(self.config.trainer.precision):
            batch = self.prepare(graph)
            if "evaluate_parts" in batch:
                nodes = torch.arange(batch.num_nodes)
                points = batch.evaluate_parts(self.model.forward_nodes, nodes, self.device)
            elif "chunk" in batch and self.model.node_wise:
                parts = torch.arange(batch.num_nodes, device=self.device).split(batch.chunk)
                points = torch.cat([self.model.forward_nodes(batch, part) for part in parts])
            else:
                points = self.model(batch)
            check_finite("embeddings", points, self.task, lambda: self.model(batch))
        return points[batch.nodes.argsort()] if "nodes" in batch else points

    def ids(self, graph: Data | None = None) -> list[str]:
        """Names of the rows of `embed`; numbers from 0 for nodes without names."""
        if self._scorer is not None:
            return list(self.vocabulary.entities or map(str, range(self._scorer.num_entities)))
        batch = self.prepare(graph)
        names = self.vocabulary.nodes if graph is None else vocabulary_of(graph).nodes
        numbers = batch.get("nodes", torch.arange(int(batch.num_nodes or 0))).sort().values.tolist()
        return [str(number) if names is None else names[number] for number in numbers]

    @torch.no_grad()
    def embed_relations(self) -> pd.DataFrame:
        """Parameters of a knowledge graph's relations: `id`, and a column for each number.

        The rows of inverse relations, if these have parameters, follow those of the
        relations.

        Raises:
            UsageError: The model has no relations.
        """
        tables = {} if self._scorer is None else self._scorer.relation_tables
        if not tables:
            raise UsageError(f"model={self.config.model.name} does not embed relations")
        rows = max(len(values) for values in tables.values())
        names = list(self.vocabulary.relations or map(str, range(rows)))
        names += [f"{name} (inverse)" for name in names]
        columns = {
            f"{name}{i}": column.cpu().numpy()
            for name, values in tables.items()
            for i, column in enumerate(values.T)
        }
        return pd.DataFrame({"id": names[:rows], **columns})

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

        Node classification (`nodes`, `unlabelled=False`): `node`, `predicted`, its `label` and
        `part` (train, val, test, unlabelled), and the probability of every class by its name.
        Links (`nodes`, `k=10`, `known=False`): the k likeliest neighbours of these nodes, by name,
        or of all. Knowledge graphs (`queries`, `k=10`, `known=True`): the k best tails of pairs
        `(head, relation, None)` or heads of `(None, relation, tail)`, by name; of `(head, relation,
        tail)` the score, and the filtered rank of the tail.

        Args:
            graph: see `embed`.
            k: Answers per node or query.
            nodes: Nodes by name, whose classes or links are predicted; None: all.
            queries: Queries of a knowledge graph.
            known: List answers that the data contain; None: only for knowledge graphs.
            unlabelled: Predict only the nodes without a label.

        Raises:
            UsageError: there is no such node, entity or relation, or no such prediction.
            DivergedError: a prediction is not finite.
        """
        with default_dtype(self.config.trainer.precision):
            fields = PredictionQuery(k, nodes, queries, known, unlabelled)
            if fields.unlabelled and not isinstance(self.task, NodeClassification):
                raise UsageError(
                    "unlabelled=true asks for classes of nodes, which "
                    f"task={self.config.task.name} does not predict: ask without it"
                )
            predict = partial(self.task.predict, self, graph, fields)
            table = predict()
            numbers = table.select_dtypes("number").to_numpy(copy=True)
            check_finite("predictions", numbers, self.task, predict)
            return table

    def evaluate(self, accelerator: str | None = None, graph: Data | None = None) -> Scores:
        """Evaluate on the data of training, or on another graph: `{"test": {"map": 98.91}, ...}`.

        Args:
            accelerator: Accelerator of Lightning; None for the one of the run.
            graph: Another graph with the labels or parts that the task scores; see `embed`.

        Raises:
            UsageError: The data or the device are missing.
            DivergedError: The score is not finite.
        """
        if graph is not None:
            with torch.no_grad(), default_dtype(self.config.trainer.precision):
                on = partial(self.task.score_on, self, graph)
                return finite_scores(self.task, self.task.score, on)
        threads = torch.get_num_threads()
        strict = torch.are_deterministic_algorithms_enabled()
        config = copy.deepcopy(self.config)
        config.trainer.devices = 1
        config.trainer.accelerator = accelerator or config.trainer.accelerator
        config.trainer.pop("profiler", None)  # it writes a file
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
        if graph.get("x") is None or graph.get("edge_index") is None:
            raise UsageError("a new graph needs node features x and edges edge_index")
        if not is_undirected(graph.edge_index, num_nodes=graph.num_nodes):
            raise UsageError(
                "the graph has edges in one direction only, and the model was trained on both: "
                "use torch_geometric.utils.to_undirected"
            )
        if self.config.dataset.source.get("directed") and "edge_forward" not in graph:
            raise UsageError(
                "the model was trained on a directed graph and this one has no edge_forward: read "
                "it with curvlab.data.datasets.reading.read_graph(path, directed=True)"
            )
        batch = to_default_dtype(graph.clone())
        for transform in self._transforms:
            batch = transform.resolve(batch)(batch)
        width = self.kept["facts"]["inputs"]["in_channels"]
        if batch.x.shape[1] != width:
            raise UsageError(
                f"the graph's nodes have {batch.x.shape[1]} features, and the model was trained on "
                f"{width}: give it the same features in the same order"
            )
        return batch.to(str(self.device))

    @cached_property
    def _transforms(self) -> list[Any]:
        transforms = build_transforms(self.config)
        for transform, stored in zip(transforms, self.kept.get("normalisation", ()), strict=False):
            transform.transductive_reason = stored["tied"]
            transform.fitted = stored["fitted"]
        return transforms

    def split(self, graph: Data) -> Data:
        """Split a graph as the run's task does, by the run's seed."""
        make_split = build(self.config.task.split)
        split: Data = make_split(graph, self.config.seed)
        return split

    def check_inductive(self) -> None:
        """Refuse another graph for a transductive model."""
        if self.transductive_reason:
            raise UsageError(
                f"model={self.config.model.name} on dataset={self.config.dataset.name} works on "
                f"the graph that it was trained on and no other: {self.transductive_reason}"
            )


def load(
    path: Path | str, data_dir: str | None = None, mirror: str | None = None, trust: bool = False
) -> Run:
    """Load a finished run with the reported weights.

    The file is data: of what it names, only classes of curvlab, of torch's optimisers and of
    installed plug-ins are built (`curvlab.config.trust`).

    Args:
        path: the run's folder, or its `best.ckpt`, which may lie anywhere; or the name of a run
            that ships with curvlab, such as `fpst/web_edu` (`shipped()` lists them).
        data_dir: folder of raw and processed files, if it has moved since.
        mirror: folder of the mirror, likewise.
        trust: build any class that the file names. Its author can then run code here.

    Raises:
        UsageError: the file is missing or no checkpoint of a run, names an unknown class, or was
            written by another revision of a class.
    """
    if str(path) in shipped_runs() and not Path(path).exists():
        path = WEIGHTS / f"{path}.ckpt"
        mirror = mirror or os.environ.get("CURVLAB_MIRROR")
    path = Path(path).expanduser()
    file = path if path.is_file() else path / BEST
    if not file.is_file():
        below = sorted(path.rglob(str(BEST)), key=lambda best: best.stat().st_mtime)
        if below:
            raise UsageError(
                f"{path} holds runs: name one of the {len(below)}, such as {below[-1].parents[1]}"
            )
        raise UsageError(
            f"{file} is not there: a run writes it when it finishes; train it, or give the folder "
            f"of a finished run, or a run that ships with curvlab: {', '.join(shipped_runs())}"
        )
    kept = _read(file, trust)
    outdated = outdated_classes(kept["config"], kept.get("revisions", {}))
    if outdated:
        raise UsageError(
            f"{file} was written with {', '.join(outdated)}, which computes other numbers today: "
            "run it again, or load it with the version that wrote it"
        )
    places = {k: v for k, v in {"data_dir": data_dir, "mirror": mirror}.items() if v is not None}
    gone: list[str] = []
    content = replace_places(kept.pop("config"), places, Path(kept.pop("directory", ".")))

    def drop_unknown_options(node: dict[str, Any]) -> dict[str, Any]:
        known = options_of(node.get("_target_", ""))
        former = [key for key in node if known and key not in known and not key.startswith("_")]
        gone.extend(f"{key}={node[key]}" for key in former)
        return {key: value for key, value in node.items() if key not in former}

    for group in (group for group in content.values() if isinstance(group, dict)):
        group |= {key: map_dicts(value, drop_unknown_options) for key, value in group.items()}
    config = OmegaConf.create(content)
    if gone:
        log.warning("%s: this version has no option %s, which is left out", file, ", ".join(gone))
    register_resolvers()
    with isolate_rng(), default_dtype(config.trainer.precision):
        lightning.seed_everything(config.seed, workers=True, verbose=False)
        task = build_task(config, DataSpec(kept["facts"]))
    task.load_state_dict(kept.pop("state_dict"))
    folder = file.resolve().parents[1]
    if file.resolve() != folder / BEST:
        return Run(task.eval(), config, kept)
    return Run(task.eval(), config, kept, read_result(folder), folder)


def differing(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Which files of a folder differ, in parentheses; empty for a path that is one file."""
    if len(before) == len(after) == 1 and before.keys() == after.keys():
        return ""
    changed = [name for name in before.keys() & after.keys() if before[name] != after[name]]
    ways = {
        "changed": changed,
        "missing": before.keys() - after.keys(),
        "new": after.keys() - before.keys(),
    }
    parts = (f"{', '.join(sorted(names))} {how}" for how, names in ways.items() if names)
    return f" ({'; '.join(parts)})"


def shipped_runs() -> list[str]:
    """Names of the shipped runs, for `load`."""
    files = sorted(WEIGHTS.glob("*/*.ckpt"))
    return [file.relative_to(WEIGHTS).with_suffix("").as_posix() for file in files]


def _read(file: Path, trust: bool) -> dict[str, Any]:
    try:
        check_archive(file)
        kept = torch.load(file, map_location="cpu", weights_only=True)
        if trust:
            trusted.trust(kept["config"])
        kept = migrated(kept)  # before the check: earlier versions named other classes
        if not trust and "config" in kept:
            trusted.check(with_current_targets(kept["config"]), file)
        kept["config"] = with_current_targets(kept["config"])
        return {**kept, "facts": kept["facts"], "state_dict": kept["state_dict"]}
    except DamagedError as damage:
        raise UsageError(
            f"{file} is damaged ({damage}): its weights are not those that were evaluated; run it "
            "again with rerun=true, or take another copy of the file"
        ) from None
    except (PermissionError, UsageError):
        raise
    except SchemaError as other:
        raise UsageError(f"{file} cannot be used ({other}): train it again") from None
    except Exception as error:  # a file of another kind raises anything in torch
        raise UsageError(
            f"{file} is not the best.ckpt of a run: give a run's folder, or the file of that name "
            "in its folder checkpoints"
        ) from error


def replace_places(node: Any, places: Mapping[str, str | None], start: Path) -> Any:
    """Copy a configuration with absolute folders."""

    def move_key(key: str, value: Any) -> Any:
        if key in places:
            return places[key]
        exists = key in PLACES and isinstance(value, str) and (start / value).exists()
        return str(start / value) if exists else value

    return map_dicts(node, lambda mapping: {key: move_key(key, v) for key, v in mapping.items()})
