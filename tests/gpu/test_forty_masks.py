"""Fused attention with a bias on a real GPU: forty masks, of odd lengths too, against PyTorch on the CPU."""

import importlib.util

import attention_masks
import eager
import graphs
import models
import numpy as np
import onnxruntime
import pytest

from engine.kit.inputs.cases import Case
from engine.kit.onnx import ir_models, onnx_files
from engine.kit.onnx.ir_models import Pipeline
from engine.kit.quantization.half import half_search
from engine.machine import cuda
from engine.runtimes.devices import CudaGpu
from engine.runtimes.onnxruntime import providers as ort_providers
from engine.runtimes.onnxruntime import session as ort
from engine.steps.fuse import Fuse

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed"),
    pytest.mark.skipif(
        "CUDAExecutionProvider" not in onnxruntime.get_available_providers(), reason="no onnxruntime-gpu is installed"
    ),
]
WIDE_SUMS = ("EmbedLayerNormalization", "LayerNormalization", "SkipLayerNormalization")
MASKS = attention_masks.forty(len(models.vocabulary()))


def half(directory, scratch):
    """Convert the fused model in `directory` to fp16, as the step `quantize` does for the CUDA provider."""
    names = onnx_files.inputs(onnx_files.load_graph(directory))
    cases = [Case(str(n), "", "sample", eager.read_by(names, each.inputs), {}) for n, each in enumerate(MASKS[:4])]
    passes = Pipeline(ir_models.load(directory))
    half_search.lowered(passes, cases, "fp16", scratch, wide_sums=WIDE_SUMS)
    ir_models.save(passes.model, directory)


@pytest.mark.parametrize(("precision", "least"), [("fp32", 0.9999), ("fp16", 0.999)])
@pytest.mark.parametrize("architecture", ["bert", "roberta"])
def test_texts_with_a_visible_position_answer_as_pytorch_and_no_answer_is_nan(tmp_path, architecture, precision, least):
    source, out = graphs.tiny(architecture, "feature-extraction"), tmp_path / "fused"
    Fuse(residual="fused", attention_bias=True).run(out, shaped=source)
    if precision == "fp16":
        half(out, tmp_path)
    gpu = CudaGpu(0, cuda.devices()[0].name, cuda.devices()[0].sm)
    wide_sums = ort_providers.needs_wide_sums(onnx_files.load_graph(out))
    session = ort.session(out, provider=ort_providers.cuda(gpu, tf32=False, wide_sums=wide_sums))
    names = {value.name for value in session.get_inputs()}
    for masked, expected in eager.answers(source.parent / "checkpoint", MASKS):
        got = ort.run(session, eager.read_by(names, masked.inputs))["last_hidden_state"]
        assert np.isfinite(got).all(), masked.kind
        compared = np.full(len(got), precision == "fp32") | masked.inputs["attention_mask"].any(axis=1)
        for one, other in zip(expected[compared], got[compared], strict=True):
            cosine = float((one * other).sum() / np.linalg.norm(one) / np.linalg.norm(other))
            assert cosine > least, (masked.kind, got.shape, cosine)
