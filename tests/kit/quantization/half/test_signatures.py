"""Convolutions in bf16: ONNX has them since opset 22, and exported graphs are older."""

import engines
import graphs
import numpy as np
import pytest
from onnx import TensorProto

from engine.kit.inputs.cases import Case
from engine.kit.onnx import ir_models, onnx_files, opsets
from engine.kit.onnx.ir_models import Pipeline
from engine.kit.quantization.half import half_search, signatures
from engine.machine import tools

NEWEST = 23
ACTIVATIONS = ["HardSigmoid", "Softsign", "Round", "Sin", "Elu"]
"""Operators with one input that have bf16 since opset 22, and that TensorRT-RTX builds."""
WITHOUT = ["HardSwish", "Mish"]
"""Operators with one input that have bf16 since opset 22, and that TensorRT-RTX refuses."""


def convolution(directory, *, opset, between="HardSigmoid"):
    """Write Conv, an activation, MaxPool and GlobalAveragePool."""
    weights = np.random.default_rng(0).standard_normal((16, 3, 3, 3)).astype(np.float32) * np.float32(0.2)
    nodes = (
        f"c = Conv<pads = [1, 1, 1, 1]>(x, w) a = {between}(c) m = MaxPool<kernel_shape = [2, 2]>(a) "
        "y = GlobalAveragePool(m)"
    )
    text = f"(float[batch, 3, 16, 16] x) => (float[batch, 16, 1, 1] y) {{ {nodes} }}"
    return graphs.write(directory, graphs.parsed(text, opset=opset, w=weights))


def lowered(directory, scratch, newest=NEWEST):
    """Return the model in bf16, and the report."""
    rows = np.random.default_rng(1).standard_normal((4, 1, 3, 16, 16)).astype(np.float32)
    cases = [Case(f"line {n}", "", "sample", {"x": row}, {}) for n, row in enumerate(rows)]
    passes = Pipeline(signatures.load_for_bf16(directory, newest))
    report = half_search.lowered(passes, cases, "bf16", scratch)
    return ir_models.proto(passes.model), report


def reading_bf16(model):
    """Return the operators of the nodes that read a stored weight or another node's output in bf16."""
    halves = {
        node.output[0] for node in model.graph.node if node.op_type == "Cast" and _to(node) == TensorProto.BFLOAT16
    }
    halves |= {tensor.name for tensor in model.graph.initializer if tensor.data_type == TensorProto.BFLOAT16}
    halves |= {name for node in model.graph.node for name in node.output if name.endswith("_bf16")}
    return {node.op_type for node in model.graph.node if node.op_type != "Cast" and halves & set(node.input)}


def _to(node):
    return next(attribute.i for attribute in node.attribute if attribute.name == "to")


@pytest.mark.parametrize("opset", [17, 20, 22])
def test_convolutions_and_poolings_compute_in_bf16_whatever_the_opset_was(opset, tmp_path):
    model, report = lowered(convolution(tmp_path / "model", opset=opset), tmp_path)
    assert opsets.version(model) == signatures.BF16_OPSET
    assert reading_bf16(model) >= {"Conv", "MaxPool"}
    assert report.share == 1


def test_a_runtime_that_reads_no_opset_22_keeps_them_in_float32(tmp_path):
    model, report = lowered(convolution(tmp_path / "model", opset=20), tmp_path, newest=20)
    assert opsets.version(model) == 20
    assert report.share == 0


def test_a_model_that_gains_nothing_keeps_its_opset(tmp_path):
    source = graphs.write(tmp_path, graphs.parsed("(float[batch, 8] x) => (float[batch, 8] y) { y = Relu(x) }"))
    assert opsets.version(ir_models.proto(signatures.load_for_bf16(source, NEWEST))) == 17


@pytest.mark.skipif(
    tools.version_of("onnxruntime-gpu") != tools.MISSING,
    reason="onnxruntime-gpu 1.31 crashes on a machine with a GPU when it lists its kernels",
)
def test_onnx_runtime_has_each_operator_in_opset_22_that_it_has_in_opset_20():
    from onnx import defs
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    kernels = {}
    for kernel in state.get_all_opkernel_def():
        if kernel.provider == "CPUExecutionProvider" and not kernel.domain:
            kernels.setdefault(kernel.op_name, []).append(kernel.version_range)

    def runs(operator, opset):
        since = defs.get_schema(operator, opset, "").since_version
        return any(first <= since <= last for first, last in kernels[operator])

    both = [name for name in kernels if defs.has(name, 20, "") and runs(name, 20)]
    assert len(both) > 100
    assert [name for name in both if not runs(name, signatures.BF16_OPSET)] == []


@pytest.mark.slow
@pytest.mark.parametrize("operator", [*ACTIVATIONS, *WITHOUT])
@pytest.mark.sample(2)
def test_tensorrt_rtx_builds_what_is_lowered(operator, tmp_path):
    model, _ = lowered(convolution(tmp_path / "model", opset=20, between=operator), tmp_path)
    assert (operator in reading_bf16(model)) == (operator in ACTIVATIONS)
    onnx_files.save(model, tmp_path / "low")
    assert engines.rtx_bytes(tmp_path / "low", "A10", {"batch": [1, 2, 4]}) > 0
