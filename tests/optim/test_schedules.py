"""Schedules of the learning rate."""

import pytest
import torch

from curvlab.optim import LowerOnce


@pytest.mark.parametrize(("after", "last"), [(0.5, 4), (0.25, 2), (0.55, 5)])
def test_the_rate_falls_once_after_a_share_of_the_steps(after, last):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=2.0)
    schedule, rates = LowerOnce(factor=0.1, after=after).build(optimizer, steps=8), []
    for _ in range(8):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    assert rates == pytest.approx([2.0] * last + [0.2] * (8 - last))
