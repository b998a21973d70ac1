"""Words of other tools for values, fields and short forms of a recipe, which the hint of an error translates."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence

from engine.recipe.node import Node
from engine.tasks import aliases as tasks
from engine.text import quantities
from engine.text.display import shown

_PRECISIONS = {
    **dict.fromkeys(("float32", "float", "single", "full", "f32", "32"), "fp32"),
    **dict.fromkeys(("float16", "half", "f16", "16"), "fp16"),
    **dict.fromkeys(("bfloat16", "brain-float"), "bf16"),
    **dict.fromkeys(
        ("int-8", "i8", "8bit", "8-bit", "8", "w8a8", "quint8", "qint8", "uint8", "dynamic", "static"), "int8"
    ),
    **dict.fromkeys(("float8", "fp8-e4m3"), "fp8"),
    **dict.fromkeys(("4bit", "4-bit", "4", "w4a16", "q4"), "int4"),
}
_RUNTIMES = {
    **dict.fromkeys(("trt", "trtexec", "tensorrt-plan", "tensorrtexecutionprovider"), "tensorrt"),
    **dict.fromkeys(("rtx", "trt-rtx"), "tensorrt-rtx"),
    **dict.fromkeys(("ort", "onnx", "onnx-runtime", "onnxruntime-gpu", "onnxruntime-onnx"), "onnxruntime"),
    **dict.fromkeys(("ov", "intel"), "openvino"),
    **dict.fromkeys(("torch", "transformers"), "pytorch"),
    "cpuexecutionprovider": "cpu",
    "cudaexecutionprovider": "cuda",
    **dict.fromkeys(("best", "fastest"), "auto"),
}
_VALUES = tasks.ALIASES | _PRECISIONS | _RUNTIMES

_NO_PRECISIONS = {
    **dict.fromkeys(("fp4", "nvfp4", "mxfp4"), "fp4 is not supported yet: use fp8, or int4 for weights of 4 bits"),
    "tf32": "TF32 is how fp32 is computed: write `precision: fp32` and `tf32: true`",
}


def instead(word: str, choices: Collection[str]) -> str | None:
    """Return the hint for a number type that is no precision; None for other words, and for choices without one."""
    return _NO_PRECISIONS.get(word.lower()) if "fp8" in choices else None


def meant(word: str, choices: Collection[str]) -> str | None:
    """Return the one of `choices` that another tool calls `word`; None where no choice is known by that name."""
    plain = "-".join(word.lower().replace("_", " ").replace("-", " ").split())
    candidates = (plain, plain.replace("-", ""), _VALUES.get(plain))
    return next((each for each in candidates if each in choices), None)


_DEVICE = "the hardware is `target: {device: T4}`, or cpu"
_RUNTIME = "what executes the model is `target: {runtime: onnxruntime}`"
_SOURCE = "the model is `model: {source: hf:OWNER/NAME}`, a directory or an .onnx file"
_BATCH = "sizes of the batch are a profile: `profiles: [{batch: [1, 8, 32]}]`, min, opt and max"
_LENGTH = "lengths of texts are a profile: `profiles: [{sequence: [1, 128, 512]}]`, min, opt and max"
_SHAPES = "shapes are profiles: `profiles: [{batch: [1, 8, 32], sequence: [1, 128, 512]}]`, min, opt and max"
_SAMPLES = "samples are `validate: {samples: samples.jsonl}`"
_ERROR = "the largest difference is `validate: {max_abs: 0.05}`"
_METRIC = "with labelled samples: `validate: {metric: {name: accuracy, at_least: 0.9}}`"
_BUDGET = "a budget belongs to a shape: `bench: {shapes: [{batch: 1, budget: {p95_ms: 5}}]}`"
_WORKSPACE = "write `tensorrt: {memory_pool: {workspace: 2GiB}}`"
_PRECISION = "write `precision: fp16`"
_OUTPUT = "where packages go is no field but an option: recipe build RECIPE.yaml -o DIR"
_FIELDS: Mapping[str, str] = {
    **dict.fromkeys(("gpu", "hardware", "arch", "platform", "accelerator"), _DEVICE),
    **dict.fromkeys(("backend", "framework", "execution_provider", "engine"), _RUNTIME),
    **dict.fromkeys(("model_name", "model_id", "model_path", "checkpoint", "pretrained", "repo", "onnx"), _SOURCE),
    **dict.fromkeys(("batch", "batch_size", "batch_sizes", "max_batch_size"), _BATCH),
    **dict.fromkeys(
        ("sequence", "seq_len", "seq_length", "sequence_length", "max_length", "max_seq_length", "max_seq_len"), _LENGTH
    ),
    **dict.fromkeys(("shape", "shapes", "min_shapes", "opt_shapes", "max_shapes"), _SHAPES),
    **dict.fromkeys(("dynamic_axes", "input_shapes"), _SHAPES),
    **dict.fromkeys(("samples", "dataset", "data", "calibration_data", "val_data"), _SAMPLES),
    **dict.fromkeys(("tolerance", "atol", "rtol", "max_diff", "max_error", "threshold"), _ERROR),
    **dict.fromkeys(("accuracy", "f1", "metrics"), _METRIC),
    **dict.fromkeys(("latency", "budget", "p50", "p95", "p99", "max_latency_ms"), _BUDGET),
    **dict.fromkeys(("workspace", "workspace_size", "max_workspace_size", "workspaceSize"), _WORKSPACE),
    **dict.fromkeys(("dtype", "torch_dtype", "half", "quantization"), _PRECISION),
    **dict.fromkeys(("output", "output_dir", "out", "output_path"), _OUTPUT),
    **{name: f"write `precision: {name}`" for name in ("fp32", "fp16", "bf16", "int8", "fp8", "int4")},
    "variants": "variants are `matrix: {precision: [fp32, int8]}`",
    **dict.fromkeys(("base", "include", "inherits", "parent"), "the recipe below this one is `extends: base.yaml`"),
    **dict.fromkeys(("description", "author", "comment", "notes", "title"), "write it as a comment: # TEXT"),
    **dict.fromkeys(("env", "environment", "variables"), "leave it out: variables are set in the shell"),
    **dict.fromkeys(("bits", "weight_bits", "wbits"), "write `precision: int8`"),
    "version": "the version of a recipe's language is `recipe: 1`; a tool has its own: `tensorrt: {version: 10.x}`",
}
"""A field of another tool -> where the value stands in a recipe."""
_OTHER_NAMES = {
    **dict.fromkeys(("path", "name", "file", "id", "repo", "uri", "url"), "source"),
    **dict.fromkeys(("min", "minimum", "lower"), "at_least"),
    **dict.fromkeys(("max", "maximum", "upper"), "at_most"),
}
"""A field of another tool -> the field that stands in the same section of a recipe."""
_SHAPE = r"(?i)[0-9]+(?:[x*][0-9]+)+"
_AXES = ("batch", "sequence")


def field(name: str) -> str:
    """Return the hint for an unknown field that another tool has; "" for a name that no other tool is known to have."""
    plain = _plain(name)
    return next((hint for other, hint in _FIELDS.items() if _plain(other) == plain), "")


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def other_name(name: str, fields: Collection[str]) -> str | None:
    """Return the one of a section's `fields` that another tool calls `name`; None where no field is known by it."""
    meant = _OTHER_NAMES.get(name)
    return meant if meant in fields else None


def section(path: Sequence[str | int], node: Node) -> str:
    """Return the hint for a value in place of a section, such as `target: cpu`; "" where its meaning is not known."""
    names = [each for each in path if isinstance(each, str)]
    if node.value is None and not node.written and node.mapping is None and node.items is None:
        return f"indent the fields of `{names[-1]}` below it by two blanks" if names else ""
    items = node.items or ()
    write = _SECTIONS.get(tuple(names), _named(""))
    if meant := write(node) or (len(items) == 1 and items[0].mapping is None and write(items[0])):
        return f"write `{meant}`"
    if node.value is True and names:
        return f"write `{names[-1]}: {{}}` for its defaults"
    if node.value is False and names:
        return f"leave `{names[-1]}` out"
    if len(items) == 1 and items[0].mapping is not None and names:
        return f"write the fields of `{names[-1]}` without the dash or the brackets"
    return ""


def _named(form: str) -> Callable[[Node], str]:
    """Return a function that puts a text into `form`, and returns "" for a value that is no text."""
    return lambda node: form.format(shown(node.value)) if isinstance(node.value, str) else ""


def _budget(node: Node) -> str:
    number, _ = quantities.in_unit(node.written, "p95_ms")
    return f"budget: {{p95_ms: {number}}}" if number is not None else ""


def _sizes(node: Node) -> str:
    """Return the sizes by axis that a shape such as 1x16 or [1, 16] means."""
    if isinstance(node.value, str) and re.fullmatch(_SHAPE, node.value):
        sizes = re.split("[x*]", node.value.lower())
    elif node.items and all(isinstance(item.value, int) for item in node.items):
        sizes = [str(item.value) for item in node.items]
    else:
        return ""
    named = zip(_AXES, sizes, strict=False)
    return f"{{{', '.join(f'{axis}: {size}' for axis, size in named)}}}" if len(sizes) <= len(_AXES) else ""


def _shapes(field: str) -> Callable[[Node], str]:
    """Return a function that writes a shape, or a list of them, as the list `field`."""

    def write(node: Node) -> str:
        if sizes := _sizes(node):
            return f"{field}: [{sizes}]"
        return f"{field}: [{{batch: 1, sequence: 16}}]" if node.items is None and node.mapping is None else ""

    return write


_SECTIONS: Mapping[tuple[str, ...], Callable[[Node], str]] = {
    ("model",): _named("model: {{source: {}}}"),
    ("target",): _named("target: {{device: {}}}"),
    ("validate",): _named("validate: {{samples: {}}}"),
    ("calibrate",): _named("calibrate: {{samples: {}}}"),
    ("package",): lambda node: "package: {triton: {}}" if isinstance(node.value, str) else "",
    ("quantize",): _named("precision: {}"),
    ("steps",): lambda node: "" if node.items is None else "steps: {STEP: {OPTION: VALUE}}",
    ("bench",): lambda node: "bench: {shapes: [{batch: 1, sequence: 16}]}" if node.items else "",
    ("bench", "against"): _named("against: [{{runtime: {}}}]"),
    ("bench", "shapes"): lambda node: _shapes("shapes")(node) or _sizes(node),
    ("bench", "shapes", "budget"): _budget,
    ("profiles",): lambda node: _shapes("profiles")(node) or _sizes(node),
}
"""A section -> a function that writes a value in place of the section as the recipe does; "" for an unknown meaning."""
