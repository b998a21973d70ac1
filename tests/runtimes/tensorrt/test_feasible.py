"""Recipes for engines whose model is quantized already: what the file states is what is checked."""

import shutil
from pathlib import Path

import pytest
import typed_graphs

from engine import feasibility
from engine.errors import RecipeError
from engine.recipe.load import load
from engine.steps import fetch

FILES = Path(typed_graphs.__file__).parent / "modelopt"


def check(folder, name, device, precision="", runtime="tensorrt", **facts):
    """Check a recipe of one of the files, of which some facts may be others; return its error, or None."""
    shutil.copy(FILES / f"{name}.onnx", folder / "model.onnx")
    (folder / "r.yaml").write_text(
        f"name: mlp\nmodel: {{source: model.onnx}}\ntarget: {{device: {device}, runtime: {runtime}}}\n"
        f"profiles: [{{batch: [1, 2, 4]}}]\n{precision and f'precision: {precision}'}\n"
    )
    [loaded] = load(folder / "r.yaml")
    described = fetch.describe(folder / "model.onnx")
    try:
        feasibility.check(loaded)
        feasibility.check_model(loaded, type(described)(**{**vars(described), **facts}))
    except RecipeError as error:
        return error
    return None


@pytest.mark.parametrize(
    ("name", "device", "precision", "runtime"),
    [
        ("int8", "T4", "int8", "tensorrt"),
        ("int8_fp32", "B200", "int8", "tensorrt"),
        ("fp8", "L4", "fp8", "tensorrt"),
        ("fp8_fp32", "H100", "fp8", "tensorrt"),
        ("int4", "A10", "int4", "tensorrt"),
        ("int4_nvidia", "A10", "int4", "tensorrt"),
        ("fp8", "RTX 5090", "fp8", "tensorrt-rtx"),
        ("mlp", "T4", "fp16", "tensorrt"),
    ],
)
def test_a_precision_that_the_file_states_and_the_gpu_has_is_accepted(name, device, precision, runtime, tmp_path):
    assert check(tmp_path, name, device, precision, runtime) is None


@pytest.mark.parametrize(
    "row",
    [
        ("fp8", "A10", "fp16", "2:17", "quantized to fp8, in which the A10 (SM86) cannot compute", "int8 or int4"),
        ("fp8", "T4", "int8", "2:17", "quantized to fp8, in which the T4 (SM75) cannot compute", "such as L4"),
        ("int4", "T4", "int8", "2:17", "quantized to int4, in which the T4 (SM75) cannot", "the original to int8, or"),
        ("fp8", "L4", "int8", "5:12", "quantized to fp8 already, and the recipe says precision: int8", "fp8: the"),
        ("int8", "T4", "fp16", "5:12", "quantized to int8 already, and the recipe says precision: fp16", "int8: the"),
        ("int8", "T4", "", "2:17", "quantized to int8 already, and the recipe says precision: fp32", "int8: the model"),
        ("fp8", "A10", "fp8", "5:12", "the A10 (SM86) cannot compute in fp8", "precision: int8"),
    ],
)
def test_a_label_that_the_file_contradicts_and_a_gpu_that_lacks_its_type_are_refused(row, tmp_path):
    name, device, precision, place, says, hint = row
    error = check(tmp_path, name, device, precision)
    assert says in error.what
    assert hint in error.hint
    assert f"{error.position.line}:{error.position.column}" == place


def test_unsigned_quantization_is_refused_before_a_parser_does_it(tmp_path):
    error = check(tmp_path, "int8", "T4", "int8", quantized=("int8", "uint8"))
    assert "quantized to uint8, which" in error.what
    assert "signed types" in error.hint
