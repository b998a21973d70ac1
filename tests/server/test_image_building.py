"""The container image of a package: built by docker where it answers, else an error with the command."""

import fake_docker
import pytest

from engine.errors import StepError
from engine.server import image_building


@pytest.fixture
def package(tmp_path):
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "Dockerfile").write_text("FROM nvcr.io/nvidia/tritonserver:25.06-py3\n")
    (folder / "compose.yaml").write_text("services: {my-net: {build: ., image: my-net}}\n")
    return folder


def test_docker_builds_the_image_that_the_manifests_name(docker, package):
    assert image_building.build(package) == "my-net"
    assert fake_docker.calls(docker)[-1]["words"] == ["build", "--tag", "my-net", str(package)]


def test_an_image_that_cannot_be_built_shows_what_docker_says(docker, package):
    (docker / "offline").touch()
    with pytest.raises(StepError, match="docker cannot build the image my-net") as error:
        image_building.build(package)
    assert error.value.facts == ("no route to host",)
    assert error.value.hint.endswith(f"docker build --tag my-net {package}")


def test_without_a_program_that_answers_the_command_is_named(docker, package, monkeypatch):
    (docker / "silent").touch()
    with pytest.raises(StepError, match="no image can be built on this machine") as error:
        image_building.build(package)
    assert error.value.facts == ("docker does not answer: Cannot connect to the daemon",)
    assert "docker build --tag NAME ." in error.value.hint
    monkeypatch.setenv("PATH", "")
    with pytest.raises(StepError) as error:
        image_building.build(package)
    assert error.value.facts == ("neither docker nor podman nor buildah is installed",)


def test_a_package_without_a_dockerfile_is_an_error(docker, package):
    (package / "Dockerfile").unlink()
    with pytest.raises(StepError, match="the package has no Dockerfile"):
        image_building.build(package)
