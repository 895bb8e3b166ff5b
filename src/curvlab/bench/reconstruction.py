"""Cost of reconstruction: a training step with all pairs of nodes, in time and memory."""

import argparse

from curvlab.bench.runs import build_run, training_step
from curvlab.tasks.cost.timing import median_ms, peak_memory_mb, print_table

REFERENCE = "the code of Q-GCN, a GCN on Web-Edu with all pairs: 1,850 ms and 2,200 MB a step"
CELLS = (
    ("gcn", "web_edu"),
    ("tokengt", "web_edu"),
    ("fpst", "web_edu"),
    ("fpst", "facebook"),
    ("fpst", "power"),
)


def run(args: argparse.Namespace) -> None:
    """Print a step's median time and the memory it needs beyond the graph and the model."""
    device = args.device
    rows = []
    for model, dataset in CELLS:
        step = training_step(*build_run(device, f"model={model}", f"dataset={dataset}"))
        milliseconds = median_ms({"step": step}, device, args.runs)["step"]
        memory = peak_memory_mb(step, device)
        rows.append(
            [f"{model}, {dataset}", f"{milliseconds:.0f}", f"{memory:.0f}" if memory else "-"]
        )
    print_table(
        f"A step of reconstruction with all pairs ({REFERENCE})",
        ("", "ms", "MB beyond graph and model"),
        rows,
    )
