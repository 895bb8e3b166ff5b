"""A sweep by `submitit_slurm` and a run by srun, on a real SLURM of one node."""

import json
import os
import re
import subprocess
import sys

import pytest
import slurm
from test_ddp_run import PAIR
from tiny_runs import TREE

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(
        bool(slurm.missing()), reason="needs Debian's slurm-wlm and munge, and root"
    ),
]

SLEEPS = '''
import time
from lightning import Callback


class Sleeps(Callback):
    """Takes a second an epoch, on fast machines too."""

    def on_train_epoch_end(self, trainer, module):
        time.sleep(1)
'''

RUN = (
    *TREE,
    "model=mlp",
    "trainer.plots=false",
    "trainer.progress=false",
    "trainer.max_steps=400",
    "trainer.patience=400",  # it takes all of its 80 epochs
)
LAUNCHER = (
    "hydra/launcher=submitit_slurm",
    "hydra.launcher.partition=main",
    "hydra.launcher.cpus_per_task=1",
    "hydra.launcher.mem_gb=null",
    "hydra.launcher.timeout_min=2",
    "hydra.launcher.signal_delay_s=40",
    "hydra.launcher.max_num_timeout=20",
)


@pytest.fixture
def cluster(command):
    """A cluster whose jobs have the environment of `command`."""
    with slurm.cluster(command.folder / "slurm") as environment:
        environment["PYTHONPATH"] = os.pathsep.join([str(command.folder), *sys.path])
        yield command.environment | environment


def run(command, environment, *line):
    """Run a line to its end; what it said."""
    done = subprocess.run(
        line,
        check=False,
        cwd=command.folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=2400,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_cell_that_reaches_its_time_limit_is_requeued_and_ends_with_the_same_score(
    command, cluster, run_here
):
    (command.folder / "sleeping.py").write_text(SLEEPS)
    slow = "+callbacks.sleeps._target_=sleeping.Sleeps"
    words = command.line("-m", "seed=0,1", *RUN, slow, *LAUNCHER)
    said = run(command, cluster, sys.executable, *words)
    assert re.search(r"^sweep of 2 cells: 2 finished$", said, re.MULTILINE)
    logs = [path.read_text() for path in command.outputs.rglob("*_log.out")]
    resumed = [log for log in logs if "resuming from the last checkpoint" in log]
    assert len(resumed) == 2
    for result in command.results().values():
        alone = run_here(*RUN, f"seed={result['seed']}", folder=f"alone{result['seed']}")
        assert json.dumps(result["metrics"]) == json.dumps(alone.metrics)


def test_srun_starts_one_run_of_two_processes(command, cluster, run_here):
    shared = [word for word in PAIR if word != "trainer.devices=2"]
    said = run(command, cluster, "srun", "-n2", sys.executable, *command.line(*shared))
    assert said.count("starting in") == 1
    (result,) = command.results().values()
    assert json.dumps(result["metrics"]) == json.dumps(run_here(*PAIR, folder="alone").metrics)
