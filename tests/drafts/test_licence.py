"""The licence in a new recipe is the one that the model states."""

from engine.drafts import licence


def test_the_licence_is_the_one_that_the_model_states(tmp_path):
    assert "not stated" in licence.line(None)
    assert "not stated" in licence.line(tmp_path)
    (tmp_path / "README.md").write_text("---\nlicense: apache-2.0\n---\n")
    assert licence.line(tmp_path) == "Licence: Apache-2.0 (stated by README.md (license))."
