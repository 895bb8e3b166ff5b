"""What a run does to its process."""

import multiprocessing

import pytest
import torch

from curvlab.errors import UsageError
from curvlab.run.hardware import run_device, trainer_accelerator, trainer_devices


def test_double_precision_is_not_for_metal(monkeypatch):
    assert trainer_accelerator("cpu", "64-true") == "cpu"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert trainer_accelerator("auto", "32-true") == "auto"
    assert trainer_accelerator("auto", "64-true") == "cpu"
    with pytest.raises(UsageError, match=r"Metal .* single precision .*accelerator=cpu"):
        trainer_accelerator("mps", "64-true")


@pytest.mark.parametrize("accelerator", ["cuda", "gpu", "mps"])
def test_a_device_that_is_not_there_is_refused(monkeypatch, accelerator):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    with pytest.raises(UsageError, match=f"trainer.accelerator={accelerator}.*use auto or cpu"):
        run_device(accelerator)


def test_gpu_is_the_accelerator_that_is_there(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert run_device("gpu") == run_device("auto") == torch.device("mps")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert run_device("gpu") == run_device("auto") == torch.device("cuda")


def test_each_process_of_a_launcher_has_a_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    found = []
    for name in ("MainProcess", "LokyProcess-1", "LokyProcess-3", "LokyProcess-5"):
        monkeypatch.setattr(multiprocessing.current_process(), "_name", name)
        found.append(trainer_devices("auto"))
    assert found == [[0], [0], [2], [1]]
    assert trainer_devices("gpu") == trainer_devices("cuda") == [1]
    assert (trainer_devices("cpu"), trainer_devices("auto", 2)) == (1, 2)
