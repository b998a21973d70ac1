"""The templates for machines with GPUs: their commands, run on a fake T4 that shares a remote with a laptop."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import user_caches
import yaml
from fake_t4 import FakeT4
from gpu_project import project_in
from program import Program

ROOT = Path(__file__).parent.parent.parent
CI = ROOT / "docs" / "ci"
GITHUB, CRON, SLURM, KUBERNETES = (
    CI / name for name in ("github-actions-gpus.yml", "gpu.cron", "gpu.sbatch", "gpu-kubernetes.yaml")
)
PACKAGE = Path("build") / "net0" / "net0" / "1" / "model.plan"


class Shell:
    """Runs commands of a template in a project on a machine, with `recipe` on its path."""

    def __init__(self, program, remote):
        self.program = program
        bin_folder = program.folder / ".venv" / "bin"
        bin_folder.mkdir(parents=True)
        python = getattr(program, "python", sys.executable)
        home = "" if hasattr(program, "python") else f'export PYTHONPATH="{ROOT}"; '
        (bin_folder / "recipe").write_text(f'#!/bin/sh\n{home}exec "{python}" -m engine "$@"\n')
        (bin_folder / "recipe").chmod(0o755)
        home = str(program.folder.parent)
        program.environment |= {
            "PATH": f"{bin_folder}:{program.environment['PATH']}", "HOME": home, "TMPDIR": home,
            "XDG_CACHE_HOME": user_caches.with_bytecode(f"{home}/.user"), "XDG_CONFIG_HOME": f"{home}/.config",
            "RECIPE_REMOTE": f"file://{remote}", "RECIPE_TRUST": "none",
        }  # fmt: skip

    def __call__(self, command, *, shell=("bash", "-e", "-c"), **variables):
        done = subprocess.run(
            [*shell, command], cwd=self.program.folder, env={**self.program.environment, **variables},
            capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stderr

    @property
    def engine(self):
        """The engine in the package, where the package is delivered."""
        return (self.program.folder / PACKAGE).read_bytes()


@pytest.fixture(scope="module")
def remote(tmp_path_factory):
    return tmp_path_factory.mktemp("remote")


@pytest.fixture(scope="module")
def laptop(remote, tmp_path_factory):
    return Shell(Program(project_in(tmp_path_factory.mktemp("laptop") / "models")), remote)


@pytest.fixture(scope="module")
def t4(remote, tmp_path_factory):
    folder = tmp_path_factory.mktemp("t4")
    return Shell(FakeT4(project_in(folder / "models"), folder / "machine"), remote)


def workflow():
    return yaml.load(GITHUB.read_text(), Loader=yaml.BaseLoader)  # YAML 1.1 reads the key `on` as a truth value


def runs(job):
    return {step["name"]: step["run"] for step in workflow()["jobs"][job]["steps"] if "run" in step}


def filled(text, entry):
    """Return a command with the values of a matrix entry in the place of GitHub's expressions."""
    return re.sub(r"\$\{\{ matrix\.(\w+) \}\}", lambda match: str(entry[match[1]]), text)


@pytest.mark.slow
@pytest.mark.whole
def test_the_workflow_builds_on_each_machine_what_waits_for_it(laptop, t4, tmp_path):
    output = tmp_path / "output"
    for command in list(runs("anywhere").values())[1:]:
        laptop(command, GITHUB_OUTPUT=str(output))
    [line] = output.read_text().splitlines()
    name, _, value = line.partition("=")
    assert workflow()["jobs"]["anywhere"]["outputs"] == {name: "${{ steps.waiting.outputs.matrix }}"}
    [entry] = json.loads(value)["include"]
    there = workflow()["jobs"]["there"]
    assert [filled(label, entry) for label in there["runs-on"]] == ["self-hosted", "gpu", "T4"]
    assert '"tensorrt==10.*"' in filled(runs("there")["Install"], entry)
    assert "built    trt-build" in t4(filled(runs("there")["Build what waits for this machine"], entry))
    assert "cached   package" in laptop(runs("packages")["Take the results of all machines"])
    assert laptop.engine == t4.engine
    laptop(runs("anywhere")["What waits for other hardware"], GITHUB_OUTPUT=str(output))
    assert json.loads(output.read_text().splitlines()[-1].partition("=")[2]) == {"include": []}


def test_the_workflow_takes_the_matrix_and_skips_an_empty_one():
    there = workflow()["jobs"]["there"]
    assert there["strategy"]["matrix"] == "${{ fromJSON(needs.anywhere.outputs.matrix) }}"
    assert there["if"] == "${{ fromJSON(needs.anywhere.outputs.matrix).include[0] }}"
    assert "pull_request" not in workflow()["on"], "a pull request has no credentials, and must not run on own machines"


@pytest.fixture
def clean(t4):
    """The machine with the T4, without the package of an earlier build."""
    shutil.rmtree(t4.program.folder / "build", ignore_errors=True)
    return t4


@pytest.mark.slow
@pytest.mark.whole("what the templates say is always read, and test_prove.py builds on a T4")
def test_the_line_for_cron_pulls_and_builds(clean, tmp_path):
    [line] = [each for each in CRON.read_text().splitlines() if each and not each.startswith("#")]
    *times, command = line.split(" ", 5)
    assert len(times) == 5
    assert "%" not in command, "cron reads it as a line break"
    folder = clean.program.folder
    (folder.parent / ".config").mkdir(exist_ok=True)
    remote = clean.program.environment["RECIPE_REMOTE"]
    (folder.parent / ".config" / "recipe-cron").write_text(f"export RECIPE_REMOTE={remote} RECIPE_TRUST=none\n")
    (folder / ".gitignore").write_text(".venv\nbuild\ncache\n")
    git = "git -c user.name=me -c user.email=me@example.org"
    clean(
        f"git init -q && git add . && {git} commit -qm all && git clone -q --bare . '{tmp_path}/origin.git' && "
        f"git remote add origin '{tmp_path}/origin.git' && git fetch -q && git branch -qu origin/$(git branch --show)"
    )
    without = {"RECIPE_REMOTE": "", "RECIPE_TRUST": ""}
    clean(command, shell=("/bin/sh", "-c"), **without)
    assert clean.engine.startswith(b"FAKE ENGINE")


def test_the_script_for_slurm_has_its_options_before_the_first_command():
    text = SLURM.read_text()
    subprocess.run(["bash", "-n", SLURM], check=True)
    options = dict(re.findall(r"^#SBATCH --([a-z-]+)=(\S+)$", text, re.MULTILINE))
    assert options["gres"] == "gpu:t4:1"
    assert options["export"] == "ALL"
    first_command = text.index("set -euo")
    assert text.rindex("#SBATCH") < first_command, "Slurm reads options only before the first command"


@pytest.mark.slow
@pytest.mark.whole("what the templates say is always read, and test_prove.py builds on a T4")
def test_the_script_for_slurm_builds_in_the_folder_where_it_was_submitted(clean):
    variables = {"SLURM_SUBMIT_DIR": str(clean.program.folder), "SLURM_JOB_ID": "7"}
    clean(str(SLURM), shell=("bash",), **variables)
    assert clean.engine.startswith(b"FAKE ENGINE")
    assert (clean.program.folder.parent / "recipe-7" / "records").is_dir()


def manifest():
    return yaml.safe_load(KUBERNETES.read_text())


def test_the_job_for_kubernetes_has_the_documented_fields():
    job = manifest()
    assert (job["apiVersion"], job["kind"]) == ("batch/v1", "Job")
    assert job.keys() == {"apiVersion", "kind", "metadata", "spec"}
    assert job["spec"].keys() <= {
        "activeDeadlineSeconds", "backoffLimit", "backoffLimitPerIndex", "completionMode", "completions", "managedBy",
        "manualSelector", "maxFailedIndexes", "parallelism", "podFailurePolicy", "podReplacementPolicy", "selector",
        "successPolicy", "suspend", "template", "ttlSecondsAfterFinished",
    }  # fmt: skip
    pod = job["spec"]["template"]["spec"]
    assert pod["restartPolicy"] in ("Never", "OnFailure"), "a job's pods allow no other"
    [container] = pod["containers"]
    assert container.keys() <= {
        "args", "command", "env", "envFrom", "image", "imagePullPolicy", "name", "ports", "resources",
        "securityContext", "volumeMounts", "workingDir",
    }  # fmt: skip
    assert container["resources"]["limits"]["nvidia.com/gpu"] == "1"
    assert {each["name"] for each in container["volumeMounts"]} == {each["name"] for each in pod["volumes"]}
    assert all(isinstance(each["value"], str) for each in container["env"])


@pytest.mark.slow
@pytest.mark.whole("what the templates say is always read, and test_prove.py builds on a T4")
def test_the_command_for_kubernetes_builds(clean, tmp_path):
    [container] = manifest()["spec"]["template"]["spec"]["containers"]
    [mount] = container["volumeMounts"]
    variables = {each["name"]: each["value"].replace(mount["mountPath"], str(tmp_path)) for each in container["env"]}
    assert str(tmp_path) in variables["RECIPE_CACHE"], "the store is on the volume"
    [script] = container["args"]
    clean(script, shell=container["command"], **variables)
    assert clean.engine.startswith(b"FAKE ENGINE")


@pytest.mark.parametrize("path", [GITHUB, CRON, SLURM, KUBERNETES], ids=lambda path: path.name)
def test_the_document_leads_to_each_template(path):
    assert f"](ci/{path.name})" in (ROOT / "docs" / "ci.md").read_text()
