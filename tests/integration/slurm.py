"""SLURM on this machine: one node, without root's services, for the time of a test."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol", "squeue")
STARTS = 60.0
"""Seconds within which the node is idle."""

# A requeued job waits for its credential to expire, by default two minutes.
CONFIGURATION = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=30
CredType=cred/munge
SlurmctldPort={controller}
SlurmdPort={daemon}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/builtin
SchedulerParameters=sched_interval=1,bf_interval=1
MpiDefault=none
SlurmdParameters=config_overrides
ReturnToService=2
JobRequeue=1
KillWait=5
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory=1000 State=UNKNOWN
PartitionName=main Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def missing() -> list[str]:
    """Programs of SLURM and munge that are not installed."""
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    return [name for name in PROGRAMS if shutil.which(name, path=path) is None]


@contextmanager
def cluster(folder: Path, cpus: int = 4) -> Iterator[dict[str, str]]:
    """A cluster of one node; the environment in which its commands find it."""
    for name in ("state", "spool"):
        (folder / name).mkdir(parents=True)
    key = folder / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    ports = dict(zip(("controller", "daemon"), free_ports(2), strict=True))
    values = {"host": socket.gethostname().partition(".")[0], "folder": folder, "cpus": cpus}
    (folder / "slurm.conf").write_text(CONFIGURATION.format(**values, **ports))
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    environment = {"PATH": path, "SLURM_CONF": str(folder / "slurm.conf")}
    munge = [f"--{name}={folder}/munge.{end}" for name, end in MUNGE.items()]
    lines = {
        "munged": ["--foreground", "--force", *munge],
        "slurmctld": ["-D", "-i"],
        "slurmd": ["-D", "-N", str(values["host"])],
    }
    with ExitStack() as stack:
        for name, words in lines.items():
            stack.enter_context(daemon([name, *words], folder, environment))
        wait_until_idle(folder, environment)
        stack.callback(ask, environment, "scancel", "--user=root", "--full", "--signal=KILL")
        yield environment


MUNGE = {
    "key-file": "key",
    "socket": "socket",
    "pid-file": "pid",
    "log-file": "log",
    "seed-file": "seed",
}


def free_ports(count: int) -> list[int]:
    """Ports that are free now, all different."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("", 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in sockets]


@contextmanager
def daemon(line: list[str], folder: Path, environment: dict[str, str]) -> Iterator[None]:
    """A program that runs until the end of the block."""
    with (folder / f"{line[0]}.out").open("w") as said:
        process = subprocess.Popen(
            line, env=os.environ | environment, stdout=said, stderr=said, stdin=subprocess.DEVNULL
        )
        try:
            yield
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def ask(environment: dict[str, str], *line: str) -> str:
    """What a command of SLURM's prints."""
    done = subprocess.run(
        line, check=False, env=os.environ | environment, capture_output=True, text=True
    )
    return done.stdout


def wait_until_idle(folder: Path, environment: dict[str, str]) -> None:
    """Wait until jobs can start."""
    deadline = time.monotonic() + STARTS
    while "idle" not in ask(environment, "sinfo", "--noheader", "--format=%t"):
        if time.monotonic() > deadline:
            logs = [path.read_text() for path in folder.glob("*.log")]
            raise TimeoutError("SLURM does not start:\n" + "\n".join(logs)[-3000:])
        time.sleep(0.2)
