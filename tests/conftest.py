"""Fixtures that all tests share: where raw data is, if it is anywhere."""

import gc
import os
import runpy
import shutil
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

if gc.isenabled():  # collections during the imports take seconds; enabled after collecting tests
    gc.disable()

# Threads that wait for others leave them the cores, which a whole suite keeps busy.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
import torch

with warnings.catch_warnings():
    # These libraries warn about TorchScript when they are imported; ours must not warn at all.
    warnings.simplefilter("ignore")
    import lightning  # noqa: F401
    import torch_geometric  # noqa: F401

from composing import ROOT  # which makes every composition of this process faster
from curvlab.cpp import choose_kernels, use_kernels
from curvlab.tasks.pairs import fused

# Nobody cuts the power: what is written is on the disk soon enough, also when a process is killed.
os.fsync = lambda handle: None

INTEGRATION = ROOT / "tests" / "integration"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as slow what runs as a whole, unless it is a smoke test, and what reads raw data.

    What needs a GPU is skipped where there is none. Of the cases of a test that is `sampled(3)`
    every third is for the day, the others are nightly.
    """
    cases: Counter[str] = Counter()
    for item in items:
        sampled = item.get_closest_marker("sampled")
        if sampled is not None:
            test = item.nodeid.partition("[")[0]
            if cases[test] % sampled.args[0]:
                item.add_marker("nightly")
            cases[test] += 1
        run = INTEGRATION in item.path.parents and item.get_closest_marker("smoke") is None
        nightly = item.get_closest_marker("nightly") is not None
        if run or nightly or "mirror" in getattr(item, "fixturenames", ()):
            item.add_marker("slow")
        if item.get_closest_marker("gpu") is not None and not torch.cuda.is_available():
            item.add_marker(pytest.mark.skip(reason="there is no GPU"))


def pytest_collection_finish() -> None:
    """Let collections skip what is there before the first test."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def mirror() -> Path:
    """Folder of raw files: CURVLAB_MIRROR, or `shared/data` beside the repository; or skip."""
    folder = Path(os.environ.get("CURVLAB_MIRROR") or ROOT.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.skip("no mirror of the raw data: set CURVLAB_MIRROR to its folder")
    return folder


@pytest.fixture(scope="session", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Commands share a cache of compositions that is no user's."""
    os.environ["CURVLAB_CACHE"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(autouse=True)
def _seed() -> None:
    """Let torch draw the same numbers, of the same type, in a test whichever ran before it."""
    torch.set_default_dtype(torch.float32)
    torch.manual_seed(0)


@pytest.fixture
def float64() -> Iterator[None]:
    """Make float64 the default type for the time of a test, so that digits can be asserted."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


@pytest.fixture
def float32(float64: None) -> None:
    """Make float32 the default type again, in a module whose tests have float64."""
    torch.set_default_dtype(torch.float32)


@pytest.fixture
def fresh_compiler() -> Iterator[None]:
    """Nothing is compiled before a test, nor after it."""
    torch.compiler.reset()
    yield
    torch.compiler.reset()


@pytest.fixture
def cpp_kernels() -> Iterator[None]:
    """C++ kernels, as in a long run; skips where no compiler works."""
    with use_kernels("auto"):
        if fused.LIBRARY.functions(torch.zeros(1, dtype=torch.float32).requires_grad_()) is None:
            pytest.skip("there is no working C++ compiler")
        choose_kernels("auto")  # none was called yet
        yield


@pytest.fixture
def plain_kernels() -> Iterator[None]:
    """No C++ kernels, whichever an earlier test has chosen."""
    with use_kernels("plain"):
        yield


@pytest.fixture
def configs(tmp_path) -> Path:
    """A copy of the configurations, which may be changed."""
    return Path(shutil.copytree(ROOT / "configs", tmp_path / "configs"))


@pytest.fixture
def script(tmp_path, monkeypatch, capsys):
    """Run a script in an empty folder, without a mirror, to its exit code; what it said."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CURVLAB_MIRROR", raising=False)

    def run(name, *arguments, code=0):
        path = str(ROOT / "scripts" / name)
        monkeypatch.setattr(sys, "argv", [path, *arguments])
        with pytest.raises(SystemExit) as left:
            runpy.run_path(path, run_name="__main__")
        said = capsys.readouterr()
        assert (left.value.code or 0) == code, said
        return said

    return run
