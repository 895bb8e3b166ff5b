"""Models that do not fit in memory are refused before they are built."""

import time

import pytest
import torch
from torch import nn

from curvlab.errors import UsageError
from curvlab.run.budget import MOST_WEIGHTS, within_memory

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.Linear(10**6, 10**7),
        lambda: nn.Parameter(torch.zeros(10**7, 10**6)),
        lambda: torch.empty(10**13, dtype=torch.float16),
    ],
)
def test_an_array_that_is_too_large_is_not_made(make):
    started = time.monotonic()
    refused = pytest.raises(UsageError, match=r"model=wide needs at least .* GB .* narrower")
    with refused, within_memory("wide", CPU):
        make()
    assert time.monotonic() - started < 1


def test_weights_count_together(monkeypatch):
    monkeypatch.setattr("curvlab.run.budget._memory", lambda _: 2 * 4 * 1000)
    with within_memory("small", CPU):
        nn.Linear(30, 30)
    with pytest.raises(UsageError, match="model=deep needs"), within_memory("deep", CPU):
        nn.Sequential(*(nn.Linear(30, 30) for _ in range(2)))


@pytest.mark.slow
def test_a_model_of_very_many_layers_is_refused_before_they_are_made():
    refused = pytest.raises(UsageError, match="model=deep would have more than")
    with refused, within_memory("deep", CPU):
        [nn.Linear(1, 1) for _ in range(100 * MOST_WEIGHTS)]


def test_what_is_built_is_the_same_and_torch_is_as_before():
    torch.manual_seed(0)
    alone = nn.Linear(3, 4)
    torch.manual_seed(0)
    with within_memory("linear", CPU):
        here = nn.Linear(3, 4)
    assert torch.equal(alone.weight, here.weight)
    assert torch.empty(3).shape == (3,)
