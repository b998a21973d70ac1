"""The image of a package: built, pushed, and named by the digest that the registry gave."""

import shutil

import fake_docker
import pytest
import yaml

from engine.errors import StepError
from engine.server import manifests, package_image
from engine.server.manifests import Deployment

DEPLOYMENT = Deployment("my-net", gpu=False, size=1, command=("tritonserver",))


@pytest.fixture
def package(tmp_path):
    folder = tmp_path / "package"
    folder.mkdir()
    texts = {
        "Dockerfile": "FROM nvcr.io/nvidia/tritonserver:25.06-py3\n", "sbom.cdx.json": "{}",
        "compose.yaml": manifests.compose(DEPLOYMENT), "kubernetes.yaml": manifests.kubernetes(DEPLOYMENT),
        "servicemonitor.yaml": manifests.service_monitor(DEPLOYMENT), "kserve.yaml": manifests.kserve(DEPLOYMENT),
    }  # fmt: skip
    for file, text in texts.items():
        (folder / file).write_text(text)
    return folder


def test_docker_builds_the_image_that_compose_names_or_says_why_it_cannot(docker, package):
    assert package_image.build(package) == "my-net:local"
    assert fake_docker.calls(docker)[-1]["words"] == ["build", "--tag", "my-net:local", str(package)]
    (docker / "offline").touch()
    with pytest.raises(StepError, match="docker cannot build the image my-net:local") as error:
        package_image.build(package)
    assert error.value.facts == ("no route to host",)
    assert error.value.hint.endswith(f"docker build --tag my-net:local {package}")
    (package / "Dockerfile").unlink()
    with pytest.raises(StepError, match="the package has no Dockerfile"):
        package_image.build(package)


def test_without_a_program_that_answers_the_command_is_named(docker, package, monkeypatch):
    (docker / "silent").touch()
    with pytest.raises(StepError, match="no image can be built on this machine") as error:
        package_image.build(package)
    assert error.value.facts == ("docker does not answer: Cannot connect to the daemon",)
    assert "docker build --tag NAME:local ." in error.value.hint
    monkeypatch.setenv("PATH", "")
    with pytest.raises(StepError) as error:
        package_image.build(package)
    assert error.value.facts == ("neither docker nor podman nor buildah is installed",)


@pytest.mark.parametrize("program", package_image.BUILDERS)
def test_an_image_is_pushed_under_a_tag_of_its_own_and_named_by_the_digest_of_the_registry(docker, package, program):
    fake = shutil.which("docker")
    shutil.move(fake, fake.removesuffix("docker") + program)
    name = package_image.build(package)
    address = package_image.push(package, name, "registry.example.com:5000/ml")
    assert address == f"registry.example.com:5000/ml/my-net@{fake_docker.DIGEST}"
    tag, push = [each["words"] for each in fake_docker.calls(docker) if each["words"][0] in ("tag", "push")]
    assert tag[:2] == ["tag", "my-net:local"]
    assert tag[2].startswith("registry.example.com:5000/ml/my-net:")
    assert push[-1] == tag[2]
    (package / "sbom.cdx.json").write_text('{"other": 1}')
    package_image.push(package, name, "registry.example.com:5000/ml")
    assert fake_docker.calls(docker)[-1]["words"][-1] != tag[2]


@pytest.mark.parametrize("registry", ["docker.io/me", "index.docker.io/me"])
def test_the_digest_is_that_of_the_push_under_whatever_name_docker_lists_the_image(docker, package, registry):
    name = package_image.build(package)
    assert package_image.push(package, name, registry) == f"{registry}/my-net@{fake_docker.DIGEST}"


def test_podman_under_the_name_of_docker_tells_the_digest_in_a_file(docker, package):
    (docker / "podman").touch()
    name = package_image.build(package)
    assert package_image.push(package, name, "r.example.com") == f"r.example.com/my-net@{fake_docker.DIGEST}"
    assert fake_docker.calls(docker)[-1]["words"][:2] == ["push", "--digestfile"]


def test_a_push_that_fails_or_tells_no_digest_is_an_error(docker, package):
    name = package_image.build(package)
    (docker / "quiet").touch()
    with pytest.raises(StepError, match=r"docker does not tell the digest of r\.example\.com/my-net:"):
        package_image.push(package, name, "r.example.com")
    (docker / "offline").touch()
    with pytest.raises(StepError, match=r"docker cannot push r\.example\.com/my-net:") as error:
        package_image.push(package, name, "r.example.com")
    assert error.value.facts == ("no route to host",)


def test_the_manifests_of_a_pushed_image_have_its_digest_and_the_package_stays_as_it_is(package, tmp_path):
    before = {path.name: path.read_bytes() for path in package.iterdir()}
    address = f"registry.example.com/my-net@{fake_docker.DIGEST}"
    package_image.write_manifests(package, tmp_path / "deploy" / "net", address)
    assert {path.name: path.read_bytes() for path in package.iterdir()} == before
    texts = {path.name: path.read_text() for path in (tmp_path / "deploy" / "net").iterdir()}
    assert texts.keys() == set(manifests.FILES)
    for file in ("kubernetes.yaml", "kserve.yaml"):
        assert texts[file].count(f"image: {address}\n") == 2
        assert "registry.invalid" not in texts[file]
        assert "--push" not in texts[file]
        assert list(yaml.safe_load_all(texts[file]))
