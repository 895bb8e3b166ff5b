"""`curvlab search NAME ...`: short for `curvlab train -m search=NAME ...`."""

from collections.abc import Sequence

from curvlab.cli import train
from curvlab.cli.command_line import complain


def main(arguments: Sequence[str]) -> int:
    """Search hyperparameters; the exit code."""
    name, *words = arguments or [""]
    if name in ("--help", "-h"):
        return train.main(["help=search"])
    if not name or "=" in name or name.startswith("-"):
        complain(
            "say first what is searched, as in curvlab search fpst dataset=texas; "
            "curvlab search --help lists the searches"
        )
    return train.main(["-m", f"search={name}", *words])
