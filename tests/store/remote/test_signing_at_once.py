"""A command that signs is called for several records of a batch at a time."""

import sys

import pytest
from cryptography.hazmat.primitives import serialization
from stores import put

from engine.errors import UsageError
from engine.store.remote.keys import SigningCommand

COUNT = 12
KEYS = [{"step": "x", "code": "c", "options.a": str(number)} for number in range(COUNT)]
SCRIPT = """\
import sys, time
from pathlib import Path
from cryptography.hazmat.primitives import serialization
log = Path(sys.argv[2])
began = time.monotonic()
message = sys.stdin.buffer.read()
if "fail" in sys.argv:
    with log.open("a") as file:
        file.write("called\\n")
    time.sleep(0.3)
    sys.exit("no such key")
key = serialization.load_pem_private_key(Path(sys.argv[1]).read_bytes(), None)
time.sleep(0.25)
sys.stdout.buffer.write(key.sign(message))
with log.open("a") as file:
    file.write(f"{began} {time.monotonic()}\\n")
"""


@pytest.fixture
def command(pair, tmp_path):
    """Return a command that signs slowly with the pair's key, and the log of its calls."""
    form, coding = serialization.PrivateFormat.PKCS8, serialization.Encoding.PEM
    (tmp_path / "kms.key").write_bytes(pair.key.private_bytes(coding, form, serialization.NoEncryption()))
    (tmp_path / "sign.py").write_text(SCRIPT)
    words = [sys.executable, str(tmp_path / "sign.py"), str(tmp_path / "kms.key"), str(tmp_path / "log")]
    return lambda *more: SigningCommand((*words, *more), pair.public), tmp_path / "log"


def test_eight_records_are_signed_at_a_time_and_each_has_its_own_signature(machine, folder, command):
    signer, log = command
    store = machine("a", folder, writes=True, signer=signer())
    for key in KEYS:
        store.tier.push(put(store, key, {"file": key["options.a"]}))
    assert store.tier.wait() is None
    calls = [tuple(map(float, line.split())) for line in log.read_text().splitlines()]
    assert len(calls) == COUNT
    most = max(sum(began <= moment < ended for began, ended in calls) for moment, _ in calls)
    assert 2 <= most <= SigningCommand.at_once
    other = machine("b", folder)
    for key in KEYS:
        record = other.find(key)
        assert record is not None
        assert other.bring(record)
        assert (other.artifact_path(record.artifact) / "file").read_text() == key["options.a"]
    assert not other.tier.counts.refused


def test_a_command_that_fails_is_called_no_more_and_its_error_is_one_line(machine, folder, command):
    signer, log = command
    store = machine("a", folder, writes=True, signer=signer("fail"))
    for key in KEYS:
        store.tier.push(put(store, key, {"file": key["options.a"]}))
    error = store.tier.wait()
    assert isinstance(error, UsageError)
    assert error.what.endswith("ended with exit code 1: no such key")
    assert "\n" not in store.tier.summary()
    assert 1 <= len(log.read_text().splitlines()) <= SigningCommand.at_once
