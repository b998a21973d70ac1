"""The padding of a package on a GPU: which axes of the outputs are cut back."""

import pytest

from engine.kit.onnx.onnx_files import Input
from engine.kit.triton import graphs


@pytest.mark.parametrize(
    ("shape", "known"),
    [
        (("batch", 3), ["batch", None]),
        (("batch", "sequence", 8), ["batch", "sequence", None]),
        (("y_0", 3), ["batch", None]),
        ((1, 3), [None, None]),
        (("batch", "y_1"), None),
        (("batch", "sequence + 1"), None),
        (("sequence", "batch"), ["sequence", "batch"]),
    ],
)
def test_axes_of_outputs_are_known_by_their_names(shape, known):
    outputs = {"y": Input("y", "float32", shape)}
    assert graphs._by_name(outputs, "batch", "sequence") == (None if known is None else {"y": known})


def test_an_output_of_unknown_rank_is_not_cut_back():
    assert graphs._by_name({"y": Input("y", "float32", (), ranked=False)}, "batch", "sequence") is None
