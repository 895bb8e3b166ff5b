#!/usr/bin/env python
"""Film FPS-T while it learns a graph and its curvature: one head, all pairs in each step.

scripts/film.py docs/results/fpst_web_edu_film.gif
"""

import argparse
import time
from pathlib import Path

import torch
from torch_geometric.utils import degree

from curvlab.analysis.film import Frame, frame, write_film
from curvlab.config.folder import CONFIGS
from curvlab.data.datasets.named import dataset_config, named_source
from curvlab.data.transforms.graph import IdentityFeatures
from curvlab.models.fpst import FPST
from curvlab.optim import Adam
from curvlab.tasks.reconstruction import Reconstruction


def main() -> None:
    """Train for some steps, or until the time is over, then write the film."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", type=Path, help="a GIF file")
    parser.add_argument("--dataset", default="web_edu", help="(default: %(default)s)")
    parser.add_argument("--data-dir", type=Path, help="folder of the raw files (default: data)")
    parser.add_argument("--steps", type=int, default=300, help="at most (default: %(default)s)")
    parser.add_argument("--every", type=int, default=5, help="steps a frame (default: %(default)s)")
    parser.add_argument(
        "--seconds", type=float, default=60, help="of training at most (default: %(default)s)"
    )
    parser.add_argument(
        "--curvature-lr",
        type=float,
        default=0.02,
        help="twenty times that of a run, as the film is short (default: %(default)s)",
    )
    arguments = parser.parse_args()
    graph = named_source(arguments.dataset, arguments.data_dir, CONFIGS).load()
    torch.manual_seed(0)
    graph = IdentityFeatures()(graph)
    model = FPST(graph.num_features, heads=1)
    task = Reconstruction(model, Adam(curvature_lr=arguments.curvature_lr))
    optimizer = task.configure_optimizers()
    frames: list[Frame] = []
    end = time.monotonic() + arguments.seconds
    for step in range(arguments.steps + 1):
        loss = task.training_step(graph, step)
        if step % arguments.every == 0:
            by_edge = loss.item() / task.loss_scale(graph)
            with torch.no_grad():
                points = model(graph)
            before = frames[-1] if frames else None
            frames.append(frame(step, by_edge, points, model.manifold_out, before))
        if time.monotonic() > end:
            break
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    degrees = degree(graph.edge_index[0], graph.num_nodes).clamp(min=1).numpy()
    title = f"FPS-T on {dataset_config(arguments.dataset, CONFIGS).label}"
    path = write_film(frames, degrees, title, arguments.output)
    print(f"wrote {path}: {len(frames)} frames of {frames[-1].step} steps")


if __name__ == "__main__":
    main()
