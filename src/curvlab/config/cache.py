"""Answers about compositions, kept on disk: a command composes each cell of a table once.

An answer is found by its question and by the content of everything else that decides it: all files
of configurations, the source of this package, the versions of the libraries, the environment
variables that configurations name. A file of the cache is JSON with a checksum; one that is
damaged, or of another question, is ignored.
"""

import hashlib
import itertools
import json
import math
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import platformdirs
import psutil

from curvlab.checksums import add_checksum, read_json
from curvlab.config.file_contents import FOREIGN, user_files
from curvlab.config.folder import PACKAGE, folders
from curvlab.config.resolvers import RESOLVERS
from curvlab.config.schema import LIBRARIES, is_subclass, stored_signatures
from curvlab.config.trust import SIGNATURES
from curvlab.config.validation import mappings

FOLDER = "CURVLAB_CACHE"
"""Environment variable that names the folder of the cache; empty for no cache."""

PACKAGES = (
    "hydra-core", "omegaconf", "pydantic", "torch", "torch-geometric", "lightning", "geoopt",
    "optuna",
)  # fmt: skip
"""Their versions decide compositions, and the defaults of their classes identities."""

MAX_FILES = 5_000  # files and folders that a command reads for the sake of its cache
MAX_STATES = 8  # states of the files whose answers are kept
RESOLVER = r"\$\{\s*([\w.]+)\s*:(\w*)"
STANDARD_RESOLVERS = {"oc.env", "oc.select", "oc.decode", "oc.create", "oc.deprecated"}
OVERRIDES = ("hydra", "overrides")
"""What a configuration may read of Hydra's; the rest differs from process to process."""

VARIABLE = r"oc\.env\s*:\s*(\w+)"


class CompositionCache:
    """Answers of this state of the files.

    Args:
        folder: folder of the answers; None for no cache.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._files = _files()
        state = _state(self._files) if folder is not None else None
        self._folder = folder / state if folder is not None and state is not None else None

    def get(self, *question: str) -> Any:
        """The answer to a question; None without one."""
        if self._folder is None or any("${" in part for part in question):
            return None
        try:
            stored = read_json(self._file(question))
        except (OSError, ValueError):
            return None
        return stored.get("answer") if stored.get("question") == [*question] else None

    def put(self, answer: Any, config: Mapping[str, Any], *question: str) -> None:
        """Keep an answer about a resolved configuration if its question decides it alone."""
        if self._folder is None or any("${" in part for part in question):
            return
        if not decided_by_overrides(config) or _files() != self._files:
            return
        file = self._file(question)
        partial = file.with_suffix(f".{os.getpid()}.part")
        content = add_checksum({"question": [*question], "answer": answer})
        with suppress(OSError, TypeError):  # a full disk; a value that JSON does not have
            text = json.dumps(content)
            if json.loads(text) != content:
                return  # it has what JSON does not distinguish
            if not self._folder.is_dir():
                self._folder.mkdir(parents=True)
                _remove_old(self._folder.parent)
            partial.write_text(text, encoding="utf-8")
            partial.replace(file)

    def _file(self, question: Sequence[str]) -> Path:
        assert self._folder is not None
        text = json.dumps(question)
        return self._folder / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"


def user_cache() -> CompositionCache:
    """The cache of this user: `CURVLAB_CACHE`, else in the system's folder of caches."""
    folder = os.environ.get(FOLDER)
    place = platformdirs.user_cache_path("curvlab") if folder is None else Path(folder)
    return CompositionCache(None if folder == "" else place / "compositions")


def decided_by_overrides(config: Mapping[str, Any]) -> bool:
    """Whether a resolved configuration reads no file of the user's, and names no unknown class."""
    targets = [str(node["_target_"]) for _, node in mappings(config) if "_target_" in node]
    signatures = stored_signatures()
    if any(t not in signatures and t.partition(".")[0] not in LIBRARIES for t in targets):
        return False
    return not any(is_subclass(target, FOREIGN) for target in targets) and not user_files(config)


def _files() -> dict[str, tuple[int, int, int]]:
    """State of each file and folder that decides compositions; empty if there are too many."""
    places = [(str(folder), ".yaml") for folder in folders()]
    places += [(str(PACKAGE), ".py"), (str(SIGNATURES.parent), SIGNATURES.name)]
    entries = itertools.chain.from_iterable(_below(*place) for place in places)
    try:
        files = dict(itertools.islice(entries, MAX_FILES + 1))
    except OSError:
        return {}
    return files if len(files) <= MAX_FILES else {}


def _below(folder: str, suffix: str) -> Iterator[tuple[str, tuple[int, int, int]]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                yield f"{entry.path}/", (0, 0, 0)  # an empty one is a group, too
                yield from _below(entry.path, suffix)
            elif entry.name.endswith(suffix):
                state = entry.stat()
                yield entry.path, (state.st_mtime_ns, state.st_size, state.st_ino)


def _state(files: Mapping[str, tuple[int, int, int]]) -> str | None:
    """Hash of all that decides a composition besides its overrides; None if something else does."""
    newest = max((modified for modified, *_ in files.values()), default=math.inf)
    if newest >= 1e9 * psutil.Process().create_time():
        return None  # this process may have read an earlier content
    digest = hashlib.sha256()
    variables = {"HOME"}
    for file in sorted(files):
        content = b"" if file.endswith("/") else Path(file).read_bytes()
        digest.update(f"{file}\n{len(content)}\n".encode())
        digest.update(content)
        if file.endswith(".yaml"):
            text = content.decode("utf-8", "replace")
            if not all(map(_is_pure, re.findall(RESOLVER, text))):
                return None
            variables.update(re.findall(VARIABLE, text))
    environment = {name: os.environ.get(name) for name in sorted(variables)}
    versions = (sys.version, [_version(package) for package in PACKAGES], environment)
    digest.update(json.dumps(versions).encode())
    return digest.hexdigest()[:32]


def _is_pure(resolver: tuple[str, str]) -> bool:
    """Whether a resolver gives the same in every process."""
    name, _ = resolver
    return resolver == OVERRIDES or name in RESOLVERS or name in STANDARD_RESOLVERS


@cache
def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _remove_old(folder: Path) -> None:
    """Remove answers of all but the newest states."""
    states = sorted(folder.iterdir(), key=lambda state: state.stat().st_mtime, reverse=True)
    for state in states[MAX_STATES:]:
        shutil.rmtree(state, ignore_errors=True)
