"""Providers of ONNX Runtime: the one that was asked for does the work, or it is an error."""

from types import SimpleNamespace

import graphs
import onnxruntime
import pytest

from engine.errors import StepError
from engine.kit.onnx import onnx_files
from engine.machine import cuda
from engine.runtimes.devices import CudaGpu
from engine.runtimes.onnxruntime import providers as ort_providers
from engine.runtimes.onnxruntime import session as ort
from engine.runtimes.onnxruntime.providers import CPU

CUDA = ort_providers.cuda(CudaGpu(0, "Tesla T4", 75))

without_gpu = pytest.mark.skipif(bool(cuda.devices()), reason="there is a GPU here, on which the CUDA provider may run")


@pytest.fixture
def layers(tmp_path):
    onnx_files.save(graphs.layers(), tmp_path)
    return tmp_path


@pytest.mark.skipif("CUDAExecutionProvider" in onnxruntime.get_available_providers(), reason="it is there")
def test_a_provider_that_is_not_there_is_an_error_and_no_silent_fallback(layers):
    with pytest.raises(StepError) as caught:
        ort.session(layers, provider=CUDA)
    assert "does not run on CUDAExecutionProvider here" in str(caught.value)
    assert "CPUExecutionProvider" in str(caught.value)
    assert "device: cpu" in str(caught.value)


@without_gpu
@pytest.mark.filterwarnings("ignore:Specified provider")
def test_a_provider_that_drops_out_while_opening_is_an_error(layers, monkeypatch):
    monkeypatch.setattr(
        onnxruntime, "get_available_providers", lambda: ["CUDAExecutionProvider", "CPUExecutionProvider"]
    )
    with pytest.raises(StepError, match="does not run on CUDAExecutionProvider here"):
        ort.session(layers, provider=CUDA)


@without_gpu
@pytest.mark.filterwarnings("ignore:Specified provider")
def test_where_tensorrt_drops_out_the_error_says_why_its_libraries_did_not_load(layers, monkeypatch):
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: [ort_providers.TENSORRT, CPU])
    monkeypatch.setattr(ort.shared_libraries, "load", refuse)
    with pytest.raises(StepError, match=f"does not run on {ort_providers.TENSORRT} here") as caught:
        ort.session(layers, provider=ort_providers.tensorrt(CudaGpu(0, "Tesla T4", 75), {}))
    assert caught.value.facts[1:] == (
        "libnvinfer.so.10: libcudart.so.12: cannot open", "libnvonnxparser.so.10: libcudart.so.12: cannot open",
    )  # fmt: skip


def refuse(name):
    raise OSError(f"{name}: libcudart.so.12: cannot open")


def claims(*parts):
    """Return a session that says it runs on the CUDA provider, and who got which nodes."""
    return SimpleNamespace(
        get_providers=lambda: ["CUDAExecutionProvider", CPU], get_provider_graph_assignment_info=lambda: parts
    )


def part(provider, *operators):
    """Return one entry of what a session tells about who got which nodes."""
    nodes = [SimpleNamespace(op_type=operator) for operator in operators]
    return SimpleNamespace(ep_name=provider, get_nodes=lambda: nodes)


def test_a_provider_that_leaves_the_work_to_the_cpu_is_an_error(layers):
    with pytest.raises(StepError) as caught:
        ort_providers.expect_used(claims(part("CUDAExecutionProvider", "Relu"), part(CPU, "Shape", "Gemm")), CUDA)
    assert "1 on CUDAExecutionProvider, 2 on CPUExecutionProvider" in str(caught.value)
    assert "on the CPU do the work: 1" in str(caught.value)
    with pytest.raises(StepError, match="the session runs on: CPUExecutionProvider"):
        ort_providers.expect_used(ort.session(layers), CUDA)
    with pytest.raises(StepError, match="does not run on CUDAExecutionProvider"):
        ort_providers.expect_used(claims(part(CPU, "Add")), CUDA)


def test_nodes_about_shapes_may_stay_on_the_cpu():
    ort_providers.expect_used(claims(part("CUDAExecutionProvider", "Gemm"), part(CPU, "Shape", "Gather")), CUDA)


@pytest.mark.parametrize(("tf32", "options"), [(None, {}), (True, {"use_tf32": "1"}), (False, {"use_tf32": "0"})])
def test_the_cuda_provider_is_told_of_tf32_what_the_recipe_says(tf32, options):
    gpu = CudaGpu(0, "NVIDIA A10", 86)
    assert ort_providers.cuda(gpu, tf32=tf32).options == {"device_id": "0", **options}
    behind = ort_providers.tensorrt(gpu, {}, tf32=tf32)
    assert behind.options == {"device_id": "0"}
    assert behind.behind == ((ort_providers.CUDA, {"device_id": "0", **options}),)


def test_the_cuda_provider_is_told_to_sum_in_fp32_for_normalizations_in_fp16_alone():
    strict = {"enable_skip_layer_norm_strict_mode": "1"}
    gpu = CudaGpu(0, "NVIDIA A10", 86)
    assert ort_providers.needs_wide_sums(graphs.residual("float16"))
    assert not ort_providers.needs_wide_sums(graphs.residual("float32"))
    assert ort_providers.cuda(gpu, tf32=False, wide_sums=True).options == {"device_id": "0", "use_tf32": "0", **strict}


def test_the_assignment_of_nodes_is_told_as_the_check_reads_it(layers):
    settings = onnxruntime.SessionOptions()
    settings.add_session_config_entry(ort_providers.RECORD, "1")
    opened = onnxruntime.InferenceSession(str(layers / "model.onnx"), settings, providers=[CPU])
    node_types = {
        p.ep_name: [node.op_type for node in p.get_nodes()] for p in opened.get_provider_graph_assignment_info()
    }
    assert set(node_types) == {CPU}
    assert node_types[CPU]


def test_a_session_is_opened_with_the_wanted_provider_first_and_the_cpu_last():
    gpu = CudaGpu(1, "Tesla T4", 75)
    assert ort_providers.cuda(gpu).listed() == [("CUDAExecutionProvider", {"device_id": "1"}), (CPU, {})]
    assert ort_providers.cuda(gpu, graph=True).options == {"device_id": "1", "enable_cuda_graph": "1"}
    listed = ort_providers.tensorrt(gpu, {"trt_engine_cache_enable": "1"}).listed()
    assert listed == [
        ("TensorrtExecutionProvider", {"device_id": "1", "trt_engine_cache_enable": "1"}),
        ("CUDAExecutionProvider", {"device_id": "1"}),
        (CPU, {}),
    ]


@pytest.mark.parametrize(
    ("versions", "takes"),
    [
        (("1.18.0", "1.18.1", "1.22.0", "1.24.4", "1.26.0", "1.26"), True),
        (("1.16.3", "1.17.1", "1.27.0", "1.28.0", "1.31.1", "1.32.0", "2.0"), False),
    ],
)
def test_some_versions_build_strongly_typed_networks_and_all_others_need_options(versions, takes):
    assert [ort_providers.takes_types(version) for version in versions] == [takes] * len(versions)


@pytest.mark.parametrize(("release", "takes"), [("23.05", False), ("24.02", False), ("24.05", True), ("26.08", True)])
def test_images_of_triton_with_tensorrt_10_or_later_take_the_precision_from_the_graph(release, takes):
    assert ort_providers.image_takes_types(release) is takes
