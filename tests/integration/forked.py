"""Scripts run by processes that have imported everything already.

Importing takes several times longer than a tiny run. Run as a script, this file is a server: it
imports once, and forks for each request, so that what runs is a process of its own, with its own
folder and environment, which can be killed. `Process` is the client, used like `subprocess.Popen`.
"""

import atexit
import functools
import gc
import importlib
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from multiprocessing import forkserver, util
from pathlib import Path
from typing import NoReturn

from joblib.externals.loky.backend import fork_exec

PRELOADED = (
    "curvlab.analysis.plots",
    "curvlab.cli.train",
    "curvlab.run.train",
    "curvlab.search.run",
    "curvlab.tables.report",
    "curvlab.tasks.node_classification",
    "curvlab.tasks.reconstruction",
)

HANGS = 600
"""Seconds after which a run of a second counts as one that hangs."""


class Process:
    """`python WORDS` without the start of an interpreter; the first word is a script or `-m`."""

    def __init__(self, words: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        self.args = list(words)
        self.returncode: int | None = None
        self._said = Path(tempfile.mkdtemp(dir=_server()[1]))
        for name in ("output", "errors"):  # a kill may come before the process opens them
            (self._said / name).touch()
        places = {"folder": str(folder), "said": str(self._said)}
        self.pid = _ask({"words": self.args, "environment": dict(environment), **places})

    def poll(self) -> int | None:
        """Its exit code, minus the signal's number if one has ended it; None while it runs."""
        if self.returncode is None:
            self.returncode = _ask({"poll": self.pid})
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, if it still runs."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def communicate(self) -> tuple[str, str]:
        """Wait for its end, or kill it if it hangs; what it has printed, and the errors."""
        deadline = time.monotonic() + HANGS
        while self.poll() is None:
            if time.monotonic() > deadline:
                self.send_signal(signal.SIGKILL)
            time.sleep(0.005)
        return (self._said / "output").read_text(), (self._said / "errors").read_text()

    def done(self) -> subprocess.CompletedProcess:
        """Wait for its end."""
        output, errors = self.communicate()
        return subprocess.CompletedProcess(self.args, self.returncode, output, errors)


@functools.cache
def _server() -> tuple[subprocess.Popen, str]:
    """The server of this process, and a folder for what is said; both end with it."""
    folder = tempfile.TemporaryDirectory()
    server = subprocess.Popen(
        [sys.executable, __file__],
        cwd=folder.name,
        env={**os.environ, "HOME": folder.name, "OMP_NUM_THREADS": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def end() -> None:
        server.communicate()
        folder.cleanup()

    atexit.register(end)
    return server, folder.name


def _ask(request: Mapping[str, object]) -> int | None:
    server, _ = _server()
    print(json.dumps(request), file=server.stdin, flush=True)
    return json.loads(server.stdout.readline())


def _serve() -> None:
    """Answer requests: fork, and tell how a child has ended."""
    os.fsync = lambda handle: None  # as in tests/conftest.py
    for name in PRELOADED:
        __import__(name)
    _compose_once()
    gc.freeze()  # no fork's collector needs to touch, and thereby copy, what all share
    for line in iter(sys.stdin.readline, ""):
        request = json.loads(line)
        if "poll" in request:
            pid, status = os.waitpid(request["poll"], os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if pid else None
        else:
            answer = os.fork()
            if answer == 0:
                _leave(_run(**request))
        print(json.dumps(answer), flush=True)


def _compose_once() -> None:
    """Do once what every command does first: forks find words parsed and configurations read."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    importlib.import_module("composing")  # reads each file once
    sys.path.pop(0)
    check_overrides = importlib.import_module("curvlab.cli.overrides").check_overrides
    check_overrides(["model=gcn"], multirun=False)
    folder = importlib.import_module("curvlab.config.folder")
    folder._package_folders.cache_clear()  # a fork's path has packages of its own
    result = importlib.import_module("curvlab.results.result")
    result.package_versions()
    result.git_commit()


def _run(words: Sequence[str], folder: str, environment: Mapping[str, str], said: str) -> int:
    """Do what `python WORDS` does; the exit code."""
    for number, path in ((0, os.devnull), (1, f"{said}/output"), (2, f"{said}/errors")):
        opened = os.open(path, os.O_RDWR | os.O_CREAT)
        os.dup2(opened, number)
        os.close(opened)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which a background job ignores
    util.spawnv_passfds = _fork
    if words[0] != "-m":  # as a package's command, whose workers are interpreters of their own
        fork_exec.fork_exec = _fork_worker
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv[:] = words if words[0] != "-m" else words[1:]
    sys.path[0] = str(Path(words[0]).parent) if words[0] != "-m" else folder
    places = environment.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[1:1] = [place for place in places if place and place not in sys.path]
    try:
        if words[0] == "-m":
            runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(words[0], run_name="__main__")
    except SystemExit as left:
        if left.code is None or isinstance(left.code, int):
            return left.code or 0
        print(left.code, file=sys.stderr)
        return 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def _fork(_: str, words: Sequence[str | bytes], kept: Sequence[int]) -> int:
    """Stand in for the start of an interpreter by which `multiprocessing` gets its fork server."""
    return os.fork() or _child(lambda: exec(words[-1]), kept)


def _fork_worker(words: Sequence[str], kept: Sequence[int], env: Mapping[str, str] | None) -> int:
    """Stand in for the start of an interpreter by which joblib gets a worker."""

    def work() -> None:
        os.environ.update(env or {})
        sys.argv[:] = words[2:]
        sys.modules.pop(words[2])  # which runs anew
        runpy.run_module(words[2], run_name="__main__", alter_sys=True)

    return os.fork() or _child(work, kept)


def _child(work: Callable[[], None], kept: Sequence[int]) -> NoReturn:
    """Let a fork be what an interpreter would be, with no files but those that are kept."""
    gc.freeze()  # what is freed later would close files by numbers that others have by then
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
    null = os.open(os.devnull, os.O_RDWR)
    for number in [int(path.name) for path in Path("/dev/fd").iterdir()]:
        if number > 2 and number not in kept:
            with suppress(OSError):  # the list's own number
                os.fstat(number)
                os.dup2(null, number)  # closed, its number would be taken, and closed by a library
    forkserver._forkserver.__init__()  # its lock is held by what has started this
    code = 1
    try:
        work()
        code = 0
    except SystemExit as left:
        code = left.code or 0
    finally:
        with suppress(ValueError):  # the resource tracker has closed it
            sys.stdout.flush()
        os._exit(code)


def _leave(code: int) -> NoReturn:
    """End as an interpreter does, but let the system free the memory: that is much faster."""
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    _serve()
