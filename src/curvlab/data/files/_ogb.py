"""OGB, imported without what its import starts: threads that ask the package index for updates.

OGB does without the package `outdated` where that cannot be imported, and its import fails here.
Import this module where something of OGB is used, not at the top of a file: it takes a second.
"""

import sys

_imported = "outdated" in sys.modules
if not _imported:
    sys.modules["outdated"] = None  # type: ignore[assignment]  # what `import` refuses
try:
    from ogb.nodeproppred import Evaluator, PygNodePropPredDataset
finally:
    if not _imported:
        del sys.modules["outdated"]

__all__ = ["Evaluator", "PygNodePropPredDataset"]
