"""Mapped quantizer: ONNX Runtime's dynamic quantizer, with large weights in files instead of copies in memory."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from engine.kit.onnx import mapped_weights

if TYPE_CHECKING:
    import numpy as np
    import onnx

_CHUNK = 4 << 20
"""The number of elements of a weight that are rounded at once."""


def quantize_dynamic(
    model: onnx.ModelProto, *, operators: Collection[str], excluded: Sequence[str], reduce_range: bool
) -> onnx.ModelProto:
    """Return the model with the weights of `operators` in int8, except those of the nodes named in `excluded`.

    Within `mapped_weights.spilling`, the new weights are stored in a file. Raises whatever ONNX Runtime's quantizer
    raises.
    """
    import onnx
    from onnxruntime.quantization import QuantizationMode, QuantType
    from onnxruntime.quantization.onnx_model import ONNXModel
    from onnxruntime.quantization.onnx_quantizer import ONNXQuantizer

    with mapped_weights.readable_by_tools():
        product = ONNXModel(_with_shapes(model))
        product.replace_gemm_with_matmul()
        quantizer: Any = ONNXQuantizer(
            _with_shapes(product.model),
            per_channel=True,
            reduce_range=reduce_range,
            mode=QuantizationMode.IntegerOps,
            static=True,  # else it does what stands above, with a copy of all weights in a file of its own
            weight_qType=QuantType.QInt8,
            activation_qType=QuantType.QUInt8,  # the only type that dynamic quantization gives activations
            tensors_range=None,
            nodes_to_quantize=[],
            nodes_to_exclude=list(excluded),
            op_types_to_quantize=sorted(operators),
            # Shape inference does not know fused operators, so types behind fused operators are unknown.
            extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT, "MatMulConstBOnly": True},
        )
        quantizer.static = False
        # The quantizer's own methods hold several copies of a weight in memory. Theirs and these give the same numbers.
        quantizer.quantize_initializer_impl = partial(_whole, quantizer)
        quantizer.quantize_weight_per_channel_impl = partial(_by_channel, quantizer)
        quantizer.quantize_model()
        quantizer.model.topological_sort()
    quantized: onnx.ModelProto = quantizer.model.model
    return quantized


def _whole(
    quantizer: Any,
    weight: onnx.TensorProto,
    code: int,
    reduce_range: bool,  # noqa: FBT001  the quantizer's own signature
    *_: bool,
) -> tuple[str, str, str]:
    """Round a weight with one scale; return the names of its integers, its zero point and its scale."""
    import numpy as np
    from onnxruntime.quantization import quant_utils

    values = quant_utils.tensor_proto_to_array(weight)
    symmetric = quantizer.is_weight_symmetric(code) if code == quantizer.weight_qType else False
    zero, scale = quant_utils.compute_data_quant_params(
        values.reshape(-1), code, symmetric, quantizer.reduce_range and reduce_range
    )
    return _added(quantizer, weight, code, np.asarray(zero), np.asarray(scale))


def _by_channel(
    quantizer: Any,
    name: str,
    code: int,
    axis: int,
    reduce_range: bool,  # noqa: FBT001  the quantizer's own signature
    *_: bool,
) -> tuple[str, str, str]:
    """Round a weight with a scale for each index of an axis; return the names of integers, zero points and scales."""
    import numpy as np
    from onnxruntime.quantization import quant_utils

    weight = next(tensor for tensor in quantizer.model.initializer() if tensor.name == name)
    values = quant_utils.tensor_proto_to_array(weight)
    others = tuple(index for index in range(values.ndim) if index != axis % values.ndim)
    symmetric, reduced = quantizer.is_weight_symmetric(code), quantizer.reduce_range and reduce_range
    extremes = np.stack([values.min(axis=others, initial=0), values.max(axis=others, initial=0)], axis=1)
    both = [quant_utils.compute_data_quant_params(pair, code, symmetric, reduced) for pair in extremes]
    shape = [-1 if index == axis % values.ndim else 1 for index in range(values.ndim)]
    zeros, scales = (np.stack(each).reshape(shape) for each in zip(*both, strict=True))
    return _added(quantizer, weight, code, zeros, scales)


def _added(
    quantizer: Any, weight: onnx.TensorProto, code: int, zeros: np.ndarray, scales: np.ndarray
) -> tuple[str, str, str]:
    """Add a weight's integers, zero points and scales to the quantizer's model, and return their names."""
    import numpy as np
    from onnx import helper
    from onnxruntime.quantization import quant_utils

    names = (f"{weight.name}_quantized", f"{weight.name}_zero_point", f"{weight.name}_scale")
    dims = [zeros.size] if zeros.ndim else []
    values = quant_utils.tensor_proto_to_array(weight)
    rounded = np.empty(values.shape, helper.tensor_dtype_to_np_dtype(code))
    rows = max(1, _CHUNK * len(values) // max(values.size, 1))
    for start in range(0, len(values), rows):
        chunk = slice(start, start + rows)
        zero, scale = (each[chunk] if each.shape[:1] == values.shape[:1] else each for each in (zeros, scales))
        rounded[chunk] = quant_utils.quantize_nparray(code, values[chunk], scale, zero)
    quantizer.model.initializer_extend(
        [
            helper.make_tensor(names[2], weight.data_type, dims, scales.reshape(-1).tolist()),
            helper.make_tensor(names[1], code, dims, zeros.reshape(-1).tolist()),
        ]
    )
    quantizer.model.initializer_extend([mapped_weights.tensor_of(rounded, names[0])])
    return names


def _with_shapes(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy of the model with inferred shapes; mapped weights stay mapped."""
    import onnx
    from onnxruntime.quantization.quant_utils import add_infer_metadata

    inferred = onnx.shape_inference.infer_shapes(model)
    add_infer_metadata(inferred)
    return inferred
