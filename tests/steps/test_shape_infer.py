import os
from pathlib import Path

import graphs
import numpy as np
import onnx
import pytest
import step_process

from engine.errors import StepError
from engine.kit.onnx import onnx_files
from engine.recipe.schema import ModelSection, Recipe, TargetSection
from engine.runtimes.onnxruntime import session as ort
from engine.steps.shape_infer import ShapeInfer


def infer(tmp_path, model, name="shaped"):
    if not isinstance(model, Path):
        model = graphs.write(tmp_path / "exported", model)
    report = ShapeInfer().run(tmp_path / name, exported=model)
    return report, onnx_files.load_graph(tmp_path / name)


def shapes(model):
    return {v.name: onnx_files.described(v).shape for v in [*model.graph.value_info, *model.graph.output]}


def test_axes_are_followed_by_name_through_the_graph(tmp_path):
    report, model = infer(tmp_path, graphs.layers())
    assert report.to_json() == {"inferred": [0.25, 1.0], "by": "symbolic"}
    assert shapes(model) == dict.fromkeys("abc", ("batch", 128)) | {"y": ("batch", 4)}


def test_nodes_weights_and_axis_names_stay_as_they_were(tmp_path):
    before = graphs.layers()
    _, after = infer(tmp_path, before)
    assert after.graph.node == before.graph.node
    assert after.graph.initializer == before.graph.initializer
    assert after.graph.input == before.graph.input
    assert [dim.dim_param for dim in after.graph.output[0].type.tensor_type.shape.dim] == ["batch", ""]


@pytest.mark.parametrize(
    "make", [graphs.convolutions, graphs.recurrent, graphs.loop, graphs.choice], ids=lambda make: make.__name__
)
def test_vision_recurrent_and_branching_models_come_through_and_still_run(tmp_path, make):
    report, model = infer(tmp_path, make())
    assert report.inferred[1] == 1.0
    assert report.by in {"symbolic", "onnx"}
    onnx.checker.check_model(model)
    ort.session(tmp_path / "shaped", threads=1)


LIGHT = sorted((Path(onnx.__file__).parent / "backend/test/data/light").glob("*.onnx"))


@pytest.mark.parametrize("path", LIGHT, ids=lambda path: path.stem)
@pytest.mark.sample(2)
def test_vision_models_of_another_maker_and_an_old_opset_get_shapes(tmp_path, path):
    exported = graphs.write(tmp_path / "exported", onnx.load(path))
    report, model = infer(tmp_path, exported)
    assert report.inferred[1] > 0.94
    assert report.by in {"symbolic", "onnx"}
    assert model.graph.node == onnx.load(path).graph.node


def test_a_text_models_shapes_are_all_known(tmp_path):
    report, model = infer(tmp_path, graphs.tiny("bert"))
    assert report.by == "symbolic"
    assert report.inferred[0] < 0.5
    assert report.inferred[1] == 1.0
    assert shapes(model)["logits"] == ("batch", 2)


def test_where_symbolic_inference_gives_up_onnx_takes_over(tmp_path, capsys):
    # A value of unknown rank stops it: the shape of the Reshape is an input.
    text = "(float[n] x, int64[] shape) => (float[p, q] y) { a = Reshape(x, shape) y = Relu(a) }"
    report, model = infer(tmp_path, graphs.parsed(text))
    assert "symbolic shape inference cannot follow this model" in capsys.readouterr().out
    assert report.by in {"onnx", "none"}
    assert shapes(model)["y"] == ("p", "q")
    assert not list(Path.cwd().glob("sym_shape_infer_temp*"))


def test_operators_that_nobody_knows_are_handed_on_with_a_word(tmp_path, capsys):
    text = "(float[n] x) => (float[n] y) { a = acme.Secret(x) y = acme.Secret(a) }"
    before = graphs.parsed(text, domains=("acme",))
    report, model = infer(tmp_path, before)
    assert report.to_json() == {"inferred": [0.5, 0.5], "by": "none"}
    assert model == before
    assert "shapes known of 50% of the tensors before, 50% now (by none)" in capsys.readouterr().out


def test_a_forgotten_import_of_a_known_domain_is_added(tmp_path, capsys):
    _, model = infer(tmp_path, graphs.parsed("(float[n] x) => (float[n] y) { y = com.microsoft.Gelu(x) }"))
    assert [(entry.domain, entry.version) for entry in model.opset_import] == [("", 17), ("com.microsoft", 1)]
    assert "com.microsoft without importing" in capsys.readouterr().out


def test_what_onnx_runtime_runs_is_taken_though_the_checker_complains(tmp_path, capsys):
    # ONNX Runtime writes LayerNormalization into graphs of opsets that did not have it yet.
    text = "(float[batch, 8] x) => (float[batch, 8] y) { y = LayerNormalization(x, scale) }"
    report, _ = infer(tmp_path, graphs.parsed(text, opset=14, scale=(8,)))
    assert list(report.inferred) == [1.0, 1.0]
    assert "onnx's checker complains, ONNX Runtime does not" in capsys.readouterr().out


def test_a_wrong_graph_fails_with_what_is_wrong(tmp_path):
    with pytest.raises(StepError) as caught:
        infer(tmp_path, graphs.parsed("(float[1] x) => (float[1] y) { y = Relu(nowhere) }"))
    assert str(caught.value).startswith("The model is no valid ONNX")
    assert "nowhere" in str(caught.value)
    assert "export it again" in str(caught.value)


def test_external_weights_stay_external_under_their_own_name_and_are_not_copied(tmp_path):
    (tmp_path / "exported").mkdir()
    path = tmp_path / "exported/model.onnx"
    onnx.save(graphs.layers(), path, save_as_external_data=True, location="my.weights", size_threshold=0)
    (tmp_path / "exported/tokenizer.json").write_text("{}")
    onnx_files.link(tmp_path / "exported", tmp_path / "store")  # where every file has several links
    report, model = infer(tmp_path, tmp_path / "exported")
    assert report.to_json() == {"inferred": [0.25, 1.0], "by": "symbolic"}
    assert sorted(os.listdir(tmp_path / "shaped")) == ["model.onnx", "my.weights"]
    assert (tmp_path / "shaped/my.weights").samefile(tmp_path / "exported/my.weights")
    assert onnx_files.data_files(model) == ["my.weights"]
    x = {"x": np.ones((2, 64), np.float32)}
    was, now = (ort.run(ort.session(tmp_path / name), x)["y"] for name in ("exported", "shaped"))
    assert np.array_equal(was, now)


def test_shapes_that_weights_decide_are_found_though_weights_are_not_read(tmp_path):
    # 8 MB of weights, and a stored shape that does matter.
    text = "(float[n, 1024] x) => (float[a, b, c] y) { a = MatMul(x, w) y = Reshape(a, shape) }"
    _, model = infer(tmp_path, graphs.parsed(text, w=(1024, 2048), shape=np.array([0, 32, 64])))
    assert shapes(model) == {"a": ("n", 2048), "y": ("n", 32, 64)}


def test_a_model_quantized_by_someone_else_comes_through(tmp_path):
    nodes = "q, s, z = DynamicQuantizeLinear(x) i = MatMulInteger(q, w, z) f = Cast<to = 1>(i) y = Mul(f, s)"
    stored = np.arange(12, dtype=np.int8).reshape(4, 3)
    report, model = infer(tmp_path, graphs.parsed(f"(float[n, 4] x) => (float[n, 3] y) {{ {nodes} }}", w=stored))
    assert report.inferred[1] == 1.0
    assert shapes(model)["f"] == ("n", 3)


def test_every_recipe_wants_it_whatever_its_precision_and_profiles():
    recipes = [Recipe(name="a", model=ModelSection(source="x.onnx"), precision=p) for p in ("fp32", "int8")]
    recipes.append(
        Recipe(name="a", model=ModelSection(source="x"), target=TargetSection(runtime="tensorrt", device="T4"))
    )
    assert {ShapeInfer.for_recipe(recipe) for recipe in recipes} == {ShapeInfer()}


def test_bytes_are_the_same_in_another_process_directory_and_hash_seed(tmp_path):
    assert len(step_process.digests(ShapeInfer, tmp_path, exported=graphs.tiny("roberta"))) == 1
