"""Pictures on pages of results, beside the commands that draw them."""

import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

from matplotlib.figure import Figure

from curvlab.analysis.style import save_figure, shows
from curvlab.cli.plot import main as plot
from curvlab.errors import UsageError, format_error

FOLDER = "docs/results"
"""Folder of pages and pictures as their commands name it, above that of the stored results."""

COMMAND = re.compile(r"(?m)^ {4}curvlab plot (.+)$")


def update(path: Path, figure: Figure) -> None:
    """Write a picture unless the file shows the same texts and numbers."""
    if not shows(path, figure):
        print(f"wrote {save_figure(figure, path)}")


def update_pictures(text: str, results: Path) -> None:
    """Draw the pictures of a page's commands that read stored results, where they have changed."""
    for words in picture_commands(text, results):
        try:
            path, figure = draw(words)
        except UsageError as error:
            print(f"{words[-1]} is left as it is: {format_error(error)}")
            continue
        update(path, figure)


def picture_commands(text: str, results: Path) -> Iterator[list[str]]:
    """Yield the arguments of `curvlab plot` in the commands of a page that read stored results.

    They are `curvlab plot ... docs/results/tables ... --output docs/results/NAME.svg`, indented by
    four spaces. The results may be in another folder, next to which the pictures are then.
    """
    folder = results.resolve().parent
    for command in COMMAND.findall(text):
        words = [word for pattern in command.split() for word in expand_braces(pattern)]
        picture = f"--output {FOLDER}/"
        if command.endswith(".svg") and picture in command and f" {FOLDER}/tables" in command:
            yield [re.sub(f"^{FOLDER}/", f"{folder.as_posix()}/", word) for word in words]


def draw(words: list[str]) -> tuple[Path, Figure]:
    """Draw the picture of a command's arguments; return its path, too."""
    arguments = plot.parse_args(words)
    with redirect_stdout(StringIO()):
        return arguments.output, arguments.act(arguments)


def expand_braces(pattern: str) -> list[str]:
    """Expand `seed{1,2}` into `seed1` and `seed2`, as shells do; braces are not nested."""
    match = re.search(r"\{([^{}]*,[^{}]*)\}", pattern)
    if match is None:
        return [pattern]
    before = pattern[: match.start()]
    after = pattern[match.end() :]
    return [
        word for choice in match[1].split(",") for word in expand_braces(f"{before}{choice}{after}")
    ]
