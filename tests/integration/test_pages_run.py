"""The commands of all pages run, on ten steps of one cell where they train."""

import re

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import OmegaConf

from commands_of_pages import PAGES, ROOT, commands
from composing import CONFIGS
from curvlab.errors import UsageError

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.filterwarnings("ignore:Sparse invariant checks are implicitly disabled"),
]
ALL = list(dict.fromkeys((name, tuple(words)) for page in PAGES for name, words in commands(page)))
SHORT = {
    "trainer.max_steps": "10",
    "trainer.steps_per_epoch": "10",
    "trainer.compile": "false",
    "trainer.accelerator": "cpu",
    "trainer.parallel_seeds": "1",
}
MOST_NODES = 3000


def one(key, values):
    """One of the values that a word sweeps over: the first, of data sets the last, mostly small."""
    override = OverridesParser.create().parse_override(f"{key}={values}")
    swept = list(override.sweep_string_iterator()) if override.is_sweep_override() else [values]
    return swept[-1 if key == "dataset" else 0]


def shortened(words):
    """A training's cell, ten steps on a graph that is not large."""
    said = dict(word.split("=", 1) for word in words if "=" in word)
    if "table" in said:
        table = OmegaConf.load(CONFIGS / "table" / f"{said['table']}.yaml")
        swept = {key: one("", value) for key, value in table.hydra.sweeper.params.items()}
        said = {**swept, **said}
    said = {key: one(key, value) for key, value in said.items() if not key.startswith("hydra")}
    said |= SHORT
    if said.get("dataset") == "synthetic_large" or "dataset.source.num_nodes" in said:
        said["dataset.source.num_nodes"] = str(MOST_NODES)
    return [f"{key}={value}" for key, value in said.items() if not key.startswith("paths.")]


def trains(words):
    """Whether a command trains here: not a search, a study or what other tests are about."""
    choices = {word.partition("=")[0] for word in words}
    return not choices & {"search", "study", "print_config", "-h", "--help"}


@pytest.mark.parametrize(
    "words", [words for name, words in ALL if name == "train" and trains(words)], ids=" ".join
)
def test_a_training_of_a_page(run_here, mirror, words):
    try:
        result = run_here(*shortened(words), f"paths.mirror={mirror}")
    except UsageError as error:
        if " is missing, " not in str(error) and "pip install 'curvlab[" not in str(error):
            raise
        pytest.skip(str(error))
    assert result.status == "finished", result.error


OWN = [w for name, w in ALL for w in [(name, *w)] if name in ("tables", "plot")]
LONG = {"fill", "--watch", "refresh"}
RUNS = re.compile(r"(?<!--output )(outputs/|/shared/)")
"""Where earlier runs would have to be."""


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch's compiler
@pytest.mark.parametrize(
    "words",
    [words for words in OWN if not LONG & {*words} and not RUNS.search(" ".join(words))],
    ids=" ".join,
)
def test_a_table_or_picture_of_a_page(script, mirror, monkeypatch, words):
    monkeypatch.setenv("CURVLAB_MIRROR", str(mirror))
    places = [word.replace("docs/", f"{ROOT}/docs/") for word in words[1:]]
    code, _, said = script(f"{words[0]}.py", *places)
    assert code in (0, None), said


PAGE = (ROOT / "docs" / "your_graph.md").read_text(encoding="utf-8")
FILES = re.findall(r"^`friends/(\S+)`.*:\n\n((?:    .*\n)+)", PAGE, re.MULTILINE)


@pytest.mark.parametrize("words", re.findall(r"curvlab train (.*dataset=friends.*)", PAGE))
def test_a_training_on_the_folder_that_a_page_makes(run_here, tmp_path, words):
    folder = tmp_path / "friends"
    folder.mkdir()
    for name, lines in FILES:
        (folder / name).write_text(lines.replace("    ", ""))
    words = words.replace("=friends", f"=graph_folder dataset.path={folder}").split()
    short = [f"{key}={value}" for key, value in SHORT.items()]
    assert run_here(*words, *short).status == "finished"
