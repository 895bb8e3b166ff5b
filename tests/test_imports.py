"""Packages import one way."""

import ast
from collections import Counter
from graphlib import TopologicalSorter
from importlib import import_module
from inspect import ismodule
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "curvlab"
ORDER = ("manifolds", "optim", "graph", "layers", "models", "tasks", "run", "cli")
"""Each may import those before it."""

GROUND = ("checked", "documentation", "errors", "files", "leases", "options", "results", "metrics")
"""They import none of the above."""


BELOW_RUN = (*ORDER[: ORDER.index("run")], "data", "metrics")
"""They know no configuration and no stored results."""


def module_name(file):
    """The name by which a file is imported."""
    parts = file.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


MODULES = {module_name(file): file for file in SOURCE.rglob("*.py")}


def imports(file):
    """Modules of curvlab that a file imports anywhere, for annotations too."""
    modules = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            modules |= names & MODULES.keys() or {node.module}
    return modules & MODULES.keys()


IMPORTS = {name: imports(file) - {name} for name, file in MODULES.items()}


def package_of(module):
    """The first room of a module: `manifolds` of `curvlab.manifolds.base`."""
    return module.partition(".")[2].partition(".")[0]


def imported(package):
    """Packages and modules of curvlab that a package imports, with the modules that do."""
    importers = {}
    for module, others in IMPORTS.items():
        if package_of(module) == package:
            for other in map(package_of, others):
                importers.setdefault(other, set()).add(module)
    return {name: modules for name, modules in importers.items() if name not in ("", package)}


ABOVE = {package: ORDER[i + 1 :] for i, package in enumerate(ORDER)}
ABOVE |= dict.fromkeys(GROUND, ORDER) | {"data": ("layers", "models", "tasks", "run", "cli")}
for package in BELOW_RUN:
    ABOVE[package] = (*ABOVE[package], "config", "results")


@pytest.mark.parametrize("package", ABOVE)
def test_a_package_imports_none_above_it(package):
    above = ABOVE[package]
    assert not {name: files for name, files in imported(package).items() if name in above}


def test_no_modules_import_in_a_circle():
    """Imports inside functions and those for annotations count, too."""
    assert IMPORTS["curvlab.run.train"] > {"curvlab.run.parts"}
    TopologicalSorter(IMPORTS).prepare()


@pytest.mark.parametrize("package", ABOVE)
def test_no_string_names_a_module_above(package):
    """As an import path that is resolved later; docstrings may."""
    named = {}
    for module, file in MODULES.items():
        if package_of(module) != package:
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            is_path = isinstance(node, ast.Constant) and isinstance(node.value, str)
            if is_path and node.value.rpartition(".")[0] in MODULES:
                named.setdefault(package_of(node.value), set()).add(module)
    assert not {name: files for name, files in named.items() if name in ABOVE[package]}


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
    assert len(names) > 5
    for value in (getattr(module, name) for name in names):
        assert package in ("curvlab", "curvlab.manifolds") or not ismodule(value)
        home = value.__name__ if ismodule(value) else value.__module__
        assert home.startswith("curvlab.")


def test_modules_of_tests_have_different_names():
    """Pytest imports them by their names alone."""
    names = Counter(path.name for path in Path(__file__).parent.rglob("test_*.py"))
    assert max(names.values()) == 1, names.most_common(1)
