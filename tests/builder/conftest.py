"""What the tests of builds share."""

import pytest
from small_builds import project_in


@pytest.fixture
def project(tmp_path):
    """A project with a recipe that names a model, and nothing else."""
    return project_in(tmp_path)
