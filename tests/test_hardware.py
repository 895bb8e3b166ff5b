"""What a run does to its process, and the peak of the tensors that it makes."""

import multiprocessing
from types import SimpleNamespace

import pytest
import torch

from curvlab.data.datasets.synthetic_large import SyntheticLarge
from curvlab.data.loaders.datamodule import load_source
from curvlab.errors import UsageError
from curvlab.memory import PeakBytes
from curvlab.run.hardware import choose_device, trainer_devices


def test_double_precision_is_not_for_metal(monkeypatch):
    assert choose_device("cpu", "64-true") == torch.device("cpu")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert choose_device("auto", "32-true") == torch.device("mps")
    assert choose_device("auto", "64-true") == torch.device("cpu")
    with pytest.raises(UsageError, match=r"Metal .* single precision .*accelerator=cpu"):
        choose_device("mps", "64-true")


@pytest.mark.parametrize("accelerator", ["cuda", "gpu", "mps"])
def test_a_device_that_is_not_there_is_refused(monkeypatch, accelerator):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    with pytest.raises(UsageError, match=f"trainer.accelerator={accelerator}.*use auto or cpu"):
        choose_device(accelerator)


def test_gpu_is_the_accelerator_that_is_there(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert choose_device("gpu") == choose_device("auto") == torch.device("mps")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert choose_device("gpu") == choose_device("auto") == torch.device("cuda")


def test_each_process_of_a_launcher_has_a_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    found = []
    for name in ("MainProcess", "LokyProcess-1", "LokyProcess-3", "LokyProcess-5"):
        monkeypatch.setattr(multiprocessing.current_process(), "_name", name)
        found.append(trainer_devices(torch.device("cuda")))
    assert found == [[0], [0], [2], [1]]
    assert trainer_devices(torch.device("cpu")) == 1
    assert trainer_devices(torch.device("cuda"), 2) == 2


def test_tensors_that_are_alive_at_once_count_and_views_do_not():
    x = torch.zeros(1000)
    with PeakBytes() as made:
        y = x + 1
        y.view(10, 100).add_(1)
        for _ in range(3):
            z = y.double()
            del z
    assert made.peak == 4000 + 8000


def test_a_matrix_product_of_autograd_counts_what_it_keeps_until_it_is_freed():
    x = torch.zeros(10, 10, requires_grad=True)
    with PeakBytes() as made:
        y = x.exp().exp()
        assert y.requires_grad
        del y
        x.exp()
    assert made.peak == 2 * 400


def test_a_graph_that_does_not_fit_is_refused_before_it_is_made(monkeypatch):
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=24e9))
    monkeypatch.setattr(SyntheticLarge, "load", lambda _: pytest.fail("it is made"))
    with pytest.raises(UsageError, match=r"the graph needs at least 31\.4 GB and 24\.0 GB"):
        load_source(SyntheticLarge(num_nodes=50_000_000))
