"""Leases of processes that are no more."""

import os
from pathlib import Path

from curvlab.results.leases import take


def abandon(path: Path) -> None:
    """Leave a lease as a process does that is killed."""
    child = os.fork()
    if child == 0:
        lease = take(path)
        os._exit(0 if lease.lock.is_locked else 1)  # which gives nothing back
    assert os.waitpid(child, 0)[1] == 0
    assert path.exists()
