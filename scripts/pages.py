"""Pages of the site that the source writes: models, geometry, the API. A hook of mkdocs.yml."""

import posixpath
import re
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from curvlab.config.schema import MISSING, Option, completed, locate
from curvlab.tables import load_table, table_names
from curvlab.tables.page import page as page_of

ROOT = Path(__file__).resolve().parents[1]
CONFIGS, DOCS, SOURCE = ROOT / "configs", ROOT / "docs", ROOT / "src"
EXAMPLES = ROOT / "examples"
PLACED = ("index.md", "install.md", "errata.md", "protocol.md", "speed.md")
"""Pages of docs/ with a place of their own in the navigation."""

MATH = re.compile(r"\$([^$\n]+)\$")
LARGE = 'displaystyle="true" style="font-size: 1.15em"'
NAMED = re.compile(r"`(curvlab\.[\w.]+)`")
DRAWING = re.compile(r"!\[[^\]]*\]\(([\w-]+\.svg)\)")
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
        "A benchmark compares them with geoopt:"
    )
    beside = "[geometry.txt](../results/speed/geometry.txt)"
    return "\n".join(
        ["# Geometry", "", text, "", beside, "", "| module | content |", "|---|---|", *rows, ""]
    )


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
    written = _written(target)
    head = written.pop("", "")
    module = _module_of(target)
    parts = {
        "Equations": written.get("Equations", ""),
        "Options": _options(target),
        "Configurations": _configurations(names),
        "Differences from the paper": _differences(target, written),
        "How it was verified": _verified(target, written),
        "Results": _results(names),
        "Citation": _citation(target),
        "Source": f"[`{module}`](../api/{module}.md)",
    }
    body = "\n\n".join(f"## {title}\n\n{text}" for title, text in parts.items() if text)
    if not head:
        idea = re.split(r"\n(?:Args|Attributes|Shapes|Raises):", _says(target))[0].strip()
        head = f"# {target.rpartition('.')[2]}\n\n{_paper(target)}\n\n{idea}"
    return f"{head}\n\n{body}\n"


def _says(target: str) -> str:
    """A class's docstring."""
    found = locate(target)
    return found.docstring.value if found is not None and found.docstring else ""


def _written(target: str) -> dict[str, str]:
    """What docs/models/ says of a class, by title; the text above the first one by "".

    Formulas become MathML, which needs no script, drawings parts of the page, whose colours they
    take, and names of the code links with their lines.
    """
    path = DOCS / _page_of(target)
    if not path.exists():
        return {}
    text = DRAWING.sub(lambda m: _drawing(path.parent / m[1]), path.read_text(encoding="utf-8"))
    text = NAMED.sub(_place, MATH.sub(_formula, text))
    pieces = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)
    return {
        title: piece.strip() for title, piece in zip(["", *pieces[1::2]], pieces[::2], strict=True)
    }


def _formula(match: re.Match[str]) -> str:
    """A formula, which breaks at the wide spaces between its parts."""
    parts = [
        convert(part).replace(" display=", f" {LARGE} display=", 1)
        for part in match[1].split(r"\quad")
    ]
    return " &emsp;".join(parts)


def _drawing(path: Path) -> str:
    svg = re.sub(r"<style>.*?</style>\n?", "", path.read_text(encoding="utf-8"))
    return f'<figure style="width: 100%; max-width: 24rem">\n{svg.strip()}\n</figure>'


def _place(match: re.Match[str]) -> str:
    """A name of the code as a link to its documentation, with its file and line."""
    found = locate(match[1])
    if found is None:
        raise PluginError(f"{match[1]} of docs/models is not in the code: mend the name")
    file = found.relative_package_filepath.as_posix()
    return f"[`{match[1].rpartition('.')[2]}`][{match[1]}] ({file}, line {found.lineno})"


def _differences(target: str, written: dict[str, str]) -> str:
    found = re.search(
        r"^Differences from the (?:paper|code):.*?(?=\n\n|\Z)", _says(target), re.M | re.S
    )
    said = written.get("Differences from the paper", "")
    if found is None:
        return said
    differences = " ".join(found[0].partition(": ")[2].split())
    return "\n\n".join([f"{differences[0].upper()}{differences[1:]}", said]).strip()


@cache
def _cited() -> dict[str, str]:
    """The papers of CITATION.cff as BibTeX, by their arXiv numbers."""
    cff = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    found = {}
    for paper in cff["references"]:
        number = paper["identifiers"][0]["value"].removeprefix("arXiv:")
        authors = [f"{a['family-names']}, {a['given-names']}" for a in paper["authors"]]
        key = f"{paper['authors'][0]['family-names'].lower()}{paper['year']}"
        found[number] = "\n".join(
            [
                "```bibtex",
                f"@article{{{key},",
                f"  title = {{{{{paper['title']}}}}},",
                f"  author = {{{' and '.join(authors)}}},",
                f"  journal = {{arXiv:{number}}},",
                f"  year = {{{paper['year']}}},",
                "}",
                "```",
            ]
        )
    return found


def _citation(target: str) -> str:
    """The papers that a model's module names, as BibTeX if CITATION.cff has one of them."""
    paper = _paper(target)
    numbers = re.findall(r"abs/(\d{4}\.\d+)", paper)
    cited = "\n\n".join(_cited()[n] for n in dict.fromkeys(numbers) if n in _cited())
    return cited or (paper if re.search(r"\b\d{4}\b", paper) else "")


def _options(target: str) -> str:
    options = completed(target)
    rows = [
        f"| `{name}` | {option.says} | {_default(option)} | {_cell(option.doc)} |"
        for name, option in options.items()
    ]
    head = ["Each is `model.OPTION=VALUE` on the command line.", ""]
    table = ["| option | values | default | meaning |", "|---|---|---|---|", *rows]
    return "\n".join([*head, *table]) if rows else ""


def _default(option: Option) -> str:
    """A literal; what is made by the class stands in no cell."""
    return "" if option.default is MISSING else f"`{option.default}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("[", "\\[")


def _configurations(names: list[str]) -> str:
    rows = []
    for name in names:
        lines = (CONFIGS / "model" / f"{name}.yaml").read_text(encoding="utf-8").splitlines()
        says = next((li[2:] for li in lines if li.startswith("# ") and "@package" not in li), "")
        rows.append(f"- `model={name}`: {says}".rstrip(": "))
    return "\n".join(rows)


def _verified(target: str, written: dict[str, str]) -> str:
    """Tests of the model and of the layers in its equations, and the errata that they show."""
    module, cls = _module_of(target).rpartition(".")[2], target.rpartition(".")[2]
    layers = re.findall(r"\]\[[\w.]+\.(\w+)\]", written.get("Equations", ""))
    named = "|".join(dict.fromkeys([cls, *layers]))
    naming = re.compile(rf"\b(import .*\b({named})\b|({named})\(|models\.(triples\.)?{module}\b)")
    tests = {
        path.relative_to(ROOT).as_posix(): text
        for path in sorted((ROOT / "tests").glob("*/test_*.py"))
        if path.parent.name in ("models", "layers")
        and naming.search(text := path.read_text(encoding="utf-8"))
    }
    errata = [
        line
        for line in (DOCS / "errata.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("| ") and any(f"{test}::" in line for test in tests)
    ]
    rows = [
        f"- `pytest {test}`: {_docstring(text).partition(chr(10))[0]}"
        for test, text in tests.items()
    ]
    if errata:
        head = ["| where | printed | holds | shown by |", "|---|---|---|---|"]
        rows += ["", "They show these [errata](../errata.md):", "", *head, *errata]
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
