"""Figures and tables of the papers that no sweep fills: what makes them, whether it is done."""

import csv
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path


@dataclass(frozen=True)
class PaperFigure:
    """A figure of a paper, or a table without results.

    Attributes:
        paper: its name, as of its tables.
        item: what the paper calls it.
        shows: what is to be seen.
        command: makes it; empty for what is not computed.
        pictures: names of the files, in the folder that holds the one of all tables' results.
        state: what is to be said of it beside that: where else it is, what it lacks.
    """

    paper: str
    item: str
    shows: str
    command: str
    pictures: tuple[str, ...]
    state: str

    def drawn(self, folder: Path) -> bool:
        """Whether all its pictures are there."""
        return bool(self.pictures) and all((folder / name).is_file() for name in self.pictures)


def load_figures() -> list[PaperFigure]:
    """All of them, in the order of the papers' tables."""
    with (files("curvlab.tables") / "figures.csv").open(encoding="utf-8") as file:
        return [
            PaperFigure(pictures=tuple(row.pop("pictures").split()), **row)
            for row in csv.DictReader(file)
        ]
