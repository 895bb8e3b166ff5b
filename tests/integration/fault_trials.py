"""Faults of five kinds: kills, damaged files, full disks, full shared memory, and verbs.

Each function tries one fault that a generator of random numbers chooses, and returns what came of
it. A fault *held* if nothing is lost and no score is wrong: the same command ends with the numbers
of a run without the fault, or refuses in one sentence. `scripts/faults.py` tries them for hours.
"""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

import psutil
from optuna.trial import TrialState
from tiny_runs import LARGE, TINY, TREE, TRIPLES, Command

from curvlab.errors import LONGEST
from curvlab.search.journal import read_study

LONGEST_SENTENCE = LONGEST + len("curvlab evaluate: .")
"""Characters of a refusal with the program's name before it."""

Done = subprocess.CompletedProcess
QUIET = ("trainer.plots=false", "trainer.progress=false", "trainer.patience=null")
MANY = ("trainer.max_steps=100", "trainer.steps_per_epoch=5")
TOKENS = ("batching=tokens", "batching.size=100", "batching.workers=0", "trainer.max_steps=60")
RUNS: Mapping[str, tuple[str, ...]] = {
    "reconstruction": ("model=fpst", *TINY, *MANY, *QUIET[:2]),
    "classification": ("model=hypformer", "model.fusion=midpoint", *TREE, *MANY, *QUIET),
    "links": ("model=lrn", *TREE[:3], "task=link_prediction", *MANY, *QUIET, TREE[-1]),
    "triples": ("model=distmult", *TRIPLES, "trainer.epochs=8", *QUIET),
    "partition": ("model=gcn", *TREE, *MANY, "batching=partition", "batching.size=30", *QUIET),
    "tokens": ("model=polyformer", *LARGE, *TOKENS, *QUIET),
    "workers": ("model=polyformer", *LARGE, *TOKENS[:2], "batching.workers=2", TOKENS[3], *QUIET),
    "pictures": ("model=gcn", *TREE, *MANY, "trainer.progress=false"),
    "seeds": ("-m", "seed=0,1,2", "hydra/launcher=joblib", "model=mlp", *TREE, *MANY, *QUIET),
    "sweep": ("-m", "model=mlp,gcn", "seed=0,1", *TREE, *MANY, *QUIET),
    "search": ("-m", "search=gcn", *TREE, "search.trials=4", "search.seeds=[0,1]", *QUIET),
    "group": (
        *("model=gcn", *TREE, *MANY, "batching=partition", "batching.size=20", *QUIET),
        "trainer.devices=2",
    ),
}  # fmt: skip
"""Words of every kind of run, each of a second or two."""


@dataclass(frozen=True)
class Outcome:
    """What came of a fault."""

    kind: str  # a name of `FAULTS`
    of: str  # the name of the run
    what: str  # the fault
    result: str  # `same score`, `refused`, or what went wrong
    detail: str = ""  # the program's words, if something went wrong

    @property
    def held(self) -> bool:
        """Whether nothing went wrong."""
        return self.result in ("same score", "refused")


@contextmanager
def site() -> Iterator[Command]:
    """A folder for one trial."""
    with TemporaryDirectory(prefix="faults-", ignore_cleanup_errors=True) as folder:
        yield Command(Path(folder))


@cache
def whole(name: str) -> tuple[dict[str, Any], float, Path]:
    """Run the words of `RUNS[name]` to the end, once a process: scores, seconds, folder."""
    command = Command(Path(mkdtemp(prefix="faults-whole-")))
    start = time.monotonic()
    command(*RUNS[name])
    return scores(command), time.monotonic() - start, command.folder


def scores(command: Command) -> dict[str, Any]:
    """All numbers that the runs and searches of a folder report, by their folders."""
    found: dict[str, Any] = {
        name: {key: result[key] for key in ("status", "score", "val_score", "metrics")}
        for name, result in command.results().items()
        if "previous" not in name
    }
    for journal in command.outputs.rglob("study.journal"):
        if "previous" not in journal.parts:
            found[str(journal.relative_to(command.outputs))] = [
                (trial.params, trial.value)
                for trial in read_study(journal.parent).trials
                if trial.state == TrialState.COMPLETE
            ]
    return found


def products(command: Command) -> dict[str, bytes]:
    """All files below the outputs by their paths; of tables the content as well.

    Logs are what each start of a command has said, not what a run makes.
    """
    found = (path for path in command.outputs.rglob("*") if path.is_file())
    kept = (path for path in found if not {"previous", ".hydra"} & {*path.parts})
    return {
        str(path.relative_to(command.outputs)): path.read_bytes() if path.suffix == ".csv" else b""
        for path in kept
        if path.suffix != ".log"
    }


def judged(kind: str, name: str, what: str, command: Command, done: Done) -> Outcome:
    """Compare what a command left with the run that nothing disturbed."""
    if done.returncode:
        return Outcome(kind, name, what, *refusal(done))
    here = scores(command)
    if here != (expected := whole(name)[0]):
        return Outcome(kind, name, what, "wrong score", json.dumps([expected, here], default=str))
    left = [path.name for end in ("*.lease*", "*.part") for path in command.outputs.rglob(end)]
    if left:
        return Outcome(kind, name, what, "left behind", " ".join(left))
    files, expected_files = products(command), products(Command(whole(name)[2]))
    others = {file for file, _ in files.items() ^ expected_files.items()}
    if kind == "kill" and others:  # what is damaged may be a picture of a finished run
        return Outcome(kind, name, what, "other files", " ".join(sorted(others)))
    return Outcome(kind, name, what, "same score")


def refusal(done: Done) -> tuple[str, str]:
    """`refused`, or what is wrong with the way in which a command ended; and what it said."""
    swept = re.search(r"^sweep of \d+ cells?.*", done.stdout, re.MULTILINE | re.DOTALL)
    said = done.stderr.strip() or (swept[0].strip() if swept else "")
    last = said.rpartition("\n")[2]
    wrong = {
        "traceback": "Traceback" in done.stderr + done.stdout,
        f"ended by signal {-done.returncode}": done.returncode < 0,
        "no word": not said,
        f"a sentence of {len(last)} characters": len(last) > LONGEST_SENTENCE,
    }
    return next((why for why, holds in wrong.items() if holds), "refused"), said[-2000:]


def kill(chance: random.Random) -> Outcome:
    """Kill a run, or a process that it has started, at a moment; then let it end."""
    name = chance.choice(list(RUNS))
    moment = chance.uniform(0, whole(name)[1])
    with site() as command:
        process = command.start(*RUNS[name])
        time.sleep(moment)
        victims = [process.pid]
        if process.poll() is None and chance.random() < 0.3:
            victims += [child.pid for child in psutil.Process(process.pid).children(True)]
        with suppress(ProcessLookupError):
            os.kill(chance.choice(victims), signal.SIGKILL)
        process.communicate()
        done = command.start(*RUNS[name]).done()
        return judged("kill", name, f"after {moment:.2f} s", command, done)


@cache
def interrupted(name: str) -> Path:
    """The folder of a run that was ended by SIGTERM at a random step, with all its files."""
    command = Command(Path(mkdtemp(prefix="faults-interrupted-")))
    command.ended_by(signal.SIGTERM, *RUNS[name])
    return command.folder


DAMAGES: Mapping[str, Callable[[bytes, int, random.Random], bytes]] = {
    "a bit flipped": lambda data, at, chance: (
        data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]
    ),
    "cut off": lambda data, at, _: data[:at],
    "emptied": lambda *_: b"",
    "a block of zeros": lambda data, at, _: (
        data[:at] + bytes(min(64, len(data) - at)) + data[at + 64 :]
    ),
    "another file's content": lambda *_: b'{"this": "is another file"}\n',
    "bytes added": lambda data, _, chance: data + chance.randbytes(9),
}
"""What a file has after damage at a place."""

FLIPPED = ("reconstruction", "classification", "triples", "partition", "tokens")


def flip(chance: random.Random) -> Outcome:
    """Damage a file of a run that was interrupted, or that has ended, and use the run."""
    name = chance.choice(FLIPPED)
    ended = chance.random() < 0.4
    with site() as command:
        place = whole(name)[2] if ended else interrupted(name)
        shutil.copytree(place, command.folder, symlinks=True, dirs_exist_ok=True)
        places = (command.folder / place for place in ("outputs", "data"))
        found = sorted(path for place in places for path in place.rglob("*") if path.is_file())
        path = chance.choice([path for path in found if path.stat().st_size])
        damage, content = chance.choice(list(DAMAGES)), path.read_bytes()
        path.write_bytes(DAMAGES[damage](content, chance.randrange(len(content)), chance))
        what = f"{re.sub(r'[0-9a-f]{8,}|[0-9]+', '#', path.name)}, {damage}"
        if not ended or chance.random() < 0.5:
            return judged("flip", name, what, command, command.start(*RUNS[name]).done())
        run = next(command.outputs.rglob("result.json"), path).parent
        done = command.verb("evaluate", str(run))
        if done.returncode:
            return Outcome("flip", name, f"{what}; evaluate", *refusal(done))
        (score,) = {entry["score"] for entry in whole(name)[0].values()}
        result = "same score" if str(score) in done.stdout else "wrong score"
        return Outcome("flip", name, f"{what}; evaluate", result, done.stdout)


@contextmanager
def small_disk(folder: Path, kilobytes: int) -> Iterator[None]:
    """Mount a file system of its own on a folder, which only root can."""
    folder.mkdir(parents=True, exist_ok=True)
    mount = ("mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(folder))
    if shutil.which("mount") is None or subprocess.call(mount, stderr=subprocess.DEVNULL):
        raise PermissionError("mounting a small file system needs root")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def disk(chance: random.Random) -> Outcome:
    """Run where a disk is too small; then, with space, once more."""
    name = chance.choice([name for name in RUNS if name != "group"])
    place = chance.choice(["outputs", "data"])
    used = sum(p.stat().st_size for p in (whole(name)[2] / place).rglob("*") if p.is_file())
    with site() as command:
        folder = command.folder / place
        with small_disk(folder, max(4, int(used / 1024 * chance.uniform(0.0, 1.1)))):
            first = command.start(*RUNS[name]).done()
            if first.returncode and (answer := refusal(first))[0] != "refused":
                return Outcome("disk", name, place, *answer)
            if first.returncode and str(folder) not in first.stderr + first.stdout:
                return Outcome("disk", name, place, "refused without the path", first.stderr)
            subprocess.run(["mount", "-o", "remount,size=1g", str(folder)], check=True)
            outcome = judged("disk", name, place, command, command.start(*RUNS[name]).done())
            if outcome.result == "refused":
                return Outcome("disk", name, place, "refused with space", outcome.detail)
            return outcome


def memory(chance: random.Random) -> Outcome:
    """Prepare batches by workers where `/dev/shm` is too small; then, with space, once more."""
    if os.geteuid() or shutil.which("unshare") is None:
        raise PermissionError("mounting a small /dev/shm needs root")
    size, name = chance.choice([4, 16, 64]), "workers"
    inside = f'mount -t tmpfs -o size={size}k tmpfs /dev/shm && exec "$@"'
    with site() as command:
        first = subprocess.run(
            ("unshare", "-m", "sh", "-c", inside, "sh", sys.executable, *command.line(*RUNS[name])),
            check=False,
            cwd=command.folder,
            env=command.environment,
            capture_output=True,
            text=True,
        )
        if first.returncode and (answer := refusal(first))[0] != "refused":
            return Outcome("memory", name, f"{size} kB", *answer)
        done = command.start(*RUNS[name]).done()
        return judged("memory", name, f"{size} kB", command, done)


LARGER = (
    *("model=gcn", "dataset=synthetic_large", "dataset.source.num_nodes=100000"),
    *("dataset.source.classes=3", "dataset.source.features=8", "trainer.accelerator=cpu"),
    *("trainer.max_steps=2", "trainer.steps_per_epoch=1", *QUIET),
)
WRITTEN = {"predict": "predictions.csv", "export": "embeddings.csv"}


@cache
def larger() -> Path:
    """The folder of a finished run on a graph of 100,000 nodes."""
    command = Command(Path(mkdtemp(prefix="faults-larger-")))
    command(*LARGER)
    return next(command.outputs.rglob("result.json")).parent


@cache
def written(name: str) -> tuple[dict[str, bytes], float]:
    """What a verb writes of this run, and its seconds."""
    with site() as command:
        start = time.monotonic()
        done = command.verb(name, str(larger()), "--output", str(command.outputs / WRITTEN[name]))
        assert done.returncode == 0, done.stderr
        return contents(command.outputs), time.monotonic() - start


def contents(folder: Path) -> dict[str, bytes]:
    """All files of a folder by their names."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def verb(chance: random.Random) -> Outcome:
    """Kill `predict` or `export`, or let it write to a full disk; then repeat it."""
    name = chance.choice([*WRITTEN])
    expected, seconds = written(name)
    size = sum(map(len, expected.values())) // 1024
    with site() as command:
        line = (name, str(larger()), "--output", str(command.outputs / WRITTEN[name]))
        if chance.random() < 0.5:
            what = "full disk"
            with small_disk(command.outputs, max(4, int(size * chance.uniform(0, 0.9)))):
                first = command.verb(*line)
                answer = refusal(first)
                left = contents(command.outputs)
            if first.returncode == 0 or answer[0] != "refused" or left:
                return Outcome("verb", name, what, answer[0], f"{answer[1]} {[*left]}")
        else:
            moment = chance.uniform(0, seconds)
            what = f"killed after {moment:.2f} s"
            process = command.start_verb(*line)
            time.sleep(moment)
            process.send_signal(signal.SIGKILL)
            process.communicate()
        done = command.verb(*line)
        if done.returncode:
            return Outcome("verb", name, what, *refusal(done))
        found = contents(command.outputs)
        same = all(found.get(file) == content for file, content in expected.items())
        return Outcome("verb", name, what, "same score" if same else "wrong file")


FAULTS = {function.__name__: function for function in (kill, flip, disk, memory, verb)}


def attempts(kind: str, seed: int, seconds: float, most: int | None = None) -> Iterator[Outcome]:
    """Try faults of a kind until the time is over; the same seed tries the same faults."""
    end = time.monotonic() + seconds
    number = 0
    while time.monotonic() < end and (most is None or number < most):
        yield FAULTS[kind](random.Random(f"{kind} {seed} {number}"))
        number += 1
