"""Inputs whose values are sizes of other tensors: from the recipe into the profiles of an engine, and into its runs."""

import engines
import executions
import graphs
import numpy as np
import onnx
import passports
import pytest
from onnx import TensorProto, helper
from shape_tensor_models import counting, graph, reshape

from engine import feasibility
from engine.errors import RecipeError, StepError
from engine.feasibility.facts import ModelFacts
from engine.kit.inputs import bench_inputs
from engine.kit.onnx.onnx_files import Input
from engine.kit.triton import config as configs
from engine.kit.triton import loading
from engine.kit.triton import model as triton_models
from engine.kit.triton.config import Signature
from engine.kit.triton.serving import Serving
from engine.recipe.load import load
from engine.recipe.schema import Recipe
from engine.runtimes import requirements
from engine.runtimes.backends import Backend
from engine.runtimes.tensorrt import passport
from engine.runtimes.tensorrt.prepared_graph import EngineTensor, Extents
from engine.runtimes.triton_tensors import TYPES
from engine.steps import fetch
from engine.steps.bench import Bench
from engine.steps.measure_runtimes import MeasureRuntimes
from engine.steps.quantize import Quantize
from engine.steps.reference import Reference
from engine.steps.trt_prepare import TrtPrepare

RESHAPED = {"n": [1, 4, 8], "target": [[1, 16], [4, 16], [8, 16]]}
RANGED = {"n": [1, 4, 8], "limit": [[1], [16], [64]]}
KEYED = "shape_values"


MODELS = {"reshape": (reshape, RESHAPED, "target"), "range": (counting, RANGED, "limit")}


def recipe(*profiles, runtime="tensorrt", device="T4", **fields):
    target = {"device": device, "runtime": runtime}
    section = {"name": "m", "model": {"source": "m.onnx"}, "target": target, "profiles": [*profiles]}
    return Recipe.model_validate({**section, **fields})


@pytest.fixture(params=["tensorrt-rtx", "tensorrt"])
def runtime(request):
    """The real TensorRT-RTX, then TensorRT 10 as the fake plays it on a T4."""
    if request.param == "tensorrt":
        request.getfixturevalue("fake_tensorrt")
    else:
        pytest.importorskip("tensorrt_rtx", reason="the extra `rtx` is not installed: Linux on x86_64 has it")
    return request.param


def compiled(tmp_path, model, *profiles, runtime):
    """Return the folder of the engine that a recipe's steps build of a model."""
    (tmp_path / "job").mkdir()
    steps = engines.of(recipe(*profiles, runtime=runtime, device="L4" if runtime == "tensorrt-rtx" else "T4"))
    steps.run(tmp_path / "job" / "out", checked=graphs.write(tmp_path / "model", model))
    return tmp_path / "job" / "out"


@pytest.mark.parametrize("name", MODELS)
def test_an_engine_is_built_with_the_values_that_a_profile_states(name, runtime, tmp_path):
    make, profile, sizes = MODELS[name]
    [values] = passport.load(compiled(tmp_path, make(), profile, runtime=runtime)).values
    least, usual, greatest = profile[sizes]
    assert values == {sizes: Extents(min=least, opt=usual, max=greatest)}


@pytest.mark.parametrize("name", MODELS)
def test_without_the_values_an_engine_is_refused_with_the_line_that_is_missing(name, runtime, tmp_path):
    make, profile, sizes = MODELS[name]
    with pytest.raises(StepError, match=f"sizes of other tensors: {sizes}") as caught:
        compiled(tmp_path, make(), {"n": profile["n"]}, runtime=runtime)
    assert f"Optimization profile 0 is missing values for shape input tensor {sizes}." in str(caught.value)
    assert f"as in {sizes}: [[1, 16], [4, 16], [8, 16]]" in caught.value.hint


def test_values_of_an_input_that_is_no_shape_tensor_are_not_told_to_tensorrt(runtime, tmp_path, capfd):
    offset = helper.make_tensor_value_info("offset", TensorProto.INT64, [1])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 16])
    nodes = [
        helper.make_node("Cast", ["offset"], ["number"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["x", "number"], ["y"]),
    ]
    model = graph(nodes, offset, y)
    built = compiled(tmp_path, model, {"n": [1, 4, 8], "offset": [[1], [2], [3]]}, runtime=runtime)
    assert passport.load(built).shape_tensors == ()
    assert "TensorRT needs no values in its profiles: offset" in capfd.readouterr().out


def engine(folder):
    execution = executions.execution(runtime="tensorrt", hardware=requirements.on(["T4"], tool="tensorrt"))
    return executions.built(folder, execution)


def test_an_engine_reads_the_values_in_the_memory_of_the_host(fake_tensorrt, tmp_path):
    runner = engine(compiled(tmp_path, reshape(), RESHAPED, runtime="tensorrt"))
    x = np.arange(64, dtype=np.float32).reshape(4, 16)
    assert np.array_equal(runner.run({"x": x, "target": np.array([4, 16])})["y"], x)
    with pytest.raises(StepError, match="No profile of the engine takes these shapes") as caught:
        runner.run({"x": x, "target": np.array([32, 2])})
    assert "values of target: [32, 2]" in str(caught.value)
    assert "profile 0, values of target: [1, 16] to [8, 16]" in str(caught.value)


def test_an_engine_answers_as_the_model_does_for_each_value(fake_tensorrt, tmp_path):
    runner = engine(compiled(tmp_path, counting(), RANGED, runtime="tensorrt"))
    x = np.ones((2, 16), np.float32)
    for limit in (1, 5, 64):
        assert np.array_equal(runner.run({"x": x, "limit": np.array(limit)})["y"], x + sum(range(limit)))


def test_of_two_profiles_the_one_runs_whose_values_fit(fake_tensorrt, tmp_path):
    few, many = ({"n": 4, "limit": [[low], [low], [high]]} for low, high in ((1, 8), (9, 64)))
    runner = engine(compiled(tmp_path, counting(), few, many, runtime="tensorrt"))
    x = np.ones((4, 16), np.float32)
    assert runner.run({"x": x, "limit": np.array(30)})["y"][0, 0] == 1 + sum(range(30))


# What a recipe's values are rows of.


def test_values_are_rows_only_of_a_recipe_that_states_them():
    bench = {"bench": {"shapes": [{"n": 2}]}, "calibrate": None}
    auto = {"runtime": "auto", "device": "cpu"}
    for step, row, fields in (
        (TrtPrepare, KEYED, bench),
        (Reference, KEYED, bench),
        (Bench, "values", bench),
        (Quantize, KEYED, {"precision": "int8"}),
        (MeasureRuntimes, "values", auto),
    ):
        stated, silent = (step.for_recipe(recipe(each, **fields)) for each in (RESHAPED, {"n": RESHAPED["n"]}))
        assert row in stated.options()
        assert row not in silent.options()
        if step is MeasureRuntimes:
            assert stated.values == ({"target": (4, 16)},)
        elif step is Quantize:
            assert stated.options()[row] == [{"target": {"min": [1, 16], "opt": [4, 16], "max": [8, 16]}}]
        else:
            with_values, without = stated.options(), silent.options()
            assert {name for name in with_values if with_values[name] != without.get(name)} == {row}


def test_what_is_measured_has_the_values_of_the_profile_that_takes_the_shape():
    few, many = {"n": [1, 1, 2], "limit": [[1], [2], [3]]}, {"n": [3, 4, 8], "limit": [[4], [5], [6]]}
    step = Bench.for_recipe(recipe(few, many, bench={"shapes": [{"n": 2}, {"n": 8}, {"n": 99}]}))
    assert step.values == ({"limit": (2,)}, {"limit": (5,)}, {"limit": (2,)})
    drawn = bench_inputs.draw(counting(), {"n": 8}, step.values[1])
    assert (drawn["limit"].shape, int(drawn["limit"])) == ((), 5)


def test_the_original_runs_on_the_values_of_each_profile(tmp_path):
    (tmp_path / "reference").mkdir()
    onnx.save(reshape(), tmp_path / "m.onnx")
    (tmp_path / "r.yaml").write_text(f"name: m\nmodel: {{source: m.onnx}}\nprofiles: [{RESHAPED}]\n")
    [loaded] = load(tmp_path / "r.yaml")
    step = Reference.for_recipe(loaded.recipe)
    report = step.run(tmp_path / "reference" / "out", checkpoint=graphs.write(tmp_path / "model", reshape()))
    assert report.cases == 3


# How Triton is told.


def config_of(tmp_path, **fields):
    tensors = {"x": EngineTensor(dtype="float32", shape=("n", 16)), "target": EngineTensor(dtype="int64", shape=(2,))}
    ends = Extents(min=(1, 16), opt=(4, 16), max=(8, 16))
    built_on_t4 = passports.make(
        inputs=tensors, outputs={"y": tensors["x"]}, profiles=({"x": ends},), values=({"target": ends},)
    )
    passport.save(tmp_path, built_on_t4)
    (tmp_path / passport.PLAN).write_bytes(b"engine")
    execution = executions.execution(runtime="tensorrt")
    serving = Serving(model_name="m", ensemble="m_text", execution=execution, **fields)
    return triton_models.config(serving, triton_models.served_model(serving, tmp_path, tmp_path))[0]


def test_triton_is_told_which_input_is_a_shape_tensor(tmp_path):
    config = config_of(tmp_path)
    assert {tensor.name: tensor.is_shape_tensor for tensor in config.input} == {"x": False, "target": True}
    assert config.max_batch_size == 0


@pytest.mark.parametrize(("name", "marked"), [("target", False), ("x", True)])
def test_a_mark_that_triton_would_refuse_is_refused(tmp_path, name, marked):
    config = config_of(tmp_path)
    for tensor in config.input:
        tensor.is_shape_tensor = marked if tensor.name == name else tensor.is_shape_tensor
    tensors = {"x": Input("x", "float32", ("n", 16)), "target": Input("target", "int64", (2,))}
    signature = Signature(tensors, {"y": Input("y", "float32", ("n", 16))})
    [problem] = loading.engine_problems(config, signature, profiles=1, shape_tensors=("target",))
    assert repr(name) in problem
    assert "ValidateIO" in problem


# Rows: the shape in the engine, the dims for Triton, whether it joins requests, the function of Triton that refuses.


@pytest.mark.parametrize(
    ("shape", "dims", "batched", "dtype", "refuses"),
    [
        ((), [1], False, "int64", "(CompareShapeDimsSupported)"),
        ((2,), [3], False, "int64", "(CompareShapeDimsSupported)"),
        ((2,), [-1], False, "int64", "(CompareShapeDimsSupported)"),
        ((2,), [2], True, "int64", "(CompareShapeDimsSupported)"),
        ((1, 2), [1, 2], False, "int64", "(CompareShapeDimsSupported)"),
        ((), [], True, "int64", "(ValidateShapeValues)"),
        ((2,), [2], False, "int8", "InitializeShapeInputBinding"),
        ((2,), [2], False, "int64", None),
        ((3,), [2], True, "int64", None),
    ],
)
def test_a_shape_tensor_is_refused_as_the_functions_of_triton_would(shape, dims, batched, dtype, refuses):
    problems = problems_of(shape, dims, batched=batched, dtype=dtype)
    assert len(problems) == (refuses is not None)
    assert refuses is None or refuses in problems[0]


def problems_of(shape, dims, *, batched, dtype):
    """Return what the rules say of an engine with the batch `x` and a shape tensor, configured with `dims`."""
    tensors = {"x": Input("x", "float32", ("n", 16)), "sizes": Input("sizes", dtype, shape)}
    signature = Signature(tensors, {"y": Input("y", "float32", ("n", 16))})
    config = configs.named("m", 8 if batched else 0)
    for field, name in ((config.input, "x"), (config.output, "y")):
        field.add(name=name, data_type="TYPE_FP32", dims=[16] if batched else [-1, 16])
    marked = config.input.add(name="sizes", data_type=TYPES[dtype], dims=dims or [1], is_shape_tensor=True)
    if not dims:
        marked.reshape.SetInParent()
    return list(loading.engine_problems(config, signature, profiles=1, shape_tensors=("sizes",)))


# What `recipe check` knows of the model.

MISFITS = {
    "no input": ({"tarrget": [[1, 16], [4, 16], [8, 16]]}, "no input `tarrget`", "target"),
    "floats": ({"x": [[1], [2], [3]]}, "`x`, which is float32", "whole numbers"),
    "another count": ({"target": [[1], [4], [8]]}, "has 2 values, and the recipe states 1", ""),
}


@pytest.mark.parametrize("case", MISFITS)
def test_values_that_do_not_suit_the_model_are_refused_at_their_place(tmp_path, case):
    values, what, hint = MISFITS[case]
    onnx.save(reshape(), tmp_path / "m.onnx")
    [(name, stated)] = values.items()
    lines = ["name: m", "model: {source: m.onnx}", "profiles:", "  - n: [1, 4, 8]", f"    {name}: {stated}"]
    (tmp_path / "r.yaml").write_text("\n".join(lines))
    [loaded] = load(tmp_path / "r.yaml")
    facts = fetch.describe(graphs.write(tmp_path / "model", reshape()))
    with pytest.raises(RecipeError) as caught:
        feasibility.check_model(loaded, facts)
    assert what in caught.value.what
    assert hint in caught.value.hint
    assert caught.value.position.line == 5


@pytest.mark.parametrize(("shape", "why"), [((2, 2), "2 axes"), (("k",), "any number of values")])
def test_what_has_no_fixed_number_of_values_is_no_shape_tensor(tmp_path, shape, why):
    (tmp_path / "r.yaml").write_text("name: m\nmodel: {source: m.onnx}\nprofiles: [{k: 1, t: [[1], [1], [1]]}]\n")
    onnx.save(reshape(), tmp_path / "m.onnx")
    facts = ModelFacts(kind="onnx", axes={"t": shape, "x": ("k",)}, types={"t": "int64", "x": "float32"})
    with pytest.raises(RecipeError, match=why):
        feasibility.check_model(load(tmp_path / "r.yaml")[0], facts)


# Rows: the runtime, its device, and the alternative that the error names; "" where the recipe is accepted.
NUMBERS = [
    ("tensorrt", "T4", "use runtime: onnxruntime, provider: tensorrt"),
    ("openvino", "cpu", "use runtime: onnxruntime, which serves it as [1]"),
    ("onnxruntime", "cpu", ""),
    ("onnxruntime, provider: tensorrt", "T4", ""),
    ("tensorrt-rtx", "L4", ""),
]


@pytest.mark.parametrize(("runtime", "device", "hint"), NUMBERS)
def test_a_number_that_triton_s_backend_does_not_serve_is_refused_before_the_build(tmp_path, runtime, device, hint):
    onnx.save(counting(), tmp_path / "m.onnx")
    lines = ["name: m", "model: {source: m.onnx}", f"target: {{device: {device}, runtime: {runtime}}}"]
    (tmp_path / "r.yaml").write_text("\n".join([*lines, f"profiles: [{RANGED}]"]))
    [loaded] = load(tmp_path / "r.yaml")
    facts = fetch.describe(graphs.write(tmp_path / "model", counting()))
    if not hint:
        feasibility.check_model(loaded, facts)
        return
    with pytest.raises(RecipeError, match="no tensor without axes, and `limit` is one") as caught:
        feasibility.check_model(loaded, facts)
    assert (hint in caught.value.hint, caught.value.position.line) == (True, 4)


def test_a_number_that_comes_out_of_the_model_is_refused_at_the_runtime(tmp_path):
    (tmp_path / "r.yaml").write_text("name: m\nmodel: {source: m.onnx}\ntarget:\n  device: T4\n  runtime: tensorrt\n")
    onnx.save(reshape(), tmp_path / "m.onnx")
    facts = ModelFacts(kind="onnx", axes={"x": (1, 16)}, outputs={"total": ("float32", ())})
    with pytest.raises(RecipeError, match="`total` is one") as caught:
        feasibility.check_model(load(tmp_path / "r.yaml")[0], facts)
    assert caught.value.position.line == 5


@pytest.mark.parametrize("backend", [Backend.TENSORRT, Backend.OPENVINO])
def test_no_configuration_is_written_for_a_number_that_the_backend_does_not_serve(backend):
    signature = Signature({"x": Input("x", "float32", (1, 16))}, {"total": Input("total", "float32", ())})
    with pytest.raises(StepError, match="no tensor without axes"):
        configs.model_config("m", signature, backend=backend, batch=0)
    [total] = configs.model_config("m", signature, backend=Backend.ONNXRUNTIME, batch=0).output
    assert ([*total.dims], total.HasField("reshape")) == ([1], False)
