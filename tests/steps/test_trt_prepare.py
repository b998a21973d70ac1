"""The graph that TensorRT compiles: what is said of it before, and what is refused before a GPU is needed."""

import graphs
import models
import onnx
import pytest

from engine import digest
from engine.errors import StepError
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.onnx import onnx_files
from engine.recipe.schema import Recipe
from engine.runtimes.tensorrt import prepared_graph
from engine.runtimes.tensorrt.prepared_graph import EngineTensor, Extents
from engine.steps.export import Export
from engine.steps.trt_prepare import TrtPrepare
from engine.testing import plan_of, run_step

BATCH = {"batch": [1, 2, 4]}


def recipe(runtime="tensorrt", device="T4", **fields):
    return {"name": "m", "model": {"source": "m"}, "target": {"device": device, "runtime": runtime}, **fields}


def step(runtime="tensorrt", device="T4", **fields):
    return TrtPrepare.for_recipe(Recipe.model_validate({**recipe(runtime, device), "profiles": [BATCH], **fields}))


def read(step, folder, **inputs):
    return prepared_graph.read(run_step(step, folder, **inputs).out)


@pytest.fixture
def layers(tmp_path):
    """Two linear layers whose weights lie in a file of their own."""
    folder = tmp_path / "layers"
    folder.mkdir()
    onnx.save(graphs.layers(), folder / "model.onnx", save_as_external_data=True, location="w.data", size_threshold=0)
    return folder


def test_the_graph_stands_between_the_checks_on_a_cpu_and_the_gpu():
    plan = {job.name: job for job in plan_of(recipe())}
    assert list(plan).index("validate-onnx") < list(plan).index("trt-prepare") < list(plan).index("trt-build")
    assert plan["trt-prepare"].needs == {"checked": "validate-onnx", "checkpoint": "fetch"}
    assert plan["trt-build"].needs == {"prepared": "trt-prepare"}
    assert plan["trt-prepare"].step.hardware() is None
    assert "trt-prepare" not in {job.name for job in plan_of(recipe("onnxruntime"))}


def test_what_the_compilation_has_to_know_lies_beside_the_graph(layers, tmp_path):
    sparse = step(tensorrt={"sparse_weights": True}).model_copy(update={"embeds": False})
    about = read(sparse, tmp_path, checked=layers)
    files = {name: digest.of_file(layers / name) for name in ("model.onnx", "w.data")}
    assert about.inputs == {"x": EngineTensor(dtype="float32", shape=("batch", 64))}
    assert list(about.outputs) == ["y"]
    assert about.profiles == ({"x": Extents(min=(1, 64), opt=(2, 64), max=(4, 64))},)
    assert about.onnx.digest == digest.of_tree(files)
    assert about.onnx.bytes == sum((layers / name).stat().st_size for name in files)
    assert about.forecast.startswith("forecast: ")
    assert "batch 4" in about.forecast
    assert about.sparse == (0, 2), "the weights are dense"


def test_only_the_files_of_the_graph_count(layers, tmp_path):
    """A further file in the artifact of an earlier step then builds no engine again."""
    planned = step("tensorrt-rtx")
    files = run_step(planned, tmp_path, checked=layers).files
    assert set(files) == {"model.onnx", "w.data", prepared_graph.FILE}
    (layers / "notes.txt").write_text("something else")
    (tmp_path / "again").mkdir()
    assert run_step(planned, tmp_path / "again", checked=layers).files == files


@pytest.mark.parametrize("place", ["T4", "A10"])
def test_the_gpu_is_no_row_so_that_engines_for_several_share_the_graph(place):
    assert step(device=place).options() == step().options()
    assert step(device=place).tools_used() == onnx_files.TOOLS


def test_without_profiles_the_one_is_taken_that_suits_the_model(tmp_path):
    source = models.checkpoint(tmp_path / "model", "bert")
    Export().run(tmp_path / "exported", checkpoint=source)
    planned = step("tensorrt-rtx", "L4", profiles=[])
    assert planned.inputs_used() == ("checked", "checkpoint")
    [profile] = read(planned, tmp_path, checked=tmp_path / "exported", checkpoint=source).profiles
    assert profile["input_ids"].max == (8, min(512, checkpoints.max_sequence(source)))


def test_only_a_native_package_that_answers_with_embeddings_needs_the_checkpoint_for_its_engine():
    assert step().embeds
    assert "checkpoint" in step().inputs_used()
    classes = step(model={"source": "a", "task": "text-classification"})
    for other in (classes, step(package={"triton": {"postprocess": False}}), step("tensorrt-rtx")):
        assert not other.embeds
        assert "checkpoint" not in other.inputs_used()
        assert set(other.options()) == {"profiles"}


def test_a_profile_that_leaves_an_axis_open_is_refused_with_one_that_does_not(layers, tmp_path):
    with pytest.raises(StepError, match="leaves open: batch") as caught:
        run_step(TrtPrepare(), tmp_path, checked=layers)
    assert "x: batch x 64" in str(caught.value)
    assert "batch: [1, 8, 32]" in caught.value.hint


def test_a_graph_that_was_fused_for_onnx_runtime_is_refused(tmp_path):
    model = graphs.layers()
    model.graph.node[2].op_type, model.graph.node[2].domain = "Gelu", "com.microsoft"
    model.opset_import.add(domain="com.microsoft", version=1)
    with pytest.raises(StepError, match="fused for ONNX Runtime: Gelu") as caught:
        run_step(step("tensorrt-rtx"), tmp_path, checked=graphs.write(tmp_path / "m", model))
    assert "unfused" in caught.value.hint
