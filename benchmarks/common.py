"""What the benchmarks share: runs as `train.py` builds them, the calibration, tables."""

from collections.abc import Sequence

import torch
from lightning import LightningModule
from rich import box
from rich.console import Console
from rich.table import Table
from torch_geometric.data import Data

from curvlab.config.compose import compose
from curvlab.run.parts import build_data, build_task
from curvlab.tasks.cost.timing import median_ms

console = Console(width=max(Console().width, 110))  # a table of ratios does not fit 80 columns


def calibrate(device: torch.device) -> float:
    """Print what this machine is worth: a 1,024 x 1,024 float32 product, threads, versions.

    Returns:
        The milliseconds of the product.
    """
    a = torch.randn(1024, 1024, device=device)
    product = median_ms({"product": lambda: a @ a}, device)["product"]
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
    console.print(
        f"calibration: 1,024 x 1,024 float32 product {product:.2f} ms on {name}, "
        f"{torch.get_num_threads()} threads, torch {torch.__version__}",
        highlight=False,
        soft_wrap=True,
    )
    return product


def build_run(device: torch.device, *overrides: str) -> tuple[LightningModule, Data, Data]:
    """Build a run's task, its first training batch and what it is evaluated on, on the device."""
    torch.manual_seed(0)
    config = compose(overrides)
    data = build_data(config)
    data.prepare_data()
    data.setup()
    task = build_task(config, data).to(device)
    batch = next(iter(data.train_dataloader()))
    batch = data.transfer_batch_to_device(batch, device, 0)
    return task, batch, data.evaluation_batch(batch)


def verdict(value: float, target: float, at_least: bool = False) -> str:
    """`value` against a target, as a cell of a table."""
    met = value >= target if at_least else value <= target
    sign = ">=" if at_least else "<="
    colour, relation = ("green", sign) if met else ("red", f"not {sign}")
    return f"[{colour}]{value:.2f} {relation} {target:g}[/]"


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table whose first column is text and whose others are figures."""
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i == 0 else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    console.print(table, soft_wrap=True)
