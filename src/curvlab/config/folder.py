"""Find configuration files: ours, those of other packages, and added folders."""

import os
import re
from functools import cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

from curvlab.errors import UsageError

PACKAGE = Path(__file__).parents[1]
INSTALLED = PACKAGE / "configs"  # in a wheel; a checkout has the folder at its top
CONFIGS = INSTALLED if INSTALLED.is_dir() else PACKAGE.parents[1] / "configs"
REPOSITORY = None if INSTALLED.is_dir() else CONFIGS.parent
"""The checkout of this package; None if it is installed from a wheel."""
RESULTS = PACKAGE / "stored" if REPOSITORY is None else REPOSITORY / "docs" / "results"
"""The results that ship with curvlab."""

GROUP = "curvlab.configs"
"""Entry points by which other packages name their folders of configurations."""

VARIANTS = "variants"  # key of a file that holds the differences of its variants
PROVENANCE = "provenance"  # key of a recipe that holds where its values are from
EARLIER_PROVENANCE = "found"  # the same key in recipes of earlier versions
ADDED = "CURVLAB_CONFIG_DIRS"
"""Environment variable that passes the added folders to the processes of a launcher."""

_ADDED = [Path(place) for place in os.environ.get(ADDED, "").split(os.pathsep) if place]


def folders(configs: Path = CONFIGS) -> tuple[Path, ...]:
    """Folders of configurations in order of precedence: ours, of packages, added ones."""
    return (configs, *_package_folders(), *_ADDED)


def section_of(name: str) -> tuple[str, str]:
    """The file that holds a configuration as one of its keys, and that key.

    `recipe/TASK/MODEL/KEY` is a key of `recipe/TASK/MODEL`, `GROUP/BASE__VARIANT` one below
    `variants` of `GROUP/BASE`. The key is empty for other names.
    """
    if is_recipe(name):
        group, task, model, *key = name.split("/")
        return f"{group}/{task}/{model}", "/".join(key)
    base, _, variant = name.partition("__")
    return base, variant


def is_recipe(name: str) -> bool:
    """Whether a configuration is a recipe."""
    return name.startswith("recipe/") and name.count("/") > 1


def variants_of(file: Path) -> list[str]:
    """Names of the variants in a file."""
    text = file.read_text(encoding="utf-8")
    section = re.search(rf"(?m)^{VARIANTS}:\n((?:[ #].*\n|\n)*)", text)
    return re.findall(r"(?m)^  (\w+):", section[1]) if section else []


def place_in(folder: Path, name: str) -> tuple[Path, str] | None:
    """A configuration's file in a folder and its key in that file; None if it is not there."""
    name = name.removesuffix(".yaml")
    file = folder / f"{name}.yaml"
    if file.is_file():
        return file, ""
    base, key = section_of(name)
    shared = folder / f"{base}.yaml"
    if not key or not shared.is_file():
        return None
    if is_recipe(name):
        keys = re.findall(r"(?m)^([\w@/.+-]+):", shared.read_text(encoding="utf-8"))
    else:
        keys = variants_of(shared)
    return (shared, key) if key in keys else None


def locate(configs: Path, name: str) -> tuple[Path, str]:
    """File and key of a configuration in the first folder that has it, else its would-be file."""
    places = (place_in(folder, name) for folder in folders(configs))
    return next(filter(None, places), (configs / name, ""))


def find(configs: Path, name: str) -> Path:
    """The file of a configuration in the first folder that has it, else its would-be file."""
    return locate(configs, name)[0]


def address(configs: Path, name: str) -> str:
    """Address of a configuration: `model/gcn.yaml`, or `recipe/TASK/gcn.yaml cora@public`."""
    key = locate(configs, name)[1]
    return f"{section_of(name)[0]}.yaml {key}" if key else f"{name}.yaml"


def comment_of(configs: Path, name: str) -> str:
    """The first comment of a configuration's file; empty without one."""
    file, key = locate(configs, name)
    line = rf"^  {key}: # (.+)$" if key else r"^#(?! *@package) *(.+)$"
    comment = re.search(f"(?m){line}", file.read_text(encoding="utf-8"))
    return comment[1] if comment else ""


def choices(configs: Path, group: str) -> list[str]:
    """Names of a group's choices in all folders, sorted; tables are named with their paper."""
    pattern = "*/*.yaml" if group == "table" else "*.yaml"
    names = set()
    for folder in folders(configs):
        for path in (folder / group).glob(pattern):
            name = path.relative_to(folder / group).with_suffix("").as_posix()
            names.add(name)
            names.update(f"{name}__{variant}" for variant in variants_of(path))
    return sorted(names)


def is_group(configs: Path, name: str) -> bool:
    """Whether a folder has a group of this name."""
    fits = len(name) < 256  # the longest name of a file
    return fits and any((folder / name).is_dir() for folder in folders(configs))


def add(place: str) -> Path:
    """Add a folder of configurations: `DIR`, `file://DIR` or `pkg://PACKAGE`."""
    if place.startswith("pkg://"):
        folder = _package_folder(place.removeprefix("pkg://").replace("/", "."))
    else:
        folder = Path(place.removeprefix("file://")).expanduser().resolve()
    if folder is None or not folder.is_dir():
        raise UsageError(f"there is no folder of configurations {place}: name DIR or pkg://PACKAGE")
    if folder not in _ADDED:
        _ADDED.append(folder)
        os.environ[ADDED] = os.pathsep.join(map(str, _ADDED))
    return folder


@cache
def _package_folders() -> tuple[Path, ...]:
    """Folders of configurations of installed packages."""
    places = (_package_folder(entry.value) for entry in entry_points(group=GROUP))
    return tuple(sorted(folder for folder in places if folder is not None))


def _package_folder(name: str) -> Path | None:
    try:
        spec = find_spec(name)
    except ModuleNotFoundError:
        return None
    places = spec.submodule_search_locations if spec is not None else None
    return Path(next(iter(places))) if places else None
