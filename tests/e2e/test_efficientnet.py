"""The EfficientNetV2 recipe that ships: checked, built for a CPU from a fake hub, and clear where there is no hub."""

import importlib.util
import json
import os

import onnx
import pytest
import timm_here
from fake_hub import FIRST, FakeHub

RECIPE = "recipes/efficientnetv2.yaml"
REPOSITORY = "timm/tf_efficientnetv2_s.in21k_ft_in1k"
ON_CPU = "efficientnetv2-cpu-onnxruntime-fp32"
ON_A_T4 = ("tensorrt-fp32", "tensorrt-fp16", "onnxruntime-tensorrt-fp32", "onnxruntime-cuda-fp32")


@pytest.fixture
def seeing(timm, timm_folders):
    """Return a program that can import timm."""

    def with_timm(program):
        before = [path] if (path := program.environment.get("PYTHONPATH")) else []
        program.environment["PYTHONPATH"] = os.pathsep.join([*timm_folders, *before])
        return program

    return with_timm


@pytest.fixture
def serve(shipped, tmp_path):
    """Put a model into the only hub that the program knows."""
    with FakeHub() as hub:
        shipped.environment |= {"HF_ENDPOINT": hub.endpoint, "HF_HOME": str(tmp_path / "hub")}

        def put(architecture, **options):
            checkpoint = timm_here.checkpoint(tmp_path / "model", architecture, **options)
            files = {path.name: path.read_bytes() for path in checkpoint.iterdir()}
            hub.repositories[REPOSITORY] = {FIRST: files}

        yield put


def test_every_variant_of_the_recipe_is_sound(shipped, seeing):
    seeing(shipped)
    output = shipped("check", RECIPE, expect=0).stdout
    for variant in (ON_CPU, *(f"efficientnetv2-T4-{name}" for name in ON_A_T4)):
        assert f"{variant} is fine" in output


def test_a_hub_that_cannot_be_reached_is_one_clear_error(shipped, tmp_path):
    shipped.environment |= {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(tmp_path / "hub")}
    done = shipped("build", RECIPE, expect=1)
    assert done.stderr.count(f"hf:{REPOSITORY} could not be fetched") == 1  # by five variants
    assert done.stderr.count(" fetch above") == len(ON_A_T4)
    assert "127.0.0.1:9" in done.stderr


@pytest.mark.slow
@pytest.mark.whole
def test_the_real_architecture_becomes_a_package_on_a_cpu(shipped, serve, seeing):
    serve("tf_efficientnetv2_s", size=160)
    seeing(shipped)
    # Fewer pixels and images: at 384 x 384, each call of 32 takes a small machine seconds.
    small = ["--only", "target.device=cpu", "--set", "preprocess.size=160"]
    small += ["--set", "bench.shapes=[{batch: 1}, {batch: 2}]", "--set", "profiles=[{batch: [1, 2, 32]}]"]
    states = shipped.states(RECIPE, *small)
    assert states["package"] == "built"
    shown = shipped.shown(RECIPE, *small)
    assert shown["validation"]["random"] is True
    assert shown["validation"]["cosine"]["worst"] > 0.99999
    assert shipped.states(RECIPE, *small) == dict.fromkeys(states, "cached")
    _is_a_package_of_images(shipped.folder / "build" / ON_CPU, size=160)


@pytest.mark.slow
@pytest.mark.whole
def test_tensorrt_rtx_builds_its_engine_for_a_t4_in_fp16_without_one(shipped, serve, seeing):
    if importlib.util.find_spec("tensorrt_rtx") is None:
        pytest.skip("tensorrt-rtx-cu12 is not installed (the extra `rtx`): no engine can be built")
    serve("tf_efficientnetv2_s", size=384)
    seeing(shipped)
    words = ["--only", "precision=fp16", "--set", "target.runtime=tensorrt-rtx"]
    words += ["--set", "profiles=[{batch: [1, 1, 32]}]"]
    states = shipped.states(RECIPE, *words, expect=3)
    assert (states["validate-onnx"], states["trt-build"], states["validate"]) == ("built", "built", "waiting")
    [passport] = (shipped.folder / "cache").rglob("passport.json")
    passport_fields = json.loads(passport.read_text())
    assert passport_fields["sms"] == [75]
    assert passport_fields["profiles"][0]["images"]["max"] == [32, 384, 384, 3]


def _is_a_package_of_images(place, *, size):
    model = place / "efficientnetv2"
    graph = onnx.load(model / "1" / "model.onnx").graph
    [given] = graph.input
    sides = [dim.dim_value or dim.dim_param for dim in given.type.tensor_type.shape.dim]
    assert (given.name, sides) == ("images", ["batch", size, size, 3])
    config = (model / "config.pbtxt").read_text()
    assert "max_batch_size: 32" in config
    around = ["efficientnetv2", *(f"efficientnetv2_{part}" for part in ("image", "postprocess", "preprocess"))]
    assert sorted(path.name for path in place.iterdir() if path.is_dir()) == around  # nothing about text


@pytest.mark.whole
def test_pytorch_is_a_rival_of_an_image_model(empty, seeing):
    timm_here.checkpoint(empty.folder / "model", "test_efficientnet", size=64)
    seeing(empty)
    (empty.folder / "r.yaml").write_text(
        "name: m\nmodel: {source: model, task: image-classification}\npreprocess: {size: 64, layout: NHWC}\n"
        "bench: {shapes: [{batch: 2}], against: [{runtime: pytorch}]}\n"
    )
    assert empty.states("r.yaml")["bench"] == "built"
    shown = empty.shown("r.yaml")
    assert "pytorch-fp32" in json.dumps(shown)
