"""`recipe serve`: packages on a real Triton server that ends with it, however it ends, and leaves nothing."""

import json
import os
import re
import selectors
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import fake_docker
import graphs
import pytest
from program import Program
from tritonclient import grpc
from tritonclient.utils import InferenceServerException

from engine.errors import UsageError
from engine.server import keeper, ports, scratch

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("interruptible")]

PATIENCE = 300
"""Seconds after which something hangs: nothing is judged by it."""

RECIPE = "name: {name}\nmodel: {{source: {name}.onnx}}\nprofiles: [{{batch: [1, 2, 8]}}]\n{more}"
CACHED = "package: {triton: {response_cache: {enable: true}}}\n"
ON_A_T4 = "target: {device: T4, runtime: tensorrt}\n"
X = {"inputs": [{"name": "x", "shape": [1, 64], "datatype": "FP32", "data": [0.5] * 64}]}


@pytest.fixture(scope="module")
def project(tmp_path_factory, environment):
    """Two recipes for a CPU, built, and one for a GPU; servers keep their scratch folders in it, too."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "pyproject.toml").write_text("")
    for name, more in (("plain", ""), ("cached", CACHED), ("gpu", ON_A_T4)):
        graphs.write(folder / name, graphs.layers())
        (folder / name / "model.onnx").rename(folder / f"{name}.onnx")
        (folder / f"{name}.yaml").write_text(RECIPE.format(name=name, more=more))
    (folder / "tmp").mkdir()
    program = Program(folder)
    program.environment |= {"TMPDIR": str(folder / "tmp"), "RECIPE_TRITON_VENV": str(environment)}
    program.environment["PATH"] = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    program("build", "plain.yaml", "cached.yaml", expect=0)
    return program


class Served:
    """`recipe serve --json` in a process of its own, once it is ready."""

    def __init__(self, project, *words, further=()):
        self.project = project
        words = (*words, "--json", *(("--", *further) if further else ()))
        self.process = project.start("serve", *words, stderr=subprocess.PIPE, start_new_session=True)
        line = self._line(PATIENCE)
        self.status = json.loads(line) if line else {}
        if self.status.get("state") != "ready":
            self.process.kill()
            pytest.fail(f"not ready: {line}\n{self.process.stderr.read()}")
        arguments = Path(f"/proc/{self.status['pid']}/cmdline").read_text().split("\0")
        prefix = next(word for word in arguments if "shm-region-prefix-name" in word)
        self.prefix = prefix.rpartition("=")[2]
        self.session = os.getsid(self.status["pid"])
        """Of the keeper, which leads it."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()
        for pipe in (self.process.stdout, self.process.stderr):
            pipe.close()

    def _line(self, seconds):
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            return self.process.stdout.readline() if selector.select(seconds) else ""

    def ask(self, model):
        return ask(self.status["http"], model)

    def shared_memory(self):
        return list(keeper.SHARED_MEMORY.glob(f"{self.prefix}*"))

    def processes(self):
        """The processes of the keeper's session: itself, the server, a process for each python model."""
        pids = []
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if fields[0] != "Z" and int(fields[3]) == self.session:
                pids.append(int(stat.parent.name))
        return pids

    def left(self):
        """What is left of the server: shared memory, processes, folders."""
        servers = [path for path in (self.project.folder / "tmp").glob("recipe-servers-*/*") if path.is_dir()]
        repositories = list((self.project.folder / "build").glob(".serving-*"))
        return [*self.shared_memory(), *self.processes(), *servers, *repositories]


def ask(url, model):
    request = urllib.request.Request(f"{url}/v2/models/{model}/infer", json.dumps(X).encode())
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return json.load(answer)["outputs"][0]["data"]


def gone(left, seconds=30):
    """Wait until nothing is left; return what is after that time."""
    end = time.monotonic() + seconds
    while (pids := left()) and time.monotonic() < end:
        time.sleep(0.1)
    return pids


def given_ports():
    free = ports.free()
    return ["--http-port", str(free.http), "--grpc-port", str(free.grpc), "--metrics-port", str(free.metrics)]


def test_two_packages_in_one_repository_are_served_shown_and_cleared(project):
    """The server listens at a name here, and at an IPv6 address with --whole."""
    given = given_ports()
    local = ("--address", "localhost")
    with Served(project, "plain.yaml", "cached.yaml", "--server", "pip", *local, *given) as served:
        status = served.status
        assert status["models"] == {"plain": "READY", "cached": "READY"}
        assert status["server"] == status["server"] | {"kind": "pip", "version": "2.51.0", "stand_in": True}
        assert [status["http"], status["grpc"]] == [f"http://127.0.0.1:{given[1]}", f"grpc://127.0.0.1:{given[3]}"]
        assert grpc.InferenceServerClient(status["grpc"].removeprefix("grpc://")).is_server_ready()
        assert served.ask("plain") == served.ask("cached") == served.ask("cached")
        for line in status["curl"].values():
            response = subprocess.run(["sh", "-c", line], capture_output=True, timeout=PATIENCE, check=True).stdout
            assert b'"outputs"' in response
        metrics = urllib.request.urlopen(status["metrics"], timeout=PATIENCE).read().decode()
        hits = [line for line in metrics.splitlines() if line.startswith('nv_cache_num_hits_per_model{model="cached"')]
        assert hits
        assert float(hits[0].split()[-1]) >= 1
        assert "Started HTTPService" in Path(status["log"]).read_text()
        taken = project("serve", "plain.yaml", "--http-port", given[1], expect=2)
        assert f"port {given[1]} of 127.0.0.1 is taken" in taken.stderr
        assert served.shared_memory()
        assert served.processes()
        served.process.send_signal(signal.SIGINT)
        assert served.process.wait(PATIENCE) == 0
        assert served.left() == []
    assert project.states("plain.yaml", "cached.yaml")["package"] == "cached"


@pytest.mark.whole
def test_a_server_listens_at_an_ipv6_address(project):
    try:
        ports.choose("::1", None, None, None)
    except UsageError as error:
        pytest.skip(f"this machine has no ::1: {error.facts}")
    with Served(project, "plain.yaml", "--server", "pip", "--address", "::1", *given_ports()) as served:
        for name, protocol in (("http", "http"), ("grpc", "grpc"), ("metrics", "http")):
            assert served.status[name].startswith(f"{protocol}://[::1]:")
        assert served.ask("plain")
        line = served.status["curl"]["plain"]
        answer = subprocess.run(["sh", "-c", line], capture_output=True, timeout=PATIENCE, check=True).stdout
        assert b'"outputs"' in answer
        assert urllib.request.urlopen(served.status["metrics"], timeout=PATIENCE).status == 200
        assert grpc.InferenceServerClient(served.status["grpc"].removeprefix("grpc://")).is_server_ready()


@pytest.mark.whole
def test_a_killed_server_is_said_and_cleared_and_served_again(project):
    with Served(project, "plain.yaml") as served:
        os.kill(served.status["pid"], signal.SIGKILL)
        assert served.process.wait(PATIENCE) == 1
        errors = served.process.stderr.read()
        assert "ended by itself (killed by signal 9)" in errors
        assert "start the server again" in errors
        assert served.left() == []
    with Served(project, "plain.yaml", "gpu.yaml", "--allow-waiting") as again:
        assert list(again.status["models"]) == ["plain"]
        assert again.ask("plain")
        os.kill(again.process.pid, signal.SIGKILL)  # nobody is left to stop the server but its keeper
        assert again.process.wait(PATIENCE) == -signal.SIGKILL
        assert gone(again.left) == []


@pytest.mark.whole("test_two_packages_in_one_repository_are_served_shown_and_cleared")
def test_a_small_dev_shm_is_named_with_what_makes_it_larger(project):
    if subprocess.run(["unshare", "-m", "true"], check=False).returncode:
        pytest.skip("this user may not mount file systems in a namespace of its own")
    mount = 'mount -t tmpfs -o size=64k tmpfs /dev/shm && exec "$@"'
    command = ["unshare", "-m", "sh", "-c", mount, "sh", sys.executable, "-m", "engine", "serve", "plain.yaml"]
    done = subprocess.run(
        [*command, "--server", "pip"], cwd=project.folder, env=project.environment, capture_output=True, text=True,
        timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "Triton cannot load plain" in done.stderr
    assert "/dev/shm is full: each instance of the python backend needs 1 MB" in done.stderr
    assert "--shm-size=1g" in done.stderr


def test_a_stranger_changes_nothing_of_a_server_and_the_user_opens_it_by_an_option(project):
    """The stranger asks for the region through which Triton and the model's own process talk."""
    with Served(project, "plain.yaml", "--server", "pip") as served:
        region = served.shared_memory()[0].name
        with grpc.InferenceServerClient(served.status["grpc"].removeprefix("grpc://")) as client:
            for administer in (
                lambda: client.register_system_shared_memory("stolen", f"/{region}", 8),
                lambda: client.update_trace_settings(settings={"trace_rate": "1"}),
                lambda: client.update_log_settings({"log_verbose_level": 9}),
            ):
                with pytest.raises(InferenceServerException, match="This protocol is restricted"):
                    administer()
        for path in ("systemsharedmemory/region/stolen/register", "trace/setting", "logging"):
            body = json.dumps({"key": f"/{region}", "offset": 0, "byte_size": 8}).encode()
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(f"{served.status['http']}/v2/{path}", body, timeout=PATIENCE)
            assert refused.value.code == 403
        assert served.ask("plain")
    closed = "trace,logging:admin=secret"
    opened = (f"--http-restricted-api={closed}", f"--grpc-restricted-protocol={closed}")
    with Served(project, "plain.yaml", "--server", "pip", further=opened) as served:
        client = grpc.InferenceServerClient(served.status["grpc"].removeprefix("grpc://"))
        assert not client.get_system_shared_memory_status().regions
        with pytest.raises(InferenceServerException, match="restricted"):
            client.get_log_settings()
        client.close()


@pytest.mark.whole("test_two_packages_in_one_repository_are_served_shown_and_cleared")
def test_a_model_whose_process_was_killed_ends_serving(project):
    with Served(project, "plain.yaml") as served:
        [process] = [pid for pid in served.processes()
                     if b"/plain/1/" in Path(f"/proc/{pid}/cmdline").read_bytes()]  # fmt: skip
        os.kill(process, signal.SIGKILL)
        assert served.process.wait(PATIENCE) == 1
        errors = served.process.stderr.read()
        assert "plain stopped answering, though Triton reports every model as ready" in errors
        assert re.search("plain: (Stub process|Python processes that run: 0 of 1)", errors)  # a request may tell first
        assert served.left() == []


@pytest.mark.whole("test_two_packages_in_one_repository_are_served_shown_and_cleared")
def test_when_all_that_watched_is_killed_the_server_dies_and_the_next_clears_it(project, monkeypatch):
    with Served(project, "plain.yaml") as served:
        session = served.session
        os.kill(served.process.pid, signal.SIGSTOP)
        os.kill(session, signal.SIGKILL)  # the keeper leads the session
        assert gone(lambda: [pid for pid in served.processes() if pid == served.status["pid"]]) == []
        os.kill(served.process.pid, signal.SIGKILL)
        served.process.wait(PATIENCE)
        assert gone(served.processes) == []
        assert served.left()
        monkeypatch.setattr(scratch.tempfile, "gettempdir", lambda: str(project.folder / "tmp"))
        assert scratch.sweep() == 1
        assert [path for path in served.left() if ".serving-" not in str(path)] == []


@pytest.mark.whole("test_two_packages_in_one_repository_are_served_shown_and_cleared")
def test_a_container_runs_the_image_with_the_repository_read_only(project, tmp_path):
    home = tmp_path / "docker"
    path = f"{fake_docker.install(tmp_path / 'bin', home)}:{project.environment['PATH']}"
    program = Program(project.folder)
    program.environment |= project.environment | {"PATH": path, "FAKE_DOCKER": str(home)}
    process = program.start("serve", "plain.yaml", "--json", *given_ports(), start_new_session=True)
    try:
        status = json.loads(process.stdout.readline())
        assert status["server"]["kind"] == "container"
        assert status["server"]["stand_in"] is False
        assert ask(status["http"], "plain")
    finally:
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)  # does not wait for the server to unload its models
        assert process.wait(PATIENCE) == 0
        process.stdout.close()
        for left in keeper.SHARED_MEMORY.glob("fake_*"):
            left.unlink()
    lines = [each["words"] for each in fake_docker.calls(home)]
    run = next(words for words in lines if words[0] == "run")
    name = next(word for word in run if word.startswith("--name=")).partition("=")[2]
    assert ["pull", "nvcr.io/nvidia/tritonserver:25.06-py3"] in lines
    assert lines[-1] == ["rm", "--force", name]
    assert any(word.endswith(":/models:ro") for word in run)
    assert f"--volume={project.folder / 'build' / 'plain' / 'plain'}:" in " ".join(run)
    assert "--gpus" not in run


def test_a_waiting_package_serves_nothing(project):
    done = project("serve", "gpu.yaml", "--json", expect=3)
    assert json.loads(done.stdout)["exit"] == 3
    assert "nothing is served" in done.stderr


def test_without_any_server_the_one_command_is_named(project, tmp_path):
    program = Program(project.folder)
    program.environment |= {"RECIPE_TRITON_VENV": str(tmp_path), "PATH": str(tmp_path)}
    done = program("serve", "plain.yaml", "--json", expect=1)
    error = json.loads(done.stdout)["error"]
    assert "recipe serve --install" in error["hint"]
    assert [fact.partition(":")[0] for fact in error["facts"]] == ["on the PATH", "in a container", "installed by pip"]


def test_two_packages_with_a_model_of_one_name_are_refused_before_they_are_built(project):
    (project.folder / "twin.yaml").write_text(
        RECIPE.format(name="twin", more="package: {triton: {name: plain}}\n").replace("twin.onnx", "plain.onnx")
    )
    done = project("serve", "plain.yaml", "twin.yaml", expect=2)
    assert "two packages hold a model called 'plain'" in done.stderr
    assert "package.triton.name" in done.stderr
    assert not (project.folder / "build" / "twin").exists()


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--http-port", "0"], "0 is not from 1 to 65535"),
        (["--http-port", "9100", "--grpc-port", "9100"], "two of the ports are the same"),
        (["--address", "203.0.113.7"], "nothing can listen on 203.0.113.7"),
        (["--address", "no-such-host.invalid"], "is no address, and no host that this machine knows"),
    ],
)
def test_ports_that_cannot_be_are_refused_before_anything_is_built(project, words, says):
    assert says in project("serve", "plain.yaml", *words, expect=2).stderr
