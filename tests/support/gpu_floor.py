"""The floor of a model's latency on a GPU: what its products, or one read of its weights, would take at best.

At small shapes a call takes far longer than the floor because kernels are launched one after another, at large shapes
because kernels compute or move more than the products need.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from engine.kit.onnx import ir_models
from engine.kit.quantization import matmul_work

SHAPES = ((1, 16), (1, 128), (8, 128), (32, 128), (32, 384))
MINILM, BERT = "MiniLM", "BERT-base"
TODAY = {
    MINILM: (0.980, 0.910, 0.990, 1.15, 5.64),
    BERT: (1.44, 1.79, 1.84, 3.35, 15.0),
}
"""The p50 in milliseconds of this project's fp16 package of November 2026 at SHAPES, with inputs on the GPU.

Measured on an H100 80GB, driver 580, CUDA 13, onnxruntime-gpu 1.31.1, by IO binding, without CUDA graphs.
"""
LIMITS = {
    MINILM: (0.26, 0.28, 0.36, 0.56, 0.40),
    BERT: (0.38, 0.32, 0.50, 0.72, 0.50),
}
"""The largest share of TODAY that a package may take at SHAPES."""
LIKE_TODAY = ("H100", "H200")
"""The GPUs whose latencies are compared with TODAY."""
EAGER_RATIO = 9.0
"""How many times longer PyTorch in fp32 must take for BERT-base at 1 x 16 than our package.

That is the ratio of a write-up of 2021 for MiniLM on a T4: 5.07 to 0.54 ms (recipes/seeds/minilm_t4.yaml).
"""
_HALF = 2
"""Bytes of a number in fp16."""


class Work(NamedTuple):
    """What one call of a model with a batch of one row must do."""

    flops: float
    weights: int
    """The numbers of the stored tensors that are read as a whole; of a table of embeddings a call reads a few rows."""


class Peaks(NamedTuple):
    """What a GPU does at best, as measured on it."""

    flops_per_s: float
    """Of a large product of matrices in fp16."""
    bytes_per_s: float
    """Of a large copy within the GPU's memory: bytes read and bytes written."""


def work(exported: Path, sequence: int, scratch: Path) -> Work:
    """Count what a call of an exported model does for one row of `sequence` tokens: products of its graph, weights."""
    model = ir_models.load(exported)
    inputs = {value.name: np.ones((1, sequence), np.int64) for value in model.graph.inputs}
    multiplications = matmul_work.measured(model, inputs, scratch)
    weights = sum(
        value.const_value.size
        for value in model.graph.initializers.values()
        if any(node.op_type != "Gather" for node in value.consumers())
    )
    return Work(2.0 * sum(multiplications.values()), weights)


def floor_ms(work: Work, batch: int, peaks: Peaks) -> float:
    """Return the milliseconds in fp16 that no call can fall below: the longer of its products and of its weights."""
    return 1e3 * max(batch * work.flops / peaks.flops_per_s, _HALF * work.weights / peaks.bytes_per_s)


def verdicts(gpu: str, best: Mapping[tuple[str, tuple[int, int]], float]) -> Iterator[str]:
    """Yield a line for each model and shape: whether the p50 in `best`, in milliseconds, keeps its limit."""
    for model, limits in LIMITS.items():
        for shape, today, limit in zip(SHAPES, TODAY[model], limits, strict=True):
            name = f"{model} {shape[0]} x {shape[1]}"
            taken = best.get((model, shape))
            if taken is None:
                yield f"{name}: not measured (limit {limit:.2f} x of {today:.3f} ms)"
            elif not any(each in gpu for each in LIKE_TODAY):
                yield f"{name}: {taken:.3f} ms on {gpu}, and the limit is one for {' and '.join(LIKE_TODAY)}"
            else:
                share = taken / today
                verdict = "met" if share <= limit else "missed"
                yield f"{name}: {verdict}: {taken:.3f} ms, {share:.2f} x of {today:.3f} ms (limit {limit:.2f} x)"


def eager_verdict(ratio: float | None) -> str:
    """Return whether PyTorch in fp32 takes EAGER_RATIO times longer than our package of BERT-base at 1 x 16."""
    name = f"{BERT} 1 x 16 beside PyTorch eager in fp32"
    if ratio is None:
        return f"{name}: not measured (limit {EAGER_RATIO:g} x)"
    return f"{name}: {'met' if ratio >= EAGER_RATIO else 'missed'}: {ratio:.2f} x (limit {EAGER_RATIO:g} x)"
