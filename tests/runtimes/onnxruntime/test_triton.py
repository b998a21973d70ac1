"""How Triton's ONNX Runtime backend serves a built model: files, level, accelerator."""

from pathlib import Path

import executions
import graphs
import pytest

from engine.recipe.values import Range
from engine.runtimes.backends import Backend
from engine.runtimes.onnxruntime import triton

STRICT = "enable_skip_layer_norm_strict_mode"
BATCHES = ({"batch": Range(min=1, opt=8, max=32)},)


def test_a_model_for_a_cpu_is_served_by_triton_s_backend_with_its_files(tmp_path):
    model = graphs.write(tmp_path / "model", graphs.layers())
    served = triton.served(model, executions.execution(), tmp_path)
    assert (served.backend, served.level) == (Backend.ONNXRUNTIME, "all")
    assert (served.on_gpu, served.accelerator) == (False, None)
    assert set(served.files) == {path.name for path in model.iterdir()}
    assert list(served.inputs) == ["x"]


def test_fp8_on_a_cpu_is_served_at_the_level_at_which_it_was_validated(tmp_path):
    source = Path(graphs.__file__).parent / "modelopt" / "fp8_fp32.onnx"
    (tmp_path / "model.onnx").write_bytes(source.read_bytes())
    assert triton.served(tmp_path, executions.execution(), tmp_path).level == "basic"
    assert triton.served(tmp_path, executions.execution("cuda"), tmp_path).level == "all"


@pytest.mark.parametrize(("dtype", "parameters"), [("float16", {STRICT: "1"}), ("float32", {})])
def test_the_cuda_provider_of_the_server_is_told_of_tf32_and_of_sums_in_fp32(tmp_path, dtype, parameters):
    model = graphs.write(tmp_path / "model", graphs.residual(dtype))
    accelerator = triton.served(model, executions.execution("cuda"), tmp_path).accelerator
    assert (accelerator and accelerator("m")) == (("cuda", parameters) if parameters else None)
    assert triton.served(model, executions.execution(), tmp_path).accelerator is None
    both = triton.served(model, executions.execution("cuda", tf32=False), tmp_path).accelerator("m")
    assert both == ("cuda", {"use_tf32": "0", **parameters})


def test_the_tensorrt_provider_s_options_have_triton_s_names_and_name_no_folder_whose_engines_the_server_would_run(
    tmp_path,
):
    model = graphs.write(tmp_path / "model", graphs.layers())
    execution = executions.execution("tensorrt", workspace=7, profiles=BATCHES)
    name, parameters = triton.served(model, execution, tmp_path).accelerator("m")
    assert name == "tensorrt"
    assert parameters == {
        "max_workspace_size_bytes": "7",
        "trt_profile_max_shapes": "x:32x64",
        "trt_profile_min_shapes": "x:1x64",
        "trt_profile_opt_shapes": "x:8x64",
    }
