"""Batches of worker processes that find no room in shared memory."""

from pathlib import Path

import pytest

from curvlab.errors import UsageError
from curvlab.run.train import _fit


class Trainer:
    """Fails to fit with an error."""

    def __init__(self, error):
        self.error = error

    def fit(self, *_, **__):
        raise self.error


SAID = (
    "unable to allocate shared memory(shm) for file </torch_1_2_1>: No space left on device (28)",
    "DataLoader worker (pid 7) is killed by signal: Bus error. It is possible that dataloader's "
    "workers are out of shared memory. Please try to raise your shared memory limit.",
)


@pytest.mark.parametrize("checkpoint", [None, Path("last.ckpt")])
@pytest.mark.parametrize("text", SAID)
def test_full_shared_memory_is_a_sentence_that_says_what_to_do(text, checkpoint):
    with pytest.raises(UsageError, match=r"/dev/shm.*batching\.workers=0"):
        _fit(Trainer(RuntimeError(text)), None, None, checkpoint, None)


def test_another_error_keeps_its_text():
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        _fit(Trainer(RuntimeError("shapes cannot be multiplied")), None, None, None, None)
