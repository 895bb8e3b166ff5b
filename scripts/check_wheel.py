#!/usr/bin/env python
"""Use an installed curvlab from an empty folder, as its first user does.

    EMPTY/bin/python scripts/check_wheel.py [VERSION]

EMPTY is a virtual environment with curvlab; VERSION is the version that it should have.
"""

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

SHORT = ("dataset.source.num_nodes=60", "trainer.max_steps=5", "trainer.steps_per_epoch=5")


def main(version: str = "") -> int:
    """Run the commands; return the exit code."""
    with TemporaryDirectory() as folder:
        assert version in curvlab(folder, "--version"), f"another version than {version}"
        trained = curvlab(folder, "train", "model=gcn", "dataset=synthetic_web", *SHORT)
        assert list(Path(folder, "outputs").rglob("result.json")), trained
        table = curvlab(folder, "tables", "fpst/fig3", "--format", "markdown")
        for part in ("FPS-T", "99.00", "98.9"):  # a model, its published number and ours
            assert part in table, table
        assert "fpst/fig3" in curvlab(folder, "tables", "status")
        assert "generated" in curvlab(folder, "data", "synthetic_web")
        assert "space" in python(folder, "import curvlab; print(curvlab.load('fpst/web_edu'))")
    print("curvlab works from an empty folder")
    return 0


def curvlab(folder: str, *words: str) -> str:
    """The output of `curvlab WORDS`."""
    return python(folder, "from curvlab.cli.main import main; raise SystemExit(main())", *words)


def python(folder: str, code: str, *words: str) -> str:
    """The output of a line of Python in the folder, from which it imports no checkout."""
    environment = {k: v for k, v in os.environ.items() if k != "CURVLAB_MIRROR"}
    process = subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if process.returncode:
        raise SystemExit(f"{' '.join(words) or code}: {process.stderr}")
    return process.stdout + process.stderr


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
