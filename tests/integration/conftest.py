"""Fixtures of real runs: in this process where that is enough, else by train.py."""

import pytest
import torch
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from tiny_runs import Command, composed

from curvlab.results.folder import RunDirectory
from curvlab.run.command import Command as OneRun
from curvlab.run.train import train


@pytest.fixture(autouse=True)
def _leaves_nothing(monkeypatch):
    """A run in this process finds no mirror; afterwards the process is as before."""
    monkeypatch.delenv("CURVLAB_MIRROR", raising=False)
    threads = torch.get_num_threads()
    yield
    HydraConfig.instance().cfg = None
    # A run sets these for its process.
    torch.set_num_threads(threads)
    torch.set_flush_denormal(False)  # other tests need denormals
    torch.use_deterministic_algorithms(False)


@pytest.fixture
def two_threads():
    """Torch computes on two threads."""
    torch.set_num_threads(2)


@pytest.fixture
def run_here(tmp_path):
    """Call `train` in this process: `run_here("model=gcn", ...)` returns the result.

    The run's folder is `tmp_path / "run"`, its data `tmp_path / "data"`.
    """

    def run(*words: str, folder: str = "run", mode: RunMode = RunMode.RUN):
        return train(OneRun.from_hydra(composed(tmp_path, words, mode, folder)))

    return run


@pytest.fixture
def folder(tmp_path):
    """Where `run_here` leaves its run."""
    return tmp_path / "run"


@pytest.fixture
def watch(monkeypatch):
    """`watch(owner, name, note)`: calls of a function are noted, by its arguments, and made."""

    def watch(owner, name, note):
        original = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *words: (note(*words), original(*words))[1])

    return watch


@pytest.fixture
def keeps_last(monkeypatch):
    """Runs leave their last checkpoint, as if they were killed before its removal."""
    monkeypatch.setattr(RunDirectory, "drop_last", lambda _: None)


@pytest.fixture
def command(tmp_path):
    """See `Command`."""
    return Command(tmp_path)


@pytest.fixture
def prepared(tmp_path):
    """`prepared(words)`: configuration, result and folder as `train` hands them to processes."""

    def make(*words):
        config = composed(tmp_path, words)
        folder = RunDirectory(tmp_path / "run")
        result = OneRun.from_hydra(config).initial_result()
        folder.prepare(result, fresh=False)
        return config, result, folder

    return make
