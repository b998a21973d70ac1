"""What the runtime `openvino` says about itself: no OpenVINO is needed."""

from engine.recipe.schema import ModelSection, Recipe, TargetSection
from engine.runtimes import registry
from engine.runtimes.backends import Backend
from engine.runtimes.execution import Execution
from engine.steps.fuse import Fuse
from engine.steps.openvino_build import OpenvinoBuild
from engine.steps.quantize import Quantize
from engine.steps.validate import Validate


def recipe(precision="int8", runtime="openvino", **sections):
    return Recipe(
        name="a",
        model=ModelSection(source="x"),
        precision=precision,
        target=TargetSection(device="cpu", runtime=runtime),
        profiles=[{"batch": [1, 8, 32]}],
        **sections,
    )


def test_a_recipe_for_openvino_gets_its_build_in_place_of_fuse_and_quantize():
    assert OpenvinoBuild.for_recipe(recipe("fp32")) == OpenvinoBuild()
    assert OpenvinoBuild.for_recipe(recipe()).precision == "int8"
    assert OpenvinoBuild.for_recipe(recipe(runtime="onnxruntime")) is None
    assert Fuse.for_recipe(recipe()) is None
    assert Quantize.for_recipe(recipe()) is None


def test_bf16_has_the_files_of_fp32_as_openvino_rounds_when_it_runs():
    assert OpenvinoBuild.for_recipe(recipe("bf16")) == OpenvinoBuild.for_recipe(recipe("fp32"))
    judged = {name: Validate.for_recipe(recipe(name)).lowers_fp32 for name in ("fp32", "bf16")}
    assert judged == {"fp32": True, "bf16": True}
    assert not Validate.for_recipe(recipe("fp32", "onnxruntime")).lowers_fp32
    assert Validate.for_recipe(recipe("fp32", "auto")).lowers_fp32


def test_int8_reads_samples_and_the_machine_and_fp32_reads_neither():
    small, plain = OpenvinoBuild.for_recipe(recipe()), OpenvinoBuild.for_recipe(recipe("fp32"))
    assert small.inputs_used() == ("checked", "checkpoint")
    assert plain.inputs_used() == ("checked",)
    assert (small.facts_used(), plain.facts_used()) == (("cpu.isa",), ())
    assert "nncf" in small.tools_used()
    assert "nncf" not in plain.tools_used()
    assert small.profiles
    assert not plain.profiles
    calibrated = OpenvinoBuild.for_recipe(recipe(calibrate={"samples": "/train.jsonl", "limit": 9}))
    assert (calibrated.samples.uri, calibrated.limit, calibrated.profiles) == ("/train.jsonl", 9, ())


def test_weights_alone_need_no_samples_and_the_recipe_of_before_has_the_options_of_before():
    alone, plain = OpenvinoBuild.for_recipe(recipe(quantize={"weights_only": True})), OpenvinoBuild.for_recipe(recipe())
    assert alone.weights_only
    assert (alone.inputs_used(), alone.facts_used()) == (("checked",), ())
    assert "nncf" in alone.tools_used()
    assert OpenvinoBuild.for_recipe(recipe(quantize={"weights_only": False})) == plain
    assert OpenvinoBuild.for_recipe(recipe("bf16", quantize={"weights_only": True})) == OpenvinoBuild()
    assert alone.options().keys() - plain.options().keys() == {"weights_only"}
    assert Validate.for_recipe(recipe(quantize={"weights_only": True})).weights_only
    assert not Validate.for_recipe(recipe()).weights_only


def test_triton_joins_no_requests_for_its_openvino_backend_which_has_a_name_and_no_platform():
    for size in (None, 0, 8):
        refused = registry.find("openvino").unsupported(recipe(package={"triton": {"max_batch_size": size}}))
        assert [each.field for each in refused] == (["package.triton.max_batch_size"] if size else [])
    assert Backend.of(platform="", backend="openvino") is Backend.OPENVINO
    assert Backend.of(platform="", backend="python") is Backend.PYTHON
    assert Backend.of(platform="onnxruntime_onnx", backend="") is Backend.ONNXRUNTIME


def test_outputs_depend_on_openvino_and_on_the_instructions_of_the_cpu():
    execution = Execution.for_recipe(recipe())
    assert execution.tools == ("numpy", "openvino")
    assert execution.facts == ("cpu.isa",)
    assert execution.options == {}
