"""What is compiled gives what it gives without, under the same names, and not once a step."""

from functools import partial

import pytest
import torch
from torch import nn

from curvlab import compilation
from curvlab.compilation import Compilable, compile_parts
from curvlab.errors import UsageError
from curvlab.layers import StereographicAttention, StereographicFeedForward
from curvlab.manifolds import Euclidean, Stereographic
from curvlab.models.fpst import FPSTBlock

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("fresh_compiler")]


@pytest.fixture
def compiler():
    """Skip where there is no compiler."""
    try:
        compile_parts(nn.Identity(), torch.device("cpu"))
    except UsageError as error:
        pytest.skip(str(error))


class Square(Compilable):
    """Something to compile."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))

    def forward(self, x):
        """Scale and square."""
        return (self.scale * x) ** 2


def block(space, dropout=0.0):
    """A block of 8 coordinates and two heads with weights of its own."""
    torch.manual_seed(0)
    attention = StereographicAttention(8, 2, space, "linear", True, dropout=dropout)
    feed_forward = StereographicFeedForward(8, 8, torch.relu, space, weight_dropout=dropout)
    made = FPSTBlock(space, 8, attention, feed_forward, True)
    for parameter in made.parameters():
        nn.init.normal_(parameter, std=0.3)
    return made


def traced(module):
    """Compile as one graph that is run without generated code."""
    module.compile(backend="aot_eager", options=None, fullgraph=True)
    return module


@pytest.mark.usefixtures("compiler")
def test_only_what_is_worth_it_is_compiled_and_names_stay():
    task = nn.ModuleDict({"square": Square(), "linear": nn.Linear(3, 3)})
    names = list(task.state_dict())
    compile_parts(task, torch.device("cpu"))
    compiled = {name: part._compiled_call_impl is not None for name, part in task.items()}
    assert compiled == {"square": True, "linear": False}
    assert list(task.state_dict()) == names
    x = torch.arange(3.0)
    torch.testing.assert_close(task["square"](x), x**2)


def test_a_block_that_fails_on_a_gpu_is_not_compiled_there(monkeypatch):
    monkeypatch.setattr(compilation, "_check_compiler", lambda _: None)
    parts = nn.ModuleList([Square(), block(Stereographic(2))])
    compile_parts(parts, torch.device("cuda"))
    assert [part._compiled_call_impl is not None for part in parts] == [True, False]


def test_without_a_compiler_one_sentence_says_what_to_do(monkeypatch):
    def missing(*_, **__):
        raise RuntimeError("No working C++ compiler found")

    monkeypatch.setattr(compilation.torch, "compile", missing)
    with pytest.raises(UsageError, match=r"no working C\+\+ compiler for cpu.*compile=false"):
        compile_parts(Square(), torch.device("cpu"))


@pytest.mark.sampled(4)
@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("space", [partial(Euclidean, 2), partial(Stereographic, 2, (-1.0, 0.5))])
@pytest.mark.parametrize("side_by_side", [False, True], ids=["tokens", "coordinates"])
def test_a_compiled_block_is_the_block(space, side_by_side):
    x = torch.randn(8, 16).T if side_by_side else torch.randn(16, 8)
    results = []
    for made in (block(space(), dropout=0.5), traced(block(space(), dropout=0.5))):
        torch.manual_seed(1)
        value = made(x)
        results.append((value, *torch.autograd.grad(value.square().sum(), made.parameters())))
    torch.testing.assert_close(*results)


@pytest.mark.nightly
def test_nothing_is_compiled_again_for_other_weights_and_curvatures_or_the_next_block():
    blocks = [traced(block(Stereographic(2, (-0.1, 0.1), learnable=True))) for _ in range(12)]
    made = blocks[0]
    optimizer = torch.optim.SGD(made.parameters(), lr=0.1)
    x, kappas = torch.randn(16, 8), []
    for step in range(4):
        with torch.compiler.set_stance("fail_on_recompile" if step else "default"):
            optimizer.zero_grad()
            made(x).square().mean().backward()
        optimizer.step()
        with torch.no_grad():
            made.space.curvature.raw.neg_()
        kappas.append(made.space.kappa.tolist())
    assert len({tuple(kappa) for kappa in kappas}) == 4
    with torch.compiler.set_stance("fail_on_recompile"):
        for other in blocks[1:]:
            other(x)
