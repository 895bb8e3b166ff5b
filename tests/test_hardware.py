"""What a run does to its process."""

import platform
import subprocess
import sys

import pytest

FAULTS = """
import resource, torch
from curvlab.hardware import prepare_processor
prepare_processor(threads=1)
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.empty(64 * 2**20 // 4).fill_(1.0)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
print(*(faults() for _ in range(24)))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="of glibc's allocator")
def test_memory_that_was_freed_is_not_fresh_from_the_system():
    """Arrays of 64 MB soon lie where earlier ones were; each page of a fresh one faults."""
    done = subprocess.run(
        [sys.executable, "-c", FAULTS], capture_output=True, text=True, check=True
    )
    first, *_, last = map(int, done.stdout.split())
    assert last < first / 10
