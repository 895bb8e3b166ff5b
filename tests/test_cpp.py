"""C++ kernels compute training steps alone, and their failure costs no run."""

import pytest
import torch
from torch._inductor.codecache import CppCodeCache
from torch._inductor.exc import InvalidCxxCompiler
from torch.autograd import forward_ad

from curvlab import cpp
from curvlab.cpp import Library, kernel_kind, use_kernels

TWICE = 'extern "C" void twice(float* x) { x[0] *= 2; }'


@pytest.fixture
def library(tmp_path):
    """A library of one function that doubles a number."""
    source = tmp_path / "twice.cpp"
    source.write_text(TWICE, encoding="utf-8")
    return Library(source, {"twice": [cpp.ARRAY]})


@pytest.fixture
def weight():
    return torch.ones(1).requires_grad_()


def said(caplog):
    """Lines of the module."""
    return [each.getMessage() for each in caplog.records if each.name == cpp.__name__]


@pytest.mark.usefixtures("cpp_kernels")
def test_a_compiled_function_computes(library, weight):
    assert kernel_kind() == "plain"
    library.functions(weight).twice(weight.data_ptr())
    assert weight.item() == 2
    assert kernel_kind() == "C++"


@pytest.mark.usefixtures("cpp_kernels")
def test_what_trains_nothing_in_float32_has_the_plain_form(library, weight):
    assert library.functions(weight) is not None
    assert library.functions(torch.ones(1)) is None
    assert library.functions(weight.double()) is None
    assert library.functions(weight, weight.detach().double()) is None
    with torch.no_grad():
        assert library.functions(weight) is None
    with use_kernels("plain"):
        assert library.functions(weight) is None
    with forward_ad.dual_level():
        assert library.functions(weight) is None
    found = []
    torch.func.vmap(lambda x: (found.append(library.functions(weight)), x)[1])(torch.ones(2))
    torch.func.grad(lambda x: (found.append(library.functions(x)), x)[1])(torch.tensor(1.0))
    assert found == [None, None]


@pytest.mark.parametrize("source", ["this is no C++", 'extern "C" void other() {}'])
def test_a_failing_compiler_is_said_once_and_ends_nothing(
    tmp_path, monkeypatch, caplog, weight, source
):
    monkeypatch.setattr(cpp._State, "failed", False)
    file = tmp_path / "broken.cpp"
    file.write_text(source, encoding="utf-8")
    with use_kernels("auto"):
        for _ in range(2):
            assert Library(file, {"twice": []}).functions(weight) is None
        assert kernel_kind() == "plain"
    (line,) = said(caplog)
    assert "no working C++ compiler" in line
    assert "\n" not in line


def test_a_machine_without_a_compiler_has_the_plain_form(monkeypatch, caplog, library, weight):
    def missing(*_args, **_options):
        raise InvalidCxxCompiler

    monkeypatch.setattr(cpp._State, "failed", False)
    monkeypatch.setattr(CppCodeCache, "load", missing)
    with use_kernels("auto"):
        assert library.functions(weight) is None
    assert len(said(caplog)) == 1
