"""The processes of one run, one per device: the first is the run, and all end when one fails."""

import atexit
import logging
import multiprocessing
import os
import pickle
import socket
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from io import StringIO
from itertools import count
from multiprocessing.context import BaseContext
from threading import Thread
from typing import Any

import psutil

from curvlab.run import signals

LOOPBACK = "127.0.0.1"
AGENT = "TORCHELASTIC_USE_AGENT_STORE"  # tells torch that the store exists already
WAIT = timedelta(days=30)
"""How long a process waits for work: the first one may be waiting for another run's folder."""


class ProcessError(RuntimeError):
    """A process of a run ended without an exception, for instance because it was killed."""


@dataclass(frozen=True)
class Group:
    """The processes that torchrun or srun has started, and which of them this one is."""

    rank: int
    size: int
    nodes: int


@cache
def group() -> Group | None:
    """The group of this process from the variables of torchrun or srun; None without one."""
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


def _translate_slurm() -> None:
    """Set torchrun's variables; the user may set where the processes meet."""
    from lightning.fabric.plugins.environments import SLURMEnvironment

    size = int(os.environ["SLURM_STEP_NUM_TASKS"])
    nodes = int(os.environ.get("SLURM_STEP_NUM_NODES", "1"))
    first = SLURMEnvironment.resolve_root_node_address(os.environ.get("SLURM_STEP_NODELIST", ""))
    os.environ.setdefault("MASTER_ADDR", first if nodes > 1 else LOOPBACK)
    os.environ.setdefault("MASTER_PORT", str(15_000 + int(os.environ["SLURM_JOB_ID"]) % 10_000))
    names = {"RANK": "PROCID", "LOCAL_RANK": "LOCALID", "NODE_RANK": "NODEID"}
    os.environ |= {name: os.environ[f"SLURM_{slurm}"] for name, slurm in names.items()}
    os.environ |= {"WORLD_SIZE": str(size), "LOCAL_WORLD_SIZE": str(size // nodes), AGENT: "True"}


def local_devices(devices: int) -> int:
    """The number of a run's devices on this machine."""
    own = group()
    return devices // own.nodes if own else devices


def launch(work: Callable[..., None], processes: int, *arguments: Any) -> None:
    """Call `work(rank, *arguments)` in each process of a run; the first error ends all."""
    if group() is not None:
        _lead(work, arguments)
        return
    from torch.multiprocessing import ProcessExitedException, start_processes

    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    logging.getLogger("torch.multiprocessing.spawn").setLevel(logging.ERROR)
    store = _bound_store(LOOPBACK)  # it answers as long as there is a name for it
    context = start_context()
    failures, failed = context.SimpleQueue(), None
    started = start_processes(
        _run,
        (work, processes, store.port, failures, arguments),
        processes,
        join=False,
        start_method=context.get_start_method(),
    )
    try:
        with signals.wait(lambda: [p.pid for p in started.processes if p.is_alive()]):
            try:
                while not started.join(grace_period=3.0):
                    pass
            except ProcessExitedException as error:
                failed = error
    finally:
        for process in started.processes:
            process.kill()
    if failed is None:
        return
    if failed.signal_name is not None or failures.empty():
        raise _killed(f"process {failed.error_index} of {processes}")
    first, trace = failures.get()
    first.add_note(trace)
    raise first


def start_context() -> BaseContext:
    """The start method: a fork server with preloaded imports where available."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["curvlab.run.train"])
    return context


def _run(
    rank: int, work: Callable[..., None], size: int, port: int, failures: Any, arguments: Any
) -> None:
    """Do the work of one process that `launch` has started."""
    import torch

    os.environ |= {
        "MASTER_ADDR": LOOPBACK,
        "MASTER_PORT": str(port),
        AGENT: "True",
        "NODE_RANK": "0",
        "LOCAL_WORLD_SIZE": str(size),
        "LOCAL_RANK": str(rank),
        "RANK": str(rank),
        "WORLD_SIZE": str(size),
    }
    stay_on_this_machine()
    end_with_parent()
    signals.install(speaks=False)
    with _end_on_error(failures.put), nullcontext() if rank == 0 else redirect_stdout(StringIO()):
        work(rank, *arguments)
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()


def _lead(work: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    """Dispatch work to the other processes of the group, and do it as the first one."""
    store = _store()
    store.set(str(next(_orders)), pickle.dumps((work, arguments)))
    try:
        work(0, *arguments)
    except Exception as error:
        if store.check(["failed"]):
            first, trace = pickle.loads(store.get("failed"))
            first.add_note(trace)
            raise first from error
        raise (
            _killed("another process") if "Connection closed by peer" in str(error) else error
        ) from error


def end_others() -> None:
    """End the other processes of the group together with this one, the first."""
    end_with_parent()
    atexit.register(lambda: _store().set(str(next(_orders)), pickle.dumps(None)))


def follow(rank: int) -> None:
    """Do the work that the first process of the group dispatches, until it ends."""
    end_with_parent()
    store = _store()
    for order in map(str, _orders):
        store.wait([order], WAIT)
        handed = pickle.loads(store.get(order))
        if handed is None:
            return
        work, arguments = handed
        with (
            _end_on_error(lambda failure: store.set("failed", pickle.dumps(failure))),
            redirect_stdout(StringIO()),
            redirect_stderr(StringIO()),
        ):
            work(rank, *arguments)


_orders = count()  # numbers the orders of the first process, in each process


@cache
def _store() -> Any:
    """The store of the group: torchrun has opened it; after srun the first process does."""
    from torch.distributed import PrefixStore, rendezvous

    if "TORCHELASTIC_RUN_ID" not in os.environ and os.environ["RANK"] == "0":
        address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        return PrefixStore("curvlab", _bound_store(address, port))
    return PrefixStore("curvlab", next(rendezvous("env://"))[0])


def _bound_store(address: str, port: int = 0) -> Any:
    """A store bound to one address; torch's own listens on all interfaces."""
    from torch.distributed import TCPStore

    listener = socket.create_server((address, port))
    port = listener.getsockname()[1]
    handle = listener.detach()
    return TCPStore(address, port, is_master=True, wait_for_workers=False, master_listen_fd=handle)


def stay_on_this_machine() -> None:
    """Let the processes of a group on one machine meet on its loopback interface."""
    for library in ("GLOO", "NCCL"):
        name = "lo0" if sys.platform == "darwin" else "lo"
        os.environ.setdefault(f"{library}_SOCKET_IFNAME", name)


def _killed(who: str) -> ProcessError:
    return ProcessError(
        f"{who} of this run was killed, perhaps for want of memory; the same command goes on from "
        "the last checkpoint"
    )


@contextmanager
def _end_on_error(report: Callable[[tuple[Exception, str]], object]) -> Iterator[None]:
    """End this process by an error in the block, once it is reported with its traceback."""
    try:
        yield
    except BaseException as error:
        if not isinstance(error, signals.Interrupted):  # which all processes have received
            copy: Any = None
            with suppress(Exception):
                copy = pickle.loads(pickle.dumps(error))
            if not isinstance(copy, Exception):
                copy = RuntimeError(f"{type(error).__name__}: {error}")
            report((copy, traceback.format_exc()))
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)  # the usual way out would wait for the others


def end_with_parent() -> None:
    """End this process when its parent ends, even if the parent is killed."""
    parent = psutil.Process(os.getppid())

    def wait() -> None:
        parent.wait()
        os._exit(1)

    Thread(target=wait, daemon=True).start()
