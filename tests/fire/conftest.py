"""Fixtures of the tests under fire."""

import os
import random

import pytest
from fire import field as fields
from fire.project import Project


@pytest.fixture
def tier(request):
    """How much is tried, and by which random numbers: the seed stands at the head of the run, and can be chosen."""
    chance = random.Random(f"{os.environ['RECIPE_SAMPLE_SEED']} {request.node.name}")
    return fields.Tier(request.config.getoption("--whole"), chance)


@pytest.fixture(scope="session")
def field(tmp_path_factory):
    """Two variants of a recipe with steps of all kinds."""
    folder = tmp_path_factory.mktemp("fire")
    with fields.field(folder, Project(folder / "project")) as template_field:
        yield template_field


@pytest.fixture
def ground(field, tmp_path):
    """A copy of the template, to build on."""
    return field.template.copy(tmp_path / "ground")
