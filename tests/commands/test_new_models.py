"""`recipe new` on many models that it has not seen: the new recipe passes `check` and builds, or one error says why."""

import pytest
import yaml

from tests.support import unseen_models
from tests.support.program import Program

IN_CI = ("detector", "series", "cross-encoder")
"""The models that every run builds; `--whole` builds all."""


def test_the_models_are_many():
    assert len(unseen_models.NAMES) >= 20
    assert set(IN_CI) < set(unseen_models.NAMES)


@pytest.mark.parametrize(
    "name", [name if name in IN_CI else pytest.param(name, marks=pytest.mark.whole) for name in unseen_models.NAMES]
)
def test_a_new_recipe_of_an_unseen_model_is_built_as_it_is(tmp_path, name):
    program = Program(tmp_path)
    done = program("new", unseen_models.write(name, tmp_path), "-o", "it.yaml", expect=0)
    assert "it.yaml passes `recipe check`" in done.stdout
    program("build", "it.yaml", expect=0)
    [package] = (tmp_path / "build").glob("*/*")
    assert yaml.safe_load((tmp_path / "it.yaml").read_text())["name"]
