"""Transformer fusion: replaces groups of operators by fused operators, for which ONNX Runtime has fast kernels."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from engine.kit.onnx import mapped_weights, onnx_files
from engine.runtimes.onnxruntime import session as ort
from engine.runtimes.preparation import CONTRIBUTED

if TYPE_CHECKING:
    import numpy as np
    import onnx

_POSITIONS = 8
"""The index of the input `position_ids` of EmbedLayerNormalization."""
_STANDARD_FUSED = frozenset({"Gelu", "LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization"})
"""Fused operators of ONNX's own domain; an older export has several smaller operators in place of each fused one."""


def fuse(model: Path, scratch: Path, *, skip_layer_norm: bool) -> onnx.ModelProto:
    """Return the model of a directory with its attention, embedding and activation operators fused.

    Attention masks stay raw: by default the optimizer turns masks into sequence lengths, which is wrong for every mask
    that is not right-padded. With `skip_layer_norm` the optimizer also fuses residual additions and biases into the
    operators that follow the additions. The folder `scratch` receives a temporary copy of the model with folded
    constants. Large weights of the returned model are mapped from files in `scratch`. If ONNX Runtime's optimizer
    cannot handle the graph, the optimizer's own exception is raised.
    """
    from onnxruntime import __version__ as version
    from onnxruntime.transformers.fusion_options import FusionOptions
    from onnxruntime.transformers.optimizer import BertOnnxModel

    class Spilling(BertOnnxModel):  # type: ignore[misc]
        """A model that spills the weights that are added to it."""

        def add_initializer(self, tensor: onnx.TensorProto, graph_name: str | None = None) -> None:
            mapped_weights.spill(tensor)
            super().add_initializer(tensor, graph_name)

    # `optimize_model` would fold and fuse in one call, but needs torch. Constants are folded first, since fusion
    # matches patterns of folded constants. Sharing equal constants is off: shared constants do not match the patterns.
    ort.optimize(model, scratch, level="basic", disabled=("ConstantSharing",))
    folded = onnx_files.load_mapped(scratch)
    options = FusionOptions("bert")
    options.use_raw_attention_mask(True)  # noqa: FBT003  the optimizer's own signature
    options.enable_skip_layer_norm = skip_layer_norm
    options.enable_bias_skip_layer_norm = skip_layer_norm
    options.enable_bias_gelu = skip_layer_norm
    # "bert" for all architectures: the other model types ("gpt2", "t5", ...) fused nothing more in exports of their own
    # architectures, and "vit" drops the mask of a text model.
    heads, hidden = attention_sizes(folded)
    with mapped_weights.spilling(scratch), mapped_weights.readable_by_tools():
        fused = Spilling(folded, heads, hidden)
        fused.optimize(options)
        fused.topological_sort()
    fused.model.producer_name, fused.model.producer_version = "onnxruntime.transformers", version
    _drop_counted_positions(fused.model)
    fused.prune_graph()
    return fused.model


def fused_operators(before: onnx.ModelProto, after: onnx.ModelProto) -> dict[str, int]:
    """Return for each type of fused operator how many more nodes the model `after` has than the model `before`."""
    counts = _fused(after)
    counts.subtract(_fused(before))
    return {name: count for name, count in sorted(counts.items()) if count > 0}


def attention_sizes(model: onnx.ModelProto) -> tuple[int, int]:
    """Return the pair (attention heads, hidden size) of the graph; (0, 0) where the graph has several pairs or none.

    An export may reshape to (batch, sequence, -1, head size) and so leave the number of heads open. Where a Reshape
    leaves the number of heads open, the number is computed from the weight of the projection, of shape [input, heads x
    head size].
    """
    graph = _Graph(model)
    sizes = set()
    for node in model.graph.node:
        head = graph.head_size(node.input[1]) if node.op_type == "Reshape" else None
        weight = graph.projection(node.input[0]) if head else None
        if head is not None and head > 0 and weight is not None and weight.dims[-1] % head == 0:
            sizes.add((int(weight.dims[-1]) // head, int(weight.dims[-1])))
    return sizes.pop() if len(sizes) == 1 else (0, 0)


def _drop_counted_positions(model: onnx.ModelProto) -> None:
    """Remove the input `position_ids` of each operator EmbedLayerNormalization whose positions are 0, 1, 2, ...

    Without `position_ids` the operator EmbedLayerNormalization counts positions by itself. DistilBERT's export has
    explicit positions, and ONNX Runtime cannot quantize a fused embedding with explicit positions.
    """
    import numpy as np

    graph = _Graph(model)
    for node in model.graph.node:
        if node.op_type != "EmbedLayerNormalization" or len(node.input) <= _POSITIONS:
            continue
        cut = graph.makers.get(node.input[_POSITIONS])
        if cut is not None and cut.op_type == "Cast":
            cut = graph.makers.get(cut.input[0])
        if cut is None or cut.op_type != "Slice":
            continue
        table, start = map(graph.constant, cut.input[:2])
        counts = table is not None and np.array_equal(table, np.arange(table.size).reshape(1, -1))
        if counts and start is not None and not start.any():
            node.input[_POSITIONS] = ""


class _Graph:
    """The stored tensors of a model, and the node that makes each value, by name."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.stored = onnx_files.initializers(model.graph)
        self.makers = onnx_files.producers(model.graph)

    def head_size(self, shape: str) -> int | None:
        """Return the last extent of a Reshape to four axes, the head size; None for another Reshape."""
        whole = self.constant(shape)
        if whole is not None:
            return int(whole[-1]) if whole.shape == (4,) else None
        maker = self.makers.get(shape)
        if maker is None or maker.op_type != "Concat" or len(maker.input) != 4:  # noqa: PLR2004  batch, sequence, heads, size
            return None
        last = self.constant(maker.input[3])
        return int(last.flat[0]) if last is not None and last.size == 1 else None

    def projection(self, value: str) -> onnx.TensorProto | None:
        """Return the weight of the MatMul that computes a value, with or without an added bias; None for others."""
        maker = self.makers.get(value)
        if maker is not None and maker.op_type == "Add":
            sources = (self.makers.get(name) for name in maker.input)
            maker = next((node for node in sources if node is not None and node.op_type == "MatMul"), None)
        if maker is None or maker.op_type != "MatMul":
            return None
        return self.stored.get(maker.input[1])

    def constant(self, name: str) -> np.ndarray | None:
        """Return the numbers of a stored tensor or of a Constant; None for a computed value."""
        import numpy as np
        from onnx import numpy_helper

        if name in self.stored:
            return mapped_weights.array(self.stored[name])
        maker = self.makers.get(name)
        if maker is None or maker.op_type != "Constant" or maker.attribute[0].name != "value":
            return None
        return np.asarray(numpy_helper.to_array(maker.attribute[0].t))


def _fused(model: onnx.ModelProto) -> Counter[str]:
    return Counter(
        node.op_type
        for node in onnx_files.nodes(model)
        if node.domain == CONTRIBUTED or node.op_type in _STANDARD_FUSED
    )
