"""A package on a bare Triton server: without recipe, network and root, on a read-only file system."""

import errno
import json
import os
import shutil
import subprocess
from pathlib import Path

import bare_server
import numpy as np
import pytest
from other_user import NOBODY, python_of

from engine.kit.inputs import tokenizer as tokenizers
from engine.kit.triton.serving import Serving
from engine.runtimes.onnxruntime import session as ort
from engine.server import pip_server, ports
from engine.server.installation import ServerSetup
from engine.server.pip_server import VERSION, Packaged
from engine.server.repository_needs import needs_of
from engine.steps.package import Package

pytestmark = pytest.mark.slow

CANNOT_ISOLATE = 77
BARE = """
ip link set lo up || exit 77
mount -o remount,bind,ro / || exit 77
mount -t tmpfs -o mode=1777 tmpfs /dev/shm && mount -t tmpfs -o mode=1777 tmpfs /tmp || exit 77
as_user="setpriv --reuid={user} --regid={user} --clear-groups --no-new-privs --bounding-set=-all"
exec $as_user {python} -I -S {script} {plan}
"""
"""A container by hand, as a package's kubernetes.yaml describes it: only /tmp and /dev/shm take files."""
OURS = ("--model-repository", "--backend-directory", "--http-port", "--grpc-port", "--metrics-port", "--http-address",
        "--grpc-address", "--metrics-address")  # fmt: skip
ALONE = ("pytriton", "nvidia_pytriton.libs", "numpy", "numpy.libs")
"""What a server's Python has that knows no package: Triton and numpy."""


def missing():
    """Return why this machine cannot isolate a server; None if it can."""
    if os.geteuid() != 0:
        return "only root can run a program as another user"
    for tool in ("unshare", "setpriv", "ip"):
        if shutil.which(tool) is None:
            return f"{tool} is not installed"
    tried = ["unshare", "--mount", "--net", "--propagation=private", "mount", "-o", "remount,bind,ro", "/"]
    done = subprocess.run(tried, capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else f"no read-only namespace: {done.stderr.strip()[-100:]}"


@pytest.fixture
def place():
    """A folder that another user may read, and that is not in /tmp. Folders of pytest are closed to other users."""
    folder = Path("/var/tmp") / f"recipe-bare-server-{os.getpid()}"
    folder.mkdir(mode=0o755)
    yield folder
    shutil.rmtree(folder)


def linked(source, target):
    """Give a file another name, or copy it onto another file system: the packages of a server are 360 MB."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def environment_of(python, folder, environment, names=None):
    """Make a virtual environment with packages of another one: those of `names`, or all."""
    subprocess.run([python, "-m", "venv", "--without-pip", folder], check=True, capture_output=True, cwd="/")
    for path in pip_server.packages(environment).iterdir():
        if names is None or path.name in names:
            target = pip_server.packages(folder) / path.name
            if path.is_dir():
                shutil.copytree(path, target, copy_function=linked)
            else:
                linked(path, target)
    return folder


@pytest.mark.parametrize("layout", ["ensemble", "fused"])
@pytest.mark.sample(1)
def test_a_copied_package_answers(layout, minilm_checkpoint, minilm_exported, environment, place):
    """The server of the ensemble has the requirements of its models; the fused package has them beside its model."""
    if reason := missing():
        pytest.skip(reason)
    python = python_of(NOBODY)
    beside = {"EXECUTION_ENV_PATH": {"string_value": "$$TRITON_MODEL_DIRECTORY/environment"}}
    serving = Serving(
        model_name="minilm", ensemble="minilm_text", largest={"batch": 8, "sequence": 256}, layout=layout, threads=1,
        fields={"parameters": beside} if layout == "fused" else {},
    )  # fmt: skip
    Package(serving=serving).run(place / "built", validated=minilm_exported, checkpoint=minilm_checkpoint)
    package = shutil.copytree(place / "built", place / "package")
    shutil.rmtree(place / "built")
    server = environment_of(python, place / "server", environment, ALONE if layout == "fused" else None)
    if layout == "fused":
        environment_of(python, package / "minilm_text" / "environment", environment)

    chosen = ports.free()
    installed = Packaged("pip", VERSION, "for tests", environment=server)
    launch = installed.launch(ServerSetup(package, chosen, place, "recipe_bare", needs_of(package)))
    command = [word for word in launch.command if not word.startswith("--") or word.partition("=")[0] in OURS]
    plan = {
        "command": command, "environment": {**launch.environment, "HOME": "/"}, "model": "minilm_text",
        "url": f"http://127.0.0.1:{chosen.http}", "package": str(package), "server": str(server),
    }  # fmt: skip
    (place / "plan.json").write_text(json.dumps(plan))
    script = shutil.copy(bare_server.__file__, place)
    words = BARE.format(user=NOBODY, python=python, script=script, plan=place / "plan.json")
    done = subprocess.run(
        ["unshare", "--mount", "--net", "--propagation=private", "sh", "-c", words],
        capture_output=True, text=True, check=False, timeout=300, cwd="/",
    )  # fmt: skip
    if done.returncode == CANNOT_ISOLATE:
        pytest.skip(f"no read-only namespace here: {done.stderr.strip()[-200:]}")
    assert done.returncode == 0, done.stderr + done.stdout
    outcome = json.loads(done.stdout)
    assert outcome["user"] == NOBODY
    assert {int(bits, 16) for bits in outcome["able"].values()} == {0}
    assert outcome["written"] == []
    assert outcome["outside"] == os.strerror(errno.ENETUNREACH)
    assert outcome["probe"] == [0, ""]
    answered = np.array(outcome["data"]).reshape(outcome["shape"])
    assert np.abs(answered - expected(minilm_checkpoint, minilm_exported)).max() < 1e-4


def expected(checkpoint, exported):
    """Return the embeddings of the texts, each computed alone: the normalized mean of the hidden states."""
    tokenizer, session = tokenizers.load(checkpoint), ort.session(exported, threads=1)
    means = [ort.run(session, tokenizer.row(text))["last_hidden_state"][0].mean(axis=0) for text in bare_server.TEXTS]
    return np.array([mean / np.linalg.norm(mean) for mean in means])
