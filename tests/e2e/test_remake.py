"""Every reproducible step, made again elsewhere: another path, time zone, locale, hash seed, thread count and `-j`.

For BERT, RoBERTa, MiniLM with its real weights, GPT-2, OPT, T5, an EfficientNet of timm and an ONNX file of someone
else, under two circumstances.
"""

import json
import os
import shutil

import generators
import models
import pytest
import timm_here
from program import Program

CIRCUMSTANCES = (
    {"TZ": "Asia/Kathmandu", "LC_ALL": "C", "PYTHONHASHSEED": "7", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
    {"TZ": "America/St_Johns", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "99", "OMP_NUM_THREADS": "3", "HOME": "/nowhere"},
)
TEXT = {"profiles": [{"batch": [1, 1, 4], "sequence": [1, 8, 24]}]}
LOOSE = {"cosine": 0.5, "agreement": 0.1, "max_abs": {"at_most": 1000}}
TALKING = {**TEXT, "generate": {"max_new_tokens": 4}, "validate": LOOSE}


def _classifier(architecture):
    return lambda folder, _: models.checkpoint(folder, architecture, task="text-classification")


def _talker(family):
    return lambda folder, _: generators.checkpoint(folder, family)


def _minilm(folder, request):
    shutil.copytree(request.getfixturevalue("minilm_checkpoint"), folder)


def _efficientnet(folder, request):
    request.getfixturevalue("timm")
    timm_here.checkpoint(folder, "efficientnet_b0", size=64)


def _foreign(folder, _):
    folder.mkdir()
    models.onnx_vision(folder / "net.onnx")


MODELS = {
    "bert": (_classifier("bert"), {"validate": LOOSE}),
    "roberta": (_classifier("roberta"), {"validate": LOOSE}),
    "minilm": (_minilm, {}),
    "gpt2": (_talker("gpt2"), TALKING),
    "opt": (_talker("opt"), TALKING),
    "t5": (_talker("t5"), TALKING),
    "efficientnet": (_efficientnet, {"model": {"source": "model", "task": "image-classification"}, "validate": LOOSE}),
    "foreign": (_foreign, {"model": {"source": "model/net.onnx"}, "profiles": [{"batch": [1, 2, 4]}]}),
}


def elsewhere(program, place, circumstances):
    """Return the program in a copy of its project, under other circumstances."""
    shutil.copytree(program.folder, place, symlinks=True)
    other = Program(place)
    other.environment = {**program.environment, **circumstances}
    return other


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["fp32", "int8"])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.whole("test_mutations.py: what does not count changes no byte")
def test_no_step_writes_another_byte_under_other_circumstances(empty, request, tmp_path_factory, model, precision):
    make, fields = MODELS[model]
    make(empty.folder / "model", request)
    if model == "efficientnet":
        empty.environment["PYTHONPATH"] = os.pathsep.join(request.getfixturevalue("timm_folders"))
    recipe = {"name": "m", "model": {"source": "model"}, "precision": precision, **fields}
    (empty.folder / "r.yaml").write_text(json.dumps(recipe))
    built = empty.states("r.yaml", "-j1")
    assert set(built.values()) == {"built"}
    for number, circumstances in enumerate(CIRCUMSTANCES, start=1):
        other = elsewhere(empty, tmp_path_factory.mktemp("elsewhere") / "a b" / str(number), circumstances)
        done = other("build", "r.yaml", "--remake", "all", "--keep-going", "--json", f"-j{number * 2}")
        ends = [event for event in map(json.loads, done.stdout.splitlines()) if event["event"] == "end"]
        assert [event.get("error") for event in ends if event["state"] == "failed"] == []
        states = {event["job"]: event["state"] for event in ends}
        assert {job for job, state in states.items() if state != "reproduced"} <= {"bench"}
        assert len(states) == len(built) > 4
