"""Another machine: another path, another user, an empty store, without torch; only `pull --locked`."""

import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest
import tiny_project
from other_user import NOBODY, python_of
from program import Program
from team_machine import Machine, project_in

ROOT = Path(__file__).parents[2]
WITHOUT = ("torch", "transformers", "onnx", "onnxruntime")


@pytest.mark.slow
def test_another_user_without_torch_has_the_same_digests_and_runs_no_step(tiny_bert, seaweed, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root can run a program as another user")
    python = python_of(NOBODY)
    files = project_in(tmp_path / "files", tiny_bert)
    first = Machine(tmp_path / "first", files).uses(seaweed.url("other-user"), **seaweed.environ("writer"))
    key = first.keygen()
    shutil.copytree(tiny_project.built() / "cache", first.folder / "cache", copy_function=shutil.copy2)
    assert set(first.states("r.yaml").values()) == {"cached"}
    first("cache", "push", "r.yaml", expect=0)
    first("lock", "r.yaml", expect=0)

    # Folders of pytest are closed to other users.
    home = Path("/var/tmp") / f"recipe-other-user-{os.getpid()}"
    home.mkdir()
    try:
        for name in ("r.yaml", "r.lock", "samples.jsonl", "pyproject.toml"):
            shutil.copy(first.folder / name, home)
        os.chown(home, NOBODY, NOBODY)
        other = Program(home)
        other.environment |= {
            "HOME": str(home), "XDG_CONFIG_HOME": str(home / "config"), "XDG_CACHE_HOME": str(home / "user"),
            "XDG_STATE_HOME": str(home / "state"), "RECIPE_REMOTE": seaweed.url("other-user"), "RECIPE_TRUST": key,
            "PYTHONPATH": os.pathsep.join([str(ROOT), sysconfig.get_path("purelib")]), "TMPDIR": "/tmp",
            **seaweed.environ("reader"),
        }  # fmt: skip
        del other.environment["RECIPE_TRUST_CACHE"]
        blocked = f"import sys; sys.modules.update(dict.fromkeys({WITHOUT!r}))"
        code = f"{blocked}\nfrom engine import cli\nsys.exit(cli.main(['cache', 'pull', 'r.yaml', '--locked']))"
        done = subprocess.run(
            [python, "-c", code], cwd=home, env=other.environment, user=NOBODY, group=NOBODY, extra_groups=[],
            capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "built " not in done.stderr.replace("built in", "")
        machine = object.__new__(Machine)
        machine.folder = home
        pulled = machine.artifacts()
        assert pulled["package"] == first.artifacts()["package"]
        assert pulled.items() <= first.artifacts().items()
        package = home / "build" / "tiny"
        assert package.stat().st_uid == NOBODY
        assert subprocess.run(["diff", "-r", package, first.folder / "build" / "tiny"], check=False).returncode == 0
    finally:
        shutil.rmtree(home)
