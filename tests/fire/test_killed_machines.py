"""Three machines, two of them with a (fake) T4, meet in one remote or one store and are killed at random instants.

With `--whole`: 100 kills at each meeting place. Otherwise a sample of 6 kills at a remote.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
import user_caches
from fake_t4 import FakeT4
from fire.builders import children
from gpu_project import ANYWHERE, ON_T4, project_in
from program import Program

pytestmark = pytest.mark.slow

RECIPE = "recipes/net0.yaml"
PATIENCE = 300.0
KILLS_PER_ROUND = 10


class Machine:
    """A machine with a project of its own, on which one build after another is started and killed."""

    def __init__(self, program):
        self.program = program
        self.process = None

    def start(self):
        python = getattr(self.program, "python", None) or sys.executable
        command = [python, "-m", "engine", "build", RECIPE, "--allow-waiting", "--json"]
        self.process = subprocess.Popen(
            command, cwd=self.program.folder, env=self.program.environment,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip

    def kill(self, *, with_workers):
        """Kill the running build; return False where it had ended. No build that ends by itself may have failed."""
        if self.process.poll() is not None:
            self.end()
            return False
        doomed = [self.process.pid, *(_below(self.process.pid) if with_workers else [])]
        for pid in doomed:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.communicate(timeout=PATIENCE)
        return True

    def end(self):
        """Let the running build end by itself."""
        _, errors = self.process.communicate(timeout=PATIENCE)
        assert self.process.returncode == 0, errors
        assert "Traceback" not in errors


def _below(pid):
    return [each for child in children(pid) for each in (child, *_below(child))]


class Ground:
    """A place where machines meet: a remote folder, or a store that they share."""

    def __init__(self, folder, *, shares_store):
        self.folder = folder
        self.shares_store = shares_store
        (folder / "remote").mkdir(parents=True)
        fakes = [FakeT4(project_in(folder / name), folder / f"{name} machine") for name in ("t4", "other t4")]
        self.machines = [Machine(self.connected(each)) for each in (Program(project_in(folder / "laptop")), *fakes)]

    def connected(self, program):
        meeting = (
            {"RECIPE_CACHE": str(self.folder / "store")}
            if self.shares_store
            else {"RECIPE_REMOTE": f"file://{self.folder / 'remote'}", "RECIPE_TRUST": "none"}
        )
        home = program.folder
        program.environment |= meeting | {
            "XDG_CONFIG_HOME": str(home / ".config"),
            "XDG_CACHE_HOME": user_caches.with_bytecode(home / ".user"), "TMPDIR": str(home),
        }  # fmt: skip
        return program

    def check(self):
        """Nothing is lost or torn: every store is whole, and a new machine without a GPU has all from there."""
        for machine in self.machines:
            assert json.loads(machine.program("cache", "verify", "--json", expect=0).stdout)["damaged"] == []
        new = self.connected(Program(project_in(self.folder / "new")))
        assert new.states(RECIPE) == dict.fromkeys((*ANYWHERE, *ON_T4), "cached")
        plan = new.folder / "build" / "net0" / "net0" / "1" / "model.plan"
        assert plan.read_bytes().startswith(b"FAKE ENGINE")
        new("cache", "verify", expect=0)


@pytest.mark.parametrize("shares_store", [False, True], ids=["remote", "store"])
@pytest.mark.whole
def test_whenever_machines_are_killed_every_job_is_built_in_the_end(shares_store, tier, tmp_path):
    kills = 100
    done = rounds = 0
    while done < kills:
        rounds += 1
        ground = Ground(tmp_path / f"ground{rounds}", shares_store=shares_store)
        for machine in ground.machines:
            machine.start()
        here, most = 0, min(KILLS_PER_ROUND, kills - done)
        while here < most:
            time.sleep(tier.chance.uniform(0.1, 2.0))
            machine = tier.chance.choice(ground.machines)
            here += machine.kill(with_workers=tier.chance.random() < 0.7)
            machine.start()
        done += here
        for machine in ground.machines:  # each that is left builds all that it can; a T4 can build all
            machine.end()
        ground.check()
        shutil.rmtree(ground.folder)
    print(f"{done} kills in {rounds} rounds")
