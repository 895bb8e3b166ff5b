"""Training steps of the papers' models, here and in checkouts of the authors' code, in turns."""

import argparse
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import torch

from benchmarks.authors import hgcn, hypformer, lrn, polyformer, sgformer
from benchmarks.authors.code import Code, Comparison, Theirs
from benchmarks.timings import open_run, print_table, training_step
from curvlab.errors import UsageError
from curvlab.tasks.cost.timing import cpu_ms, peak_memory_mb

TOLERANCE = 1e-3
"""Largest difference of half of the rows of outputs, as a fraction of the largest entry.

A node whose features vanish has no direction: it is the origin here, and off the hyperboloid in
HyboNet's and LRN's code.
"""

COMPARISONS = (
    *lrn.COMPARISONS,
    *hgcn.COMPARISONS,
    *hypformer.COMPARISONS,
    *sgformer.COMPARISONS,
    *polyformer.COMPARISONS,
)
CODES = tuple(dict.fromkeys(each.code for each in COMPARISONS))
COLUMNS = ("", "theirs, ms", "ours, ms", "times faster", "theirs / ours, MB")
BEGIN, END = "<!-- authors: python -m benchmarks authors -->", "<!-- end of authors -->"


def authors(args: argparse.Namespace) -> None:
    """Training steps in turns with checkouts of the authors' code (`--code FOLDER ...`)."""
    checkouts = _find_checkouts(args.code or ())
    missing = [code for code in CODES if code not in checkouts]
    if missing and args.write:
        raise UsageError(f"--write: the page's table has all models; clone {_addresses(missing)}")
    compared = [each for each in COMPARISONS if each.code in checkouts]
    rows = [_compare(each, checkouts[each.code], args) for each in compared]
    title = f"Training steps, CPU time, threads: {torch.get_num_threads()}"
    print_table(title, COLUMNS, rows)
    if missing:
        print(f"Not compared: {_addresses(missing)}")
    if args.write:
        _write(Path(args.write), args, rows)


def _addresses(codes: list[Code]) -> str:
    return ", ".join(f"{code.name} ({code.address})" for code in codes)


def _find_checkouts(names: Sequence[str]) -> dict[Code, Path]:
    folders = [Path(name) for name in names]
    for folder in folders:
        if not folder.is_dir():
            raise UsageError(f"--code {folder}: there is no such folder")
    places = {code: code.find(folders) for code in CODES}
    checkouts = {code: place for code, place in places.items() if place is not None}
    if not folders:
        raise UsageError(
            "authors: name checkouts of the authors' code, or the folder that they are in, "
            f"--code FOLDER ..., cloned from: {_addresses(list(CODES))}"
        )
    if not checkouts:
        files = ", ".join(code.file for code in CODES)
        raise UsageError(
            f"--code {' '.join(names)}: no code of a model is known here; looked for {files}"
        )
    return checkouts


def _write(page: Path, args: argparse.Namespace, rows: list[list[str]]) -> None:
    """Replace the table between the marks of a page; labels are links to the authors' code."""
    text = page.read_text(encoding="utf-8")
    before, mark, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not mark or not end:
        raise UsageError(f"--write {page}: the page has no marks {BEGIN} and {END}")
    addresses = {each.label: each.code.address for each in COMPARISONS}
    linked = [[f"[{label}]({addresses[label]})", *figures] for label, *figures in rows]
    machine = f"1,024 x 1,024 float32 product {args.product_ms:.1f} ms, torch {torch.__version__}"
    how = f"{date.today()}, threads: {torch.get_num_threads()}, {args.runs} turns, {machine}."
    lines = ["| " + " | ".join(row) + " |" for row in (COLUMNS, ["---"] * len(COLUMNS), *linked)]
    block = "\n".join((BEGIN, "", *lines, "", how, "", END))
    page.write_text(before + block + after, encoding="utf-8")


def _compare(comparison: Comparison, checkout: Path, args: argparse.Namespace) -> list[str]:
    """Time a comparison's steps in turns, after a check that its outputs agree."""
    run = open_run(args.device, *comparison.words)
    with comparison.code.importable(checkout):
        theirs = comparison.build(run)
        if comparison.checked:
            checked = open_run(args.device, *comparison.words, *comparison.checked)
            _check_outputs(comparison.label, checked.task, comparison.build(checked))
        else:
            _check_outputs(comparison.label, run.task, theirs)
        ours = training_step(run.task, run.batch, run.config.trainer.gradient_clip)
        ms = cpu_ms({"theirs": theirs.step, "ours": ours}, args.runs)
        memory = [peak_memory_mb(step, args.device) for step in (theirs.step, ours)]
    ratio = f"{ms['theirs'] / ms['ours']:.2f}"
    times = f"{ms['theirs']:.1f}", f"{ms['ours']:.1f}"
    return [comparison.label, *times, ratio, " / ".join(f"{m or 0:.0f}" for m in memory)]


@torch.no_grad()
def _check_outputs(label: str, task: torch.nn.Module, theirs: Theirs) -> None:
    """Compare the outputs in evaluation mode.

    Raises:
        UsageError: They differ.
    """
    for model in (task, theirs.model):
        model.eval()
    for found, expected in zip(theirs.ours(), theirs.outputs(), strict=True):
        error = (found - expected).abs().amax(-1).median() / expected.abs().max()
        if not error <= TOLERANCE:
            raise UsageError(f"{label}: outputs differ by {error:.1e} of the largest entry")
    for model in (task, theirs.model):
        model.train()
