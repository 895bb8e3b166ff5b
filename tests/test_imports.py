"""Packages import one way."""

import ast
from graphlib import TopologicalSorter
from importlib import import_module
from inspect import ismodule
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "curvlab"
ORDER = ("manifolds", "optim", "layers", "models", "tasks", "run", "cli")
"""Each may import those before it."""

GROUND = ("checked", "errors", "files", "options", "results", "metrics")
"""They import none of the above."""


def imported(package):
    """Packages and modules of curvlab that a package imports, with the files that do."""
    found = {}
    files = (SOURCE / package).rglob("*.py") if (SOURCE / package).is_dir() else ()
    for file in files or (SOURCE / f"{package}.py",):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module == "curvlab":
                names = [f"curvlab.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            for name in names:
                first, *rest = name.split(".")
                if first == "curvlab" and rest and rest[0] != package:
                    found.setdefault(rest[0], set()).add(file.relative_to(SOURCE).as_posix())
    return found


ABOVE = {package: ORDER[i + 1 :] for i, package in enumerate(ORDER)}
ABOVE |= dict.fromkeys(GROUND, ORDER) | {"data": ("models", "tasks", "cli")}


@pytest.mark.parametrize("package", ABOVE)
def test_a_package_imports_none_above_it(package):
    above = ABOVE[package]
    assert not {name: files for name, files in imported(package).items() if name in above}


def test_no_packages_import_in_a_circle():
    packages = {path.stem for path in SOURCE.iterdir() if path.suffix in ("", ".py")}
    above = {package: imported(package).keys() & packages for package in packages}
    assert above["run"] > {"data", "results"}
    TopologicalSorter(above).prepare()  # which refuses circles


@pytest.mark.parametrize(
    "package", ["curvlab", *(f"curvlab.{p}" for p in ("layers", "manifolds", "models", "optim"))]
)
def test_dir_lists_public_names_alone(package):
    module = import_module(package)
    names = set(dir(module)) - {"__version__"}
    assert 5 < len(names) < 50
    for value in (getattr(module, name) for name in names):
        assert package in ("curvlab", "curvlab.manifolds") or not ismodule(value)
        home = value.__name__ if ismodule(value) else value.__module__
        assert home.startswith("curvlab.")
