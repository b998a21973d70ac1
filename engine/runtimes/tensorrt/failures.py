"""Failures: turns TensorRT's log messages into an error with a cause and a hint."""

# The messages are those of TensorRT 10 and TensorRT-RTX 1.7. The messages of TensorRT-RTX were seen in builds. The
# messages of TensorRT are quoted in NVIDIA's documentation and public issue tracker.

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from engine.errors import StepError

_SHOWN = 8
"""The largest number of messages or names in one error."""
_NOISE = re.compile(r"catchCudaError.*cudaError 35|Begin node|End node")
"""A pattern of TensorRT's log messages that explain nothing about a failure.

On a machine without a GPU, the log has the message `cudaError 35` after every other error.
"""


class UnfitGraphError(StepError):
    """TensorRT's parser refuses the graph, on every machine with this TensorRT."""


@dataclass(frozen=True)
class Circumstances:
    """Details of a build that an error may show besides TensorRT's log messages."""

    forecast: str = ""
    floats: Sequence[str] = ()
    """Matrix products and convolutions that the network computes in fp32, by name."""
    profiles: Sequence[str] = ()
    """A text for each profile: the names of the inputs with their min, opt and max shapes."""
    shape_tensors: Sequence[str] = ()
    """The names of the inputs whose values are sizes of other tensors."""


def reasons(problems: Sequence[str]) -> list[str]:
    """Return the last error messages of TensorRT, without repetitions and without messages that explain nothing."""
    messages = [problem.strip() for problem in problems if not _NOISE.search(problem)]
    return list(dict.fromkeys(messages))[-_SHOWN:] or ["it gave no reason"]


def unreadable(errors: Iterable[tuple[str, str, str]], problems: Sequence[str]) -> UnfitGraphError:
    """Return the error for a graph that the parser refuses; each of `errors` is (operator, node, description)."""
    listed = list(errors)
    unknown = sorted({operator for operator, _, description in listed if "Plugin not found" in description})
    facts = [f"{operator} {name or '(unnamed)'}: {description}" for operator, name, description in listed[:_SHOWN]]
    if unknown:
        return UnfitGraphError(
            f"TensorRT does not know the operator {', '.join(unknown)}",
            facts,
            "see its operator support matrix; name the library that brings it under tensorrt.plugins, "
            "or use runtime: onnxruntime",
        )
    return UnfitGraphError(
        "TensorRT cannot read the ONNX graph",
        facts or reasons(problems),
        "does ONNX Runtime take this graph? then see TensorRT's operator support matrix, or use runtime: onnxruntime",
    )


def refused(what: str, problems: Sequence[str], hint: str = "") -> StepError:
    """Return the error for an option, a profile or a plugin (`what`) that TensorRT does not accept."""
    return StepError(f"TensorRT does not accept {what}", reasons(problems), hint)


def unbuilt(problems: Sequence[str], circumstances: Circumstances) -> StepError:
    """Return the error for a parsed network that TensorRT could not build; the log tells the cause."""
    text = "\n".join(problems)
    if circumstances.shape_tensors and re.search("shape input", text, re.IGNORECASE):
        return StepError(
            f"the values of an input are sizes of other tensors: {', '.join(circumstances.shape_tensors)}",
            ["TensorRT wants the values of such a shape tensor in each profile", *reasons(problems)],
            f"state them in each profile, as in {circumstances.shape_tensors[0]}: [[1, 16], [4, 16], [8, 16]] for min, "
            "opt and max",
        )
    for pattern, what, hint, shown in _CAUSES:
        if match := re.search(pattern, text, re.IGNORECASE):
            facts = [*(_shown(shown, match, circumstances)), *reasons(problems)][:_SHOWN]
            return StepError(what.format(**match.groupdict()), facts, hint)
    return StepError(
        "TensorRT could not build the engine",
        [*_memory(circumstances), *reasons(problems)][:_SHOWN],
        "the whole log: recipe logs RECIPE trt-build",
    )


# Rows: pattern, error, hint, circumstances that the error shows. A cause stands before its consequences.
_CAUSES = (
    (r"operation '(?P<node>[^']+)' for Turing \(SM(?P<sm>\d+)\): FP32 GEMM is not supported",
     "TensorRT-RTX has no fp32 matrix products on Turing (SM{sm})",
     ("use precision: fp16; where that keeps products in fp32 because they overflow (`recipe show` names them), take "
      "runtime: tensorrt on that GPU, or a GPU from SM80 on"), "floats"),
    (r"type mismatch between matmul operand scales",
     "the scales of a quantized matrix product are of two types",
     "give both of its DequantizeLinear scales of one type (fp16 or fp32), each with what it yields", ""),
    (r"libnvinfer_lean",
     "a version-compatible engine carries the lean runtime, and that is not installed",
     "install NVIDIA's tensorrt-lean of the same version, or say exclude_lean_runtime: true", ""),
    (r"unable to load library|cannot open file .*\.so",
     "a plugin library cannot be loaded",
     "is it built for this machine and this version of TensorRT? `ldd` tells what it needs", ""),
    (r"no optimization profile has been defined|missing dimensions in profile",
     "the profiles do not cover an input whose shape is free",
     "give every free axis of the model an extent in each profile", "profiles"),
    (r"dimension mismatch for tensor (?P<input>\S+) and profile",
     "a profile does not fit the input {input}",
     "an axis whose size the model fixes cannot have another one in a profile", "profiles"),
    (r"satisfy MIN<=OPT<=MAX",
     "a profile is out of order", "every axis needs min <= opt <= max", "profiles"),
    (r"no tactics to implement the operation within workspace limit",
     "no kernel for a part of the graph fits into the workspace",
     "give it more tensorrt.memory_pool.workspace, or leave the limit out", "memory"),
    (r"out of memory|outofmemory|cudaErrorMemoryAllocation|cudaError 2\b|insufficient memory",
     "the GPU's memory did not suffice to build the engine",
     "narrow the profiles, take a smaller precision, limit tensorrt.memory_pool.workspace, or free the GPU", "memory"),
    (r"could not find any implementation for node (?P<node>[^\n]+?)[.\s]*(\)|\n|$)",
     "TensorRT found no implementation for {node}",
     ("likely every kernel for it needs more workspace than it may use: give it more tensorrt.memory_pool.workspace, "
     "narrow the profiles or take fp16; or none exists for these types: build while nothing else uses the GPU, and "
     "look at the types around the node"), "memory"),
    (r"version tag does not match|not compatible with this version|incompatible device",
     "something was made by another version of TensorRT, or for another GPU",
     "a timing cache and plugins are for one version: make them anew here", ""),
    (r"IShapeLayer|shape tensor|ISliceLayer|IShuffleLayer|broadcast|reshape|dynamic shape",
     "TensorRT cannot follow the shapes of the graph within the profiles",
     ("a reshape or a broadcast may not hold for every extent that the profiles allow: try one fixed extent per axis "
     "to find which, and look at the named node"), "profiles"),
)  # fmt: skip


def _shown(circumstance: str, match: re.Match[str], circumstances: Circumstances) -> list[str]:
    if circumstance == "floats":
        names = list(dict.fromkeys((match["node"], *circumstances.floats)))
        return [f"in fp32: {', '.join(names[:_SHOWN])}" + (", ..." if len(names) > _SHOWN else "")]
    return {"memory": _memory(circumstances), "profiles": [*circumstances.profiles]}.get(circumstance, [])


def _memory(circumstances: Circumstances) -> list[str]:
    return [circumstances.forecast] if circumstances.forecast else []
