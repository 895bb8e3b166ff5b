"""The verb `train` as a function: `curvlab.train("model=fpst", "dataset=cora")`."""

import io
from functools import partial
from hashlib import sha256
from pathlib import Path

import torch
from lightning.pytorch.utilities.seed import isolate_rng
from torch_geometric.data import Data

from curvlab.cli.job import call_as_job
from curvlab.cli.overrides import check_overrides, keep_folder, read_overrides
from curvlab.config.compose import compose
from curvlab.errors import UsageError
from curvlab.files import atomic_path
from curvlab.run.command import complete
from curvlab.run.load import Run, load
from curvlab.run.train import train as train_command


def train(*overrides: str, data: Data | None = None) -> Run:
    """Train in this process; return the finished run, as `curvlab.load` does.

        run = curvlab.train("model=fpst", "dataset=cora", "trainer.max_steps=100")
        run = curvlab.train("model=gcn", data=graph)

    A run that is finished below `paths.output_dir` is not trained again.

    Args:
        *overrides: Overrides of `curvlab train`, without a sweep.
        data: Your graph: `edge_index`, and optionally `x`, `y` and masks. It is saved below
            `paths.output_dir`, from where the run reads it.

    Raises:
        UsageError: An override is wrong, or the graph is malformed.
        RunFailedError: The run diverged or ran out of memory.
    """
    for override in overrides:
        if not isinstance(override, str):
            raise UsageError(f"{type(override).__name__} is not an override: pass a graph as data=")
    arguments = read_overrides(keep_folder(overrides))
    if data is not None:
        file = _save(data, compose(arguments).paths.output_dir)
        arguments += ["dataset=pyg", f"dataset.path={file}"]
    of_hydra = [argument for argument in arguments if argument.startswith("hydra")]
    run = check_overrides(arguments, multirun=False, complete=partial(complete, hydra=of_hydra))
    threads = torch.get_num_threads()
    strict = torch.are_deterministic_algorithms_enabled()
    try:
        with isolate_rng():
            call_as_job(train_command, run, logs=False)
    finally:
        torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(strict)
    return load(run.folder(multirun=False), trust=True)


def _save(data: Data, outputs: str) -> Path:
    """Save a graph to a file named after its content."""
    buffer = io.BytesIO()
    torch.save(data.clone().cpu(), buffer)
    file = Path(outputs, "graphs", f"graph-{sha256(buffer.getvalue()).hexdigest()[:8]}.pt")
    with atomic_path(file) as partial:
        partial.write_bytes(buffer.getvalue())
    return file
