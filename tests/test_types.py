"""Type checkers know the public names: they find each wrong line of a user's code and no other."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from composing import ROOT

CODE = Path(__file__).parent / "typing" / "user_code.py"
LINES = CODE.read_text(encoding="utf-8").splitlines()


def marked(*marks):
    """Numbers of the lines that end in one of the marks."""
    return {number for number, line in enumerate(LINES, start=1) if line.endswith(marks)}


pytestmark = pytest.mark.slow


def check(*command):
    """Run a checker on the user's code, in a folder of its own so that no settings are found."""
    environment = os.environ | {"MYPYPATH": str(ROOT / "src")}
    return subprocess.run(
        [sys.executable, "-m", *command],
        cwd=CODE.parent,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.nightly
def test_mypy_strict_finds_each_wrong_line_and_no_other(tmp_path):
    quiet = (
        "--follow-imports=silent",
        "--no-error-summary",
        "--disable-error-code=import-untyped",
        f"--cache-dir={tmp_path}",
    )
    done = check("mypy", "--strict", "--config-file=", *quiet, CODE.name)
    found = {int(line) for line in re.findall(r"(?m)^user_code\.py:(\d+): error", done.stdout)}
    assert found == marked("# wrong"), done.stdout + done.stderr


def test_pyright_strict_finds_each_wrong_line_and_no_other(tmp_path):
    """By basedpyright, which is pyright in a package that needs no download when it runs."""
    if importlib.util.find_spec("basedpyright") is None:
        pytest.skip("basedpyright is not installed")
    settings = {
        "include": [str(CODE)],
        "extraPaths": [str(ROOT / "src")],
        "typeCheckingMode": "strict",
        # Of torch, torch_geometric and pandas, whose own types are partial; and bare expressions.
        "reportMissingTypeStubs": False,
        "reportUnknownMemberType": False,
        "reportUnknownVariableType": False,
        "reportUnusedCallResult": False,
    }
    file = tmp_path / "pyrightconfig.json"
    file.write_text(json.dumps(settings), encoding="utf-8")
    done = check(
        "basedpyright", "--outputjson", f"--project={file}", f"--pythonpath={sys.executable}"
    )
    messages = json.loads(done.stdout)["generalDiagnostics"]
    found = {m["range"]["start"]["line"] + 1 for m in messages if m["severity"] == "error"}
    assert found == marked("# wrong", "# wrong for pyright"), messages
