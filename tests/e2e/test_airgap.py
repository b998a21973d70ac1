"""A machine without a network: install, import, build, pull and serve; no system call turns to another machine."""

import ipaddress
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import graphs
import pytest
from program import Program

ROOT = Path(__file__).parent.parent.parent
RECIPE = "name: plain\nmodel: {source: plain.onnx}\nprofiles: [{batch: [1, 2, 8]}]\n"
CONTROL = "192.0.2.1"
"""An address for documents (RFC 5737). The machine tries it at the end, so that the trace is known to show attempts."""


def missing():
    """Return why this machine cannot be cut off and watched; None if it can."""
    for tool in ("unshare", "strace", "ip"):
        if shutil.which(tool) is None:
            return f"{tool} is not installed"
    done = subprocess.run(["unshare", "-rn", "strace", "-f", "true"], capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else f"no namespace without a network: {done.stderr.strip()[-100:]}"


@pytest.fixture(scope="module")
def carried(tmp_path_factory):
    """What is carried to the machine: the recipe, its lock, the exported store, the remote's folder, a key, a wheel."""
    if reason := missing():
        pytest.skip(reason)
    project, box = tmp_path_factory.mktemp("connected"), tmp_path_factory.mktemp("carried")
    (project / "pyproject.toml").write_text("")
    graphs.write(project / "model", graphs.layers())
    (project / "model" / "model.onnx").rename(project / "plain.onnx")
    (project / "plain.yaml").write_text(RECIPE)
    program = Program(project)
    program.environment |= {"XDG_CONFIG_HOME": str(project / "config"), "RECIPE_REMOTE": f"file://{box / 'remote'}"}
    (box / "remote").mkdir()
    program("cache", "keygen", expect=0)
    program("build", "plain.yaml", expect=0)
    program("lock", "plain.yaml", expect=0)
    program("cache", "push", "plain.yaml", expect=0)
    program("cache", "export", "plain.yaml", "-o", str(box / "carried.zip"), expect=0)
    for path in (project / "plain.yaml", project / "plain.lock", project / "pyproject.toml"):
        shutil.copy(path, box)
    shutil.copy(project / "config" / "recipe" / "signing.key.pub", box / "key.pub")
    wheel = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(box / "wheelhouse"), str(ROOT)]
    done = subprocess.run(wheel, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return box


@pytest.mark.slow
@pytest.mark.whole
def test_everything_works_and_nothing_asks_another_machine(carried, environment, tmp_path):
    machine = tmp_path / "island"
    shutil.copytree(carried, machine)
    [wheel] = (machine / "wheelhouse").glob("recipe_build-*.whl")
    program = Program(machine)
    program.environment |= {
        "XDG_CONFIG_HOME": str(machine / "config"), "RECIPE_REMOTE": f"file://{machine / 'remote'}",
        "RECIPE_TRITON_VENV": str(environment), "TMPDIR": str(machine),
    }  # fmt: skip
    driver = str(Path(__file__).parent.parent / "support" / "airgapped.py")
    trace = tmp_path / "trace"
    watched = ["strace", "-f", "-qq", "-e", "trace=connect,sendto,sendmsg,sendmmsg", "-o", str(trace)]
    command = ["unshare", "-rn", *watched, sys.executable, driver, str(machine), sys.executable, str(wheel)]
    done = subprocess.run(
        command, cwd=machine, env=program.environment, capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout.splitlines()[-1])
    assert str(machine / "venv") in answers["program"]
    assert "records taken" in answers["import"]
    states = {event["job"]: event["state"] for event in answers["build"] if event["event"] == "end"}
    assert states
    assert set(states.values()) == {"cached"}
    assert answers["answer"]
    assert answers["outside"] == "Network is unreachable"
    assert other_machines(trace.read_text()) == {CONTROL}


def other_machines(trace):
    """Return the addresses of other machines in a trace of system calls."""
    written = re.findall(r'inet_addr\("([^"]+)"\)|inet_pton\(AF_INET6, "([^"]+)"', trace)
    addresses = [ipaddress.ip_address(four or six) for four, six in written]
    return {str(each) for each in addresses if not (getattr(each, "ipv4_mapped", None) or each).is_loopback}
