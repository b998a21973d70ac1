"""Recipes that cannot work: `recipe check` refuses each at its place, with the reason and the nearest that works."""

import json
import os

import onnx
import pytest
from onnx import TensorProto, helper
from program import Program

from engine import api
from engine.errors import RecipeError
from engine.machine import tools

HEAD = "name: tiny\nmodel: {source: model}\n"


def gpu(device="T4", runtime="tensorrt", rest=""):
    return f"{HEAD}target: {{device: {device}, runtime: {runtime}{rest}}}\n"


def rtx(device="T4"):
    return gpu(device, "tensorrt-rtx")


TEXT = "profiles: [{batch: [1, 8, 32], sequence: [1, 128, 256]}]\n"
SERVED = "profiles: [{batch: 8, sequence: 32}]\nbench: {via: [triton-http], shapes: [%s]}"
AGAINST = "bench: {shapes: [{batch: 1, sequence: 8}], against: [{runtime: pytorch, %s}]}"
IMAGE = "package: {triton: {image: »'%s'}}"
GROUP = "package: {triton: {instance_group: [{count: 1, %s}]}}"

# Rows: the recipe with » at the wrong place, a part of the error, and the nearest thing that works.
REFUSED = {
    "fp16 in a weakly typed accelerator": (
        gpu("T4", "onnxruntime", ", provider: tensorrt") + "precision: fp16\n" + IMAGE % "24.02",
        "24.02-py3 computes fp16 graphs in other precisions", "an image from 24.05 on, or provider: cuda"),
    "bf16 on a T4": (gpu() + "precision: »bf16", "(SM75) cannot compute in bf16", "precision: fp16"),
    "fp8 on a T4": (gpu() + "precision: »fp8", "(SM75) cannot compute in fp8", "precision: int8"),
    "int4 on a T4": (gpu() + "precision: »int4", "(SM75) cannot compute in int4", "precision: int8"),
    "fp8 on an A10": (gpu("A10") + "precision: »fp8", "the A10 (SM86) cannot compute in fp8", "precision: int8"),
    "fp8 on an A100": (gpu("A100") + "precision: »fp8", "A100-40GB (SM80) cannot", "precision: int8"),
    "fp8 on a Jetson": (gpu("Orin NX") + "precision: »fp8", "(SM87) cannot compute in fp8", "precision: int8"),
    "fp32 on SM75 with RTX": (
        gpu(runtime="»tensorrt-rtx"), "the T4 (SM75) cannot compute in fp32 with tensorrt-rtx", "precision: fp16"),
    "fp32 on SM75 among others": (
        gpu("[L4, RTX 2080 Ti]", "»tensorrt-rtx"), "the RTX 2080 Ti (SM75) cannot compute in fp32 with",
        "precision: fp16"),
    "int4 on SM75 with RTX": (rtx() + "precision: »int4", "the T4 (SM75) cannot compute in int4", "precision: int8"),
    "fp8 for several": (
        rtx("[L4, T4]") + "precision: »fp8", "the T4 (SM75) cannot compute in fp8", "precision: int8"),
    "H100 with RTX": (gpu("H100", "»tensorrt-rtx"), "builds nothing for the H100 (SM90)", "use runtime: tensorrt"),
    "B200 with RTX": (gpu("B200", "»tensorrt-rtx"), "builds nothing for the B200 (SM100)", "use runtime: tensorrt"),
    "a Jetson with RTX": (
        gpu("Jetson AGX Orin", "»tensorrt-rtx"), "builds nothing for the Jetson", "use runtime: tensorrt"),
    "H100 among others with RTX": (
        gpu("[L4, H100]", "»tensorrt-rtx") + "precision: fp16", "nothing for the H100 (SM90)", "leave H100 out"),
    "fp4": (gpu("B200") + "precision: »fp4", "cannot be the text 'fp4'", "fp4 is not supported yet"),
    "TF32 as a precision": (
        gpu("A10") + "precision: »TF32", "cannot be the text 'TF32'", "write `precision: fp32` and `tf32: true`"),
    "V100 with a TensorRT that has Volta": (
        gpu("»V100") + "tensorrt: {version: '10.0'}", "no GPU is supported that a later 10.x lacks", "is the T4"),
    "V100": (gpu("»V100"), "TensorRT dropped Volta (SM70) with 10.5", "the nearest that works is the T4"),
    "an unknown GPU": (gpu("»A10H"), "no GPU is known as 'A10H'", "did you mean A10"),
    "CPU in capitals": (gpu("»CPU", "onnxruntime"), "no device is known as 'CPU'", "did you mean cpu?"),
    "cpu among GPUs": (rtx("[T4, »cpu]"), "a cpu has no place in a list of GPUs", "`matrix` varies"),
    "cpu in a list": (gpu("[»cpu]", "onnxruntime"), "a cpu has no place in a list", "device: cpu alone"),
    "one GPU by two names": (rtx("[T4, »Tesla T4]"), "the T4 is named twice", "leave one out"),
    "several for tensorrt": (gpu("»[T4, L4]"), "tensorrt builds for one device", "use runtime: tensorrt-rtx"),
    "several for tensorrt that RTX lacks": (
        gpu("»[L4, H100]"), "builds for one device", "matrix: {target.device: [L4, H100]}"),
    "several for a provider": (
        gpu("»[T4, L4]", "onnxruntime", ", provider: cuda"), "builds for one device", "tensorrt-rtx"),
    "tensorrt on a cpu": (gpu("cpu", "»tensorrt"), "runs on NVIDIA GPUs; the target is a cpu", "runtime: onnxruntime"),
    "tensorrt-rtx on a cpu": (gpu("cpu", "»tensorrt-rtx"), "runs on NVIDIA GPUs; the target is a cpu", ""),
    "cuda on a cpu": (HEAD + "target: {provider: »cuda}", "the target is a cpu", "provider: cpu"),
    "no provider for a GPU": (gpu("»T4", "onnxruntime"), "a provider for GPUs", "say provider: cuda"),
    "the cpu provider for a GPU": (
        gpu(runtime="onnxruntime", rest=", provider: »cpu"), "a provider for GPUs", "say provider: cuda"),
    "a provider for tensorrt": (gpu(rest=", provider: »cuda"), "`provider` is onnxruntime's", "leave it out"),
    "openvino on a GPU": (gpu(runtime="»openvino"), "openvino does not run on the T4", "use tensorrt"),
    "isa on a GPU": (gpu(rest=", isa: »avx2"), "`isa` is about a cpu's instructions", "leave it out"),
    "fp16 on a cpu": (HEAD + "precision: »fp16", "no cpu is built for in fp16", "precision: fp32"),
    "fp16 for several runtimes": (
        HEAD + "precision: »fp16\ntarget: {runtime: auto}", "no cpu is built for in fp16", "precision: fp32"),
    "int4 for one of several runtimes": (
        HEAD + "precision: »int4\ntarget: {runtime: auto}", "no cpu is built for in int4", "runtime: onnxruntime"),
    "a provider for several runtimes": (
        HEAD + "target: {runtime: auto, provider: »cpu}", "`provider` is onnxruntime's", "leave it out"),
    "a provider for several runtimes on a GPU": (
        gpu(runtime="auto", rest=", provider: »cuda"), "`provider` is onnxruntime's", "leave it out"),
    "several kinds of GPUs for several runtimes": (
        gpu("»[T4, L4]", "auto"), "auto builds for one device; 2 are named", "matrix: {target.device: [T4, L4]}"),
    "int8 for one of several runtimes on a GPU": (
        gpu(runtime="auto") + 'precision: »int8\ntensorrt: {version: "10.x"}', "does not compute in int8",
        "runtime: tensorrt"),
    "options of TensorRT for several runtimes on a cpu": (
        HEAD + 'target: {runtime: auto}\ntensorrt: »{version: "10.x"}', "it uses auto", "leave the section out"),
    "an option that TensorRT lacks, for several runtimes": (
        gpu(runtime="auto") + 'precision: fp16\ntensorrt: {version: »"9.x"}', "TensorRT 9.x is not supported",
        "runtime: onnxruntime, provider: cuda"),
    "bf16 on a cpu": (HEAD + "precision: »bf16", "no cpu is built for in bf16", "precision: fp32"),
    "fp8 on a cpu": (HEAD + "precision: »fp8", "no cpu is built for in fp8", "precision: int8"),
    "weights alone for a GPU": (
        gpu("L4") + "precision: int8\nquantize: {weights_only: »true}", "only for a cpu with onnxruntime", "leave"),
    "int4 on a cpu with activations": (
        HEAD + "precision: int4\nquantize: {weights_only: »false}", "int4 on a cpu is for weights alone", "use int8"),
    "a layer in fp16 on a cpu": (
        HEAD + "precision: int8\nquantize: {keep_in: {»fp16: [head]}}", "int8 with onnxruntime keeps no layer in fp16",
        "name the layers under `fp32`"),
    "a layer in fp16 beside bf16": (
        gpu("L4") + "precision: bf16\nquantize: {keep_in: {»fp16: [head]}}",
        "bf16 with tensorrt keeps no layer in fp16",
        "name the layers under `fp32`"),
    "a layer in fp32 where no graph is lowered": (
        HEAD + "target: {runtime: openvino}\nprecision: bf16\nquantize: {keep_in: {»fp32: [head]}}",
        "bf16 with openvino keeps no layer in fp32", "leave `keep_in` out"),
    "samples for weights alone": (
        HEAD + "precision: int4\ncalibrate: »{samples: few.jsonl}", "nothing is calibrated for a cpu", "leave"),
    "int8 on cuda": (
        gpu("L4", "onnxruntime", ", provider: cuda") + "precision: »int8", "the provider cuda does not compute",
        "precision: fp16, or runtime: onnxruntime, provider: tensorrt"),
    "fp8 on cuda": (
        gpu("L4", "onnxruntime", ", provider: cuda") + "precision: »fp8", "the provider cuda does not compute",
        "the nearest that works is precision: fp16"),
    "min over opt": (
        gpu() + "profiles: [{batch: »[8, 1, 16]}]", "out of order: min 8, opt 1, max 16", "min <= opt <= max"),
    "opt over max": (gpu() + "profiles: [{batch: »[1, 32, 8]}]", "out of order", "min <= opt <= max"),
    "min 0": (gpu() + "profiles: [{batch: [»0, 1, 8]}]", "is 0; at least 1 is meant", ""),
    "an unknown axis": (gpu() + "profiles: [{batch: 1, sequense: »16}]", "no axis `sequense`", "`sequence`?"),
    "an axis that is left open": (
        gpu() + "profiles: [»{batch: 1}]", "may have any size",
        "write profiles: [{batch: [1, 1, 1], sequence: [1, 128, 512]}]"),
    "longer than the positions": (
        gpu() + "profiles: [{batch: 1, sequence: »[1, 128, 1024]}]", "1024 tokens are more than", "at most 512"),
    "a shape longer than the positions": (
        gpu() + "bench: {shapes: [{batch: 1, sequence: »600}]}", "600 tokens are more than", "at most 512"),
    "a shape with an unknown axis": (
        gpu() + "bench: {shapes: [{batch: 1, height: »16}]}", "the model has no axis `height`", "sequence"),
    "a shape that leaves an axis open": (
        gpu() + "bench: {shapes: [»{batch: 1}]}", "the model's axis `sequence` may have any size", ""),
    "a shape beyond the profiles": (
        gpu() + TEXT + "bench: {shapes: [»{batch: 64, sequence: 16}]}", "no profile takes batch 64", "widen"),
    "a batch beyond the memory": (
        gpu() + "profiles: [»{batch: [1, 8, 500000], sequence: 512}]", "GiB to work in", "lower the profile's max"),
    "TensorRT 8": (gpu() + "tensorrt: {version: »'8.6'}", "TensorRT 8.6 is not supported", '"10.x"'),
    "TensorRT 12": (gpu() + "tensorrt: {version: »'12.x'}", "TensorRT 12.x is not supported", '"11.x"'),
    "no version": (gpu() + "tensorrt: {version: »newest}", "is no version: 'newest'", '"10.x"'),
    "a TensorRT before Blackwell": (
        gpu("RTX 5090") + "tensorrt: {version: »'10.4'}", "builds nothing for the RTX 5090 (SM120)", '"10.8"'),
    "a TensorRT before the GB300": (
        gpu("GB300") + "tensorrt: {version: »'10.13'}", "builds nothing for the GB300", '"10.14.1"'),
    "a TensorRT before Blackwell, behind ONNX Runtime": (
        gpu("B200", "onnxruntime", ", provider: tensorrt") + "tensorrt: {version: »'10.0'}",
        "TensorRT 10.0 builds nothing for the B200", '"10.8"'),
    "an image before Blackwell, behind ONNX Runtime": (
        gpu("RTX 5090", "onnxruntime", ", provider: tensorrt") + IMAGE % "24.10",
        "TensorRT 10.5 builds nothing for the RTX 5090", "25.03-py3"),
    "an image with TensorRT 8 for Blackwell, behind ONNX Runtime": (
        gpu("B200", "onnxruntime", ", provider: tensorrt") + IMAGE % "23.05",
        "TensorRT 8.6.1.2 builds nothing for the B200", "25.03-py3"),
    "a version and an image before Blackwell": (
        gpu("B200") + "tensorrt: {version: »'10.5'}\n" + (IMAGE % "24.10").replace("»", ""),
        "TensorRT 10.5 builds nothing for the B200", '25.03-py3; and say version: "10.9"'),
    "TensorRT's version for RTX": (
        rtx() + "precision: fp16\ntensorrt: {version: »'10.x'}", "TensorRT-RTX 10.x", '"1.x"'),
    "ampere-plus on a T4": (
        gpu() + "tensorrt: {compatibility: »ampere-plus}", "starts at SM80", "same-compute-capability"),
    "compatibility with RTX": (
        rtx("L4") + "tensorrt: {compatibility: »same-compute-capability}", "has no `compatibility`", "target.device"),
    "version-compatible with RTX": (
        rtx("L4") + "tensorrt: {compatibility: »version-compatible}", "has no `version_compatible`",
        "runtime: tensorrt"),
    "GB200 in an image before it, beside 10.x": (
        gpu("GB200") + "tensorrt: {version: '10.x'}\n" + IMAGE % "24.10", "builds nothing for the GB200", "25.03-py3"),
    "B300 in an image before it, beside 10.x": (
        gpu("B300") + "tensorrt: {version: '10.x'}\n" + IMAGE % "25.06", "builds nothing for the B300", "26.02-py3"),
    "same-compute-capability before 10.9": (
        gpu() + "tensorrt: {version: '10.8', compatibility: »same-compute-capability}",
        "has no `same-compute-capability`", '"10.9" or later'),
    "same-compute-capability in an image before 10.9": (
        gpu() + "tensorrt: {version: '10.x', compatibility: »same-compute-capability}\n"
        + "package: {triton: {image: '24.10'}}",
        "TensorRT 10.5 has no", "the nearest image that is known to have it: 25.03-py3; or leave it out"),
    "tiling before 10.8": (
        gpu() + "tensorrt: {version: '10.7', tiling_optimization_level: »fast}",
        "TensorRT 10.7 has no `tiling_optimization_level`", '"10.8" or later'),
    "tiling in an image before 10.8": (
        gpu() + "tensorrt: {version: '10.x', tiling_optimization_level: »none}\n"
        + "package: {triton: {image: '24.10'}}",
        "TensorRT 10.5 has no `tiling_optimization_level`", "25.03-py3; or leave it out"),
    "64 GiB of workspace on a T4": (
        gpu() + "tensorrt: {memory_pool: {workspace: »64GiB}}", "larger than the memory of the T4", "16 GiB"),
    "too much workspace for the board that A100 means": (
        gpu("A100") + "tensorrt: {memory_pool: {workspace: »60GiB}}", "the memory of the A100-40GB (SM80)", "40 GiB"),
    "strip_plan with a package": (
        gpu() + "tensorrt: {strip_plan: »true}\npackage: {triton: {max_batch_size: 8}}", "cannot be served",
        "--to trt-build"),
    "TensorRT 11 behind ONNX Runtime": (
        gpu(runtime="onnxruntime", rest=", provider: tensorrt") + "tensorrt: {version: »'11.x'}",
        "does not run with TensorRT 11", '"10.x"'),
    "strip_plan with RTX": (rtx("L4") + "tensorrt: {strip_plan: »true}", "has no `strip_plan`", "runtime: tensorrt"),
    "refit with RTX": (rtx("L4") + "tensorrt: {refit: »true}", "has no `refit`", "runtime: tensorrt"),
    "a lean runtime that nobody brings": (
        gpu() + "tensorrt: {exclude_lean_runtime: »true}", "a version-compatible engine", "version_compatible: true"),
    "DLA on a T4": (
        gpu() + "tensorrt: {memory_pool: {dla_local_dram: »1GiB}}", "has no deep-learning accelerator", "leave dla"),
    "DLA with a TensorRT between": (
        gpu("Orin NX") + "tensorrt: {version: '10.9', memory_pool: {dla_local_dram: »1GiB}}", "does not support DLA",
        '"10.7"'),
    "DLA with an image for servers": (
        gpu("Orin NX") + "tensorrt: {memory_pool: {dla_local_dram: 1GiB}}\n" + IMAGE % "25.06", "is for servers",
        "use 25.06-py3-igpu"),
    "TF32 on a T4": (gpu() + "tf32: »true", "the T4 (SM75) has no TF32", "leave it out"),
    "TF32 among others": (
        gpu("[T4, L4]", "tensorrt-rtx") + "precision: fp16\ntf32: »true", "no effect on a model in fp16",
        "precision: fp32"),
    "a rival in TF32 on a T4": (
        gpu() + AGAINST % "precision: »tf32", "the T4 (SM75) has no TF32 for pytorch-tf32", "use precision: fp32"),
    "a rival in TF32 on one of two GPUs": (
        gpu("[T4, L4]", "tensorrt-rtx") + "precision: fp16\n" + AGAINST % "precision: »tf32",
        "the T4 (SM75) has no TF32", "use precision: fp32"),
    "a rival in TF32 on a cpu": (
        HEAD + AGAINST % "precision: »tf32", "a cpu has no TF32 for pytorch-tf32", "use precision: fp32"),
    "a rival with CUDA graphs on a cpu": (
        HEAD + AGAINST % "compile: »reduce-overhead", "would measure what compile: default measures", "use compile"),
    "a compiled ONNX Runtime": (
        HEAD + "bench: {against: [{runtime: onnxruntime, compile: »default}]}", "onnxruntime has no torch.compile",
        "use runtime: pytorch"),
    "a rival compiled for the lengths of samples": (
        HEAD + "bench: {samples: few.jsonl, shapes: [{batch: 8, sequence: samples}], "
        "against: [{runtime: pytorch, compile: »default}]}",
        "the lengths of samples are many shapes", "leave compile out"),
    "TF32 for fp16": (gpu("A10") + "precision: fp16\ntf32: »false", "no effect on a model in fp16", "precision: fp32"),
    "TF32 for a cpu": (HEAD + "tf32: »true", "tf32 has no effect on a cpu", "tf32: null"),
    "no TF32 behind ONNX Runtime": (
        gpu("A10", "onnxruntime", ", provider: tensorrt") + "tf32: »false", "has no option that turns TF32 off",
        "provider: cuda"),
    "TF32 with an old ONNX Runtime": (
        gpu("A10", "onnxruntime", ", provider: cuda") + "tf32: true\n" + IMAGE % "24.02", "has no option for TF32",
        "an image from 24.05 on"),
    "sparse weights on a T4": (
        gpu() + "tensorrt: {sparse_weights: »true}", "sparse weights need SM80", "leave it out"),
    "plugins that are not there": (
        gpu() + "tensorrt: {plugins: [»libnone.so]}", "which is not there", ""),
    "a plugin that is no library": (
        gpu() + "tensorrt: {plugins: [»model/config.json]}", "which is no library", "libplugins.so"),
    "a timing cache that is not there": (
        gpu() + "tensorrt: {timing_cache: »none.cache}", "which is not there", ""),
    "a timing cache with RTX": (
        rtx("L4") + "tensorrt: {timing_cache: »model/config.json}", "has no `timing_cache`", "leave it out"),
    "tensorrt options for a cpu": (HEAD + "tensorrt: »{cuda_graph: true}", "does not use", "tensorrt: null"),
    "tensorrt options for cuda": (
        gpu(runtime="onnxruntime", rest=", provider: cuda") + "tensorrt: »{cuda_graph: true}", "does not use", "null"),
    "builder options for a provider": (
        gpu(runtime="onnxruntime", rest=", provider: tensorrt") + "tensorrt: {refit: »true}", "builds its own",
        "use runtime: tensorrt"),
    "an image with another TensorRT": (
        gpu() + "tensorrt: {version: '10.9'}\n" + IMAGE % "24.05-py3",
        "TensorRT 10.9 builds the engine, and the image 24.05-py3 loads those of 10.0.1.6", 'version: "10.0.1"'),
    "another TensorRT than the image's, behind ONNX Runtime": (
        gpu("A10", "onnxruntime", ", provider: tensorrt") + "tensorrt: {version: '10.3'}\n" + IMAGE % "25.06",
        "says TensorRT 10.3, and the provider builds its engines with 10.11 of the image 25.06-py3",
        'leave `tensorrt.version` out, or say version: "10.11"'),
    "an image with TensorRT 8": (gpu() + IMAGE % "24.02", "of TensorRT 8.6.3.1, which is not supported", "26.02-py3"),
    "an image that is not known": (gpu() + IMAGE % "25.01", "is not known here", "docker run --rm nvcr.io"),
    "an image for language models": (
        gpu() + IMAGE % "25.03-trtllm-python-py3", "has no backend for TensorRT engines", "use 25.03-py3"),
    "an image of a thirteenth month": (gpu() + IMAGE % "27.13", "is none of Triton's", "24.05"),
    "an image that is none": (gpu() + IMAGE % "latest", "is none of Triton's", "24.05"),
    "an image for servers, on a Jetson": (
        gpu("Jetson AGX Orin") + IMAGE % "25.06", "25.06-py3 is for servers, and Jetson AGX Orin is a Jetson",
        "use 25.06-py3-igpu"),
    "an image for Jetsons, on a T4": (
        gpu() + "tensorrt: {version: '10.11'}\n" + IMAGE % "25.06-py3-igpu",
        "25.06-py3-igpu is for Jetsons, and T4 is none", "use 25.06-py3;"),
    "an image for Jetsons, on a CPU": (
        HEAD + IMAGE % "25.06-py3-igpu", "25.06-py3-igpu is for Jetsons, and cpu is none", "use 25.06-py3;"),
    "an image for RTX": (rtx("L4") + IMAGE % "24.05", "loads the engines of TensorRT-RTX", "runtime: tensorrt"),
    "KIND_CPU for a GPU": (gpu() + GROUP % "kind: »KIND_CPU", "this package is for a GPU", "use KIND_GPU"),
    "KIND_GPU for a cpu": (HEAD + GROUP % "kind: »KIND_GPU", "this package is for a cpu", "use KIND_CPU"),
    "a profile that is not there": (gpu() + TEXT + GROUP % "profile: [»'1']", "no profile 1", "leave it out"),
    "a batch that no profile takes": (
        gpu() + TEXT + "package: {triton: {max_batch_size: »64}}", "batches of 64", "max_batch_size: 32"),
    "a batch that the measured server refuses": (
        HEAD + SERVED % "{batch: »9, sequence: 8}", "batch 9 through a server, and the package takes at", "in-process"),
    "a text that the measured server cuts": (
        HEAD + SERVED % "{batch: 1, sequence: »64}", "sequence 64 through a server", "widen a profile"),
    "a batch beyond that of the measured server": (
        HEAD + SERVED % "{batch: »4, sequence: 8}" + "\npackage: {triton: {max_batch_size: 2}}", "at most 2", "widen"),
    "fusing for tensorrt": (gpu() + "steps: {fuse: »{}}", "the step 'fuse' takes no options", "docs/recipe.md"),
    "calibration for a cpu": (
        HEAD.replace("}", ", task: fill-mask}") + "precision: int8\ncalibrate: »{samples: few.jsonl}",
        "nothing is calibrated for a cpu", "leave it out"),
    "validation on calibration": (
        gpu() + "precision: int8\ncalibrate: {samples: »few.jsonl}\nvalidate: {samples: few.jsonl}",
        "validated on the samples that it is calibrated on", "name other samples"),
}  # fmt: skip


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project with a small BERT's config.json and headers: what `check` reads of a model."""
    root = tmp_path_factory.mktemp("project")
    (root / "pyproject.toml").touch()
    (root / "few.jsonl").write_text('{"text": "one"}\n')
    (root / "model").mkdir()
    config = {
        "architectures": ["BertModel"],
        "model_type": "bert",
        "hidden_size": 384,
        "vocab_size": 9,
        "max_position_embeddings": 512,
    }
    (root / "model" / "config.json").write_text(json.dumps(config))
    header = json.dumps({"weight": {"dtype": "F32", "shape": [384, 384], "data_offsets": [0, 4 * 384 * 384]}}).encode()
    weights = len(header).to_bytes(8, "little") + header + bytes(4 * 384 * 384)
    (root / "model" / "model.safetensors").write_bytes(weights)
    return root


def spoilt(text):
    """Return a recipe without its mark, and the line and the column where the mark stood."""
    before, _, after = text.partition("»")
    return before + after, f"{before.count(chr(10)) + 1}:{len(before.rsplit(chr(10), 1)[-1]) + 1}"


@pytest.mark.parametrize(("marked", "what", "nearest"), REFUSED.values(), ids=REFUSED)
def test_it_is_refused(project, marked, what, nearest):
    text, place = spoilt(marked)
    path = project / "recipe.yaml"
    path.write_text(text)
    with pytest.raises(RecipeError) as caught:
        api.check([path], cache=project / "cache")
    error = caught.value
    assert what in error.what
    assert f"{error.position.line}:{error.position.column}" == place
    assert nearest in error.hint
    assert error.hint or "is meant" in error.what
    assert error.exit == 2


def test_there_are_enough():
    assert len(REFUSED) >= 25


def fused(path, domain="com.microsoft"):
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 4])
    graph = helper.make_graph([helper.make_node("FastGelu", ["x"], ["y"], domain=domain)], "g", [x], [y])
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid(domain, 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), str(path))


ONNX = "name: tiny\nmodel: {source: fused.onnx}\ntarget: {device: T4, runtime: %s}\nprofiles: [{batch: [1, 2, 4]}]\n%s"


@pytest.mark.parametrize("runtime", ["tensorrt", "tensorrt-rtx"])
def test_a_graph_that_was_fused_for_onnxruntime_is_refused_by_tensorrt(project, runtime):
    fused(project / "fused.onnx")
    path = project / "recipe.yaml"
    path.write_text(ONNX % (runtime, "precision: fp16"))
    with pytest.raises(RecipeError, match=r"fused for ONNX Runtime.*FastGelu") as caught:
        api.check([path], cache=project / "cache")
    assert str(caught.value.position).endswith("recipe.yaml:2:17")
    assert "provider: cuda" in caught.value.hint
    path.write_text(ONNX % ("onnxruntime, provider: cuda", "precision: fp16"))
    api.check([path], cache=project / "cache")


def test_operators_that_only_another_library_knows_are_refused_as_onnx_runtime_cannot_run_the_original(project):
    fused(project / "fused.onnx", domain="acme")
    path = project / "recipe.yaml"
    path.write_text(ONNX % ("tensorrt", ""))
    with pytest.raises(RecipeError, match="operators of the domain acme: FastGelu"):
        api.check([path], cache=project / "cache")
    (project / "libacme.so").write_bytes(b"\x7fELF")
    path.write_text(ONNX % ("tensorrt", "tensorrt: {plugins: [libacme.so]}"))
    with pytest.raises(RecipeError, match=r"operators that ONNX Runtime \S+ does not know"):
        api.check([path], cache=project / "cache")


def test_check_warns_of_an_image_whose_build_nobody_knows(project):
    (project / "recipe.yaml").write_text(
        gpu() + "tensorrt: {version: '10.11.0.33'}\n" + (IMAGE % "25.06").replace("»", "")
    )
    printed = Program(project)("check", "recipe.yaml", expect=0).stdout
    assert "warning: not verified: TensorRT 10.11.0.33 builds the engine, and the image 25.06-py3 is only" in printed
    (project / "recipe.yaml").write_text(gpu() + "tensorrt: {version: '10.x'}\n" + (IMAGE % "24.05").replace("»", ""))
    assert "not verified" not in Program(project)("check", "recipe.yaml", expect=0).stdout


def test_check_warns_of_an_engine_without_weights_that_no_step_can_run(project):
    (project / "recipe.yaml").write_text(gpu() + "tensorrt: {strip_plan: true}\n")
    printed = Program(project)("check", "recipe.yaml", expect=0).stdout
    assert "`validate` cannot run an engine without its weights (strip_plan): build with --to trt-build" in printed


HEAVY = {"torch", "onnx", "onnxruntime", "numpy", "transformers", "tensorrt", "tensorrt_rtx"}


def spent():
    """Return the CPU seconds of the programs that this test started: other programs on the machine do not count."""
    times = os.times()
    return times.children_user + times.children_system


@pytest.mark.parametrize("name", ["fp8 on a T4", "longer than the positions", "an image with another TensorRT"])
def test_the_program_says_so_no_later_than_that_a_recipe_is_fine(project, name):
    marked, what, nearest = REFUSED[name]
    text, place = spoilt(marked)
    (project / "recipe.yaml").write_text(text)
    (project / "fine.yaml").write_text(gpu() + "precision: fp16\n" + TEXT)
    program = Program(project, anew=True)
    taken, usual = [], []
    for _ in range(3):
        start = spent()
        done = program("check", "recipe.yaml", expect=2)
        taken.append(spent() - start)
        start = spent()
        program("check", "fine.yaml", expect=0)
        usual.append(spent() - start)
    assert f"recipe.yaml:{place}: " in done.stderr
    assert what in done.stderr
    assert nearest in done.stderr
    assert min(taken) < 2 * min(usual)


def test_a_check_loads_nothing_heavy(project):
    (project / "recipe.yaml").write_text(gpu() + "precision: fp16\n" + TEXT)
    assert not HEAVY & Program(project).imports("check", "recipe.yaml")


def test_another_tensorrt_rtx_than_the_one_that_is_installed_is_refused(project, monkeypatch):
    path = project / "recipe.yaml"
    path.write_text(rtx("L4") + 'precision: fp16\ntensorrt: {version: "1.2"}\n')
    monkeypatch.setitem(tools._versions, "tensorrt_rtx", tools.MISSING)
    api.check([path], cache=project / "cache")  # it may be there where the recipe is built
    monkeypatch.setitem(tools._versions, "tensorrt_rtx", "1.7.1.116")
    with pytest.raises(RecipeError, match=r"asks for TensorRT-RTX 1\.2, and 1\.7\.1\.116 is installed") as caught:
        api.check([path], cache=project / "cache")
    assert 'version: "1.7.1.116"' in caught.value.hint


def test_a_graph_that_was_fused_is_refused_by_tensorrt_behind_onnx_runtime_too(project):
    fused(project / "fused.onnx")
    path = project / "recipe.yaml"
    path.write_text(ONNX % ("onnxruntime, provider: tensorrt", "precision: fp16"))
    with pytest.raises(RecipeError, match="fused for ONNX Runtime"):
        api.check([path], cache=project / "cache")
