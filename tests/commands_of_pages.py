"""The commands that stand on pages, for the tests that check and run them."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

PLACES = re.compile(
    r"\$|\b(?:NAME|FOLDER|DIR|RUN|RUN_FOLDER|OLDER)\b|_folder|dataset=(?:pyg|networkx|friends|\S+\.)"
)
"""What stands for something of the reader's own."""


def commands(page: Path) -> Iterator[tuple[str, list[str]]]:
    """Commands of a page, as words: the lines of code that begin with one of ours."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    lines = re.findall(
        r"^    (?:python (?:scripts/)?(\w+)\.py|curvlab (\w+)) (.*)$", text, re.MULTILINE
    )
    for script, verb, words in lines:
        if not PLACES.search(words):
            yield script or verb, shlex.split(words, comments=True)
