"""A file of values of the user's own, as docs/adding.md shows it."""

import os
import re
import subprocess
import sys

from composing import ROOT


def test_a_file_of_an_own_folder_sets_values(tmp_path):
    page = (ROOT / "docs" / "adding.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"`curvlab (train --config-dir DIR \+experiment=\S+ [^`]*)`", page)
    (text,) = re.findall(r"```yaml\n(# @package _global_\nmodel.*?)```", page, re.DOTALL)
    (tmp_path / "experiment").mkdir()
    (tmp_path / "experiment" / "wide.yaml").write_text(text, encoding="utf-8")
    words = command.replace("DIR", str(tmp_path)).split()
    done = subprocess.run(
        [sys.executable, str(ROOT / "train.py"), *words[1:], "print_config=true"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for line in ("dim: 64 ", "max_steps: 500 "):
        assert re.search(rf"{line} *# experiment/wide\.yaml", done.stdout)
