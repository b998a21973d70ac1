"""The script behind docs/measured.md: what it writes, where it goes on, the floor, the limits, and the table.

All numbers here are made up, and appear nowhere else.
"""

import argparse
import importlib.util
import json
import time
from pathlib import Path
from types import SimpleNamespace

import fake_nvidia
import gpu_floor
import gpu_parts
import gpu_probe
import gpu_ways as ways
import graphs
import models
import pytest
from gpu_floor import BERT, MINILM, Peaks, Work

from engine.machine import cuda

SCRIPT = Path(__file__).with_name("measure.py")
MACHINE = {"machine": "Some GPU, driver 1, CUDA 13", "versions": "torch 1."}


@pytest.fixture(scope="module")
def measure():
    spec = importlib.util.spec_from_file_location("measure", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def options(**given):
    return argparse.Namespace(**{"again": False, "limit": 60.0, "minutes": 1.0} | given)


class Parts:
    """Parts that note that they run, and of which some fail or crash."""

    def __init__(self, *names, fail=(), crash=()):
        self.ran, self.fail, self.crash = [], set(fail), set(crash)
        self.parts = [gpu_parts.Part(name, lambda folder, limit, name=name: self.run(name)) for name in names]

    def run(self, name):
        self.ran.append(name)
        if name in self.crash:
            raise KeyboardInterrupt
        if name in self.fail:
            raise gpu_parts.NotRunError("no g++ here")
        return {"value": len(self.ran)}


def lines(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


@pytest.mark.skipif(bool(cuda.devices()), reason="there is a GPU here, and it would be measured")
def test_without_a_gpu_nothing_is_added_to_the_page(measure, capsys):
    assert measure.main([]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("nothing was measured: no GPU")


def test_a_row_is_written_after_each_part_and_a_crash_loses_none(tmp_path, measure):
    file = tmp_path / "rows.jsonl"
    crashed = Parts("a", "b", "c", crash={"b"})
    with pytest.raises(KeyboardInterrupt):
        measure.measure(crashed.parts, measure.Rows(file, MACHINE), options())
    assert [row.get("part") for row in lines(file)] == [None, "a"]
    later = Parts("a", "b", "c")
    measure.measure(later.parts, measure.Rows(file, MACHINE), options())
    assert later.ran == ["b", "c"]
    assert [row.get("part") for row in lines(file)] == [None, "a", "b", "c"]


def test_a_part_that_failed_has_the_reason_and_is_tried_again(tmp_path, measure):
    file = tmp_path / "rows.jsonl"
    measure.measure(Parts("a", "b", fail={"a"}).parts, measure.Rows(file, MACHINE), options())
    assert lines(file)[1]["why"] == "no g++ here"
    later = Parts("a", "b")
    rows = measure.Rows(file, MACHINE)
    measure.measure(later.parts, rows, options())
    assert later.ran == ["a"]
    assert "why" not in measure.Rows(file, MACHINE).by_part["a"]
    again = Parts("a", "b")
    measure.measure(again.parts, measure.Rows(file, MACHINE), options(again=True))
    assert again.ran == ["a", "b"], "everything, where that is said"


def test_no_part_begins_when_the_time_is_over(tmp_path, measure, capsys):
    parts = Parts("a", "b")
    clock = iter([0, 1, 2, 3, 61]).__next__
    measure.measure(parts.parts, measure.Rows(tmp_path / "rows.jsonl", MACHINE), options(), clock=clock)
    assert parts.ran == ["a"]
    assert "b: the time is over" in capsys.readouterr().err


def test_a_line_that_a_crash_has_cut_off_is_dropped(tmp_path, measure):
    file = tmp_path / "rows.jsonl"
    measure.Rows(file, MACHINE).add("a", {"value": 1})
    whole = file.read_text()
    file.write_text(whole + '{"part": "b", "val')
    assert [*measure.Rows(file, MACHINE).by_part] == ["a"]
    assert file.read_text() == whole


def test_the_rows_of_another_machine_are_not_mixed_with_those_of_this_one(tmp_path, measure):
    measure.Rows(tmp_path / "rows.jsonl", MACHINE)
    with pytest.raises(measure.WrongMachineError):
        measure.Rows(tmp_path / "rows.jsonl", {**MACHINE, "versions": "torch 2."})


def test_a_program_that_does_not_end_is_ended_with_what_it_has_started(tmp_path):
    began = time.monotonic()
    done = ways.run(["sh", "-c", "sleep 99 & echo began; sleep 99"], tmp_path, 1)
    assert done.returncode == 124
    assert done.stdout == "began\n"
    assert "no end within 1 s" in done.stderr
    assert time.monotonic() - began < 60


def test_the_floor_is_the_longer_of_products_and_weights():
    peaks = Peaks(flops_per_s=1e12, bytes_per_s=1e9)
    assert gpu_floor.floor_ms(Work(flops=1e9, weights=1_000_000), 1, peaks) == pytest.approx(2.0)
    assert gpu_floor.floor_ms(Work(flops=1e9, weights=1_000_000), 8, peaks) == pytest.approx(8.0)


def test_the_work_of_a_model_is_that_of_its_products_and_tables_of_embeddings_are_not_read(tmp_path):
    layers, width, inner, sequence = 2, 32, 64, 16  # those of models.checkpoint
    counted = gpu_floor.work(graphs.tiny("bert"), sequence, tmp_path)
    weights = layers * (4 * width * width + 2 * width * inner)
    products = 2 * (sequence * weights + layers * 2 * sequence * sequence * width)
    assert products < counted.flops < 1.05 * products, "the head has a few more"
    assert weights < counted.weights < 1.5 * weights, "the table of words is as large as two layers"


@pytest.mark.parametrize(
    ("taken", "gpu", "verdict"),
    [
        (0.2, "NVIDIA H100 80GB HBM3", "met: 0.200 ms, 0.20 x of 0.980 ms (limit 0.26 x)"),
        (0.5, "NVIDIA H200", "missed: 0.500 ms, 0.51 x of 0.980 ms (limit 0.26 x)"),
        (0.2, "Tesla T4", "0.200 ms on Tesla T4, and the limit is one for H100 and H200"),
    ],
)
def test_a_limit_is_met_or_missed_on_the_gpu_that_it_was_set_for(taken, gpu, verdict):
    first, *others = gpu_floor.verdicts(gpu, {(MINILM, (1, 16)): taken})
    assert first == f"{MINILM} 1 x 16: {verdict}"
    assert len(others) == 9
    assert all("not measured (limit" in line for line in others)


@pytest.mark.parametrize(("ratio", "verdict"), [(9.5, "met: 9.50 x"), (8.0, "missed: 8.00 x"), (None, "not measured")])
def test_eager_pytorch_must_take_nine_times_longer(ratio, verdict):
    assert verdict in gpu_floor.eager_verdict(ratio)


def test_copies_are_no_kernels():
    def event(name, device, took):
        return SimpleNamespace(
            name=name, device_type=SimpleNamespace(name=device), time_range=SimpleNamespace(elapsed_us=lambda: took)
        )

    events = [event("gemm", "CUDA", 20), event("Memcpy HtoD", "CUDA", 9), event("aten::mm", "CPU", 9)]
    assert gpu_probe.counted([*events, event("softmax", "CUDA", 30)]) == {"kernels": 2, "kernels_ms": 0.05}


def latencies(model=MINILM, way="onnxruntime-cuda-fp16", shape=(1, 16), p50=0.25, **given):
    row = {"mean_ms": 3.0, "p50_ms": p50, "p95_ms": 4.0, "p99_ms": 5.0, "ratio_to": {}}
    ours = {**row, "runtime": "onnxruntime-fp16", "ours": True, "ratio_to": {"pytorch-fp32": 7.0}}
    graph = {**row, "runtime": "onnxruntime-fp16-graph", "ours": False, "other_way": True, "p50_ms": p50 / 2}
    eager = {**row, "runtime": "pytorch-fp32", "ours": False, "p50_ms": 10 * p50}
    part = {"model": model, "way": way, "shape": list(shape), "rows": [ours, graph, eager], "unmeasured": []}
    part |= {"worst_cosine": 0.5, "within_bounds": True, "size": 2_000_000, "clocks": "1 MHz throughout"}
    return part | given


def test_the_page_says_what_was_measured_on_what_and_what_was_not(measure):
    by_part = {
        "peaks": {"flops_per_s": 1e12, "bytes_per_s": 1e9},
        "work": {"model": MINILM, "sequence": 16, "flops": 1e8, "weights": 1000},
        "m": latencies(unmeasured=["pytorch-fp16-compile: no g++"]),
        "b": latencies(BERT),
        "broken": latencies(shape=(1, 128), within_bounds=False),
        "k": {"model": MINILM, "way": "onnxruntime-cuda-fp16", "shape": [1, 16], "kernels": 101, "kernels_ms": 0.187},
        "s": {"kind": "one model", "loads": [{"concurrency": 8, "throughput": 10.0, "latency": {"p99_ms": 9.0}}]},
        "rtx": {"why": "tensorrt_rtx is not installed"},
    }
    text = measure.section(by_part, [*by_part, "never"], "NVIDIA H100, driver 1, CUDA 13", "torch 1.")
    name = "onnxruntime-cuda-fp16"
    of_minilm, times = f"| MiniLM | 1 x 16 | {name} |", "4.000 | 5.000"
    for line in (
        "### NVIDIA H100, driver 1, CUDA 13",
        f"{of_minilm} **onnxruntime-fp16** | 3.000 | 0.250 | {times} | 2.5 | 7.00 x | 0.500000 | 2.0 |",
        f"{of_minilm} **onnxruntime-fp16-graph** | 3.000 | 0.125 | {times} | 1.2 |  | 0.500000 | 2.0 |",
        f"{of_minilm} pytorch-fp32 | 3.000 | 2.500 | {times} | 25.0 |  |  |  |",
        "| MiniLM | 1 x 16 | 0.100 |",
        f"| MiniLM | 1 x 16 | {name} | 101 | 0.187 |",
        "| one model | 8 | 10.0 | 9.000 |",
        "Clocks while it was measured: 1 MHz throughout.",
        "The weights of BERT-base are random with a fixed seed, so nothing was downloaded.",
        "- MiniLM 1 x 16: met: 0.125 ms, 0.13 x of 0.980 ms (limit 0.26 x)",
        "- MiniLM 1 x 128: not measured (limit 0.28 x of 0.910 ms)",
        "- BERT-base 1 x 16 beside PyTorch eager in fp32: met: 20.00 x (limit 9 x)",
        "- rtx: tensorrt_rtx is not installed",
        "- never: not begun",
        "- MiniLM, 1 x 16, pytorch-fp16-compile: no g++",
    ):
        assert line in text.splitlines()
    assert "one read of the weights: 1 TFLOP/s and 0.00 TB/s, as measured here." in text


def test_the_parts_have_names_of_their_own_and_recipes_of_their_own():
    parts = [part.name for part in gpu_parts.parts()]
    assert len({*parts}) == len(parts)
    names = {
        gpu_parts.recipe_name(model, way, shape, beside)
        for model in (MINILM, BERT)
        for way in ways.WAYS
        for shape in gpu_floor.SHAPES
        for beside in ("", *gpu_parts.BESIDE)
    }
    assert len(names) == 2 * len(ways.WAYS) * len(gpu_floor.SHAPES) * (1 + len(gpu_parts.BESIDE))


@pytest.mark.slow
@pytest.mark.whole("test_the_page_says_what_was_measured_on_what_and_what_was_not")
def test_a_part_is_built_and_its_work_counted(tmp_path, monkeypatch):
    """On this machine's CPU, with a small model in the place of MiniLM."""
    on_cpu = ways.Way("onnxruntime", "fp32")
    monkeypatch.setattr(ways, "no_gpu", lambda: None)
    monkeypatch.setattr(ways, "device", lambda: "cpu")
    monkeypatch.setattr(ways.Way, "missing", lambda self: None)
    monkeypatch.setattr(gpu_parts, "_FP16", on_cpu)
    monkeypatch.setattr(gpu_parts, "_model", lambda *_: {"model": {"source": "model"}})
    monkeypatch.setitem(
        gpu_parts.BESIDE, "eager", ({"runtime": "pytorch"}, {"runtime": "pytorch", "precision": "tf32"})
    )
    monkeypatch.setattr(gpu_parts, "_has_tf32", lambda: False)
    models.checkpoint(tmp_path / "model", "bert", task="text-classification", max_position_embeddings=512)
    row = gpu_parts.latencies(MINILM, on_cpu, (1, 16), "eager").run(tmp_path, 600.0)
    json.dumps(row)
    assert [each["runtime"] for each in row["rows"]] == ["onnxruntime-fp32", "pytorch-fp32"]
    assert row["within_bounds"]
    assert row["worst_cosine"] > 0.999
    assert (row["clocks"], row["unmeasured"]) == ("not known", [])
    counted = gpu_parts._work(MINILM, 16, tmp_path, 600.0)
    assert counted["flops"] > counted["weights"] > 0


def test_bert_base_is_written_with_random_weights_and_the_tokenizer_of_minilm(tmp_path):
    gpu_parts.save_bert(tmp_path / "BERT-base", num_hidden_layers=1, hidden_size=24, intermediate_size=32)
    assert {path.name for path in (tmp_path / "BERT-base").iterdir()} >= {
        "config.json", "model.safetensors", "tokenizer.json",
    }  # fmt: skip
    assert not (tmp_path / "BERT-base.new").exists()


def test_a_way_that_builds_nothing_for_the_gpu_is_left_out(monkeypatch):
    monkeypatch.setattr(cuda, "devices", lambda: (fake_nvidia.device("NVIDIA H100 80GB HBM3", 90),))
    monkeypatch.setattr(ways, "MODEL", "engine")
    assert ways.Way("tensorrt-rtx", "fp16").missing() == "tensorrt-rtx builds nothing for the H100 (SM90)"
