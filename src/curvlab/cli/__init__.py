"""The command line."""

import io
import os
import sys
import warnings
from types import TracebackType
from typing import Any

from curvlab.program import escape_controls

# PyTorch Geometric 2.8 warns on import from torch 2.14 on.
warnings.filterwarnings("ignore", "`torch.jit.script` is deprecated", FutureWarning)


class Output(io.TextIOWrapper):
    """A stream that writes control characters as text.

    Its reader may close early, as with `| head`; further output is dropped.
    """

    def write(self, text: str) -> int:
        """Write without control characters, but for the return at the start of a progress bar."""
        bar = text.startswith("\r")
        return self.write_as_is("\r" * bar + escape_controls(text[bar:]))

    def write_as_is(self, text: str) -> int:
        """Write, or drop the text if nobody reads."""
        try:
            return super().write(text)
        except BrokenPipeError:
            return self._drop(text)

    @property
    def rich_proxied_file(self) -> "Styled":
        """The stream to which Rich writes its styles, which are control characters."""
        return Styled(self)

    def flush(self) -> None:
        """Flush, unless nobody reads."""
        try:
            super().flush()
        except BrokenPipeError:
            self._drop("")

    def _drop(self, text: str) -> int:
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
        return len(text)


class Styled:
    """A stream for the styled text of `curvlab.program.plain_console`."""

    def __init__(self, output: Output) -> None:
        self._output = output

    def write(self, text: str) -> int:
        """Write with the control characters of styles."""
        return self._output.write_as_is(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._output, name)


def _end(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Report Ctrl-C in one line, other exceptions with their traceback."""
    if issubclass(kind, KeyboardInterrupt):
        print("curvlab: interrupted", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)


for _name in ("stdout", "stderr"):
    _stream = getattr(sys, _name)
    if type(_stream) is io.TextIOWrapper:  # not what a test or a notebook has put there
        # A letter that the terminal cannot show becomes a question mark.
        _output = Output(
            _stream.buffer,
            _stream.encoding,
            "replace",
            line_buffering=_stream.line_buffering,
            write_through=_stream.write_through,  # as PYTHONUNBUFFERED=1 asks
        )
        setattr(sys, _name, _output)
sys.excepthook = _end
