"""Pages of the site about models: equations, options, tests, results. `pages.py` adds them.

    python scripts/model_pages.py

writes the section *Run it* of each page in docs/models.
"""

import inspect
import re
from functools import cache
from pathlib import Path

import yaml
from hydra.utils import get_object
from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError

from curvlab.checked import format_value
from curvlab.config.folder import comment_of
from curvlab.config.schema import MISSING, Option, complete_options
from curvlab.tables.spec import load_table, table_names
from model_groups import (
    CONFIGS,
    GROUPS,
    group_of,
    main_choice,
    models_of_site,
    module_of,
    only_triples,
    page_of,
)

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
SOURCE = ROOT / "src"

MATH = re.compile(r"\$([^$\n]+)\$")
LARGE = 'displaystyle="true" style="font-size: 1.15em"'
CODE_NAME = re.compile(r"`(curvlab\.[\w.]+)`")
MAIN_OPTIONS = 6


MAIN_FIGURE = "fpst/fig3"  # FPS-T's scores; other figures have none
CLASSIFIERS = ("idgl", "lds")

ARGUMENTS = {
    "in_channels": "x.shape[1]",
    "num_classes": "3",
    "graph": "graph",
    "num_entities": "entities",
    "num_relations": "relations",
    "train_triples": "triples",
}
"""Arguments of constructors in examples."""

DATA = "from torch_geometric.data import Data\n"

DRAWING = re.compile(r"!\[[^\]]*\]\(([\w-]+\.svg)\)")


def docstring(source: str) -> str:
    """The docstring of a module's source; empty without one."""
    match = re.match(r'r?"""(.*?)"""', source, re.DOTALL)
    return match[1].strip() if match else ""


def model_pages() -> dict[str, str]:
    """The page of each class and their index, by their places under docs/."""
    models = models_of_site()
    pages = {page_of(target): _page(target, names) for target, names in models.items()}
    return {"models/index.md": _index(models)} | pages


def _index(models: dict[str, list[str]]) -> str:
    """All models by geometry and task, one line each."""
    parts = ["# Models\n\nEach page has commands, equations with their lines of code, and tests."]
    for title in GROUPS:
        lines = [f"## {title}\n", "| class | what | `model=` |", "|---|---|---|"]
        for target, names in models.items():
            if group_of(target) == title:
                link = f"[{target.rpartition('.')[2]}]({Path(page_of(target)).name})"
                comment = comment_of(CONFIGS, f"model/{main_choice(target, names)}.yaml")
                lines.append(f"| {link} | {comment} | {_listed(names)} |")
        parts.append("\n".join(lines))
    return "\n\n".join([*parts, ""])


def run_it(target: str, names: list[str]) -> str:
    """Commands and code that run a model: on your own graph, in a paper's setting, in Python."""
    name = main_choice(target, names)
    needs_folder = only_triples(target) or name in CLASSIFIERS
    dataset = "FOLDER" if needs_folder else "edges.csv"
    settings = _settings([name, *names])
    lines = {f"curvlab train model={name} dataset={dataset}": "your own graph"} | settings
    width = max(map(len, lines))
    commands = [f"    {line:<{width}}   # {comment}" for line, comment in lines.items()]
    options = [
        f"- `model.{key}={_default(option)}`: {option.doc}"
        for key, option in complete_options(target).items()
        if option.doc
    ][:MAIN_OPTIONS]
    if options:
        options = [
            f"`curvlab train help=model/{name}` lists all options. The first ones:",
            "",
            *options,
        ]
    return "\n".join([*commands, "", "```python", *_library(target), "```", "", *options]).rstrip()


def _settings(names: list[str]) -> dict[str, str]:
    """The command of the first table with one of the models, else of a single data set."""

    def is_minor(row: tuple[str, str, tuple[str, ...]]) -> bool:
        table = row[0]
        return "/fig" in table and table != MAIN_FIGURE

    for table, title, coordinates in sorted(_rows_of_tables(), key=is_minor):
        for name in names:
            if name in coordinates:
                return {f"curvlab train -m table={table} model={name}": title}
    return {f"curvlab train model={names[0]} dataset=cora": "a published graph"}


def _library(target: str) -> list[str]:
    """Lines of Python that build a class and call it."""
    cls = target.rpartition(".")[2]
    parameters = inspect.signature(get_object(target)).parameters.values()
    required = [a.name for a in parameters if a.default is a.empty and a.kind is not a.VAR_KEYWORD]
    names = required or ["in_channels"]  # CAT, which takes graphs or triples
    arguments = ", ".join(f"{name}={ARGUMENTS[name]}" for name in names)
    call = f"{cls}({arguments})"
    if "graph" in required:  # LDS, which is trained on halves of the training nodes
        call += ".eval()"
    lines = [f"from curvlab.models import {cls}", "", f"model = {call}"]
    if only_triples(target):
        query = "Data(head=head, relation=relation)"
        return [DATA, *lines, f"scores = model.scores({query})  # [queries, entities]"]
    return [*lines, "points = model(x, edge_index)  # [nodes, model.dim_out]"]


def _default(option: Option) -> str:
    return "..." if option.default is MISSING else format_value(option.default)


def write_pages() -> None:
    """Write the section of each page in docs/models."""
    for target, names in models_of_site().items():
        path = DOCS / page_of(target)
        if path.exists():
            page = with_section(path.read_text("utf-8"), run_it(target, names))
            path.write_text(page, "utf-8")


def with_section(text: str, section: str) -> str:
    """A page with this section *Run it*, above its equations."""
    before, heading, after = text.partition("## Run it\n")
    rest = after[after.index("\n## ") + 1 :] if heading else ""
    if not heading:
        before, _, rest = text.partition("## Equations\n")
        rest = f"## Equations\n{rest}"
    return f"{before}## Run it\n\n{section}\n\n{rest}"


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _paper(target: str) -> str:
    """The paper that a class names, else its module's docstring, arXiv numbers as links."""
    match = re.search(r"^Paper: (.*?)(?=\n\n|\Z)", _says(target), re.M | re.S)
    path = SOURCE.joinpath(*module_of(target).split(".")).with_suffix(".py")
    text = match[1] if match else docstring(path.read_text(encoding="utf-8"))
    text = re.sub(r"arXiv:(\d{4}\.\d+)", r"[arXiv:\1](https://arxiv.org/abs/\1)", text)
    return " ".join(text.split())


def _page(target: str, names: list[str]) -> str:
    sections = _sections_of(target)
    head = sections.pop("", "")
    module = module_of(target)
    parts = {
        "Run it": sections.get("Run it") or run_it(target, names),
        "Equations": sections.get("Equations", ""),
        "Options": _options(target),
        "Configurations": _configurations(names),
        "Differences from the paper": _differences(target, sections),
        "How it was verified": _verified(target, sections),
        "Results": _results(names),
        "Citation": _citation(target),
        "Source": f"`src/{module.replace('.', '/')}.py`",
    }
    body = "\n\n".join(f"## {title}\n\n{text}" for title, text in parts.items() if text)
    if not head:
        idea = re.split(r"\n(?:Args|Attributes|Shapes|Raises):", _says(target))[0].strip()
        head = f"# {target.rpartition('.')[2]}\n\n{_paper(target)}\n\n{idea}"
    return f"{head}\n\n{body}\n"


def _says(target: str) -> str:
    """A class's docstring."""
    return inspect.getdoc(get_object(target)) or ""


def _sections_of(target: str) -> dict[str, str]:
    """Sections of a class's page in docs/models/ by title; the text above them by "".

    Formulas become MathML, which needs no script. Drawings become parts of the page and take its
    colours. Names of the code become links with their lines.
    """
    path = DOCS / page_of(target)
    if not path.exists():
        return {}
    text = path.read_text(encoding="utf-8")
    text = DRAWING.sub(lambda match: _drawing(path.parent / match[1]), text)
    text = MATH.sub(_formula, text)
    text = CODE_NAME.sub(_place, text)
    pieces = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)
    return {
        title: piece.strip("\n")  # code that begins a section keeps its indentation
        for title, piece in zip(["", *pieces[1::2]], pieces[::2], strict=True)
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
    """A name of the code with its file and line."""
    try:
        target = inspect.unwrap(get_object(match[1]))
    except Exception as error:
        raise PluginError(f"{match[1]} of docs/models is not in the code: mend the name") from error
    file = Path(inspect.getfile(target)).relative_to(SOURCE).as_posix()
    line = inspect.getsourcelines(target)[1]
    return f"`{match[1].rpartition('.')[2]}` ({file}, line {line})"


def _differences(target: str, sections: dict[str, str]) -> str:
    match = re.search(
        r"^Differences from the (?:paper|code):.*?(?=\n\n|\Z)", _says(target), re.M | re.S
    )
    details = sections.get("Differences from the paper", "")
    if match is None:
        return details
    differences = " ".join(match[0].partition(": ")[2].split())
    return "\n\n".join([f"{differences[0].upper()}{differences[1:]}", details]).strip()


@cache
def _cited() -> dict[str, str]:
    """The papers of CITATION.cff as BibTeX, by their arXiv numbers."""
    cff = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    entries = {}
    for paper in cff["references"]:
        number = paper["identifiers"][0]["value"].removeprefix("arXiv:")
        authors = [f"{a['family-names']}, {a['given-names']}" for a in paper["authors"]]
        key = f"{paper['authors'][0]['family-names'].lower()}{paper['year']}"
        entries[number] = f"""```bibtex
@article{{{key},
  title = {{{{{paper["title"]}}}}},
  author = {{{" and ".join(authors)}}},
  journal = {{arXiv:{number}}},
  year = {{{paper["year"]}}},
}}
```"""
    return entries


def _citation(target: str) -> str:
    """The papers that a model's module names, as BibTeX if CITATION.cff has one of them."""
    paper = _paper(target)
    numbers = re.findall(r"abs/(\d{4}\.\d+)", paper)
    cited = "\n\n".join(_cited()[n] for n in dict.fromkeys(numbers) if n in _cited())
    return cited or (paper if re.search(r"\b\d{4}\b", paper) else "")


def _options(target: str) -> str:
    rows = []
    for name, option in complete_options(target).items():
        made_by_class = option.default is MISSING
        default = "" if made_by_class else f"`{format_value(option.default)}`"
        doc = option.doc.replace("|", "\\|").replace("[", "\\[")
        rows.append(f"| `{name}` | {option.says} | {default} | {doc} |")
    head = ["Each is `model.OPTION=VALUE` on the command line.", ""]
    table = ["| option | values | default | meaning |", "|---|---|---|---|", *rows]
    return "\n".join([*head, *table]) if rows else ""


def _configurations(names: list[str]) -> str:
    rows = []
    for name in names:
        says = comment_of(CONFIGS, f"model/{name}.yaml")
        rows.append(f"- `model={name}`: {says}".rstrip(": "))
    return "\n".join(rows)


def _verified(target: str, sections: dict[str, str]) -> str:
    """Tests of the model and of the layers in its equations, and the errata that they show."""
    cls = target.rpartition(".")[2]
    equations = sections.get("Equations", "")
    reference = r"`(\w+)` \(curvlab/(?!data|tasks|metrics)([\w/]+)\.py, line"
    code_names = re.findall(reference, equations)
    of_models = [path.replace("/", ".") for _, path in code_names if path.startswith("models/")]
    layers = [name for name, path in code_names if not path.startswith("models/")]
    class_names = "|".join(dict.fromkeys([cls, *layers]))
    files = "|".join(dict.fromkeys([module_of(target).partition(".")[2], *of_models]))
    naming = re.compile(rf"\b(import .*\b({class_names})\b|({class_names})\(|({files})\b)")
    tests = {}
    for path in sorted((ROOT / "tests").glob("*/test_*.py")):
        if path.parent.name not in ("models", "layers"):
            continue
        text = path.read_text(encoding="utf-8")
        if naming.search(text):
            tests[path.relative_to(ROOT).as_posix()] = text
    errata = [row for row in _errata() if any(f"{test}::" in row for test in tests)]
    rows = [
        f"- `pytest {test}`: {docstring(text).partition(chr(10))[0]}"
        for test, text in tests.items()
    ]
    if errata:
        head = ["| where | published | correct | source or test |", "|---|---|---|---|"]
        rows += ["", "They show these [errata](../errata.md):", "", *head, *errata]
    return "\n".join(rows)


@cache
def _errata() -> list[str]:
    """Rows of the errata, with the names of their papers."""
    text = (DOCS / "errata.md").read_text(encoding="utf-8")
    sections = re.findall(r"^## ([^\n( ]+)[^\n]*\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    return [
        f"| {paper}, {row}"
        for paper, rows in sections
        for row in re.findall(r"^\| (.*)$", rows, re.M)
    ]


@cache
def _rows_of_tables() -> list[tuple[str, str, tuple[str, ...]]]:
    """Each table: its name, title and the models in its rows or columns; papers' tables first."""
    specs = [spec for name in table_names(CONFIGS) for spec in load_table(CONFIGS, name)]
    specs.sort(key=lambda spec: spec.report.paper is None)
    return [
        (s.name, s.report.title, tuple(map(str, (*s.planned_rows, *s.planned_columns))))
        for s in specs
    ]


def _results(names: list[str]) -> str:
    lines = set()
    for table, title, coordinates in _rows_of_tables():
        page = f"{table.partition('/')[0]}.md"
        models = [name for name in names if name in coordinates]
        if models and (DOCS / "results" / page).exists():
            lines.add(f"- [{title}](../results/{page}): {_listed(models)}")
    return "\n".join(sorted(lines))


if __name__ == "__main__":
    write_pages()
