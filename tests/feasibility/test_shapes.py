"""Hints about the axes of other people's ONNX files: whoever takes them literally comes to outputs of the model."""

from __future__ import annotations

import ast
import functools
import inspect
import json
from pathlib import Path

import foreign_models
import numpy as np
import pytest
import tried_hints

from engine import feasibility
from engine.feasibility import proposals, serving, shapes
from engine.kit.inputs import bench_inputs, cases
from engine.kit.onnx import onnx_files
from engine.recipe.load import load
from engine.steps import fetch, reference
from engine.steps.reference import Reference

WRONG = {
    "no profile for axes without names": ("nameless", {}, 1),
    "no profile for a sum": ("sums", {}, 1),
    "no profile for one height": ("one-height", {}, 2),
    "no profile for speech": ("speech", {}, 2),
    "no profile for odd names": ("odd-names", {}, 1),
    "a profile with too few axes": ("nameless", {"profiles": {"x": "1x3x64"}}, 1),
    "a profile that changes a fixed axis": (
        "nameless", {"profiles": {"x": ["1x1x64x64", "1x1x64x64", "8x1x64x64"]}}, 1),
    "a profile without an axis": ("nameless", {"profiles": {"x_0": 1, "x_3": [32, 64, 96]}}, 1),
    "a misspelt input": ("speech", {"profiles": {"inptu": "1x256", "state": "2x1x4"}}, 1),
    "a misspelt axis": ("sums", {"profiles": {"batch": 1, "past_sequence_lenght": 7}}, 1),
    "a mask that is too short": ("sums", {"profiles": {"past": "2x7x4", "mask": "2x7"}}, 1),
    "a profile for a model of fixed axes": ("fixed", {"profiles": {"x": "1x3x9x8"}}, 1),
    "a model that random numbers do not suit": ("far-tokens", {"profiles": {"n": [2, 2, 2]}}, 1),
    "a batch beyond the profiles": (
        "nameless", {"profiles": {"x": ["1x3x64x64", "1x3x64x64", "8x3x64x64"]},
                     "package": {"triton": {"max_batch_size": 64}}}, 1),
    "a batch for a state that has none": (
        "speech", {"profiles": {"input": "1x256", "state": "2x1x4"}, "package": {"triton": {"max_batch_size": 4}}}, 1),
    "two sizes for one axis": ("lengths", {"profiles": {"x": "2x16", "lengths": 3}}, 1),
    "a shape to measure that lacks axes": (
        "nameless", {"profiles": {"x": "1x3x64x64"}, "bench": {"shapes": [{"x_2": 64}]}}, 1),
    "a shape to measure with another fixed axis": (
        "nameless", {"profiles": {"x": "1x3x64x64"}, "bench": {"shapes": [{"x": "1x4x64x64"}]}}, 1),
}  # fmt: skip
RIGHT = {
    "axes without names, by input": ("nameless", {"x": ["1x3x48x192", "1x3x48x320", "8x3x48x640"]}, (8, 3, 48, 640)),
    "axes without names, by axis": (
        "nameless", {"x_0": [1, 1, 8], "x_2": 48, "x_3": [192, 320, 640]}, (8, 3, 48, 640)),
    "a sum, with its own size": ("sums", {"past": "2x7x4", "mask": "2x8", "x": "2x1x4"}, (2, 1, 4)),
    "a sum, without its size": ("sums", {"batch": 2, "past_sequence_length": 7}, (2, 1, 4)),
    "an input of one axis": ("lengths", {"x": ["1x8", "2x16", "4x32"], "lengths": [1, 2, 4]}, (4, 32)),
    "states and single numbers": (
        "speech", {"input": ["1x512", "1x512", "4x576"], "state": ["2x1x4", "2x1x4", "2x4x4"]},
                                  (4, 576)),
}  # fmt: skip


@pytest.fixture(scope="module")
def run_in():
    """Check a recipe of a model against the model, run the model on the recipe's inputs, and draw its bench inputs."""

    def run(root, text):
        (root / "pyproject.toml").touch()
        path = root / "recipe.yaml"
        path.write_text(text)
        (loaded,) = load(path)
        feasibility.check(loaded)
        recipe = loaded.recipe
        folder = root / "checkpoint"
        folder.mkdir(exist_ok=True)
        (folder / "model.onnx").write_bytes(Path(recipe.model.source.removeprefix("file:")).read_bytes())
        feasibility.check_model(loaded, fetch.describe(folder))
        samples = recipe.validation.samples
        given = None if samples is None else Path(samples.removeprefix("file:"))
        Reference.for_recipe(recipe).run(root / "reference", checkpoint=folder, samples=given)
        graph = onnx_files.load_graph(folder)
        for shape in recipe.bench.shapes if recipe.bench else ():
            bench_inputs.draw(graph, shape.axes)
        return cases.load(root / "reference")

    return run


@pytest.fixture(scope="module")
def errors_of(run_in, tmp_path_factory):
    """Return the function that takes the hints of a case literally, once for all tests, and returns the errors."""

    @functools.cache
    def errors(case):
        name, fields, _ = WRONG[case]
        root = tmp_path_factory.mktemp("foreign")
        foreign_models.write(name, root)
        np.savez(root / "FILE.npz", x=np.array([[90, 92], [91, 91]]))
        return tried_hints.until_it_works(recipe_of(name, **fields), functools.partial(run_in, root))

    return errors


def recipe_of(name, **fields):
    return {"name": "foreign", "model": {"source": f"{name}.onnx"}, **fields}


@pytest.mark.parametrize("case", WRONG)
def test_hints_taken_literally_lead_to_the_models_outputs(errors_of, case):
    errors = errors_of(case)
    assert len(errors) == WRONG[case][2], [str(error) for error in errors]


@pytest.mark.parametrize(("name", "profile", "shape"), RIGHT.values(), ids=RIGHT)
def test_a_profile_by_input_or_by_axis_gives_the_inputs_of_the_model(tmp_path, run_in, name, profile, shape):
    foreign_models.write(name, tmp_path)
    answered = run_in(tmp_path, json.dumps(recipe_of(name, profiles=profile)))
    assert shape in [next(iter(case.inputs.values())).shape for case in answered]
    assert all(case.outputs for case in answered)


def test_every_hint_about_axes_was_taken_literally(errors_of):
    hints = [error.hint for case in WRONG for error in errors_of(case)]
    words = [text for module in (shapes, serving, reference, proposals) for text in _hints(module)]
    assert len(words) >= 6
    assert [text for text in words if not any(text in hint for hint in hints) and text not in _BY_HAND] == []


_BY_HAND = {
    "move threshold to `boxes` in `postprocess`",  # tests/builder/preflight/test_images.py
    # tests/feasibility/test_infeasible.py: images
    'write the release, "24.05", or the whole name of the image or its mirror, as in ',
    "at most ",  # tests/feasibility/test_infeasible.py: tokens beyond the positions
    "widen a profile, or measure a shape inside one",  # the same: shapes that no profile takes
    "widen a profile (and package.triton.max_batch_size), or use via: [in-process]",  # the same: through a server
    "leave threads out",  # tests/feasibility/test_feasibility.py: threads are of models on a CPU
    "leave the tensor out of the ONNX model",  # tests/builder/preflight/test_onnx_file.py: an axis of size 0
    "give `",  # tests/steps/test_shape_tensors.py: a number that Triton's backend does not serve
    # tests/steps/test_shape_tensors.py: values of an input that cannot be a shape tensor
    "a profile states values of whole numbers, without axes or with one axis of a fixed size",
    "is the sample one that the model is made for?",  # a question about the user's own file
}


def _hints(module):
    """Return the constant beginnings of all hints that a module can print."""
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        values = []
        if isinstance(node, ast.keyword) and node.arg == "hint":
            values = [node.value]
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "hint":
            values = [node.value]
        if isinstance(node, ast.FunctionDef) and node.name in {"_proposal", "_of_random"}:
            values = [each.value for each in ast.walk(node) if isinstance(each, ast.Return)]
        for value in (part for each in values for part in _branches(each)):
            first = value.values[0] if isinstance(value, ast.JoinedStr) else value
            if isinstance(first, ast.Constant):
                yield first.value


def _branches(value):
    return [*_branches(value.body), *_branches(value.orelse)] if isinstance(value, ast.IfExp) else [value]
