"""The result of a run, one file that is written atomically."""

import json
import subprocess
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from curvlab.checksums import add_checksum, read_json
from curvlab.errors import UsageError
from curvlab.files import atomic_write
from curvlab.results.migrations import SCHEMA, migrated
from curvlab.results.run_tables import FILES, RUN, row_of, runs_in_tables

FILE = "result.json"
SET_ASIDE = "previous"  # where a run's folder keeps what an earlier configuration left there
PACKAGES = ("curvlab", "torch", "torch-geometric", "lightning", "geoopt", "hydra-core", "numpy")
# A run that ended so is not repeated: the same configuration would end the same way.
CONCLUSIVE = ("finished", "diverged")
RANKS = {"diverged": 1, "finished": 2}
INTERRUPTED = "interrupted"
"""Status of a run that a signal has ended; the same command goes on with it."""


@dataclass
class Result:
    """One run: its configuration, status, scores and cost."""

    status: str  # finished, diverged, failed, out_of_memory or interrupted
    model: str
    dataset: str
    task: str
    manifold: str
    seed: int
    experiment: str | None  # the table it is a cell of
    config_hash: str
    config: dict[str, Any]  # resolved; what it builds identifies the run
    metrics: dict[str, dict[str, float]] = field(default_factory=dict)  # {"test": {"map": 98.9}}
    references: dict[str, float] = field(default_factory=dict)  # test scores of simple methods
    score: float | None = None  # the metric that the task is about, of the test part
    val_score: float | None = None  # of the validation part, where weights are chosen by it
    best_step: int | None = None  # the step whose weights were evaluated
    steps: int = 0
    parameters: int | None = None
    curvatures: dict[str, list[float]] = field(default_factory=dict)
    ms_per_step: float | None = None  # median over epochs
    wall_seconds: float | None = None
    peak_memory_mb: float | None = None
    device: str | None = None
    deterministic: bool | None = None  # as many threads repeat it to the bit; None: not recorded
    threads: int | None = None  # of the processor
    kernels: str | None = None  # of training: C++ or plain; None: not recorded
    versions: dict[str, str] = field(default_factory=dict)
    git_commit: str | None = None
    error: str | None = None
    changed: list[str] = field(default_factory=list)  # by the command line, of what the table says
    revisions: dict[str, int] = field(default_factory=dict)  # of classes, where they are not 1
    schema: int = SCHEMA  # of the configuration

    @property
    def objective(self) -> float | None:
        """The score that a search maximises: the validation score if there is one."""
        return self.score if self.val_score is None else self.val_score

    @property
    def rank(self) -> int:
        """Rank of a status: a result never replaces one of a higher rank."""
        return RANKS.get(self.status, 0)

    def write(self, folder: Path) -> Path:
        """Write `result.json` atomically, with versions and commit."""
        self.versions = package_versions()
        self.git_commit = git_commit()
        return self.save(folder)

    def save(self, folder: Path) -> Path:
        """Write `result.json` atomically; its error names files as seen from the folder.

        An unfinished result does not replace a finished one of the same configuration.
        """
        path = folder / FILE
        earlier = None
        with suppress(UsageError):  # of a damaged table of runs
            earlier = read_result(folder)
        if earlier and earlier.config_hash == self.config_hash and earlier.rank > self.rank:
            return path
        written = asdict(self)
        if self.error is not None:
            written["error"] = self.error.replace(f"{folder}/", "")
        atomic_write(path, json.dumps(add_checksum(written), indent=2) + "\n")
        return path


def package_versions() -> dict[str, str]:
    """Versions of the libraries that affect numbers."""
    return {name: _version(name) for name in PACKAGES}


_version = cache(version)  # reading a package's metadata takes longer than a step of a small model


def load(path: Path) -> Any:
    """Read a result from its file, or from its row in a table of runs."""
    try:
        stored = read_json(path, required=False)  # results of earlier versions have no checksum
    except FileNotFoundError:
        if (row := row_of(path.parent)) is None:
            raise
        stored = {key: value for key, value in row.items() if key not in (RUN, FILES)}
    return migrated(stored)


def read_result(folder: Path) -> Result | None:
    """Read the result in a run's folder; None where there is none that can be read."""
    try:
        result = Result(**load(folder / FILE))
    except UsageError:
        raise
    except (OSError, ValueError, TypeError):
        return None
    return result if isinstance(result.config, dict) else None


def result_files(folder: Path) -> list[Path]:
    """Results of all runs below a folder, also those in tables of runs, without `previous/`."""
    paths = {*folder.rglob(FILE), *(run / FILE for run in runs_in_tables(folder))}
    return sorted(path for path in paths if SET_ASIDE not in path.relative_to(folder).parts)


@cache
def git_commit() -> str | None:
    """The source tree's commit at the first call, with `+` if dirty; None outside a checkout."""

    def git(*words: str) -> str:
        return subprocess.run(
            ["git", *words], cwd=Path(__file__).parent, capture_output=True, text=True, check=True
        ).stdout.strip()

    try:
        return git("rev-parse", "HEAD") + ("+" if git("status", "--porcelain", "-uno") else "")
    except (OSError, subprocess.CalledProcessError):
        return None
