"""The words of the command line."""

import io
import os
import sys
import warnings
from types import TracebackType

# PyTorch Geometric 2.8 says it on import, from torch 2.14 on.
warnings.filterwarnings("ignore", "`torch.jit.script` is deprecated", FutureWarning)


class Output(io.TextIOWrapper):
    """A stream whose reader may leave before its end, as with `| head`: the rest goes nowhere."""

    def write(self, text: str) -> int:
        """Write, or drop what nobody reads."""
        try:
            return super().write(text)
        except BrokenPipeError:
            return self._dropped(text)

    def flush(self) -> None:
        """Flush, or drop what nobody reads."""
        try:
            super().flush()
        except BrokenPipeError:
            self._dropped("")

    def _dropped(self, text: str) -> int:
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
        return len(text)


def _ended(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Say in one line that Ctrl-C has ended a verb; tracebacks are for errors."""
    if issubclass(kind, KeyboardInterrupt):
        print("curvlab: interrupted", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)


for _name in ("stdout", "stderr"):
    _stream = getattr(sys, _name)
    if type(_stream) is io.TextIOWrapper:  # not what a test or a notebook has put there
        # A terminal that has no sign for a letter gets a question mark.
        _line = _stream.line_buffering
        _made = Output(_stream.buffer, _stream.encoding, "replace", line_buffering=_line)
        setattr(sys, _name, _made)
sys.excepthook = _ended
