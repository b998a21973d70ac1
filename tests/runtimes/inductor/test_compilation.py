"""A compilation: the sizes of the axes, the example that is traced, and a module that cannot be exported."""

import pytest
import torch

from engine.errors import StepError
from engine.kit.onnx.onnx_files import Input
from engine.recipe.values import Range
from engine.runtimes.inductor import compilation
from engine.runtimes.inductor.passport import AxisSizes

TEXT = {"input_ids": Input("input_ids", "int64", ("batch", "sequence"))}


def profile(**extents):
    return {axis: Range.model_validate(extent) for axis, extent in extents.items()}


def test_the_axes_are_those_of_all_profiles_and_without_profiles_free():
    two = (profile(batch=1, sequence=[1, 16, 128]), profile(batch=[1, 8, 32], sequence=[1, 128, 512]))
    assert compilation.axis_sizes(TEXT, two, 512) == {
        "batch": AxisSizes(min=1, max=32), "sequence": AxisSizes(min=1, max=512),
    }  # fmt: skip
    fixed = compilation.axis_sizes(TEXT, (profile(batch=1, sequence=16),), 512)
    assert fixed == {"batch": AxisSizes(min=1, max=1), "sequence": AxisSizes(min=16, max=16)}
    assert compilation.axis_sizes(TEXT, (), 512) == {"batch": AxisSizes(min=1), "sequence": AxisSizes(min=1, max=512)}
    with pytest.raises(StepError, match="a profile leaves open: sequence"):
        compilation.axis_sizes(TEXT, (profile(batch=1),), 512)


@pytest.mark.parametrize(
    ("ranges", "sizes"),
    [
        ({"batch": (1, 8), "sequence": (1, 64)}, {"batch": 2, "sequence": 3}),
        ({"batch": (4, 8), "sequence": (4, None)}, {"batch": 4, "sequence": 5}),
        ({"batch": (1, 2), "sequence": (2, 2)}, {"batch": 2, "sequence": 2}),
    ],
)
def test_the_example_has_sizes_of_at_least_two_that_differ_where_they_can(ranges, sizes):
    free = {axis: AxisSizes(min=least, max=most) for axis, (least, most) in ranges.items()}
    assert compilation._traced(free) == sizes


class Branching(torch.nn.Module):
    """A module whose path depends on its numbers, which `torch.export` cannot have."""

    input_names, output_names = ("x",), ("y",)
    input_specs = {"x": Input("x", "float32", ("batch", 4))}  # noqa: RUF012

    def forward(self, x):
        return (x if x.sum() > 0 else -x,)


def test_a_module_that_cannot_be_exported_is_a_clear_error(tmp_path):
    ranges = {"batch": AxisSizes(min=1, max=4)}
    with pytest.raises(StepError, match=r"torch\.export cannot have the model") as caught:
        compilation.compiled(
            Branching(), tmp_path / "model.pt2", sizes=ranges, precision="fp32", device="cpu", scratch=tmp_path
        )
    assert "batch: 1 to 4" in caught.value.facts
    assert "onnxruntime" in caught.value.hint
