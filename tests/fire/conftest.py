"""Fixtures of the tests under fire: a project, what starts builders, a ground where half the work is done."""

import os
import random

import pytest
from fire.builders import Builders
from fire.project import Ground, Project


@pytest.fixture(scope="session")
def whole(request):
    """Whether the slow tier runs whole, instead of a seeded sample."""
    return request.config.getoption("--whole")


@pytest.fixture
def chance(request):
    """The random numbers of a test; which ones, is said at the head of the run and can be chosen."""
    return random.Random(f"{os.environ['RECIPE_SAMPLE_SEED']} {request.node.name}")


@pytest.fixture(scope="session")
def project(tmp_path_factory):
    return Project(tmp_path_factory.mktemp("fire") / "project")


@pytest.fixture(scope="session")
def builders(project, tmp_path_factory):
    made = Builders(project, tmp_path_factory.mktemp("fire") / "said")
    yield made
    made.close()


@pytest.fixture(scope="session")
def template(builders, tmp_path_factory):
    """A ground where the model is checked, and no step of ours has run yet: do not build on it, but on a copy."""
    ground = Ground(tmp_path_factory.mktemp("fire") / "template")
    builders.build(ground, "--to", "validate")
    return ground


@pytest.fixture(scope="session")
def undisturbed(builders, template, tmp_path_factory):
    """A ground with a build that nobody disturbed: do not touch it, but a copy."""
    ground = template.copy(tmp_path_factory.mktemp("fire") / "undisturbed")
    builders.build(ground)
    return ground


@pytest.fixture(scope="session")
def expected(builders, undisturbed):
    """What an undisturbed build delivers."""
    return builders.delivered(builders.build(undisturbed))


@pytest.fixture
def ground(template, tmp_path):
    """A copy of the template, to build on."""
    return template.copy(tmp_path / "ground")
