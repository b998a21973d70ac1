"""Building engines: what both TensorRTs share is held by the real TensorRT-RTX and by the fake `tensorrt`."""

import json
import re
import sys
from dataclasses import replace

import engines
import graphs
import models
import numpy as np
import pytest
from onnx import numpy_helper

from engine.builder.code import closure
from engine.errors import JudgementError, StepError
from engine.kit.onnx import onnx_files
from engine.machine import cuda
from engine.recipe.schema import ModelSection, Recipe, TargetSection
from engine.recipe.values import Range
from engine.runtimes import choice
from engine.runtimes.tensorrt import loading, passport
from engine.runtimes.tensorrt.prepared_graph import Extents
from engine.step import GPU_VARIABLE, KEPT, KEY_VARIABLE, Source
from engine.steps.trt_build import TrtBuild

TURING, AMPERE, ADA, BLACKWELL = 75, 86, 89, 120


def extents(**axes):
    return {axis: Range(min=least, opt=usual, max=greatest) for axis, (least, usual, greatest) in axes.items()}


def recipe(runtime="tensorrt", device="T4", **fields):
    given = {"precision": "fp16", "profiles": (extents(batch=(1, 2, 4)),), **fields}
    return Recipe(
        name="m", model=ModelSection(source="hf:a/b"), target=TargetSection(device=device, runtime=runtime), **given
    )


def step(runtime="tensorrt", device="T4", tensorrt=None, **fields):
    return both(runtime, device, tensorrt, **fields).build


def both(runtime="tensorrt", device="T4", tensorrt=None, **fields):
    """Return the steps that prepare the graph and compile it, with further options of either."""
    planned = engines.of(recipe(runtime, device, **fields))
    steps = (planned.prepare, planned.build)
    given = [{name: value for name, value in (tensorrt or {}).items() if name in type(each).model_fields}
             for each in steps]  # fmt: skip
    return engines.EngineSteps(
        *(type(each).model_validate({**dict(each), **own}) for each, own in zip(steps, given, strict=True))
    )


@pytest.fixture
def rtx():
    return pytest.importorskip("tensorrt_rtx", reason="the extra `rtx` is not installed: Linux on x86_64 has it")


@pytest.fixture(params=["tensorrt-rtx", "tensorrt"])
def runtime(request):
    """The real TensorRT-RTX, then TensorRT 10 as the fake plays it on a T4."""
    request.getfixturevalue("rtx" if request.param == "tensorrt-rtx" else "fake_tensorrt")
    return request.param


@pytest.fixture
def folder(tmp_path):
    """What makes a fresh folder for an output, as the loop makes one for every attempt."""
    numbers = iter(range(100))

    def fresh():
        place = tmp_path / f"job{next(numbers)}"
        place.mkdir()
        return place / "out"

    return fresh


@pytest.fixture
def half(tmp_path):
    """Two linear layers in fp16, whose inputs and outputs are fp32."""
    weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in graphs.layers().graph.initializer}
    model = graphs.parsed(
        "(float[batch, 64] x) => (float[batch, classes] y) { x_half = Cast<to = 10>(x) a = MatMul(x_half, first) "
        "b = Add(a, bias) c = Relu(b) y_half = Gemm<transB = 1>(c, second) y = Cast<to = 1>(y_half) }",
        **{name: values.astype(np.float16) for name, values in weights.items()},
    )
    return graphs.write(tmp_path / "half", model)


# What a recipe says.


def test_a_recipe_says_what_the_builder_is_told():
    options = {"version": "10.x", "memory_pool": {"workspace": "2GiB"}, "optimization_level": 3, "max_aux_streams": 0}
    options = {**options, "compatibility": "same-compute-capability", "cuda_graph": True}
    planned = TrtBuild.for_recipe(recipe(tensorrt=options))
    assert planned.memory_pool == {"workspace": 2 << 30}
    assert (planned.version, planned.optimization_level, planned.max_aux_streams) == ("10.x", 3, 0)
    assert planned.compatibility == "same-compute-capability"
    assert str(planned.hardware()) == "T4 (sm_75) with tensorrt 10.x"
    assert TrtBuild.for_recipe(recipe("onnxruntime", "cpu", precision="fp32")) is None


def test_an_rtx_engine_needs_no_hardware_and_is_for_every_capability_named_once():
    planned = step("tensorrt-rtx", ("L40S", "T4", "L4"))
    assert planned.sms == (TURING, ADA)
    assert planned.hardware() is None
    assert planned.facts_used() == ("os", "arch")
    assert planned.tools_used() == ("tensorrt_rtx",)


def test_the_options_of_a_key_name_the_capabilities_of_rtx_and_the_precision_and_no_native_device_or_version():
    assert step("tensorrt-rtx", "L4").options() == step("tensorrt-rtx", "L40S").options()
    assert step("tensorrt-rtx", "L4").options() != step("tensorrt-rtx", "A10").options()
    assert step(device="T4").options() == step(device="A10", tensorrt={"version": "10.x"}).options()
    assert step(precision="int8").options() != step().options()


@pytest.mark.parametrize(
    ("mode", "there", "gone"),
    [
        ("none", {"device.name", "device.sm", "device.l2_bytes", "cuda.runtime"}, {"device.ampere_plus"}),
        ("same-compute-capability", {"device.sm", "cuda.runtime"}, {"device.name", "device.l2_bytes"}),
        ("ampere-plus", {"device.ampere_plus", "cuda.runtime"}, {"device.name", "device.sm"}),
    ],
)
def test_a_compatibility_mode_takes_rows_of_the_device_out_of_the_key(mode, there, gone):
    facts = set(step(tensorrt={"compatibility": mode}).facts_used())
    assert there <= facts
    assert not gone & facts


def test_of_tensorrts_version_only_the_major_counts_for_a_version_compatible_engine():
    assert "tensorrt" in step().tools_used()
    planned = step(tensorrt={"version_compatible": True})
    assert "tensorrt" not in planned.tools_used()
    assert "tensorrt.major" in planned.facts_used()


def test_tf32_is_a_row_only_where_the_recipe_says_it():
    silent, on, off = (step(device="A10", precision="fp32", tf32=value).options() for value in (None, True, False))
    assert "tf32" not in silent
    assert (on["tf32"], off["tf32"]) == (True, False)
    assert {**silent, "tf32": True} == on


CHANGES = {
    "memory_pool": {"workspace": 1 << 20}, "optimization_level": 1, "tiling_optimization_level": "fast",
    "max_aux_streams": 1, "avg_timing_iterations": 2, "profiling_verbosity": "none", "compatibility": "ampere-plus",
    "version_compatible": True, "exclude_lean_runtime": True, "strip_plan": True, "refit": True,
    "weight_streaming": True, "sparse_weights": True,
}  # fmt: skip


@pytest.mark.parametrize(("name", "value"), CHANGES.items())
def test_every_option_of_the_builder_is_a_row(name, value):
    plain = TrtBuild(runtime="tensorrt", devices=("T4",))
    changed = TrtBuild(runtime="tensorrt", devices=("T4",), **{name: value})
    assert {row for row in plain.options() if plain.options()[row] != changed.options()[row]} == {name}


def test_libraries_of_plugins_and_a_timing_cache_are_inputs_by_their_content():
    files = {"plugins": ("file:/a.so", "file:/b.so"), "timing_cache": "file:/cache"}
    build = TrtBuild(
        runtime="tensorrt", devices=("T4",), timing_cache=Source(uri=files["timing_cache"]),
        plugins=tuple(Source(uri=uri) for uri in files["plugins"]),
    )  # fmt: skip
    assert {name: source.uri for name, source in build.sources().items()} == {
        "timing_cache": "file:/cache", "plugins_0": "file:/a.so", "plugins_1": "file:/b.so"
    }  # fmt: skip
    assert not {"plugins", "timing_cache"} & set(build.options())


_MOST_MODULES = 30
"""The most modules of `engine`, beside those of each worker, whose edit builds all engines again."""


@pytest.mark.parametrize("runtime", ["tensorrt", "tensorrt-rtx"])
def test_few_modules_decide_about_the_bytes_of_an_engine(runtime):
    """Each of them is hard to add to: an edit of it builds the engines of a fleet again, on its GPUs."""
    own = closure.of_step(step(runtime)).modules - closure.closure((closure.WORKER,))
    assert len(own) <= _MOST_MODULES, "\n".join(sorted(own))
    others = ("engine.kit", "engine.recipe", "engine.gpus.catalogue", "engine.feasibility", "engine.steps")
    assert [name for name in sorted(own) if name.startswith(others)] == []


# Building, with both.


@pytest.mark.parametrize("mode", ["mean", "cls"])
def test_an_engine_of_a_sentence_model_computes_the_embedding_itself(runtime, folder, tmp_path, mode):
    """A server then leaves the hidden states of all tokens on the GPU."""
    source = models.checkpoint(tmp_path / "model", "bert", task="feature-extraction")
    (source / "1_Pooling").mkdir()
    (source / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode": mode}))
    parts = ("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")
    listed = [{"path": path, "type": f"sentence_transformers.models.{kind}"} for path, kind in parts]
    (source / "modules.json").write_text(json.dumps(listed))
    profiles = (extents(batch=(1, 2, 4), sequence=(1, 8, 16)),)
    device = {"tensorrt": "T4", "tensorrt-rtx": "A10"}[runtime]  # RTX has no fp32 products for a T4
    out = folder()
    steps = both(runtime, device, profiles=profiles, tensorrt={"embeds": True})
    steps.run(out, checked=graphs.tiny("bert", task="feature-extraction"), checkpoint=source)
    outputs = passport.load(out).outputs
    assert list(outputs) == ["last_hidden_state", "sentence_embedding"]
    assert outputs["sentence_embedding"].dtype == "float32"


def test_an_engine_comes_with_its_passport(runtime, half, folder, monkeypatch):
    monkeypatch.setenv(KEY_VARIABLE, "0123")
    profiles = (extents(batch=(1, 2, 4)), extents(batch=(1, 8, 64)))
    out = folder()
    report = both(runtime, profiles=profiles, tensorrt={"optimization_level": 2}).run(out, checked=half)
    written = passport.load(out / "model.plan")
    graph = onnx_files.load(half)
    assert written.kind == runtime
    assert written.sms == (TURING,)
    assert written.gpu == {"tensorrt": ("Tesla T4",), "tensorrt-rtx": ("T4",)}[runtime]
    assert loading.tensors(written.inputs) == onnx_files.inputs(graph)
    assert loading.tensors(written.outputs) == onnx_files.outputs(graph)
    assert written.profiles[1]["x"] == Extents(min=(1, 64), opt=(8, 64), max=(64, 64))
    assert written.options["optimization_level"] == 2
    assert written.options["strongly_typed"]
    assert written.precision.asked == "fp16"
    assert written.precision.network["fp16"] >= 4
    assert written.key == "0123"
    assert written.bytes == (out / "model.plan").stat().st_size == report.bytes
    assert re.fullmatch(r"\d+(\.\d+){3}", written.tensorrt)
    assert len(written.onnx.digest) == 32
    assert written.onnx.bytes == (half / "model.onnx").stat().st_size
    assert (out.parent / KEPT).exists() == (runtime == "tensorrt"), "RTX keeps no timing cache"
    if runtime == "tensorrt":
        assert written.precision.engine == {"fp16": 5, "fp32": 1}
        assert (written.cuda_runtime, written.precision.unknown) == ("12.9", "")
    else:
        assert (written.precision.engine, written.cuda_runtime, written.driver) == (None, None, None)
        assert "only where it runs" in written.precision.unknown


def test_two_builds_of_one_key_give_other_bytes_and_one_passport(fake_tensorrt, half, folder):
    outs = (folder(), folder())
    for out in outs:
        both().run(out, checked=half)
    one, other = ((out / "model.plan").read_bytes() for out in outs)
    assert one != other
    assert passport.load(outs[0]) == passport.load(outs[1])
    assert not TrtBuild.reproducible


def test_an_operator_that_tensorrt_does_not_know_is_named(runtime, tmp_path, folder):
    model = graphs.layers()
    model.graph.node[2].op_type = "NoSuchOperator"
    with pytest.raises(StepError, match="does not know the operator NoSuchOperator") as caught:
        both(runtime).run(folder(), checked=graphs.write(tmp_path / "m", model))
    assert "tensorrt.plugins" in caught.value.hint


def test_a_candidate_that_tensorrt_cannot_read_leaves_the_reason_and_is_an_error_where_it_is_no_candidate(
    fake_tensorrt, tmp_path, folder
):
    model = graphs.layers()
    model.graph.node[2].op_type = "NoSuchOperator"
    steps, out = both(), folder()
    report = replace(steps, build=steps.build.as_candidate()).run(out, checked=graphs.write(tmp_path / "m", model))
    assert "does not know the operator NoSuchOperator" in report.refused
    assert choice.refusal(out) == report.refused
    assert [path.name for path in out.iterdir()] == ["refused.txt"]
    steps.build.as_candidate().judge(report)
    assert steps.build.as_candidate().options() == steps.build.options()
    with pytest.raises(JudgementError, match="TensorRT cannot have this model") as caught:
        steps.build.judge(report)
    assert "runtime: auto" in caught.value.hint


def test_a_workspace_too_small_for_any_kernel_is_said_with_a_forecast(runtime, half, folder):
    with pytest.raises(StepError, match=r"workspace|no implementation for") as caught:
        both(runtime, tensorrt={"memory_pool": {"workspace": 1}}).run(folder(), checked=half)
    assert "tensorrt.memory_pool.workspace" in caught.value.hint
    assert any(fact.startswith("forecast: ") and "batch 4" in fact for fact in caught.value.facts)


def test_an_option_that_tensorrt_does_not_accept_stops_the_build(fake_tensorrt, half, folder):
    with pytest.raises(StepError, match="does not accept an option") as caught:
        both(tensorrt={"memory_pool": {"dla_local_dram": 1 << 20}}).run(folder(), checked=half)
    assert "DLA disabled" in str(caught.value)


def test_both_can_be_built_with_in_one_process(rtx, fake_tensorrt, half, folder):
    for runtime in ("tensorrt", "tensorrt-rtx", "tensorrt"):
        out = folder()
        both(runtime).run(out, checked=half)
        assert ((out / "model.plan").read_bytes()[:11] == b"FAKE ENGINE") == (runtime == "tensorrt")


def test_progress_is_told_in_lines_that_end_at_all(runtime, half, folder, monkeypatch, capfd):
    monkeypatch.setattr("engine.runtimes.tensorrt.log._PAUSE", 0.0)
    both(runtime).run(folder(), checked=half)
    shares = [int(line.partition("%")[0]) for line in capfd.readouterr().out.splitlines() if re.match(r"\d+%  ", line)]
    assert shares == sorted(shares)
    assert len(shares) > 5
    assert shares[-1] == 100


@pytest.mark.parametrize("there", ["stubs only", "nothing"])
def test_without_tensorrt_its_module_is_named(there, tmp_path, monkeypatch, half, folder):
    """A build then says which command installs the package of a module that cannot be imported."""
    monkeypatch.setitem(sys.modules, "tensorrt", None)
    if there == "stubs only":
        (tmp_path / "stubs" / "tensorrt").mkdir(parents=True)
        monkeypatch.syspath_prepend(tmp_path / "stubs")
        monkeypatch.delitem(sys.modules, "tensorrt")
    with pytest.raises(ImportError) as caught:
        both().run(folder(), checked=half)
    assert caught.value.name == "tensorrt"


# Only TensorRT-RTX: for real.


def test_each_capability_and_several_at_once_get_an_rtx_engine_of_their_own(rtx, half, folder):
    engines = set()
    for devices in ("T4", "A100", "A10", "L4", "RTX 5090", ("T4", "A10", "L4", "RTX 5090")):
        out = folder()
        both("tensorrt-rtx", devices).run(out, checked=half)
        engines.add((out / "model.plan").read_bytes())
        assert passport.load(out).gpu == ((devices,) if isinstance(devices, str) else devices)
    assert len(engines) == 6


def test_fp32_for_turing_is_refused_with_the_nodes_and_what_helps(rtx, tmp_path, folder):
    model = graphs.layers()
    model.graph.node[0].name, model.graph.node[3].name = "query", "classifier"
    with pytest.raises(StepError, match=r"no fp32 matrix products on Turing \(SM75\)") as caught:
        both("tensorrt-rtx", ("T4", "A10")).run(folder(), checked=graphs.write(tmp_path / "m", model))
    assert any("query" in fact and "classifier" in fact for fact in caught.value.facts)
    assert "fp16" in caught.value.hint
    assert both("tensorrt-rtx", "A10").run(folder(), checked=tmp_path / "m").network["fp32"] == 5


def test_a_gpu_that_rtx_has_no_kernels_for_is_refused_with_those_that_it_has(rtx, half, folder):
    with pytest.raises(StepError, match="no kernels for SM90") as caught:
        both("tensorrt-rtx", "H100").run(folder(), checked=half)
    assert "SM75, SM80, SM86, SM89, SM120" in str(caught.value)


@pytest.mark.parametrize("free", [True, False], ids=["beside a free axis", "with fixed axes alone"])
def test_an_input_whose_values_are_sizes_is_named(runtime, tmp_path, folder, free):
    ends = f"(float16[{'batch' if free else 2}, 64] x, int64[2] target) => (float16[a, b] y)"
    nodes = "m = MatMul(x, w) y = Reshape(m, target)"
    model = graphs.parsed(f"{ends} {{ {nodes} }}", opset=20, w=np.eye(64, dtype=np.float16))
    checked = graphs.write(tmp_path / "m", model)
    device = {"tensorrt": "T4", "tensorrt-rtx": "A10"}[runtime]
    profiles = {} if free else {"profiles": ()}
    with pytest.raises(StepError, match="the values of an input are sizes of other tensors: target") as caught:
        both(runtime, device, **profiles).run(folder(), checked=checked)
    assert "state them in each profile, as in target: " in caught.value.hint


# Only TensorRT: as the fake plays it.


def test_the_builder_is_told_every_option(fake_tensorrt, half, folder):
    seen = fake_tensorrt._building._SEEN
    seen.clear()
    options = {name: value for name, value in CHANGES.items() if name != "compatibility"}
    report = both(tensorrt={**options, "compatibility": "ampere-plus"}).run(folder(), checked=half)
    assert report.sparse is not None
    assert report.sparse[0] == 0 < report.sparse[1], "the weights are dense"
    flags = [row[1].name for row in seen if row[0] == "set_flag"]
    assert flags == [
        "VERSION_COMPATIBLE", "EXCLUDE_LEAN_RUNTIME", "STRIP_PLAN", "REFIT", "WEIGHT_STREAMING", "SPARSE_WEIGHTS"
    ]  # fmt: skip
    assert ("create_network", 1 << 1) in seen
    assert ("set_memory_pool_limit", fake_tensorrt.MemoryPoolType.WORKSPACE, 1 << 20) in seen
    settings = {row[0]: getattr(row[1], "name", row[1]) for row in seen}
    assert settings["builder_optimization_level"] == 1
    assert (settings["max_aux_streams"], settings["avg_timing_iterations"]) == (1, 2)
    assert (settings["tiling_optimization_level"], settings["profiling_verbosity"]) == ("FAST", "NONE")
    assert settings["hardware_compatibility_level"] == "AMPERE_PLUS"


@pytest.fixture
def a10(fake_tensorrt, monkeypatch):
    """The fake TensorRT on an A10; returns what its builders were told."""
    [turing] = cuda.devices()
    monkeypatch.setattr(cuda, "devices", lambda: (replace(turing, name="NVIDIA A10", sm=AMPERE),))
    fake_tensorrt._building._SEEN.clear()
    return fake_tensorrt._building._SEEN


@pytest.mark.parametrize(
    "case",
    [
        (None, [], "may be computed in TF32 (TensorRT's default; `tf32: true` or `false` decides)"),
        (True, [("set_flag", "TF32")], "may be computed in TF32 (the recipe's `tf32`)"),
        (False, [("clear_flag", "TF32")], "stay in fp32, without TF32 (the recipe's `tf32`)"),
    ],
)
def test_the_builder_for_an_a10_is_told_what_the_recipe_says_of_tf32(a10, tmp_path, folder, capsys, case):
    tf32, call, words = case
    graphs.write(tmp_path / "single", graphs.layers())
    out = folder()
    report = both(device="A10", precision="fp32", tf32=tf32).run(out, checked=tmp_path / "single")
    assert [(row[0], row[1].name) for row in a10 if row[0].endswith("_flag")] == call
    assert report.tf32 == f"products of fp32 {words}"
    assert report.tf32 in capsys.readouterr().out
    assert passport.load(out).options["tf32"] is tf32


def test_without_options_the_builder_keeps_its_defaults_but_tells_its_layers(fake_tensorrt, half, folder):
    seen = fake_tensorrt._building._SEEN
    seen.clear()
    assert both().run(folder(), checked=half).tf32 == "", "a T4 has no TF32"
    assert [row[0] for row in seen] == ["init_libnvinfer_plugins", "create_network", "profiling_verbosity"]


def test_names_alone_of_the_layers_leave_the_precision_open(fake_tensorrt, half, folder):
    out = folder()
    both(tensorrt={"profiling_verbosity": "layer_names_only"}).run(out, checked=half)
    precision = passport.load(out).precision
    assert precision.engine is None
    assert "names of its layers" in precision.unknown


def test_what_was_timed_is_kept_and_found_again_on_the_same_gpu(fake_tensorrt, half, folder, tmp_path, capfd):
    out = folder()
    for times in (1, 2):
        both().run(out, checked=half)
        kept = (out.parent / KEPT).read_bytes()
        assert kept.endswith(b"Tesla T4 10.13.0.35:" + b"." * times)
    assert "begun anew" not in capfd.readouterr().out
    (out.parent / KEPT).write_bytes(b"FAKE TIMING CACHE of NVIDIA A10 10.13.0.35:....")
    both().run(out, checked=half)
    assert (out.parent / KEPT).read_bytes().endswith(b"Tesla T4 10.13.0.35:.")
    assert "begun anew" in capfd.readouterr().out
    given, other = tmp_path / "given", folder()
    given.write_bytes(b"FAKE TIMING CACHE of Tesla T4 10.13.0.35:....")
    both().run(other, checked=half, timing_cache=given)
    assert (other.parent / KEPT).read_bytes().endswith(b":.....")
    assert given.read_bytes().endswith(b":....")


def test_a_plugin_brings_its_operator_and_goes_beside_the_engine_or_into_it(fake_tensorrt, tmp_path, folder):
    model = graphs.layers()
    model.graph.node[2].op_type = "MyRelu"
    source = graphs.write(tmp_path / "m", model)
    library = tmp_path / "MyRelu.so"
    library.write_bytes(b"")
    out = folder()
    both().run(out, checked=source, plugins_0=library)
    assert passport.load(out).options["plugins"] == ["MyRelu.so"]
    serialized = ("plugins_to_serialize", [str(library)])
    assert serialized not in fake_tensorrt._building._SEEN  # TensorRT puts plugins into version-compatible engines only
    assert ("init_libnvinfer_plugins", "") in fake_tensorrt._building._SEEN
    assert (out / "plugins" / "MyRelu.so").read_bytes() == library.read_bytes()
    assert passport.load(out).precision.engine, "the engine is loaded with its plugins, to read its layers"
    whole = folder()
    both(tensorrt={"version_compatible": True}).run(whole, checked=source, plugins_0=library)
    assert serialized in fake_tensorrt._building._SEEN
    assert not (whole / "plugins").exists()
    with pytest.raises(StepError, match="does not know the operator MyRelu"):
        both().run(folder(), checked=source)
    with pytest.raises(StepError, match=r"plugin library none\.so"):
        both().run(folder(), checked=source, plugins_0=tmp_path / "none.so")


def test_an_engine_for_another_gpu_than_the_one_here_is_not_built(fake_tensorrt, half, folder, monkeypatch):
    steps, prepared = both(device="A10"), folder()
    steps.prepare.run(prepared, checked=half)
    monkeypatch.setenv(GPU_VARIABLE, "NVIDIA A10")
    with pytest.raises(StepError, match="CUDA shows no GPU called 'NVIDIA A10'") as caught:
        steps.build.run(folder(), prepared=prepared)
    assert caught.value.facts == ("CUDA shows Tesla T4",)
    monkeypatch.delenv(GPU_VARIABLE)
    monkeypatch.setattr("engine.machine.cuda.devices", tuple)
    with pytest.raises(StepError, match="CUDA shows no GPU called ''"):
        both().run(folder(), checked=half)


def test_of_several_gpus_the_one_that_is_meant_builds(fake_tensorrt, half, folder, monkeypatch):
    [turing] = cuda.devices()
    used = []
    monkeypatch.setattr(cuda, "devices", lambda: (replace(turing, name="NVIDIA A10", sm=86), turing))
    monkeypatch.setattr("engine.runtimes.tensorrt.cudart.use", used.append)
    out = folder()
    both(device="T4").run(out, checked=half)
    assert used == [1]
    assert passport.load(out).gpu == ("Tesla T4",)


# The packaged MiniLM, for real.
