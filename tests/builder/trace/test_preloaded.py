"""Reads that a process computes before it forks the processes of jobs, compared with those that each job computes."""

import json
import subprocess
import sys

import pytest
import reading_steps

from engine.builder.trace import reads

PROGRAM = """
import importlib, json, os, sys
site, package, folders, extra = json.loads(sys.argv[1])
sys.path.insert(0, site)
from engine.builder.trace import hook
hook.install()
import engine.step, probe_package.step
step = "probe_package.step:FString"

def job(folder):
    pid = os.fork()
    if pid == 0:
        with hook.recording(step, folder, [package] if extra == "input" else []):
            importlib.import_module("probe_package.step")
            from engine.step import KEY_VARIABLE
            open(f"{package}/words.txt").close()
            if extra == "standard":
                import email.message, engine.key
            if extra == "reloaded":
                importlib.reload(sys.modules["probe_package.step"])
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0

job(folders[0])
hook.prepare()
hook.preload(step)
assert hook._RECORDER._preloaded.paths
job(folders[1])
"""


@pytest.mark.parametrize("extra", ["nothing", "standard", "reloaded", "input"])
def test_a_job_has_the_same_reads_whether_or_not_its_parent_computed_them_before(tmp_path, extra):
    package = reading_steps.package_in(tmp_path)
    folders = [tmp_path / "before", tmp_path / "after"]
    for folder in folders:
        folder.mkdir()
    case = json.dumps([str(tmp_path), str(package), [str(folder) for folder in folders], extra])
    subprocess.run([sys.executable, "-c", PROGRAM, case], check=True)
    computed, preloaded = (reads.decode((folder / reads.FILE_NAME).read_bytes()) for folder in folders)
    assert preloaded == computed or (preloaded.root, set(preloaded.items)) == (computed.root, set(computed.items))
    assert any(read.name.endswith("words.txt") for read in preloaded.items)
    assert len(preloaded.items) > 10
