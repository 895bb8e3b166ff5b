"""The result of a run, stored in one file that is written atomically."""

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
from curvlab.files import atomic_write, find_below
from curvlab.results.migrations import SCHEMA, migrated
from curvlab.results.run_tables import FILES, RUN, read_row, runs_in_tables

FILE = "result.json"
SET_ASIDE = "previous"  # subfolder of a run's folder with files of earlier configurations
PACKAGES = ("curvlab", "torch", "torch-geometric", "lightning", "geoopt", "hydra-core", "numpy")
CONCLUSIVE = ("finished", "diverged")  # statuses of final results, which are not repeated
RANKS = {"diverged": 1, "finished": 2}
INTERRUPTED = "interrupted"
"""Status of a run that was ended by a signal; the same command resumes it."""


@dataclass
class Result:
    """One run: its configuration, status, scores and cost."""

    status: str  # finished, diverged, failed, out_of_memory or interrupted
    model: str
    dataset: str
    task: str
    manifold: str
    seed: int
    experiment: str | None  # table of which the run is a cell
    config_hash: str
    config: dict[str, Any]  # resolved; the objects that it builds identify the run
    metrics: dict[str, dict[str, float]] = field(default_factory=dict)  # {"test": {"map": 98.9}}
    references: dict[str, float] = field(default_factory=dict)  # test scores of simple methods
    score: float | None = None  # the task's metric on the test part
    val_score: float | None = None  # the same on the validation part, if it selects the weights
    best_step: int | None = None  # step of the evaluated weights
    steps: int = 0
    parameters: int | None = None
    curvatures: dict[str, list[float]] = field(default_factory=dict)
    ms_per_step: float | None = None  # median over epochs
    wall_seconds: float | None = None
    peak_memory_mb: float | None = None
    device: str | None = None
    deterministic: bool | None = None  # whether as many threads repeat it to the bit
    threads: int | None = None  # of the CPU
    kernels: str | None = None  # kernels of training, C++ or plain; None: not recorded
    versions: dict[str, str] = field(default_factory=dict)
    git_commit: str | None = None
    error: str | None = None
    changed: list[str] = field(default_factory=list)  # overrides of the table's protocol
    revisions: dict[str, int] = field(default_factory=dict)  # revisions of classes, if not 1
    schema: int = SCHEMA  # schema of the configuration

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
        """Write `result.json` atomically; paths in its error are relative to the folder.

        An unfinished result does not replace a finished one of the same configuration.
        """
        path = folder / FILE
        stored = None
        with suppress(UsageError):  # raised by a damaged table of runs
            stored = read_result(folder)
        if stored and stored.config_hash == self.config_hash and stored.rank > self.rank:
            return path
        content = asdict(self)
        if self.error is not None:
            content["error"] = self.error.replace(f"{folder}/", "")
        atomic_write(path, json.dumps(add_checksum(content), indent=2) + "\n")
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
        row = read_row(path.parent)
        if row is None:
            raise
        stored = {key: value for key, value in row.items() if key not in (RUN, FILES)}
    return migrated(stored)


def read_result(folder: Path) -> Result | None:
    """Read the result in a run's folder; None without a readable result."""
    try:
        result = Result(**load(folder / FILE))
    except UsageError:
        raise
    except (OSError, ValueError, TypeError):
        return None
    return result if isinstance(result.config, dict) else None


def result_files(folder: Path) -> list[Path]:
    """Files of the results of all runs below a folder, also in tables of runs; not `previous/`."""
    paths = {*find_below(folder, FILE), *(run / FILE for run in runs_in_tables(folder))}
    return sorted(path for path in paths if SET_ASIDE not in path.relative_to(folder).parts)


@cache
def git_commit() -> str | None:
    """The source tree's commit at the first call, with `+` if dirty; None outside a checkout."""

    def git(*words: str) -> str:
        command = ["git", *words]
        folder = Path(__file__).parent
        process = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
        return process.stdout.strip()

    try:
        commit = git("rev-parse", "HEAD")
        is_dirty = bool(git("status", "--porcelain", "-uno"))
        return f"{commit}+" if is_dirty else commit
    except (OSError, subprocess.CalledProcessError):
        return None
