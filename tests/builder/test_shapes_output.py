"""Which modules have the declaration that has no effect any more."""

import pytest

from engine.builder import shapes_output


@pytest.mark.parametrize(
    "text",
    [
        "shapes_output = False",
        "from typing import ClassVar\nclass Step:\n    shapes_output: ClassVar[bool] = False",
    ],
)
def test_a_variable_of_a_module_or_of_a_class_is_the_declaration(text):
    assert shapes_output.declares(text.encode())


@pytest.mark.parametrize("text", ["", "# shapes_output = False", "print(shapes_output)", "step.shapes_output = 1"])
def test_other_mentions_of_the_name_are_not(text):
    assert not shapes_output.declares(text.encode())
