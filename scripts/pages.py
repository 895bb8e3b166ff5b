"""Pages of the site that the source writes: models, geometry, the API. A hook of mkdocs.yml.

    python scripts/pages.py [NAME ...]

runs the scripts in examples/ and stores what they print in examples/printed; pages show it.
"""

import inspect
import json
import posixpath
import re
import subprocess
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from curvlab.tables.page import page as page_of
from curvlab.tables.spec import table_names
from model_groups import CONFIGS, pages_by_group
from model_pages import DOCS, ROOT, docstring, model_pages
from reference_examples import PACKAGES, example, public_members

PLACED = ("index.md", "install.md", "errata.md", "protocol.md", "speed.md")
"""Pages of docs/ with a place of their own in the navigation."""

STORED = re.compile(r"^\[[^\]\n]+\.txt\]\(([^)\s]+\.txt)\)$", re.MULTILINE)
LINK = re.compile(r"(!?)\[([^\]\n]+)\]\(([^)#\s]+)(#[^)\s]*)?\)")
COMMENTED = re.compile(r"^( {4}+)((?:python|curvlab|pip|make) .*?) {2,}# (.*)$", re.MULTILINE)
"""Commands with their comment in the same line, which a narrow page cuts off."""

COMMENT = re.compile(r"<!--.*?-->")
"""Marks of generated numbers; at the start of a line they would end its paragraph."""

CODE = re.compile(r"<code>([^<]+)</code>")
SHORT = 30
"""Most characters of a name that a narrow column must not break."""

VERDICTS = "<!-- verdicts -->"
"""Where a page has the README's table of verdicts."""

LINES = 40
"""Most lines of a tutorial's output."""

LISTED = "<!-- pages -->"
"""Where an index has the list of its pages."""

API = f"""# API

{LISTED}
"""

GEOMETRY = f"""# Geometry

Curvature is the signed `kappa`: negative hyperbolic, zero flat, positive spherical.

{LISTED}

A benchmark compares the functions with geoopt:

[geometry.txt](../results/speed/geometry.txt)
"""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Fill the empty sections of the navigation."""
    names = list(_generated())
    guides = [p.name for p in sorted(DOCS.glob("*.md")) if p.name not in PLACED]
    papers = [f"results/{p.name}" for p in sorted((DOCS / "results").glob("*.md"))]
    sections: dict[str, list[Any]] = {
        "Tutorials": [n for n in names if n.startswith("tutorials/")],
        "How-to guides": guides,
        "Models": ["models/index.md", *({t: pages} for t, pages in pages_by_group().items())],
        "Geometry": [n for n in names if n.startswith("geometry/")],
        "API": [n for n in names if n.startswith("api/")],
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
        source = files.get_file_from_path(name)
        if source:
            files.remove(source)  # the generated page of a model contains its text
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

    Results of a paper begin with a link to their heat maps; comments stand above their commands.
    """
    place = Path(page.file.src_uri)
    heat = f"heatmap/{place.stem}.html"
    if (place.parent / heat).as_posix() in _heatmaps():
        title, rest = markdown.split("\n", 1)
        markdown = f"{title}\n\n[**Heat maps: each cell with its runs**]({heat})\n{rest}"
    markdown = COMMENT.sub("", markdown.replace(VERDICTS, _verdicts()))
    folder = posixpath.dirname(page.file.src_uri)
    markdown = COMMENTED.sub(r"\1# \3\n\1\2", markdown)
    markdown = STORED.sub(lambda m: _stored(posixpath.join(folder, m[1])), markdown)

    def link_text(match: re.Match[str]) -> str:
        image, text, target, _ = match.groups()
        path = posixpath.normpath(posixpath.join(folder, target))
        place = posixpath.normpath(posixpath.join("docs", path))
        file = files.get_file_from_path(path)
        is_published = file is not None and not file.inclusion.is_excluded()
        is_unpublished = (ROOT / place).exists() and not is_published
        if image or not is_unpublished or re.match(r"\w+:", target):
            return match[0]
        return f"{text} (`{place}`)" if place not in text else f"`{place}`"

    return LINK.sub(link_text, markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Say where code in cells of tables may break."""
    cells = re.compile(r"<td>.*?</td>", re.DOTALL)
    return cells.sub(lambda cell: CODE.sub(_breakable, cell[0]), html)


def _breakable(code: re.Match[str]) -> str:
    """A short name stays whole, a command gets room, a path breaks between its parts."""
    text = code[1]
    if " " in text:
        return f'<code class="command">{text}</code>'
    if len(text) <= SHORT:
        return f'<code class="whole">{text}</code>'
    parts = re.sub("(::|/|_)", r"\1<wbr>", text)
    return f"<code>{parts}</code>"


def _verdicts() -> str:
    """The README's table of verdicts, with links that are right in docs/."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    table = readme.partition("<!-- tables.py summary -->")[2].partition("<!-- end -->")[0]
    return table.strip().replace("(docs/", "(")


@cache
def _generated() -> dict[str, str]:
    """All generated pages, by their place under docs/."""
    scripts = {p.stem: _tutorial(p) for p in sorted((ROOT / "examples").glob("*.py"))}
    books = {p.stem: _notebook(p) for p in sorted((ROOT / "examples").glob("*.ipynb"))}
    tutorials = {f"tutorials/{name}.md": text for name, text in (books | scripts).items()}
    pages = tutorials | model_pages()
    return pages | _reference()


def _tutorial(path: Path) -> str:
    """A script as a page: its comments that begin a paragraph are text, the rest is code."""
    source = path.read_text(encoding="utf-8")
    title, _, rest = docstring(source).partition("\n")
    body = source.partition('"""')[2].partition('"""')[2].strip("\n")
    pieces: list[tuple[bool, list[str]]] = []
    begins_paragraph = True
    for line in body.splitlines():
        continues_text = bool(pieces) and pieces[-1][0]
        is_text = line.startswith("# ") and (begins_paragraph or continues_text)
        if not pieces or pieces[-1][0] != is_text:
            pieces.append((is_text, []))
        pieces[-1][1].append(line.removeprefix("# ") if is_text else line)
        begins_paragraph = not line
    parts = []
    for is_text, lines in pieces:
        if is_text:
            parts.append(" ".join(lines))
        else:
            code = "\n".join(["```python", *lines, "```"])
            parts.append(code.replace("\n\n```", "\n```"))
    output = f"```console\n{_output_of(path)}\n```"
    return "\n\n".join([f"# {title.rstrip('.')}", f"    {rest.strip()}", *parts, output, ""])


def _output_of(path: Path) -> str:
    """The first lines that a script prints; it runs only if they are not stored."""
    if not _output_file(path).exists():
        store_output(path)
    lines = _output_file(path).read_text(encoding="utf-8").rstrip().splitlines()
    if len(lines) > LINES:
        lines = [*lines[:LINES], "..."]
    return "\n".join(lines)


def _output_file(script: Path) -> Path:
    return script.parent / "printed" / f"{script.stem}.txt"


def store_output(path: Path) -> None:
    """Run a script and store what it prints."""
    with TemporaryDirectory() as folder:
        command = [sys.executable, str(path), folder]
        ran = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    lines = ran.stdout.replace(f"{folder}/", "").splitlines()
    text = "\n".join(line.rstrip() for line in lines)
    _output_file(path).write_text(f"{text}\n", encoding="utf-8")


def _notebook(path: Path) -> str:
    """A notebook as a page, with the outputs that it stores."""
    parts = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            text = "".join(output.get("text", data.get("text/plain", ""))).rstrip()
            if "image/png" in data:
                picture = "".join(data["image/png"]).replace("\n", "")
                parts.append(f"![](data:image/png;base64,{picture})")
            elif text:
                parts.append(f"```console\n{text}\n```")
    return "\n\n".join([*parts, ""])


def _stored(place: str) -> str:
    """The output of a command, stored below docs/, in place of a line that links to it."""
    text = (DOCS / posixpath.normpath(place)).read_text(encoding="utf-8")
    return f"```console\n{text.rstrip()}\n```"


@cache
def _reference() -> dict[str, str]:
    """Pages of the public names: one for each module of geometry, else one for each package."""
    pages: dict[str, str] = {}
    for package in PACKAGES:
        folder = "geometry" if package == "curvlab.manifolds" else "api"
        for module, members in public_members(package).items():
            title = module.rpartition(".")[2]
            name = "classes" if module == "curvlab.manifolds" else title
            pages[f"{folder}/{name}.md"] = _described(module, members)
    for folder, head in (("geometry", GEOMETRY), ("api", API)):
        listed = [_entry(name, text) for name, text in pages.items() if name.startswith(folder)]
        pages[f"{folder}/index.md"] = head.replace(LISTED, "\n".join(listed))
    return dict(sorted(pages.items(), key=lambda page: not page[0].endswith("index.md")))


def _entry(name: str, text: str) -> str:
    """A page of the reference in the list of its folder, with the first line of its text."""
    title, _, described = text.removeprefix("# ").partition("\n\n")
    return f"- [`{title}`]({Path(name).name}): {described.partition(chr(10))[0]}"


def _described(path: str, members: list[str]) -> str:
    head = f"# {path}\n\n{inspect.getdoc(import_module(path))}\n"
    return "\n".join([head, *(f"::: {member}\n\n{example(member)}\n" for member in members)])


if __name__ == "__main__":
    for example_path in sorted((ROOT / "examples").glob("*.py")):
        if example_path.stem in sys.argv[1:] or len(sys.argv) == 1:
            store_output(example_path)
