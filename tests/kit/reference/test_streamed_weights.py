import onnx
import torch

from engine.kit.onnx import mapped_weights, onnx_files
from engine.kit.reference import streamed_weights


def exported(module, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    example = (torch.ones(2, 8, dtype=next(module.parameters()).dtype),)
    torch.onnx.export(module, example, str(path), dynamo=False, opset_version=20)
    return path


def layers(dtype=torch.float32):
    torch.manual_seed(0)
    first, second = torch.nn.Linear(8, 300), torch.nn.Linear(300, 8)
    return torch.nn.Sequential(first, torch.nn.ReLU(), second, torch.nn.Linear(8, 8)).to(dtype).eval()


def test_the_exporter_writes_the_graph_and_the_weights_follow_byte_for_byte(tmp_path, monkeypatch):
    monkeypatch.setattr(mapped_weights, "LEAST", 1000)
    for dtype in (torch.float32, torch.bfloat16):
        plain = onnx.load(exported(layers(dtype), tmp_path / "plain.onnx"))
        with mapped_weights.spilling(tmp_path), streamed_weights.apart() as weights:
            path = exported(layers(dtype), tmp_path / "apart/model.onnx")
            assert path.stat().st_size < 5000
            model = onnx_files.load_graph(path.parent)
            assert {(8, 300), (300, 8)} <= {tuple(weight.shape) for weight in weights.values()}
            streamed_weights.put_back(model, weights)
        assert weights == {}
        assert sum(mapped_weights.extent(tensor) is not None for tensor in model.graph.initializer) >= 2
        for tensor in model.graph.initializer:
            mapped_weights.load(tensor)
        assert model == plain


def test_the_exporter_is_as_before_where_the_weights_are_not_apart(tmp_path):
    with streamed_weights.apart():
        pass
    assert len(onnx.load(exported(layers(), tmp_path / "model.onnx")).graph.initializer) == 6
