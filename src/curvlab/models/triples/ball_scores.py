"""Scores of queries against all entities in the unit ball, in C++ (`curvlab.cpp`).

One pass over tiles of entities computes the scores of a block of queries, and a second pass their
gradients. `curvlab.models.triples.ball_distances` has the formulas and the plain form.
"""

import ctypes
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from curvlab.cpp import ARRAY, DOUBLE, INTEGER, Library

LIBRARY = Library(
    Path(__file__).with_suffix(".cpp"),
    {
        "num_entries": [ARRAY, INTEGER],
        "forward": [ARRAY, ARRAY, INTEGER],
        "backward": [ARRAY, ARRAY, ARRAY, INTEGER],
    },
    dtypes=(torch.float32, torch.float64),
)

_INTEGERS = "queries", "runs", "dim", "entities", "has_shifts", "is_float32"
_FLOAT64 = "points", "p", "q", "scale", "g"
_FLOAT32 = "weight", "head_bias", "tail_bias"
_SOURCES = *_FLOAT64, *_FLOAT32, "vectors"
_RESULTS = "products", "derivative", "squared"


class _Block(ctypes.Structure):
    """`Block` in ball_scores.cpp."""

    _fields_ = [
        *[(name, INTEGER) for name in _INTEGERS],
        ("rim", DOUBLE),
        *[(name, ARRAY) for name in ("starts", *_SOURCES, *_RESULTS)],
    ]


class _Gradients(ctypes.Structure):
    """`Gradients` in ball_scores.cpp."""

    _fields_ = [(name, ARRAY) for name in _SOURCES]


def ball_scores(
    functions: ctypes.CDLL,
    rim: float,
    group: Tensor,
    tail_bias: Tensor,
    head_bias: Tensor,
    weight: Tensor,
    z: Tensor,
    p: Tensor,
    q: Tensor,
    scale: Tensor,
    vectors: Tensor,
    *shifts: Tensor,
) -> Tensor:
    """Scores of `ball_distances.ball_scores`, computed by functions of `LIBRARY`.

    The arguments are the same, except that the tangent vectors of the entities `[entities, dim]`,
    in single or double precision, replace their rays and lengths.
    """
    relations, counts = group.unique_consecutive(return_counts=True)
    if len(scale) > 1:
        scale = scale.index_select(0, relations)
    scale = scale.expand(len(relations), 1)
    g = torch.ones_like(scale)
    points = z
    if shifts:
        g, shift_points = (shift.index_select(0, relations) for shift in shifts)
        points = torch.cat([z, shift_points])
    starts = F.pad(counts.cumsum(0), (1, 0))
    sources = [array.double().contiguous() for array in (points, p, q, scale, g)]
    sources += [array.float().contiguous() for array in (weight, head_bias, tail_bias)]
    sources.append(vectors.contiguous())
    scores: Tensor = _BallScores.apply(functions, rim, starts, *sources)
    return scores


class _BallScores(Function):
    """Scores of runs of queries. A run has one relation, and `starts` are the runs' first rows."""

    @staticmethod
    def forward(
        ctx: Any, functions: ctypes.CDLL, rim: float, starts: Tensor, *sources: Tensor
    ) -> Tensor:
        arrays = {"starts": starts, **dict(zip(_SOURCES, sources, strict=True))}
        queries = len(arrays["p"])
        entities, dim = arrays["vectors"].shape
        block = _Block(
            queries=queries,
            runs=len(starts) - 1,
            dim=dim,
            entities=entities,
            has_shifts=len(arrays["points"]) > queries,
            is_float32=arrays["vectors"].dtype == torch.float32,
            rim=rim,
        )
        products = functions.num_entries(ctypes.byref(block), 1)
        pairs = functions.num_entries(ctypes.byref(block), 0)
        arrays["products"] = starts.new_empty(products, dtype=torch.float64)
        arrays["derivative"] = starts.new_empty(pairs, dtype=torch.float32)
        if arrays["weight"].requires_grad:
            arrays["squared"] = torch.empty_like(arrays["derivative"])
        _set_addresses(block, arrays)
        scores = starts.new_empty((queries, entities), dtype=torch.float32)
        functions.forward(ctypes.byref(block), scores.data_ptr(), torch.get_num_threads())
        ctx.save_for_backward(*arrays.values())
        ctx.functions = functions
        ctx.block = block
        ctx.names = list(arrays)
        return scores

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        arrays = dict(zip(ctx.names, ctx.saved_tensors, strict=True))
        _set_addresses(ctx.block, arrays)
        gradients = {}
        for name in (*_FLOAT64, *_FLOAT32):
            gradients[name] = torch.zeros_like(arrays[name], dtype=torch.float64)
        gradients["vectors"] = torch.empty_like(arrays["vectors"])
        results = _Gradients()
        _set_addresses(results, gradients)
        grad = grad.contiguous()
        arguments = ctypes.byref(ctx.block), grad.data_ptr(), ctypes.byref(results)
        ctx.functions.backward(*arguments, torch.get_num_threads())
        return None, None, None, *gradients.values()


def _set_addresses(structure: ctypes.Structure, arrays: Mapping[str, Tensor]) -> None:
    """Set fields to the addresses of arrays. The caller must keep the arrays alive."""
    for name, array in arrays.items():
        setattr(structure, name, array.data_ptr())
