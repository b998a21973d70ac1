"""TensorRT's log messages become errors with causes and hints. TensorRT or TensorRT-RTX wrote each of them."""

import pytest

from engine.runtimes.tensorrt import failures as trt_failures
from engine.runtimes.tensorrt.failures import Circumstances

FORECAST = "forecast: 1.0 GiB of weights and up to 1.0 MiB of activations at batch 32"
AROUND = Circumstances(FORECAST, ("query", "key"), ("profile 0: x 1 / 2 / 4",))
MESSAGES = {
    "no implementation": (
        "Could not find any implementation for node {ForeignNode[Reshape_419 + Transpose_420...Gather_2423]}.)",
        "no implementation for {ForeignNode[Reshape_419 + Transpose_420...Gather_2423]}", "memory_pool.workspace",
        FORECAST,
    ),
    "fp32 on Turing": (
        "Cannot compile operation 'node_of_a' for Turing (SM75): FP32 GEMM is not supported. In compileGraph",
        "no fp32 matrix products on Turing (SM75)", "precision: fp16", "in fp32: node_of_a, query, key",
    ),
    "memory": (
        "Error Code 2: OutOfMemory (Requested size was 4294967296.)", "memory did not suffice", "narrow the profiles",
        FORECAST,
    ),
    "memory of CUDA": ("Cuda Runtime (In alloc: cudaError 2: out of memory)", "did not suffice", "profiles", FORECAST),
    "workspace": (
        "Selection: no tactics to implement the operation within workspace limit. Consider increase the allowed size",
        "fits into the workspace", "memory_pool.workspace", FORECAST,
    ),
    "no profile": (
        "Network has dynamic or shape inputs, but no optimization profile has been defined. In validate at network.cpp",
        "do not cover an input", "every free axis", "profile 0: x 1 / 2 / 4",
    ),
    "profile without an input": (
        "Dynamic input tensor mask is missing dimensions in profile 0.", "do not cover", "every free axis", "profile 0"
    ),
    "profile against the model": (
        "Dimension mismatch for tensor x and profile 0. At dimension axis 1, profile has min=64, opt=64, max=65",
        "does not fit the input x", "model fixes", "profile 0",
    ),
    "order": (
        "Invalid optimization profiles for input tensors x, please ensure that they satisfy MIN<=OPT<=MAX. In isValid",
        "out of order", "min <= opt <= max", "profile 0",
    ),
    "shapes": (
        "Internal Error (/0/Reshape: IShuffleLayer applied to shape tensor must have 0 or 1 reshape dimensions)",
        "cannot follow the shapes", "fixed extent", "profile 0",
    ),
    "version": (
        "Version tag does not match. Note: Current Version: 213, Serialized Engine Version: 232",
        "another version of TensorRT", "anew", "Version tag",
    ),
    "plugin": ("Unable to load library: libfoo.so: cannot open shared object file", "plugin library", "ldd", "libfoo"),
    "scales": (
        "LHS: 2 type mismatch between matmul operand scales, of lhs_scale", "of two types", "one type", "lhs_scale"
    ),
    "lean": ("Unable to load library: libnvinfer_lean.so.10: cannot open", "lean runtime", "exclude_lean", "lean"),
}  # fmt: skip


@pytest.mark.parametrize("case", MESSAGES)
def test_what_tensorrt_says_becomes_cause_hint_and_facts(case):
    message, what, hint, fact = MESSAGES[case]
    error = trt_failures.unbuilt([message], AROUND)
    assert what in error.what
    assert hint in error.hint
    assert any(fact in each for each in error.facts), error.facts
    assert any(message[:40] in each for each in error.facts), "TensorRT's own words are there, too"


def test_a_cause_goes_before_what_it_brings_about():
    messages = [MESSAGES["memory"][0], MESSAGES["no implementation"][0]]
    assert "memory did not suffice" in trt_failures.unbuilt(messages, AROUND).what


def test_words_that_nobody_knows_are_handed_on():
    error = trt_failures.unbuilt(["Error Code 9: something new"], Circumstances())
    assert error.what == "TensorRT could not build the engine"
    assert error.facts == ("Error Code 9: something new",)
    assert "recipe logs" in error.hint


def test_that_there_is_no_gpu_is_no_reason_where_none_is_needed():
    noise = "[checkMacros.cpp::catchCudaError::250] (cudaError 35: CUDA driver version is insufficient)"
    assert trt_failures.unbuilt([noise, "the reason"], Circumstances()).facts == ("the reason",)
    assert trt_failures.unbuilt([], Circumstances()).facts == ("it gave no reason",)


def test_the_same_words_are_told_once_and_never_too_many():
    error = trt_failures.unbuilt([*(f"problem {number}" for number in range(50)), "problem 49"], Circumstances())
    assert len(error.facts) <= 8
    assert error.facts[-1] == "problem 49"


def test_what_the_parser_cannot_read_is_told_by_its_node():
    error = trt_failures.unreadable([("Resize", "up", "mode cubic is not supported")], ["ModelImporter.cpp:140"])
    assert error.facts == ("Resize up: mode cubic is not supported",)
    assert trt_failures.unreadable([], ["no such file"]).facts == ("no such file",)
