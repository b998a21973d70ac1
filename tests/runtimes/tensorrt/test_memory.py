import graphs
import pytest
from graphs import FLOAT
from onnx import TensorProto, helper

from engine.runtimes.tensorrt import memory

KIB = 1 << 10


def relus(count, shape, dtype=FLOAT):
    """Return a chain of Relus, each of whose tensors has this shape."""
    nodes = [helper.make_node("Relu", [f"t{n}"], [f"t{n + 1}"]) for n in range(count)]
    model = graphs.graph(nodes, [("t0", dtype, shape)], [(f"t{count}", dtype, shape)])
    inner = [helper.make_tensor_value_info(f"t{n}", dtype, shape) for n in range(1, count)]
    model.graph.value_info.extend(inner)
    return model


@pytest.mark.parametrize("count", [1, 2, 9])
def test_of_a_chain_two_tensors_are_alive_at_a_time(count):
    assert memory.forecast(relus(count, ["batch", 256]), {"batch": 4}).activations == 2 * 4 * KIB


@pytest.mark.parametrize(
    ("dtype", "size"), [(FLOAT, 4), (TensorProto.FLOAT16, 2), (TensorProto.INT8, 1), (TensorProto.INT4, 0.5)]
)
def test_each_type_counts_with_its_own_size(dtype, size):
    assert memory.forecast(relus(2, [1024], dtype), {}).activations == 2 * KIB * size


def test_a_tensor_that_is_used_late_stays_alive():
    model = relus(4, [256])
    model.graph.node.append(helper.make_node("Add", ["t0", "t4"], ["y"]))
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", FLOAT, [256]))
    model.graph.value_info.append(helper.make_tensor_value_info("t4", FLOAT, [256]))
    assert memory.forecast(model, {}).activations == 3 * KIB


def test_weights_count_once_and_what_follows_from_them_alone_not_at_all():
    model = relus(1, [256])
    model.graph.initializer.append(graphs.weight("w", 256, 256))
    model.graph.node.insert(0, helper.make_node("Relu", ["w"], ["v"]))
    model.graph.value_info.append(helper.make_tensor_value_info("v", FLOAT, [256, 256]))
    needed = memory.forecast(model, {})
    assert (needed.weights, needed.activations) == (256 * KIB, 2 * KIB)


def test_external_weights_count_without_being_read(tmp_path):
    import onnx

    onnx.save(graphs.layers(), tmp_path / "model.onnx", save_as_external_data=True, size_threshold=0)
    whole = memory.forecast(graphs.layers(), {"batch": 1, "classes": 4})
    assert memory.forecast(onnx.load(tmp_path / "model.onnx", load_external_data=False), whole.at) == whole


def test_what_has_no_known_shape_is_counted_as_unknown():
    model = relus(3, ["batch", 4])
    del model.graph.value_info[:]
    needed = memory.forecast(model, {"batch": 1})
    assert needed.unknown == 2
    assert "2 tensors of unknown shape" in str(needed)


def test_the_greatest_shapes_decide_how_much_it_is():
    small, large = (memory.forecast(relus(3, ["batch", 256]), {"batch": batch}) for batch in (1, 32))
    assert large.activations == 32 * small.activations
    assert str(large) == "forecast: 0 bytes of weights and up to 64.0 KiB of activations at batch 32"
