"""What the runtime `inductor` says about itself: nothing is compiled, and no PyTorch is imported."""

import pytest

from engine import feasibility
from engine.errors import RecipeError
from engine.recipe.load import load
from engine.runtimes import registry
from engine.steps.fuse import Fuse
from engine.steps.inductor_build import InductorBuild
from engine.steps.quantize import Quantize
from engine.steps.shape_infer import ShapeInfer
from engine.steps.validate_onnx import ValidateOnnx

INDUCTOR = registry.find("inductor")


@pytest.fixture
def recipe(tmp_path):
    def loaded(rest="", *, device="cpu", runtime="inductor", source="hf:a/b"):
        target = f"target: {{device: {device}, runtime: {runtime}}}"
        (tmp_path / "model.onnx").touch()
        (tmp_path / "r.yaml").write_text(f"name: tiny\nmodel: {{source: '{source}'}}\n{target}\n{rest}\n")
        [one] = load(tmp_path / "r.yaml")
        return one

    return loaded


def refusal(loaded):
    with pytest.raises(RecipeError) as caught:
        feasibility.check(loaded)
    return str(caught.value)


@pytest.mark.parametrize("device", ["cpu", "H100", "T4"])
@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_its_step_takes_the_place_of_all_steps_that_change_a_graph(recipe, device, precision):
    one = recipe(f"precision: {precision}", device=device)
    feasibility.check(one)
    assert InductorBuild.for_recipe(one.recipe).precision == precision
    assert [kind.for_recipe(one.recipe) for kind in (ShapeInfer, Fuse, Quantize, ValidateOnnx)] == [None] * 4
    assert InductorBuild.for_recipe(recipe(runtime="onnxruntime").recipe) is None


def test_a_model_for_a_gpu_is_compiled_on_that_gpu_and_one_for_a_cpu_anywhere(recipe):
    on_gpu, on_cpu = (InductorBuild.for_recipe(recipe(device=device).recipe) for device in ("H100", "cpu"))
    assert str(on_gpu.hardware()) == "H100 (sm_90) with torch"
    assert on_cpu.hardware() is None
    assert "gpu.driver.major" in on_gpu.facts_used()
    assert "gpu.driver" not in on_gpu.facts_used()
    assert set(on_cpu.facts_used()) == {"arch", "os", "cpu.isa", "cxx.version"}
    assert on_cpu.inputs_used() == ("checkpoint",)


@pytest.mark.parametrize(
    ("rest", "named", "words"),
    [
        ("precision: int8", {}, "no cpu is built for in int8"),
        ("precision: int8", {"device": "T4"}, "cannot compute in int8 with inductor"),
        ("precision: fp8", {"device": "H100"}, "cannot compute in fp8 with inductor"),
        ("precision: bf16", {"device": "T4"}, "cannot compute in bf16"),
        ("tf32: true", {"device": "H100"}, "tf32"),
        ("tensorrt: {cuda_graph: true}", {"device": "H100"}, "it uses inductor"),
        ("", {"source": "model.onnx"}, "this model is an ONNX file"),
        ("package: {triton: {image: '26.04'}}", {}, "use 26.05-py3 or later"),
        ("package: {triton: {max_batch_size: 8}}", {}, "max_batch_size: 0"),
        ("package: {triton: {layout: fused}}", {}, "layout"),
    ],
)
def test_a_recipe_that_cannot_work_is_refused_with_what_works(recipe, rest, named, words):
    assert words in refusal(recipe(rest, **named))


@pytest.mark.parametrize("image", ["26.05", "26.11-py3", "registry.example/own/tritonserver-like:1"])
def test_an_image_that_may_load_it_is_allowed_and_not_verified(recipe, image):
    one = recipe(f"package: {{triton: {{image: '{image}'}}}}")
    feasibility.check(one)
    assert "no Triton server of this project has loaded" in INDUCTOR.not_verified(one.recipe)
    assert INDUCTOR.not_verified(recipe().recipe) is None


def test_a_machine_without_a_compiler_is_an_error_for_a_cpu_only(recipe, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RecipeError, match=r"g\+\+") as caught:
        INDUCTOR.refuse_installed(recipe(), lambda _: None)
    assert "apt install g++" in str(caught.value)
    INDUCTOR.refuse_installed(recipe(device="H100"), lambda _: None)
