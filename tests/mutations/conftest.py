"""The projects that the mutations share."""

import pytest
from mutations import projects


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """Projects by name, each made and built when it is first asked for."""
    places = {}

    def of(name):
        if name not in places:
            places[name] = projects.make(name, tmp_path_factory.mktemp(name) / "project")
        return places[name]

    return of
