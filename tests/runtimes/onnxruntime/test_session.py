import json
from types import SimpleNamespace

import graphs
import numpy as np
import onnxruntime
import pytest
from graphs import FLOAT
from onnx import TensorProto, helper

from engine.errors import StepError
from engine.kit.onnx import onnx_files
from engine.runtimes.devices import Gpu
from engine.runtimes.onnxruntime import providers as ort_providers
from engine.runtimes.onnxruntime import session as ort
from engine.runtimes.onnxruntime.providers import CPU

CUDA = ort_providers.cuda(Gpu(0, "Tesla T4", 75))


@pytest.fixture
def layers(tmp_path):
    onnx_files.save(graphs.layers(), tmp_path)
    return tmp_path


def test_a_model_runs_and_answers_by_name(layers):
    x = np.ones((2, 64), np.float32)
    answer = ort.run(ort.session(layers, threads=1), {"x": x, "unused": x})
    assert list(answer) == ["y"]
    assert answer["y"].shape == (2, 4)


def test_threads_and_level_are_what_was_asked(layers):
    settings = ort.session(layers, threads=1, level="extended").get_session_options()
    assert settings.intra_op_num_threads == 1
    assert settings.graph_optimization_level == onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED


def test_session_json_chooses_the_level_unless_the_caller_does(layers):
    levels = onnxruntime.GraphOptimizationLevel
    assert ort.session(layers).get_session_options().graph_optimization_level == levels.ORT_ENABLE_ALL
    ort.save_options(layers, level="basic", disabled=("SkipLayerNormFusion",))
    assert json.loads((layers / "session.json").read_text()) == {
        "disabled_optimizers": ["SkipLayerNormFusion"],
        "graph_optimization_level": "basic",
    }
    assert ort.session(layers).get_session_options().graph_optimization_level == levels.ORT_ENABLE_BASIC
    assert ort.session(layers, level="all").get_session_options().graph_optimization_level == levels.ORT_ENABLE_ALL


def test_a_disabled_optimiser_does_not_run(tmp_path):
    nodes = [
        helper.make_node("Add", ["x", "x"], ["a"]),
        helper.make_node("LayerNormalization", ["a", "scale"], ["y"]),
    ]
    model = graphs.graph(nodes, [("x", FLOAT, [2, 3, 8])], [("y", FLOAT, [2, 3, 8])], [graphs.weight("scale", 8)])
    onnx_files.save(model, tmp_path / "model")
    found = {}
    for name, disabled in (("all", ()), ("some", ("SkipLayerNormFusion",))):
        ort.optimise(tmp_path / "model", tmp_path / name, level="extended", disabled=disabled)
        found[name] = {node.op_type for node in onnx_files.load(tmp_path / name).graph.node}
    assert found == {"all": {"SkipLayerNormalization"}, "some": {"Add", "LayerNormalization"}}


def test_optimising_leaves_the_source_alone_and_keeps_external_data_external(tmp_path):
    onnx_files.save(graphs.layers(), tmp_path / "in", threshold=1000)
    before = {path.name: path.read_bytes() for path in (tmp_path / "in").iterdir()}
    ort.optimise(tmp_path / "in", tmp_path / "out", level="basic")
    assert {path.name: path.read_bytes() for path in (tmp_path / "in").iterdir()} == before
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["model.onnx", "model.onnx.data"]
    x = {"x": np.ones((2, 64), np.float32)}
    was, now = (ort.run(ort.session(tmp_path / name), x)["y"] for name in ("in", "out"))
    assert np.allclose(was, now, rtol=1e-5)


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ("{", "session.json is no JSON"),
        ("[]", "session.json asks for something unknown"),
        ('{"graph_optimization_level": "fast"}', "levels are disabled, basic, extended, all"),
        ('{"threads": 3}', "it may say disabled_optimizers and graph_optimization_level"),
    ],
)
def test_a_wrong_session_json_is_explained(layers, said, complaint):
    (layers / "session.json").write_text(said)
    with pytest.raises(StepError) as caught:
        ort.session(layers)
    assert complaint in str(caught.value)


@pytest.mark.skipif("CUDAExecutionProvider" in onnxruntime.get_available_providers(), reason="it is there")
def test_a_provider_that_is_not_there_is_an_error_and_no_silent_fallback(layers):
    with pytest.raises(StepError) as caught:
        ort.session(layers, provider=CUDA)
    assert "does not run on CUDAExecutionProvider here" in str(caught.value)
    assert "CPUExecutionProvider" in str(caught.value)
    assert "device: cpu" in str(caught.value)


@pytest.mark.filterwarnings("ignore:Specified provider")
def test_a_provider_that_drops_out_while_opening_is_an_error(layers, monkeypatch):
    monkeypatch.setattr(
        onnxruntime, "get_available_providers", lambda: ["CUDAExecutionProvider", "CPUExecutionProvider"]
    )
    with pytest.raises(StepError, match="does not run on CUDAExecutionProvider here"):
        ort.session(layers, provider=CUDA)


def test_a_provider_that_leaves_the_work_to_the_cpu_is_an_error(layers):
    session = ort.session(layers)
    claimed = SimpleNamespace(
        get_providers=lambda: ["CUDAExecutionProvider", "CPUExecutionProvider"],
        get_provider_graph_assignment_info=lambda: [part("CUDAExecutionProvider", "Relu"), part(CPU, "Shape", "Gemm")],
    )
    with pytest.raises(StepError) as caught:
        ort_providers.expect_used(claimed, CUDA)
    assert "1 on CUDAExecutionProvider, 2 on CPUExecutionProvider" in str(caught.value)
    assert "on the CPU do the work: 1" in str(caught.value)
    with pytest.raises(StepError, match="the session runs on: CPUExecutionProvider"):
        ort_providers.expect_used(session, CUDA)


def test_nodes_about_shapes_may_stay_on_the_cpu():
    parts = [part("CUDAExecutionProvider", "Gemm"), part(CPU, "Shape", "Gather")]
    claimed = SimpleNamespace(
        get_providers=lambda: ["CUDAExecutionProvider", CPU], get_provider_graph_assignment_info=lambda: parts
    )
    ort_providers.expect_used(claimed, CUDA)


def test_what_got_no_node_at_all_is_not_used():
    claimed = SimpleNamespace(
        get_providers=lambda: ["CUDAExecutionProvider", CPU],
        get_provider_graph_assignment_info=lambda: [part(CPU, "Add")],
    )
    with pytest.raises(StepError, match="does not run on CUDAExecutionProvider"):
        ort_providers.expect_used(claimed, CUDA)


def part(provider, *operators):
    """One entry of what a session tells about who got which nodes."""
    nodes = [SimpleNamespace(op_type=operator) for operator in operators]
    return SimpleNamespace(ep_name=provider, get_nodes=lambda: nodes)


def test_the_assignment_of_nodes_is_told_as_the_check_reads_it(layers):
    settings = onnxruntime.SessionOptions()
    settings.add_session_config_entry(ort_providers.RECORD, "1")
    opened = onnxruntime.InferenceSession(str(layers / "model.onnx"), settings, providers=[CPU])
    told = {p.ep_name: [node.op_type for node in p.get_nodes()] for p in opened.get_provider_graph_assignment_info()}
    assert set(told) == {CPU}
    assert told[CPU]


def test_a_session_is_opened_with_the_wanted_provider_first_and_the_cpu_last():
    gpu = Gpu(1, "Tesla T4", 75)
    assert ort_providers.cuda(gpu).listed() == [("CUDAExecutionProvider", {"device_id": "1"}), (CPU, {})]
    assert ort_providers.cuda(gpu, graph=True).options == {"device_id": "1", "enable_cuda_graph": "1"}
    listed = ort_providers.tensorrt(gpu, {"trt_engine_cache_enable": "1"}).listed()
    assert listed == [
        ("TensorrtExecutionProvider", {"device_id": "1", "trt_engine_cache_enable": "1"}),
        ("CUDAExecutionProvider", {"device_id": "1"}),
        (CPU, {}),
    ]


def test_a_model_that_onnx_runtime_refuses_is_told_without_the_stores_paths(tmp_path):
    model = graphs.graph([helper.make_node("NoSuchOperator", ["x"], ["y"])], [("x", FLOAT, [1])], [("y", FLOAT, [1])])
    onnx_files.save(model, tmp_path)
    with pytest.raises(StepError, match="ONNX Runtime cannot open the model") as caught:
        ort.session(tmp_path)
    assert "NoSuchOperator" in str(caught.value)
    assert str(tmp_path) not in str(caught.value)


def test_a_missing_input_is_told_by_name(layers):
    with pytest.raises(StepError) as caught:
        ort.run(ort.session(layers), {"z": np.ones(1)})
    assert str(caught.value) == "The model asks for inputs that are not there: x\n  there are: z"


def test_a_wrong_shape_is_told_with_the_shapes_that_were_fed(layers):
    with pytest.raises(StepError, match="cannot run the model on these inputs") as caught:
        ort.run(ort.session(layers), {"x": np.ones((2, 3), np.float32)})
    assert "x: float32[2, 3]" in str(caught.value)


def test_integers_and_floats_are_cast_to_the_width_that_the_model_takes(tmp_path):
    nodes = [helper.make_node("Gather", ["table", "ids"], ["a"]), helper.make_node("Mul", ["a", "scale"], ["y"])]
    inputs = [("ids", TensorProto.INT32, ["n"]), ("scale", FLOAT, [1])]
    onnx_files.save(graphs.graph(nodes, inputs, [("y", FLOAT, None)], [graphs.weight("table", 5, 2)]), tmp_path)
    fed = {"ids": np.array([1, 4]), "scale": np.array([1.0])}
    assert ort.run(ort.session(tmp_path), fed)["y"].shape == (2, 2)


def test_a_float_is_never_fed_as_an_index(tmp_path):
    model = graphs.graph(
        [helper.make_node("Gather", ["table", "ids"], ["y"])],
        [("ids", TensorProto.INT64, ["n"])],
        [("y", FLOAT, None)],
        [graphs.weight("table", 5, 2)],
    )
    onnx_files.save(model, tmp_path)
    with pytest.raises(StepError, match="cannot run the model"):
        ort.run(ort.session(tmp_path), {"ids": np.array([1.5])})
