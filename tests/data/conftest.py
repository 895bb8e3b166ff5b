"""Sources of graphs as their configurations describe them, with files of the test's choosing."""

from pathlib import Path

import pytest
from omegaconf import DictConfig, OmegaConf

from composing import CONFIGS
from curvlab.config.building import build
from curvlab.config.sources import complete
from curvlab.config.validation import check_options
from curvlab.run.parts import build_source, dataset_config

NOWHERE = "http://127.0.0.1:9"  # port 9 (discard) of this machine refuses connections


def without_checksums(node):
    """The same containers, every checksum replaced by "none known"."""
    if isinstance(node, dict):
        checksums = dict.fromkeys(node.keys() & {"sha256", "git_blob"})
        return {k: without_checksums(v) for k, v in node.items()} | checksums
    return [without_checksums(item) for item in node] if isinstance(node, list) else node


@pytest.fixture
def described():
    """`described(name, key=value, ...)`: a dataset's configuration without a network.

    Keys with dots lie below `source`.
    """

    def make(name: str, **changes) -> DictConfig:
        config = dataset_config(name)
        if "url" in config.source:
            config.source.url = NOWHERE
        for key, value in changes.items():
            OmegaConf.update(config, key, value, force_add=True)
        return config

    return make


@pytest.fixture
def source(described, tmp_path):
    """`source(name, mirror, key=value, ...)`: its source, checked as a run checks it.

    Raw files come from the mirror and go to `tmp_path / "data"`.
    """

    def make(name: str | DictConfig, mirror: Path | None = None, **changes):
        config = described(name, **changes) if isinstance(name, str) else name
        check_options(OmegaConf.create({"dataset": config}))
        return build_source(config, {"data_dir": tmp_path / "data", "mirror": mirror})

    return make


@pytest.fixture
def tiny(described, source, tmp_path):
    """`tiny(name, statistics, **changes)`: a source for files that the test put into the mirror.

    The folder is `tmp_path / "mirror"`; no checksum is asserted, and only these statistics are.
    """

    def make(name: str, statistics: dict, **changes):
        plain = without_checksums(OmegaConf.to_container(described(name, **changes)))
        plain["source"]["statistics"] = statistics
        return source(OmegaConf.create(plain), tmp_path / "mirror")

    return make


@pytest.fixture
def put(tmp_path):
    """`put(path, content)` writes a file into the test's mirror."""

    def write(path, content):
        file = tmp_path / "mirror" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        return file

    return write


@pytest.fixture
def harmful(tmp_path):
    """An object whose pickle would write a file when it is read: the test ends without one."""

    class Harmful:
        def __reduce__(self):
            return open, (str(tmp_path / "written"), "w")

    yield Harmful()
    assert not (tmp_path / "written").exists()


@pytest.fixture
def split():
    """`split(name, dataset, key=value, ...)`: a split as its configuration describes it."""

    def make(name: str, dataset: str = "airport", **changes):
        config = OmegaConf.load(CONFIGS / "split" / f"{name}.yaml")
        config = OmegaConf.create({"split": config, "dataset": {"name": dataset}})
        config.split.update(changes)
        complete(config)
        check_options(config)
        return build(config.split)

    return make
