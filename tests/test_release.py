"""A release: its version is the tag and its workflow needs no password."""

import re
import shutil
import subprocess
import sys

import yaml

from composing import ROOT

WORKFLOW = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8"))
CHANGES = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_version_is_the_tag(tmp_path):
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)

    def call(*words):
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b.c")
    assert call(sys.executable, "-m", "hatchling", "version") == "0.1.0"
    call("git", "init", "-q")
    call("git", "add", ".")
    call(*git, "commit", "-qm", "x")
    call(*git, "tag", "v7.8.9")
    assert call(sys.executable, "-m", "hatchling", "version") == "7.8.9"


def test_a_tag_is_built_checked_from_an_empty_environment_and_published_by_identity():
    assert WORKFLOW[True] == {"push": {"tags": ["v*"]}}  # YAML reads `on` as true
    build, publish = (WORKFLOW["jobs"][name] for name in ("build", "publish"))
    commands = [step["run"] for step in build["steps"] if "run" in step]
    assert commands[1].startswith("python -m venv empty")
    scripts = re.findall(r"scripts/\w+\.py", " ".join(commands))
    assert scripts
    assert all((ROOT / script).is_file() for script in scripts)
    assert build["steps"][0]["with"]["fetch-depth"] == 0
    assert publish["needs"] == "build"
    assert publish["permissions"] == {"id-token": "write"}
    assert "password" not in str(publish)
    assert "secrets" not in str(WORKFLOW)


def test_the_changes_are_read_in_two_minutes_and_begin_with_the_first_version():
    versions = re.findall(r"^## (.+)$", CHANGES, re.MULTILINE)
    assert versions[-1] == "0.1.0"
    first = CHANGES.partition("## 0.1.0\n")[2]
    assert 100 < len(first.split()) < 500  # at 250 words a minute
