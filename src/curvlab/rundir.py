"""A run's folder: what is in it, and what of an earlier run may be used again."""

import glob
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from curvlab.files import atomic_write, held
from curvlab.identity import identity_hash
from curvlab.results import CONCLUSIVE, FILE, SET_ASIDE, Result, read_result

CONFIG = "config.yaml"
TRACEBACK = "traceback.txt"
FINDINGS = (
    "metrics.csv",
    "plots",
    "embeddings.npz",
    "filters.npz",
    "routing.npz",
    "routing.csv",
    "diverged*.pt",
)
PRODUCTS = (FILE, CONFIG, TRACEBACK, "checkpoints", "wandb", "study.journal", *FINDINGS)


class RunDirectory:
    """The folder of one run, named after the run and not after the clock.

    Args:
        path: the folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def checkpoint(self) -> Path:
        """Where the last checkpoint is, if there is one."""
        return self.path / "checkpoints" / "last.ckpt"

    @contextmanager
    def claimed(self, wait: Callable[[], None]) -> Iterator[None]:
        """Hold the folder against other processes within the block.

        Two sweeps may share cells, and workers of a killed sweep go on with theirs.

        Args:
            wait: called before waiting for the process that holds the folder, which ends with it.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        with held(self.path, wait):
            yield

    def conclusion(self, config_hash: str) -> Result | None:
        """The result of an earlier run of the same configuration that need not be repeated."""
        result = read_result(self.path)
        if result is None or result.status not in CONCLUSIVE:
            return None
        return result if identity_hash(result.config) == config_hash else None

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
        others = sorted(tables.glob(f"*/*/{glob.escape(str(cell))}"))
        ended = (path for path in others if RunDirectory(path).conclusion(config_hash))
        return next((path for path in ended if path != own), None)

    def copy_from(self, twin: Path, result: Result) -> Result:
        """Take over how a twin ended and what it left, as the run that was about to start.

        Args:
            twin: see `twin`.
            result: the run that was about to start.
        """
        ended = read_result(twin)
        assert ended is not None
        self.prepare(result, fresh=True)
        for path in (path for pattern in FINDINGS for path in twin.glob(pattern)):
            copy = shutil.copytree if path.is_dir() else shutil.copy2
            copy(path, self.path / path.name)
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
        identity = {"config_hash": result.config_hash, **result.config}
        atomic_write(self.path / CONFIG, yaml.safe_dump(identity, sort_keys=False))
        for end in (FILE, TRACEBACK):
            (self.path / end).unlink(missing_ok=True)
        return self.checkpoint if self.checkpoint.exists() else None

    def _hash_of_contents(self) -> str | None:
        try:
            identity = yaml.safe_load((self.path / CONFIG).read_text("utf-8"))
            del identity["config_hash"]
            return identity_hash(identity)
        except (OSError, yaml.YAMLError, KeyError, TypeError):
            return "unknown" if any(self._products()) else None

    def _set_aside(self, name: str) -> None:
        folder = self.path / SET_ASIDE / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for product in list(self._products()):
            shutil.move(product, folder / product.name)

    def _products(self) -> Iterator[Path]:
        return (path for pattern in PRODUCTS for path in self.path.glob(pattern))
