#!/usr/bin/env python
"""Execute notebooks and store their outputs: `python scripts/notebooks.py examples/NAME.ipynb`.

Each notebook runs in an empty folder. Without names, all notebooks of examples/ run.
"""

import ast
import base64
import contextlib
import io
import json
import os
import shlex
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt

from curvlab.cli.main import main as curvlab

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def execute(path: Path) -> dict[str, Any]:
    """Run the code cells of a notebook in this folder; return it with their outputs.

    A line `!curvlab VERB ...` runs that command; the value of a cell's last line is shown.

    Raises:
        RuntimeError: a command fails.
    """
    mpl.use("agg")
    notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    names: dict[str, Any] = {"_run": _run}
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        lines = [f"_run({line[1:]!r})" if line[:1] == "!" else line for line in cell["source"]]
        stdout = io.StringIO()
        value = None
        with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(io.StringIO()):
            body = ast.parse("\n".join(line.rstrip("\n") for line in lines)).body
            last = body.pop() if isinstance(body[-1], ast.Expr) else None
            exec(compile(ast.Module(body, []), str(path), "exec"), names)
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), str(path), "eval"), names)
        cell["outputs"] = []
        text = stdout.getvalue()
        if text:
            stream = {"output_type": "stream", "name": "stdout", "text": _lines(text)}
            cell["outputs"].append(stream)
        pictures: list[dict[str, Any]] = [_figure(number) for number in plt.get_fignums()]
        plt.close("all")
        picture = getattr(value, "_repr_png_", None)
        if picture:
            pictures.append({"image/png": base64.b64encode(picture()).decode()})
        elif value is not None:
            pictures.append({"text/plain": _lines(repr(value))})
        cell["outputs"] += [
            {"output_type": "display_data", "data": data, "metadata": {}} for data in pictures
        ]
    return notebook


def _figure(number: int) -> dict[str, Any]:
    picture = io.BytesIO()
    plt.figure(number).savefig(picture, bbox_inches="tight")
    return {"image/png": base64.b64encode(picture.getvalue()).decode()}


def _run(command: str) -> None:
    name, *words = shlex.split(command)
    if name != "curvlab" or curvlab(words):
        raise RuntimeError(f"{command} failed")


def _lines(text: str) -> list[str]:
    return [line.rstrip() + "\n" for line in text.rstrip("\n").split("\n")]


def main(paths: list[str]) -> None:
    """Store the outputs of notebooks."""
    for path in [Path(name).resolve() for name in paths] or sorted(EXAMPLES.glob("*.ipynb")):
        start = Path.cwd()
        with TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                notebook = execute(path)
            finally:
                os.chdir(start)
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
