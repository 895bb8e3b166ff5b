"""Runs whose processes torchrun or srun has started: the score of one command, and how they end."""

import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import time

import pytest
from forked import Process
from test_ddp_run import PAIR
from torch.distributed import PrefixStore, TCPStore

from curvlab.cli import train
from curvlab.files import find_below
from curvlab.run.messages import read_error

SHARED = tuple(word for word in PAIR if word != "trainer.devices=2")
LONG = (*SHARED, "trainer.max_steps=150")


@pytest.fixture
def port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def under_srun(rank, port):
    """What srun tells each of two processes on one machine."""
    return {
        "SLURM_JOB_ID": "4711",
        "SLURM_PROCID": str(rank),
        "SLURM_LOCALID": str(rank),
        "SLURM_NODEID": "0",
        "SLURM_STEP_NUM_TASKS": "2",
        "SLURM_STEP_NUM_NODES": "1",
        "MASTER_PORT": str(port),
    }


def srun(command, port, line):
    """Two processes as srun starts them."""
    return [
        Process(line, command.folder, command.environment | under_srun(rank, port))
        for rank in range(2)
    ]


def torchrun(command, *words):
    """An agent of torchrun with its processes."""
    line = [sys.executable, "-m", "torch.distributed.run", *words]
    environment = command.environment | {"PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(
        line,
        cwd=command.folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


class Touch:
    """A pickle that makes a file."""

    def __reduce__(self):
        return os.system, ("touch changed",)


def test_srun_starts_the_run_of_one_command(command, run_here, port):
    first, second = srun(command, port, command.line(*SHARED))
    said, errors = first.communicate()
    assert first.returncode == 0, errors
    assert second.communicate() == ("", "")
    assert second.returncode == 0
    assert said.count("starting in") == 1
    (result,) = command.results().values()
    alone = run_here(*PAIR, folder="alone")
    assert result["metrics"] == alone.metrics
    assert result["config_hash"] == alone.config_hash


@pytest.mark.nightly
def test_torchrun_on_two_nodes_starts_the_run_of_one_command(command, run_here, port):
    rendezvous = ("--rdzv-backend=c10d", f"--rdzv-endpoint=localhost:{port}", "--rdzv-id=x")
    agent = ("--nnodes=2", "--nproc-per-node=1", "--local-addr=localhost", *rendezvous)
    started = [torchrun(command, *agent, *command.line(*SHARED)) for _ in range(2)]
    said = "".join(process.communicate(timeout=240)[0] for process in started)
    assert [process.returncode for process in started] == [0, 0], said
    assert said.count("starting in") == 1
    (result,) = command.results().values()
    assert result["metrics"] == run_here(*PAIR, folder="alone").metrics


@pytest.mark.nightly
def test_a_killed_agent_leaves_a_run_that_goes_on(command, run_here):
    with torchrun(command, "--standalone", "--nproc-per-node=2", *command.line(*LONG)) as agent:
        while not find_below(command.outputs, "last.ckpt"):
            assert agent.poll() is None
            time.sleep(0.05)
        agent.send_signal(signal.SIGKILL)
        agent.communicate()
    done = command(*LONG, "trainer.devices=2")  # waits for the end of what holds the folder
    assert "resuming from the last checkpoint" in done.stdout
    (resumed,) = command.results().values()
    whole = run_here(*LONG, "trainer.devices=2", folder="whole")
    assert json.dumps(resumed["metrics"]) == json.dumps(whole.metrics)


def test_a_number_of_devices_that_was_not_started_is_refused(capsys, monkeypatch):
    monkeypatch.setattr(train, "group", lambda: (0, 2))
    monkeypatch.setattr(train, "end_group_at_exit", lambda: None)
    monkeypatch.setattr(train.signals, "install", lambda **_: None)
    with pytest.raises(SystemExit):
        train.main(["trainer.devices=3"])
    assert "trainer.devices=3, but 2 processes were started" in capsys.readouterr().err


@pytest.mark.parametrize("named", ["a pickle", "a class"])
def test_a_message_of_another_program_runs_nothing_and_gets_a_sentence(command, port, named):
    """The test has the store of the first process, and dispatches to the second."""
    store = PrefixStore("curvlab", TCPStore("127.0.0.1", port, is_master=True))
    message = pickle.dumps(Touch())
    if named == "a class":
        run = {"config": {"optimizer": {"_target_": "os.system", "command": "touch changed"}}}
        message = json.dumps(run)
    store.set("0", message)
    words = command.line(*SHARED)
    second = Process(words, command.folder, command.environment | under_srun(1, port))
    assert second.communicate() == ("", "")
    assert second.returncode == 1
    said = str(read_error(store.get("failed").decode()))
    assert said.startswith("a message in the store of this run's processes")
    assert "\n" not in said
    assert not (command.folder / "changed").exists()
