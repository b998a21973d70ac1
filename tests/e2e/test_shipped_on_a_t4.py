"""The shipped recipes on a fake T4: each goes through to its package, or stops with one error that a user can act on.

The models are small random ones under the published names, from a fake hub. The fake TensorRT has the version that a
case names; whatever the version, it does what TensorRT 10 does.
"""

import re
import shutil
from pathlib import Path

import models
import pytest
import timm_here
from fake_hub import FIRST, FakeHub
from fake_t4 import FakeT4

ROOT = Path(__file__).parents[2]
SEEDS = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "recipes" / "seeds").glob("*.yaml"))
RECIPES = ["recipes/minilm_t4.yaml", "recipes/minilm_cuda.yaml", "recipes/efficientnetv2.yaml", *SEEDS]
SHIPPED, LATER, NEXT = "10.11.0.33", "10.14.1.48", "11.1.0.106"
"""TensorRT of the shipped recipes and of the container 25.06; that of onnxruntime-gpu 1.31; what pip brings today."""
CASES = [(version, recipe) for version in (NEXT, LATER, SHIPPED) for recipe in RECIPES]
QUICK = (NEXT, RECIPES[0])
"""The case that runs without `--whole`."""
TO_DO = re.compile(r"pip install \S+( \S+)?, then run the same command|run the same command there")
WAITS = re.compile(r"waits for: (.*)|^waiting +[0-9]+ jobs? for (.*)", flags=re.MULTILINE)
"""A job that waits; in a build of more than four variants, all jobs that wait for one device."""
_IMAGES = "efficientnet"
EFFICIENTNET, OPT = "timm/tf_efficientnetv2_s.in21k_ft_in1k", "facebook/opt-125m"
ENCODERS = {
    "philschmid/MiniLM-L6-H384-uncased-sst2": ("bert", "text-classification", 512),
    "google-bert/bert-base-uncased": ("bert", "fill-mask", 512),
    "deepset/roberta-base-squad2": ("roberta", "question-answering", 514),
}
"""Name -> architecture, task and positions of the small random model under this name."""

pytestmark = pytest.mark.slow


@pytest.fixture
def hub(tmp_path):
    with FakeHub() as hub:
        yield hub


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    shutil.copytree(ROOT / "recipes", folder / "recipes")
    (folder / "pyproject.toml").write_text("")
    return folder


def test_there_are_recipes_of_the_seeds():
    assert len(SEEDS) > 5


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, id="-".join(case), marks=() if case == QUICK else pytest.mark.whole) for case in CASES],
)
def test_a_recipe_becomes_a_package_or_says_what_to_do(case, project, hub, tmp_path, request):
    version, recipe = case
    images = _IMAGES in recipe
    names = [EFFICIENTNET] if images else needed(recipe)
    first = request.getfixturevalue("timm_folders") if images else ()
    if images:
        request.getfixturevalue("timm")
    put(hub, tmp_path / "models", names)
    machine = FakeT4(project, tmp_path / "machine", tensorrt=version, first=first)
    machine.environment |= {"HF_ENDPOINT": hub.endpoint, "HF_HOME": str(tmp_path / "hub")}
    done = machine("build", recipe, *smaller(recipe))
    can_be_acted_on(done, project)
    if recipe == RECIPES[0] and version != SHIPPED:
        assert done.returncode == 3
        assert f"but tensorrt {version} instead of {SHIPPED}" in done.stderr
    if recipe == RECIPES[0] and version == SHIPPED:
        assert done.returncode == 0


@pytest.mark.whole
@pytest.mark.parametrize("recipe", [each for each in RECIPES if each.endswith("seeds/minilm_t4.yaml")])
def test_a_provider_that_does_not_run_fails_with_a_hint_and_no_number(recipe, project, hub, tmp_path):
    """An onnxruntime-gpu that pip lists, and whose providers find no CUDA: real machines begin like that."""
    information = tmp_path / "packages" / "onnxruntime_gpu-1.31.1.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: onnxruntime-gpu\nVersion: 1.31.1\n")
    put(hub, tmp_path / "models", needed(recipe))
    machine = FakeT4(project, tmp_path / "machine", tensorrt=LATER, first=[information.parent])
    machine.environment |= {"HF_ENDPOINT": hub.endpoint, "HF_HOME": str(tmp_path / "hub")}
    done = machine("build", recipe, expect=1)
    failed = re.findall(r"^failed +\S+ +(\S+)$", done.stderr, flags=re.MULTILINE)
    assert failed == ["validate", "validate"]
    assert len(re.findall(r"hint: .*`recipe doctor`", done.stderr)) == len(failed)
    assert " ms" not in done.stdout


def put(hub, folder, names):
    """Put a stand-in for each of the named models into a fake hub."""
    for name in names:
        place = folder / name.partition("/")[2]
        if name == EFFICIENTNET:
            timm_here.checkpoint(place, "test_efficientnet", size=64, num_classes=10)
        elif name == OPT:
            opt(place)
        else:
            architecture, task, positions = ENCODERS[name]
            models.checkpoint(place, architecture, task=task, max_position_embeddings=positions)
        hub.repositories[name] = {FIRST: {path.name: path.read_bytes() for path in place.iterdir()}}


def opt(place):
    import torch
    import transformers

    torch.manual_seed(0)
    words = models.vocabulary()
    config = transformers.OPTConfig(
        vocab_size=len(words), hidden_size=32, num_hidden_layers=2, num_attention_heads=4, ffn_dim=64,
        word_embed_proj_dim=32, max_position_embeddings=512, pad_token_id=words["[PAD]"],
        bos_token_id=words["[CLS]"], eos_token_id=words["[SEP]"],
    )  # fmt: skip
    model = transformers.OPTForCausalLM(config)
    models.sharpen(model)
    model.save_pretrained(place, safe_serialization=True)
    models.save_tokenizer(place, limit=512)


def needed(recipe):
    """Return which models of the hub a recipe names, itself or in its parents."""
    text = (ROOT / recipe).read_text()
    parent = re.search(r"^extends: (\S+)", text, flags=re.MULTILINE)
    more = needed(str((ROOT / recipe).parent.joinpath(parent[1]).resolve().relative_to(ROOT))) if parent else []
    return sorted({*re.findall(r"hf:([\w./-]+)", text), *more})


def smaller(recipe):
    """Return what makes a recipe of images small enough for a CPU: fewer pixels and images."""
    if _IMAGES not in recipe:
        return []
    shapes = ["--set", "bench.shapes=[{batch: 1}, {batch: 2}]", "--set", "profiles=[{batch: [1, 2, 32]}]"]
    return ["--set", "preprocess.size=64", *shapes]


def can_be_acted_on(done, project):
    """Hold the end of a build against what the documents promise of it."""
    assert done.returncode in (0, 1, 2, 3, 4)
    waits = ["".join(either) for either in WAITS.findall(done.stderr)]
    errors = re.findall(r"^error: ", done.stderr, flags=re.MULTILINE)
    if done.returncode == 0:
        assert list((project / "build").rglob("config.pbtxt"))
        assert (waits, errors) == ([], [])
    elif done.returncode == 3:
        assert waits
        assert errors == []
        assert all(map(TO_DO.search, waits)), waits
    else:
        failed = re.findall(r"^failed (?!in )", done.stderr, flags=re.MULTILINE)
        assert len(errors) == 1 or failed, done.stderr
        assert len(re.findall("hint: ", done.stderr)) >= len(errors) + len(failed), done.stderr
