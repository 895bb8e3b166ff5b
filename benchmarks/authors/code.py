"""What a comparison with the authors' code is made of: a checkout, their model with our weights."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import invalidate_caches
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from torch import Tensor, nn

from benchmarks.timings import Run
from curvlab.errors import UsageError
from curvlab.tasks.cost.timing import Work


class Theirs(NamedTuple):
    """The authors' model with our weights.

    Attributes:
        model: their model.
        outputs: what is compared: embeddings, logits, or both.
        ours: the same of our model.
        step: one optimiser step.
    """

    model: nn.Module
    outputs: Callable[[], list[Tensor]]
    ours: Callable[[], list[Tensor]]
    step: Work


class Code(NamedTuple):
    """A repository of the authors of a paper.

    Attributes:
        name: name of the model.
        address: where to clone it from.
        root: folder of a checkout from which its modules are imported.
        file: file of a checkout by which it is recognised.
        unused: packages that its modules import and that the timed model does not call.
    """

    name: str
    address: str
    root: str
    file: str
    unused: tuple[str, ...] = ()

    def find(self, folders: Sequence[Path]) -> Path | None:
        """The first checkout among the folders and the folders in them."""
        for folder in folders:
            inside = sorted(path for path in folder.iterdir() if path.is_dir())
            for place in (folder, *inside):
                if (place / self.file).is_file():
                    return place
        return None

    @contextmanager
    def importable(self, checkout: Path) -> Iterator[None]:
        """Import the checkout's modules within the block, and forget them after it.

        Modules of different authors have the same names.

        Raises:
            UsageError: The timed model needs a package that is not installed.
        """
        place = (checkout / self.root).resolve()
        before = set(sys.modules)
        absent = [name for name in self.unused if find_spec(name) is None]
        sys.modules.update((name, _NotInstalled(name)) for name in absent)
        sys.path.insert(0, str(place))
        invalidate_caches()
        try:
            yield
        except ModuleNotFoundError as error:
            raise UsageError(
                f"{self.name}: the code in {checkout} needs the package {error.name}: install it"
            ) from error
        finally:
            sys.path.remove(str(place))
            for name in set(sys.modules) - before:
                if _is_of(sys.modules[name], place):
                    del sys.modules[name]


def _is_of(module: ModuleType, place: Path) -> bool:
    """Whether a module is of a checkout; a folder without `__init__.py` has no file."""
    paths = [getattr(module, "__file__", None), *getattr(module, "__path__", ())]
    inside = any(path is not None and Path(path).is_relative_to(place) for path in paths)
    return inside or isinstance(module, _NotInstalled)


class _NotInstalled(ModuleType):
    """Takes the place of a package whose functions are imported and not called."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def missing(*_: Any, **__: Any) -> None:
            raise UsageError(f"{self.__name__}.{name} is called: install {self.__name__}")

        return missing


class Comparison(NamedTuple):
    """A run of a model, here and in the code of its authors.

    Attributes:
        label: row of the table.
        code: the authors' code.
        words: overrides of our run.
        build: function that makes the authors' model of our run.
        checked: further overrides for the comparison of outputs.
    """

    label: str
    code: Code
    words: tuple[str, ...]
    build: Callable[[Run], Theirs]
    checked: tuple[str, ...] = ()


def copy(value: Tensor, parameter: Tensor) -> None:
    """Copy a value of ours into a parameter of theirs."""
    if value.shape != parameter.shape:
        raise UsageError(f"a weight of theirs is {parameter.shape}, ours {value.shape}")
    parameter.data.copy_(value.detach())


def copy_affine(ours: Any, theirs: Any) -> None:
    """Copy the weight and the bias of a linear map or of a norm."""
    copy(ours.weight, theirs.weight)
    copy(ours.bias, theirs.bias)


def their_step(
    model: nn.Module, optimizer: Any, loss: Callable[[], Tensor], clip: float | None
) -> Work:
    """One optimiser step of their model, with our clipping of gradients."""

    def step() -> None:
        optimizer.zero_grad()
        loss().backward()
        if clip is not None:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()

    return step
