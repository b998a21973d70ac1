"""Weight-only quantization of whole models: decoders with a past, encoders, and models with nothing to quantize."""

import generators
import graphs
import pytest

from engine.kit.onnx import mapped_weights, onnx_files
from engine.kit.quantization.precisions import LeftAloneError
from engine.kit.quantization.weight_only import weight_only
from engine.steps.export import Export
from engine.steps.fuse import Fuse
from engine.steps.quantize import Quantize


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gpt2")
    generators.checkpoint(folder / "checkpoint", "gpt2")
    Export().run(folder / "exported", checkpoint=folder / "checkpoint")
    return folder / "exported"


def test_a_decoder_has_the_same_bytes_twice_and_on_any_path(exported, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    outs = tmp_path / "one", tmp_path / "elsewhere" / "two"
    reports = [weight_only.quantize(exported, out, bits=4) for out in outs]
    assert reports[0] == reports[1]
    assert reports[0].quantized["MatMul"] == 9
    assert (outs[0] / "model.onnx").read_bytes() == (outs[1] / "model.onnx").read_bytes()


def test_weights_above_the_limit_lie_in_a_file_of_their_own(exported, tmp_path, monkeypatch):
    monkeypatch.setattr(mapped_weights, "LEAST", 1 << 8)
    monkeypatch.setattr(onnx_files.save, "__kwdefaults__", {"threshold": 1 << 12})
    weight_only.quantize(exported, tmp_path / "out", bits=8)
    model = onnx_files.load_graph(tmp_path / "out")
    assert onnx_files.data_files(model) == ["model.onnx.data"]


def test_an_encoder_keeps_fused_attention_and_says_so(tmp_path):
    Fuse().run(tmp_path / "fused", shaped=graphs.tiny("bert"))
    report = Quantize(way="int4 weights").run(tmp_path / "out", fused=tmp_path / "fused")
    assert report.quantized["MatMul"] == 7, "the classifier of two labels is left alone"
    assert report.left == ("2 Attention", "1 EmbedLayerNormalization", "1 MatMul")


def test_a_model_without_linear_layers_is_left_alone(tmp_path):
    source = graphs.write(tmp_path / "source", graphs.convolutions())
    with pytest.raises(LeftAloneError, match="no linear layer"):
        weight_only.quantize(source, tmp_path / "out", bits=4)
    assert Quantize(way="int4 weights").run(tmp_path / "left", fused=source).unquantized


def test_a_quantized_model_is_not_quantized_again(exported, tmp_path):
    weight_only.quantize(exported, tmp_path / "once", bits=4)
    with pytest.raises(LeftAloneError, match="quantized already"):
        weight_only.quantize(tmp_path / "once", tmp_path / "twice", bits=8)
