"""What a run says and shows: lines on the terminal, embeddings and pictures in its folder."""

from pathlib import Path

import numpy as np
import torch
from lightning import LightningModule
from lightning.pytorch.loggers import Logger
from rich.console import Console
from torch_geometric.data import Data

from curvlab.manifolds import Stereographic
from curvlab.results import FILE, Result

_console = Console(soft_wrap=True, highlight=False)


def starting(label: str, result: Result, folder: Path, resumed: bool) -> None:
    """Say what is about to run."""
    how = "going on from the last checkpoint" if resumed else "starting"
    _console.print(f"{label}, seed {result.seed}, {result.manifold}: {how} in {shown(folder)}")


def already_done(result: Result, folder: Path) -> None:
    """Say that a run is not repeated."""
    _console.print(
        f"{result.model} on {result.dataset}, seed {result.seed}: {_outcome(result)} already, "
        f"{shown(folder / FILE)} (rerun=true repeats it)"
    )


def finished(result: Result, folder: Path) -> None:
    """Say how a run ended and where its files are."""
    _console.print(f"{result.model} on {result.dataset}, seed {result.seed}: {_outcome(result)}")
    if result.status == "finished":
        kappas = [f"{k:.3g}" for values in result.curvatures.values() for k in values]
        facts = [f"curvatures {', '.join(kappas)}"] if kappas else []
        facts += [
            f"{result.parameters:,} parameters",
            f"{result.ms_per_step:.1f} ms a step",
            f"{result.wall_seconds:.0f} s",
            f"{result.peak_memory_mb:,.0f} MB",
        ]
        _console.print("  " + ", ".join(facts))
    _console.print(f"  result   {shown(folder / FILE)}")
    for picture in sorted((folder / "plots").glob("*.png")):
        _console.print(f"  picture  {shown(picture)}")


def _outcome(result: Result) -> str:
    if result.status != "finished":
        return f"{result.status.replace('_', ' ')}: {result.error}"
    return ", ".join(
        f"{'mAP' if name == 'map' else name} {value:.2f}"
        for name, value in result.metrics["test"].items()
    )


def shown(path: Path) -> str:
    """A path as one would type it here."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


@torch.no_grad()
def save_embeddings(task: LightningModule, graph: Data, folder: Path) -> None:
    """Write `embeddings.npz`: the points, the space and the edges, as the plots need them."""
    task.eval()
    space = task.encoder.manifold_out
    arrays = {
        "embeddings": task.encoder(graph).float().cpu().numpy(),
        "edge_index": graph.edge_index.cpu().numpy(),
    }
    if isinstance(space, Stereographic):
        arrays["kappa"] = space.kappa.detach().cpu().numpy()
    else:
        arrays["conformal_factor"] = np.array(space.scale)
    np.savez_compressed(folder / "embeddings.npz", **arrays)


def draw(label: str, folder: Path, logger: Logger | None) -> None:
    """Draw the curves and the embedding; hand the pictures to W&B when it is on."""
    from curvlab.analysis.plots import plot_run

    pictures = plot_run(folder, title=label)
    if logger is not None and hasattr(logger, "log_image"):
        for picture in pictures:
            logger.log_image(picture.stem, [str(picture)])
