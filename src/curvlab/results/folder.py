"""A run's folder: its files, and those of an earlier run that can be reused."""

import glob
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import yaml

from curvlab.checksums import DamagedError, check_archive, read_json
from curvlab.results.files import atomic_write, remove
from curvlab.results.identity import identity_hash
from curvlab.results.leases import SUFFIX, HeldError, Holder, held, take
from curvlab.results.result import CONCLUSIVE, FILE, SET_ASIDE, Result, check_schema, read_result
from curvlab.results.run_tables import FILES, row_of, runs_in_tables

LEASE = SUFFIX  # of the run
CONFIG = "config.yaml"
BEST = "checkpoints/best.ckpt"
LAST, EARLIER = "checkpoints/last.ckpt", "checkpoints/earlier.ckpt"
"""States from which an interrupted run continues: the newest, and the one before it."""

TRACEBACK = "traceback.txt"
FINDINGS = (
    "metrics.csv", "plots", "embeddings.npz", "filters.npz", "routing.npz", "routing.csv",
    "ranks.csv.gz", "rankings.csv", "relations.csv",
    "classes.csv", "confusion.csv",
)  # fmt: skip
LOGS = ("wandb", "tensorboard")
PRODUCTS = (FILE, CONFIG, TRACEBACK, "checkpoints", *LOGS, "study.journal", *FINDINGS)
UNREADABLE = (OSError, yaml.YAMLError, LookupError, TypeError, ValueError, AttributeError)


class RunDirectory:
    """The folder of one run, named after its configuration."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.checkpoint = path / LAST
        self._states = (path / LAST, path / EARLIER)

    @property
    def newest(self) -> Path | None:
        """The newest checkpoint."""
        return next((path for path in self._states if path.exists()), None)

    @contextmanager
    def locked(self, wait: Callable[[Holder], None] | None) -> Iterator[None]:
        """Hold the folder's lease if it is writable; without `wait` a held one is a `HeldError`."""
        self.path.mkdir(parents=True, exist_ok=True)
        lease: AbstractContextManager[object] = nullcontext()
        if os.access(self.path, os.W_OK):
            path = self.path / LEASE
            lease = take(path) if wait is None else held(path, wait)
        with lease:
            for left in (*self.path.glob(".*.part"), *self.path.glob("checkpoints/.*.part")):
                remove(left)  # of a process that was killed
            yield

    def conclusion(self, config_hash: str) -> Result | None:
        """The result of an earlier run of the same configuration, if it is final."""
        result = read_result(self.path)
        if result is None or result.status not in CONCLUSIVE:
            return None
        return result if identity_hash(result.config, result.revisions) == config_hash else None

    def has_ended(self) -> bool:
        """Whether there is a final result, of any configuration."""
        result = read_result(self.path)
        return result is not None and result.status in CONCLUSIVE

    def elsewhere(self, outputs: Path, config_hash: str) -> "RunDirectory | None":
        """Another folder where this run has finished, or else was interrupted."""
        own = self.path.resolve()
        if outputs.resolve() not in own.parents:
            return None
        found = []
        for file in sorted(outputs.glob(f"**/{glob.escape(own.name)}/{CONFIG}")):
            with suppress(OSError), file.open(encoding="utf-8") as text:
                if config_hash in text.readline():
                    found.append(file.parent)
        rows = ((run, row_of(run)) for run in runs_in_tables(outputs) if run.name == own.name)
        found += [run for run, row in rows if row and row["config_hash"] == config_hash]
        others = [RunDirectory(path) for path in found if path.resolve() != own]
        ended = (run for run in others if run.conclusion(config_hash))
        begun = (run for run in others if run.newest and run.is_own(config_hash))
        return next(ended, None) or (next(begun, None) if self.newest is None else None)

    def take_over(self, other: "RunDirectory", result: Result) -> Result | None:
        """Copy a finished result from another folder, or move its checkpoints; None for these."""
        ended = other.conclusion(result.config_hash)
        if ended is None:
            with suppress(HeldError), other.locked(None):
                self._make_room()
                _move_products(other.path, self.path)
            return None
        self.prepare(result, fresh=True)
        if not (other.path / FILE).exists() and (row := row_of(other.path)) is not None:
            for name, text in row[FILES].items():
                atomic_write(self.path / name, text)
        for name in FINDINGS:
            if (path := other.path / name).exists():
                copy = shutil.copytree if path.is_dir() else shutil.copy2
                copy(path, self.path / name)
        if (other.path / BEST).exists():
            (self.path / BEST).parent.mkdir(exist_ok=True)
            try:
                os.link(other.path / BEST, self.path / BEST)  # never written to, only replaced
            except OSError:  # another disk, or a system without links
                shutil.copy2(other.path / BEST, self.path / BEST)
        ended.experiment, ended.config_hash = result.experiment, result.config_hash
        ended.changed = result.changed
        ended.save(self.path)
        return ended

    def prepare(self, result: Result, fresh: bool) -> None:
        """Move files of another configuration, or all if `fresh`, to `previous/HASH`."""
        if fresh or not self.is_own(result.config_hash):
            self._make_room()
        kept = {name: getattr(result, name) for name in ("config_hash", "schema", "revisions")}
        text = yaml.safe_dump({**kept, **result.config}, sort_keys=False)
        atomic_write(self.path / CONFIG, text)
        for end in (FILE, TRACEBACK, BEST):
            remove(self.path / end)

    def restore(self, config_hash: str) -> None:
        """Move back from `previous/HASH` what a run of this configuration left there."""
        aside = self.path / SET_ASIDE / config_hash
        if not self.is_own(config_hash) and aside.is_dir():
            self._make_room()
            _move_products(aside, self.path)
            aside.rmdir()

    def drop_last(self) -> None:
        """Delete the states of an interrupted run, four times as large as its weights."""
        for path in self._states:
            remove(path)

    def discard_damaged(self) -> dict[Path, str]:
        """Delete a damaged result and damaged checkpoints; return the reasons."""
        own, damaged = self._hash_of_contents(), {}
        with suppress(FileNotFoundError):
            try:
                read_json(self.path / FILE, required=False)
            except DamagedError as error:
                damaged[self.path / FILE] = str(error)
        for path in filter(Path.exists, self._states):
            try:
                if own == _identity(check_archive(path)):
                    break
                damaged[path] = "it is of another run"
            except DamagedError as error:
                damaged[path] = str(error)
        for path in damaged:
            remove(path)
        return damaged

    def is_own(self, config_hash: str) -> bool:
        """Whether the folder is prepared for a configuration."""
        return self._hash_of_contents() == config_hash

    def step(self) -> int:
        """The step that an interrupted run continues from; 0 without a checkpoint."""
        try:
            return int(check_archive(self.newest).get("step", 0)) if self.newest else 0
        except DamagedError:
            return 0

    def _hash_of_contents(self) -> str | None:
        """The hash of the configuration whose files are here; None if there are none."""
        try:
            config = yaml.safe_load((self.path / CONFIG).read_text("utf-8"))
            del config["config_hash"]
            check_schema(config)
            del config["schema"]
            revisions = config.pop("revisions", None) or {}
            return identity_hash(config, revisions)
        except UNREADABLE:
            return "unknown" if any(_products(self.path)) else None

    def _make_room(self) -> None:
        """Move the files here to `previous/HASH`; a result that ended is never replaced."""
        name = self._hash_of_contents()
        if name is None:
            return
        aside = RunDirectory(self.path / SET_ASIDE / name)
        if aside.has_ended() and not self.has_ended():
            for product in _products(self.path):
                remove(product)
            return
        shutil.rmtree(aside.path, ignore_errors=True)
        aside.path.mkdir(parents=True)
        _move_products(self.path, aside.path)


def _identity(facts: dict[str, Any]) -> str | None:
    try:
        check_schema(facts)
        return identity_hash(facts["config"], facts["revisions"])
    except UNREADABLE:
        return None


def _products(folder: Path) -> list[Path]:
    return [folder / name for name in PRODUCTS if (folder / name).exists()]


def _move_products(source: Path, target: Path) -> None:
    for product in _products(source):
        shutil.move(product, target / product.name)
