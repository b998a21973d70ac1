"""Files that NVIDIA Model Optimizer quantized are taken as they are: by the real TensorRT-RTX, and on a fake T4."""

import shutil
from pathlib import Path

import pytest
import typed_graphs
from fake_t4 import FakeT4
from program import Program

pytestmark = pytest.mark.slow

FILES = Path(typed_graphs.__file__).parent / "modelopt"
PRODUCTS = {"int8": "2 int8", "fp8": "2 fp8", "int4": "2 fp32"}
"""Precision -> the products that the engine's own text names; with weights alone in int4, the rest is in fp32."""


def project(folder, name, precision, *, device="L4", runtime="tensorrt-rtx"):
    (folder / "pyproject.toml").write_text("")
    shutil.copy(FILES / f"{name}.onnx", folder / "model.onnx")
    (folder / "r.yaml").write_text(
        f"name: mlp\nmodel: {{source: model.onnx}}\ntarget: {{device: {device}, runtime: {runtime}}}\n"
        f"precision: {precision}\nprofiles: [{{batch: [1, 2, 4]}}]\n"
    )
    return folder


@pytest.mark.parametrize("name", ["fp8_fp32", "int8", "int8_fp32", "fp8", "int4", "int4_nvidia_rtn", "int4_nvidia"])
@pytest.mark.whole("test_rtx.py takes the same file")
def test_tensorrt_rtx_computes_in_the_types_of_the_file(name, tmp_path):
    pytest.importorskip("tensorrt_rtx", reason="the extra `rtx` is not installed: Linux on x86_64 has it")
    precision = name.partition("_")[0]
    done = Program(project(tmp_path, name, precision))("build", "r.yaml", expect=3)
    assert f"{precision}: 2 of 2 MatMul" in done.stdout
    assert f"products: {PRODUCTS[precision]}," in done.stdout
    assert f"multiplications: 100% in {precision}" in done.stdout


@pytest.mark.whole
@pytest.mark.parametrize("name", ["int8", "int8_fp32"])
def test_on_a_t4_int8_goes_through_to_the_package(name, tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    project(folder, name, "int8", device="T4", runtime="tensorrt")
    machine = FakeT4(folder, tmp_path / "machine")
    done = machine("build", "r.yaml", expect=0)
    assert "int8: 2 of 2 MatMul" in done.stdout
    assert list((folder / "build").rglob("config.pbtxt"))


def test_on_a_t4_fp8_is_refused_with_what_works(tmp_path):
    done = Program(project(tmp_path, "fp8", "int8", device="T4", runtime="tensorrt"))("check", "r.yaml", expect=2)
    assert "r.yaml:2:17: the model is quantized to fp8, in which the T4 (SM75) cannot compute" in done.stderr
    assert "hint: quantize the original to int8, or build for a GPU that has it, such as L4" in done.stderr


@pytest.mark.whole
def test_on_a_cpu_fp8_goes_through_to_a_package_at_the_level_that_opens_it(tmp_path):
    done = Program(project(tmp_path, "fp8_fp32", "fp32", device="cpu", runtime="onnxruntime"))("build", "r.yaml")
    assert "cosine mean 1, worst 1" in done.stdout
    (config,) = (tmp_path / "build").rglob("config.pbtxt")
    assert "level: -1" in config.read_text()  # Triton's number for `basic`
