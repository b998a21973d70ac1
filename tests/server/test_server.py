"""Which Triton server is found, what it is started with, and what is refused."""

import http.server
import os
import socket
import subprocess
import threading
from pathlib import Path

import fake_docker
import graphs
import passports
import pytest

from engine import server as serving
from engine.errors import StepError, UsageError
from engine.server import health, install, layout, needs_of, packaged, ports, said, scratch, versions
from engine.server.found import Lacking, Place, options
from engine.server.layout import Package
from engine.server.needs import Engine, Needs
from engine.server.ports import Ports

ONNX = 'name: "a"\nplatform: "onnxruntime_onnx"\nmax_batch_size: 8\n'
GPU = "instance_group { kind: KIND_GPU }\n"


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """A machine without any server; `tmp_path / "bin"` is its PATH."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("RECIPE_TRITON_VENV", str(tmp_path / "environment"))
    for name in ("NVIDIA_TRITON_SERVER_VERSION", "TRITON_SERVER_VERSION"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def docker(bare, monkeypatch):
    """The memory of a fake docker on that machine's PATH."""
    home = bare / "docker"
    monkeypatch.setenv("FAKE_DOCKER", str(home))
    fake_docker.install(bare / "bin", home)
    return home


def on_path(folder, *backends):
    """Put a program called tritonserver on the PATH, with backends beside it."""
    home = folder / "opt"
    (home / "bin").mkdir(parents=True)
    program = home / "bin" / "tritonserver"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    for name in backends:
        (home / "backends" / name).mkdir(parents=True)
    (home / "TRITON_VERSION").write_text("2.51.0\n")
    (folder / "bin" / "tritonserver").symlink_to(program)
    return program


def pip_installed(folder, **versions_of):
    """Lay an environment out as the installed one lies, with these packages in it."""
    site = folder / "environment" / "lib" / f"python{packaged.PYTHON}" / "site-packages"
    (site / "pytriton" / "tritonserver" / "python_backend_stubs" / packaged.PYTHON).mkdir(parents=True)
    for name, version in versions_of.items():
        info = site / f"{name}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (folder / "environment" / "ready").write_text("")


def model(repository, name, text, **files):
    folder = repository / name / "1"
    folder.mkdir(parents=True)
    (folder.parent / "config.pbtxt").write_text(text.replace('"a"', f'"{name}"'))
    for file, content in files.items():
        (folder.parent / file.replace("_txt", ".txt")).write_text(content)
    return folder


def place(needs, repository=Path("/packages")):
    return Place(repository, Ports(8000, 8001, 8002), Path("/scratch"), "recipe_ab12", needs)


def test_a_repository_says_what_it_needs(tmp_path):
    model(tmp_path, "a", ONNX + "response_cache { enable: true }\n")
    model(tmp_path, "words", 'name: "a"\nbackend: "python"\n', requirements_txt="# why\ntokenizers==0.22.1  # pinned\n")
    model(tmp_path, "all", 'name: "a"\nplatform: "ensemble"\n')
    folder = model(tmp_path, "fast", 'name: "a"\nplatform: "tensorrt_plan"\n')
    passports.save(folder, inputs={}, outputs={})
    found = needs_of(tmp_path)
    assert found.models == ("a", "all", "fast", "words")
    assert found.backends == {"onnxruntime", "python", "tensorrt"}
    assert (found.gpu, found.cached) == (("fast",), ("a",))
    assert found.engines == (Engine("fast", "10.13.0.35"),)
    assert found.requirements == {"tokenizers==0.22.1": "words"}


def test_the_server_on_the_path_comes_first_where_it_has_the_backends(bare, docker):
    program = on_path(bare, "onnxruntime", "python")
    found = serving.find(Needs(backends=frozenset({"onnxruntime"})))
    assert (found.kind, found.version, found.stand_in) == ("path", "2.51.0", False)
    command = found.launch(place(Needs(cached=("a",)))).command
    assert command[0] == str(bare / "bin" / "tritonserver")
    assert f"--backend-directory={program.parent.parent / 'backends'}" in command
    assert "--backend-config=python,shm-region-prefix-name=recipe_ab12_" in command
    assert any(word.startswith("--cache-config=local,size=") for word in command)


def test_a_server_without_the_backend_is_passed_and_the_container_says_why(bare, docker):
    on_path(bare, "python")
    found = serving.find(Needs(backends=frozenset({"onnxruntime"})))
    assert found.kind == "container"
    assert "no backend for onnxruntime" in found.passed[0]


def test_a_server_with_another_tensorrt_names_both_versions(bare, monkeypatch):
    on_path(bare, "tensorrt")
    monkeypatch.setenv("NVIDIA_TRITON_SERVER_VERSION", "24.10")
    engine = Needs(backends=frozenset({"tensorrt"}), engines=(Engine("fast", "10.13.0.35"),), gpu=("fast",))
    with pytest.raises(StepError) as error:
        serving.find(engine, only="path")
    assert "TensorRT 10.13.0.35" in str(error.value)
    assert "has TensorRT 10.5" in str(error.value)


def test_the_image_is_the_one_whose_tensorrt_fits_the_engine():
    assert versions.tag_for([Engine("fast", "10.5.0.18")], None) == "24.10-py3"
    assert versions.tag_for([Engine("fast", "10.5.0.18", version_compatible=True)], "25.06") == "25.06-py3"
    assert versions.tag_for([], None) == versions.USUAL
    assert versions.tag_for([], "24.10") == "24.10-py3"


@pytest.mark.parametrize(
    ("built", "image", "says"),
    [
        ("10.13.0.35", None, ["TensorRT 10.13.0.35 (fast)", "25.06-py3 has 10.11"]),
        ("10.13.0.35", "24.10", ["built by TensorRT 10.13.0.35", "the image 24.10-py3 has TensorRT 10.5"]),
        ("10.5.0.18", "24.10-vllm-python-py3", ["no backend for TensorRT engines"]),
        ("10.5.0.18", "latest", ["none of Triton's: 'latest'"]),
    ],
)
def test_an_engine_that_no_image_loads_is_refused_with_both_versions(built, image, says):
    with pytest.raises(Lacking) as error:
        versions.tag_for([Engine("fast", built)], image)
    assert all(each in str(error.value) for each in says)


def test_an_older_engine_is_loaded_by_a_later_minor_only_where_it_was_built_so():
    assert not versions.loads(Engine("fast", "10.5.0.18"), "10.11")
    assert versions.loads(Engine("fast", "10.5.0.18", version_compatible=True), "10.11")
    assert not versions.loads(Engine("fast", "10.13.0.35", version_compatible=True), "10.11")
    assert not versions.loads(Engine("fast", "8.6.1.6", version_compatible=True), "10.11")


def test_what_python_models_need_is_put_into_an_image_once(docker):
    needs = Needs(backends=frozenset({"python"}), requirements={"tokenizers==0.22.1": "words", "pillow==12.0": "see"})
    first = serving.find(needs, image="24.10")
    calls = fake_docker.calls(docker)
    (build,) = [each for each in calls if each["words"][0] == "build"]
    assert build["text"] == (
        "FROM nvcr.io/nvidia/tritonserver:24.10-py3\n"
        "RUN pip install --no-cache-dir 'pillow==12.0' 'tokenizers==0.22.1'\n"
    )
    again = serving.find(needs, image="24.10")
    assert again.image == first.image == build["words"][2]
    assert [each["words"][0] for each in fake_docker.calls(docker)[len(calls) :]] == ["info", "image"]


def test_two_pins_of_one_package_name_both_models(docker):
    needs = Needs(requirements={"tokenizers==0.22.1": "words", "tokenizers==0.23.3": "names"})
    with pytest.raises(StepError, match=r"words needs tokenizers==0\.22\.1, and names needs tokenizers==0\.23\.3"):
        serving.find(needs, only="container")


def test_only_packages_for_a_gpu_get_the_gpus_of_the_machine(docker):
    needs = Needs(backends=frozenset({"onnxruntime"}), gpu=("a",))
    found = serving.find(needs)
    launch = found.launch(place(needs))
    words = list(launch.command)
    assert words[words.index("--gpus") + 1] == "all"
    assert "--publish=127.0.0.1:8001:8001" in words
    assert "--volume=/packages:/models:ro" in words
    assert "--model-repository=/models" in words
    assert words[words.index("tritonserver") - 1] == "nvcr.io/nvidia/tritonserver:25.06-py3"
    assert launch.afterwards == [[found.tool, "rm", "--force", "recipe-ab12"]]
    assert "--gpus" not in found.launch(place(Needs())).command


def test_a_daemon_that_does_not_answer_and_a_pull_that_fails_are_said(bare, docker):
    (docker / "offline").touch()
    with pytest.raises(StepError, match="cannot be pulled: no route to host"):
        serving.find(only="container")
    (docker / "silent").touch()
    with pytest.raises(StepError, match="docker does not answer: Cannot connect"):
        serving.find(only="container")


def test_the_doctor_fetches_no_image(docker):
    found = serving.find(only="container", pull=False)
    assert found.why.endswith("once it is pulled")
    assert {each["words"][0] for each in fake_docker.calls(docker)} == {"info", "image"}


@pytest.fixture
def linux(monkeypatch):
    monkeypatch.setattr(packaged, "refuse_platform", lambda: None)


def test_the_pip_installed_server_refuses_what_is_for_a_gpu(bare, linux):
    pip_installed(bare)
    with pytest.raises(StepError, match="it is for CPUs, and fast runs on a GPU"):
        serving.find(Needs(gpu=("fast",)), only="pip")


def test_a_package_that_is_pinned_otherwise_is_named_with_the_one_command(bare, linux):
    pip_installed(bare, tokenizers="0.23.3", Pillow="13.0.0")
    asked = {"tokenizers==0.22.1": "words", "pillow==13.0.0": "see"}
    with pytest.raises(StepError) as error:
        serving.find(Needs(requirements=asked), only="pip")
    assert "lacks tokenizers==0.22.1 for words (it has 0.23.3)" in str(error.value)
    assert error.value.hint == "recipe serve --install"
    found = serving.find(Needs(requirements={"tokenizers==0.23.3": "words"}))
    assert (found.kind, found.stand_in) == ("pip", True)


def test_elsewhere_than_on_linux_the_pip_installed_server_says_so(bare, monkeypatch):
    monkeypatch.setattr(packaged.sys, "platform", "darwin")
    with pytest.raises(StepError, match="made for Linux on x86-64, and this is darwin"):
        serving.find(only="pip")


def test_a_python_without_numpy_1_says_so(bare, monkeypatch):
    monkeypatch.setattr(packaged, "_LAST_PYTHON", (3, 10))
    with pytest.raises(StepError, match=r"numpy 1 alone, which is there up to Python 3\.10"):
        serving.find(only="pip")


def test_a_missing_libpython_is_said_with_the_line_that_brings_it(bare, monkeypatch):
    monkeypatch.setattr(packaged, "_has_libpython", lambda: False)
    monkeypatch.setattr(packaged.os, "uname", lambda: os.uname_result(("Linux", "n", "r", "v", "x86_64")))
    with pytest.raises(StepError) as error:
        install.install(bare / "environment")
    assert error.value.hint == f"apt-get install libpython{packaged.PYTHON}"


def test_the_environment_is_made_with_exact_pins_of_what_is_installed_here(bare, linux, monkeypatch):
    ran = []
    monkeypatch.setattr(install, "_run", ran.append)
    monkeypatch.setattr(install, "_here", lambda name: "0.22.1" if name == "tokenizers" else None)
    made = install.install(bare / "environment", lambda line: None)
    assert (made.environment / "ready").is_file()
    assert ran[1][-2:] == ["--no-deps", "nvidia-pytriton==0.7.0"]
    assert ran[2][-4:] == ["numpy==1.26.4", "onnxruntime==1.31.1", "tokenizers==0.22.1", "pillow==13.0.0"]


def test_a_failed_install_leaves_no_environment_that_looks_ready(bare, linux, monkeypatch):
    monkeypatch.setattr(
        install.subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 1, "", "no such version")
    )
    with pytest.raises(StepError, match="no such version"):
        install.install(bare / "environment", lambda line: None)
    assert not (bare / "environment" / "ready").exists()


def test_ports_are_the_usual_ones_or_others_and_those_that_are_given():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        busy = taken.getsockname()[1]
        with pytest.raises(UsageError, match=f"port {busy} of 127.0.0.1 is taken"):
            ports.choose("127.0.0.1", busy, None, None)
    given = ports.free()
    chosen = ports.choose("127.0.0.1", None, given.grpc, None)
    assert chosen.grpc == given.grpc
    assert len({chosen.http, chosen.grpc, chosen.metrics}) == 3
    with pytest.raises(UsageError, match="two of the ports are the same"):
        ports.choose("127.0.0.1", given.http, given.http, None)


class Another(http.server.BaseHTTPRequestHandler):
    """A server that some other program has."""

    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"name":"triton"}')

    def log_message(self, *_):
        pass


def test_another_server_on_the_port_is_not_taken_for_ours(bare):
    with http.server.HTTPServer(("127.0.0.1", 0), Another) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"127.0.0.1:{server.server_port}"
        assert health.is_there(address, "triton")
        assert not health.is_there(address, "recipe_0123")
        server.shutdown()
    assert not health.is_there(address, "triton")
    place = Place(bare, ports.free(), bare, "recipe_0123", Needs())
    assert "--id=recipe_0123" in options(place, "models", place.ports)


def test_packages_lie_in_one_repository_without_a_way_into_them(tmp_path):
    for name in ("one", "two"):
        model(tmp_path / name, f"m_{name}", ONNX, requirements_txt="tokenizers==0.22.1\n")
    both = [Package(f"{name}.yaml", tmp_path / name) for name in ("one", "two")]
    (tmp_path / ".serving-dead").mkdir()
    with layout.together(both, tmp_path) as repository:
        assert sorted(path.name for path in repository.iterdir()) == ["m_one", "m_two"]
        (repository / "m_one" / "1" / "left-by-a-server").touch()
        assert layout.targets(repository) == [tmp_path]
        assert needs_of(repository).models == ("m_one", "m_two")
        assert not (tmp_path / ".serving-dead").exists()
        with layout.together(both[:1], tmp_path):
            assert repository.is_dir()
    assert not repository.exists()
    assert list((tmp_path / "one" / "m_one" / "1").iterdir()) == []


def test_two_models_of_one_name_name_both_recipes_and_the_fields(tmp_path):
    for name in ("one", "two"):
        model(tmp_path / name, "same", ONNX)
    both = [Package(f"{name}.yaml", tmp_path / name) for name in ("one", "two")]
    with pytest.raises(UsageError) as error, layout.together(both, tmp_path):
        pass
    assert error.value.facts == ("one.yaml", "two.yaml")
    assert "package.triton.name" in error.value.hint


def test_an_engine_of_tensorrt_rtx_is_no_model_of_tritons(tmp_path):
    (tmp_path / "rtx" / "fast").mkdir(parents=True)
    with pytest.raises(StepError, match="fast is no Triton repository"), layout.together(
        [Package("rtx.yaml", tmp_path / "rtx")], tmp_path
    ):  # fmt: skip
        pass


def test_a_folder_of_a_living_server_is_left_alone_and_one_of_a_dead_one_cleared(tmp_path, monkeypatch):
    monkeypatch.setattr(scratch.tempfile, "gettempdir", lambda: str(tmp_path))
    alive, dead = scratch.new(), scratch.new()
    ran = tmp_path / "ran"
    dead.write_plan(
        {"afterwards": [["touch", str(ran)]], "shared_memory": f"{dead.name}_", "folders": [str(dead.folder)]}
    )
    os.close(dead.lock)
    assert scratch.sweep() == 1
    assert alive.folder.is_dir()
    assert not dead.folder.exists()
    assert ran.exists()
    alive.drop()


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("ModuleNotFoundError: No module named 'tokenizers'", "lacks tokenizers"),
        ("failed to start HTTP service: Socket '127.0.0.1:8000' already in use", "took the port"),
        ("instance group a_0 of model a has kind KIND_GPU but no GPUs are available", "the server sees none"),
    ],
)
def test_what_a_log_says_is_put_in_plain_words(line, says):
    assert says in said.meaning([line])
    assert said.meaning(["all is well"]) == ""


@pytest.mark.slow
def test_a_model_that_cannot_be_loaded_is_named_with_the_servers_reason(tmp_path, request):
    import triton_server

    try:
        environment = triton_server.venv(request.config.cache.mkdir("triton"))
    except triton_server.Unavailable as reason:
        pytest.skip(f"no Triton server here: {reason}")
    good = graphs.write(tmp_path / "good", graphs.layers())
    text = 'input { name: "x" data_type: TYPE_FP32 dims: 64 }\noutput { name: "y" data_type: TYPE_FP32 dims: 4 }\n'
    group = "instance_group { kind: KIND_CPU }\n"
    for name, more in (("fine", ""), ("unread", "nonsense"), ("torn", "")):
        folder = model(tmp_path / "repository", name, ONNX + text + group)
        content = b"no model" if name == "torn" else (good / "model.onnx").read_bytes()
        (folder / "model.onnx").write_bytes(content)
        if more:
            (folder.parent / "config.pbtxt").write_text(ONNX.replace('"a"', '"other"') + text + group)
    with pytest.raises(StepError) as error, triton_server.serving(tmp_path / "repository", tmp_path, environment):
        pass
    assert error.value.what == "Triton cannot load torn and unread"
    assert "torn: Internal" in str(error.value)
    assert "fine" not in str(error.value)
