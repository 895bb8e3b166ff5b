"""Pages of the site that the source writes: models, geometry, the API. A hook of mkdocs.yml."""

import posixpath
import re
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from curvlab.tables import table_names
from curvlab.tables.page import page as page_of
from model_pages import CONFIGS, DOCS, ROOT, SOURCE, docstring, model_pages

PLACED = ("index.md", "install.md", "errata.md", "protocol.md", "speed.md")
"""Pages of docs/ with a place of their own in the navigation."""

STORED = re.compile(r"^\[[^\]\n]+\.txt\]\(([^)\s]+\.txt)\)$", re.MULTILINE)
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
        if written := files.get_file_from_path(name):
            files.remove(written)  # a model's own text, which its page has in it
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
    place = Path(page.file.src_uri)
    heat = f"heatmap/{place.stem}.html"
    if (place.parent / heat).as_posix() in _heatmaps():
        title, rest = markdown.split("\n", 1)
        markdown = f"{title}\n\n[**Heat maps: each cell with its runs**]({heat})\n{rest}"
    here = posixpath.dirname(page.file.src_uri)
    markdown = STORED.sub(lambda m: _stored(posixpath.join(here, m[1])), markdown)

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
    examples = sorted((ROOT / "examples").glob("*.py"))
    pages = {f"tutorials/{p.stem}.md": _tutorial(p) for p in examples} | model_pages()
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
    title, _, rest = docstring(source).partition("\n")
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


def _stored(place: str) -> str:
    """The output of a command, below docs/, in place of the link that stands alone in a line."""
    text = (DOCS / posixpath.normpath(place)).read_text(encoding="utf-8")
    return f"```console\n{text.rstrip()}\n```"


def _in(path: str, package: str) -> bool:
    return path == package or path.startswith(f"{package}.")


def _modules() -> list[tuple[str, str]]:
    """Public modules that define something, with the first line of their docstrings."""
    found = []
    for path in sorted((SOURCE / "curvlab").rglob("*.py")):
        name = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        text = path.read_text(encoding="utf-8")
        if "__init__" not in name and "._" not in name:
            found.append((name, docstring(text).split("\n")[0]))
    return found


def _api_navigation(names: list[str]) -> list[Any]:
    packages = groupby((n for n in names if n != "api/index.md"), lambda name: name.split(".")[1])
    return ["api/index.md", *({package: list(pages)} for package, pages in packages)]


def _index_of_api(modules: dict[str, str]) -> str:
    return f"# API\n\n{_listed(modules, geometry=False)}"


def _index_of_geometry(modules: dict[str, str]) -> str:
    text = (
        "Curvature is the signed `kappa`: negative hyperbolic, zero flat, positive spherical. "
        "The pages are the docstrings of `curvlab.manifolds`: formulas, shapes, errors. "
        "A benchmark compares them with geoopt:"
    )
    beside = "[geometry.txt](../results/speed/geometry.txt)"
    return f"# Geometry\n\n{text}\n\n{beside}\n\n{_listed(modules, geometry=True)}"


def _listed(modules: dict[str, str], geometry: bool) -> str:
    rows = [
        f"| [`{path}`]({path}.md) | {text} |"
        for path, text in modules.items()
        if _in(path, GEOMETRY) == geometry
    ]
    return "\n".join(["| module | content |", "|---|---|", *rows, ""])
