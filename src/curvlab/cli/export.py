"""Export a finished run's embeddings, with the ids of nodes or entities.

curvlab export RUN --format csv              embeddings.csv: id, x0, x1, ...
curvlab export RUN --format parquet --output points.parquet
curvlab export RUN --format word2vec         text that gensim reads; blanks in ids become _
curvlab export RUN --tangent                 logarithms at the origin, for flat tools
curvlab export RUN --relations               parameters of a knowledge graph's relations

A file with .json after the same name holds the layer, the space of the points and its
curvatures. RUN is a run's folder or its best.ckpt.
"""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import curvlab
from curvlab.cli.verbs import Verb, add_run_arguments, add_spreadsheet_argument, graph_in, write
from curvlab.config.resolvers import data_name
from curvlab.config.schema import spaces_of
from curvlab.errors import UsageError
from curvlab.files import atomic_path, atomic_write

if TYPE_CHECKING:
    import numpy as np

    from curvlab.run.load import Run


def _export(args: argparse.Namespace) -> None:
    import pandas as pd

    run = curvlab.load(args.run, trust=args.trust)
    text = args.format == "word2vec"
    ending = "txt" if text else args.format
    if args.relations:
        if text or args.tangent or args.data:
            raise UsageError(
                "--relations writes csv or parquet, without --tangent and --data: its columns are "
                "parameters, not points"
            )
        table = run.embed_relations()
        path = args.output or Path(f"relations.{ending}")
        write(table, path, args.spreadsheet)
        print(f"{len(table):,} relations of {table.shape[1] - 1} parameters in {path}")
        return
    ids, points, space = embeddings(run, args.tangent, args.data)
    name = "tangents" if args.tangent else "embeddings"
    path = args.output or Path(f"{name}.{ending}")
    if text:
        with atomic_path(path) as partial, partial.open("w", encoding="utf-8") as stream:
            stream.write(f"{len(ids)} {points.shape[1]}\n")
            for node, row in zip(ids, points.tolist(), strict=True):
                stream.write(f"{'_'.join(node.split())} {' '.join(f'{x:.9g}' for x in row)}\n")
    else:
        frame = pd.DataFrame(points, columns=[f"x{i}" for i in range(points.shape[1])])
        frame.insert(0, "id", ids)
        frame.attrs.update(space)  # parquet files keep it
        write(frame, path, args.spreadsheet)
    atomic_write(path.with_name(f"{path.name}.json"), json.dumps(space, indent=2) + "\n")
    print(f"{len(ids):,} points of {points.shape[1]} coordinates in {path}")
    print(f"  {space['layer']}, {space['coordinates']} in {space['geometry']}")


def embeddings(
    run: "Run", tangent: bool = False, folder: str | None = None
) -> "tuple[list[str], np.ndarray, dict[str, Any]]":
    """Ids, points `[nodes, dim]` and a description of their space."""
    graph = graph_in(folder, run)
    points = run.embed(graph)
    space = run.space
    if tangent:
        points = space.logmap0(points)
    kappa = getattr(space, "kappa", None)
    description = {
        "model": run.config.model.name,
        "dataset": data_name(_root_=run.config),
        "config_hash": run.checkpoint["config_hash"],
        "layer": f"last layer of {run.config.model.label}",
        "space": type(space).__name__,
        "geometry": geometry(run),
        "curvature": [0.0] if kappa is None else kappa.detach().reshape(-1).tolist(),
        "components": getattr(space, "components", 1),
        "time_coordinates": 0 if tangent else space.codimension,
        "coordinates": "logarithms at the origin" if tangent else "points",
    }
    return run.ids(graph), points.detach().cpu().numpy(), description


def geometry(run: "Run") -> str:
    """Describe the space of a run's embeddings, its curvature, and why it is flat if it is."""
    space = run.space
    kappa = getattr(run.space, "kappa", None)
    name = type(space).__name__
    if kappa is None and name != "Euclidean":
        return name
    if kappa is not None and kappa.detach().any():
        return f"{name} of curvature {', '.join(f'{k:.3g}' for k in kappa.detach().flatten())}"
    from curvlab.callbacks import curvatures

    label = run.config.model.label
    learned = curvatures(run.model)
    if any(bool(values.any()) for values in learned.values()):
        return f"{name}, flat: {label} maps the points of its curved layers to a tangent space"
    if len(spaces_of(run.config.model._target_)) > 1 and run.result is not None:
        return f"{name}, flat: manifold={run.config.manifold.name} has curvature 0"
    return f"{name}, flat: {label} has no curved layer; choose model=fpst or hypformer for one"


main = Verb("export", __doc__, _export)
add_run_arguments(main)
formats = ("csv", "parquet", "word2vec")
main.add_argument("--format", choices=formats, default="csv", help="format of the file (csv)")
main.add_argument("--tangent", action="store_true", help="logarithms at the origin")
main.add_argument("--relations", action="store_true", help="parameters of the relations")
main.add_argument("--data", metavar="FOLDER", help="folder of another graph")
main.add_argument("--output", type=Path, metavar="FILE", help="file to write")
add_spreadsheet_argument(main)
