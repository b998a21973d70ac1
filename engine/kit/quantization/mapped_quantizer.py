"""Mapped quantizer: ONNX Runtime's dynamic quantizer, with large weights in files instead of copies in memory."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from engine.kit.onnx import external_data, mapped_weights, onnx_files

if TYPE_CHECKING:
    import onnx


def quantize_dynamic(
    model: onnx.ModelProto, scratch: Path, *, operators: Collection[str], excluded: Sequence[str], reduce_range: bool
) -> onnx.ModelProto:
    """Return the model with the weights of `operators` in int8, except those of the nodes named in `excluded`.

    Raises whatever ONNX Runtime's quantizer raises.
    """
    import onnx
    from onnxruntime import quantization

    with TemporaryDirectory(dir=scratch) as folder, _mapped(), mapped_weights.readable_by_tools():
        path = Path(folder) / onnx_files.MODEL
        quantization.quantize_dynamic(
            model,
            path,
            op_types_to_quantize=sorted(operators),
            per_channel=True,
            reduce_range=reduce_range,
            weight_type=quantization.QuantType.QInt8,
            nodes_to_exclude=list(excluded),
            # Shape inference does not know fused operators, so types behind fused operators are unknown.
            extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT},
        )
        return onnx.load(str(path), load_external_data=False)


@contextlib.contextmanager
def _mapped() -> Iterator[None]:
    """Let the quantizer keep references to large weights when it infers shapes, and let its new weights be spilled."""
    from onnxruntime.quantization import quant_utils
    from onnxruntime.quantization.onnx_model import ONNXModel

    extend, load = ONNXModel.initializer_extend, quant_utils.load_model_with_shape_infer

    def spilled(graph: Any, tensors: Sequence[onnx.TensorProto]) -> None:
        for tensor in tensors:
            mapped_weights.spill(tensor)
        extend(graph, tensors)

    ONNXModel.initializer_extend = spilled
    quant_utils.load_model_with_shape_infer = _with_shapes
    try:
        yield
    finally:
        ONNXModel.initializer_extend = extend
        quant_utils.load_model_with_shape_infer = load


def _with_shapes(path: Path) -> onnx.ModelProto:
    """Return the model in a file of the quantizer with inferred shapes; mapped weights stay mapped."""
    import onnx
    from onnxruntime.quantization.quant_utils import add_infer_metadata

    inferred = onnx.shape_inference.infer_shapes(onnx.load(str(path), load_external_data=False))
    for tensor in onnx_files.tensors(inferred):
        external_data.read(tensor, path.parent)
    add_infer_metadata(inferred)
    return inferred
