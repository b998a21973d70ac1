import graphs
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from engine.errors import StepError
from engine.kit.onnx import mapped_weights, onnx_files

VALUES = np.arange(3 * mapped_weights.LEAST, dtype=np.float32).reshape(3, -1)


def model(values=VALUES):
    shape = ", ".join(map(str, values.shape))
    text = f"(float[{shape}] x) => (float[] y, float[300] z) {{ y = Add(x, w) z = Identity(small) }}"
    return graphs.parsed(text, w=values, small=np.ones(300, np.float32))


@pytest.mark.parametrize("threshold", [0, onnx_files.INLINE_LIMIT])
def test_a_mapped_model_holds_no_large_weights_and_reads_them_from_the_file(tmp_path, threshold, monkeypatch):
    monkeypatch.setattr("engine.kit.onnx.large_files.PARSED", 1000)
    onnx_files.save(model(), tmp_path, threshold=threshold)
    loaded = onnx_files.load_mapped(tmp_path)
    large, small = loaded.graph.initializer
    assert mapped_weights.extent(large).path.parent == tmp_path.resolve()
    assert loaded.ByteSize() < 5000
    assert np.array_equal(mapped_weights.array(large), VALUES)
    assert mapped_weights.extent(small) is None
    assert onnx_files.weight_bytes(loaded) > VALUES.nbytes
    assert onnx_files.load(tmp_path).graph.initializer[0].raw_data == VALUES.tobytes()


@pytest.mark.parametrize(
    "dtype", [TensorProto.BFLOAT16, TensorProto.FLOAT16, TensorProto.FLOAT8E4M3FN, TensorProto.INT8, TensorProto.INT4]
)
def test_weights_of_every_type_are_the_same_mapped_and_in_memory(tmp_path, dtype):
    tensor = helper.make_tensor("w", dtype, [1 << 18], np.arange(1 << 18) % 7)
    onnx_files.save(graphs.graph([], [], [], [tensor], opset=21), tmp_path, threshold=0)
    mapped = onnx_files.load_mapped(tmp_path).graph.initializer[0]
    assert mapped_weights.extent(mapped) is not None
    expected = numpy_helper.to_array(tensor)
    assert mapped_weights.array(mapped).dtype == expected.dtype
    assert np.array_equal(mapped_weights.array(mapped), expected)


@pytest.mark.parametrize("threshold", [0, onnx_files.INLINE_LIMIT])
def test_a_mapped_model_is_saved_with_the_bytes_of_one_in_memory(tmp_path, threshold):
    onnx_files.save(model(), tmp_path / "memory", threshold=threshold)
    onnx_files.save(model(), tmp_path / "source", threshold=0)
    onnx_files.save(onnx_files.load_mapped(tmp_path / "source"), tmp_path / "mapped", threshold=threshold)
    names = sorted(path.name for path in (tmp_path / "memory").iterdir())
    assert names == ["model.onnx", "model.onnx.data"][: 2 if threshold == 0 else 1]
    for name in names:
        assert (tmp_path / "memory" / name).read_bytes() == (tmp_path / "mapped" / name).read_bytes()


def test_new_weights_are_spilled_to_a_file_and_saved_from_there(tmp_path):
    changed = model()
    with mapped_weights.spilling(tmp_path / "scratch"):
        changed.graph.initializer[0].CopyFrom(mapped_weights.tensor_of(VALUES * 2, "w"))
        mapped_weights.spill(changed.graph.initializer[1])  # too small
    assert changed.ByteSize() < 5000
    assert np.array_equal(mapped_weights.array(changed.graph.initializer[0]), VALUES * 2)
    onnx_files.save(changed, tmp_path / "out")
    assert np.array_equal(
        numpy_helper.to_array(onnx.load(tmp_path / "out/model.onnx").graph.initializer[0]), VALUES * 2
    )


def test_without_a_file_to_spill_to_new_weights_are_in_memory():
    tensor = mapped_weights.tensor_of(VALUES, "w")
    assert tensor == numpy_helper.from_array(VALUES, "w")


def test_tools_of_other_packages_read_mapped_weights_only_where_the_code_says_so(tmp_path):
    onnx_files.save(model(), tmp_path, threshold=0)
    mapped = onnx_files.load_mapped(tmp_path).graph.initializer[0]
    with mapped_weights.readable_by_tools():
        assert np.array_equal(numpy_helper.to_array(mapped), VALUES)
    with pytest.raises(Exception, match="absolute"):
        numpy_helper.to_array(mapped)


def test_a_model_that_names_its_data_by_an_absolute_path_is_refused(tmp_path):
    onnx_files.save(model(), tmp_path / "model", threshold=0)
    (tmp_path / "model/model.onnx.data").rename(tmp_path / "secret")
    graph = onnx.load(tmp_path / "model/model.onnx", load_external_data=False)
    graph.graph.initializer[0].external_data[0].value = str(tmp_path / "secret")
    onnx.save(graph, tmp_path / "model/model.onnx")
    for load in (onnx_files.load, onnx_files.load_mapped, onnx_files.load_graph):
        with pytest.raises(StepError, match=r"outside its own directory\n.*/secret'"):
            load(tmp_path / "model")


def test_a_session_of_a_large_mapped_model_links_its_files(tmp_path, monkeypatch):
    monkeypatch.setattr(onnx_files, "INLINE_LIMIT", 1000)
    onnx_files.save(model(), tmp_path / "source", threshold=0)
    loaded = onnx_files.load_mapped(tmp_path / "source")
    before = loaded.SerializeToString()
    onnx_files.save_linked(loaded, tmp_path / "linked")
    assert (tmp_path / "linked/weights-0").samefile(tmp_path / "source/model.onnx.data")
    assert loaded.SerializeToString() == before
    assert onnx_files.load(tmp_path / "linked").graph.initializer[0].raw_data == VALUES.tobytes()


def test_a_session_of_a_smaller_model_links_weights_that_begin_at_a_page(tmp_path):
    onnx_files.save(model(), tmp_path / "apart", threshold=0)
    onnx_files.save_linked(onnx_files.load_mapped(tmp_path / "apart"), tmp_path / "linked")
    assert (tmp_path / "linked/weights-0").samefile(tmp_path / "apart/model.onnx.data")
    onnx_files.save_linked(onnx_files.load(tmp_path / "apart"), tmp_path / "copied")
    assert [path.name for path in (tmp_path / "copied").iterdir()] == ["model.onnx"]
