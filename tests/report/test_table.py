"""What the table at the end of a build says."""

from types import SimpleNamespace

from engine.recipe.schema import ModelSection, Recipe
from engine.report import precisions
from engine.report.table import _where, size_in_words, table


def summary(noise, **reports):
    rows = [
        {"shape": {"batch": 1, "sequence": 16}, "via": "in-process", "runtime": name, "ours": ours, "mean_ms": 2.0,
         "p50_ms": 1.5, "p95_ms": 3.0, "p99_ms": 4.0, "runs": 100, "noise": noise, "ratio_to": {"pytorch-fp32": 3.25}}
        for name, ours in (("onnxruntime-int8", True), ("pytorch-fp32", False))
    ]  # fmt: skip
    found = {"bench": {"threads": 2, "cpu": "a CPU", "rows": rows}, **reports}
    recipe = Recipe(name="m", model=ModelSection(source="x"))
    return SimpleNamespace(
        variant=SimpleNamespace(loaded=SimpleNamespace(recipe=recipe)),
        model=SimpleNamespace(size=22_800_000),
        taken=lambda section, name: None,
        report=lambda section: found.get(section, {}),
    )


def test_a_row_per_runtime_with_the_speed_up_over_the_rival():
    worst = {"worst": 0.97, "mean": 0.9917, "sample": "line 8", "text": "a text"}
    text = table(summary(0.1, validation={"cases": 5, "random": False, "cosine": worst}))
    assert "m: fp32 for cpu with onnxruntime, 22.8 MB" in text
    assert [line.split()[-2:] for line in text.splitlines() if "pytorch-fp32" in line] == [["3.25", "x"]]
    assert "1.500" in text
    assert "cosine mean 0.9917, worst 0.97 (line 8)" in text
    assert "busy" not in text


def test_numbers_of_the_cpu_are_never_taken_for_those_of_the_device():
    worst = {"worst": 0.9991, "mean": 0.9999, "sample": "line 8", "text": "a text"}
    found = {"cases": 5, "random": False, "cosine": worst, "emulated": "fp16"}
    text = table(summary(0.1, validation_onnx=found))
    assert "not validated on the device yet; ONNX on the CPU, fp16 emulated:" in text
    assert "cosine mean 0.9999, worst 0.9991 (line 8)" in text
    assert [line for line in text.splitlines() if "onnxruntime-int8" in line and "0.9999" in line] == []
    on_device = table(summary(0.1, validation_onnx=found, validation={**found, "cases": 7}))
    assert "7 cases against" in on_device
    assert "emulated" not in on_device


def test_a_noisy_bench_says_that_its_numbers_cannot_be_trusted():
    assert "--force bench measures again" in table(summary(0.9))


def test_sizes_are_in_the_unit_that_shows_them():
    assert (size_in_words(22_800_000), size_in_words(1_500)) == ("22.8 MB", "1.5 kB")


def test_latencies_of_a_gpu_are_said_to_be_its_own():
    bench = {"cpu": "a cpu", "threads": 2}
    assert _where(bench) == "a cpu, 2 threads"
    assert _where({**bench, "gpu": {"name": "Tesla T4"}}) == "Tesla T4, its clocks not known"
    held = {"name": "Tesla T4", "sm_mhz": [1590, 1590], "steady": True}
    assert _where({**bench, "gpu": held}) == "Tesla T4 at 1590 MHz"
    moved = {**held, "sm_mhz": [585, 1590], "steady": False}
    assert _where({**bench, "gpu": moved}) == "Tesla T4 at 585 to 1590 MHz"


def test_what_is_in_the_lower_precision_and_what_is_not_is_said_with_the_reason():
    half = {
        "precision": "fp16", "share": 0.96,
        "kept": [{"operators": {"Softmax": 6}, "reason": "sums"},
                 {"operators": {"Add": 2}, "reason": "large", "largest": 1e5, "nodes": {"a": 1e5, "b": "infinite"}}],
    }  # fmt: skip
    assert precisions.lines(half) == [
        "96% of the MatMul work in fp16",
        "  in fp32: 6 Softmax (sums)",
        "  in fp32: 2 Add (large; up to 100000, b infinite, a 100000)",
    ]
    left = [{"name": "one", "reason": "sensitive"}, {"name": "two", "reason": "sensitive"}]
    quantised = {"precision": "int8", "int8": {"share": 0.84, "left": left}, "rest": {"kept": half["kept"][:1]}}
    assert precisions.lines(quantised) == [
        "84% of the MatMul work in int8, the rest in fp16",
        "  in fp32: 6 Softmax (sums)",
        "  not int8: 2 MatMul (sensitive)",
    ]


def test_a_model_whose_precision_was_not_lowered_says_nothing_of_it():
    assert precisions.lines({}) == []
    assert precisions.lines({"quantized": {"MatMul": 3}, "left": []}) == []
