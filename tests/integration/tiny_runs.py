"""Real runs on a graph of sixty nodes: in this process where that is enough, else by train.py."""

import json
import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from forked import Process
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import open_dict, read_write

from composing import ROOT, with_hydra
from curvlab.files import find_below

TINY = (
    "dataset.source.num_nodes=60",
    "trainer.max_steps=20",
    "trainer.steps_per_epoch=5",
    "trainer.accelerator=cpu",
)
FAST = (*TINY, "model=mlp", "trainer.plots=false")
TREE = (
    "dataset=disease_synthetic",
    "dataset.source.depth=3",
    "dataset.source.features=12",
    "split=random_60_20_20",
    "trainer.max_steps=40",
    "trainer.steps_per_epoch=5",
    "trainer.accelerator=cpu",
)  # a graph of some sixty nodes with labels
LARGE = (
    "dataset=synthetic_large",
    "dataset.source.num_nodes=600",
    "dataset.source.classes=3",
    "dataset.source.features=8",
    "dataset.source.signal=2.0",
    "trainer.max_steps=40",
    "trainer.steps_per_epoch=10",
    "trainer.accelerator=cpu",
    "trainer.plots=false",
)  # for mini-batches; without `batching=` the whole graph
PIXELS = (
    "dataset=filter_images",
    "dataset.source.generated=true",
    "dataset.source.side=12",
    "trainer.max_steps=60",
    "trainer.steps_per_epoch=20",
    "trainer.accelerator=cpu",
    "trainer.plots=false",
    "optimizer.lr=0.02",
)
TRIPLES = (
    "dataset=synthetic_kg",
    "dataset.source.groups=6",
    "dataset.train_triples=224",
    "batching.size=32",
    "trainer.accelerator=cpu",
)


def composed(root: Path, words: Sequence[str], mode: RunMode = RunMode.RUN, folder: str = "run"):
    """What Hydra hands to `train` in a folder of a root, with its own part set as during a run."""
    places = (f"paths.data_dir={root / 'data'}", f"paths.output_dir={root}")
    config = with_hydra(*places, *words)
    with read_write(config), open_dict(config):
        config.hydra.runtime.output_dir = str(root / folder)
        config.hydra.mode = mode
    HydraConfig.instance().set_config(config)  # which copies its part
    with read_write(config), open_dict(config):
        del config["hydra"]
    return config


class Command:
    """`python train.py WORDS` with outputs and data in a folder of the test's own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.outputs = folder / "outputs"
        hidden = ("CURVLAB_MIRROR", "CURVLAB_REPORTED", "HYDRA_FULL_ERROR")
        kept = {k: v for k, v in os.environ.items() if k not in hidden and "WANDB" not in k}
        self.environment = {**kept, "OMP_NUM_THREADS": "1", "HOME": str(folder), "COLUMNS": "500"}

    def line(self, *words: str) -> list[str]:
        """The words of the command."""
        places = [f"paths.output_dir={self.outputs}", f"paths.data_dir={self.folder / 'data'}"]
        return [str(ROOT / "train.py"), *places, *words]

    def start(self, *words: str) -> Process:
        """Start it and do not wait."""
        return Process(self.line(*words), self.folder, self.environment)

    def __call__(self, *words: str, code: int = 0) -> subprocess.CompletedProcess:
        """Run it to its end, which has this exit code."""
        done = self.start(*words).done()
        assert done.returncode == code, done.stdout + done.stderr
        return done

    def ended_by(self, number: int, *words: str, runs: int = 1) -> tuple[int | None, str, str]:
        """Start it and send it a signal once its runs have checkpoints; its code, what it said."""
        process = self.start(*words)
        deadline = time.monotonic() + 120
        while len(find_below(self.outputs, "checkpoints/earlier.ckpt")) < runs:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.005)
        process.send_signal(number)
        said, errors = process.communicate()
        return process.returncode, said, errors

    def start_verb(self, *words: str) -> Process:
        """Start `python -m curvlab VERB ...` and do not wait."""
        line = [str(ROOT / "src/curvlab/__main__.py"), *words]
        return Process(line, self.folder, self.environment)

    def verb(self, *words: str) -> subprocess.CompletedProcess:
        """Run `python -m curvlab VERB ...` to its end."""
        return self.start_verb(*words).done()

    def results(self) -> dict[str, dict]:
        """All result files below the outputs, by their folders."""
        return {
            str(path.parent.relative_to(self.outputs)): json.loads(path.read_text())
            for path in find_below(self.outputs, "result.json")
        }
