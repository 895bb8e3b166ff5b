"""Where the configurations are."""

from functools import cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

from curvlab.errors import UsageError

PACKAGE = Path(__file__).parents[1]
INSTALLED = PACKAGE / "configs"
"""The folder in a wheel; a checkout has it at its top."""

CONFIGS = INSTALLED if INSTALLED.is_dir() else PACKAGE.parents[1] / "configs"
REPOSITORY = None if INSTALLED.is_dir() else CONFIGS.parent
"""The checkout that this package lies in; None for an installed one."""

GROUP = "curvlab.configs"
"""Entry points of other packages: each names a package that is a folder of configurations."""

LONGEST_NAME = 255
"""Characters of a file's name, on most systems."""

_ADDED: list[Path] = []


def folders(configs: Path = CONFIGS) -> tuple[Path, ...]:
    """Every folder of configurations: this one, those of installed packages, those added here.

    The first that has a file is the one it is taken from, as Hydra does.
    """
    return (configs, *_of_packages(), *_ADDED)


def added() -> tuple[Path, ...]:
    """The folders that `add` has taken."""
    return tuple(_ADDED)


def find(configs: Path, name: str) -> Path:
    """A file of the first folder that has it; where none has, the path in `configs`."""
    found = (folder / name for folder in folders(configs) if (folder / name).is_file())
    return next(found, configs / name)


def choices(configs: Path, group: str, pattern: str = "*.yaml") -> list[str]:
    """Names of a group's choices in all folders, sorted; `pattern` is of their files."""
    names = {
        path.relative_to(folder / group).with_suffix("").as_posix()
        for folder in folders(configs)
        for path in (folder / group).glob(pattern)
    }
    return sorted(names)


def is_group(configs: Path, name: str) -> bool:
    """Whether a folder has a group of this name."""
    if len(name) > LONGEST_NAME:  # the system refuses to look for it
        return False
    return any((folder / name).is_dir() for folder in folders(configs))


def add(place: str) -> Path:
    """Take configurations from a folder too: `DIR`, `file://DIR` or `pkg://PACKAGE`.

    Raises:
        UsageError: there is no such folder or package.
    """
    if place.startswith("pkg://"):
        folder = _of_package(place.removeprefix("pkg://").replace("/", "."))
    else:
        folder = Path(place.removeprefix("file://")).resolve()
    if folder is None or not folder.is_dir():
        raise UsageError(f"there is no folder of configurations {place}: name DIR or pkg://PACKAGE")
    if folder not in _ADDED:
        _ADDED.append(folder)
    return folder


@cache
def _of_packages() -> tuple[Path, ...]:
    """The folders that installed packages name."""
    named = (_of_package(entry.value) for entry in entry_points(group=GROUP))
    return tuple(sorted(folder for folder in named if folder is not None))


def _of_package(name: str) -> Path | None:
    try:
        spec = find_spec(name)
    except ModuleNotFoundError:
        return None
    places = spec.submodule_search_locations if spec is not None else None
    return Path(next(iter(places))) if places else None
