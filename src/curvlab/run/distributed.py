"""Several processes for one run, a device each, as Lightning's DDP requires.

Lightning's own launcher starts the command again for every device, with Hydra and all, and leaves
the others waiting when one of them fails. Here the run has one parent that composes, checks, holds
the folder and speaks; its processes only train, and all end when one does.
"""

import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from io import StringIO
from multiprocessing import get_all_start_methods, get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from threading import Thread
from typing import Any

import torch

from curvlab.process import in_group
from curvlab.run import signals
from curvlab.run.group import (
    AGENT,
    LOOPBACK,
    ProcessError,
    bound_store,
    group,
    portable,
    stay_on_this_machine,
)

GRACE_SECONDS = 3.0
"""How long the others may go on after the first failure, to say what they know of it."""


def launch(work: Callable[..., None], processes: int, *arguments: Any) -> None:
    """Call `work(rank, *arguments)` in each of some processes and wait for their end.

    Those that torchrun or srun has started are there already. Others are started here, and find the
    environment variables by which Lightning's `LightningEnvironment` and `torch.distributed` meet.
    What the first one to fail has raised is raised here, with its traceback as a note, and the
    others are ended.

    Args:
        work: a function of a module, so that processes can import it.
        processes: how many.
        *arguments: what can be pickled.

    Raises:
        ProcessError: a process was killed.
    """
    own = group()
    if own is not None:
        own.lead(work, arguments)
        return
    store = bound_store(LOOPBACK)  # kept here: it answers as long as there is a name for it
    context = start_context()
    children: list[BaseProcess] = []
    messages: list[Connection] = []
    try:
        for rank in range(processes):
            receiver, sender = context.Pipe(duplex=False)
            child = context.Process(  # type: ignore[attr-defined]
                target=_run,
                args=(work, rank, processes, store.port, sender, arguments),
                daemon=False,  # a daemon may not start the processes that read its batches
            )
            child.name = f"rank {rank}"
            with _silent_start():
                child.start()
            sender.close()  # the child has its own, and only that one shall keep the pipe open
            children.append(child)
            messages.append(receiver)
        with signals.passed_on(lambda: [c.pid for c in children if c.pid and c.is_alive()]):
            _wait(children)
        ends = [child.exitcode for child in children]  # None of those that had to be ended
    finally:
        for child in children:
            child.kill()
            child.join()
    if any(ends):
        raise _first_failure(ends, messages)


def start_context() -> BaseContext:
    """How processes start: with what they import already in memory, where the system can."""
    if "forkserver" not in get_all_start_methods():
        return get_context("spawn")
    context = get_context("forkserver")
    context.set_forkserver_preload(["curvlab.run.train"])
    return context


@contextmanager
def _silent_start() -> Iterator[None]:
    """Let processes that start here keep torch's notes on efficiency to themselves."""
    before = os.environ.get("TORCH_CPP_LOG_LEVEL")
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    try:
        yield
    finally:
        if before is None:
            del os.environ["TORCH_CPP_LOG_LEVEL"]


def _wait(children: list[BaseProcess]) -> None:
    """Wait until all have ended, or a grace period after one has failed."""
    deadline = None
    while alive := [child for child in children if child.is_alive()]:
        if any(child.exitcode for child in children) and deadline is None:
            deadline = time.monotonic() + GRACE_SECONDS
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and left <= 0:
            return
        wait([child.sentinel for child in alive], timeout=left)


def _first_failure(ends: list[int | None], messages: list[Connection]) -> Exception:
    """What was raised first, unless a process was killed, which the others then complain of."""
    raised = []
    for rank, (end, receiver) in enumerate(zip(ends, messages, strict=True)):
        if receiver.poll():
            try:
                raised.append(receiver.recv())
                continue
            except EOFError:  # the end of a pipe that nothing was sent through
                pass
        if end:
            return ProcessError(
                f"process {rank} of {len(ends)} was killed (exit code {end}), perhaps for want of "
                "memory; the same command goes on from the last checkpoint"
            )
    _, error, trace = min(raised, key=lambda message: message[0])
    error.add_note(trace)
    return error


def _run(
    work: Callable[..., None],
    rank: int,
    processes: int,
    port: int,
    sender: Connection,
    arguments: tuple[Any, ...],
) -> None:
    """Be one of the processes: only the first one speaks, all say what ended them."""
    os.environ |= {
        "MASTER_ADDR": LOOPBACK,
        "MASTER_PORT": str(port),
        AGENT: "True",  # the parent's store, not one of rank 0
        "NODE_RANK": "0",
        "LOCAL_WORLD_SIZE": str(processes),
        "LOCAL_RANK": str(rank),
        "RANK": str(rank),
        "WORLD_SIZE": str(processes),
    }
    stay_on_this_machine()
    end_with_parent()
    signals.install(speaks=False)
    try:
        with nullcontext() if rank == 0 else redirect_stdout(StringIO()):
            work(rank, *arguments)
        if in_group():
            torch.distributed.destroy_process_group()
    except BaseException as error:
        sender.send((time.monotonic(), portable(error), traceback.format_exc()))
        sender.close()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)  # the usual way out would wait for the others


def end_with_parent() -> None:
    """Let this process end when the one that started it does, also if that is killed."""
    Thread(target=_wait_for_parent, daemon=True).start()


def _wait_for_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
