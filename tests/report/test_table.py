"""The table at the end of a build."""

from dataclasses import dataclass, field, replace

from summaries import accuracy, bench, row, summary

from engine.kit.accuracy.report import AccuracyReport, Least, PrecisionShares, Worst
from engine.kit.bench.report import BenchReport, BenchRow, Unmeasured
from engine.kit.quantization.report import (
    DynamicReport,
    HalfReport,
    Kept,
    Left,
    NodeCounts,
    QdqReport,
    Quantized,
    Spread,
)
from engine.machine.gpu_state import GpuReport
from engine.report import table_lines
from engine.report.table import _rival_of, table
from engine.reporting import measured, significant


def test_a_row_per_runtime_with_the_speed_up_over_the_rival():
    text = table(summary(bench=bench(), validation=accuracy(0.97, 0.9917)))
    assert "m: fp32 for cpu with onnxruntime, 22.8 MB" in text
    assert [line.split()[-2:] for line in text.splitlines() if "pytorch-fp32" in line] == [["3.25", "x"]]
    assert "1.500" in text
    assert "cosine mean 0.9917, worst 0.97 (line 8)" in text
    assert "busy" not in text


def test_what_validation_measures_beside_the_distance_has_a_line_each():
    work = PrecisionShares.of({"int8": 97, "fp32": 3}, {"batch": 8, "sequence": 128})
    batch = Worst(worst=0.9861, mean=0.991, sample="batch 2", text="")
    report = accuracy(
        0.97, 0.99, variation=Least(0.993, "logits"), in_batch=batch, work=work, notes=("z is near zero",)
    )
    lines = [line.strip() for line in table(summary(validation=report)).splitlines()]
    assert {
        "variation 0.993 (logits)",
        "in a batch: mean 0.991, worst 0.9861 (batch 2)",
        "multiplications: 97% in int8, 3% in fp32 (batch 8 x sequence 128)",
        "note: z is near zero",
    } <= set(lines)


def test_numbers_of_the_cpu_are_never_taken_for_those_of_the_device():
    emulated = accuracy(0.9991, 0.9999, emulated="fp16")
    text = table(summary(bench=bench(), validation_onnx=emulated))
    assert "not validated on the device yet; ONNX on the CPU, fp16 emulated:" in text
    assert "cosine mean 0.9999, worst 0.9991 (line 8)" in text
    assert [line for line in text.splitlines() if "onnxruntime-int8" in line and "0.9999" in line] == []
    validated = replace(emulated, cases=7, emulated=None)
    on_device = table(summary(bench=bench(), validation_onnx=emulated, validation=validated))
    assert "7 cases against" in on_device
    assert "emulated" not in on_device


@dataclass(frozen=True, kw_only=True)
class WiderRow(BenchRow):
    """A row with one more field: all that a new column takes."""

    peak_mb: float | None = field(default=None, metadata=measured("peak", unit="MB", digits=1))


@dataclass(frozen=True, kw_only=True)
class WiderBench(BenchReport):
    rows: tuple[WiderRow, ...]


@dataclass(frozen=True, kw_only=True)
class WiderAccuracy(AccuracyReport):
    drift: float | None = field(default=None, metadata=significant("drift", unit="bits", digits=2))


def test_a_new_field_of_a_row_is_a_column_and_one_of_accuracy_a_line_and_both_are_in_json():
    rows = (row("m-fp32", ours=True, kind=WiderRow, peak_mb=12.34), row("pytorch-fp32", ours=False, kind=WiderRow))
    shown = summary(bench=WiderBench(threads=2, cpu="a CPU", rows=rows))
    lines = table(shown).splitlines()
    end = lines[1].index("peak MB") + len("peak MB")
    assert lines[2][:end].endswith("   12.3")
    assert lines[3][:end].strip().endswith("4.000")  # the rival has no such number
    assert [each.get("peak_mb") for each in shown.to_json()["bench"]] == [12.34, None]
    assert "peak" not in table(summary(bench=bench()))
    shown = summary(validation=accuracy(0.97, 0.9917, kind=WiderAccuracy, drift=1.234))
    assert "  drift 1.2 bits\n" in table(shown)
    assert shown.to_json()["validation"]["drift"] == 1.234


def test_the_line_below_the_table_says_what_measured_and_whether_it_was_noisy():
    assert "--force bench measures again" in table(summary(bench=bench(noise=0.9)))
    gpu = GpuReport(name="Tesla T4", sm_mhz=(1590, 1590), steady=True)
    assert "interleaved in one run on a CPU, 2 threads;" in table(summary(bench=bench()))
    assert "interleaved in one run on Tesla T4 at 1590 MHz;" in table(summary(bench=replace(bench(), gpu=gpu)))


def test_what_is_in_the_lower_precision_and_what_is_not_is_said_with_the_reason():
    sums = Kept(operators={"Softmax": 6}, reason="sums")
    large = Kept(operators={"Add": 2}, reason="large", largest=1e5, nodes={"a": 1e5, "b": "infinite"})
    half = HalfReport(
        precision="fp16", share=0.96, kept=(sums, large), cosine=Spread(1.0, 1.0), saturated=(), scaled=(), path=(),
        samples=1, casts=0,
    )  # fmt: skip
    assert table_lines.precision_lines(half) == [
        "96% of the MatMul work in fp16",
        "  in fp32: 6 Softmax (sums)",
        "  in fp32: 2 Add (large; up to 100000, b infinite, a 100000)",
    ]
    left = (Left("one", "sensitive", 0.1), Left("two", "sensitive", 0.1))
    quantized = Quantized(share=0.84, matmuls=(), left=left, convolutions=0)
    assert table_lines.precision_lines(
        QdqReport(precision="int8", int8=quantized, rest=replace(half, kept=(sums,)))
    ) == [
        "84% of the MatMul and Conv work in int8, the rest in fp16",
        "  in fp32: 6 Softmax (sums)",
        "  not int8: 2 of its layers (sensitive)",
    ]
    counted = replace(half, share=1, kept=(), graph=NodeCounts(all=52, casts=4, computing=50))
    line = "  graph: 52 nodes, 4 of them Casts; 50 compute on the GPU, before any fusion by the runtime"
    assert table_lines.precision_lines(counted) == ["100% of the MatMul work in fp16", line]
    assert HalfReport.from_json(counted.to_json()) == counted
    assert table_lines.precision_lines(DynamicReport(quantized={"MatMul": 3}, left=())) == []


def test_the_size_of_a_rival_is_that_of_what_its_runtime_runs():
    rivals = ("pytorch-fp32", "pytorch-fp16-reduce-overhead", "onnxruntime-fp32", "openvino-fp32")
    assert [*map(_rival_of, rivals)] == ["checkpoint", "checkpoint", "exported", "exported"]


def test_a_rival_that_could_not_run_is_a_row_and_a_line_with_the_reason():
    unmeasured = (Unmeasured(runtime="pytorch-fp32", reason="torch 2.13.0+cpu, built without CUDA"),)
    text = table(summary(bench=replace(bench(), rows=bench().rows[:1], unmeasured=unmeasured)))
    [cells, line] = [line.split() for line in text.splitlines() if "pytorch-fp32" in line]
    assert cells[-2:] == ["not", "measured"]
    assert " ".join(line) == "pytorch-fp32 was not measured: torch 2.13.0+cpu, built without CUDA"
