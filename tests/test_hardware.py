"""What a run does to its process."""

import platform
import subprocess
import sys
import tempfile

import pytest
import torch

from curvlab.errors import UsageError
from curvlab.process import default_dtype
from curvlab.run import hardware
from curvlab.run.hardware import check_sync_batch_norm, trainer_accelerator

FAULTS = """
import resource, torch
from curvlab.run.hardware import prepare_processor
prepare_processor(threads=1)
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.empty(64 * 2**20 // 4).fill_(1.0)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
print(*(faults() for _ in range(24)))
"""


@pytest.mark.slow
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="of glibc's allocator")
def test_memory_that_was_freed_is_not_fresh_from_the_system():
    """Arrays of 64 MB soon lie where earlier ones were; each page of a fresh one faults."""
    done = subprocess.run(
        [sys.executable, "-c", FAULTS], capture_output=True, text=True, check=True
    )
    first, *_, last = map(int, done.stdout.split())
    assert last < first / 10


def test_double_precision_is_not_for_metal(monkeypatch):
    assert trainer_accelerator("cpu", "64-true") == "cpu"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert trainer_accelerator("auto", "32-true") == "auto"
    assert trainer_accelerator("auto", "64-true") == "cpu"
    with pytest.raises(UsageError, match=r"Metal .* single precision .*accelerator=cpu"):
        trainer_accelerator("mps", "64-true")


def test_batch_normalisation_is_shared_by_gpus_alone():
    check_sync_batch_norm(False, "cpu")
    check_sync_batch_norm(True, "cuda")
    with pytest.raises(UsageError, match=r"^trainer.sync_batch_norm=true: .*several GPUs alone"):
        check_sync_batch_norm(True, "cpu")


def test_numbers_are_of_a_runs_type_until_it_ends():
    with default_dtype("64-true"):
        assert torch.zeros(1).dtype == torch.float64
    assert torch.zeros(1).dtype == torch.float32
    with pytest.raises(ZeroDivisionError), default_dtype("64-true"):
        _ = 1 / 0
    assert torch.zeros(1).dtype == torch.float32
    with default_dtype("bf16-mixed"):
        assert torch.zeros(1).dtype == torch.float32


def test_each_process_has_the_gpu_that_fewest_others_have(tmp_path, monkeypatch):
    """Its own one for all of its runs; one that has ended leaves its GPU to the next."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    ends = []
    monkeypatch.setattr(hardware.atexit, "register", ends.append)

    def another():
        hardware.own_gpu.cache_clear()
        return hardware.trainer_devices("auto")

    assert another() == [0]
    assert hardware.trainer_devices("auto") == [0]
    assert hardware.trainer_devices("cpu") == 1
    assert [another() for _ in range(4)] == [[1], [2], [3], [0]]
    ends.pop(2)()
    assert another() == [2]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-a,GPU-b,GPU-c,GPU-d")
    assert another() == [0], "they are others"
    hardware.own_gpu.cache_clear()
    for end in ends:
        end()
    assert not list(tmp_path.rglob("*.lease"))
