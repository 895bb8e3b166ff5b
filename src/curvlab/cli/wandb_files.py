"""Draw the dashboard of W&B from offline runs."""

import json
import struct
from collections.abc import Iterator
from math import floor, log10
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.ticker import NullFormatter

from curvlab.analysis.style import legend_below, panels, save_figure, styled
from curvlab.cli.wandb_keys import COSTS, STEP
from curvlab.errors import UsageError
from curvlab.files import find_below

BLOCK = 32768  # bytes of a block of a `.wandb` file
HEADER = struct.Struct("<IHB")  # checksum, length and kind of a piece of a block

LOGARITHMIC = 20
"""Ratio of the largest value of a panel to the smallest beyond which its axis is logarithmic."""

ENDS = (1, 4)  # kinds of pieces that end a record: a whole one, the last of several


def read_offline(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Summaries of offline runs, and rows of their curves, with `run`, `model` and `dataset`."""
    from wandb.proto.wandb_internal_pb2 import Record  # type: ignore[attr-defined]

    summaries = []
    curves = []
    for file in find_below(folder, "*.wandb"):
        names: dict[str, Any] = {"run": file.stem}
        summary: dict[str, Any] = {}
        rows: list[dict[str, Any]] = []
        for content in _records(file.read_bytes()):
            record = Record.FromString(content)
            for item in record.run.config.update:
                if item.key in ("model", "dataset"):
                    names[item.key] = json.loads(item.value_json)
            if record.history.item:
                row = {"/".join(i.nested_key) or i.key: i.value_json for i in record.history.item}
                rows.append({key: json.loads(value) for key, value in row.items()})
        for row in rows:
            summary |= row
        summaries.append({**summary, **names})
        curves += [{**row, **names} for row in rows]
    return pd.DataFrame(summaries), pd.DataFrame(curves)


def _records(data: bytes) -> Iterator[bytes]:
    """Records of a `.wandb` file, which has the format of LevelDB's logs."""
    position = HEADER.size  # after the file's own header, which is as long
    record = b""
    while position + HEADER.size <= len(data):
        room = BLOCK - position % BLOCK
        if room < HEADER.size:
            position += room
            continue
        _, length, kind = HEADER.unpack_from(data, position)
        record += data[position + HEADER.size : position + HEADER.size + length]
        position += HEADER.size + length
        if kind in ENDS:
            yield record
            record = b""


@styled
def draw_dashboard(folder: Path, file: Path) -> Path:
    """Draw the panels of the dashboard from offline runs, with matplotlib."""
    runs, curves = read_offline(folder)
    if "score" not in runs:
        raise UsageError(f"there is no finished offline run below {folder}")
    bars = {"score": "score", **{name: title for name, title in COSTS.items() if name in runs}}
    kappas = [name for name in curves if str(name).startswith("kappa/")]
    curved = curves.assign(kappa=curves[kappas].mean(axis=1)).dropna(subset="kappa")
    datasets = list(curved["dataset"].value_counts().index[:1])
    models = sorted(set(runs["model"]))
    colors: dict[str, Any] = {
        model: mpl.colormaps["tab20"](i % 20) for i, model in enumerate(models)
    }
    title = f"{len(runs)} offline runs of W&B, drawn with matplotlib"
    figure, axes = panels(len(bars) + len(datasets), 5.4, 2.8, title, columns=2)
    for axis, (name, heading) in zip(axes, bars.items(), strict=False):
        means = runs.pivot_table(name, "dataset", "model")
        color = [colors[str(model)] for model in means]
        means.plot.bar(ax=axis, title=heading, xlabel="", rot=0, legend=False, color=color)
        low = runs[name].min()
        high = runs[name].max()
        if high > LOGARITHMIC * low > 0:
            axis.set_yscale("log")
            axis.set_ylim(bottom=10 ** floor(log10(low)))  # bars begin at a power of ten
            axis.yaxis.set_major_formatter("{x:g}")
            axis.yaxis.set_minor_formatter(NullFormatter())
    for axis, dataset in zip(axes[len(bars) :], datasets, strict=True):
        lines = curved[curved["dataset"] == dataset].pivot_table("kappa", STEP, "model")
        color = [colors[str(model)] for model in lines]
        lines.interpolate().plot(
            ax=axis, title=f"mean curvature on {dataset}", xlabel="step", legend=False, color=color
        )
    legend_below(figure, axes[0])
    return save_figure(figure, file)
