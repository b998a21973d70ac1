"""Synonyms: words of other tools for values of a recipe, which the hint of an error translates."""

from __future__ import annotations

from collections.abc import Collection

from engine.tasks import aliases as tasks

_PRECISIONS = {
    "float32": "fp32",
    "float": "fp32",
    "single": "fp32",
    "full": "fp32",
    "f32": "fp32",
    "32": "fp32",
    "float16": "fp16",
    "half": "fp16",
    "f16": "fp16",
    "16": "fp16",
    "bfloat16": "bf16",
    "brain-float": "bf16",
    "int-8": "int8",
    "i8": "int8",
    "8bit": "int8",
    "8-bit": "int8",
    "8": "int8",
    "w8a8": "int8",
    "quint8": "int8",
    "qint8": "int8",
    "uint8": "int8",
    "dynamic": "int8",
    "static": "int8",
    "float8": "fp8",
    "fp8-e4m3": "fp8",
    "4bit": "int4",
    "4-bit": "int4",
    "4": "int4",
    "w4a16": "int4",
    "q4": "int4",
}
_RUNTIMES = {
    "trt": "tensorrt",
    "trtexec": "tensorrt",
    "tensorrt-plan": "tensorrt",
    "rtx": "tensorrt-rtx",
    "trt-rtx": "tensorrt-rtx",
    "ort": "onnxruntime",
    "onnx": "onnxruntime",
    "onnx-runtime": "onnxruntime",
    "onnxruntime-gpu": "onnxruntime",
    "onnxruntime-onnx": "onnxruntime",
    "ov": "openvino",
    "intel": "openvino",
    "torch": "pytorch",
    "transformers": "pytorch",
    "cpuexecutionprovider": "cpu",
    "cudaexecutionprovider": "cuda",
    "tensorrtexecutionprovider": "tensorrt",
    "best": "auto",
    "fastest": "auto",
}
_WORDS = tasks.ALIASES | _PRECISIONS | _RUNTIMES

_NO_PRECISIONS = {
    **dict.fromkeys(("fp4", "nvfp4", "mxfp4"), "fp4 is not supported yet: use fp8, or int4 for weights of 4 bits"),
    "tf32": "TF32 is how fp32 is computed: write `precision: fp32` and `tf32: true`",
}


def instead(word: str, choices: Collection[str]) -> str | None:
    """Return the hint for a number type that is no precision of a recipe; None for another word, or for other choices.

    `choices` are the values that the field of the recipe takes.
    """
    return _NO_PRECISIONS.get(word.lower()) if "fp8" in choices else None


def meant(word: str, choices: Collection[str]) -> str | None:
    """Return the one of `choices` that another tool calls `word`; None where no choice is known by that name."""
    plain = "-".join(word.lower().replace("_", " ").replace("-", " ").split())
    candidates = (plain, plain.replace("-", ""), _WORDS.get(plain))
    return next((each for each in candidates if each in choices), None)
