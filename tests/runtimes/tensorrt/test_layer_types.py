"""Reports of TensorRT's inspector in the formats of versions 10 and 11 (from the documentation, not from a run)."""

import pytest

from engine.runtimes.tensorrt import layer_types


def layer(**output):
    return {"Name": "a", "Inputs": [], "Outputs": [{"Name": "x", **output}]}


@pytest.mark.parametrize(
    ("output", "dtype"),
    [
        ({"Format/Datatype": "Row major linear FP32"}, "fp32"),
        ({"Format/Datatype": "Row major linear FP16 format"}, "fp16"),
        ({"Format/Datatype": "Half"}, "fp16"),
        ({"Format/Datatype": "Four wide channel vectorized row major Int8 format"}, "int8"),
        ({"Format/Datatype": "Row major linear BFloat16 format"}, "bf16"),
        ({"DataType": "FP8", "Format": "Row major linear format (kLINEAR)"}, "fp8"),
        ({"DataType": "Float", "Format": "Row major linear FP32 format (kLINEAR)"}, "fp32"),
        ({"DataType": "Int64", "Format": "Row major linear format (kLINEAR)"}, "int64"),
    ],
)
def test_the_type_of_a_layer_is_that_of_its_first_output(output, dtype):
    assert layer_types.counts({"Layers": [layer(**output)] * 3}) == {dtype: 3}


def test_layers_that_are_only_named_tell_nothing():
    assert layer_types.counts({"Layers": ["a", "b"], "Bindings": ["x"]}) == {}


def test_layers_without_outputs_are_passed_over():
    report = {"Layers": [{"Name": "signal", "Outputs": []}, layer(**{"Format/Datatype": "Half"})]}
    assert layer_types.counts(report) == {"fp16": 1}
