"""The reports of quantize say why layers are not in the precision of the recipe, for the error of a build."""

import pytest

from engine.kit.quantization.report import (
    DynamicReport,
    GraphsReport,
    HalfReport,
    Kept,
    Left,
    QdqReport,
    Quantized,
    Spread,
    WeightOnlyReport,
)

DYNAMIC = DynamicReport(quantized={"MatMul": 1}, left=("2 Conv", "1 Gather", "1 MatMul"))
LEFT = tuple(Left(f"layer{number}", "it is sensitive", None) for number in range(5))
REASONS = {
    "left alone": (DynamicReport(quantized={}, left=(), unquantized="it is so"), ["not quantized: it is so"]),
    "dynamic": (
        DYNAMIC,
        ["2 Conv in floating point: dynamic int8 makes convolutions", "1 MatMul in floating point: without float32"],
    ),
    "attention": (DynamicReport(quantized={"MatMul": 1}, left=("1 Gather",)), ["the rest in floating point: products"]),
    "weights": (
        WeightOnlyReport(weights="int4", quantized={}, left=("1 Conv",)),
        ["1 Conv in floating point: no MatMul"],
    ),
    "graphs": (GraphsReport(graphs={"encoder": DYNAMIC}), ["encoder: 2 Conv", "encoder: 1 MatMul"]),
    "Q/DQ": (
        QdqReport(precision="fp8", fp8=Quantized(share=0.1, matmuls=(), left=LEFT, convolutions=2)),
        ["layer0, layer1, layer2 and 2 more not quantized: it is sensitive", "2 convolutions: only products"],
    ),
    "half": (
        HalfReport(
            precision="fp16", kept=(Kept(operators={"Softmax": 2}, reason="it sums"),), cosine=Spread(1, 1), share=0.1,
            saturated=(), scaled=(), path=(), samples=1, casts=0,
        ),
        ["2 Softmax in fp32: it sums"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("report", "expected"), REASONS.values(), ids=REASONS)
def test_each_report_gives_a_reason_for_each_kind_of_layer_that_stayed(report, expected):
    given = report.reasons()
    assert len(given) == len(expected)
    for text, start in zip(given, expected, strict=True):
        assert text.startswith(start)
