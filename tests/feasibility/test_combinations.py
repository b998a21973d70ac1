"""GPU x precision x TensorRT x image x option: each combination is accepted or refused as its source says.

A row is here only where its verdict follows from the document in SOURCES that it names. Where documents contradict each
other, or nobody wrote the verdict down, there is no row: GB300 with TensorRT 10.13 (the release notes of DGX GB300 say
that it works, those of TensorRT 10.14.1 that they added it), int8 with activations on SM75 with TensorRT-RTX, int4 on
SM75 with TensorRT, and every combination with a driver.
"""

import pytest

from engine import feasibility
from engine.errors import RecipeError
from engine.recipe.load import load

_DOCS = "https://docs.nvidia.com/deeplearning"
SOURCES = {
    "rtx-1.5": f"{_DOCS}/tensorrt-rtx/latest/getting-started/support-matrix-1/1.5.html",
    "llm": "https://nvidia.github.io/TensorRT-LLM/reference/support-matrix.html",  # by SM: precisions with TensorRT
    "10.8": f"{_DOCS}/tensorrt/latest/getting-started/release-notes-10/10.8.0.html",  # Blackwell
    "10.14.1": f"{_DOCS}/tensorrt/latest/getting-started/release-notes-10/10.14.1.html",  # DGX Spark
    "10.5": f"{_DOCS}/tensorrt/archives/tensorrt-1050/pdf/TensorRT-Release-Notes.pdf",  # Volta dropped
    "versions": f"{_DOCS}/tensorrt/latest/inference-library/advanced.html",  # "Version Compatibility"
    "build": "https://developer.nvidia.com/docs/drive/drive-os/7.0.3/public/drive-os-tensorrt-release-notes/"
             "release-properties.html",  # major, minor, patch and build must match
    "level": "https://docs.rs/trtx-sys/latest/trtx_sys/real_bindings/nvinfer1/enum.HardwareCompatibilityLevel.html",
    "jetpack": f"{_DOCS}/tensorrt/11.4.1/api/migration/tensorrt-10x-to-11x-jetson.html",  # and of 11.2.1 to 11.4.0
    "sparsity": "https://developer.nvidia.com/blog/accelerating-inference-with-sparsity-using-ampere-and-tensorrt",
    "bindings": "https://pypi.org/project/tensorrt/#history",  # names in the bindings of each release
    "flavours": "https://github.com/triton-inference-server/server/releases/tag/v2.41.0",  # -igpu is for Jetsons
    "cuda-provider": "https://onnxruntime.ai/docs/execution-providers/CUDA-ExecutionProvider.html",  # use_tf32
    "trt-provider": "https://github.com/microsoft/onnxruntime/issues/26029",  # the TensorRT provider has no use_tf32
    "tf32": "https://github.com/microsoft/onnxruntime/pull/19357",  # after 1.17: image 24.04 has 1.17.3, 24.05 1.18.0
    "cuda-types": "https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/compute-capabilities.html",
    "mig": "https://docs.nvidia.com/datacenter/tesla/mig-user-guide/supported-mig-profiles.html",
    "backends": "https://github.com/triton-inference-server/tensorrtllm_backend/issues/401",
}  # fmt: skip
"""Short name -> address. Which TensorRT an image has is from `SOURCES` of engine/runtimes/triton_images.py."""


def recipe(device, precision="fp16", *, version="", image="", runtime="tensorrt", options=""):
    """Return a recipe; » in an argument marks the place of the error."""
    fields = ", ".join(filter(None, [f"version: {mark(version)}" if version else "", options]))
    package = f"package: {{triton: {{image: {mark(image)}}}}}\n" if image else ""
    target = f"target: {{device: {device}, runtime: {runtime}}}\n"
    return f"name: tiny\nmodel: {{source: 'hf:a/b'}}\n{target}precision: {precision}\ntensorrt: {{{fields}}}\n{package}"


def mark(value):
    """Quote a value, and keep its mark before the quote."""
    return f"»'{value[1:]}'" if value.startswith("»") else f"'{value}'"


def rtx(device, precision):
    return recipe(device, precision, runtime="tensorrt-rtx")


def ort(device, precision, provider, *, tf32="", **rest):
    """Return a recipe for ONNX Runtime."""
    text = recipe(device, precision, runtime=f"onnxruntime, provider: {provider}", **rest)
    return text + (f"tf32: {tf32}\n" if tf32 else "")


# Rows: the source, and the recipe.
ACCEPTED = [
    # TensorRT-RTX: GPU x precision
    *(("rtx-1.5", rtx("RTX 2080 Ti", each)) for each in ("fp16",)),
    *(("rtx-1.5", rtx("RTX 3090", each)) for each in ("fp32", "fp16", "bf16", "int4")),
    *(("rtx-1.5", rtx("RTX 4090", each)) for each in ("fp32", "fp16", "bf16", "int4", "fp8")),
    *(("rtx-1.5", rtx("RTX 5090", each)) for each in ("fp32", "fp16", "bf16", "int4", "fp8")),
    *(("rtx-1.5", rtx("GB10", each)) for each in ("fp32", "fp16", "bf16", "int4", "fp8")),
    ("rtx-1.5", rtx("[RTX 3090, RTX 4090, RTX 5090]", "bf16")),
    ("rtx-1.5", rtx("[RTX 4090, RTX 5090]", "fp8")),
    # TensorRT: GPU x precision
    *(("llm", recipe("T4", each)) for each in ("fp32", "fp16", "int8")),
    *(("llm", recipe("A10", each)) for each in ("fp32", "fp16", "bf16", "int8", "int4")),
    *(("llm", recipe("A100-80GB", each)) for each in ("bf16", "int4")),
    *(("llm", recipe("L4", each)) for each in ("fp16", "bf16", "int8", "int4", "fp8")),
    *(("llm", recipe("H100", each)) for each in ("fp16", "bf16", "int8", "int4", "fp8")),
    *(("llm", recipe(device, "fp8")) for device in ("H20", "H800 NVL", "L20")),
    *(("llm", recipe(device, "int8")) for device in ("T4G", "GTX 1630", "A800")),
    # TF32: GPU x provider x image
    ("cuda-provider", ort("A10", "fp32", "cuda", tf32="true")),
    ("cuda-types", ort("T4", "fp32", "cuda", tf32="false")),
    ("cuda-types", ort("RTX 2080 Ti", "fp32", "tensorrt", tf32="false", image="24.02")),  # nothing to be told
    ("tf32", ort("A800", "fp32", "cuda", tf32="false", image="24.05")),
    ("trt-provider", ort("L20", "fp32", "tensorrt", tf32="true")),
    # GPU x TensorRT
    ("10.8", recipe("RTX 5080", version="10.8")),
    ("10.8", recipe("B200", version="10.9.0.34")),
    ("10.14.1", recipe("GB10", version="10.14.1.48")),
    ("10.14.1", recipe("B300", "fp8", version="10.15.1.29", image="26.02")),
    ("jetpack", recipe("Jetson AGX Orin", version="11.4.1", options="memory_pool: {dla_local_dram: 1GiB}")),
    ("jetpack", recipe("Jetson AGX Orin", version="11.x")),
    ("jetpack", recipe("Jetson Orin Nano", version="11.4")),  # 11.4.1 is one
    ("jetpack", recipe("L4", version="11.3")),
    # TensorRT x image
    ("build", recipe("T4", version="10.0.1.6", image="24.05")),
    ("build", recipe("T4", version="10.x", image="24.05")),
    ("build", recipe("L4", version="10.0.1", image="24.05")),
    ("build", recipe("A10", version="10.5.0", image="24.10")),
    ("build", recipe("T4", version="10.11.0.33", image="25.06")),
    ("build", recipe("L4", version="10.15.1.29", image="26.02")),
    ("versions", recipe("T4", version="10.9", image="25.06", options="version_compatible: true")),
    ("versions", recipe("T4", version="10.0.1.6", image="26.02", options="version_compatible: true")),
    ("10.8", recipe("B200", version="10.x", image="25.03")),
    # options x GPU x TensorRT
    ("bindings", recipe("T4", version="10.9", options="compatibility: same-compute-capability")),
    ("bindings", recipe("A10", version="10.8", options="tiling_optimization_level: full")),
    ("bindings", recipe("T4", version="11.0", options="tiling_optimization_level: fast")),
    ("level", recipe("A10", options="compatibility: ampere-plus")),
    ("level", recipe("H100", version="10.0.1", options="compatibility: ampere-plus")),
    ("sparsity", recipe("A30", options="sparse_weights: true")),
]  # fmt: skip

# Rows: the source, the recipe with » at the wrong place, a part of the error, a part of the hint, and the change that
# the hint proposes, after which the recipe is accepted (None where another GPU or image flavour is the only way).
REFUSED = [
    # TensorRT-RTX: GPU x precision
    ("rtx-1.5", rtx("RTX 2080 Ti", "»bf16"), "(SM75) cannot compute in bf16", "precision: fp16", ("bf16", "fp16")),
    ("rtx-1.5", rtx("RTX 3090", "»fp8"), "(SM86) cannot compute in fp8", "precision: int8", ("fp8", "int8")),
    ("rtx-1.5", rtx("[RTX 3090, RTX 4090]", "»fp8"), "the RTX 3090 (SM86) cannot", "precision: int8", ("fp8", "int8")),
    ("rtx-1.5", rtx("[RTX 4090, RTX 2080 Ti]", "»bf16"), "the RTX 2080 Ti (SM75)", "precision: fp16",
     ("bf16", "fp16")),
    # TensorRT: GPU x precision
    ("llm", recipe("RTX 2080 Ti", "»bf16"), "(SM75) cannot compute in bf16", "precision: fp16", ("bf16", "fp16")),
    ("llm", recipe("Quadro RTX 6000", "»fp8"), "(SM75) cannot compute in fp8", "precision: int8", ("fp8", "int8")),
    ("llm", recipe("GTX 1660", "»bf16"), "(SM75) cannot compute in bf16", "precision: fp16", ("bf16", "fp16")),
    ("llm", recipe("A30", "»fp8"), "(SM80) cannot compute in fp8", "precision: int8", ("fp8", "int8")),
    ("llm", recipe("A800", "»fp8"), "(SM80) cannot compute in fp8", "precision: int8", ("fp8", "int8")),
    ("llm", recipe("A2", "»fp8"), "(SM86) cannot compute in fp8", "precision: int8", ("fp8", "int8")),
    ("llm", recipe("RTX 3090", "»fp8"), "(SM86) cannot compute in fp8", "precision: int8", ("fp8", "int8")),
    ("llm", recipe("GTX 1630", "»bf16"), "(SM75) cannot compute in bf16", "precision: fp16", ("bf16", "fp16")),
    ("llm", recipe("A800-40GB", "»fp8"), "(SM80) cannot compute in fp8", "precision: int8", ("fp8", "int8")),
    # TF32: GPU x provider x image
    ("cuda-types", ort("T4G", "fp32", "cuda", tf32="»true"), "the T4G (SM75) has no TF32", "leave it out",
     ("tf32: true", "")),
    ("trt-provider", ort("A10", "fp32", "tensorrt", tf32="»false"), "no option that turns TF32 off", "provider: cuda",
     ("provider: tensorrt", "provider: cuda")),
    ("tf32", ort("A10", "fp32", "cuda", tf32="false", image="»24.02"), "has no option for TF32", "from 24.05 on",
     ("24.02", "24.05")),
    # parts of GPUs
    ("mig", recipe("»'A100-40GB MIG 9g.5gb'"), "has no part MIG 9g.5gb", "nvidia-smi mig -lgip", ("9g.5gb", "1g.5gb")),
    ("mig", recipe("»'L4 MIG 1g.5gb'"), "the L4 cannot be divided", "name the whole L4", ("'L4 MIG 1g.5gb'", "L4")),
    # GPU x TensorRT
    ("10.5", recipe("»TITAN V"), "TensorRT dropped Volta (SM70) with 10.5", "the nearest that works", None),
    ("10.8", recipe("RTX 5080", version="»10.7"), "builds nothing for the RTX 5080", '"10.8"', ("10.7", "10.8")),
    ("10.8", recipe("RTX 5070 Laptop", version="»10.0.1"), "builds nothing for the RTX 5070", '"10.8"',
     ("10.0.1", "10.8")),
    ("10.8", recipe("B200", version="»10.7.0"), "builds nothing for the B200", '"10.8"', ("10.7.0", "10.8")),
    ("10.14.1", recipe("GB10", version="»10.13.3.9"), "builds nothing for the GB10", '"10.14.1"',
     ("10.13.3.9", "10.14.1")),
    # GPU x image
    ("10.8", recipe("RTX 5090", version="10.x", image="»24.10"), "builds nothing for the RTX 5090", "25.03-py3",
     ("24.10", "25.03-py3")),
    ("10.8", recipe("B200", image="»24.05"), "builds nothing for the B200", "25.03-py3", ("24.05", "25.03-py3")),
    ("10.14.1", recipe("GB10", image="»25.06"), "builds nothing for the GB10", "26.02-py3", ("25.06", "26.02-py3")),
    ("jetpack", recipe("Jetson AGX Orin", version="»11.3"), "there is no TensorRT 11.3", '"10.3"', ("11.3", "10.3")),
    ("jetpack", recipe("Jetson Orin NX", version="»11.2.1.2"), "there is no TensorRT 11.2.1.2", '"11.4.1"',
     ("11.2.1.2", "11.4.1")),
    ("jetpack", recipe("Jetson Thor", version="»11.4.0"), "there is no TensorRT 11.4.0", '"10.x"', ("11.4.0", "10.x")),
    ("jetpack", recipe("Orin NX", version="11.4.1", options="memory_pool: {dla_local_dram: »1GiB}"), "has no DLA on",
     '"10.7"', ("11.4.1", "10.7")),
    # TensorRT x image
    ("build", recipe("T4", version="10.0.1.7", image="»24.05"), "loads those of 10.0.1.6", 'version: "10.0.1"',
     ("10.0.1.7", "10.0.1")),
    ("build", recipe("T4", version="10.1.0", image="»24.05"), "loads those of 10.0.1.6", 'version: "10.0.1"',
     ("10.1.0", "10.0.1")),
    ("build", recipe("T4", version="11.x", image="»25.06"), "loads those of 10.11", 'version: "10.11"',
     ("11.x", "10.11")),
    ("build", recipe("A10", version="10.4.0", image="»24.10"), "loads those of 10.5", 'version: "10.5"',
     ("10.4.0", "10.5")),
    ("build", recipe("L4", version="10.13.0.35", image="»25.06"), "loads those of 10.11", 'version: "10.11"',
     ("10.13.0.35", "10.11")),
    ("build", recipe("L4", version="10.8.0.43", image="»25.03"), "loads those of 10.9", 'version: "10.9"',
     ("10.8.0.43", "10.9")),
    ("build", recipe("H100", version="10.16.0.72", image="»26.02"), "loads those of 10.15.1", 'version: "10.15.1"',
     ("10.16.0.72", "10.15.1")),
    ("versions", recipe("A10", version="10.6.0", image="»24.10", options="version_compatible: true"),
     "loads those of 10.5", 'version: "10.5"', ("10.6.0", "10.5")),
    ("versions", recipe("T4", version="10.15", image="»25.06", options="version_compatible: true"),
     "loads those of 10.11", "26.02-py3", ("25.06", "26.02-py3")),
    ("flavours", recipe("T4", image="»25.06-py3-igpu"), "is for Jetsons, and T4 is none", "use 25.06-py3",
     ("25.06-py3-igpu", "25.06-py3")),
    ("flavours", recipe("Jetson AGX Orin", image="»25.06"), "is for servers", "use 25.06-py3-igpu", None),
    ("backends", recipe("H100", image="»24.10-vllm-python-py3"), "no backend for TensorRT engines", "use 24.10-py3",
     ("24.10-vllm-python-py3", "24.10-py3")),
    # options x GPU x TensorRT
    ("bindings", recipe("A10", version="10.7", options="tiling_optimization_level: »full"), "10.7 has no", '"10.8"',
     ("10.7", "10.8")),
    ("bindings", recipe("L4", version="10.0.1", options="compatibility: »same-compute-capability"), "10.0.1 has no",
     '"10.9"', ("10.0.1", "10.9")),
    ("level", recipe("RTX 2080 Ti", options="compatibility: »ampere-plus"), "starts at SM80", "same-compute-capability",
     ("ampere-plus", "same-compute-capability")),
    ("sparsity", recipe("Quadro RTX 8000", options="sparse_weights: »true"), "need SM80", "leave it out",
     ("sparse_weights: true", "")),
]  # fmt: skip


def checked(folder, text):
    path = folder / "recipe.yaml"
    path.write_text(text)
    (one,) = load(path)
    feasibility.check(one)


def test_there_are_seventy_and_each_has_its_source():
    texts = [row[1].replace("»", "") for row in (*ACCEPTED, *REFUSED)]
    assert len(set(texts)) == len(texts) >= 70
    assert {row[0] for row in (*ACCEPTED, *REFUSED)} == SOURCES.keys()


@pytest.mark.parametrize(("source", "text"), ACCEPTED)
def test_it_is_accepted(tmp_path, source, text):
    checked(tmp_path, text)


@pytest.mark.parametrize("row", REFUSED)
def test_it_is_refused_at_its_place_and_the_nearest_is_accepted(tmp_path, row):
    _, marked, what, nearest, change = row
    before, _, after = marked.partition("»")
    with pytest.raises(RecipeError) as caught:
        checked(tmp_path, before + after)
    error = caught.value
    place = f"{before.count(chr(10)) + 1}:{len(before.rsplit(chr(10), 1)[-1]) + 1}"
    assert f"{error.position.line}:{error.position.column}" == place
    assert what in error.what
    assert nearest in error.hint
    if change is not None:
        checked(tmp_path, (before + after).replace(*change))
