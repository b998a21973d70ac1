import types

import graphs
import pytest

from engine.errors import StepError
from engine.kit import onnx_files, trt
from engine.kit.onnx_files import Input
from engine.recipe.schema import ModelSection, Range, Recipe, Target
from engine.steps.trt_build import TrtBuild

PROFILES = ({"batch": 1, "sequence": [1, 16, 128]}, {"batch": [1, 8, 32], "sequence": [1, 128, 512]})
TOKENS = {name: Input(name, "int64", ("batch", "sequence")) for name in ("input_ids", "attention_mask")}


def recipe(**options):
    target = Target(device="T4", runtime="tensorrt")
    return Recipe(
        name="m", **{"model": ModelSection(source="hf:a/b"), "target": target, "precision": "fp16", **options}
    )


def extents(**axes):
    return {axis: Range(min=least, opt=usual, max=greatest) for axis, (least, usual, greatest) in axes.items()}


class Recorder:
    """Whatever is set, called or added to it is in `seen`."""

    def __init__(self):
        object.__setattr__(self, "seen", [])

    def __setattr__(self, name, value):
        self.seen.append((name, value))

    def __getattr__(self, name):
        return lambda *values: self.seen.append((name, *values)) or 0


class Parser:
    errors = ()

    def __init__(self, network, log):
        pass

    def parse_from_file(self, path):
        return not self.errors

    num_errors = property(lambda self: len(self.errors))

    def get_error(self, number):
        operator, name, what = self.errors[number]
        return types.SimpleNamespace(node_operator=lambda: operator, node_name=lambda: name, desc=lambda: what)


class Logger:
    Severity = types.SimpleNamespace(INTERNAL_ERROR=0, ERROR=1, WARNING=2, INFO=3, VERBOSE=4)

    def __init__(self):
        pass


def tensorrt(*, plan=b"plan", says=(), errors=(), version="10.13.0.35"):
    """A fake of the module `tensorrt`, with what the build uses of it."""
    config = Recorder()

    class Builder:
        def __init__(self, log):
            self.log = log

        def create_network(self, flags):
            return object()

        def create_builder_config(self):
            return config

        def create_optimization_profile(self):
            profile = Recorder()
            config.seen.append(profile.seen)
            return profile

        def build_serialized_network(self, network, config):
            for message in says:
                self.log.log(Logger.Severity.ERROR, message)
            return plan

    module = types.ModuleType("tensorrt")
    module.__version__ = version
    module.Builder, module.ILogger = Builder, Logger
    module.OnnxParser = type("OnnxParser", (Parser,), {"errors": errors})
    module.BuilderFlag = types.SimpleNamespace(FP16="FP16")
    module.MemoryPoolType = types.SimpleNamespace(WORKSPACE="WORKSPACE")
    module.HardwareCompatibilityLevel = types.SimpleNamespace(SAME_COMPUTE_CAPABILITY="SAME")
    module.config = config
    return module


def test_a_recipe_says_what_the_builder_is_told():
    options = {"version": "10.x", "memory_pool": {"workspace": "2GiB"}, "optimization_level": 3}
    made = TrtBuild.for_recipe(
        recipe(profiles=PROFILES, tensorrt={**options, "compatibility": "same-compute-capability"})
    )
    assert made.memory_pool == {"workspace": 2 << 30}
    assert (made.version, made.optimization_level) == ("10.x", 3)
    assert made.compatibility == "same-compute-capability"
    assert len(made.profiles) == 2
    assert str(made.hardware()) == "T4 (sm_75) with tensorrt"


def test_another_runtime_builds_no_engine():
    assert TrtBuild.for_recipe(recipe(target=Target(), precision="fp32")) is None


def test_every_input_with_a_free_axis_gets_its_shapes_in_every_profile():
    inputs = {**TOKENS, "scale": Input("scale", "float32", (1,))}
    shapes = trt.profile_shapes(inputs, extents(batch=(1, 8, 32), sequence=(1, 128, 512)))
    assert shapes == dict.fromkeys(TOKENS, ((1, 1), (8, 128), (32, 512)))


def test_a_profile_that_leaves_an_axis_open_is_refused_with_one_that_does_not():
    with pytest.raises(StepError, match="leaves open: sequence") as caught:
        trt.profile_shapes(TOKENS, extents(batch=(1, 2, 4)))
    assert "input_ids: batch x sequence" in str(caught.value)
    assert "batch: [1, 2, 4], sequence: [" in caught.value.hint


def test_a_profile_with_an_axis_that_the_model_lacks_is_refused():
    with pytest.raises(StepError, match="does not have: length"):
        trt.profile_shapes(TOKENS, extents(batch=(1, 2, 4), sequence=(1, 2, 4), length=(1, 2, 4)))


def test_options_and_profiles_reach_the_builder(tmp_path):
    module = tensorrt()
    shapes = [trt.profile_shapes(TOKENS, extents(batch=(1, 1, 1), sequence=(1, 16, 128)))]
    options = trt.Options(
        fp16=True, memory_pool={"workspace": 1 << 30}, optimization_level=2, same_compute_capability=True
    )
    assert trt.build(module, tmp_path / "model.onnx", shapes, options) == b"plan"
    assert ("set_flag", "FP16") in module.config.seen
    assert ("set_memory_pool_limit", "WORKSPACE", 1 << 30) in module.config.seen
    assert ("builder_optimization_level", 2) in module.config.seen
    assert ("hardware_compatibility_level", "SAME") in module.config.seen
    assert [("set_shape", name, (1, 1), (1, 16), (1, 128)) for name in TOKENS] in module.config.seen


def test_without_options_the_builder_keeps_its_defaults(tmp_path):
    module = tensorrt()
    trt.build(module, tmp_path / "model.onnx", [{}], trt.Options())
    assert module.config.seen == []


def test_what_the_parser_cannot_read_is_named_by_its_operator(tmp_path):
    module = tensorrt(errors=[("Attention", "attention_0", "plugin not found")])
    with pytest.raises(StepError, match="cannot read the ONNX graph") as caught:
        trt.build(module, tmp_path / "model.onnx", [], trt.Options())
    assert "Attention attention_0: plugin not found" in str(caught.value)


def test_a_build_that_fails_tells_what_tensorrt_said(tmp_path):
    module = tensorrt(plan=None, says=["out of memory in tactic 7"])
    with pytest.raises(StepError, match="could not build") as caught:
        trt.build(module, tmp_path / "model.onnx", [], trt.Options())
    assert "out of memory in tactic 7" in str(caught.value)


@pytest.mark.parametrize(("found", "wanted"), [("10.13.0.35", "10.x"), ("10.13.0.35", "10.13"), ("10.4.0", None)])
def test_a_version_that_the_recipe_asks_for_is_taken(found, wanted):
    trt.check_version(found, wanted)


def test_another_version_is_refused():
    with pytest.raises(StepError, match=r"asks for TensorRT 10.4, and 10.13.0 is installed") as caught:
        trt.check_version("10.13.0", "10.4")
    assert "tensorrt==10.4.*" in caught.value.hint


def test_tensorrt_11_is_not_supported_yet():
    with pytest.raises(StepError, match="not supported yet: TensorRT 11") as caught:
        trt.check_version("11.4.0.1", None)
    assert 'tensorrt.version to "10.x"' in caught.value.hint


def test_without_tensorrt_the_step_says_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "tensorrt", None)
    with pytest.raises(StepError, match="TensorRT is not installed"):
        TrtBuild(device="T4").run(tmp_path / "out", quantized=graphs.write(tmp_path / "m", graphs.layers()))


def test_an_engine_comes_with_what_it_takes_and_gives(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "tensorrt", tensorrt())
    source = graphs.write(tmp_path / "model", graphs.layers())
    step = TrtBuild(device="T4", precision="fp16", profiles=(extents(batch=(1, 2, 4)), extents(batch=(1, 8, 64))))
    report = step.run(tmp_path / "out", quantized=source)
    assert report == {"bytes": 4, "tensorrt": "10.13.0.35", "profiles": 2}
    assert (tmp_path / "out" / "model.plan").read_bytes() == b"plan"
    described = trt.describe(tmp_path / "out")
    assert described.profiles == 2
    assert described.inputs == onnx_files.inputs(onnx_files.load(source))


def test_an_engine_without_its_description_is_refused(tmp_path):
    with pytest.raises(StepError, match=r"engine\.json"):
        trt.describe(tmp_path)


def test_the_builder_of_tensorrt_rtx_takes_the_same_calls(tmp_path):
    """The part of the API that the two share, for real: RTX builds for a GPU that is not there."""
    rtx = pytest.importorskip("tensorrt_rtx", reason="the extra `rtx` is not installed")

    class Builder(rtx.Builder):
        def create_builder_config(self):
            config = super().create_builder_config()
            config.num_compute_capabilities = 1
            config.set_compute_capability(rtx.ComputeCapability.SM80, 0)
            return config

    shared = {name: getattr(rtx, name) for name in ("ILogger", "OnnxParser", "MemoryPoolType")}
    module = types.SimpleNamespace(Builder=Builder, **shared)
    source = graphs.write(tmp_path / "model", graphs.layers())
    inputs = onnx_files.inputs(onnx_files.load(source))
    shapes = [trt.profile_shapes(inputs, extents(batch=each)) for each in ((1, 1, 1), (1, 8, 32))]
    options = trt.Options(memory_pool={"workspace": 1 << 28}, optimization_level=1)
    assert len(trt.build(module, source / "model.onnx", shapes, options)) > 1000
    unknown = graphs.write(tmp_path / "unknown", graphs.layers())
    model = onnx_files.load(unknown)
    model.graph.node[2].op_type = "NoSuchOperator"
    onnx_files.save(model, unknown)
    with pytest.raises(StepError, match="cannot read the ONNX graph") as caught:
        trt.build(module, unknown / "model.onnx", shapes, options)
    assert "NoSuchOperator" in str(caught.value)
