"""Search space: each value of a knob is one that the plan accepts, or that feasibility refuses with a plain reason."""

from pathlib import Path

import pytest

from engine import api
from engine.errors import RecipeError
from engine.recipe.load import load
from engine.runtimes import knobs, registry, search_space

RECIPES = Path(__file__).parents[2] / "recipes"
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
    "a GPU, by its fastest runtime": "target: {device: H100, runtime: auto}\nprecision: fp16\ntensorrt: {version: '10.x'}\n",
    "several GPUs": "target: {device: [A10, L4], runtime: tensorrt-rtx}\nprecision: fp16\n",
}


@pytest.fixture
def recipe(tmp_path):
    def loaded(text, base=TEXT):
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
    """Yield the point of each runtime and precision, and with each a point for each further value of each knob."""
    runtimes = every[0]
    for runtime in runtimes.values:
        first, asked = walked(every, (runtimes, runtime))
        yield first
        precisions = [knob for knob in asked if knob.field == knobs.PRECISION]
        chosen = [(knob, value) for knob in precisions for value in knob.values] or [(None, None)]
        for pair in chosen:
            point, asked = walked(every, (runtimes, runtime), pair)
            yield point
            for knob in asked:
                for value in knob.values[1:] if knob is not runtimes and knob not in precisions else ():
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
