import graphs
import numpy as np
import onnx
import pytest
from graphs import FLOAT
from onnx import helper, numpy_helper

from engine.errors import StepError
from engine.kit.onnx import large_files, mapped_weights, onnx_files


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Files and weights of a few bytes count as large."""
    monkeypatch.setattr(large_files, "PARSED", 0)
    monkeypatch.setattr(mapped_weights, "LEAST", 64)


def every_model():
    typed = helper.make_tensor("typed", FLOAT, [600], np.arange(600).tolist())
    documented = numpy_helper.from_array(np.arange(99, dtype=np.int64), "documented")
    documented.doc_string = "what it is"
    empty = numpy_helper.from_array(np.zeros((0, 3), np.float32), "empty")
    odd = graphs.graph([], [], [], [typed, documented, empty])
    odd.graph.doc_string = "a graph"
    odd.metadata_props.add(key="author", value="someone")
    return {"layers": graphs.layers(), "choice": graphs.choice(), "loop": graphs.loop(), "odd": odd}


@pytest.mark.parametrize("name", every_model())
def test_a_large_file_is_parsed_without_its_weights(tmp_path, name):
    model = every_model()[name]
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString(deterministic=True))
    parsed = large_files.parse(path)
    large = [tensor for tensor in model.graph.initializer if len(tensor.raw_data) >= 64]
    assert len([tensor for tensor in parsed.graph.initializer if mapped_weights.extent(tensor)]) == len(large)
    assert onnx_files.load(tmp_path) == model
    onnx_files.save(parsed, tmp_path / "again")
    assert (tmp_path / "again" / "model.onnx").read_bytes() == path.read_bytes()


def test_weights_of_a_large_file_are_mapped_from_the_file_itself(tmp_path):
    graphs.write(tmp_path, graphs.layers())
    tensor = onnx_files.load_graph(tmp_path).graph.initializer[0]
    assert mapped_weights.extent(tensor).path == (tmp_path / "model.onnx").resolve()
    assert np.array_equal(mapped_weights.array(tensor), numpy_helper.to_array(graphs.layers().graph.initializer[0]))
    assert onnx_files.data_files(onnx_files.load_graph(tmp_path)) == []


WHOLE = graphs.layers().SerializeToString()


@pytest.mark.parametrize(
    "content",
    [
        *(WHOLE[: int(len(WHOLE) * part)] for part in (0.3, 0.6, 0.99)),
        b"<html>404</html>" * 9, b"\xff" * 99, b"\x3a\xff\xff\xff\x7f", b"\x08",
    ],
    ids=range(7),
)  # fmt: skip
def test_a_large_file_of_another_format_or_cut_off_is_no_onnx_model(tmp_path, content):
    (tmp_path / "model.onnx").write_bytes(content)
    with pytest.raises(StepError, match=r"model\.onnx is no ONNX model"):
        onnx_files.load(tmp_path)


def test_a_graph_that_is_edited_keeps_the_weights_of_its_large_file(tmp_path):
    graphs.write(tmp_path / "source", graphs.layers())
    graph = onnx_files.load_graph(tmp_path / "source")
    graph.graph.name = "renamed"
    onnx_files.save(graph, tmp_path / "out")
    onnx.checker.check_model(str(tmp_path / "out/model.onnx"))
    assert list(onnx_files.load(tmp_path / "out").graph.initializer) == list(graphs.layers().graph.initializer)
