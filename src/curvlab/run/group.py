"""Processes of one run, one per device: the first leads, and all end when one fails."""

import atexit
import logging
import multiprocessing
import os
import re
import socket
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from datetime import timedelta
from functools import cache
from io import StringIO
from itertools import count
from multiprocessing.context import BaseContext
from threading import Thread
from typing import Any

import psutil

from curvlab.errors import ProcessError
from curvlab.run import signals
from curvlab.run.messages import read_error, write_error

LOOPBACK = "127.0.0.1"
WAIT = timedelta(days=30)
"""Longest wait of a process for work: the first process may wait for another run's folder."""

ACCEPTANCE_SECONDS = 1800.0
"""Seconds within which all processes accept the first one's work."""

END = "end"
"""The last message of the first process."""


def group() -> tuple[int, int]:
    """Rank of this process in its group and the size of the group; (0, 1) without a group.

    The variables are set by torchrun, by srun, or by torch elastic that `launch` has started.
    """
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")  # notes on efficiency
    if int(os.environ.get("SLURM_STEP_NUM_TASKS", "1")) > 1:
        _translate_slurm()
    elif "TORCHELASTIC_RUN_ID" not in os.environ:
        return 0, 1
    rank = int(os.environ["RANK"])
    size = int(os.environ["WORLD_SIZE"])
    if local_devices(size) == size:  # processes on one machine meet on its loopback interface
        for library in ("GLOO", "NCCL"):
            name = "lo0" if sys.platform == "darwin" else "lo"
            os.environ.setdefault(f"{library}_SOCKET_IFNAME", name)
    return rank, size


def _translate_slurm() -> None:
    """Set torchrun's variables; `MASTER_ADDR` and `MASTER_PORT` of the user win."""
    from lightning.fabric.plugins.environments import SLURMEnvironment

    size = int(os.environ["SLURM_STEP_NUM_TASKS"])
    nodes = int(os.environ.get("SLURM_STEP_NUM_NODES", "1"))
    first = SLURMEnvironment.resolve_root_node_address(os.environ.get("SLURM_STEP_NODELIST", ""))
    os.environ.setdefault("MASTER_ADDR", first if nodes > 1 else LOOPBACK)
    os.environ.setdefault("MASTER_PORT", str(15_000 + int(os.environ["SLURM_JOB_ID"]) % 10_000))
    names = {"RANK": "PROCID", "LOCAL_RANK": "LOCALID", "NODE_RANK": "NODEID"}
    os.environ |= {name: os.environ[f"SLURM_{slurm}"] for name, slurm in names.items()}
    os.environ |= {"WORLD_SIZE": str(size), "LOCAL_WORLD_SIZE": str(size // nodes)}
    os.environ["TORCHELASTIC_USE_AGENT_STORE"] = "True"  # the store exists already


def local_devices(devices: int) -> int:
    """Number of a run's devices on this machine."""
    return int(os.environ.get("LOCAL_WORLD_SIZE", devices))


def launch(work: Callable[..., Any], processes: int, *arguments: Any, message: str = "") -> Any:
    """Call `work(rank, *arguments)` in each process of a run; return the first one's result.

    Torch elastic starts and watches the processes, unless torchrun or srun has started them: these
    read the arguments from the `message`. The first error ends all processes and is raised.
    """
    if group()[1] > 1:
        return _lead(work, arguments, message)
    from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    for name in ("torch.distributed.elastic", "torch.multiprocessing.spawn"):
        logging.getLogger(name).handlers = [logging.NullHandler()]
        logging.getLogger(name).propagate = False
    store = _bound_store(LOOPBACK)  # elastic uses the store at this port
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=processes,
        logs_specs=DefaultLogsSpecs(os.devnull),
        run_id="curvlab",
        rdzv_backend="static",
        rdzv_endpoint=f"{LOOPBACK}:{store.underlying_store.port}",
        rdzv_configs={"rank": 0},
        max_restarts=0,
        start_method=start_context().get_start_method(),
        signals_to_handle="",  # `signals` forwards them
        shutdown_timeout=0,
    )
    with signals.wait(lambda: [p.pid for p in multiprocessing.active_children() if p.pid]):
        try:
            return elastic_launch(config, _elastic_process)(work, arguments)[0]
        except ChildFailedError as error:
            rank, failure = error.get_first_failure()
    raise _first_error(store, f"process {rank} of {processes}", killed=failure.exitcode < 0)


def start_context() -> BaseContext:
    """The fork server, with preloaded imports."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["curvlab.run.train"])
    return context


def _elastic_process(work: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """Work as a process that torch elastic has started."""
    import torch

    end_with_parent()
    signals.install(speaks=False)
    result = _take_part(group()[0], work, arguments)
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
    return result


def _lead(work: Callable[..., Any], arguments: tuple[Any, ...], message: str) -> Any:
    """Dispatch work to the other processes of the group, and do it as the first one."""
    store = _store()
    order = str(next(_orders))
    store.set(order, message)
    try:
        _wait_for_acceptance(store, order)
        return work(0, *arguments)
    except Exception as error:
        if _is_consequence(error) or store.check(["failed"]):
            raise _first_error(store, "another process") from error
        raise


def _wait_for_acceptance(store: Any, order: str) -> None:
    """Wait until all other processes have read an order, or one has failed."""
    followers = group()[1] - 1
    deadline = time.monotonic() + ACCEPTANCE_SECONDS
    while store.add(_acceptances(order), 0) < followers:
        if store.check(["failed"]) or time.monotonic() > deadline:
            raise _first_error(store, "another process")
        time.sleep(0.01)


def _acceptances(order: str) -> str:
    """The key that counts the processes that have accepted an order."""
    return f"{order} accepted"


def end_group_at_exit() -> None:
    """End all processes of the group when this one, the first, ends."""
    end_with_parent()
    atexit.register(lambda: _store().set(str(next(_orders)), END))


def follow(rank: int, read: Callable[[str], tuple[Any, ...]], work: Callable[..., Any]) -> None:
    """Do the work that the first process of the group dispatches, until it ends.

    Args:
        rank: the rank of this process.
        read: function that makes the arguments of `work` from a message, which anybody may have
            written.
        work: function that is called as `work(rank, *arguments)`.
    """
    end_with_parent()
    for order in map(str, _orders):
        _store().wait([order], WAIT)
        message = _store().get(order).decode(errors="replace")
        if message == END:
            return
        _take_part(rank, _accept, (order, message, read, work))


def _accept(
    rank: int,
    order: str,
    message: str,
    read: Callable[[str], tuple[Any, ...]],
    work: Callable[..., Any],
) -> Any:
    arguments = read(message)
    _store().add(_acceptances(order), 1)
    return work(rank, *arguments)


_orders = count()  # numbers of the first process's orders, counted in each process


def _take_part(rank: int, work: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """Do this process's part of the work; an error ends the process, and only rank 0 prints."""
    store = _store()  # before Lightning removes the variables that the store reads
    streams = (StringIO(), StringIO()) if rank else (sys.stdout, sys.stderr)
    try:
        with redirect_stdout(streams[0]), redirect_stderr(streams[1]):
            return work(rank, *arguments)
    except BaseException as error:
        if _is_consequence(error):
            time.sleep(1)  # the process with the cause reports first
        elif not isinstance(error, signals.Interrupted):
            store.compare_set("failed", "", write_error(error))  # unless another was first
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)  # sys.exit would wait for the other processes


def _is_consequence(error: BaseException) -> bool:
    """Whether an error follows from the end of another process."""
    lost_connection = re.search("(closed|reset) by peer|Broken pipe", str(error))
    return isinstance(error, RuntimeError) and lost_connection is not None


def _first_error(store: Any, process: str, killed: bool = False) -> Exception:
    """The first error of a process; a process without an error was killed."""
    if store.check(["failed"]) and not killed:
        return read_error(store.get("failed").decode(errors="replace"))
    return ProcessError(
        f"{process} of this run was killed, perhaps for lack of memory; the same command resumes "
        "from the last checkpoint"
    )


@cache
def _store() -> Any:
    """The store of the group, opened by an agent; after srun by the first process."""
    from torch.distributed import PrefixStore, rendezvous

    if "TORCHELASTIC_RUN_ID" not in os.environ and os.environ["RANK"] == "0":
        return _bound_store(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
    return PrefixStore("curvlab", next(rendezvous("env://"))[0])


def _bound_store(address: str, port: int = 0) -> Any:
    """Open a store at one address; torch's own listens on all interfaces."""
    from torch.distributed import PrefixStore, TCPStore

    listener = socket.create_server((address, port))
    port = listener.getsockname()[1]
    options: Any = {"is_master": True, "wait_for_workers": False, "multi_tenant": True}
    store = TCPStore(address, port, **options, master_listen_fd=listener.detach())
    return PrefixStore("curvlab", store)


def end_with_parent() -> None:
    """End this process when its parent ends, even if the parent is killed."""
    launcher = multiprocessing.parent_process()  # not the fork server, which outlives it
    parent = psutil.Process(launcher.pid if launcher else os.getppid())

    def wait() -> None:
        with suppress(psutil.NoSuchProcess):
            while parent.is_running() and parent.status() != psutil.STATUS_ZOMBIE:
                time.sleep(0.5)
        os._exit(1)

    Thread(target=wait, daemon=True).start()
