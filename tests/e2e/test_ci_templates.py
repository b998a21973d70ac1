"""The CI templates of the documents: their shell steps, run in fresh copies of a project with the store kept."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml
from program import Program
from tiny_project import CHAIN, RECIPE, SAMPLES

ROOT = Path(__file__).parent.parent.parent
GITHUB, GITLAB = ROOT / "docs" / "ci" / "github-actions.yml", ROOT / "docs" / "ci" / "gitlab-ci.yml"
INSTALL = "pip install -r requirements.txt"


def parsed(path):
    # All scalars as text: YAML 1.1 reads the key `on` as a truth value.
    return yaml.load(path.read_text(), Loader=yaml.BaseLoader)


def steps_of_github():
    [job] = parsed(GITHUB)["jobs"].values()
    return job["steps"]


def github():
    """Return the shell commands, the kept folder, and how it is packed."""
    steps = steps_of_github()
    uses = {step["uses"].partition("@")[0]: step for step in steps if "uses" in step}
    restored, saved = uses["actions/cache/restore"], uses["actions/cache/save"]
    assert restored["with"]["key"] == saved["with"]["key"]
    assert restored["with"]["path"] == saved["with"]["path"]
    assert restored["with"]["key"].startswith(restored["with"]["restore-keys"].strip())
    return [step["run"] for step in steps if "run" in step], saved["with"]["path"], tar


def gitlab():
    """Return the same of the template for GitLab."""
    [job] = parsed(GITLAB).values()
    [store] = [cache for cache in job["cache"] if cache["key"] == "recipe-store"]
    [path] = store["paths"]
    return job["script"], path.rstrip("/"), zipped


def tar(folder, name):
    """Pack a folder as GitHub's cache does: hard links and times are kept."""
    return shutil.make_archive(name, "gztar", folder)


def zipped(folder, name):
    """Pack a folder as GitLab's cache does: a file of its own for each hard link, and no time before 1980."""
    with zipfile.ZipFile(f"{name}.zip", "w", strict_timestamps=False) as archive:
        for path in folder.rglob("*"):
            archive.write(path, path.relative_to(folder))
    return f"{name}.zip"


@pytest.fixture(
    params=[github, pytest.param(gitlab, marks=pytest.mark.whole)], ids=lambda param: getattr(param, "__name__", None)
)
def template(request):
    return request.param()


@pytest.fixture
def repository(tiny_bert, tmp_path):
    """What is committed: a recipe with its lock, samples and a model."""
    folder = tmp_path / "repository"
    (folder / ".git").mkdir(parents=True)
    (folder / "recipes").mkdir()
    shutil.copytree(tiny_bert, folder / "model")
    (folder / "recipes" / "samples.jsonl").write_text(SAMPLES)
    (folder / "recipes" / "tiny.yaml").write_text(RECIPE.replace("source: model", "source: ../model"))
    Program(folder)("lock", "recipes/tiny.yaml", expect=0)
    shutil.rmtree(folder / "cache")
    return folder


class Runner:
    """A CI of our own: each run gets a fresh checkout and the store that the last one kept."""

    def __init__(self, repository, template, scratch):
        self.repository, self.scratch = repository, scratch
        self.commands, self.kept, self.packing = template
        self.archive = None
        self.runs = 0
        programs = scratch / "bin"
        programs.mkdir()
        (programs / "recipe").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m engine "$@"\n')
        (programs / "recipe").chmod(0o755)
        self.environment = Program(repository).environment | {
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
        }

    def __call__(self):
        """Run the commands up to the first that fails; return what they said and the exit code."""
        self.runs += 1
        checkout = self.scratch / f"run {self.runs}" / "checkout"
        shutil.copytree(self.repository, checkout)
        if self.archive is not None:
            shutil.unpack_archive(self.archive, checkout / self.kept)
        assert INSTALL in self.commands
        runs = []
        for command in self.commands:
            if command == INSTALL:
                continue
            done = subprocess.run(
                ["bash", "-e", "-c", command], cwd=checkout, env=self.environment, capture_output=True, text=True,
                check=False, timeout=300,
            )  # fmt: skip
            runs.append(done)
            if done.returncode:
                break
        name = str(self.scratch / f"store {self.runs}")
        self.archive = self.packing(checkout / self.kept, name)
        return checkout, runs


def states(done):
    return {line.split()[1]: line.split()[0] for line in done.stderr.splitlines() if line.startswith(("built ", "cach"))
            and len(line.split()) > 1 and line.split()[1] in CHAIN}  # fmt: skip


@pytest.mark.slow
def test_a_kept_store_rebuilds_only_what_changed_and_the_lock_is_checked(repository, template, tmp_path):
    (tmp_path / "ci").mkdir()
    run = Runner(repository, template, tmp_path / "ci")

    checkout, runs = run()
    assert [done.returncode for done in runs] == [0, 0, 0], runs[-1].stderr
    assert states(runs[1]) == dict.fromkeys(CHAIN, "built")
    assert (checkout / "build" / "tiny" / "tiny" / "config.pbtxt").is_file()

    checkout, runs = run()
    assert [done.returncode for done in runs] == [0, 0, 0], runs[-1].stderr
    assert "would build" not in runs[0].stdout
    assert states(runs[1]) == dict.fromkeys(CHAIN, "cached")
    assert (checkout / "build" / "tiny" / "tiny" / "config.pbtxt").is_file()

    samples = repository / "recipes" / "samples.jsonl"
    samples.write_text(samples.read_text().replace("bad", "sad"))
    checkout, runs = run()
    assert [done.returncode for done in runs] == [2]
    assert "recipes/samples.jsonl: locked " in runs[0].stderr
    assert not (checkout / "build").exists()

    Program(repository)("lock", "recipes/tiny.yaml", "--cache", str(tmp_path / "other"), expect=0)
    _, runs = run()
    assert {job for job, state in states(runs[1]).items() if state == "built"} == {"reference", "validate"}


def test_a_pull_request_reads_the_store_and_never_writes_it():
    [save] = [step for step in steps_of_github() if "cache/save" in step.get("uses", "")]
    assert "github.event_name == 'push'" in save["if"]
    assert parsed(GITHUB)["permissions"] == {"contents": "read"}
    assert "pull_request_target" not in parsed(GITHUB)["on"]
    [job] = parsed(GITLAB).values()
    policies = {rule["if"]: rule["variables"]["STORE_POLICY"] for rule in job["rules"]}
    assert policies['$CI_PIPELINE_SOURCE == "merge_request_event"'] == "pull"
    assert job["cache"][0]["policy"] == "$STORE_POLICY"


@pytest.mark.parametrize("path", [GITHUB, GITLAB], ids=lambda path: path.name)
def test_the_document_leads_to_each_template_and_each_uploads_the_packages(path):
    assert f"](ci/{path.name})" in (ROOT / "docs" / "ci.md").read_text()
    text = path.read_text()
    assert "path: build" in text or "paths: [build/]" in text


def test_the_nightly_template_makes_every_job_again():
    template = ROOT / "docs" / "ci" / "github-actions-remake.yml"
    assert f"ci/{template.name}" in (ROOT / "docs" / "ci.md").read_text()
    [job] = parsed(template)["jobs"].values()
    commands = [step["run"] for step in job["steps"] if "run" in step]
    assert commands[0] == INSTALL
    words = [command.replace("${{ matrix.jobs }}", "2").split() for command in commands[1:]]
    assert all(each[0] == "recipe" for each in words)
    assert ["--remake" in each for each in words] == [False, True]
    cases = job["strategy"]["matrix"]["include"]
    assert all(len({case[name] for case in cases}) == len(cases) for name in ("jobs", "timezone", "locale", "threads"))


def test_the_nightly_script_runs_the_tests_that_make_every_step_again():
    [command] = [
        step["run"] for step in parsed(ROOT / "docs/ci/github-actions-nightly.yml")["jobs"]["remake"]["steps"]
        if "run" in step
    ]  # fmt: skip
    script = (ROOT / command).read_text()
    assert os.access(ROOT / command, os.X_OK)
    assert "--whole tests/e2e/test_remake.py" in script
    assert (ROOT / "tests" / "e2e" / "test_remake.py").is_file()
