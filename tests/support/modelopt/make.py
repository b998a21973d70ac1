"""Writes the ONNX files of this folder: a small network, quantized by NVIDIA Model Optimizer in each of its forms.

Model Optimizer needs another onnx than this project, so it runs in an environment of its own:

    python3 -m venv modelopt && modelopt/bin/pip install 'nvidia-modelopt[onnx]==0.47.0'
    modelopt/bin/python tests/support/modelopt/make.py tests/support/modelopt

The files were written by nvidia-modelopt 0.47.0 with onnx 1.21 and onnxruntime 1.24, on a CPU.
"""

import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FORMS = {
    "int8": ("int8", "max", "fp16"),
    "int8_fp32": ("int8", "max", "fp32"),
    "fp8": ("fp8", "max", "fp16"),
    "fp8_fp32": ("fp8", "max", "fp32"),
    "int4": ("int4", "awq_clip", "fp32"),
    "int4_nvidia": ("int4", "awq_clip_trt", "fp32"),
    "int4_nvidia_rtn": ("int4", "rtn_trt", "fp32"),
}
"""Name of the file -> mode, method of calibration, and type of the rest. The last two have NVIDIA's own operators."""
WIDTH, TOKENS = 32, 16


def network():
    """Return two matrix products with a residual sum and a normalization: [batch, 16, 32] -> [batch, 16, 32]."""
    rng = np.random.default_rng(0)

    def weight(name, *shape):
        return numpy_helper.from_array((rng.standard_normal(shape) / np.sqrt(WIDTH)).astype(np.float32), name)

    shape = ["batch", TOKENS, WIDTH]
    nodes = [
        helper.make_node("MatMul", ["x", "w0"], ["h0"], name="up"),
        helper.make_node("Add", ["h0", "b0"], ["h1"], name="bias"),
        helper.make_node("Relu", ["h1"], ["h2"], name="relu"),
        helper.make_node("MatMul", ["h2", "w1"], ["h3"], name="down"),
        helper.make_node("Add", ["h3", "x"], ["h4"], name="residual"),
        helper.make_node("LayerNormalization", ["h4", "g", "b"], ["y"], name="norm"),
    ]
    stored = [weight("w0", WIDTH, WIDTH), weight("b0", WIDTH), weight("w1", WIDTH, WIDTH),
              numpy_helper.from_array(np.ones(WIDTH, np.float32), "g"),
              numpy_helper.from_array(np.zeros(WIDTH, np.float32), "b")]  # fmt: skip
    ends = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)] for name in "xy"]
    graph = helper.make_graph(nodes, "mlp", *ends, stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def main(folder):
    from modelopt.onnx.quantization import quantize

    onnx.save(network(), folder / "mlp.onnx")
    samples = np.random.default_rng(1).standard_normal((64, TOKENS, WIDTH)).astype(np.float32)
    for name, (mode, method, rest) in FORMS.items():
        quantize(
            str(folder / "mlp.onnx"), quantize_mode=mode, calibration_data={"x": samples}, calibration_method=method,
            calibration_eps=["cpu"], output_path=str(folder / f"{name}.onnx"), high_precision_dtype=rest,
            block_size=WIDTH // 2, enable_gemv_detection_for_trt=False,
        )  # fmt: skip


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
