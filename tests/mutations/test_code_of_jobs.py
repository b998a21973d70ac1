"""Which jobs run a module: an edit of the module counts for their keys, and for no other."""

from __future__ import annotations

from pathlib import Path

from engine import api
from engine.builder.code import closure

ENGINE = Path(__file__).resolve().parents[2] / "engine"

JOBS = {
    "kit/accuracy/measure": "validate",
    "kit/inputs/bench_inputs": "validate bench",
    "kit/accuracy/thresholds": "validate",
    "kit/inputs/cases": "reference fuse quantize validate bench",
    "kit/checkpoints/checkpoint": "fetch export reference quantize validate bench package",
    "kit/accuracy/comparison": "quantize validate",
    "kit/checkpoints/sentences": "fetch export reference quantize validate bench package",
    "kit/inputs/synthetic": "export reference fuse quantize validate bench",
    "store/disk": "fetch export reference shape-infer fuse quantize validate bench package",
    "machine/cpu": "validate bench",
    "kit/quantization/dynamic/dynamic_int8": "quantize",
    "kit/accuracy/equivalence": "fuse quantize",
    "runtimes/onnxruntime/fusion": "fuse",
    "kit/checkpoints/hub": "fetch package",
    "kit/quantization/precisions": "fuse quantize",
    "kit/bench/interleaving": "bench",
    "kit/accuracy/gate": "validate",
    "kit/onnx/passes/linear_layers": "quantize",
    "kit/onnx/onnx_files": "fetch export reference shape-infer fuse quantize validate bench package",
    "runtimes/onnxruntime/session": "export reference shape-infer fuse quantize validate bench package",
    "kit/reference/reference_cases": "reference quantize",
    "runtimes/onnxruntime/runner": "validate bench",
    "runtimes/onnxruntime/triton": "package",
    "runtimes/registry": "validate bench package",
    "runtimes/runtime": "validate bench package",
    "runtimes/triton_images": "validate bench package",
    "runtimes/onnxruntime/spec": "validate bench package",
    "kit/inputs/samples": "reference quantize",
    "kit/onnx/shapes": "shape-infer",
    "kit/bench/stats": "export reference quantize validate bench package",
    "kit/inputs/token_rows": "fetch export reference fuse quantize validate bench package",
    "kit/inputs/tokenizer": "reference quantize validate package",
    "kit/triton/config": "package",
    "kit/triton/fields": "package",
    "kit/triton/repository": "package",
}
"""Who runs each module, as its imports say when a program for that runs over them, and as a reader sees."""


def test_the_code_of_a_job_has_the_modules_that_the_job_runs():
    [variant] = api.plan([ENGINE.parent / "recipes" / "minilm_cpu.yaml"])
    codes = {job.name: closure.of_step(job.step).before for job in variant.jobs}
    assert {
        file: " ".join(name for name, code in codes.items() if ENGINE / f"{file}.py" in code) for file in JOBS
    } == JOBS
