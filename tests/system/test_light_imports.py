"""Libraries with lighter classes: schemas, recipes and errors stay the same, and so do the classes of others."""

import subprocess
import sys

import pytest

BEFORE = "from engine.system import light_imports; light_imports.import_libraries()\n"
ANSWERS = """
import json
from engine.recipe import editor
from engine.recipe.load import Recipe
from pydantic import ValidationError
print(json.dumps(editor.editor_schema(), sort_keys=True))
for given in ({}, {"name": 3}, {"name": "m", "model": {"source": "hf:a/b"}, "tensorrt": {"no": 1}, "bench": []},
              {"name": "m", "model": {"source": "hf:a/b"}, "bench": {"shapes": {"batch": 0}, "threads": "1"}},
              {"name": "m", "model": {"source": "hf:a/b"}, "bench": {"shapes": {"batch": 1}}}):
    try:
        print(Recipe.model_validate(given))
    except ValidationError as error:
        print(error.errors())
"""
IS_TYPED = "import pydantic_core; from typing_extensions import is_typeddict; print(is_typeddict(pydantic_core.{}))\n"
IS_FROZEN = "import annotated_types; print(annotated_types.Gt.__dataclass_params__.frozen)\n"
IS_LATE = "import re, yaml; print(not isinstance(yaml.reader.Reader.NON_PRINTABLE, re.Pattern))\n"


def printed(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("before", [BEFORE, f"import pydantic\n{BEFORE}"])
def test_recipes_are_read_as_with_whole_classes(before):
    answers = printed(ANSWERS)
    assert "missing" in answers
    assert "greater_than_equal" in answers
    assert printed(before + ANSWERS) == answers


def test_yaml_is_read_as_with_compiled_patterns():
    read = "import yaml\nprint(yaml.safe_load('{a: 1, b: 1.5, c: 2026-01-02, d: yes, e: ~, f: 0x1F, g: 1_000}'))\n"
    assert printed(BEFORE + read) == printed(read)


@pytest.mark.parametrize(
    "own",
    [
        "from typing_extensions import TypedDict, is_typeddict\nprint(is_typeddict(TypedDict('Own', {})))",
        "import dataclasses\n@dataclasses.dataclass(frozen=True)\nclass Own:\n    x: int\nprint(Own(1) == Own(1))",
        "import re\nprint(isinstance(re.compile('x'), re.Pattern))",
    ],
)
def test_the_classes_of_others_stay(own):
    assert printed(BEFORE + own).split()[-1] == "True"


@pytest.mark.parametrize(
    ("look", "light", "whole"),
    [(IS_TYPED.format("ErrorDetails"), "False", "True"), (IS_FROZEN, "False", "True"), (IS_LATE, "True", "False")],
)
def test_the_classes_are_lighter_only_where_nobody_has_imported_them(look, light, whole):
    assert printed(BEFORE + look) == f"{light}\n"
    assert printed("import pydantic.main, pydantic.fields, yaml\n" + BEFORE + look) == f"{whole}\n"
