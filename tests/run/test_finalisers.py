"""A signal that arrives while something cleans up ends the process after that."""

import subprocess
import sys

import pytest

from composing import ROOT

BEFORE = """
import contextlib, os, signal, sys, threading, time, weakref
from curvlab.run import signals

signal.signal(signal.SIGINT, signal.default_int_handler)  # which a background job ignores
signals.install()

def clean(*_):
    threading.Timer(0.1, os.kill, [os.getpid(), signal.{number}]).start()
    for _ in range(60):
        time.sleep(0.01)
    print("clean", flush=True)

class Thing:
    pass
"""

AFTER = """
time.sleep(30)
print("too late")
"""

KINDS = {
    "__del__": "class A:\n    def __del__(self):\n        clean()\na = A()\ndel a",
    "__exit__": "class A:\n    def __enter__(self): pass\n    __exit__ = lambda *_: None\n"
    "def __exit__(*_): clean()\nA.__exit__ = __exit__\nwith A(): pass",
    "contextmanager": "@contextlib.contextmanager\ndef a():\n    try:\n        yield\n"
    "    finally:\n        clean()\nwith a(): pass",
    "ExitStack": "with contextlib.ExitStack() as stack:\n    stack.callback(clean)",
    "finalize": "a = Thing()\nweakref.finalize(a, clean)\ndel a",
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("number", "code"), [("SIGTERM", 143), ("SIGINT", 130)])
def test_a_signal_waits_for_the_end_of_a_finaliser(kind, number, code):
    script = BEFORE.format(number=number) + KINDS[kind] + AFTER
    environment = {"PYTHONPATH": str(ROOT / "src"), "PATH": "/usr/bin:/bin"}
    line = [sys.executable, "-c", script]
    done = subprocess.run(
        line, env=environment, capture_output=True, text=True, timeout=25, check=False
    )
    assert (done.returncode, done.stdout) == (code, "clean\n"), done.stderr
    assert f"ended by {number}" in done.stderr
    assert "ignored" not in done.stderr


def test_a_finaliser_without_an_end_is_left():
    endless = "signals.LONGEST_DEFERRAL = 2\n"
    endless += "class A:\n    def __exit__(self, *_):\n        clean()\n"
    endless += "        time.sleep(30)\n    def __enter__(self): pass\nwith A(): pass"
    script = BEFORE.format(number="SIGTERM") + endless
    environment = {"PYTHONPATH": str(ROOT / "src"), "PATH": "/usr/bin:/bin"}
    line = [sys.executable, "-c", script]
    done = subprocess.run(
        line, env=environment, capture_output=True, text=True, timeout=25, check=False
    )
    assert (done.returncode, done.stdout) == (143, "clean\n")
