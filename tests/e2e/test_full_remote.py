"""A remote without space: the build goes on and says so in one line; a push ends with an error."""

import subprocess
import time

import pytest
from remote_servers import Faulty
from team_machine import Machine, fetched_in

BUILD = ("build", "r.yaml", "--to", "fetch")


@pytest.fixture
def machine(tmp_path):
    machine = Machine(tmp_path / "project", fetched_in(tmp_path / "files"))
    machine.keygen()
    return machine


@pytest.fixture
def full_folder(tmp_path):
    """A real file system with space for 4096 bytes."""
    folder = tmp_path / "share"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4k", "recipe-test", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        pytest.skip(f"no file system can be mounted here: {error}")
    if done.returncode:
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
    (folder / "filler").write_bytes(bytes(4096))
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def goes_on(machine, message):
    """Build, then push, at a remote that has no space; return by how many seconds the remote slows the build."""
    start = time.monotonic()
    done = machine(*BUILD, expect=0)
    with_remote = time.monotonic() - start
    lines = [line for line in done.stderr.splitlines() if "remote" in line]
    assert len(lines) == 1, done.stderr
    assert "is left alone" in lines[0]
    assert message in lines[0]
    start = time.monotonic()
    machine.environment["RECIPE_REMOTE"], remote = "none", machine.environment["RECIPE_REMOTE"]
    machine(*BUILD, "--cache", str(machine.folder / "other"), expect=0)
    machine.environment["RECIPE_REMOTE"] = remote
    return with_remote - (time.monotonic() - start)


@pytest.mark.slow
@pytest.mark.whole
def test_a_full_folder_ends_no_build(machine, full_folder):
    machine.uses(f"file://{full_folder}")
    assert goes_on(machine, "No space left on device") < 10
    pushed = machine("cache", "push", "r.yaml")
    assert pushed.returncode != 0
    assert "No space left on device" in pushed.stderr


def test_a_web_server_without_space_ends_no_build(machine, nginx):
    faulty = Faulty(nginx.port)
    faulty.mode = "status 507 Insufficient Storage"
    machine.uses(nginx.url("full", port=faulty.port))
    assert goes_on(machine, "507 Insufficient Storage") < 10
    faulty.stop()
