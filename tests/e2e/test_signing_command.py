"""A command that signs, for a key management service: one that works, and four that do not."""

import json
import shutil

import pytest
from team_machine import Machine, fetched_in

BUILD = ("build", "r.yaml", "--to", "fetch")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return fetched_in(tmp_path_factory.mktemp("signing") / "project")


@pytest.fixture
def machine(files, tmp_path):
    """A machine whose key is in a file that only the command knows."""
    if shutil.which("openssl") is None:
        pytest.skip("OpenSSL is not installed")
    machine = Machine(tmp_path / "project", files).uses(f"file://{tmp_path}/remote")
    (tmp_path / "remote").mkdir()
    machine.public = machine.keygen()
    (machine.settings / "signing.key").rename(tmp_path / "kms.key")
    return machine


def signs_by(machine, script):
    """Let a shell script sign. OpenSSL cannot sign a pipe with Ed25519: the script writes its input to a file."""
    program = machine.folder.parent / "kms-sign"
    program.write_text(f"#!/bin/sh\ncd {machine.folder.parent}\n{script}\n")
    program.chmod(0o755)
    settings = f'[sign]\ncommand = ["{program}"]\nkey = "{machine.public}"\n'
    (machine.settings / "config.toml").write_text(settings)


OPENSSL = 'm=$(mktemp) && cat > "$m" && openssl pkeyutl -sign -rawin -inkey kms.key -in "$m" && rm "$m"'


@pytest.mark.parametrize("script", [OPENSSL, f"({OPENSSL}) | base64"], ids=["raw", "base64"])
@pytest.mark.sample(1)
def test_a_command_of_openssl_signs_what_others_then_use(script, machine, files, tmp_path):
    signs_by(machine, script)
    assert "1 records went there" in machine(*BUILD, expect=0).stderr
    other = Machine(tmp_path / "other", files).uses(machine.environment["RECIPE_REMOTE"])
    other("cache", "trust", "--key", machine.public, "--name", "kms", expect=0)
    assert other.states(*BUILD[1:]) == {"fetch": "cached"}
    assert "signed by kms" in other("show", "--provenance", "r.yaml").stdout


FAULTS = {
    "fails": ("echo no such key >&2; echo more >&2; exit 3", "ended with exit code 3: no such key"),
    "hangs": ("sleep 600", "gave no answer within 10 s"),
    "answers nonsense": ("echo hello", "gave no signature of the key ed25519:"),
    "signs with another key": (
        f"openssl genpkey -algorithm ed25519 -out kms.key && {OPENSSL}",
        "gave no signature of the key ed25519:",
    ),
    "is no program": ("", "cannot be run: "),
}


@pytest.mark.parametrize("fault", [pytest.param(each, marks=pytest.mark.slow) for each in FAULTS])
@pytest.mark.sample(1)
@pytest.mark.whole("test_a_command_of_openssl_signs_what_others_then_use")
def test_a_build_goes_on_without_the_signature_and_a_push_says_why_it_failed(fault, machine, tmp_path):
    script, message = FAULTS[fault]
    signs_by(machine, script)
    if fault == "is no program":
        (tmp_path / "kms-sign").unlink()
    built = machine(*BUILD, expect=0)
    lines = [line for line in built.stderr.splitlines() if "remote" in line]
    assert len(lines) == 1, built.stderr
    assert message in lines[0]
    pushed = machine("cache", "push", "r.yaml")
    assert pushed.returncode == 2, pushed.stderr
    [line] = [line for line in pushed.stderr.splitlines() if line.startswith("error: ")]
    assert message in line
    assert not list((tmp_path / "remote").rglob("records/*"))


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("sign", "message"),
    [
        ({"command": "kms-sign"}, "sign.command is 'kms-sign'"),
        ({"command": ["kms-sign"]}, "sign.command has no key"),
        ({"command": ["kms-sign"], "key": "ed25519:AAAA"}, "is no public key"),
    ],
)
def test_wrong_settings_of_the_command_are_named(sign, message, machine):
    lines = [f"{name} = {json.dumps(value)}" for name, value in sign.items()]
    (machine.settings / "config.toml").write_text("\n".join(["[sign]", *lines]))
    assert message in machine(*BUILD, expect=2).stderr
