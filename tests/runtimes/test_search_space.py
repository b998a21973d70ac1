"""Search space: each value of a knob is one that the plan accepts, or that feasibility refuses with a plain reason."""

import pytest

from engine import api
from engine.errors import RecipeError
from engine.recipe.load import load
from engine.runtimes import knobs, search_space
from engine.runtimes.knobs import Knob

SHAPES = ({"batch": 1, "sequence": 24}, {"batch": 8, "sequence": 128})
TEXT = """\
name: tiny
model: {source: 'hf:a/b'}
profiles: [{batch: [1, 8, 32], sequence: [1, 128, 512]}]
"""
SAMPLES = {
    "a CPU": "",
    "a CPU, in OpenVINO": "target: {runtime: openvino}\nprecision: int8\n",
    "a CPU, by its fastest runtime": "target: {runtime: auto}\nprecision: int8\n",
    "a CPU, with all that a recipe can say there": "target: {provider: cpu}\nprecision: int8\n"
    "quantize: {weights_only: true}\npackage: {triton: {threads: 2, max_batch_size: 8}}\n",
    "a GPU, in ONNX Runtime": "target: {device: A10, provider: cuda}\nprecision: fp16\ntf32: null\n",
    "a GPU, in the TensorRT provider": "target: {device: A10, provider: tensorrt}\nprecision: fp16\n",
    "a GPU, in TensorRT": "target: {device: A10, runtime: tensorrt}\nprecision: fp16\n"
    "tensorrt: {version: '10.11', optimization_level: 5}\n",
    "a GPU, in an older TensorRT": "target: {device: A10, runtime: tensorrt}\nprecision: fp16\n"
    "tensorrt: {version: '10.3'}\n",
    "a GPU, by its fastest runtime": "target: {device: H100, runtime: auto}\nprecision: fp16\n"
    "tensorrt: {version: '10.x'}\n",
    "several GPUs": "target: {device: [A10, L4], runtime: tensorrt-rtx}\nprecision: fp16\n",
}


@pytest.fixture
def recipe(tmp_path):
    def loaded(text, base=TEXT):
        (tmp_path / "model.onnx").touch()
        (tmp_path / "r.yaml").write_text(base + text)
        [one] = load(tmp_path / "r.yaml")
        return one.recipe

    return loaded


def space(recipe, **options):
    return search_space.of_recipe(recipe, shapes=SHAPES, cpus=4, **options)


def walked(every, *pairs):
    """Return the point with these values of knobs, and all knobs that it has a choice of."""
    asked = []

    def choose(knob):
        asked.append(knob)
        return next((value for other, value in pairs if other is knob), knob.values[0])

    return knobs.point(every, choose), asked


def points(every):
    """Yield the point of each runtime and precision, and a point for each further value of each other knob."""
    runtimes, varied = every[0], []
    for runtime in runtimes.values:
        first, asked = walked(every, (runtimes, runtime))
        yield first
        precisions = [knob for knob in asked if knob.field == knobs.PRECISION]
        chosen = [(knob, value) for knob in precisions for value in knob.values] or [(None, None)]
        for pair in chosen:
            point, asked = walked(every, (runtimes, runtime), pair)
            yield point
            for knob in asked:
                if knob is not runtimes and knob not in (*precisions, *varied):
                    varied.append(knob)
                    for value in knob.values[1:]:
                        yield walked(every, (runtimes, runtime), pair, (knob, value))[0]


@pytest.mark.parametrize("text", SAMPLES.values(), ids=SAMPLES)
def test_each_value_of_each_knob_makes_a_plan(tmp_path, recipe, text):
    every = {str(point): point for point in points(space(recipe(text)))}
    refused = {}
    for point in every.values():
        try:
            [variant] = api.plan(tmp_path / "r.yaml", set=point)
            assert variant.jobs
        except RecipeError as error:
            refused[str(point)] = str(error)
    assert len(every) > 8
    assert refused == {}


def test_the_runtime_comes_first_and_then_its_precisions_with_what_the_recipe_says_as_the_default(recipe):
    every = space(recipe("target: {runtime: openvino}\nprecision: int8\n"))
    assert (every[0].field, every[0].values) == (knobs.RUNTIME, ("openvino", "onnxruntime", "inductor"))
    precisions = {each.when[knobs.RUNTIME]: each.values for each in every if each.field == knobs.PRECISION}
    assert precisions == {
        ("openvino",): ("int8", "fp32", "bf16"),
        ("onnxruntime",): ("int8", "fp32", "int4"),
        ("inductor",): ("fp32", "fp16", "bf16"),
    }
    assert [each.field for each in every[1:4]] == [knobs.PRECISION] * 3


def test_the_defaults_are_the_recipe_as_it_is_written(recipe):
    every = space(recipe("target: {device: A10, runtime: tensorrt}\nprecision: int8\ntensorrt: {version: '10.11'}\n"))
    assert walked(every)[0] == {}
    assert walked(space(recipe("target: {runtime: auto}\n")))[0] == {"target.runtime": "onnxruntime"}


def test_a_point_leaves_out_what_its_runtime_does_not_read(recipe):
    text = "target: {device: A10, runtime: tensorrt}\nprecision: fp16\ntensorrt: {version: '10.11'}\n"
    every = space(recipe(text))
    point, asked = walked(every, (every[0], "onnxruntime"))
    assert point == {"target.runtime": "onnxruntime", "target.provider": "cuda", "tensorrt": None}
    assert not [knob for knob in asked if knob.field.startswith("tensorrt.")]
    every = space(recipe("precision: int8\nquantize: {weights_only: true}\n"))
    assert walked(every, (every[0], "inductor"))[0]["quantize.weights_only"] is None


def test_a_runtime_that_the_target_or_the_model_cannot_have_is_none_of_them(recipe):
    def runtimes(text, base=TEXT):
        return set(space(recipe(text, base))[0].values)

    assert runtimes("") == {"onnxruntime", "openvino", "inductor"}
    assert runtimes("", TEXT.replace("hf:a/b", "model.onnx")) == {"onnxruntime", "openvino"}
    assert runtimes("", TEXT.replace("}", ", task: text-generation}", 1)) == {"onnxruntime"}
    assert runtimes("target: {device: A10}\n") == {"onnxruntime", "inductor"}
    assert runtimes("target: {device: A10}\ntensorrt: {version: '10.x'}\n") == {"onnxruntime", "inductor", "tensorrt"}
    assert runtimes(SAMPLES["several GPUs"]) == {"tensorrt-rtx"}


def test_an_option_that_came_with_a_later_version_of_tensorrt_is_no_knob(recipe):
    def options(version):
        text = f"target: {{device: A10, runtime: tensorrt}}\ntensorrt: {{version: '{version}'}}\n"
        return {knob.field for knob in space(recipe(text))}

    assert options("10.11") - options("10.3") == {"tensorrt.tiling_optimization_level"}


def test_a_runtime_that_compiles_sizes_apart_is_offered_a_profile_for_each_measured_shape(recipe):
    [profiles] = [knob for knob in space(recipe("")) if knob.field == "profiles"]
    assert profiles.when == {knobs.RUNTIME: ("openvino",)}
    assert profiles.values[1] == [*SHAPES, *profiles.values[0]]
    assert not [knob for knob in search_space.of_recipe(recipe("")) if knob.field == "profiles"]


def test_threads_instances_and_batches_are_knobs_of_the_load_and_within_the_machine(recipe):
    loads = {knob.field: knob for knob in space(recipe("")) if knob.of == "load"}
    assert {"package.triton.threads", "package.triton.instance_group", knobs.MAX_BATCH_SIZE} == loads.keys()
    assert loads["package.triton.threads"].values == (None, 1, 2, 4)
    assert loads[knobs.MAX_BATCH_SIZE].values == (None, 2, 4, 8, 16)
    assert loads[knobs.MAX_BATCH_SIZE].when == {knobs.RUNTIME: ("onnxruntime",)}


def test_of_several_knobs_of_a_field_the_first_that_applies_counts_and_one_value_is_no_choice():
    every = (Knob("a", (1, 2)), Knob("b", (3,), {"a": (1,)}), Knob("b", (4, 5), {"a": (2,)}), Knob("b", (6,)))
    assert knobs.point(every, lambda knob: knob.values[0]) == {"a": 1, "b": 3}
    assert knobs.point(every, lambda knob: knob.values[-1]) == {"a": 2, "b": 5}
