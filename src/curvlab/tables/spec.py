"""Tables: their report blocks, the cells of their sweeps, and the folders of their runs."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, Literal

import yaml
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked_dataclass

from curvlab.config.folder import REPOSITORY, RESULTS, choices, find
from curvlab.config.sources import read
from curvlab.errors import UsageError

log = logging.getLogger(__name__)

Coordinate = str | int | float
"""A row or a column of a table: a model's or dataset's name, or a number such as a dimension."""

SCORE = "score"  # the metric of a table whose datasets have different ones
LARGEST_CURVATURE = "largest_curvature"
"""The metric that is the largest `|kappa|` of a run's learned curvatures; flat models have none."""


LENGTHS = {"max_steps": "steps", "epochs": "passes"}
"""Keys of the trainer for the length of a run, and their units."""

Better = Literal["higher", "lower", "neither"]
"""Whether higher or lower values of a metric are better; `neither`: there are no ranks."""

CLOSED = ConfigDict(extra="forbid")


@checked_dataclass(config=CLOSED)
class SecondNumber:
    """A second number of the same runs, on a separate line; some results may lack it."""

    metric: str  # path into a result's metrics
    label: str  # words at the start of its line


@checked_dataclass(config=CLOSED, kw_only=True)
class ReportBlock:
    """A `report:` block of configs/table/PAPER/NAME.yaml, checked against these types."""

    title: str
    paper: str | None = None  # file of published numbers, next to the table's file or in PAPERS
    select: dict[str, Any] = field(default_factory=dict)  # values (or lists) of its columns
    metric: str  # path into a result's metrics, or `score` for the metric of each run
    scale: float = 1.0  # factor from our numbers to the paper's unit
    second: SecondNumber | None = None
    redrawn: bool = False  # whether the paper draws a split for each run
    better: Better
    rows: str  # path into a result's config
    columns: str
    where: dict[str, Coordinate] = field(default_factory=dict)  # options of the runs to report
    paper_cells: dict[str, tuple[Coordinate, Coordinate]] = field(default_factory=dict)
    paper_columns: dict[str, str] = field(default_factory=dict)
    variants: list[str] = field(default_factory=list)  # columns that repeat a published comparison
    labels: dict[str, str] = field(default_factory=dict)
    cited: list[str] = field(default_factory=list)  # rows that the paper cites
    notes: list[str] = field(default_factory=list)

    @property
    def repeated(self) -> frozenset[str]:
        """Columns that repeat the published numbers of another column and do not count.

        These are the `variants`, and the copies of columns without a variant.
        """
        columns = set(self.variants)
        for copy, original in self.paper_columns.items():
            group = {original, *(c for c, o in self.paper_columns.items() if o == original)}
            if not group & set(self.variants):
                columns.add(copy)
            if group <= columns:
                raise UsageError(f"report.variants: one of {', '.join(sorted(group))} must count")
        return frozenset(columns)


@dataclass(frozen=True)
class TableSpec:
    """A table: the source of its numbers, and the cells of its sweep."""

    name: str
    report: ReportBlock
    planned_rows: tuple[Coordinate, ...]
    planned_columns: tuple[Coordinate, ...]
    planned_seeds: tuple[Coordinate, ...]
    planned_length: dict[str, int]  # `max_steps` and `epochs` of a run
    configs: Path
    panel: int = 0  # number of a figure's panel

    def label(self, path: str, value: Coordinate) -> str:
        """Label of a coordinate: the report's, its configuration's, or else its name."""
        group, _, key = path.rpartition(".")
        if key != "name":
            return f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}"
        if str(value) in self.report.labels:
            return self.report.labels[str(value)]
        return _label(self.configs, f"{group}/{value}") or str(value)


def table_names(configs: Path) -> list[str]:
    """Names of all tables, such as `fpst/fig3`, from the files in `configs/table`."""
    return choices(configs, "table")


def load_table(configs: Path, name: str) -> list[TableSpec]:
    """Read `configs/table/NAME.yaml`: one table, or one for each panel of a figure."""
    names = table_names(configs)
    if name not in names:
        near = get_close_matches(name, names, n=3) or names
        raise UsageError(f"unknown table '{name}': there is {', '.join(near) or 'no table yet'}")
    path = find(configs, f"table/{name}.yaml")
    try:
        config = yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)
    except yaml.YAMLError as error:  # its message names the line
        raise UsageError(f"{path} must be YAML: {' '.join(str(error).split())}") from None
    except (OSError, UnicodeError):
        config = None
    if not isinstance(config, dict):
        raise UsageError(f"{path} must be a readable file of keys and values")
    sweep = _mapping(config, "hydra.sweeper.params", name)
    trainer = _mapping(config, "trainer", name)
    blocks = config.get("report") or {}
    if not isinstance(blocks, list):
        blocks = [blocks]
    # A length that differs by dataset is an interpolation.
    lengths = {key: trainer[key] for key in LENGTHS if isinstance(trainer.get(key), int)}
    specs = []
    for panel, block in enumerate(blocks):
        report = _report(block, name)
        spec = TableSpec(
            name=name,
            report=report,
            planned_rows=_planned_values(sweep, report.rows, name),
            planned_columns=_planned_values(sweep, report.columns, name),
            planned_seeds=_planned_values(sweep, "seed", name),
            planned_length=lengths,
            configs=configs,
            panel=panel,
        )
        specs.append(spec)
    return specs


def load_tables(configs: Path, names: Sequence[str] = ()) -> list[TableSpec]:
    """The tables of these names, or all, one for each panel."""
    return [s for name in names or table_names(configs) for s in load_table(configs, name)]


def _report(block: Any, name: str) -> ReportBlock:
    try:
        return TypeAdapter(ReportBlock).validate_python(block)
    except ValidationError as error:
        wrong = error.errors()[0]
        key = ".".join(map(str, ("report", *wrong["loc"])))
        raise UsageError(f"configs/table/{name}.yaml: {key}: {wrong['msg']}") from None


def _mapping(config: dict[str, Any], path: str, name: str) -> dict[str, Any]:
    part: Any = config
    for key in path.split("."):
        part = part.get(key) or {}
        if not isinstance(part, dict):
            raise UsageError(f"configs/table/{name}.yaml: {path} must hold keys and values: {part}")
    return part


def _planned_values(sweep: dict[str, Any], path: str, name: str) -> tuple[Coordinate, ...]:
    """The values of a key in a sweep; a group's choice (`model`) counts as its name."""
    key = path if path in sweep else path.removesuffix(".name")
    if key not in sweep:
        return ()
    try:
        values = _swept(f"{key}={sweep[key]}")
    except HydraException:
        raise UsageError(
            f"configs/table/{name}.yaml: hydra.sweeper.params.{key} must be values with commas "
            f"between them, or a sweep such as range(0, 5), not {sweep[key]}"
        ) from None
    return tuple(value for value in values if isinstance(value, str | int | float))


@cache  # tables sweep the same seeds
def _swept(word: str) -> list[Any]:
    override = OverridesParser.create().parse_override(word)
    return [*override.sweep_iterator()] if override.is_sweep_override() else [override.value()]


@cache
def _label(configs: Path, name: str) -> str:
    config = read(configs, name)
    return "" if config is None else str(config.get("label") or "")


def workplace() -> Path:
    """The folder whose `outputs` are used: the working directory, or else the repository."""
    folder = Path.cwd()
    if REPOSITORY is None or (folder / "outputs").is_dir():
        return folder
    return REPOSITORY


def shipped_results(results: Path) -> Path | None:
    """The results that ship with curvlab; None if they are `results` themselves."""
    shipped = RESULTS / "tables"
    return None if shipped == results.resolve() else shipped


def own_results(root: Path) -> Path:
    """The folder to which sweeps write; it may not exist."""
    return root / "outputs" / "tables"


def results_folder(root: Path, folder: Path | None = None) -> Path:
    """The folder of results: `folder`, else the user's, else the one that ships with curvlab."""
    if folder is None:
        folder = own_results(root)
        if not folder.is_dir():
            log.warning("no runs in outputs/tables yet: these are the results that curvlab ships")
            folder = RESULTS / "tables"
        return folder
    if not folder.is_dir():
        raise UsageError(f"no folder {folder}: name the one that all tables' runs are below")
    return folder
