"""A run's folder: what is in it, and what of an earlier run may be used again."""

import glob
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import yaml

from curvlab.checksums import DamagedError, check_archive, read_checked
from curvlab.errors import UsageError
from curvlab.results.files import atomic_write, remove
from curvlab.results.identity import identity_hash, older
from curvlab.results.leases import SUFFIX, HeldError, Holder, held, take
from curvlab.results.result import (
    CONCLUSIVE,
    FILE,
    SET_ASIDE,
    Result,
    check_schema,
    read_result,
)
from curvlab.results.run_tables import FILES, folder_of, row_of

LEASE = SUFFIX  # of the run
CONFIG = "config.yaml"
BEST = "checkpoints/best.ckpt"
LAST, EARLIER = "checkpoints/last.ckpt", "checkpoints/earlier.ckpt"
"""States from which an interrupted run goes on: the newest, and the one before it."""

TRACEBACK = "traceback.txt"
FINDINGS = (
    "metrics.csv",
    "plots",
    "embeddings.npz",
    "filters.npz",
    "routing.npz",
    "routing.csv",
    "classes.csv",
    "confusion.csv",
    "calibration.json",
    "diverged*.pt",
)
UNREADABLE = (OSError, yaml.YAMLError, LookupError, TypeError, ValueError, AttributeError)
"""What reading a damaged configuration can raise."""

LOGS = ("wandb", "tensorboard")
PRODUCTS = (FILE, CONFIG, TRACEBACK, "checkpoints", *LOGS, "study.journal", *FINDINGS)


class RunDirectory:
    """The folder of one run, named after the run and not after the clock.

    Args:
        path: the folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._displaced: Path | None = None

    @property
    def checkpoint(self) -> Path:
        """Where the last checkpoint is, if there is one."""
        return self.path / LAST

    @property
    def newest(self) -> Path | None:
        """The newest checkpoint that is there."""
        return next((path for path in self._states() if path.exists()), None)

    def _states(self) -> tuple[Path, Path]:
        return self.path / LAST, self.path / EARLIER

    @contextmanager
    def claimed(self, wait: Callable[[Holder], None] | None) -> Iterator[None]:
        """Hold the folder against other processes within the block, by its lease.

        Several workers share a sweep, and workers of a killed sweep go on with theirs. Where
        nothing can be written nothing need be held.

        Args:
            wait: called before waiting for the process that holds the folder; None: do not wait.

        Raises:
            HeldError: another process holds the folder, and this one shall not wait.
            UsageError: there is a result that this user may not read, and would replace.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        lease: AbstractContextManager[object] = nullcontext()
        if os.access(self.path, os.W_OK):
            path = self.path / LEASE
            lease = take(path) if wait is None else held(path, wait)
        with lease:
            file = self.path / FILE
            if file.exists() and not os.access(file, os.R_OK):
                raise UsageError(
                    f"{file} may not be read, and is not replaced: ask its owner, or name another "
                    "folder by paths.output_dir"
                )
            yield

    def conclusion(self, config_hash: str) -> Result | None:
        """The result of an earlier run of the same configuration that need not be repeated."""
        result = read_result(self.path)
        if result is None or result.status not in CONCLUSIVE:
            return None
        own = identity_hash(result.config, result.revisions)
        return result if own == config_hash else None

    def twin(self, tables: Path, config_hash: str) -> Path | None:
        """The folder of the same cell in another table, if the same configuration ended there.

        Args:
            tables: the folder of all tables' runs, which are in `PAPER/TABLE/CELL`.
            config_hash: of the configuration.
        """
        own, tables = self.path.resolve(), tables.resolve()
        if tables not in own.parents:
            return None
        cell = Path(*own.relative_to(tables).parts[2:])
        others = sorted({folder_of(table) / cell for table in tables.glob("*/*")})
        ended = (path for path in others if RunDirectory(path).conclusion(config_hash))
        return next((path for path in ended if path != own), None)

    def elsewhere(self, outputs: Path, config_hash: str) -> "RunDirectory | None":
        """Another folder of single runs or tables where this run has ended, or was interrupted.

        Args:
            outputs: the folder of all.
            config_hash: of the configuration.
        """
        own = self.path.resolve()
        if outputs.resolve() not in own.parents:
            return None
        found = []
        for kind in ("runs", "tables"):
            for path in sorted(outputs.glob(f"{kind}/**/{glob.escape(own.name)}/{CONFIG}")):
                with suppress(OSError), path.open(encoding="utf-8") as file:
                    if config_hash in file.readline() and path.parent.resolve() != own:
                        found.append(RunDirectory(path.parent))
        ended = (run for run in found if run.conclusion(config_hash))
        begun = (run for run in found if run.newest and run.is_own(config_hash))
        return next(ended, None) or next(begun, None)

    def take_from(self, other: "RunDirectory") -> None:
        """Go on here with what another folder has of this run, unless a process is at work there.

        What another configuration left here is set aside.
        """
        with suppress(HeldError), other.claimed(None):
            if (left := self._hash_of_contents()) is not None:
                self._set_aside(left)
            _move_products(other.path, self.path)

    def copy_from(self, twin: Path, result: Result) -> Result | None:
        """Take over how a twin ended and what it left, as the run that was about to start.

        None if it is gone by now, set aside for another configuration.

        Args:
            twin: see `twin`.
            result: the run that was about to start.
        """
        ended = RunDirectory(twin).conclusion(result.config_hash)
        if ended is None:
            return None
        self.prepare(result, fresh=True)
        if not (twin / FILE).exists() and (row := row_of(twin)) is not None:
            for name, text in row[FILES].items():
                atomic_write(self.path / name, text)
        for path in (path for pattern in FINDINGS for path in twin.glob(pattern)):
            copy = shutil.copytree if path.is_dir() else shutil.copy2
            copy(path, self.path / path.name)
        _share(twin / BEST, self.path / BEST)
        ended.experiment, ended.config_hash = result.experiment, result.config_hash
        ended.changed = result.changed
        ended.save(self.path)
        return ended

    def prepare(self, result: Result, fresh: bool) -> Path | None:
        """Make the folder ready and return the checkpoint to go on from.

        What another configuration left here is moved to `previous/HASH`, not deleted.

        Args:
            result: the run that is about to start.
            fresh: do not go on from a checkpoint, even of the same configuration.
        """
        left = self._hash_of_contents()
        if left is not None and (fresh or left != result.config_hash):
            self._set_aside(left)
        kept = {name: getattr(result, name) for name in ("config_hash", "schema", "revisions")}
        text = yaml.safe_dump({**kept, **result.config}, sort_keys=False)
        atomic_write(self.path / CONFIG, text)
        for end in (FILE, TRACEBACK, BEST):
            remove(self.path / end)
        return self.newest

    def recall(self, config_hash: str) -> None:
        """Take back from `previous/HASH` what a run of this configuration left there."""
        aside, left = self._aside(config_hash), self._hash_of_contents()
        if left == config_hash or not aside.is_dir():
            return
        if left is not None:
            self._set_aside(left)
        _move_products(aside, self.path)
        aside.rmdir()

    def undo(self) -> bool:
        """Take back what `prepare` moved away, if that had ended; whether such a result is here.

        So a run that is refused leaves the result of another configuration where it was.
        """
        if self._displaced is not None and _ended(self._displaced):
            if self._hash_of_contents() == self._displaced.name:  # of rerun=true
                _delete_products(self.path)
            self.recall(self._displaced.name)
        return _ended(self.path)

    def drop_last(self) -> None:
        """Delete what only an interrupted run goes on from, four times as large as its weights."""
        for path in self._states():
            remove(path)

    def discard_damaged(self) -> dict[Path, str]:
        """Delete what is not what this run wrote: a result, checkpoints up to one that is.

        Returns:
            Why each.
        """
        own, damaged = self._hash_of_contents(), {}
        with suppress(FileNotFoundError):
            try:
                read_checked(self.path / FILE, required=False)
            except DamagedError as error:
                damaged[self.path / FILE] = str(error)
                remove(self.path / FILE)
        while (path := self.newest) is not None:
            try:
                facts = check_archive(path)
                if own == _identity(facts):
                    break
                damaged[path] = "it is of another run"
            except DamagedError as error:
                damaged[path] = str(error)
            remove(path)
        return damaged

    def start_over(self) -> None:
        """Delete what a run has left here that went on from a checkpoint and is to be repeated."""
        for path in (*self._states(), *self.path.glob("diverged*.pt")):
            remove(path)

    def is_own(self, config_hash: str) -> bool:
        """Whether the folder is prepared for a configuration."""
        return self._hash_of_contents() == config_hash

    def step(self) -> int:
        """The step that an interrupted run goes on from; 0 without a checkpoint."""
        if self.newest is None:
            return 0
        try:
            return int(check_archive(self.newest).get("step", 0))
        except DamagedError:
            return 0

    def _aside(self, name: str) -> Path:
        return self.path / SET_ASIDE / name

    def aged(self) -> list[str]:
        """Classes of an interrupted run here whose revision was raised since, in words."""
        try:
            return older(*self._left()) if self.newest else []
        except UNREADABLE:
            return []

    def _left(self) -> tuple[dict[str, Any], dict[str, int]]:
        """Configuration and revisions of what an earlier run left here."""
        config = yaml.safe_load((self.path / CONFIG).read_text("utf-8"))
        del config["config_hash"]
        check_schema(config)
        del config["schema"]
        return config, config.pop("revisions", None) or {}

    def _hash_of_contents(self) -> str | None:
        try:
            return identity_hash(*self._left())
        except UNREADABLE:
            return "unknown" if any(_products(self.path)) else None

    def _set_aside(self, name: str) -> None:
        """Move what is here to `previous/NAME`, of which only a result that ended survives it."""
        folder = self._aside(name)
        if _ended(folder) and not _ended(self.path):
            _delete_products(self.path)
            return
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        _move_products(self.path, folder)
        self._displaced = folder


def _identity(facts: dict[str, Any]) -> str | None:
    """Whose state a checkpoint is, by its facts."""
    try:
        check_schema(facts)
        return identity_hash(facts["config"], facts["revisions"])
    except UNREADABLE:
        return None


def _ended(folder: Path) -> bool:
    """Whether a folder has a result that need not be repeated."""
    result = read_result(folder)
    return result is not None and result.status in CONCLUSIVE


def _share(source: Path, target: Path) -> None:
    """Give a file that is never written to, only replaced, a second name, or a copy elsewhere."""
    if not source.exists():  # of a run that ended before there was one
        return
    target.parent.mkdir(exist_ok=True)
    try:
        os.link(source, target)
    except OSError:  # another disk, or a system without
        shutil.copy2(source, target)


def _products(folder: Path) -> list[Path]:
    return [path for pattern in PRODUCTS for path in folder.glob(pattern)]


def _move_products(source: Path, target: Path) -> None:
    for product in _products(source):
        shutil.move(product, target / product.name)


def _delete_products(folder: Path) -> None:
    for product in _products(folder):
        remove(product)
