"""Defaults of all classes that configurations name, pinned: none moves without a revision.

A result is identified by what differs from the defaults, so that a default that moved would give
old results the identity of new ones. After a change that is meant:

    python -m curvlab.results.pins
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

from curvlab.config.folder import CONFIGS
from curvlab.config.options import GROUPS
from curvlab.config.schema import LIBRARIES, MISSING, attribute, completed
from curvlab.results.result import SCHEMA

FILE = Path(__file__).with_name("pins.json")


def pins(configs: Path = CONFIGS) -> dict[str, Any]:
    """Today's: of each class that a file names its revision and the defaults of its options."""
    texts = (path.read_text(encoding="utf-8") for path in configs.rglob("*.yaml"))
    named = {target for text in texts for target in re.findall(r"_target_: ([\w.]+)", text)}
    targets = sorted(t for t in {*named, *GROUPS.values()} if t.partition(".")[0] not in LIBRARIES)
    return {"schema": SCHEMA, "classes": {target: _pinned(target) for target in targets}}


def moved(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Defaults that moved under the same revision and schema, as `FPST.dim: 16 -> 32`."""
    if new["schema"] > old["schema"]:
        return []
    found = []
    for target, before in old["classes"].items():
        now = new["classes"].get(target)
        if now is None:
            found.append(f"{target} is gone")
        elif now["revision"] == before["revision"]:
            found += [
                f"{target}.{name}: {value} -> {now['defaults'].get(name, 'none')}"
                for name, value in before["defaults"].items()
                if name not in now["defaults"] or now["defaults"][name] != value
            ]
    return found


def read() -> dict[str, Any]:
    """What is pinned."""
    return dict(json.loads(FILE.read_text(encoding="utf-8")))


def _pinned(target: str) -> dict[str, Any]:
    options = completed(target).items()
    defaults = {n: o.default for n, o in options if o.default is not MISSING and not o.incidental}
    return {
        "revision": attribute(target, "revision", 1),
        "defaults": json.loads(json.dumps(defaults)),
    }


def main() -> int:
    """Write today's pins, unless a default moved without a revision."""
    new = pins()
    wrong = moved(read(), new) if FILE.is_file() else []
    for line in wrong:
        print(f"{line}: raise the class's revision", file=sys.stderr)
    if not wrong:
        FILE.write_text(json.dumps(new, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return 2 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
