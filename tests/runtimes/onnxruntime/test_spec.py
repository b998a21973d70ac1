"""ONNX Runtime as a runtime: which installed versions it refuses, and which opset it reads."""

from types import SimpleNamespace

import pytest

from engine.errors import RecipeError
from engine.recipe.schema import Recipe
from engine.runtimes.execution import Execution
from engine.runtimes.onnxruntime.spec import OnnxRuntime
from engine.steps.trt_build import TrtBuild
from engine.text.places import Position, Text


def refuse(version, **fields):
    recipe = Recipe(name="r", model={"source": "hf:a/b"}, **fields)
    loaded = SimpleNamespace(recipe=recipe, error=lambda what, *path, hint: RecipeError(what, at(), hint=hint))
    OnnxRuntime().refuse_installed(loaded, {"onnxruntime": version, "onnxruntime-gpu": version}.get)


def at():
    return Position(Text("r.yaml", "name: r"), 1, 1)


def test_a_version_without_the_option_for_tf32_is_refused():
    target = {"device": "A10", "provider": "cuda"}
    with pytest.raises(RecipeError, match=r"onnxruntime-gpu 1\.17\.3 has no option for TF32"):
        refuse("1.17.3", target=target, tf32=False)
    refuse("1.17.3", target=target)
    for version in ("1.18.0", "1.31.1", None):
        refuse(version, target=target, tf32=True)


@pytest.mark.parametrize("runtime", [{"runtime": "tensorrt"}, {"provider": "cuda"}, {"provider": "tensorrt"}])
def test_no_tf32_is_said_to_a_gpu_without_it(runtime):
    """Source: Table 33 of the CUDA Programming Guide has no TF32 for compute capability 7.5."""
    at_turing = Recipe(name="r", model={"source": "hf:a/b"}, target={"device": "T4", **runtime}, tf32=False)
    silent = at_turing.model_copy(update={"tf32": None})
    at_ampere = at_turing.model_copy(update={"target": at_turing.target.model_copy(update={"device": "A10"})})
    assert Execution.for_recipe(at_turing) == Execution.for_recipe(silent)
    assert Execution.for_recipe(at_ampere).options["tf32"] is False
    for recipe, engine_tf32 in ((at_turing, None), (at_ampere, False)):
        step = TrtBuild.for_recipe(recipe)
        assert step is None or step.tf32 is engine_tf32


def test_a_rival_gets_the_tf32_of_the_recipe():
    recipe = Recipe(name="r", model={"source": "hf:a/b"}, target={"device": "A10", "runtime": "tensorrt"}, tf32=False)
    execution = Execution.for_recipe(recipe)
    assert OnnxRuntime().as_rival(execution).options == {"provider": "cuda", "tf32": False}
    silent = Execution.for_recipe(recipe.model_copy(update={"tf32": None}))
    assert OnnxRuntime().as_rival(silent).options == {"provider": "cuda"}


@pytest.mark.parametrize("fields", [{"precision": "int4"}, {"precision": "int8", "quantize": {"weights_only": True}}])
def test_a_version_without_the_operators_of_weights_in_blocks_is_refused(fields):
    with pytest.raises(RecipeError, match="is too old to multiply with weights of int") as caught:
        refuse("1.23.2", **fields)
    assert caught.value.hint == "install onnxruntime 1.24 or newer"
    for version in ("1.24.1", "1.31.1", "2.0", None):
        refuse(version, **fields)
    for precision in ("fp32", "int8"):
        refuse("1.20", precision=precision)


NORMS = {"LayerNormalization", "SimplifiedLayerNormalization"}
SKIPS = {"SkipLayerNormalization", "SkipSimplifiedLayerNormalization"}
TABLES = {"EmbedLayerNormalization"}


@pytest.mark.parametrize(
    ("image", "opset", "sums"),
    [
        (None, 23, NORMS | SKIPS | TABLES),
        ("26.09-py3", 23, NORMS | SKIPS | TABLES),
        ("26.07", 23, NORMS | SKIPS | TABLES),
        ("26.06", 23, NORMS | SKIPS),
        ("25.08", 23, NORMS | SKIPS),
        ("25.07", 20, NORMS | SKIPS),
        ("24.05", 20, NORMS | SKIPS),
        ("24.04", 20, set()),
    ],
)
def test_the_opset_and_the_normalizations_that_sum_in_fp32_depend_on_the_image_of_triton(image, opset, sums):
    package = {"triton": {"image": image}} if image else {}
    recipe = Recipe(name="r", model={"source": "hf:a/b"}, precision="fp16", target={"device": "A10"}, package=package)
    assert OnnxRuntime().newest_opset(recipe) == opset
    assert set(OnnxRuntime().sums_in_fp32(recipe)) == sums
    for target in ({"device": "A10", "provider": "tensorrt"}, {"device": "cpu"}):
        other = recipe.model_copy(update={"target": type(recipe.target)(**target)})
        assert OnnxRuntime().sums_in_fp32(other) == ()


@pytest.mark.parametrize(
    ("fields", "biases"),
    [
        ({"precision": "fp16"}, True),
        ({"precision": "fp16", "target": {"device": "A10", "provider": "tensorrt"}}, False),
        ({"target": {"device": "cpu"}, "profiles": [{"batch": 1, "sequence": 512}]}, False),
        ({"precision": "fp16", "package": {"triton": {"image": "26.07"}}}, True),
        ({"precision": "fp16", "package": {"triton": {"image": "26.06"}}}, False),
        ({}, False),
        ({"profiles": [{"batch": 1, "sequence": [1, 128, 512]}]}, False),
        ({"profiles": [{"batch": 1, "sequence": 16}, {"batch": 1, "sequence": [1, 384, 512]}]}, True),
        ({"bench": {"shapes": [{"batch": 1, "sequence": 16}, {"batch": 32, "sequence": 384}]}}, True),
        ({"bench": {"shapes": [{"batch": 1, "sequence": 128}]}}, False),
        ({"bench": {"shapes": [{"batch": 512}]}}, False),
    ],
)
def test_attention_adds_a_bias_in_fp16_and_on_long_texts(fields, biases):
    recipe = Recipe(
        **{"name": "r", "model": {"source": "hf:a/b"}, "target": {"device": "A10"}, "precision": "fp32", **fields}
    )
    assert OnnxRuntime().biases_attention(recipe) is biases


def test_int4_is_refused_where_the_installed_tensorrt_provider_takes_no_precision_from_the_graph():
    target = {"device": "A10", "provider": "tensorrt"}
    with pytest.raises(
        RecipeError, match=r"onnxruntime-gpu 1\.31\.1 cannot compute in int4: .* weakly typed"
    ) as caught:
        refuse("1.31.1", precision="int4", target=target)
    assert "use runtime: tensorrt" in caught.value.hint
    refuse("1.24.4", precision="int4", target=target)
    refuse("1.31.1", precision="int8", target=target)
