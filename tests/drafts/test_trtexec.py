"""Real commands of trtexec: the recipe gives TensorRT's builder what the command gives it, field by field."""

import pytest

from engine.drafts import trtexec
from engine.drafts.draft import Draft
from engine.errors import UsageError
from engine.recipe.schema import Recipe
from engine.runtimes.tensorrt.options import BuilderOptions
from engine.steps.trt_build import TrtBuild
from engine.steps.trt_prepare import TrtPrepare

MIB = 1 << 20
IMAGE = "1x3x640x640"

# The place of each command, the command, its ONNX file, the builder's options, the precision and the profile.
COMMANDS = (
    (
        "https://github.com/NVIDIA/TensorRT/issues/4136",
        (
            "trtexec --onnx=weights/wav2lip/wav2lip.onnx --saveEngine=weights/wav2lip/wav2lip_2048_minoptmax.trt "
            '--workspace=2048 --minShapes="audio_seqs__0:1x1x80x16, img_seqs__1:1x6x256x256"  '
            '--optShapes="audio_seqs__0:4x1x80x16, img_seqs__1:4x6x256x256" '
            '--maxShapes="audio_seqs__0:8x1x80x16, img_seqs__1:8x6x256x256"'
        ),
        "weights/wav2lip/wav2lip.onnx",
        {"memory_pool": {"workspace": 2048 * MIB}},
        "fp32",
        {
            "audio_seqs__0": ["1x1x80x16", "4x1x80x16", "8x1x80x16"],
            "img_seqs__1": ["1x6x256x256", "4x6x256x256", "8x6x256x256"],
        },
    ),
    (
        "https://github.com/NVIDIA/TensorRT/issues/3229",
        (
            r'"D:\python_workspace\TensorRT-8.6.1.6\bin\trtexec.exe" --onnx="D:\models\Unet-onnx\majicmix.onnx" '
            r'--saveEngine="D:\models\Unet-trt\majicmix.trt" --minShapes=x:2x4x64x64,context:2x77x768,timesteps:2 '
            "--maxShapes=x:2x4x64x64,context:2x77x768,timesteps:2 --fp16 --workspace=8192"
        ),
        r"D:\models\Unet-onnx\majicmix.onnx",
        {"memory_pool": {"workspace": 8192 * MIB}},
        "fp16",
        {"x": ["2x4x64x64"] * 3, "context": ["2x77x768"] * 3, "timesteps_0": [2] * 3},  # max becomes opt
    ),
    (
        "https://github.com/NVIDIA/TensorRT/issues/2417",
        (
            "./trtexec --onnx=/opt/model/keyword/model.onnx --minShapes=input_ids:1x64,input_mask:1x64 "
            "--optShapes=input_ids:5x64,input_mask:5x64 --maxShapes=input_ids:15x64,input_mask:15x64 "
            "--saveEngine=/opt/model/engine.trt  --verbose  --workspace=10240"
        ),
        "/opt/model/keyword/model.onnx",
        {"memory_pool": {"workspace": 10240 * MIB}},
        "fp32",
        {"input_ids": ["1x64", "5x64", "15x64"], "input_mask": ["1x64", "5x64", "15x64"]},
    ),
    (
        "https://github.com/OE4T/meta-tegra/pull/2243",
        (
            "/usr/src/tensorrt/bin/trtexec --onnx=/videos/tinyyolov2-8.onnx --saveEngine=/tmp/yolo.engine     "
            "--optShapes=image:1x3x416x416 --skipInference"
        ),
        "/videos/tinyyolov2-8.onnx",
        {},
        "fp32",
        {"image": ["1x3x416x416"] * 3},
    ),
    (
        "https://github.com/wangzhaode/llm-export/issues/1",
        (
            "trtexec --onnx=./llm.onnx --saveEngine=./trt/model.plan "
            "--optShapes=input_ids:1x1,attention_mask:1x1x1x1,position_ids:1x1,past_key_values:32x2x1x32x1x128         "
            "--minShapes=input_ids:1x1,attention_mask:1x1x1x1,position_ids:1x1,past_key_values:32x2x1x32x1x128         "
            "--maxShapes=input_ids:128x1,attention_mask:1x1x128x128,position_ids:128x1,past_key_values:32x2x1x32x128x128"
        ),
        "./llm.onnx",
        {},
        "fp32",
        {
            "input_ids": ["1x1", "1x1", "128x1"],
            "attention_mask": ["1x1x1x1", "1x1x1x1", "1x1x128x128"],
            "position_ids": ["1x1", "1x1", "128x1"],
            "past_key_values": ["32x2x1x32x1x128", "32x2x1x32x1x128", "32x2x1x32x128x128"],
        },
    ),
    (
        "https://github.com/NVIDIA/TensorRT/issues/1221",
        (
            "/usr/src/tensorrt/bin/trtexec --onnx=resnet.onnx --workspace=5000 --saveEngine=resnet.trt "
            "--inputIOFormats=fp32:chw --outputIOFormats=fp32:chw --noDataTransfers --dumpProfile "
            "--separateProfileRun"
        ),
        "resnet.onnx",
        {"memory_pool": {"workspace": 5000 * MIB}},
        "fp32",
        None,
    ),
    (
        "https://github.com/NVIDIA/TensorRT/issues/4299",
        "trtexec --onnx=resnet50-v2-7.onnx --saveEngine=resnet50_refit.plan --refit --timeRefit",
        "resnet50-v2-7.onnx",
        {"refit": True},
        "fp32",
        None,
    ),
    (
        "https://github.com/BooHwang/segment_anything_tensorrt/issues/2",
        (
            "&&&& RUNNING TensorRT.trtexec [TensorRT v8601] # trtexec --onnx=embedding_onnx/sam_default_embedding.onnx "
            "--workspace=4096 --saveEngine=weights/sam_default_embedding.engine"
        ),
        "embedding_onnx/sam_default_embedding.onnx",
        {"memory_pool": {"workspace": 4096 * MIB}},
        "fp32",
        None,
    ),
    (
        "http://rhkb.cn/news/252153.html",
        (
            "trtexec \\\n    --onnx=resnet18.onnx \\\n    --saveEngine=resnet18-fp32.plan \\\n    "
            "--minShapes=x:1x3x224x224 \\\n    --optShapes=x:4x3x224x224 \\\n    --maxShapes=x:16x3x224x224 \\\n    "
            "--memPoolSize=workspace:1024MiB \\\n    --verbose \\\n    > result-fp32.txt 2>&1"
        ),
        "resnet18.onnx",
        {"memory_pool": {"workspace": 1024 * MIB}},
        "fp32",
        {"x": ["1x3x224x224", "4x3x224x224", "16x3x224x224"]},
    ),
)


def recipe_of(settings):
    """Return the recipe of the settings, for a T4."""
    draft = Draft({"name": "net"})
    draft.put("model.source", "file:/model.onnx")
    draft.put("target", {"device": "T4", "runtime": "tensorrt"})
    settings.add_to(draft)
    return Recipe.model_validate(draft.fields, by_alias=True, by_name=False)


@pytest.mark.parametrize(
    ("command", "model", "options", "precision", "profile"),
    [case[1:] for case in COMMANDS],
    ids=[case[0].partition("://")[2] for case in COMMANDS],
)
def test_the_builder_gets_what_the_command_says(command, model, options, precision, profile):
    settings = trtexec.read(command)
    recipe = recipe_of(settings)
    step = TrtBuild.for_recipe(recipe)
    assert settings.model == model
    assert step.as_dict() == BuilderOptions(**options).as_dict()
    assert step.precision == precision
    assert settings.fields.get("profiles") == (None if profile is None else [profile])
    assert len(TrtPrepare.for_recipe(recipe).profiles) == (profile is not None)


@pytest.mark.parametrize("command", [case[1] for case in COMMANDS])
def test_every_option_is_mapped_or_named(command):
    settings = trtexec.read(command)
    named = [each.setting for each in settings.unmapped]
    for word in trtexec.foreign.words(command, "trtexec"):
        mapped = any(word in origin or word.partition("=")[0] in origin for origin in settings.origins.values())
        assert mapped or word in named or word.startswith("--onnx=")


def test_the_options_of_newer_versions_have_fields():
    command = (
        "trtexec --onnx=m.onnx --bf16 --memPoolSize=workspace:2G,tacticSharedMem:48K --builderOptimizationLevel=5 "
        "--tilingOptimizationLevel=2 --maxAuxStreams=4 --avgTiming=16 --profilingVerbosity=layer_names_only "
        "--hardwareCompatibilityLevel=ampere+ --versionCompatible --excludeLeanRuntime --stripWeights "
        "--allowWeightStreaming --sparsity=enable"
    )
    settings = trtexec.read(command)
    assert settings.unmapped == []
    assert TrtBuild.for_recipe(recipe_of(settings)).as_dict() == {
        "memory_pool": {"workspace": 2 << 30, "tactic_shared_memory": 48 << 10}, "optimization_level": 5,
        "tiling_optimization_level": "moderate", "max_aux_streams": 4, "avg_timing_iterations": 16,
        "profiling_verbosity": "layer_names_only", "compatibility": "ampere-plus", "version_compatible": True,
        "exclude_lean_runtime": True, "strip_plan": True, "refit": False, "weight_streaming": True,
        "sparse_weights": True, "tf32": None,
    }  # fmt: skip
    assert settings.fields["precision"] == "bf16"


def test_an_unknown_option_is_named():
    settings = trtexec.read("trtexec --onnx=m.onnx --fromTheFuture=3 --plugins=libnone.so")
    assert [each.setting for each in settings.unmapped] == ["--fromTheFuture=3", "--plugins=libnone.so"]


@pytest.mark.parametrize(
    ("command", "what"),
    [
        ("make all", "no command of trtexec"),
        ("trtexec --loadEngine=m.plan", "names no ONNX file"),
        ("trtexec --onnx=m.onnx --minShapes=x:[1,3]", "no shape for an input"),
        ("trtexec --onnx='m.onnx", "cannot be read"),
    ],
)
def test_a_wrong_command_is_an_error(command, what):
    with pytest.raises(UsageError, match="(?s)" + what):
        trtexec.read(command)
