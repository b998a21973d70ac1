"""A package on a bare Triton server: without recipe, network and root, on a read-only file system."""

import contextlib
import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from engine.kit.inputs import tokenizer as tokenizers
from engine.kit.triton.serving import Serving
from engine.runtimes.onnxruntime import session as ort
from engine.server import ports
from engine.server.installation import Place
from engine.server.needs import needs_of
from engine.server.packaged import VERSION, Packaged
from engine.steps.package import Package

pytestmark = [pytest.mark.slow, pytest.mark.whole]

NOBODY = 65534
SCRIPT = Path(__file__).parents[1] / "support" / "bare_server.py"
BARE = """
ip link set lo up || exit 77
mount --bind {environment} {server} && mount -o remount,bind,ro {server} || exit 77
mount -o remount,bind,ro / || exit 77
mount -t tmpfs -o mode=1777 tmpfs /dev/shm && mount -t tmpfs -o mode=1777 tmpfs /tmp || exit 77
exec setpriv --reuid={user} --regid={user} --clear-groups {python} -I -S {script} {plan}
"""
OURS = ("--model-repository", "--backend-directory", "--http-port", "--grpc-port", "--metrics-port", "--http-address",
        "--grpc-address", "--metrics-address")  # fmt: skip


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


def python_of(user):
    """Return a Python that another user may run: the tests' own may lie in a home folder."""
    for name in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        with contextlib.suppress(OSError):
            if subprocess.run([name, "-I", "-c", "import json"], user=user, check=False, cwd="/").returncode == 0:
                return name
    pytest.skip("no Python that another user may run")


@pytest.fixture
def place():
    """A folder that another user may read. Folders of pytest are closed to other users."""
    folder = Path("/var/tmp") / f"recipe-bare-server-{os.getpid()}"
    folder.mkdir(mode=0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("layout", ["fused", "ensemble"])
def test_a_copied_package_answers(layout, minilm_checkpoint, minilm_exported, environment, place):
    if reason := missing():
        pytest.skip(reason)
    python = python_of(NOBODY)
    options = {"largest": {"batch": 8, "sequence": 256}, "layout": layout, "threads": 1}
    serving = Serving(model_name="minilm", ensemble="minilm_text", **options)
    Package(serving=serving).run(place / "package", validated=minilm_exported, checkpoint=minilm_checkpoint)
    chosen = ports.free()
    installed = Packaged("pip", VERSION, "for tests", environment=environment)
    own = Place(place / "package", chosen, place, "recipe_bare", needs_of(place / "package"))
    launch = installed.launch(own)  # writes the server's backends, which the package does not need to know
    command = [word for word in launch.command if not word.startswith("--") or word.partition("=")[0] in OURS]
    plan = {
        "command": command, "environment": dict(launch.environment), "url": f"http://127.0.0.1:{chosen.http}",
        "package": str(place / "package"), "model": "minilm_text",
    }  # fmt: skip
    # The environment may lie in /tmp, which the server gets for itself, as the manifests of a package give it.
    (place / "server").mkdir()
    (place / "plan.json").write_text(json.dumps(plan).replace(str(environment), str(place / "server")))
    script = shutil.copy(SCRIPT, place)
    for path in (place, *place.rglob("*")):
        with contextlib.suppress(OSError):
            path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)
    words = BARE.format(
        user=NOBODY, python=python, script=script, plan=place / "plan.json", environment=environment,
        server=place / "server",
    )  # fmt: skip
    done = subprocess.run(
        ["unshare", "--mount", "--net", "--propagation=private", "sh", "-c", words],
        capture_output=True, text=True, check=False, timeout=300, cwd="/",
    )  # fmt: skip
    if done.returncode == 77:
        pytest.skip(f"no read-only namespace here: {done.stderr.strip()[-200:]}")
    assert done.returncode == 0, done.stderr + done.stdout
    outcome = json.loads(done.stdout)
    assert outcome["user"] == NOBODY
    assert outcome["written"] == []
    assert outcome["outside"] == os.strerror(errno.ENETUNREACH)
    assert outcome["probe"] == [0, ""]
    row = tokenizers.load(minilm_checkpoint).row("a fine day")
    states = ort.run(ort.session(minilm_exported, threads=1), row)["last_hidden_state"][0].mean(axis=0)
    assert np.abs(np.array(outcome["answer"]) - states / np.linalg.norm(states)).max() < 1e-4
