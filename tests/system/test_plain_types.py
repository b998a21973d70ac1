"""pydantic_core with plain classes in place of its typed dictionaries: schemas and errors stay the same."""

import subprocess
import sys

import pytest

BEFORE = "from engine.system import plain_types; plain_types.import_pydantic_core()\n"
ANSWERS = """
import json
from engine.recipe import editor
from engine.recipe.load import Recipe
from pydantic import ValidationError
print(json.dumps(editor.editor_schema(), sort_keys=True))
for given in ({}, {"name": 3}, {"name": "m", "model": {"source": "hf:a/b"}, "tensorrt": {"no": 1}, "bench": []}):
    try:
        print(Recipe.model_validate(given))
    except ValidationError as error:
        print(error.errors())
"""
IS_TYPED = "import pydantic_core; from typing_extensions import is_typeddict; print(is_typeddict(pydantic_core.{}))\n"


def printed(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("before", [BEFORE, f"import pydantic_core\n{BEFORE}"])
def test_recipes_are_read_as_with_typed_dictionaries(before):
    assert "missing" in printed(ANSWERS)
    assert printed(before + ANSWERS) == printed(ANSWERS)


def test_typed_dictionaries_of_others_stay():
    own = "from typing_extensions import TypedDict, is_typeddict\nprint(is_typeddict(TypedDict('Own', {})))"
    assert printed(BEFORE + own) == "True\n"


def test_the_classes_are_plain_only_where_nobody_has_imported_them():
    assert printed(BEFORE + IS_TYPED.format("ErrorDetails")) == "False\n"
    assert printed("import pydantic_core\n" + BEFORE + IS_TYPED.format("ErrorDetails")) == "True\n"
