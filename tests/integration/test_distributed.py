"""Processes that are started together end together, and the first failure is the one told."""

import time

import pytest
import torch
import two_processes as work

from curvlab.errors import UsageError
from curvlab.run.group import ProcessError, launch
from curvlab.tasks import kg_completion, reconstruction


def test_nothing_listens_but_on_loopback(tmp_path):
    """The store in this process, and what the processes exchange tensors by."""
    launch(work.note_what_listens, 2, str(tmp_path))
    for rank in range(2):
        addresses = (tmp_path / f"{rank}").read_text().split()
        assert len(addresses) >= 2, "the store and a pair of sockets of gloo"
        assert set(addresses) <= {"127.0.0.1", "::ffff:127.0.0.1"}


@pytest.mark.parametrize("first_waits", [pytest.param(False, marks=pytest.mark.nightly), True])
def test_one_that_fails_ends_all_with_what_it_raised(first_waits):
    start = time.monotonic()
    with pytest.raises(UsageError, match="the second process refuses") as raised:
        launch(work.second_refuses, 2, first_waits)
    assert "in second_refuses" in raised.value.__notes__[0]
    assert time.monotonic() - start < 60


def test_one_that_is_killed_is_named():
    with pytest.raises(ProcessError, match=r"process 1 of 2 of this run was killed, perhaps"):
        launch(work.second_is_killed, 2)


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [3, pytest.param(2, marks=pytest.mark.nightly)])
def test_every_process_has_the_loss_and_gradients_of_all_pairs(tmp_path, ranks):
    """Also where tiles cannot be shared equally, or there are fewer than processes."""
    launch(work.share_pairs, ranks, str(tmp_path), ranks)
    expected = work.pair_losses(0, 1)
    for rank in range(ranks):
        found = torch.load(tmp_path / f"pairs{rank}.pt", weights_only=True)
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.slow
def test_two_processes_share_an_evaluation_and_find_the_numbers_of_one(tmp_path, monkeypatch):
    """To the last digit: ranks of triples, the precision of a reconstruction, logits of nodes.

    Each makes its share of the blocks.
    """
    for task in (kg_completion, reconstruction):
        monkeypatch.setattr(task, "EVALUATION_ENTRIES", work.ENTRIES)
    alone = work.evaluations()
    launch(work.evaluate, 2, str(tmp_path))
    shared = [torch.load(tmp_path / f"evaluated{rank}.pt", weights_only=True) for rank in range(2)]
    for name in [name for name in alone if name.endswith(" blocks")]:
        blocks = [one.pop(name) for one in (alone, *shared)]
        assert blocks[0] == sum(blocks[1:]) >= 1
        assert blocks[2] <= blocks[1] <= blocks[2] + 1
    for one in shared:
        assert one["cat"].keys() == alone["cat"].keys() > {"mrr", "head_mrr", "routing_entropy"}
        torch.testing.assert_close(one, alone, rtol=0, atol=0)
