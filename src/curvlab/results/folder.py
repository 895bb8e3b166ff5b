"""The folder of a run: its files, and reusable files of earlier runs."""

import glob
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from curvlab.checksums import DamagedError, check_archive, read_json
from curvlab.files import atomic_write, check_fences, find_below, remove
from curvlab.leases import SUFFIX, HeldError, Holder, acquire, fenced
from curvlab.results.identity import identity_hash
from curvlab.results.migrations import SCHEMA, migrated
from curvlab.results.result import CONCLUSIVE, FILE, SET_ASIDE, Result, read_result
from curvlab.results.run_tables import FILES, read_row, runs_in_tables

CONFIG = "config.yaml"
BEST = "checkpoints/best.ckpt"
LAST = "checkpoints/last.ckpt"
EARLIER = "checkpoints/earlier.ckpt"
"""States from which an interrupted run continues: the newest, and the previous one."""

TRACEBACK = "traceback.txt"
FINDINGS = (
    "metrics.csv", "plots", "embeddings.npz", "filters.npz", "routing.npz", "routing.csv",
    "ranks.csv.gz", "rankings.csv", "relations.csv",
    "classes.csv", "confusion.csv",
)  # fmt: skip
LOGS = ("wandb", "tensorboard")
STUDY = ("study.journal", "study.checksum")  # of a search
PRODUCTS = (FILE, CONFIG, TRACEBACK, "checkpoints", *LOGS, *STUDY, *FINDINGS)


@dataclass(frozen=True)
class Claim:
    """State in which a run finds its folder: finished, resumable or fresh.

    Args:
        result: Result of the finished run.
        checkpoint: Checkpoint from which the run resumes; None for a fresh start.
        source: Folder from which the result or the checkpoint was taken; None for its own.
        damaged: Deleted files with the reasons.
    """

    result: Result | None = None
    checkpoint: Path | None = None
    source: Path | None = None
    damaged: Mapping[Path, str] = field(default_factory=dict)


class RunDirectory:
    """The folder of one run, named after its configuration."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._states = (path / LAST, path / EARLIER)

    @property
    def newest(self) -> Path | None:
        """The newest checkpoint."""
        return next((path for path in self._states if path.exists()), None)

    @property
    def is_unclosed(self) -> bool:
        """Whether the run has finished but was killed before it deleted its last checkpoint."""
        if self.newest is None or not os.access(self.path, os.W_OK):
            return False
        result = self.conclusion()
        return result is not None and result.status == "finished"

    @contextmanager
    def locked(self, wait: Callable[[Holder], None] | None) -> Iterator[None]:
        """Hold the lease of a writable folder; without `wait`, a held lease is a `HeldError`."""
        self.path.mkdir(parents=True, exist_ok=True)
        writable = os.access(self.path, os.W_OK)
        lease = self.path / SUFFIX
        with acquire(lease, wait) if writable else nullcontext(), fenced(lease):
            for partial in find_below(self.path, ".*.part"):
                remove(partial)  # left by a killed process
            yield

    def claim(self, run: Result, outputs: Path | None, rerun: bool = False) -> Claim:
        """Restore an earlier state of this run from here, `previous/`, or elsewhere in `outputs`.

        With `rerun`, earlier states are not used, and the run starts from scratch.
        """
        source = None
        if not rerun:
            self.restore(run.config_hash)
            result = self.conclusion(run.config_hash)
            other_folder = None
            if result is None and outputs is not None:
                other_folder = self.elsewhere(outputs, run.config_hash)
            if other_folder is not None:
                source = other_folder.path
                result = self.take_over(other_folder, run)
            if result is not None:
                if self._hash_in_config != run.config_hash:
                    with suppress(OSError):  # raised by a read-only disk
                        self.write_config(run)
                return Claim(result, source=source)
        damaged = self.discard_damaged()
        checkpoint = None if rerun else self.newest
        if checkpoint is not None and self.config_hash != run.config_hash:
            checkpoint = None
        return Claim(None, checkpoint, source, damaged)

    def conclusion(self, config_hash: str | None = None) -> Result | None:
        """The final result of an earlier run of a configuration; None for any configuration."""
        result = read_result(self.path)
        if result is None or result.status not in CONCLUSIVE:
            return None
        if config_hash in (None, result.config_hash):
            return result
        is_same = config_hash == identity_hash(result.config, result.revisions)
        return result if is_same else None

    def elsewhere(
        self, outputs: Path, config_hash: str, folders: Mapping[str, list[Path]] | None = None
    ) -> "RunDirectory | None":
        """Another folder in which this run finished or, failing that, was interrupted.

        Args:
            outputs: Folder to search.
            config_hash: Identity of the run.
            folders: Result of `folders_by_hash`, if it is used for several runs.
        """
        resolved = self.path.resolve()
        if outputs.resolve() not in resolved.parents:
            return None
        if folders is None:
            folders = folders_by_hash(outputs, resolved.name)
        copies = [path for path in folders.get(config_hash, ()) if path.name == resolved.name]
        candidates = [RunDirectory(path) for path in copies if path.resolve() != resolved]
        ended = (run for run in candidates if run.conclusion(config_hash))
        interrupted = (run for run in candidates if run.newest and run.config_hash == config_hash)
        return next(ended, None) or (next(interrupted, None) if self.newest is None else None)

    def take_over(self, other: "RunDirectory", result: Result) -> Result | None:
        """Copy a finished result here. For an interrupted run, move its checkpoints instead."""
        ended = other.conclusion(result.config_hash)
        if ended is None:
            with suppress(HeldError), other.locked(None):
                self._make_room()
                _move_products(other.path, self.path)
            return None
        self.prepare(result, fresh=True)
        texts = (read_row(other.path) or {FILES: {}})[FILES]
        for name in texts.keys() & {*FINDINGS}:  # no other files, since a table is not trusted
            atomic_write(self.path / name, texts[name])
        for name in (*FINDINGS, BEST):
            path = other.path / name
            target = self.path / name
            if path.exists():
                target.parent.mkdir(exist_ok=True)
                copy = shutil.copytree if path.is_dir() else shutil.copy2
                copy(path, target)
        ended.experiment = result.experiment
        ended.config_hash = result.config_hash
        ended.changed = result.changed
        ended.dataset = result.dataset
        ended.save(self.path)
        return ended

    def prepare(self, result: Result, fresh: bool) -> None:
        """Move files of another configuration, or all if `fresh`, to `previous/HASH`.

        A finished result of the same configuration stays until a new result replaces it.
        """
        if fresh or self.config_hash != result.config_hash:
            self._make_room()
        self.write_config(result)
        if self.conclusion(result.config_hash) is None:
            for end in (FILE, TRACEBACK, BEST):
                remove(self.path / end)

    def aside(self, config_hash: str) -> "RunDirectory":
        """Folder to which a configuration's files move when another configuration runs here."""
        return RunDirectory(self.path / SET_ASIDE / config_hash)

    def restore(self, config_hash: str) -> None:
        """Move the files of this configuration back from `previous/HASH`."""
        aside = self.aside(config_hash).path
        if aside.is_dir() and self.config_hash != config_hash:
            self._make_room()
            _move_products(aside, self.path)
            aside.rmdir()

    def restore_finished(self, config_hash: str) -> None:
        """Replace the result of a failed rerun with the finished one that was set aside."""
        aside = RunDirectory(self.path / SET_ASIDE / config_hash)
        current = self.conclusion(config_hash)
        stored = aside.conclusion(config_hash)
        if stored is None or (current is not None and current.rank >= stored.rank):
            return
        for product in _products(self.path):
            remove(product)
        _move_products(aside.path, self.path)
        aside.path.rmdir()

    def drop_last(self) -> None:
        """Delete the states of an interrupted run, four times as large as its weights."""
        for path in self._states:
            remove(path)

    def discard_damaged(self) -> dict[Path, str]:
        """Delete a damaged result and damaged checkpoints; return the reasons."""
        present = [path for path in (self.path / FILE, *self._states) if path.exists()]
        config_hash = self.config_hash if present else None
        damaged = {}
        for path in present:
            try:
                if path.name == FILE:
                    read_json(path, required=False)
                elif config_hash == _identity(check_archive(path)):
                    break
                else:
                    damaged[path] = "it is of another run"
            except DamagedError as error:
                damaged[path] = str(error)
        for path in damaged:
            remove(path)
        return damaged

    def step(self) -> int:
        """The step from which an interrupted run continues; 0 without a checkpoint."""
        if self.newest is None:
            return 0
        try:
            return int(check_archive(self.newest).get("step", 0))
        except DamagedError:
            return 0

    @property
    def config_hash(self) -> str | None:
        """Hash of the configuration whose files are in the folder; None for an empty folder.

        If `config.yaml` is damaged or missing, the hash comes from the result or a checkpoint.
        """
        stored_hash = self._hash_in_config or self._hash_in_products()
        if stored_hash:
            return stored_hash
        return "unknown" if any(_products(self.path)) else None

    @property
    def _hash_in_config(self) -> str | None:
        """Hash of the configuration in `config.yaml`; None if the file is damaged."""
        with suppress(OSError, yaml.YAMLError, ValueError, TypeError):
            stored = yaml.safe_load((self.path / CONFIG).read_text("utf-8"))
            config_hash = _identity({"revisions": {}, **stored, "config": stored})
            is_current = stored.get("schema", SCHEMA) == SCHEMA  # earlier schemas hashed otherwise
            if not is_current or stored.get("config_hash") == config_hash:
                return config_hash
        return None

    def _hash_in_products(self) -> str | None:
        result = read_result(self.path)
        if result is not None:
            return identity_hash(result.config, result.revisions)
        for path in self._states:
            with suppress(DamagedError):
                config_hash = _identity(check_archive(path))
                if config_hash:
                    return config_hash
        return None

    def write_config(self, result: Result) -> None:
        """Write `config.yaml`."""
        head = {name: getattr(result, name) for name in ("config_hash", "schema", "revisions")}
        text = yaml.safe_dump({**head, **result.config}, sort_keys=False)
        atomic_write(self.path / CONFIG, text)

    def _make_room(self) -> None:
        """Move the files to `previous/HASH`; a final result is never replaced."""
        name = self.config_hash
        if name is None:
            return
        aside = self.aside(name)
        if aside.conclusion() and not self.conclusion():
            for product in _products(self.path):
                remove(product)
            return
        shutil.rmtree(aside.path, ignore_errors=True)
        aside.path.mkdir(parents=True)
        _move_products(self.path, aside.path)


def folders_by_hash(outputs: Path, name: str | None = None) -> dict[str, list[Path]]:
    """Run folders below the outputs by their hashes; `name` selects folders of this name."""
    folders: dict[str, list[Path]] = {}
    pattern = glob.escape(name) if name else "*"
    for file in find_below(outputs, f"{pattern}/{CONFIG}"):
        with suppress(OSError, UnicodeDecodeError), file.open(encoding="utf-8") as text:
            first = text.readline()
            second = text.readline()
            config_hash: str | None = first.strip().partition(": ")[2].strip("'")
            if second != f"schema: {SCHEMA}\n":  # of an earlier version, which hashed otherwise
                config_hash = RunDirectory(file.parent).config_hash
            folders.setdefault(config_hash or "", []).append(file.parent)
    for run in runs_in_tables(outputs):
        row = read_row(run) if name in (None, run.name) else None
        if row:
            folders.setdefault(str(row["config_hash"]), []).append(run)
    return folders


def _identity(facts: Any) -> str | None:
    """Hash of the run that a file describes; None for an unreadable description."""
    try:
        facts = migrated(facts)
        return identity_hash(facts["config"], facts["revisions"])
    except (LookupError, TypeError, ValueError, AttributeError):
        return None


def _products(folder: Path) -> list[Path]:
    return [folder / name for name in PRODUCTS if (folder / name).exists()]


def _move_products(source: Path, target: Path) -> None:
    check_fences(source)
    check_fences(target)
    for product in _products(source):
        shutil.move(product, target / product.name)
