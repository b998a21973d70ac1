"""A team's cache: one machine builds and pushes, others have the results without running a step."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import lock_edits
import pytest
import tiny_project
from team_machine import Machine, project_in
from tiny_project import CHAIN, HEAVY

CACHED = dict.fromkeys(CHAIN, "cached")


@pytest.fixture(scope="module")
def files(tiny_bert, tmp_path_factory):
    """A project in git: a recipe, samples, and a model."""
    return project_in(tmp_path_factory.mktemp("team") / "project", tiny_bert)


@pytest.fixture(scope="module")
def team(files, tmp_path_factory):
    """A machine that has what was built, locked it and pushed it to a folder, and its public key."""
    folder = tmp_path_factory.mktemp("shared")
    first = Machine(tmp_path_factory.mktemp("first") / "project", files).uses(f"file://{folder}")
    key = first.keygen()
    shutil.copytree(tiny_project.built() / "cache", first.folder / "cache", copy_function=shutil.copy2)
    assert first.states("r.yaml") == CACHED
    first("cache", "push", "r.yaml", expect=0)
    first("lock", "r.yaml", expect=0)
    return first, folder, key


@pytest.fixture
def second(team, files, tmp_path):
    """Another machine of the team, which trusts the first one's key."""
    return _of_the_team(team, files, tmp_path / "elsewhere" / "work")


def _of_the_team(team, files, place):
    first, folder, key = team
    machine = Machine(place, files).uses(f"file://{folder}")
    machine("cache", "trust", "--key", key, "--name", "ci", expect=0)
    shutil.copy(first.folder / "r.lock", machine.folder)
    return machine


@pytest.fixture(scope="module")
def third(team, files, tmp_path_factory):
    """One more machine of the team, in which a build was answered by the remote, and what it said."""
    machine = _of_the_team(team, files, tmp_path_factory.mktemp("third") / "work")
    return machine, machine.states("r.yaml")


def test_another_machine_runs_no_step_and_has_the_same_digests(team, third):
    machine, states = third
    assert states == CACHED
    assert machine.artifacts() == team[0].artifacts()
    packages = [each.folder / "build" / "tiny" for each in (team[0], machine)]
    assert subprocess.run(["diff", "-r", *packages], check=False).returncode == 0


def test_only_the_bytes_of_the_package_are_brought(third):
    second, _ = third
    assert len(list((second.folder / "cache" / "artifacts").iterdir())) == 1
    assert "everything is as it was stored" in second("cache", "verify", expect=0).stdout
    assert "would remove 0 records" in second("cache", "gc", "r.yaml", "--dry-run", expect=0).stdout


def test_a_key_that_is_revoked_ends_also_the_build_that_is_up_to_date(team, second):
    second("build", "r.yaml", "--to", "fetch", expect=0)
    assert second.states("r.yaml", "--to", "fetch") == {"fetch": "cached"}
    second("cache", "trust", "--revoke", team[2], expect=0)
    assert second.states("r.yaml", "--to", "fetch") == {"fetch": "built"}


def test_a_missing_blob_is_made_again_by_the_job_that_makes_it(team, second, tmp_path):
    own = tmp_path / "own"
    shutil.copytree(team[1], own)
    blobs = [*(own / "v1" / "blobs").rglob("*.zst")]
    for path in blobs:
        path.unlink()
    done = second.uses(f"file://{own}")("build", "r.yaml", "--force", "export", "--to", "export", expect=0)
    assert blobs
    assert "missing blob" in done.stderr
    assert "the output of 'fetch' cannot be brought from the remote: the job runs again" in done.stderr
    assert {second.artifacts()[job] for job in ("fetch", "export")} == {
        team[0].artifacts()[job] for job in ("fetch", "export")
    }


def test_without_a_trusted_key_everything_is_built_here(team, files, tmp_path):
    stranger = Machine(tmp_path / "stranger", files).uses(f"file://{team[1]}")
    done = stranger("build", "r.yaml", "--to", "fetch", expect=0)
    assert "built    fetch" in done.stderr
    assert "no key is trusted" in done.stderr


def test_pull_brings_a_locked_package_without_the_model(team, second):
    shutil.rmtree(second.folder / "model")
    second("cache", "pull", "r.yaml", "--locked", expect=0)
    assert second.artifacts()["package"] == team[0].artifacts()["package"]
    assert (second.folder / "build" / "tiny").is_dir()


def test_a_lock_that_names_another_artifact_refuses_the_record(second):
    lock = (second.folder / "r.lock").read_text()
    [package] = re.findall(r"package.*?artifact: ([0-9a-f]{32})", lock, re.DOTALL)[-1:]
    lock_edits.write(second.folder / "r.lock", lock.replace(package, "0" * 32))
    done = second("cache", "pull", "r.yaml", "--locked")
    assert done.returncode == 2
    assert "differs from the locked output" in done.stderr


@pytest.mark.whole("test_another_machine_runs_no_step_and_has_the_same_digests")
def test_one_file_carries_a_recipe_to_a_machine_without_a_network(team, files, tmp_path):
    first, _, key = team
    first("cache", "export", "r.yaml", "-o", str(tmp_path / "carried.zip"), expect=0)
    island = Machine(tmp_path / "island", files)
    refused = island("cache", "import", str(tmp_path / "carried.zip"), expect=1)
    assert f"{len(CHAIN)} refused" in refused.stderr
    island("cache", "trust", "--key", key, expect=0)
    assert "9 records taken" in island("cache", "import", str(tmp_path / "carried.zip"), expect=0).stdout
    assert island.states("r.yaml") == CACHED


def test_a_file_that_is_there_is_not_overwritten(team, tmp_path):
    (tmp_path / "mine").write_text("mine")
    done = team[0]("cache", "export", "r.yaml", "-o", str(tmp_path / "mine"), expect=1)
    assert "there is a file" in done.stderr
    assert (tmp_path / "mine").read_text() == "mine"


def test_openssl_checks_what_the_document_says(team, tmp_path):
    first, _, _ = team
    text = (Path(__file__).parent.parent.parent / "docs" / "sharing.md").read_text()
    [script] = re.findall(r"```sh\n(recipe show --provenance --json .*?)```", text, re.DOTALL)
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "recipe"
    program.write_text(f'#!/bin/sh\ncd {first.folder} && exec {sys.executable} -m engine "$@"\n')
    program.chmod(0o755)
    shutil.copy(first.folder / "config" / "recipe" / "signing.key.pub", tmp_path)
    environment = first.environment | {"PATH": f"{tmp_path / 'bin'}:{first.environment['PATH']}"}
    command = ["bash", "-e", "-c", script.replace("recipes/minilm_cpu.yaml", "r.yaml")]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Signature Verified Successfully" in done.stdout
    [*_, package] = json.loads((tmp_path / "provenance.json").read_text())
    assert package["job"] == "package"
    assert {each["name"] for each in package["statement"]["subject"]} >= {"tiny/config.pbtxt"}


def test_provenance_says_who_signed_and_finds_a_changed_file(third):
    second, _ = third
    shown = second("show", "--provenance", "r.yaml", expect=0).stdout
    assert shown.count("signed by ci") == len(CHAIN)
    assert f"{len(CHAIN)} signed by ci" in second("cache", "verify", "--provenance", expect=0).stdout
    trusted = second.settings / "trusted-keys"
    kept = trusted.read_bytes()
    trusted.unlink()
    refused = second("cache", "verify", "--provenance", expect=1).stdout
    trusted.write_bytes(kept)
    assert refused.count("unknown key") == len(CHAIN)


def test_push_needs_a_key_and_a_remote(second):
    refused = second("cache", "push", "r.yaml", expect=2)
    assert "there is no signing key" in refused.stderr
    del second.environment["RECIPE_REMOTE"]
    second.keygen()
    assert "no remote is named" in second("cache", "push", "r.yaml", expect=2).stderr


def test_a_project_only_proposes_a_remote(team, second):
    del second.environment["RECIPE_REMOTE"]
    (second.folder / "recipe.toml").write_text(f'[remote]\nurl = "file://{team[1]}"\n')
    second.keygen()
    assert second.states("r.yaml", "--to", "fetch") == {"fetch": "cached"}
    refused = second("cache", "push", "r.yaml", expect=2)
    assert "only proposed by the project" in refused.stderr


def test_trust_none_is_never_said_of_a_remote_that_a_project_proposes(team, files, tmp_path):
    stranger = Machine(tmp_path / "stranger", files)
    (stranger.folder / "recipe.toml").write_text(f'[remote]\nurl = "file://{team[1]}"\n')
    stranger.environment["RECIPE_TRUST"] = "none"
    done = stranger("build", "r.yaml", "--to", "fetch", expect=0)
    assert "built    fetch" in done.stderr
    assert "no key is trusted" in done.stderr


def test_wrong_settings_are_named(second):
    (second.folder / "recipe.toml").write_text("[remote]\nurll = 'x'\n")
    del second.environment["RECIPE_REMOTE"]
    done = second("build", "r.yaml", expect=2)
    assert "`remote.urll` is no setting" in done.stderr


def test_an_up_to_date_build_sends_no_request(team, files, nginx, tmp_path):
    machine = Machine(tmp_path / "web", files).uses(nginx.url("team"))
    machine.keygen()
    command = ("build", "r.yaml", "--to", "fetch")
    assert "went there" in machine(*command, expect=0).stderr
    before = nginx.requests.read_text()
    assert before
    machine(*command, expect=0)
    assert nginx.requests.read_text() == before
    assert not machine.imports(*command) & (HEAVY | {"httpx", "obstore", "cryptography"})


def test_credentials_never_reach_what_is_kept(team, files, seaweed, tmp_path):
    machine = Machine(tmp_path / "s3", files).uses(seaweed.url("secrets"), **seaweed.environ("writer"))
    machine.keygen()
    done = machine("build", "r.yaml", "--to", "fetch", expect=0)
    assert "went there" in done.stderr
    private = (machine.folder / "config" / "recipe" / "signing.key").read_bytes()
    texts = [path.read_bytes() for path in (machine.folder / "cache").rglob("*") if path.is_file()]
    assert texts
    assert not [text for text in texts if b"writer-secret" in text or private in text]


def test_what_a_remote_needs_is_named_where_it_is_missing(second, tmp_path):
    blocked = "import sys; sys.modules['obstore'] = None; sys.path_importer_cache.clear()"
    code = f"{blocked}\nfrom engine import cli\nsys.exit(cli.main(['build', 'r.yaml']))"
    command = [sys.executable, "-c", code]
    where = {"cwd": second.folder, "env": second.environment}
    done = subprocess.run(command, capture_output=True, text=True, check=False, **where)
    assert done.returncode == 2
    assert "pip install 'recipe-build[remote]'" in done.stderr
