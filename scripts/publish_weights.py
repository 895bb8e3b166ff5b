#!/usr/bin/env python
"""Put the weights of finished runs into the package: `publish_weights.py fpst/web_edu=FOLDER ...`.

Paths of the machine are removed: folders of data and results, and the folder of the command.
"""

import sys
from pathlib import Path

import torch

from curvlab.results.folder import BEST
from curvlab.run.load import WEIGHTS, replace_paths


def main() -> None:
    """Write a file for each `NAME=FOLDER`."""
    for argument in sys.argv[1:]:
        name, _, folder = argument.partition("=")
        checkpoint = torch.load(Path(folder) / BEST, weights_only=True)
        places = {"data_dir": "data", "mirror": None, "output_dir": "outputs"}
        checkpoint["config"] = replace_paths(checkpoint["config"], places, Path())
        checkpoint["directory"] = "."
        file = WEIGHTS / f"{name}.ckpt"
        file.parent.mkdir(parents=True, exist_ok=True)
        torch.save(checkpoint, file)
        print(f"{file}: {file.stat().st_size / 1e3:.0f} kB, test {checkpoint['metrics']['test']}")


if __name__ == "__main__":
    main()
