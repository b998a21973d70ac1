import convolutional
import numpy as np
import onnx
import pytest

from engine.kit.onnx import ir_models, onnx_files
from engine.kit.quantization import matmul_work
from engine.kit.quantization.static import layers, ranges, static_nodes
from engine.runtimes.onnxruntime import session as ort


def inserted(folder, *results, **weights):
    """Return the network with the layers quantized whose results are named."""
    model = ir_models.load(convolutional.written(folder / "net", **weights))
    samples = convolutional.images(4)
    multiplications = matmul_work.measured(model, samples[0], folder)
    chosen = [layer for layer in layers.find(model, multiplications).layers if layer.result in results]
    assert len(chosen) == len(results)
    tensors = sorted({name for layer in chosen for name in (layer.source, layer.output)})
    observed = ranges.observe(model, tensors, samples, folder)
    static_nodes.insert(model, chosen, {name: ranges.widest(each) for name, each in observed.items()})
    onnx_files.save(ir_models.proto(model), folder / "out")
    return onnx_files.load(folder / "out")


def test_a_layer_reads_and_gives_integers(tmp_path):
    model = inserted(tmp_path, "dense")
    producers = {name: node for node in model.graph.node for name in node.output}
    dense = producers[next(node.input[0] for node in model.graph.node if node.op_type == "Clip")]
    assert [producers[name].op_type for name in dense.input] == ["DequantizeLinear"] * 3
    (clip,) = (node for node in model.graph.node if node.op_type == "Clip")
    assert [node.op_type for node in model.graph.node if clip.output[0] in node.input] == ["QuantizeLinear"]
    assert "w1" not in {tensor.name for tensor in model.graph.initializer}


def test_an_output_of_the_model_keeps_its_name_and_its_type(tmp_path):
    model = inserted(tmp_path, "dense", "point")
    assert [value.name for value in model.graph.output] == ["scores", "features"]
    onnx.checker.check_model(model, full_check=True)


def test_a_large_bias_beside_small_weights_stays_in_range(tmp_path):
    bias = np.full(48, 1e5, np.float32)
    small = np.full((48, 32, 1, 1), 1e-7, np.float32)
    inserted(tmp_path, "point", w3=small, b3=bias)
    image = convolutional.images(1)[0]
    first, second = (ort.run(ort.unoptimized(tmp_path / name), image)["features"] for name in ("net", "out"))
    assert np.abs(first - second).max() <= 1e5 / 100


def test_a_channel_of_zeros_is_quantized(tmp_path):
    weights = np.random.default_rng(0).standard_normal((48, 32, 1, 1)).astype(np.float32)
    weights[3] = 0
    inserted(tmp_path, "point", w3=weights, b3=np.zeros(48, np.float32))
    answer = ort.run(ort.unoptimized(tmp_path / "out"), convolutional.images(1)[0])["features"]
    assert np.isfinite(answer).all()


@pytest.mark.parametrize("name", ["dense", "point"])
def test_weights_have_a_scale_per_output(tmp_path, name):
    model = inserted(tmp_path, name)
    arrays = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    codes = arrays[f"{name}_weight_quantized"]
    assert codes.dtype == np.int8
    assert (np.abs(codes).reshape(len(codes), -1).max(axis=1) == 127).all()
    assert arrays[f"{name}_weight_scale"].shape == (len(codes),)
