"""Reference points of a run's score, computed once for each data set, split and task."""

import hashlib
import json
from contextlib import suppress
from pathlib import Path

from omegaconf import DictConfig

from curvlab.data.loaders.datamodule import GraphDataModule
from curvlab.errors import error_sentence
from curvlab.files import atomic_write
from curvlab.process import without_group
from curvlab.results.identity import built, canonical
from curvlab.results.result import Result
from curvlab.run.reporting import say
from curvlab.tasks.references import TooLargeError
from curvlab.tasks.task import Task

FOLDER = "references"
PARTS = ("dataset", "split", "task", "files", "seed")
"""Parts of a configuration that decide the reference points."""


def references_of(
    task: Task, data: GraphDataModule, result: Result, config: DictConfig
) -> dict[str, float]:
    """Test scores of simple methods by name; if there are none, the reason is printed."""
    identity = built(result.config, result.revisions)
    parts = {name: identity[name] for name in PARTS if name in identity}
    key = hashlib.sha256(canonical(parts).encode()).hexdigest()[:16]
    file = Path(config.paths.data_dir) / FOLDER / f"{key}.json"
    with suppress(OSError, ValueError):
        return dict(json.loads(file.read_text()))
    try:
        with without_group():
            references = task.references(data)
    except TooLargeError as error:
        say(f"no reference points: {error}")
        return {}
    except Exception as error:  # a library's; the run's result does not depend on it
        say(f"no reference points: {type(error).__name__}: {error_sentence(error)}")
        return {}
    with suppress(OSError):  # a cache
        atomic_write(file, json.dumps(references))
    return references
