"""The files with which a package is deployed: of a CPU package, of a GPU package, and where no image is known."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import graphs
import pytest
import yaml

from engine.kit.triton.serving import Serving
from engine.server import deployable, manifests, proxy
from engine.server.deployable import PackageOrigin
from engine.server.manifests import Deployment
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
    assert lines[-1].startswith('CMD ["sh", "-c", "exec tritonserver --model-repository=/models --http-restricted-api=')
    assert lines[-1].count("=shared-memory,trace,logging:recipe=$(cat /proc/sys/kernel/random/uuid)") == 2
    assert not any("latest" in line for line in lines)
    shutil.copytree(package, tmp_path / "out")
    mirror = f"registry.example.com:5000/nvidia/tritonserver:25.06-py3@sha256:{'ab' * 32}"
    deployable.write(tmp_path / "out", "my_net", image=mirror, origin=ORIGIN)
    assert f"FROM {mirror}" in (tmp_path / "out" / "Dockerfile").read_text().splitlines()


def test_the_user_of_the_image_may_read_files_that_nobody_else_may(package):
    copies = [line for line in (package / "Dockerfile").read_text().splitlines() if line.startswith("COPY ")]
    assert copies == ["COPY --chmod=755 . /models"]


def test_the_image_has_the_nginx_whose_limits_the_proxy_uses(package):
    """nginx-light of Ubuntu 22.04, the base of Triton's images up to 24.10, lacks limit_conn and limit_req."""
    assert "limit_conn" in (package / "nginx.conf").read_text()
    assert " nginx-core " in (package / "Dockerfile").read_text()


def test_the_package_has_the_proxy_and_the_manifests_of_its_own_server(package):
    assert (package / "nginx.conf").read_text() == proxy.nginx(
        of_one_client=64, rate=2000, body="4m", models="(my_net)"
    )
    for file in ("kubernetes.yaml", "kserve.yaml", "compose.yaml"):
        assert "--model-repository=/models" in (package / file).read_text()
    deployment = next(yaml.safe_load_all((package / "kubernetes.yaml").read_text()))
    assert deployment["metadata"]["name"] == "my-net"
    for container in deployment["spec"]["template"]["spec"]["containers"]:
        paths = [word for word in str(container).replace("'", " ").split() if word.startswith("/models/")]
        assert paths
        assert all((package / path.removeprefix("/models/")).is_file() for path in paths)


NAMES = {
    "net": "net",
    "my_net": "my-net",
    "my-net": "my-net-",
    "MY_net": "my-net-",
    "my.net": "my-net-",
    "My-net": "my-net-",
    "a_": "a-",
    "a--": "a-",
    "2fast": "model-2fast-",
    "model_2fast": "model-2fast",
    "a__b": "a--b",
    "a_-b": "a-b-",
    "_": "model-",
    "-": "model-",
    "a" * 71: "a" * 36 + "-",
    "a" * 45: "a" * 45,
    "a" * 46: "a" * 36 + "-",
    "a" * 35 + "_" + "b" * 20: "a" * 35 + "-",
    "größe": "gr-e-",
}
"""The name of a model, and how that of its objects begins; where it ends with a dash, a digest follows."""


@pytest.mark.parametrize("name", NAMES)
def test_each_model_gets_a_name_that_services_and_kserve_take(name):
    label = deployable.dns_name(name)
    assert re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", label)
    assert len(f"{label}-predictor-default") <= 63
    assert re.fullmatch(NAMES[name] + "[0-9a-f]{8}" * NAMES[name].endswith("-"), label)


def test_no_two_models_get_the_same_name():
    assert len({deployable.dns_name(name) for name in NAMES}) == len(NAMES) > 10


def test_a_package_for_a_gpu_requests_one():
    deployment = Deployment("net", gpu=True, size=3 << 20, command=("tritonserver",))
    first = next(yaml.safe_load_all(manifests.kubernetes(deployment)))
    limits = first["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
    assert limits == {"memory": "2054Mi", "nvidia.com/gpu": 1}
    assert "nvidia" in manifests.compose(deployment)
    assert "nvidia" not in manifests.compose(Deployment("net", gpu=False, size=1, command=()))


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
    assert {"README.md", "Dockerfile", "compose.yaml", *manifests.FILES} < set(files)
    assert {name: (package / name).read_bytes() for name in files} == {
        name: (again / name).read_bytes() for name in files
    }


def test_a_linter_has_nothing_to_say_about_the_dockerfile(package):
    beside = Path(sys.executable).with_name("hadolint")
    program = str(beside) if beside.is_file() else shutil.which("hadolint")
    if program is None:
        pytest.skip("hadolint is not installed (the extra `dev-deploy`)")
    done = subprocess.run([program, package / "Dockerfile"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
