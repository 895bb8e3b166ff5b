"""Pages that people read: what they link to and name is there."""

import importlib
import os
import re
import shlex
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from html import escape
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.utils import get_object
from scripts.reference_examples import NO_EXAMPLE, PACKAGES, example, public_members
from torch_geometric.data import Data

from composing import ROOT
from curvlab.cli.aliases import resolve_aliases
from curvlab.cli.overrides import check_overrides, parse
from curvlab.config.compose import compose
from curvlab.config.resolvers import run_name
from curvlab.errors import UsageError
from curvlab.run.command import Command

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

PLACES = re.compile(
    r"\$|\b(?:NAME|FOLDER|DIR|RUN|RUN_FOLDER|OLDER)\b|_folder|dataset=(?:pyg|networkx|friends|\./|\S+\.)"
)
"""What stands for something of the reader's own."""


def text_of(page: Path) -> str:
    """A page with a command on each line, whose shell variables have their values."""
    values: dict[str, str] = {}
    lines = []
    for line in page.read_text(encoding="utf-8").replace("\\\n", " ").splitlines(keepends=True):
        if given := re.match(r'    (\w+)="(.*)"$', line):
            values[given[1]] = given[2]
        lines.append(re.sub(r"\$(\w+)", lambda found: values.get(found[1], found[0]), line))
    return "".join(lines)


def commands(page: Path) -> Iterator[tuple[str, list[str]]]:
    """Commands of a page, as words: the lines of code that begin with one of ours."""
    text = text_of(page)
    lines = re.findall(
        r"^    (?:python (?:scripts/)?(\w+)\.py|curvlab (\w+)) (.*)$", text, re.MULTILINE
    )
    for script, verb, words in lines:
        if not PLACES.search(words):
            yield script or verb, shlex.split(words, comments=True)


COMMAND = re.compile(
    r"curvlab\.(?P<call>train|load)\((?P<arguments>[^)]*)\)|(?P<line>curvlab \w[^\n`]*)"
)
READ = re.compile(r"(?<!--output )(?<![\w/])outputs/[^\s\"'`]+")


def steps(page: Path) -> Iterator[tuple[list[str], list[str]]]:
    """The overrides of each training on a page, and the paths below `outputs` of others."""
    text = text_of(page)
    for found in COMMAND.finditer(text):
        for line in (found["line"] or "").split("&& "):
            try:
                words = shlex.split(line, comments=True)[1:]
            except ValueError:  # prose
                continue
            if words[:1] == ["train"]:
                yield [w for w in words[1:] if not w.startswith(("-", "$"))], []
            elif words and words[0] != "init-graph":
                yield [], READ.findall(" ".join(words))
        if found["call"] == "train":
            yield re.findall(r'"([^"]+=[^"]*)"', found["arguments"]), []
        elif found["call"] == "load":
            yield [], READ.findall(found["arguments"])


def made_by(overrides: list[str]) -> Iterator[str]:
    """The folders that a training writes."""
    if any(PLACES.search(word) for word in overrides):
        return
    parsed = [parse(word) for word in resolve_aliases(overrides)]
    for cell in BasicSweeper.split_arguments(parsed, None)[0]:
        config = compose(cell)
        model, dataset, task = (config[key].name for key in ("model", "dataset", "task"))
        if config.experiment:
            yield f"outputs/tables/{config.experiment}"
        elif "search" in config:
            yield f"outputs/search/{task}/{model}/{dataset}"
        elif "study" in config:
            yield f"outputs/study/{task}"
        else:
            name = run_name(cell, _root_=config)
            yield f"outputs/runs/{task}/{dataset}/{model}/{name}/seed{config.seed}"


def spelt_out(path: str) -> list[str]:
    """A path for each of the alternatives in its braces."""
    first, brace, rest = path.partition("{")
    if not brace:
        return [path]
    inner, _, rest = rest.partition("}")
    return [each for name in inner.split(",") for each in spelt_out(f"{first}{name}{rest}")]


def is_in(read: str, made: str) -> bool:
    """Whether a path, perhaps with wildcards, is a folder, in it, or above it."""
    parts = [re.escape(part).replace(r"\*", "[^/]*") for part in read.rstrip("/").split("/")]
    pattern = "/".join(".*" if part == re.escape("...") else part for part in parts)
    return bool(re.match(f"{pattern}(/|$)", made)) or read.startswith(f"{made}/")


@pytest.mark.sampled(3)
@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_path_that_a_command_reads_was_made_by_one_before_it(page):
    made: list[str] = []
    trained: list[list[str]] = []
    for overrides, paths in steps(page):
        trained += [overrides] if overrides else []
        for path in (each for found in paths for each in spelt_out(found)):
            if path == "outputs/latest":
                assert trained, path
                continue
            while trained and not any(is_in(path, folder) for folder in made):
                made += made_by(trained.pop())
            assert any(is_in(path, folder) for folder in made), path


ERRATA = (ROOT / "docs" / "errata.md").read_text()
MODELS = sorted((ROOT / "docs" / "models").glob("*.md"))


def headings(page):
    """Anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_to_files_and_headings(page):
    found = re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8"))
    for link in found:
        if re.match(r"https?:|mailto:", link):
            continue
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), link
        assert not anchor or target.suffix != ".md" or anchor in headings(target), link


@pytest.mark.parametrize("page", MODELS, ids=lambda page: page.stem)
def test_a_models_page_is_a_drawing_and_equations_with_their_code(page):
    text = page.read_text(encoding="utf-8")
    assert ET.parse(page.with_suffix(".svg")).getroot().get("stroke") == "currentColor"
    equations = re.findall(r"^- .*$", text.partition("## Equations")[2], flags=re.MULTILINE)
    assert len(equations) >= 3
    for equation in equations:
        name = re.search(r"`(curvlab\.[\w.]+)`$", equation)
        assert name is not None, equation
        assert get_object(name[1])


def imported(script):
    for package in ("latex2mathml", "mkdocs"):
        pytest.importorskip(package)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "scripts")
        return importlib.import_module(script)


@pytest.fixture(scope="module")
def model_pages():
    return imported("model_pages")


def rendered(page):
    """The HTML of a page of docs/, as the site has it."""
    markdown = pytest.importorskip("markdown")
    pages = imported("pages")
    source = page.relative_to(ROOT / "docs").as_posix()
    place = SimpleNamespace(file=SimpleNamespace(src_uri=source))
    included = SimpleNamespace(inclusion=SimpleNamespace(is_excluded=lambda: False))
    files = SimpleNamespace(get_file_from_path=lambda path: included)
    text = pages.on_page_markdown(page.read_text("utf-8"), page=place, files=files)
    html = markdown.markdown(text, extensions=["attr_list", "tables", "pymdownx.superfences"])
    return pages.on_page_content(html)


@pytest.mark.nightly
def test_a_paragraph_with_generated_numbers_is_one_paragraph_of_the_site():
    page = ROOT / "docs" / "results" / "README.md"
    blocks = re.split(r"<(?:p|h\d|table|ul|pre)\b", rendered(page))
    shown = {" ".join(re.sub(r"^[^<]*?>|<[^>]+>", "", block).split()) for block in blocks}
    paragraphs = re.split(r"\n\n", page.read_text("utf-8"))
    generated = [p for p in paragraphs if re.search(r"<!-- (cell|claim|leaders) ", p)]
    assert generated
    for paragraph in generated:
        plain = re.sub(r"<!--.*?-->|[`*[]|\]\([^)]+\)", "", paragraph)
        assert escape(" ".join(plain.split()), quote=False) in shown


def test_commands_of_each_models_page_are_code(model_pages):
    for name, text in model_pages.model_pages().items():
        if name != "models/index.md":
            assert "\n## Run it\n\n    curvlab train " in text, name


def test_the_navigation_has_each_models_page_in_one_group(model_pages):
    groups = imported("model_groups").pages_by_group()
    grouped = [page for pages in groups.values() for page in pages]
    assert sorted([*grouped, "models/index.md"]) == sorted(model_pages.model_pages())


def test_each_models_page_says_how_to_run_it(model_pages):
    for target, names in model_pages.models_of_site().items():
        path = ROOT / "docs" / model_pages.page_of(target)
        if not path.exists():
            continue
        text = path.read_text(encoding="utf-8")
        section = model_pages.run_it(target, names)
        assert model_pages.with_section(text, section) == text, "python scripts/model_pages.py"


@pytest.mark.parametrize("page", MODELS, ids=lambda page: page.stem)
def test_the_code_of_a_models_page_runs(page):
    (code,) = re.findall(r"## Run it\n.*?```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    edges = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
    x, y = torch.rand(4, 6), torch.tensor([0, 1, 2, 0])
    names = {"x": x, "edge_index": edges, "graph": Data(x=x, edge_index=edges, y=y)}
    names |= {"entities": 5, "relations": 2, "head": y, "relation": torch.tensor([0, 1, 1, 0])}
    names["triples"] = torch.tensor([[0, 1, 2], [0, 1, 0], [3, 4, 1]])
    exec(code, names)
    if "scores" in names:
        assert names["scores"].shape == (4, 5)
    else:
        assert names["points"].shape == (4, names["model"].dim_out)


def test_the_page_on_installing_lists_the_extras():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    assert set(re.findall(r"`curvlab\[(\w+)\]`", page)) == set(project["optional-dependencies"])


def test_every_test_that_the_errata_name_exists():
    named = set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", ERRATA))
    assert len(named) > 50
    assert ERRATA.count("`tests/") == len(re.findall(r"`tests/[\w/]+\.py::\w+`", ERRATA))
    missing = [
        f"{path}::{name}"
        for path, name in sorted(named)
        if not re.search(rf"^def {name}\(", (ROOT / path).read_text(), re.MULTILINE)
    ]
    assert missing == []


def test_every_row_has_four_cells_and_says_what_shows_it():
    rows = [line for line in ERRATA.splitlines() if line.startswith("|")]
    for row in rows:
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert len(cells) == 4, row
        assert all(cells), row


PARSED = {
    "tables": "tables", "plot": "plot", "adopt": "adopt",
    "download": "data", "data": "data", "wandb_sync": "wandb_sync",
}  # fmt: skip
"""Modules whose words are read here, by script or verb."""


@pytest.mark.sampled(10)
@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_of_a_page_are_taken(page, monkeypatch):
    """Each is composed and checked as at its start; below some are run."""
    for name, words in commands(page):
        if name == "train" and not words[0].startswith("--"):
            multirun = "-m" in words
            overrides = [word for word in words if word not in ("-m", "--dry-run")]
            try:
                check_overrides(overrides, multirun, Command.from_overrides)
            except UsageError as missing:  # a logger's package, which is optional
                if "pip install 'curvlab[" not in str(missing):
                    raise
        elif name in PARSED:
            verb = importlib.import_module(f"curvlab.cli.{PARSED[name]}")
            monkeypatch.setattr(verb.main, "work", lambda _: None)
            assert verb.main(words) == 0, words


PUBLIC = [name for each in PACKAGES for names in public_members(each).values() for name in names]


@pytest.mark.parametrize("name", PUBLIC)
def test_the_example_of_a_public_name_runs(name):
    lines = example(name).splitlines()
    assert (lines == []) == (name.rpartition(".")[2] in NO_EXAMPLE)
    printed = [line for line in lines if not line.startswith((">>>", "```"))]
    assert bool(printed) == bool(lines)


@pytest.mark.nightly
def test_the_site_is_built_without_a_broken_link(tmp_path):
    for package in ("material", "mkdocstrings_handlers.python"):
        pytest.importorskip(package)
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert (tmp_path / "search" / "search_index.js").exists()  # found without a server
    page = (tmp_path / "models" / "fpst.html").read_text(encoding="utf-8")
    assert "2309.04082" in page
    assert "eigenvectors" in page
    for part in ("<svg", "<math", "layers/stereographic.py, line", "cho2023"):
        assert part in page, part


ALL = list(dict.fromkeys((name, tuple(words)) for page in PAGES for name, words in commands(page)))
OWN = [w for name, w in ALL for w in [(name, *w)] if name in ("tables", "plot")]
LONG = {"refresh", "repeat"}
"""Verbs that write files of the repository; other tests run them."""
RUNS = re.compile(r"(?<!--output )(outputs/|/shared/)")
"""Where earlier runs would have to be."""


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch's compiler
@pytest.mark.parametrize(
    "words",
    [words for words in OWN if not LONG & {*words} and not RUNS.search(" ".join(words))],
    ids=" ".join,
)
def test_a_table_or_picture_of_a_page(script, mirror, monkeypatch, words):
    monkeypatch.setenv("CURVLAB_MIRROR", str(mirror))
    spelt = [each for word in words[1:] for each in spelt_out(word)]
    places = [word.replace("docs/", f"{ROOT}/docs/") for word in spelt]
    script(f"{words[0]}.py", *places)
