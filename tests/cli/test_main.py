"""The program `curvlab`, its verbs, and what the verb that trains does without words."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import curvlab
from curvlab import program
from curvlab.cli.main import VERBS, main
from curvlab.program import expand_home


def test_help_names_every_verb_and_the_version(capsys):
    assert main(["--help"]) == main([]) == 0
    said = capsys.readouterr().out
    assert all(f"curvlab {verb} " in said for verb in VERBS)
    assert main(["--version"]) == 0
    assert curvlab.__version__ in capsys.readouterr().out


def test_a_wrong_verb_is_answered_with_the_near_one(capsys):
    assert main(["trian", "model=gcn"]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "curvlab: there is no trian; did you mean curvlab train?\n")


def test_help_waits_for_no_torch():
    code = (
        "import sys; from curvlab.cli.main import main; main(['--help']); "
        "sys.exit(bool({'torch', 'hydra'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("backend", "drawn_by"),
    [("module://no_such_package.backend_inline", "None"), ("svg", "svg"), ("module://", "None")],
)
def test_a_backend_of_jupyter_that_is_not_installed_stops_no_command(backend, drawn_by):
    code = "import curvlab, matplotlib as m; print(m.rcParams._get_backend_or_none())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "MPLBACKEND": backend},
    )
    assert done.stdout.strip() == drawn_by, done.stderr


def test_the_package_is_imported_without_its_libraries():
    """What takes seconds to import is imported by what uses it."""
    slow = "{'torch', 'hydra', 'pandas', 'numpy', 'lightning', 'pydantic', 'networkx'}"
    code = f"import sys, curvlab; print(sorted({slow} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout == "[]\n"


def in_python(code, **options):
    """A process that runs code after the import of the command line's package."""
    words = [sys.executable, "-c", f"import sys, curvlab.cli\n{code}"]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_reader_that_leaves_ends_nothing(tmp_path, stream):
    code = f"for i in range(20_000): print(i, file=sys.{stream}, flush=True)\nopen('end', 'w')"
    with in_python(code, cwd=tmp_path) as process:
        assert getattr(process, stream).readline() == b"0\n"
        getattr(process, stream).close()
        assert process.wait() == 0
    assert (tmp_path / "end").exists()


def test_ctrl_c_is_one_line():
    process = in_python("raise KeyboardInterrupt")
    assert process.communicate() == (b"", b"curvlab: interrupted\n")
    assert process.returncode == -signal.SIGINT


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("~/runs", "{home}/runs"),
        ("dataset.path=~/friends", "dataset.path={home}/friends"),
        ("--output=~", "--output={home}"),
        ("~logger", "~logger"),
        ("model.name=a~/b", "model.name=a~/b"),
    ],
)
def test_the_home_folder_is_where_a_path_begins(word, expected):
    assert expand_home([word]) == [expected.format(home=Path.home())]


@pytest.mark.parametrize("verb", ["predict", "train"])
def test_a_broken_library_is_named_with_its_reason(tmp_path, monkeypatch, capsys, verb):
    (tmp_path / "broken_library.py").write_text("raise ImportError('libx.so is missing')")
    monkeypatch.syspath_prepend(tmp_path)
    module = "curvlab.cli.train" if verb == "train" else "curvlab.cli.main"
    real = program.import_command

    def imported(name):
        ours = name.rpartition(".")[2] in ("predict", "train")
        return real("broken_library" if ours else name)

    monkeypatch.setattr(f"{module}.import_command", imported)
    assert main([verb, "model=mlp", "dataset=synthetic_web"]) == 1
    said = capsys.readouterr().err
    assert "broken_library cannot be imported (ImportError: libx.so is missing)" in said
