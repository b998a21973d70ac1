"""Session options: what `session.json` may say, and what is read back."""

import json

import pytest

from engine.errors import StepError
from engine.runtimes.onnxruntime import session_options
from engine.runtimes.onnxruntime.session_options import SavedOptions


def test_options_are_read_as_they_were_saved(tmp_path):
    assert session_options.read(tmp_path) == SavedOptions()
    session_options.save(tmp_path, level="basic", disabled=("SkipLayerNormFusion",))
    options = {"disabled_optimizers": ["SkipLayerNormFusion"], "graph_optimization_level": "basic"}
    assert json.loads((tmp_path / "session.json").read_text()) == options
    assert session_options.read(tmp_path) == SavedOptions("basic", ("SkipLayerNormFusion",))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "session.json is no JSON"),
        ("[]", "session.json asks for something unknown"),
        ('{"graph_optimization_level": "fast"}', "levels are disabled, basic, extended, all"),
        ('{"threads": 3}', "it may say disabled_optimizers and graph_optimization_level"),
    ],
)
def test_a_wrong_session_json_is_explained(tmp_path, text, complaint):
    (tmp_path / "session.json").write_text(text)
    with pytest.raises(StepError) as caught:
        session_options.read(tmp_path)
    assert complaint in str(caught.value)
