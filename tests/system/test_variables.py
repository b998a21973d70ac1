"""Variables of the environment: the list holds those that the program reads, and a misspelt one is noted."""

import re
from pathlib import Path

from engine.system import variables

ENGINE = Path(__file__).parent.parent.parent / "engine"


def test_the_list_has_every_variable_that_the_program_names():
    texts = "\n".join(path.read_text() for path in ENGINE.rglob("*.py") if path.name != "variables.py")
    named = {name for name in re.findall(r"\bRECIPE_[A-Z_]*[A-Z]\b", texts) if not name.startswith("RECIPE_WRITE")}
    not_of_users = {"RECIPE_CAHCE", "RECIPE_PATH", "RECIPE_GPU"}  # a model.py sets the last one for its session.py
    assert named - not_of_users <= variables.VARIABLES


def test_a_misspelt_name_has_a_note_and_other_names_have_none():
    assert variables.notes(["RECIPE_CAHCE"]) == ["the variable RECIPE_CAHCE is not read; did you mean RECIPE_CACHE?"]
    assert variables.notes(["RECIPE_CACHE", "RECIPE_WRITE_AWS_REGION", "RECIPE_BOOK", "PATH"]) == []
