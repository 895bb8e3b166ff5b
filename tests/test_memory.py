"""Free memory: of the machine, of control groups in both versions, and of the address space."""

import subprocess
import sys

import psutil
import pytest
import torch

from curvlab import memory
from curvlab.errors import UsageError
from curvlab.memory import cgroup_limits, check_memory, free_memory

GB = 10**9


def files(root, **contents):
    for name, text in contents.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")


V2 = "sys/fs/cgroup"
V1 = "sys/fs/cgroup/memory"


@pytest.mark.parametrize(
    ("group", "limits", "expected"),
    [
        ("0::/", {f"{V2}/memory.max": GB, f"{V2}/memory.current": 400}, [(GB, 400)]),
        ("0::/a/b", {f"{V2}/a/memory.max": GB, f"{V2}/a/memory.current": 5}, [(GB, 5)]),
        ("0::/gone", {f"{V2}/memory.max": GB, f"{V2}/memory.current": 5}, [(GB, 5)]),
        ("0::/", {f"{V2}/memory.max": "max", f"{V2}/memory.current": 5}, []),
        (
            "0::/",
            {
                f"{V2}/memory.max": GB,
                f"{V2}/memory.current": 700,
                f"{V2}/memory.stat": "anon 100\ninactive_file 600",
            },
            [(GB, 100)],
        ),
        (
            "3:cpu:/x\n5:memory:/docker/1",
            {
                f"{V1}/docker/1/memory.limit_in_bytes": GB,
                f"{V1}/docker/1/memory.usage_in_bytes": 900,
                f"{V1}/docker/1/memory.stat": "total_inactive_file 200",
            },
            [(GB, 700)],
        ),
        ("3:cpu:/x", {}, []),
    ],
)
def test_limits_of_control_groups(tmp_path, group, limits, expected):
    files(tmp_path, **{"proc/self/cgroup": group, **limits})
    assert [*cgroup_limits(tmp_path)] == expected


def test_without_control_groups_there_is_no_limit(tmp_path):
    assert [*cgroup_limits(tmp_path)] == []


def test_a_container_is_refused_what_the_machine_has(monkeypatch):
    monkeypatch.setattr(memory, "cgroup_limits", lambda: iter([(GB, GB // 4)]))
    assert free_memory() <= 3 * GB // 4 <= psutil.virtual_memory().total
    with pytest.raises(UsageError, match=r"the graph needs at least 5\.0 GB and 0\.[0-8] GB are"):
        check_memory("the graph", 5 * GB, torch.device("cpu"), "choose a smaller one")


@pytest.mark.skipif(sys.platform == "win32", reason="no limits of address spaces")
def test_a_limit_of_the_address_space_counts():
    code = (
        "import resource, psutil; from curvlab.memory import free_memory; "
        "size = psutil.Process().memory_info().vms + 2**28; "
        "resource.setrlimit(resource.RLIMIT_AS, (size, size)); print(free_memory())"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 0 <= int(found.stdout) <= 2**28
