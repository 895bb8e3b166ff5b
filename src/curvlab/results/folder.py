"""A run's folder: its files, and those of an earlier run that can be reused."""

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
from curvlab.files import atomic_write, check_fences, remove
from curvlab.leases import SUFFIX, HeldError, Holder, acquire, fenced
from curvlab.results.identity import identity_hash
from curvlab.results.migrations import SCHEMA, migrated
from curvlab.results.result import CONCLUSIVE, FILE, SET_ASIDE, Result, read_result
from curvlab.results.run_tables import FILES, row_of, runs_in_tables

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
STUDY = ("study.journal", "study.checksum")  # of a search
PRODUCTS = (FILE, CONFIG, TRACEBACK, "checkpoints", *LOGS, *STUDY, *FINDINGS)


@dataclass(frozen=True)
class Claim:
    """State in which a run finds its folder: finished, resumable or fresh.

    Args:
        result: result with which the run has ended.
        checkpoint: checkpoint from which the run resumes; None for a fresh start.
        source: another folder that either comes from.
        damaged: files that were deleted, with the reasons.
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

    @contextmanager
    def locked(self, wait: Callable[[Holder], None] | None) -> Iterator[None]:
        """Hold the folder's lease if it is writable; without `wait` a held one is a `HeldError`."""
        self.path.mkdir(parents=True, exist_ok=True)
        writable = os.access(self.path, os.W_OK)
        lease = self.path / SUFFIX
        with acquire(lease, wait) if writable else nullcontext(), fenced(lease):
            for left in (*self.path.glob(".*.part"), *self.path.glob("checkpoints/.*.part")):
                remove(left)  # of a process that was killed
            yield

    def claim(self, run: Result, outputs: Path | None, rerun: bool = False) -> Claim:
        """Restore an earlier state of this run, found here, set aside, or below `outputs`.

        With `rerun` earlier states stay where they are, and the run starts from scratch.
        """
        source = None
        if not rerun:
            self.restore(run.config_hash)
            done = self.conclusion(run.config_hash)
            other = None
            if done is None and outputs is not None:
                other = self.elsewhere(outputs, run.config_hash)
            if other is not None:
                source = other.path
                done = self.take_over(other, run)
            if done is not None:
                if self._hash_in_config != run.config_hash:
                    with suppress(OSError):  # of a read-only disk
                        self.write_config(run)
                return Claim(done, source=source)
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
        same = config_hash == identity_hash(result.config, result.revisions)
        return result if same else None

    def elsewhere(
        self, outputs: Path, config_hash: str, known: Mapping[str, list[Path]] | None = None
    ) -> "RunDirectory | None":
        """Another folder in which this run finished or, failing that, was interrupted.

        `known` is what `folders_by_hash` has found below the outputs, for several runs.
        """
        here = self.path.resolve()
        if outputs.resolve() not in here.parents:
            return None
        if known is None:
            known = folders_by_hash(outputs, here.name)
        same = [path for path in known.get(config_hash, ()) if path.name == here.name]
        candidates = [RunDirectory(path) for path in same if path.resolve() != here]
        ended = (run for run in candidates if run.conclusion(config_hash))
        begun = (run for run in candidates if run.newest and run.config_hash == config_hash)
        return next(ended, None) or (next(begun, None) if self.newest is None else None)

    def take_over(self, other: "RunDirectory", result: Result) -> Result | None:
        """Copy a finished result here; move an interrupted run's checkpoints and return None."""
        ended = other.conclusion(result.config_hash)
        if ended is None:
            with suppress(HeldError), other.locked(None):
                self._make_room()
                _move_products(other.path, self.path)
            return None
        self.prepare(result, fresh=True)
        texts = (row_of(other.path) or {FILES: {}})[FILES]
        for name in texts.keys() & {*FINDINGS}:  # no other: a table may be another's
            atomic_write(self.path / name, texts[name])
        for name in (*FINDINGS, BEST):
            path, target = other.path / name, self.path / name
            if path.exists():
                target.parent.mkdir(exist_ok=True)
                (shutil.copytree if path.is_dir() else shutil.copy2)(path, target)
        ended.experiment = result.experiment
        ended.config_hash = result.config_hash
        ended.changed, ended.dataset = result.changed, result.dataset
        ended.save(self.path)
        return ended

    def prepare(self, result: Result, fresh: bool) -> None:
        """Move files of another configuration, or all if `fresh`, to `previous/HASH`.

        A finished result of the same configuration stays until another one takes its place.
        """
        if fresh or self.config_hash != result.config_hash:
            self._make_room()
        self.write_config(result)
        if self.conclusion(result.config_hash) is None:
            for end in (FILE, TRACEBACK, BEST):
                remove(self.path / end)

    def aside(self, config_hash: str) -> "RunDirectory":
        """Folder to which a configuration's files move when another one runs here."""
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
        here, earlier = self.conclusion(config_hash), aside.conclusion(config_hash)
        if earlier is None or (here is not None and here.rank >= earlier.rank):
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
        """The step that an interrupted run continues from; 0 without a checkpoint."""
        try:
            return int(check_archive(self.newest).get("step", 0)) if self.newest else 0
        except DamagedError:
            return 0

    @property
    def config_hash(self) -> str | None:
        """Hash of the configuration whose files are in the folder; None if there are none.

        Where `config.yaml` is damaged or missing, the result or a checkpoint has it.
        """
        if stored_hash := self._hash_in_config or self._hash_in_products():
            return stored_hash
        return "unknown" if any(_products(self.path)) else None

    @property
    def _hash_in_config(self) -> str | None:
        """The hash by `config.yaml`; None if the file is damaged."""
        with suppress(OSError, yaml.YAMLError, ValueError, TypeError):
            stored = yaml.safe_load((self.path / CONFIG).read_text("utf-8"))
            config_hash = _identity({"revisions": {}, **stored, "config": stored})
            is_current = stored.get("schema", SCHEMA) == SCHEMA  # others had other hashes
            if not is_current or stored.get("config_hash") == config_hash:
                return config_hash
        return None

    def _hash_in_products(self) -> str | None:
        result = read_result(self.path)
        if result is not None:
            return identity_hash(result.config, result.revisions)
        for path in self._states:
            with suppress(DamagedError):
                if config_hash := _identity(check_archive(path)):
                    return config_hash
        return None

    def write_config(self, result: Result) -> None:
        """Write `config.yaml`."""
        kept = {name: getattr(result, name) for name in ("config_hash", "schema", "revisions")}
        text = yaml.safe_dump({**kept, **result.config}, sort_keys=False)
        atomic_write(self.path / CONFIG, text)

    def _make_room(self) -> None:
        """Move the files here to `previous/HASH`; a result that ended is never replaced."""
        if (name := self.config_hash) is None:
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
    """Run folders below the outputs by their hashes; only those called `name` if it is given."""
    folders: dict[str, list[Path]] = {}
    for file in sorted(outputs.glob(f"**/{glob.escape(name) if name else '*'}/{CONFIG}")):
        with suppress(OSError, UnicodeDecodeError), file.open(encoding="utf-8") as text:
            first, second = text.readline(), text.readline()
            config_hash: str | None = first.strip().partition(": ")[2].strip("'")
            if second != f"schema: {SCHEMA}\n":  # of an earlier version, which hashed otherwise
                config_hash = RunDirectory(file.parent).config_hash
            folders.setdefault(config_hash or "", []).append(file.parent)
    for run in runs_in_tables(outputs):
        if (name is None or run.name == name) and (row := row_of(run)):
            folders.setdefault(str(row["config_hash"]), []).append(run)
    return folders


def _identity(facts: Any) -> str | None:
    """Hash of the run that a file describes; None if it describes none."""
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
