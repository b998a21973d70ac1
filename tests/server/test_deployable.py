"""The files with which a package is deployed: of a CPU package, of a GPU package, and where no image is known."""

import shutil
import subprocess
import sys
from pathlib import Path

import graphs
import pytest
import yaml

from engine.kit.triton.serving import Serving
from engine.server import deployable
from engine.server.deployable import Deployment, PackageOrigin
from engine.steps.package import Package

ORIGIN = PackageOrigin(source="hf:a/b", revision="not known", task="feature-extraction", runtime="onnxruntime")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """What writes the package of a small ONNX file into a folder."""
    model = graphs.write(tmp_path_factory.mktemp("model") / "model", graphs.layers())
    serving = Serving(model_name="my_net", ensemble="my_net_tensors", largest={"batch": 4})

    def build(folder):
        Package(serving=serving).run(folder / "out", validated=model, checkpoint=model)
        return folder / "out"

    return build


@pytest.fixture(scope="module")
def package(built, tmp_path_factory):
    return built(tmp_path_factory.mktemp("package"))


def test_a_package_says_how_it_is_asked_and_run(package):
    text = (package / "README.md").read_text()
    assert text.startswith("# my_net\n")
    for words in ("curl -s http://127.0.0.1:8000/v2/models/my_net/infer", "| input `x` | FP32 [any x 64] |",
                  "- runtime: `onnxruntime`", "python3 probe.py"):  # fmt: skip
        assert words in text


def test_the_image_has_an_exact_tag_and_no_root_and_that_of_a_mirror_is_built_on_the_mirror(package, tmp_path):
    lines = (package / "Dockerfile").read_text().splitlines()
    assert "FROM nvcr.io/nvidia/tritonserver:25.06-py3" in lines
    assert lines.index("USER 1000") < len(lines) - 1
    assert lines[-1] == 'CMD ["tritonserver", "--model-repository=/models"]'
    assert not any("latest" in line for line in lines)
    shutil.copytree(package, tmp_path / "out")
    mirror = f"registry.example.com:5000/nvidia/tritonserver:25.06-py3@sha256:{'ab' * 32}"
    deployable.write(tmp_path / "out", "my_net", image=mirror, origin=ORIGIN)
    assert f"FROM {mirror}" in (tmp_path / "out" / "Dockerfile").read_text().splitlines()


def test_the_manifests_agree_about_names_ports_and_probes(package):
    deployment, service = yaml.safe_load_all((package / "kubernetes.yaml").read_text())
    pod = deployment["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert deployment["metadata"]["name"] == service["metadata"]["name"] == "my-net"
    assert service["spec"]["selector"] == deployment["spec"]["template"]["metadata"]["labels"]
    assert [port["containerPort"] for port in container["ports"]] == [8000, 8001, 8002]
    assert container["livenessProbe"]["exec"]["command"] == ["python3", "/models/probe.py"]
    assert container["readinessProbe"]["httpGet"]["path"] == "/v2/health/ready"
    assert container["resources"]["limits"]["memory"].endswith("Mi")
    assert pod["securityContext"]["runAsNonRoot"] is True
    inference = yaml.safe_load((package / "kserve.yaml").read_text())
    assert inference["kind"] == "InferenceService"
    assert inference["spec"]["predictor"]["containers"][0]["name"] == "kserve-container"
    composed = yaml.safe_load((package / "compose.yaml").read_text())
    assert composed["services"]["my-net"]["ports"] == ["8000:8000", "8001:8001", "8002:8002"]


def test_a_package_for_a_gpu_requests_one():
    deployment = Deployment("net", gpu=True, size=3 << 20)
    [first, _] = yaml.safe_load_all(deployable.kubernetes(deployment))
    limits = first["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
    assert limits == {"memory": "2054Mi", "nvidia.com/gpu": 1}
    assert "nvidia" in deployable.compose(deployment)
    assert "nvidia" not in deployable.compose(Deployment("net", gpu=False, size=1))


def test_where_no_image_is_known_the_readme_says_so(package, tmp_path):
    shutil.copytree(package, tmp_path / "p")
    for path in (tmp_path / "p").iterdir():
        if path.is_file():
            path.unlink()
    deployable.write(tmp_path / "p", "my_net", image="no image at all", origin=ORIGIN)
    assert [path.name for path in (tmp_path / "p").iterdir() if path.is_file()] == ["README.md"]
    assert "There is no Dockerfile: " in (tmp_path / "p" / "README.md").read_text()


def test_the_same_package_has_the_same_bytes(package, built, tmp_path):
    again = built(tmp_path)
    files = sorted(path.name for path in package.iterdir() if path.is_file())
    assert {"README.md", "Dockerfile", "compose.yaml", "kubernetes.yaml", "kserve.yaml"} < set(files)
    assert {name: (package / name).read_bytes() for name in files} == {
        name: (again / name).read_bytes() for name in files
    }


def test_the_manifests_pass_the_schema_of_kubernetes(package):
    reason = "kubernetes-validate is not installed (the extra `dev-deploy`)"
    validate = pytest.importorskip("kubernetes_validate", reason=reason)
    documents = list(yaml.safe_load_all((package / "kubernetes.yaml").read_text()))
    assert [document["kind"] for document in documents] == ["Deployment", "Service"]
    for document in documents:
        validate.validate(document, validate.latest_version(), strict=True)


def test_a_linter_has_nothing_to_say_about_the_dockerfile(package):
    beside = Path(sys.executable).with_name("hadolint")
    program = str(beside) if beside.is_file() else shutil.which("hadolint")
    if program is None:
        pytest.skip("hadolint is not installed (the extra `dev-deploy`)")
    done = subprocess.run([program, package / "Dockerfile"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
