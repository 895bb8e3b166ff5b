"""Pages of the site that the source writes: models, geometry, the API. A hook of mkdocs.yml."""

import posixpath
import re
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from curvlab.config.schema import completed, locate
from curvlab.tables import load_table, table_names
from curvlab.tables.page import page as page_of

ROOT = Path(__file__).resolve().parents[1]
CONFIGS, DOCS, SOURCE = ROOT / "configs", ROOT / "docs", ROOT / "src"
EXAMPLES = ROOT / "examples"
PLACED = ("index.md", "install.md", "errata.md", "protocol.md", "speed.md")
"""Pages of docs/ with a place of their own in the navigation."""

LINK = re.compile(r"(!?)\[([^\]\n]+)\]\(([^)#\s]+)(#[^)\s]*)?\)")
GEOMETRY = "curvlab.manifolds"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Fill the empty sections of the navigation."""
    names = list(_generated())
    guides = [p.name for p in sorted(DOCS.glob("*.md")) if p.name not in PLACED]
    papers = [f"results/{p.name}" for p in sorted((DOCS / "results").glob("*.md"))]
    sections: dict[str, list[Any]] = {
        "Tutorials": [n for n in names if n.startswith("tutorials/")],
        "How-to guides": guides,
        "Models": [n for n in names if n.startswith("models/")],
        "Geometry": [n for n in names if n.startswith("geometry/")],
        "API": _api_navigation([n for n in names if n.startswith("api/")]),
        "Results": sorted(papers, key=lambda name: (not name.endswith("README.md"), name)),
    }
    assert config.nav is not None
    config.nav = [
        {title: sections.get(title, value) for title, value in entry.items()}
        for entry in config.nav
    ]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    pages = {**_generated(), **_heatmaps()}
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    return files


@cache
def _heatmaps() -> dict[str, str]:
    """Each paper's tables as a page of heat maps, by its place under docs/."""
    papers = sorted({name.partition("/")[0] for name in table_names(CONFIGS)})
    return {
        f"results/heatmap/{paper}.html": page_of(CONFIGS, paper, DOCS / "results" / "tables")
        for paper in papers
    }


def on_page_markdown(markdown: str, page: Page, files: Files, **_: Any) -> str:
    """Name files of the repository that are no pages, where a page links to them.

    Results of a paper begin with a link to their heat maps.
    """
    heat = f"heatmap/{Path(page.file.src_uri).stem}.html"
    if f"results/{heat}" in _heatmaps():
        title, rest = markdown.split("\n", 1)
        markdown = f"{title}\n\n[**Heat maps: each cell with its runs**]({heat})\n{rest}"
    here = posixpath.dirname(page.file.src_uri)

    def written(match: re.Match[str]) -> str:
        image, text, target, _ = match.groups()
        path = posixpath.normpath(posixpath.join(here, target))
        place = posixpath.normpath(posixpath.join("docs", path))
        published = files.get_file_from_path(path)
        there = (ROOT / place).exists() and (published is None or published.inclusion.is_excluded())
        if image or not there or re.match(r"\w+:", target):
            return match[0]
        return f"{text} (`{place}`)" if place not in text else f"`{place}`"

    return LINK.sub(written, markdown)


@cache
def _generated() -> dict[str, str]:
    """All generated pages, by their place under docs/."""
    modules = dict(_modules())
    models = _models()
    pages = {f"tutorials/{p.stem}.md": _tutorial(p) for p in sorted(EXAMPLES.glob("*.py"))}
    pages["models/index.md"] = _index_of_models(models)
    pages |= {_page_of(target): _model(target, names) for target, names in models.items()}
    pages["geometry/index.md"] = _index_of_geometry(modules)
    for path in modules:
        folder = "geometry" if _in(path, GEOMETRY) else "api"
        pages[f"{folder}/{path}.md"] = f"# {path.removeprefix('curvlab.')}\n\n::: {path}\n" + (
            "    options: {show_root_heading: false, show_root_toc_entry: false}\n"
        )
    pages["api/index.md"] = _index_of_api(modules)
    return pages


def _tutorial(path: Path) -> str:
    """A script as a page: its comments that begin a paragraph are text, the rest is code."""
    source = path.read_text(encoding="utf-8")
    title, _, rest = _docstring(source).partition("\n")
    body = source.partition('"""')[2].partition('"""')[2].strip("\n")
    pieces: list[tuple[bool, list[str]]] = []
    new = True
    for line in body.splitlines():
        is_text = line.startswith("# ") and (new or (bool(pieces) and pieces[-1][0]))
        if not pieces or pieces[-1][0] != is_text:
            pieces.append((is_text, []))
        pieces[-1][1].append(line.removeprefix("# ") if is_text else line)
        new = not line
    parts = [
        " ".join(lines)
        if is_text
        else "\n".join(["```python", *lines, "```"]).replace("\n\n```", "\n```")
        for is_text, lines in pieces
    ]
    return "\n\n".join([f"# {title.rstrip('.')}", f"    {rest.strip()}", *parts, ""])


def _in(path: str, package: str) -> bool:
    return path == package or path.startswith(f"{package}.")


def _modules() -> list[tuple[str, str]]:
    """Public modules that define something, with the first line of their docstrings."""
    found = []
    for path in sorted((SOURCE / "curvlab").rglob("*.py")):
        name = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        text = path.read_text(encoding="utf-8")
        if "__init__" not in name and "._" not in name:
            found.append((name, _docstring(text).split("\n")[0]))
    return found


def _docstring(source: str) -> str:
    match = re.match(r'r?"""(.*?)"""', source, re.DOTALL)
    return match[1].strip() if match else ""


def _api_navigation(names: list[str]) -> list[Any]:
    packages: dict[str, list[str]] = defaultdict(list)
    for name in names:
        if name != "api/index.md":
            packages[name.split(".")[1]].append(name)
    return ["api/index.md", *({package: pages} for package, pages in packages.items())]


def _index_of_api(modules: dict[str, str]) -> str:
    rows = [
        f"| [`{path}`]({path}.md) | {text} |"
        for path, text in modules.items()
        if not _in(path, GEOMETRY)
    ]
    return "\n".join(["# API", "", "| module | content |", "|---|---|", *rows, ""])


def _index_of_geometry(modules: dict[str, str]) -> str:
    rows = [
        f"| [`{path}`]({path}.md) | {text} |"
        for path, text in modules.items()
        if _in(path, GEOMETRY)
    ]
    text = (
        "Curvature is the signed `kappa`: negative hyperbolic, zero flat, positive spherical. "
        "The pages are the docstrings of `curvlab.manifolds`: formulas, shapes, errors. "
        "[Speed](../speed.md) compares them with geoopt."
    )
    return "\n".join(["# Geometry", "", text, "", "| module | content |", "|---|---|", *rows, ""])


def _models() -> dict[str, list[str]]:
    """Classes of models with the choices of `model=` that build them."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted((CONFIGS / "model").glob("*.yaml")):
        found[_target(path.stem)].append(path.stem)
    return dict(sorted(found.items(), key=lambda item: item[0].lower()))


def _target(model: str) -> str:
    """The class of a choice, its own or that of the choice it starts from."""
    config = yaml.safe_load((CONFIGS / "model" / f"{model}.yaml").read_text(encoding="utf-8"))
    if "_target_" in config:
        return str(config["_target_"])
    above = [d for d in config["defaults"] if isinstance(d, str) and d != "_self_"]
    return _target(above[0].rpartition("/")[2])


def _page_of(target: str) -> str:
    return f"models/{target.rpartition('.')[2].lower()}.md"


def _index_of_models(models: dict[str, list[str]]) -> str:
    rows = [
        f"| [{target.rpartition('.')[2]}]({Path(_page_of(target)).name}) "
        f"| {_paper(target).split('. ')[0].strip('.')} | {_listed(names)} |"
        for target, names in models.items()
    ]
    return "\n".join(["# Models", "", "| class | paper | `model=` |", "|---|---|---|", *rows, ""])


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _module_of(target: str) -> str:
    found = locate(target)
    assert found is not None
    return found.module.path


def _paper(target: str) -> str:
    """The module's docstring, arXiv numbers as links."""
    path = SOURCE.joinpath(*_module_of(target).split(".")).with_suffix(".py")
    text = _docstring(path.read_text(encoding="utf-8"))
    text = re.sub(r"arXiv:(\d{4}\.\d+)", r"[arXiv:\1](https://arxiv.org/abs/\1)", text)
    return " ".join(text.split())


def _model(target: str, names: list[str]) -> str:
    parts = {
        "Options": _options(target),
        "Configurations": _configurations(names),
        "How it was verified": _verified(target),
        "Results": _results(names),
        "Source": f"[`{_module_of(target)}`](../api/{_module_of(target)}.md)",
    }
    body = "\n\n".join(f"## {title}\n\n{text}" for title, text in parts.items() if text)
    found = locate(target)
    says = found.docstring.value if found is not None and found.docstring else ""
    idea = re.split(r"\n(?:Args|Attributes|Shapes|Raises):", says)[0].strip()
    return f"# {target.rpartition('.')[2]}\n\n{_paper(target)}\n\n{idea}\n\n{body}\n"


def _options(target: str) -> str:
    options = completed(target)
    rows = [
        f"| `{name}` | {option.says} | `{option.default}` | {_cell(option.doc)} |"
        for name, option in options.items()
    ]
    head = ["Each is `model.OPTION=VALUE` on the command line.", ""]
    table = ["| option | values | default | meaning |", "|---|---|---|---|", *rows]
    return "\n".join([*head, *table]) if rows else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("[", "\\[")


def _configurations(names: list[str]) -> str:
    rows = []
    for name in names:
        lines = (CONFIGS / "model" / f"{name}.yaml").read_text(encoding="utf-8").splitlines()
        says = next((li[2:] for li in lines if li.startswith("# ") and "@package" not in li), "")
        rows.append(f"- `model={name}`: {says}".rstrip(": "))
    return "\n".join(rows)


def _verified(target: str) -> str:
    """Errata whose tests are of the model, and files of tests that name it."""
    module, cls = _module_of(target).rpartition(".")[2], target.rpartition(".")[2]
    naming = re.compile(
        rf"\b(import .*\b{cls}\b|models\.(triples\.)?{module}\b|{cls}\(|model={module}\b)"
    )
    tests = [
        p.relative_to(ROOT).as_posix()
        for p in sorted((ROOT / "tests").rglob("test_*.py"))
        if naming.search(p.read_text(encoding="utf-8"))
    ]
    own = [t for t in tests if t.startswith("tests/models/")] or tests
    errata = [
        line
        for line in (DOCS / "errata.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("| ") and any(f"{test}::" in line for test in own if module in test)
    ]
    rows = [f"- `pytest {test}`" for test in tests]
    if errata:
        head = ["| where | printed | holds | shown by |", "|---|---|---|---|"]
        rows = ["[Errata](../errata.md) that its tests show:", "", *head, *errata, "", *rows]
    return "\n".join(rows)


@cache
def _rows_of_tables() -> list[tuple[str, str, tuple[str, ...]]]:
    """Each table: its name, title and the models in its rows or columns."""
    specs = [spec for name in table_names(CONFIGS) for spec in load_table(CONFIGS, name)]
    return [
        (s.name, s.report.title, tuple(map(str, (*s.planned_rows, *s.planned_columns))))
        for s in specs
    ]


def _results(names: list[str]) -> str:
    found = {
        f"- [{title}](../results/{name.partition('/')[0]}.md): {_listed(here)}"
        for name, title, coordinates in _rows_of_tables()
        if (here := [n for n in names if n in coordinates])
        and (DOCS / "results" / f"{name.partition('/')[0]}.md").exists()
    }
    return "\n".join(sorted(found))
