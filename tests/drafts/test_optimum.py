"""Real commands of optimum-cli: their settings as fields of a recipe, and a name for each one without a field."""

import pytest

from engine.drafts import optimum
from engine.errors import UsageError

# The place of each command, the command, its model, the fields of the recipe, and the settings without a field.
COMMANDS = (
    (
        "https://github.com/huggingface/setfit/issues/467",
        (
            "!optimum-cli export onnx \\\n  --model moshew/bge-small-en-v1.5_setfit-sst2-english \\\n  "
            "--task feature-extraction \\\n  --optimize O4 \\\n  --device cuda \\\n  bge_auto_opt_O4"
        ),
        "moshew/bge-small-en-v1.5_setfit-sst2-english",
        {"target.runtime": "onnxruntime", "model.task": "feature-extraction"},
        ["--optimize O4", "--device cuda", "bge_auto_opt_O4"],
    ),
    (
        "https://github.com/elixir-nx/ortex/issues/16",
        "!optimum-cli export onnx -m intfloat/e5-small-v2 --optimize O2 e5-small-v2-onnx --opset 18",
        "intfloat/e5-small-v2",
        {"target.runtime": "onnxruntime"},
        ["--optimize O2", "e5-small-v2-onnx", "--opset 18"],
    ),
    (
        "https://github.com/ZhengPeng7/BiRefNet/issues/67",
        "optimum-cli export onnx  --model ZhengPeng7/BiRefNet --trust-remote-code --framework pt new_onnx",
        "ZhengPeng7/BiRefNet",
        {"target.runtime": "onnxruntime"},
        ["--trust-remote-code", "--framework pt", "new_onnx"],
    ),
    (
        "https://github.com/huggingface/optimum/issues/763",
        "optimum-cli onnxruntime optimize --onnx_model ../output/all-MiniLM-L6-v2/model.onnx -o output/optimized",
        "../output/all-MiniLM-L6-v2/model.onnx",
        {"target.runtime": "onnxruntime"},
        ["-o output/optimized"],
    ),
    (
        "https://github.com/huggingface/optimum/issues/2371",
        (
            "optimum-cli export onnx --model soob3123/amoral-gemma3-12B-v2 --monolith --task image-to-text "
            r".\amoral-gemma3-12B-v2-onnx"
        ),
        "soob3123/amoral-gemma3-12B-v2",
        {"target.runtime": "onnxruntime"},
        ["--monolith", "--task image-to-text", r".\amoral-gemma3-12B-v2-onnx"],
    ),
    (
        "https://github.com/huggingface/optimum/pull/807",
        " optimum-cli onnxruntime optimize --onnx_model onnx_model_location/ -O1",
        "onnx_model_location/",
        {"target.runtime": "onnxruntime"},
        ["-O1"],
    ),
    (
        "https://github.com/huggingface/optimum-intel/pull/437",
        "optimum-cli export openvino --model distilbert-base-uncased-finetuned-sst-2-english distilbert_openvino",
        "distilbert-base-uncased-finetuned-sst-2-english",
        {"target.runtime": "openvino"},
        ["distilbert_openvino"],
    ),
    (
        "https://github.com/huggingface/optimum-intel/pull/1882",
        (
            "optimum-cli export openvino --model stabilityai/stable-diffusion-xl-base-1.0 \\\n    "
            "--weight-format int8 --dataset conceptual_captions ov_sdxl/"
        ),
        "stabilityai/stable-diffusion-xl-base-1.0",
        {"target.runtime": "openvino", "precision": "int8"},
        ["weights alone in int8", "--dataset conceptual_captions", "ov_sdxl/"],
    ),
)


@pytest.mark.parametrize(
    ("command", "model", "fields", "unmapped"),
    [case[1:] for case in COMMANDS],
    ids=[case[0].partition("://")[2] for case in COMMANDS],
)
def test_each_setting_has_a_field_or_a_name(command, model, fields, unmapped):
    settings = optimum.read(command)
    assert settings.model == model
    assert settings.fields == fields
    assert [each.setting for each in settings.unmapped] == unmapped
    assert all(each.reason for each in settings.unmapped)


@pytest.mark.parametrize(
    ("options", "fields"),
    [
        ("--avx512_vnni", {"target.isa": "avx512_vnni"}),
        ("--avx512", {"target.isa": "avx512"}),
        ("--avx2 --per_channel", {"target.isa": "avx2"}),
        ("--arm64", {}),
    ],
)
def test_a_quantization_is_int8_for_the_instructions(options, fields):
    settings = optimum.read(f"optimum-cli onnxruntime quantize --onnx_model model {options} -o out")
    assert settings.fields == {"target.runtime": "onnxruntime", "precision": "int8", **fields}


@pytest.mark.parametrize(
    ("written", "task"),
    [("text-generation-with-past", "text-generation"), ("sentence-similarity", "feature-extraction"), ("auto", None)],
)
def test_a_task_has_the_recipe_s_name(written, task):
    settings = optimum.read(f"optimum-cli export onnx -m a/b --task {written} --atol 1e-3 out")
    assert settings.fields.get("model.task") == task
    assert settings.fields["validate.max_abs"] == 0.001


@pytest.mark.parametrize(
    ("command", "what"),
    [
        ("pip install optimum", "no command of optimum-cli"),
        ("optimum-cli export tflite -m a/b out", "is not read"),
        ("optimum-cli export onnx out", "names no model"),
    ],
)
def test_a_wrong_command_is_an_error(command, what):
    with pytest.raises(UsageError, match=what):
        optimum.read(command)


def test_a_model_that_is_no_directory_here_is_one_of_the_hub(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert optimum.source("a/b") == "hf:a/b"
    (tmp_path / "a" / "b").mkdir(parents=True)
    assert optimum.source("a/b") == "a/b"
    assert optimum.source("./c") == "./c"
