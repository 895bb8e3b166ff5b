"""The processes of one run that torchrun or srun has started, on one machine or several.

The first process is the run: it reads the command line, holds the folder, speaks and writes. The
others read no command line. They wait for the work that the first one hands out through the store
of torch.distributed, so that all have the same configuration.
"""

import atexit
import os
import pickle
import socket
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from io import StringIO
from itertools import count
from threading import Thread
from typing import Any

import psutil

LOOPBACK = "127.0.0.1"
AGENT = "TORCHELASTIC_USE_AGENT_STORE"
"""Tells torch that the store is there already, and that no process is to open one."""

WAIT = timedelta(days=30)
"""How long a process waits for work: the first one may be waiting for another run's folder."""

FAILED = "failed"
"""The store's key for what a process has raised."""

LOST = "Connection closed by peer"
"""What a process says of another one that was killed."""


class ProcessError(RuntimeError):
    """A process of a run ended without saying why, as one that is killed does."""


@dataclass(frozen=True)
class Group:
    """A group as its launcher has started it.

    Attributes:
        rank: the number of this process.
        size: how many there are.
        nodes: on how many machines.
    """

    rank: int
    size: int
    nodes: int

    def lead(self, work: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        """Call `work(rank, *arguments)` in every process, in this one with rank 0.

        Raises:
            Exception: what this process raises, or another one has raised before.
            ProcessError: another process was killed.
        """
        store = _store()
        store.set(str(next(_orders)), pickle.dumps((work, arguments)))
        try:
            work(0, *arguments)
        except Exception as error:
            if store.check([FAILED]):
                first, trace = pickle.loads(store.get(FAILED))
                first.add_note(trace)
                raise first from error
            if LOST in str(error):
                raise ProcessError(
                    "another process of this run was killed, perhaps for want of memory; the same "
                    "command goes on from the last checkpoint"
                ) from error
            raise

    def ends(self) -> None:
        """Let the others end with this process, the first one."""
        Thread(target=_end_with_launcher, daemon=True).start()
        atexit.register(lambda: _store().set(str(next(_orders)), pickle.dumps(None)))

    def follow(self) -> None:
        """Do what the first process hands out, until it ends."""
        Thread(target=_end_with_launcher, daemon=True).start()
        store = _store()
        for order in map(str, _orders):
            store.wait([order], WAIT)
            handed = pickle.loads(store.get(order))
            if handed is None:
                return
            work, arguments = handed
            try:
                with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
                    work(self.rank, *arguments)
            except SystemExit:  # by a signal, which all have received
                raise
            except BaseException as error:
                store.set(FAILED, pickle.dumps((portable(error), traceback.format_exc())))
                os._exit(1)  # the usual way out would wait for the others


_orders = count()
"""Numbers what the first process hands out, in each process."""


@cache
def group() -> Group | None:
    """The group that this process is in; None if it was started alone.

    What srun says is put in the words of torchrun, which torch and Lightning read.
    """
    if int(os.environ.get("SLURM_STEP_NUM_TASKS", "1")) > 1:
        _translate_slurm()
    elif "TORCHELASTIC_RUN_ID" not in os.environ:
        return None
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")  # its notes on efficiency
    size = int(os.environ["WORLD_SIZE"])
    nodes = size // int(os.environ.get("LOCAL_WORLD_SIZE", size))
    if nodes == 1:
        stay_on_this_machine()
    return Group(int(os.environ["RANK"]), size, nodes) if size > 1 else None


def on_this_machine(devices: int) -> int:
    """How many of a run's devices are on this machine."""
    own = group()
    return devices // own.nodes if own else devices


def portable(error: BaseException) -> Exception:
    """An exception that arrives in another process as it is, or as its words."""
    try:
        if isinstance(pickle.loads(pickle.dumps(error)), Exception):
            assert isinstance(error, Exception)
            return error
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return RuntimeError(f"{type(error).__name__}: {error}")


def _translate_slurm() -> None:
    """Say by torchrun's variables what srun says by its own; the user may set where they meet."""
    slurm = {key: os.environ[f"SLURM_{key}"] for key in ("PROCID", "LOCALID", "NODEID", "JOB_ID")}
    size = int(os.environ["SLURM_STEP_NUM_TASKS"])
    nodes = int(os.environ.get("SLURM_STEP_NUM_NODES", "1"))
    address = LOOPBACK
    if nodes > 1:
        from lightning.fabric.plugins.environments import SLURMEnvironment

        hosts = os.environ["SLURM_STEP_NODELIST"]
        address = SLURMEnvironment.resolve_root_node_address(hosts)
    os.environ.setdefault("MASTER_ADDR", address)
    os.environ.setdefault("MASTER_PORT", str(15_000 + int(slurm["JOB_ID"]) % 10_000))
    os.environ |= {
        "RANK": slurm["PROCID"],
        "WORLD_SIZE": str(size),
        "LOCAL_RANK": slurm["LOCALID"],
        "NODE_RANK": slurm["NODEID"],
        "LOCAL_WORLD_SIZE": str(size // nodes),
        AGENT: "True",
    }


@cache
def _store() -> Any:
    """Where the processes of the group meet: torchrun has opened it, after srun rank 0 does."""
    from torch.distributed import PrefixStore, rendezvous

    if "TORCHELASTIC_RUN_ID" not in os.environ and os.environ["RANK"] == "0":
        _opened.append(bound_store(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])))
    store, _, _ = next(rendezvous("env://"))
    return PrefixStore("curvlab", store)


_opened: list[Any] = []
"""The store that this process has opened: it answers as long as there is a name for it."""


def bound_store(address: str, port: int = 0) -> Any:
    """A store of torch.distributed that can be reached at one address alone.

    One that torch opens listens on all interfaces, regardless of its address.

    Args:
        address: of this machine.
        port: 0 for a free one.
    """
    from torch.distributed import TCPStore

    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((address, port))
    return TCPStore(
        address,
        listener.getsockname()[1],
        is_master=True,
        wait_for_workers=False,
        master_listen_fd=listener.detach(),
    )


def stay_on_this_machine() -> None:
    """Let the processes of a group on one machine meet on its loopback interface."""
    for library in ("GLOO", "NCCL"):
        os.environ.setdefault(f"{library}_SOCKET_IFNAME", _loopback_interface())


def _loopback_interface() -> str:
    """The name of the interface with the address of loopback: `lo` on Linux, `lo0` on macOS."""
    for name, addresses in psutil.net_if_addrs().items():
        if any(entry.address == LOOPBACK for entry in addresses):
            return name
    return "lo"


def _end_with_launcher() -> None:
    """End this process when the one that started it is killed."""
    psutil.Process(os.getppid()).wait()
    os._exit(1)
