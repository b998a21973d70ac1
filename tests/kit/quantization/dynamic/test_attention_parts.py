"""Attention parts: a fused attention in parts gives the same numbers, with masks of every kind."""

import graphs
import numpy as np
import pytest
from onnx import TensorProto, helper

from engine.kit.accuracy import equivalence
from engine.kit.onnx import ir_models
from engine.kit.quantization.dynamic import attention_parts
from engine.runtimes.onnxruntime import session as ort

WIDE = 16


def attention(*, mask=True, **attributes):
    """x [batch, sequence, 16] and a mask [batch, sequence] -> fused attention -> y."""
    given = ", ".join(f"{name} = {value}" for name, value in {"num_heads": 4, **attributes}.items())
    shape = f"float[batch, sequence, {WIDE}]"
    taken, last = (", int32[batch, sequence] attention_mask", ", attention_mask") if mask else ("", "")
    return graphs.parsed(
        f"({shape} x{taken}) => ({shape} y) {{ y = com.microsoft.Attention<{given}>(x, w, b{last}) }}",
        opset=23, ir=10, domains=("com.microsoft",), w=(WIDE, 3 * WIDE), b=graphs.weight("b", 3 * WIDE, seed=1),
    )  # fmt: skip


def parts(tmp_path, model):
    before = graphs.write(tmp_path / "before", model)
    changed = ir_models.load(before)
    count = attention_parts.split(changed)
    ir_models.save(changed, tmp_path / "after")
    return count, before, tmp_path / "after"


@pytest.mark.parametrize("mask", [True, False])
@pytest.mark.parametrize("attributes", [{}, {"scale": 0.3}])
def test_a_fused_attention_in_parts_gives_the_same_numbers(tmp_path, mask, attributes):
    count, before, after = parts(tmp_path, attention(mask=mask, **attributes))
    assert count == 1
    assert not any(node.domain for node in ir_models.load(after).graph)
    assert equivalence.difference(before, after) is None


def test_a_row_that_is_all_padding_harms_no_other_row(tmp_path):
    _, before, after = parts(tmp_path, attention())
    x = np.random.default_rng(0).standard_normal((2, 5, WIDE)).astype(np.float32)
    inputs = {"x": x, "attention_mask": np.array([[1] * 5, [0] * 5], np.int32)}
    expected, got = (ort.run(ort.session(folder, threads=1), inputs)["y"] for folder in (before, after))
    assert np.isfinite(got).all()
    np.testing.assert_allclose(got[0], expected[0], rtol=1e-4, atol=1e-5)


def test_the_mask_is_converted_once_for_all_layers(tmp_path):
    model = attention()
    inputs = ["y", "w", "b", "attention_mask"]
    model.graph.node.append(helper.make_node("Attention", inputs, ["z"], domain="com.microsoft", num_heads=4))
    model.graph.output[0].name = "z"
    count, before, after = parts(tmp_path, model)
    operators = [node.op_type for node in ir_models.load(after).graph]
    assert (count, operators.count("Expand"), operators.count("Attention")) == (2, 1, 2)
    assert equivalence.difference(before, after) is None


@pytest.mark.parametrize(
    "attributes", [{"do_rotary": 1}, {"unidirectional": 1}, {"qkv_hidden_sizes": [WIDE, WIDE, WIDE]}]
)
def test_an_attention_with_more_than_the_operator_of_onnx_has_stays(tmp_path, attributes):
    count, _, _ = parts(tmp_path, attention(**attributes))
    assert count == 0


def test_an_attention_whose_mask_has_three_axes_stays(tmp_path):
    model = attention()
    axes = ["batch", "sequence", "sequence"]
    model.graph.input[1].CopyFrom(helper.make_tensor_value_info("attention_mask", TensorProto.INT32, axes))
    count, _, _ = parts(tmp_path, model)
    assert count == 0
