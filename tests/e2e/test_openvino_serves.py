"""A package of OpenVINO on a real Triton server, with a stand-in for its backend: the answers of OpenVINO here."""

import json
import shutil

import numpy as np
import openvino_here  # noqa: F401 - skips where OpenVINO is missing
import padded_texts
import pytest
import triton_server
from triton_server import infer
from tritonclient.utils import InferenceServerException

from engine.kit.triton.serving import Serving
from engine.recipe.values import Range
from engine.runtimes.execution import Execution
from engine.server import pip_server
from engine.server.repository_needs import Needs
from engine.steps.openvino_build import OpenvinoBuild
from engine.steps.package import Package

pytestmark = [pytest.mark.slow, pytest.mark.whole("tests/runtimes/openvino runs its models without a server")]

EXECUTION = Execution(runtime="openvino", options={})
TEXTS = ("The film is a charming and often affecting journey.", "ok")


@pytest.fixture(scope="module")
def built(minilm_checkpoint, minilm_exported, tmp_path_factory):
    """MiniLM in int8 as OpenVINO's files, and its package."""
    folder = tmp_path_factory.mktemp("openvino")
    step = OpenvinoBuild(precision="int8", own_texts=True)
    step.run(folder / "built", checked=minilm_exported, checkpoint=minilm_checkpoint)
    serving = Serving(
        model_name="small", ensemble="small_text", largest={"batch": 8, "sequence": 128}, postprocess=False,
        execution=EXECUTION,
    )  # fmt: skip
    Package(serving=serving).run(folder / "package", validated=folder / "built", checkpoint=minilm_checkpoint)
    return folder


@pytest.fixture(scope="module")
def shaped(built, minilm_checkpoint, minilm_exported):
    """MiniLM for two fixed shapes and for free shapes, in the repository of `built`."""
    profiles = (
        {"batch": 1, "sequence": 8},
        {"batch": 2, "sequence": 16},
        {"batch": [1, 4, 8], "sequence": [1, 64, 128]},
    )
    profiles = tuple({axis: Range.model_validate(extent) for axis, extent in each.items()} for each in profiles)
    OpenvinoBuild(shapes=profiles).run(built / "shaped", checked=minilm_exported, checkpoint=minilm_checkpoint)
    serving = Serving(
        model_name="shaped", ensemble="shaped_text", largest={"batch": 8, "sequence": 128}, postprocess=False,
        execution=EXECUTION,
    )  # fmt: skip
    Package(serving=serving).run(built / "more", validated=built / "shaped", checkpoint=minilm_checkpoint)
    shutil.copytree(built / "more", built / "package", dirs_exist_ok=True)
    return built / "shaped"


@pytest.fixture(scope="module")
def server(built, shaped, environment):
    if pip_server.lacks(environment, Needs(backends=frozenset({"openvino"}))):
        pip_server.install(environment)
    with triton_server.serving(environment, built / "package") as running:
        yield running


def test_texts_get_the_answers_of_openvino_here(server, built, minilm_checkpoint):
    assert np.array_equal(states_of(server), expected_states(built / "built", minilm_checkpoint))


@pytest.mark.parametrize(
    ("texts", "shape"),
    [(["The film is good."], "1x8"), ([TEXTS[0] + " It is.", "ok"], "2x16"), ([*TEXTS, "no", "yes"], "free")],
)
def test_a_model_of_several_shapes_answers_as_openvino_here(server, shaped, minilm_checkpoint, texts, shape):
    before, _ = triton_server.counts(server, f"shaped_{shape}")
    states = states_of(server, "shaped_text", texts)
    assert np.array_equal(states, expected_states(shaped, minilm_checkpoint, texts))
    assert triton_server.counts(server, f"shaped_{shape}")[0] == before + 1


def test_shapes_that_no_model_takes_are_refused_with_the_profiles(server):
    lengths = {"input_ids": 4, "attention_mask": 5, "token_type_ids": 4}
    with pytest.raises(InferenceServerException, match=r"has the shape .*; the model takes"):
        infer(server, "shaped", **{name: np.ones((1, length), np.int64) for name, length in lengths.items()})


def test_a_model_of_one_fixed_shape_needs_no_router(tmp_path, minilm_exported, minilm_checkpoint):
    profile = {"batch": Range(min=1, opt=1, max=1), "sequence": Range(min=32, opt=32, max=32)}
    step = OpenvinoBuild(shapes=(profile,))
    step.run(tmp_path / "built", checked=minilm_exported, checkpoint=minilm_checkpoint)
    serving = Serving(model_name="one", ensemble="one_text", execution=EXECUTION)
    report = Package(serving=serving).run(
        tmp_path / "package", validated=tmp_path / "built", checkpoint=minilm_checkpoint
    )
    assert not any("32" in name for name in report.models)
    text = (tmp_path / "package/one/config.pbtxt").read_text()
    assert 'backend: "openvino"' in text
    assert "dims: 32" in text
    tokenizer = json.loads((tmp_path / "package/one_tokenizer/1/tokenizer.json").read_text())
    assert tokenizer["padding"]["strategy"] == {"Fixed": 32}


def test_the_backend_joins_no_requests(built):
    text = (built / "package" / "small" / "config.pbtxt").read_text()
    assert 'backend: "openvino"' in text
    assert "max_batch_size" not in text
    assert "dynamic_batching" not in text
    assert "PERFORMANCE_HINT" in text


def expected_states(directory, checkpoint, texts=TEXTS):
    """What OpenVINO answers here to the texts, padded to the longest."""
    inputs = padded_texts.inputs(checkpoint, texts)
    return EXECUTION.by.runner(directory, EXECUTION, threads=1).run(inputs)["last_hidden_state"]


def states_of(server, model="small_text", texts=TEXTS):
    return infer(server, model, TEXT=triton_server.texts(*texts))["last_hidden_state"]
